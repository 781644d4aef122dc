/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of mounts, and the translation of paths.
 */
#include "core/backend/mount.h"

#include "core/backend/auto_take.h"
#include "core/backend/place_names.h"
#include "core/backend/placed.h"
#include "core/backend/stub.h"
#include "core/base/alloc.h"
#include "core/base/msg.h"
#include "core/plfs_admin.h"
#include "core/base/sys.h"
#include "core/store/posix.h"

#include <fnmatch.h>

static struct plfs_mount mounts[CONFIG_MOUNTS_MAX];
static int nr_mounts;

/* the longest first, so that the first match is the best */
HOT_DATA struct plfs_root plfs_roots[3 * CONFIG_MOUNTS_MAX];
HOT_DATA int plfs_nr_roots = 0;

static void add_root(const char *path, struct plfs_mount *m)
{
	size_t len = strlen(path);
	int i;

	for (i = 0; i < plfs_nr_roots; i++)
		if (!strcmp(plfs_roots[i].path, path))
			return;
	for (i = plfs_nr_roots++; i > 0 && plfs_roots[i - 1].len < len; i--)
		plfs_roots[i] = plfs_roots[i - 1];
	plfs_roots[i] = (struct plfs_root){ path, (unsigned)len, path[1], m->dirfd, m };
}

/* Whether @path is @root or below it. */
static bool is_below(const char *path, const char *root, size_t root_len)
{
	return !strncmp(path, root, root_len) && (path[root_len] == '/' || !path[root_len]);
}

static bool inside_container_dir(const char *path)
{
	const char *p = path;

	while ((p = strstr(p, "/" PLFS_DIR_NAME))) {
		p += sizeof("/" PLFS_DIR_NAME) - 1;
		if (*p == '/' || !*p)
			return true;
	}
	return false;
}

static int check_backend(struct mount_spec *spec, const char *path, char *canonical, char *err,
			 size_t err_len)
{
	struct stat st;

	if (!sys.realpath(path, canonical) || sys.stat(canonical, &st)) {
		int ret = -errno;

		snprintf(err, err_len,
			 "backend \"%s\" of \"%s\": %s (create the directory, or correct PLFS_MAP)", path,
			 spec->prefix, strerror(-ret));
		return ret;
	}
	if (!S_ISDIR(st.st_mode)) {
		snprintf(err, err_len, "backend \"%s\" of \"%s\" is not a directory", path, spec->prefix);
		return -ENOTDIR;
	}
	if (inside_container_dir(canonical) || inside_container_dir(spec->prefix)) {
		snprintf(err, err_len, "mapping \"%s\" to \"%s\" leads into a container directory (%s)",
			 spec->prefix, path, PLFS_DIR_NAME);
		return -EINVAL;
	}
	if (!spec->in_place && is_below(canonical, spec->prefix, strlen(spec->prefix))) {
		snprintf(err, err_len, "backend \"%s\" lies below its own prefix \"%s\"", path, spec->prefix);
		return -EINVAL;
	}
	return 0;
}

/* near=NAME: the directory; near=auto: and a limit where the mapping has none. */
static int find_near(struct plfs_mount *m, struct mount_spec *spec, char *err, size_t err_len)
{
	char dir[CONFIG_NEAR_MAX + 1];
	uint64_t max;
	const struct place_names names = { &m->store, m->uid, m->backend };

	if (spec->near_name && !spec->near)
		return place_names_find(&names, spec->near_name, &spec->near, err, err_len);
	if (!spec->near_auto || spec->near || !auto_take(m->backend, dir, &max))
		return 0;
	spec->near = mem_strdup(dir);
	spec->near_max = spec->near_max ? spec->near_max : max;
	snprintf(err, err_len, "out of memory");
	return spec->near ? 0 : -ENOMEM;
}

/* One of several backends must be another directory, and none that the programs see. */
static int check_other(const struct plfs_mount *m, const char *path, char *err, size_t err_len)
{
	const char *prefix = m->spec->prefix;
	bool twice = false;

	for (int i = 0; m->others[i] && !twice; i++)
		twice = !strcmp(m->others[i], path);
	if (is_below(path, m->backend, m->backend_len))
		snprintf(err, err_len, "backend \"%s\" of \"%s\" is, or lies in, the first one", path,
			 prefix);
	else if (strlen(path) > CONFIG_NEAR_MAX)
		snprintf(err, err_len, "backend \"%s\" of \"%s\" is too long a name", path, prefix);
	else if (twice)
		snprintf(err, err_len, "backend \"%s\" of \"%s\" is named twice", path, prefix);
	else
		return 0;
	return -EINVAL;
}

