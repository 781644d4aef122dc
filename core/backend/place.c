/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Places as directories: near.HOST, finding a place, making one.
 */
#include "core/backend/place.h"

#include "core/backend/host.h"
#include "core/backend/origin.h"
#include "core/base/crc32c.h"
#include "core/base/io.h"
#include "core/base/msg.h"
#include "core/base/stamp.h"
#include "core/store/dirs.h"
#include "core/store/posix.h"

#include <stdio.h>
#include <unistd.h>

#define TRIES 10 /* while others remove what is empty */
#define DIR_MODE 0755

/* ---- near.HOST ---- */

/* The PLACE_LEN bytes of the file @path. -ENODATA: it is shorter. */
static int read_raw(struct store *s, const char *path, uint8_t *buf)
{
	int h = store_open(s, path, O_RDONLY | STORE_BRIEFLY | s->uncached, 0);
	ssize_t n;

	if (h < 0)
		return h;
	n = s->ops->pread(s, h, buf, PLACE_LEN, 0);
	store_close(s, &h);
	return n < 0 ? (int)n : n < PLACE_LEN ? -ENODATA : 0;
}

static int name_near(char *path, const char *dir, const char *host, size_t host_len)
{
	int n = snprintf(path, STORE_PATH_LEN, "%s%snear.%.*s", dir, *dir ? "/" : "", (int)host_len, host);

	return n < STORE_PATH_LEN ? 0 : -ENAMETOOLONG;
}

/* Whether @dir, ".plfs/XX/ID/hostdir.K", is in the container of this id. */
static bool is_in(const char *dir, const uint8_t *id)
{
	const char *end = strrchr(dir, '/');
	char hex[2 * STUB_ID_LEN + 1];

	for (int i = 0; i < STUB_ID_LEN; i++)
		snprintf(hex + 2 * i, 3, "%02x", id[i]);
	return end && end - dir > 2 * STUB_ID_LEN && !memcmp(end - 2 * STUB_ID_LEN, hex, 2 * STUB_ID_LEN);
}

/* Whether it is a near.HOST for the hostdir @dir, ".plfs/XX/ID/hostdir.K". */
static bool is_of(const struct place *p, const char *dir, const char *host, size_t host_len)
{
	return is_in(dir, p->id) && strlen(p->host) == host_len && !memcmp(p->host, host, host_len);
}

static void user_path(const struct place_settings *ps, char *path)
{
	snprintf(path, PLACE_PATH_LEN, "%s/plfs.%u", ps->near, (unsigned)geteuid());
}

/* NEAR/plfs.UID/BACKEND-ID. -ENAMETOOLONG. */
static int top_path(const struct place_settings *ps, char *path)
{
	int n = snprintf(path, PLACE_PATH_LEN, "%s/plfs.%u/%s", ps->near, (unsigned)geteuid(),
			 ps->backend_id);

	return n < PLACE_PATH_LEN ? 0 : -ENAMETOOLONG;
}

/* Where new logs are made, near.HOST being damaged: for messages. */
static void guess(const struct store *home, const char *host, size_t host_len, struct place *p)
{
	memset(p, 0, sizeof(*p));
	snprintf(p->host, sizeof(p->host), "%.*s", (int)host_len, host);
	if (home->near)
		top_path(home->near, p->path);
	else
		snprintf(p->path, sizeof(p->path), "a place that near.%s, which is damaged, does not name",
			 p->host);
}

static int read_place(struct store *home, const char *dir, const char *host, size_t host_len, uint8_t *raw,
		      struct place *p)
{
	char path[STORE_PATH_LEN];
	int ret = name_near(path, dir, host, host_len);

	if (!ret)
		ret = read_raw(home, path, raw);
	if (ret && ret != -ENODATA)
		return ret;
	if (!ret && !place_decode(p, raw) && is_of(p, dir, host, host_len))
		return 0;
	guess(home, host, host_len, p);
	return -EBADMSG;
}

int place_read(struct store *home, const char *dir, const char *host, size_t host_len, struct place *p)
{
	uint8_t raw[PLACE_LEN];

	return read_place(home, dir, host, host_len, raw, p);
}

/* ---- finding one ---- */

