/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Files below a backend that are reached by a path that does not look so: through a symbolic link somewhere
 * else. Were they left to the kernel, a program would read a stub, truncate its header away or take off its
 * mark.
 *
 * open() pays nothing for this where the kernel has openat2(): asked to follow no links, it opens what the
 * path says, or refuses, and only then is there something to find out. Other calls look at the file first.
 */
#include "through.h"

/*
 * The real path of what (dirfd, path) names, whether a link itself (O_NOFOLLOW) or not. Its length, or
 * -errno; errno stays.
 */
static ssize_t real_path(int dirfd, const char *path, int nofollow, char *out)
{
	int saved ERRNO_KEPT = errno;
	int fd = sys.openat(dirfd, path, O_PATH | O_CLOEXEC | nofollow);
	ssize_t len;

	if (fd < 0)
		return -errno;
	len = path_read_fd(fd, out);
	sys.close(fd);
	return len;
}

/* The same for a name that does not exist: in the real directory that it would be made in. */
static ssize_t real_path_of_new(int dirfd, const char *path, char *out)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	size_t dir_len = slash ? (size_t)(slash - path) : 0;
	char dir[PATH_MAX] = ".";
	ssize_t len;

	if (dir_len >= sizeof(dir) || !*name)
		return -ENOENT;
	if (slash)
		memcpy(dir, dir_len ? path : "/", (dir_len ? dir_len : 1) + 1);
	if (dir_len)
		dir[dir_len] = '\0';
	len = real_path(dirfd, dir, 0, out);
	if (len < 0)
		return len;
	if ((size_t)len + 1 + strlen(name) >= PATH_MAX)
		return -ENAMETOOLONG;
	out[len] = '/';
	strcpy(out + len + 1, name);
	return len + 1 + (ssize_t)strlen(name);
}

/*
 * @real is where @w really leads: if that is below a mount, let it say so. Returns 0, or -ENOENT and the
 * like.
 */
static int lead_to(struct where *w, const char *real)
{
	struct plfs_mount *m;
	int r = plfs_path_map(real, w->buf, &m);

	if (r != 1)
		return r;
	w->dirfd = AT_FDCWD;
	w->path = w->buf;
	w->m = m;
	return 0;
}

int path_of_fd(struct where *w, int fd)
{
	char real[PATH_MAX];
	ssize_t len = path_read_fd(fd, real);

	w->m = NULL;
	return len < 0 ? (int)len : lead_to(w, real);
}

int path_through(struct where *w, int at_flags)
{
	char real[PATH_MAX];
	int saved = errno;
	struct stat st;
	int r;

	if (w->m || !shim_active || !w->path || !*w->path)
		return 0;
	r = sys.fstatat(w->dirfd, w->path, &st, at_flags & AT_SYMLINK_NOFOLLOW);
	errno = saved;
	if (r || (!plfs_maybe_stub(st.st_mode) && !plfs_maybe_unmarked(&st, false)))
		return 0;
	r = real_path(w->dirfd, w->path, at_flags & AT_SYMLINK_NOFOLLOW ? O_NOFOLLOW : 0, real) < 0;
	return r ? 0 : lead_to(w, real);
}

bool path_is_near_mount(const char *path)
{
	struct plfs_mount *m;
	char real[PATH_MAX];
	struct where w;

	if (path_find(&w, AT_FDCWD, path) < 0 || w.m)
		return true;
	return real_path(w.dirfd, w.path, 0, real) > 0 && plfs_cwd_class(real, &m);
}

int path_follow(struct where *w, int flags)
{
	char real[PATH_MAX];
	ssize_t len = real_path(w->dirfd, w->path, flags & O_NOFOLLOW, real);

	if (len == -ENOENT && (flags & O_CREAT))
		len = real_path_of_new(w->dirfd, w->path, real);
	return len < 0 ? 0 : lead_to(w, real); /* what went wrong, open() will say */
}

/*
 * Most links lead to what is no stub, whoever asks: one look at the file tells. Only a stub, a directory, or
 * a file that is to be made, may be below a mount and mean more.
 */
int path_look(struct where *w, int flags)
{
	int err, saved = errno;
	struct stat st;

	if (w->m || !shim_active || !w->path || !*w->path)
		return 0;
	if (flags & O_CREAT && w->path[strlen(w->path) - 1] == '/')
		return 0; /* EISDIR, whatever is there */
	err = sys.fstatat(w->dirfd, w->path, &st, flags & O_NOFOLLOW ? AT_SYMLINK_NOFOLLOW : 0) ? errno : 0;
	errno = saved;
	if (err ? err == ENOENT && (flags & O_CREAT) : plfs_maybe_stub(st.st_mode) || S_ISDIR(st.st_mode) ||
			 plfs_maybe_unmarked(&st, false))
		return path_follow(w, flags);
	return 0; /* what went wrong, open() will say */
}