/*
 * Backends that get copies are not touched by the program: one that is gone, or does not answer, is the
 * copier's.
 */
static int check_backends(struct plfs_mount *m, struct mount_spec *spec, char *err, size_t err_len)
{
	char other[PATH_MAX];
	int ret = check_backend(spec, spec->backends[0], m->backend, err, err_len);

	m->backend_len = ret ? 0 : strlen(m->backend);
	for (int i = 1; i < spec->nr_backends && !ret; i++) {
		if (spec->mirror)
			snprintf(other, sizeof(other), "%s", spec->backends[i]);
		else
			ret = check_backend(spec, spec->backends[i], other, err, err_len);
		if (ret && ret != -EINVAL && spec->parity) { /* what it had is rebuilt */
			msg_debug(MSG_CONFIG, "%s", err);
			ret = 0;
			snprintf(other, sizeof(other), "%s", spec->backends[i]);
		}
		if (!ret)
			ret = check_other(m, other, err, err_len);
		if (!ret && !(m->others[i - 1] = mem_strdup(other)))
			ret = -ENOMEM;
	}
	return ret;
}

/* All of them are used from here on. @dev: the file system of the first. */
static int spread(struct plfs_mount *m, const struct mount_spec *spec, dev_t dev, char *err, size_t err_len)
{
	struct store other = { .root = -1 };
	struct stat st;
	int ret = 0;

	for (int i = 0; m->others[i] && !ret; i++) {
		ret = store_posix_open(&other, m->others[i]);
		if (!ret)
			ret = sys.fstat(other.root, &st) ? -errno : 0;
		if (!ret)
			store_posix_join(&m->store, &other, st.st_dev == dev);
		if (ret && spec->parity)
			ret = 0;
		if (ret)
			snprintf(err, err_len, "backend \"%s\": %s", m->others[i], strerror(-ret));
		store_posix_close(&other);
	}
	spread_setup(&m->spread, spec->spread, m->backend, m->others);
	m->store.spread = &m->spread;
	spread_enable(&m->store);
	return ret;
}

static int mount_open(struct plfs_mount *m, struct mount_spec *spec, char *err, size_t err_len)
{
	struct stat st;
	int ret;

	m->spec = spec;
	ret = check_backends(m, spec, err, err_len);
	if (ret)
		return ret;
	ret = store_posix_open(&m->store, m->backend);
	if (!ret) {
		store_keep(&m->store, &m->store.root);
		m->dirfd = store_fd(&m->store, m->store.root);
		ret = m->dirfd < 0 ? m->dirfd : sys.fstat(m->dirfd, &st) ? -errno : 0;
	}
	if (ret) {
		snprintf(err, err_len, "backend \"%s\": %s", m->backend, strerror(-ret));
		return ret;
	}
	m->dev = st.st_dev;
	m->ino = st.st_ino;
	m->mode = st.st_mode;
	m->uid = st.st_uid;
	m->gid = st.st_gid;
	ret = find_near(m, spec, err, err_len);
	if (ret)
		return ret;
	if (spec->near) {
		m->near = (struct place_settings){
			.near = spec->near,
			.max = spec->near_max,
			.home = m->backend,
			.drain = spec->drain,
			.log_max = spec->log_max ? spec->log_max : PLACE_LOG_MAX,
			.rate = spec->rate,
			.writers = spec->writers,
			.exit_wait = spec->exit_wait,
			.sync = spec->sync,
			.release = spec->release,
		};
		place_settings_init(&m->near);
		m->store.near = &m->near;
		placed_enable(&m->store);
	}
	if (spec->spread)
		ret = spread(m, spec, m->dev, err, err_len);
	if (ret)
		return ret;
	if (spec->mirror || spec->parity) {
		ret = spare_setup(&m->spares, spec, m->backend, m->others);
		if (ret)
			return ret;
		m->store.spares = &m->spares;
	}
	/*
	 * What one host writes to a stub another sees as its file system does it: that has to be asked for.
	 */
	if (m->store.remote && !spec->small_given)
		spec->small = 0;
	add_root(spec->prefix, m);
	add_root(m->backend, m);
	add_root(spec->backends[0], m);
	return 0;
}