/* The directory plfs.UID at @path, if it is @uid's and nobody else may write it. */
static int open_user(const char *path, uid_t uid)
{
	int fd = sys_fd_hide_briefly(io_open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)), ret = 0;
	struct stat st;

	if (fd < 0)
		return -errno;
	if (sys.fstat(fd, &st))
		ret = -errno;
	else if (st.st_uid != uid || st.st_mode & (S_IWGRP | S_IWOTH))
		ret = -EPERM;
	if (!ret)
		return fd;
	sys_fd_close(&fd);
	return ret;
}

/* "XX/ID/hostdir.K" of ".plfs/XX/ID/hostdir.K". */
static const char *below(const char *dir) { return strchr(dir, '/') + 1; }

/* A store like @home on what is called @path below the directory @fd, which is closed. */
static int enter(struct store *home, int fd, const char *path, struct place_dir *near)
{
	near->store = *home;
	near->store.ops = home->under ? home->under : home->ops;
	near->store.root = fd;
	near->store.near = NULL;
	near->lock = -1;
	near->store.root = store_open(&near->store, path, O_RDONLY | O_DIRECTORY | STORE_BRIEFLY, 0);
	sys_fd_close(&fd);
	return near->store.root < 0 ? near->store.root : 0;
}

/* NEAR/plfs.UID of NEAR/plfs.UID/BACKEND-ID; *@id: the rest. */
static int open_user_of(const char *path, const char **id)
{
	char user[PLACE_PATH_LEN];
	const char *slash = strrchr(path, '/'), *name;
	unsigned uid;

	if (*path != '/' || !slash || slash == path)
		return -EIO;
	snprintf(user, sizeof(user), "%.*s", (int)(slash - path), path);
	*id = slash + 1;
	name = strrchr(user, '/');
	return sscanf(name, "/plfs.%u", &uid) == 1 ? open_user(user, uid) : -EIO;
}

/* What says that there is no such place here, or none that works; all else is an error that may pass. */
static int elsewhere(int ret)
{
	static const int errors[] = { ENOENT,  ENOTDIR, ELOOP,	ENXIO, EPERM,
				      EACCES, ENODATA, EIO, ENODEV, ESTALE };

	for (size_t i = 0; i < ARRAY_SIZE(errors); i++)
		if (ret == -errors[i])
			return -EREMOTE;
	return ret;
}

static int enter_both(struct store *home, const char *dir, const char *host, size_t host_len,
		      struct place_dir *near, bool top)
{
	uint8_t raw[PLACE_LEN], there[PLACE_LEN];
	char path[STORE_PATH_LEN], name[STORE_PATH_LEN];
	struct place p;
	const char *id = "";
	int fd, ret = read_place(home, dir, host, host_len, raw, &p);

	if (ret)
		return ret == -EBADMSG ? -EREMOTE : ret;
	fd = open_user_of(p.path, &id);
	if (fd < 0)
		return elsewhere(fd);
	name_near(name, dir, host, host_len);
	if (origin_is_other(home, fd, id, name, raw, sizeof(raw))) {
		sys_fd_close(&fd);
		return -EREMOTE;
	}
	if (top)
		snprintf(path, sizeof(path), "%s", id);
	else
		snprintf(path, sizeof(path), "%s/%s", id, below(dir));
	ret = enter(home, fd, path, near);
	if (ret)
		return elsewhere(ret);
	ret = name_near(name, top ? below(dir) : "", host, host_len);
	if (!ret)
		ret = read_raw(&near->store, name, there);
	if (!ret && !memcmp(raw, there, PLACE_LEN))
		return 0;
	place_leave(near);
	return ret ? elsewhere(ret) : -EREMOTE;
}

int place_enter(struct store *home, const char *dir, const char *host, size_t host_len,
		struct place_dir *near)
{
	return enter_both(home, dir, host, host_len, near, false);
}

int place_enter_top(struct store *home, const char *dir, const char *host, size_t host_len,
		    struct place_dir *near)
{
	return enter_both(home, dir, host, host_len, near, true);
}

void place_leave(struct place_dir *near)
{
	if (near->lock >= 0)
		store_close(&near->store, &near->lock);
	store_close(&near->store, &near->store.root);
}

/* ---- making one ---- */

void place_settings_init(struct place_settings *ps)
{
	snprintf(ps->backend_id, sizeof(ps->backend_id), "%016llx",
		 (unsigned long long)store_path_id(ps->home));
}