int path_before_open(struct where *w, int flags)
{
	int r;

	if (w->m || !raw_open_ok || !w->path || !*w->path)
		return path_look(w, flags);
	r = path_open_plain(w->dirfd, w->path, (flags & O_NOFOLLOW) | O_PATH | O_CLOEXEC, 0);
	if (r >= 0)
		sys.close(r);
	return path_is_undecided(r) ? path_look(w, flags) : 0;
}

static int path_find_two(struct where *a, int fd_a, const char *path_a, struct where *b, int fd_b,
			 const char *path_b)
{
	int r = path_find(a, fd_a, path_a);

	if (shim_active && (!path_a || !path_b))
		return -EFAULT;
	if (!r)
		r = path_through(a, AT_SYMLINK_NOFOLLOW);
	if (!r)
		r = path_find(b, fd_b, path_b);
	if (!r && !a->m && b->m) /* a plain file or a directory, perhaps of the same mount */
		r = path_follow(a, O_NOFOLLOW);
	if (!r && a->m && !b->m)
		r = path_before_open(b, O_CREAT | O_NOFOLLOW);
	return !r && a->m != b->m ? -EXDEV : r;
}

/* ---- renames of what a mount hangs on ---- */

static bool is_root(const struct where *w)
{
	int saved ERRNO_KEPT = errno;
	struct stat st;

	return !sys.fstatat(w->dirfd, w->path, &st, AT_SYMLINK_NOFOLLOW) &&
	       plfs_is_root(st.st_dev, st.st_ino);
}

/* Whether a directory called @name, of @len bytes, is on the way to the root. */
static bool has_component_above(const struct plfs_root *r, const char *name, size_t len)
{
	for (const char *p = r->path; (p = strchr(p, '/')); ) {
		p++;
		if (!strncmp(p, name, len) && p[len] == '/')
			return true;
	}
	return false;
}

/* Whether @w is a directory above a root. Its name alone says no, most often; else two calls. */
static bool is_above_root(const struct where *w)
{
	const char *end = w->path + strlen(w->path), *name;
	bool maybe = false;
	char real[PATH_MAX];
	ssize_t len;

	while (end > w->path && end[-1] == '/')
		end--;
	for (name = end; name > w->path && name[-1] != '/'; name--)
		;
	for (int i = 0; i < plfs_nr_roots && !maybe; i++)
		maybe = end > name && has_component_above(&plfs_roots[i], name, (size_t)(end - name));
	if (!maybe)
		return false;
	len = real_path(w->dirfd, w->path, O_NOFOLLOW, real);
	for (int i = 0; i < plfs_nr_roots && len > 0; i++)
		if (!strncmp(plfs_roots[i].path, real, (size_t)len) && plfs_roots[i].path[len] == '/')
			return true;
	return false;
}

/* Why the kernel could not find the directory that holds the name; it looks there first. */
static int parent_error(const struct where *w)
{
	size_t len = strlen(w->path);
	char dir[PATH_MAX];
	struct stat st;

	if (!len)
		return -ENOENT;
	while (len > 1 && w->path[len - 1] == '/')
		len--;
	while (len && w->path[len - 1] != '/')
		len--;
	if (len >= sizeof(dir))
		return 0;
	memcpy(dir, len ? w->path : ".", len ? len : 1);
	dir[len ? len : 1] = '\0';
	return sys.fstatat(w->dirfd, dir, &st, 0) ? -errno : 0;
}

static __attribute__((noinline, cold)) int refuse_move(const struct where *a, const struct where *b, int ret)
{
	int r = parent_error(a);

	if (!r)
		r = parent_error(b);
	return r ? r : ret;
}

/* A link is made of a file, and where there is none; only then the kernel looks at the border. */
static __attribute__((noinline, cold)) int refuse_link(const struct where *a, const struct where *b)
{
	int saved ERRNO_KEPT = errno;
	struct stat st;
	int r, err;

	if (sys.fstatat(a->dirfd, a->path, &st, AT_SYMLINK_NOFOLLOW))
		return -errno;
	if (!sys.fstatat(b->dirfd, b->path, &st, AT_SYMLINK_NOFOLLOW))
		return -EEXIST;
	err = errno;
	r = parent_error(b);
	if (r)
		return r;
	if (b->path[strlen(b->path) - 1] == '/')
		return err == ENOTDIR ? -EEXIST : -ENOENT;
	return err == ENOENT ? -EXDEV : -err;
}

int path_find_linked(struct where *a, int fd_a, const char *path_a, struct where *b, int fd_b,
                     const char *path_b)
{
	int r = path_find_two(a, fd_a, path_a, b, fd_b, path_b);

	return r == -EXDEV ? refuse_link(a, b) : r;
}

int path_find_moved(struct where *a, int fd_a, const char *path_a, struct where *b, int fd_b,
                    const char *path_b)
{
	int r = path_find_two(a, fd_a, path_a, b, fd_b, path_b);

	if (!shim_active)
		return r;
	if (r == -EXDEV) /* what is mapped is busy, as a mount is */
		return refuse_move(a, b, is_root(a) || is_root(b) ? -EBUSY : r);
	return !r && (is_above_root(a) || is_above_root(b)) ? refuse_move(a, b, -EBUSY) : r;
}