int mount_setup(struct config *c, char *err, size_t err_len)
{
	for (int i = 0; i < c->nr_specs; i++) {
		int ret = mount_open(&mounts[nr_mounts], &c->specs[i], err, err_len);

		if (ret)
			return ret;
		msg_debug(MSG_CONFIG, "mapping %s to %s", c->specs[i].prefix, mounts[nr_mounts].backend);
		nr_mounts++;
	}
	return nr_mounts;
}

/*
 * Whether @path, a root's name already taken off, stays below that root: no ".." may climb out. Symbolic
 * links on the way are the kernel's business, which sees the same components below the backend.
 */
static bool stays_below(const char *path)
{
	int depth = 0;

	while (*path) {
		size_t n = strcspn(path, "/");

		if (n == 2 && !memcmp(path, "..", 2)) {
			if (--depth < 0)
				return false;
		} else if (n && !(n == 1 && *path == '.')) {
			depth++;
		}
		path += n;
		while (*path == '/')
			path++;
	}
	return true;
}

static bool names_container_dir(const char *rest)
{
	size_t n = sizeof(PLFS_DIR_NAME) - 1;
	char norm[PATH_MAX];

	if (strstr(rest, "/..") && !option_normalise(rest, norm))
		rest = norm;

	for (;;) {
		while (*rest == '/')
			rest++;
		if (rest[0] != '.' || (rest[1] && rest[1] != '/'))
			break;
		rest++;
	}
	return !strncmp(rest, PLFS_DIR_NAME, n) && (!rest[n] || rest[n] == '/');
}

static int map_below(const struct plfs_root *r, const char *rest, char *out, struct plfs_mount **m)
{
	size_t len = strlen(rest);

	if (names_container_dir(rest))
		return -ENOENT;
	if (r->m->backend_len + len + 1 > PATH_MAX)
		return -ENAMETOOLONG;
	memcpy(out, r->m->backend, r->m->backend_len);
	memcpy(out + r->m->backend_len, rest, len + 1);
	*m = r->m;
	return 1;
}

/* Whether the text of @path needs normalising before it can be compared: "//", "/./", "/../". */
static bool is_untidy(const char *path)
{
	for (; *path; path++)
		if (*path == '/' && (path[1] == '/' || path[1] == '.'))
			return true;
	return false;
}

int mount_path_map(const char *path, char *out, struct plfs_mount **m)
{
	char norm[PATH_MAX];
	int ret;

	for (int i = 0; i < plfs_nr_roots; i++) {
		const struct plfs_root *r = &plfs_roots[i];

		if (!is_below(path, r->path, r->len))
			continue;
		if (stays_below(path + r->len))
			return map_below(r, path + r->len, out, m);
		break;
	}
	if (!plfs_nr_roots || !is_untidy(path))
		return 0;
	ret = option_normalise(path, norm);
	if (ret)
		return ret == -EINVAL ? 0 : ret;
	for (int i = 0; i < plfs_nr_roots; i++)
		if (is_below(norm, plfs_roots[i].path, plfs_roots[i].len))
			return map_below(&plfs_roots[i], norm + plfs_roots[i].len, out, m);
	return 0;
}

struct plfs_mount *mount_of_backend_path(const char *path)
{
	struct plfs_mount *best = NULL;

	for (int i = 0; i < nr_mounts; i++)
		if (is_below(path, mounts[i].backend, mounts[i].backend_len) &&
		    (!best || best->backend_len < mounts[i].backend_len))
			best = &mounts[i];
	return best;
}

/* Not part of who calls it: it takes 4 KiB of the stack. */
__attribute__((noinline)) struct plfs_mount *mount_of_file(int fd)
{
	char name[PATH_MAX];

	return mount_of_backend_path(stub_name(fd, name, sizeof(name)));
}

/* Whether @path is outside of the backend of @m, also by the name that this has now. */
static bool has_left(const struct plfs_mount *m, const char *path)
{
	char *now = mem_alloc(PATH_MAX); /* the stack may be small */
	bool left = now && *stub_name(m->dirfd, now, PATH_MAX) == '/' && !is_below(path, now, strlen(now));

	mem_free(now);
	return left;
}

struct plfs_mount *mount_holding(struct plfs_mount *m, const char *path)
{
	struct plfs_mount *o;