int place_open_user(const struct place_settings *ps)
{
	char user[PLACE_PATH_LEN];

	user_path(ps, user);
	return open_user(user, geteuid());
}

/* Once a process: a job has thousands. */
static void tell_refused(const struct place_settings *ps, int ret)
{
	static bool told;
	char user[PLACE_PATH_LEN];

	if (__atomic_exchange_n(&told, true, __ATOMIC_RELAXED))
		return;
	user_path(ps, user);
	msg_error("%s: %s: logs are written to %s itself", user,
		  ret == -EPERM ? "not this user's alone, so nothing is put there (near=)" : strerror(-ret),
		  ps->home);
}

static int make_dir(struct store *s, const char *path)
{
	int ret = s->ops->mkdir(s, path, DIR_MODE);

	return ret == -EEXIST ? 0 : ret;
}

/* A power failure may have left it shorter. */
static void say_home(struct store *s, const struct place_settings *ps)
{
	char path[STORE_PATH_LEN];
	struct stat st;

	snprintf(path, sizeof(path), "%s/" ORIGIN_HOME, ps->backend_id);
	if (s->ops->stat(s, path, &st) || st.st_size != (off_t)strlen(ps->home) + 1)
		store_write_file(s, path, 0644, ps->home, strlen(ps->home), "\n", 1);
}

/* Each directory from BACKEND-ID to the hostdir. */
static int make_way(struct store *s, const struct place_settings *ps, const char *path)
{
	char part[STORE_PATH_LEN];
	int ret = 0;

	for (const char *p = path; p && !ret;) {
		p = strchr(p, '/');
		snprintf(part, sizeof(part), "%.*s", p ? (int)(p - path) : (int)strlen(path), path);
		ret = make_dir(s, part);
		p = p ? p + 1 : NULL;
	}
	if (!ret)
		say_home(s, ps);
	return ret;
}

/* plfs.UID, of a store, with the way @path in it. */
static int make_own(const struct place_settings *ps, const char *path, struct store *s)
{
	char user[PLACE_PATH_LEN];
	int ret;

	user_path(ps, user);
	if (!sys.mkdir(user, DIR_MODE))
		sys.chmod(user, DIR_MODE); /* the umask has its say in the first */
	else if (errno != EEXIST)
		return -errno;
	s->ops = s->under;
	s->root = place_open_user(ps);
	if (s->root < 0)
		return s->root;
	ret = make_way(s, ps, path);
	if (ret)
		sys_fd_close(&s->root);
	return ret;
}

static int enter_own(struct store *home, const char *dir, struct place_dir *near)
{
	char path[STORE_PATH_LEN];
	struct store s = *home;
	int ret;

	snprintf(path, sizeof(path), "%s/%s", home->near->backend_id, below(dir));
	ret = make_own(home->near, path, &s);
	return ret ? ret : enter(home, s.root, path, near);
}

int place_make_top(struct store *home)
{
	struct store s = *home;
	int ret = make_own(home->near, home->near->backend_id, &s);

	if (!ret)
		sys_fd_close(&s.root);
	return ret;
}

/* The bytes of the near.HOST that is locked: -ENODATA: it has none, or is damaged. */
static int read_locked(struct place_dir *near, const char *dir, const char *host, uint8_t *raw,
		       struct place *p)
{
	ssize_t n = near->store.ops->pread(&near->store, near->lock, raw, PLACE_LEN, 0);

	if (n < 0)
		return (int)n;
	return n == PLACE_LEN && !place_decode(p, raw) && is_of(p, dir, host, strlen(host)) ? 0 : -ENODATA;
}

/* The lock is held, exclusively. */
static int write_locked(struct place_dir *near, const uint8_t *raw)
{
	ssize_t n = near->store.ops->pwrite(&near->store, near->lock, raw, PLACE_LEN, 0);

	return n == PLACE_LEN ? 0 : n < 0 ? (int)n : -ENOSPC;
}