	if (*path != '/' || is_below(path, m->backend, m->backend_len))
		return m;
	o = mount_of_backend_path(path);
	return o ? o : has_left(m, path) ? NULL : m;
}

/* As mount_of_file(). */
static __attribute__((noinline)) struct plfs_mount *holding_file(struct plfs_mount *m, int fd)
{
	char name[PATH_MAX];

	return mount_holding(m, stub_name(fd, name, sizeof(name)));
}

struct plfs_mount *mount_followed(struct plfs_mount *m, int fd)
{
	struct plfs_mount *o = likely(nr_mounts == 1) ? m : holding_file(m, fd);

	return o ? o : m;
}

bool mount_lacks_file(struct plfs_mount *m, int fd) { return !holding_file(m, fd); }

int mount_path_unmap(const char *path, char *out)
{
	struct plfs_mount *m = *path == '/' ? mount_of_backend_path(path) : NULL;
	size_t len;

	if (!m || m->spec->in_place)
		return 0;
	path += m->backend_len;
	len = strlen(m->spec->prefix);
	if (len + strlen(path) + 1 > PATH_MAX)
		return -ENAMETOOLONG;
	memcpy(out, m->spec->prefix, len);
	strcpy(out + len, path);
	return 1;
}

int mount_cwd_class(const char *cwd, struct plfs_mount **m)
{
	size_t len = strlen(cwd);

	*m = mount_of_backend_path(cwd);
	if (*m)
		return 1;
	if (len == 1) /* "/" */
		return plfs_nr_roots ? 2 : 0;
	for (int i = 0; i < plfs_nr_roots; i++)
		if (is_below(plfs_roots[i].path, cwd, len))
			return 2;
	return 0;
}

int mount_count(void)
{
	return nr_mounts;
}

struct plfs_mount *mount_at(int i)
{
	return &mounts[i];
}

bool mount_has_dev(dev_t dev)
{
	for (int i = 0; i < nr_mounts; i++)
		if (mounts[i].dev == dev || __atomic_load_n(&mounts[i].dev_now, __ATOMIC_RELAXED) == dev)
			return true;
	return false;
}

bool mount_any_in_place(void)
{
	for (int i = 0; i < nr_mounts; i++)
		if (mounts[i].spec->in_place)
			return true;
	return false;
}

bool mount_is_root(dev_t dev, ino_t ino)
{
	for (int i = 0; i < nr_mounts; i++)
		if (mounts[i].dev == dev && mounts[i].ino == ino)
			return true;
	return false;
}

bool mount_has_containers(dev_t dev, ino_t ino)
{
	int saved ERRNO_KEPT = errno;
	struct stat st;

	for (int i = 0; i < nr_mounts; i++)
		if (mounts[i].dev == dev && mounts[i].ino == ino)
			return __atomic_load_n(&mounts[i].prepared, __ATOMIC_RELAXED) ||
			       !mounts[i].store.ops->stat(&mounts[i].store, PLFS_DIR_NAME, &st);
	return false;
}

/*
 * A pattern with a slash is matched against the whole path below the backend, else against the last
 * component.
 */
static bool glob_matches(const char *glob, const char *path)
{
	const char *slash = strrchr(path, '/');

	return !fnmatch(glob, strchr(glob, '/') || !slash ? path : slash + 1, 0);
}

bool mount_wants_log(const struct plfs_mount *m, const char *path)
{
	const struct mount_spec *s = m->spec;
	bool wanted = !s->nr_match;

	if (s->mode != MOUNT_LOG)
		return false;
	if (is_below(path, m->backend, m->backend_len))
		path += m->backend_len + (path[m->backend_len] == '/');
	for (int i = 0; i < s->nr_match && !wanted; i++)
		wanted = glob_matches(s->match[i], path);
	for (int i = 0; i < s->nr_exclude && wanted; i++)
		wanted = !glob_matches(s->exclude[i], path);
	return wanted;
}

const char *plfs_backend(const struct plfs_mount *m)
{
	return m->backend;
}

const char *plfs_prefix(const struct plfs_mount *m)
{
	return m->spec->prefix;
}

struct plfs_mount *plfs_mount_at(int i)
{
	return i < nr_mounts ? &mounts[i] : NULL;
}

bool plfs_is_remote(const struct plfs_mount *m)
{
	return m->store.remote;
}