/* The lock is held, exclusively: write the file anew. @path: of NEAR/plfs.UID/BACKEND-ID. */
static int fill(struct place_dir *near, const char *dir, const char *host, const char *path)
{
	struct place p = { .created_ns = stamp_next() };
	const char *end = strrchr(dir, '/');
	uint8_t raw[PLACE_LEN];

	for (int i = 0; i < STUB_ID_LEN; i++) {
		unsigned byte;

		if (sscanf(end - 2 * STUB_ID_LEN + 2 * i, "%2x", &byte) != 1)
			return -EIO;
		p.id[i] = (uint8_t)byte;
	}
	if (sys.getrandom(p.token, sizeof(p.token), 0) != sizeof(p.token))
		return -EIO;
	if (snprintf(p.host, sizeof(p.host), "%s", host) >= (int)sizeof(p.host) ||
	    snprintf(p.path, sizeof(p.path), "%s", path) >= (int)sizeof(p.path))
		return -ENAMETOOLONG;
	place_encode(&p, raw);
	return write_locked(near, raw);
}

/* near.HOST at home becomes as that here. */
static int write_home(struct store *home, const char *path, mode_t mode, struct place_dir *near, bool durably)
{
	uint8_t raw[PLACE_LEN];
	ssize_t n = near->store.ops->pread(&near->store, near->lock, raw, sizeof(raw), 0);
	int h;

	if (n != sizeof(raw))
		return n < 0 ? (int)n : -EIO;
	if (durably)
		return store_replace_durably(home, path, mode, STORE_NOBODY, raw, sizeof(raw));
	h = store_replace_file(home, path, mode, raw, sizeof(raw), NULL, 0);
	if (h < 0)
		return h;
	store_close(home, &h);
	return 0;
}

/*
 * Whether near.HOST at home is as that here. -ENODATA: home has none, and it is to be made; -EREMOTE: home
 * has another. With @make: make it, from that here, which is made anew if it is none.
 */
static int compare_home(struct store *home, const char *dir, mode_t mode, struct place_dir *near, bool make)
{
	uint8_t here[PLACE_LEN], there[PLACE_LEN];
	char path[STORE_PATH_LEN], top[PLACE_PATH_LEN];
	const char *host = host_name();
	struct place p;
	int ret = name_near(path, dir, host, strlen(host)), own;

	own = ret ? ret : read_locked(near, dir, host, here, &p);
	if (own && own != -ENODATA)
		return own;
	ret = read_raw(home, path, there);
	if (!ret && !own && !memcmp(here, there, PLACE_LEN))
		return 0;
	if (ret != -ENOENT)
		return ret && ret != -ENODATA ? ret : -EREMOTE;
	if (!make)
		return -ENODATA;
	ret = own ? top_path(home->near, top) : 0;
	if (!ret && own)
		ret = fill(near, dir, host, top);
	return ret ? ret : write_home(home, path, mode, near, false);
}

/* Whether the file that is locked has lost its name. */
static bool is_gone(struct place_dir *near)
{
	struct stat st;

	return near->store.ops->fstat(&near->store, near->lock, &st) || !st.st_nlink;
}

/* One attempt. -EAGAIN: it was removed meanwhile. */
static int try_begin(struct store *home, const char *dir, mode_t mode, struct place_dir *near)
{
	char name[STORE_PATH_LEN];
	struct store *s = &near->store;
	bool made;
	int ret = enter_own(home, dir, near);

	if (ret)
		return ret == -ENOENT ? -EAGAIN : ret;
	name_near(name, "", host_name(), strlen(host_name()));
	near->lock = store_open_or_make(s, name, O_RDWR | STORE_BRIEFLY, 0644, &made);
	ret = near->lock < 0 ? near->lock : store_lock_shared(s, near->lock);
	if (!ret)
		ret = is_gone(near) ? -EAGAIN : compare_home(home, dir, mode, near, false);
	if (ret == -ENODATA) { /* it is new */
		store_unlock(s, near->lock);
		ret = store_lock(s, near->lock);
		if (!ret)
			ret = is_gone(near) ? -EAGAIN : compare_home(home, dir, mode, near, true);
		if (!ret)
			ret = store_lock_shared(s, near->lock); /* others may make logs as well */
	}
	if (ret)
		place_leave(near);
	return ret == -ENOENT ? -EAGAIN : ret;
}

int place_begin(struct store *home, const char *dir, mode_t mode, struct place_dir *near)
{
	const struct place_settings *ps = home->near;
	int ret = ps->max && place_used(ps) >= ps->max ? -ENOSPC : -EAGAIN;

	for (int tries = 0; ret == -EAGAIN && tries < TRIES; tries++)
		ret = try_begin(home, dir, mode, near);
	if (ret == -EAGAIN)
		ret = -ENOENT;
	if (ret && ret != -ENOSPC && ret != -EDQUOT && ret != -EREMOTE)
		tell_refused(ps, ret);
	return ret;
}

/* ---- mending one ---- */

static bool is_same_dir(const char *a, const char *b)
{
	struct stat st, other;

	return !sys.fstatat(AT_FDCWD, a, &st, 0) && !sys.fstatat(AT_FDCWD, b, &other, 0) &&
	       st.st_dev == other.st_dev && st.st_ino == other.st_ino;
}

/*
 * The lock is held, exclusively. Two that are whole and lead here differ where the removal of the one near
 * did not reach the disk, and another was made since.
 */
static int mend_locked(struct store *home, const char *dir, const char *host, const char *top, mode_t mode,
		       struct place_dir *near)
{
	uint8_t here[PLACE_LEN], there[PLACE_LEN];
	char path[STORE_PATH_LEN];
	struct place p, q;
	int ret = name_near(path, dir, host, strlen(host)), found;

	if (ret)
		return ret;
	ret = read_locked(near, dir, host, here, &p);
	found = read_place(home, dir, host, strlen(host), there, &q);
	if ((ret && ret != -ENODATA) || (found && found != -ENOENT && found != -EBADMSG))
		return ret && ret != -ENODATA ? ret : found;
	if (!found && !ret && !memcmp(here, there, PLACE_LEN))
		return 0;
	if (!found) {
		ret = is_same_dir(q.path, top) ? write_locked(near, there) : -EREMOTE;
		return ret ? ret : near->store.ops->sync(&near->store, near->lock, false);
	}
	if (!ret && !is_same_dir(p.path, top))
		return -EREMOTE;
	ret = ret ? fill(near, dir, host, top) : 0;
	if (!ret)
		ret = near->store.ops->sync(&near->store, near->lock, false);
	return ret ? ret : write_home(home, path, mode, near, true);
}

int place_mend(struct store *home, const char *top, const char *dir, const char *host, mode_t mode)
{
	char path[STORE_PATH_LEN], name[STORE_PATH_LEN];
	struct store under = *home;
	struct place_dir near;
	const char *id;
	bool made;
	int ret = name_near(name, "", host, strlen(host)), fd = open_user_of(top, &id);

	if (fd < 0)
		return fd;
	under.ops = home->under ? home->under : home->ops;
	snprintf(path, sizeof(path), "%s/%s", id, below(dir));
	ret = enter(home, fd, path, &near);
	if (ret)
		return ret;
	near.lock = store_open_or_make(&near.store, name, O_RDWR | STORE_BRIEFLY, 0644, &made);
	ret = near.lock < 0 ? near.lock : store_lock(&near.store, near.lock);
	if (!ret)
		ret = is_gone(&near) ? -ENOENT : mend_locked(&under, dir, host, top, mode, &near);
	place_leave(&near);
	return ret;
}

/* ---- how much is there ---- */

struct used_arg {
	uint64_t bytes;
	int depth;
};

static int add_used(void *arg, int fd, const char *name, unsigned char type)
{
	struct used_arg *ua = arg;
	struct dirs_sum sum = { 0 };
	int dir;

	(void)type;
	if (ua->depth == 2) { /* a container */
		if (!dirs_measure(fd, name, &sum))
			ua->bytes += sum.bytes;
		return 0;
	}
	dir = dirs_open(fd, name);
	if (dir < 0)
		return 0;
	ua->depth++;
	dirs_list(dir, add_used, ua);
	ua->depth--;
	io_close(dir);
	return 0;
}

uint64_t place_used(const struct place_settings *ps)
{
	struct used_arg ua = { 0 };
	int fd = place_open_user(ps), dir;

	if (fd < 0)
		return fd == -ENOENT ? 0 : UINT64_MAX;
	dir = dirs_open(fd, ".");
	sys_fd_close(&fd);
	if (dir < 0)
		return UINT64_MAX;
	dirs_list(dir, add_used, &ua);
	io_close(dir);
	return ua.bytes;
}
