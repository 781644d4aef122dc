/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where a path leads. The rule that keeps this cheap: a system call is made only for a relative path that
 * seems to cross the border of a mount: it climbs above its start with "..", or its start lies above a
 * prefix. Everything else is a comparison of strings (absolute) or a load (relative).
 */
#include "path.h"

/*
 * The working directory: its class, its mount when inside, and its canonical real path. The path is only good
 * for finding out cheaply that something is not ours: a directory on the way may have been renamed since.
 * Racing with chdir() in another thread is the program's race.
 */
HOT_DATA int path_cwd_class = OUTSIDE;
static struct plfs_mount *cwd_mount;

static pthread_mutex_t cwd_lock = PTHREAD_MUTEX_INITIALIZER; /* of those who change cwd_path */
static unsigned cwd_seq; /* odd while it changes; readers look before and after */
static size_t cwd_len;
static char cwd_path[PATH_MAX];

/* Whether @path, taken lexically, goes above the directory that it starts from. */
static bool climbs(const char *path)
{
	const char *p = path;
	int depth = 0;

	while (*p) {
		const char *name = p;
		size_t len;

		while (*p && *p != '/')
			p++;
		len = (size_t)(p - name);
		if (len == 2 && name[0] == '.' && name[1] == '.') {
			if (--depth < 0)
				return true;
		} else if (len && !(len == 1 && name[0] == '.')) {
			depth++;
		}
		while (*p == '/')
			p++;
	}
	return false;
}

/*
 * Whether one of the names in @path is the container directory's: then it has to be found out which directory
 * it is in.
 */
static bool names_hidden(const char *path)
{
	const size_t len = sizeof(PLFS_DIR_NAME) - 1;
	const char *p = path;

	while ((p = strstr(p, PLFS_DIR_NAME))) {
		if ((p == path || p[-1] == '/') && (!p[len] || p[len] == '/'))
			return true;
		p += len;
	}
	return false;
}

/*
 * Append @path to the absolute @out of @len bytes, without ".", ".." and double slashes; a slash at
 * the end stays, because it means "must be a directory". Returns the new length or -ENAMETOOLONG.
 */
static ssize_t join(char *out, size_t len, const char *path)
{
	bool slash = false;

	if (len == 1 && out[0] == '/')
		len = 0;
	while (*path) {
		const char *name = path;
		size_t n;

		while (*path && *path != '/')
			path++;
		n = (size_t)(path - name);
		slash = *path == '/';
		while (*path == '/')
			path++;
		if (!n || (n == 1 && name[0] == '.'))
			continue;
		if (n == 2 && name[0] == '.' && name[1] == '.') {
			while (len && out[--len] != '/')
				;
			continue;
		}
		if (len + 1 + n + 2 > PATH_MAX)
			return -ENAMETOOLONG;
		out[len++] = '/';
		memcpy(out + len, name, n);
		len += n;
	}
	if (!len || slash)
		out[len++] = '/';
	out[len] = '\0';
	return (ssize_t)len;
}

ssize_t path_read_fd(int fd, char *out)
{
	int saved ERRNO_KEPT = errno;
	char link[32];
	ssize_t len;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	len = sys.readlink(link, out, PATH_MAX - 1);
	if (len < 0)
		return -errno;
	out[len] = '\0';
	return len;
}

/* The canonical real path of @dirfd or of the working directory. Returns its length, or -errno; errno stays.
 */
static ssize_t real_dir(int dirfd, char *out)
{
	int saved ERRNO_KEPT = errno;
	ssize_t len;

	if (dirfd == AT_FDCWD)
		len = sys.getcwd(out, PATH_MAX) ? (ssize_t)strlen(out) : -errno;
	else
		len = path_read_fd(dirfd, out);
	if (len >= 0 && out[0] != '/') /* a socket, or a directory that cannot be reached */
		return -ENOTDIR;
	return len;
}

size_t path_show(const char *path, size_t len, char *out)
{
	char real[PATH_MAX];

	if (!len || path[0] != '/' || len >= sizeof(real))
		return 0;
	memcpy(real, path, len);
	real[len] = '\0';
	if (plfs_path_unmap(real, out) != 1 || !strcmp(real, out))
		return 0;
	return strlen(out);
}

/*
 * A relative path that may cross a border: @start, the real path of @len bytes that it is looked up from, and
 * the path are joined as programs see them, and that is looked up. Not below a mount, the path keeps its
 * spelling, unless it left a virtual prefix: there the kernel's ".." is another one.
 */
static int find_joined(struct where *w, const char *start, size_t len)
{
	char full[PATH_MAX];
	size_t shown = path_show(start, len, full);
	ssize_t full_len;
	int r;

	if (!shown)
		memcpy(full, start, len + 1);
	full_len = join(full, shown ? shown : len, w->path);
	if (full_len < 0)
		return (int)full_len;
	r = plfs_path_map(full, w->buf, &w->m);
	if (r < 0)
		return r;
	if (r == 0) {
		w->m = NULL;
		if (!shown)
			return 0;
		memcpy(w->buf, full, (size_t)full_len + 1);
	}
	w->dirfd = AT_FDCWD;
	w->path = w->buf;
	return 0;
}

static int find_fresh(struct where *w)
{
	char real[PATH_MAX];
	ssize_t len = real_dir(w->dirfd, real);

	return len < 0 ? 0 : find_joined(w, real, (size_t)len); /* no way to know: the kernel answers */
}

/* The same from a remembered @start: what does not seem to be ours is not; what does is looked up again. */
static int find_remembered(struct where *w, const char *start, size_t len)
{
	const char *path = w->path;
	int dirfd = w->dirfd;
	int r = find_joined(w, start, len);

	if (!r && w->path == path)
		return 0;
	w->dirfd = dirfd;
	w->path = path;
	w->m = NULL;
	return find_fresh(w);
}

/* A copy of cwd_path into @out; 0 if it keeps changing. */
static size_t remembered_cwd(char *out)
{
	unsigned seq, tries;
	size_t len;

	for (tries = 0; tries < 100;
	     tries++) { /* a signal handler may have interrupted the one who changes it */
		seq = __atomic_load_n(&cwd_seq, __ATOMIC_ACQUIRE);
		len = cwd_len;
		memcpy(out, cwd_path, len + 1);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (!(seq & 1) && seq == __atomic_load_n(&cwd_seq, __ATOMIC_RELAXED))
			return len;
	}
	return 0;
}

/*
 * Whether the relative @path, of which scan_path() says @scan, goes above the directory that it starts from.
 */
static bool leaves(const char *path, unsigned scan) { return unlikely(scan & SCAN_UP) && climbs(path); }

/* Whether, looked up inside a backend, it stays there and may be seen. */
static bool stays_inside(const char *path, unsigned scan)
{
	return !leaves(path, scan) && !(unlikely(scan & SCAN_HIDDEN) && names_hidden(path));
}

static int find_from_cwd(struct where *w, unsigned scan)
{
	int class = __atomic_load_n(&path_cwd_class, __ATOMIC_RELAXED);
	char start[PATH_MAX];
	size_t len;

	if (class == INSIDE && stays_inside(w->path, scan))
		w->m = __atomic_load_n(&cwd_mount, __ATOMIC_RELAXED);
	else if (class == INSIDE)
		return find_fresh(w);
	else if (class == ABOVE || leaves(w->path, scan))
		return (len = remembered_cwd(start)) ? find_remembered(w, start, len) : find_fresh(w);
	return 0;
}

/* A directory descriptor that is not in the table yet: find out what it is, and remember. */
static int find_from_unknown(struct where *w, unsigned scan)
{
	struct plfs_mount *m = NULL;
	struct ofile *dir;
	char real[PATH_MAX];
	ssize_t len = real_dir(w->dirfd, real);
	int class;

	if (len < 0)
		return 0;
	class = plfs_cwd_class(real, &m);
	if (class == OUTSIDE) {
		fd_set_far(w->dirfd);
		return leaves(w->path, scan) ? find_joined(w, real, (size_t)len) : 0;
	}
	dir = ofile_new_dir(class == INSIDE ? m : NULL, real);
	if (dir)
		fd_install(w->dirfd, dir);
	if (class == INSIDE && stays_inside(w->path, scan)) {
		w->m = m;
		return 0;
	}
	return find_joined(w, real, (size_t)len);
}

/* A relative path from a directory descriptor. */
static int find_from_dir(struct where *w, unsigned scan)
{
	struct ofile *dir = fd_get_any(&w->dirfd);
	int r = 0;

	if (!dir)
		return fd_is_far(w->dirfd) && !leaves(w->path, scan) ? 0 : find_from_unknown(w, scan);
	if (dir->m && stays_inside(w->path, scan))
		w->m = dir->m;
	else if (dir->m)
		r = find_fresh(w);
	else if (dir->kind == OFILE_DIR)
		r = find_remembered(w, dir->path, strlen(dir->path));
	fd_put(dir);
	return r;
}

/*
 * /dev/stdin, /dev/fd/N, /proc/self/fd/N and the like: the kernel goes straight to the file, so the path
 * stays; but if the file is below a backend its mount must be known, or an open would get the stub's bytes.
 */
static bool is_fd_link(const char *path)
{
	if (path[1] == 'd')
		return !strncmp(path, "/dev/fd/", 8) || !strncmp(path, "/dev/std", 8);
	return path[1] == 'p' && !strncmp(path, "/proc/", 6) && strstr(path + 6, "/fd/");
}

/* The number that @text begins with, up to its end or a slash; -1: it is none. */
static int number_of(const char *text)
{
	int nr = 0;

	if (*text < '0' || *text > '9')
		return -1;
	for (; *text >= '0' && *text <= '9' && nr < INT_MAX / 10; text++)
		nr = nr * 10 + (*text - '0');
	return *text && *text != '/' ? -1 : nr;
}

/* Whether @path begins as the kernel's directory of this process does. */
static bool is_of_this_process(const char *path)
{
	return !strncmp(path, "/dev/fd/", 8) || !strncmp(path, "/proc/self/", 11) ||
	       !strncmp(path, "/proc/thread-self/", 18) ||
	       (!strncmp(path, "/proc/", 6) && number_of(path + 6) == sys.getpid());
}

bool path_lists_hidden(int dirfd, const char *name)
{
	char dir[PATH_MAX], *last;
	int fd = number_of(name);

	if (fd < 0 || !fd_is_hidden(fd) || path_read_fd(dirfd, dir) < 0 || !is_of_this_process(dir))
		return false;
	last = strrchr(dir, '/');
	return !strcmp(last, "/fd") || !strcmp(last, "/fdinfo");
}

/* 0; -ENOENT: of a descriptor of the library's own, which programs do not see. */
static int find_fd_link(struct where *w, const char *path)
{
	static const char *const names[] = {"/dev/stdin", "/dev/stdout", "/dev/stderr"};
	char link[PATH_MAX], target[PATH_MAX];
	const char *from = path, *name = strstr(path, "/fd/");
	int saved = errno;
	ssize_t len;
	unsigned i;

	if (name && fd_is_hidden(number_of(name + 4)) && is_of_this_process(path))
		return -ENOENT;
	for (i = 0; i < ARRAY_SIZE(names); i++) {
		if (strcmp(path, names[i]))
			continue;
		snprintf(link, sizeof(link), "/proc/self/fd/%u", i);
		from = link;
	}
	len = sys.readlink(from, target, sizeof(target) - 1);
	errno = saved;
	if (len <= 0 || target[0] != '/')
		return 0;
	target[len] = '\0';
	if (plfs_path_map(target, w->buf, &w->m) != 1)
		w->m = NULL;
	return 0;
}

/*
 * An absolute path that plfs_path_map() did not take may still have gone through a virtual prefix and out
 * again: then the kernel, which knows no such directory, needs it spelled without the detour.
 */
static int find_detour(struct where *w, const char *path)
{
	const char *up = path;
	struct plfs_mount *m;
	char head[PATH_MAX];
	ssize_t len;

	while ((up = strstr(up, "/.."))) {
		if ((up[3] == '/' || !up[3]) && up > path && up - path < PATH_MAX) {
			memcpy(head, path, (size_t)(up - path));
			head[up - path] = '\0';
			if (plfs_path_map(head, w->buf, &m) == 1)
				break;
		}
		up += 3;
	}
	if (!up)
		return 0;
	len = join(w->buf, 0, path);
	if (len < 0)
		return (int)len;
	w->path = w->buf;
	return 0;
}

static int find_absolute(struct where *w, const char *path)
{
	char tidy[PATH_MAX];
	int r;

	if (unlikely(names_hidden(path) && strstr(path, "/.."))) { /* "dir/../.plfs" is hidden as well */
		r = (int)join(tidy, 0, path);
		r = r < 0 ? r : plfs_path_map(tidy, w->buf, &w->m);
		if (r < 0)
			return r;
	}
	r = plfs_path_map(path, w->buf, &w->m);
	if (r == 1) {
		w->dirfd = AT_FDCWD;
		w->path = w->buf;
		return 0;
	}
	w->m = NULL;
	if (r < 0)
		return r;
	if (unlikely(is_fd_link(path)))
		return find_fd_link(w, path);
	if (unlikely(strstr(path, "/..")))
		return find_detour(w, path);
	return 0;
}

int path_find_mapped(struct where *w)
{
	unsigned scan;
	size_t len;

	if (w->path && !user_has_byte(w->path))
		return -EFAULT;
	if (!w->path || !*w->path) {
		w->dirfd = fd_seen(w->dirfd); /* AT_EMPTY_PATH */
		return 0;
	}
	scan = scan_path(w->path, &len);
	if (unlikely(len >= PATH_MAX))
		return -ENAMETOOLONG;
	if (*w->path != '/')
		return w->dirfd == AT_FDCWD ? find_from_cwd(w, scan) : find_from_dir(w, scan);
	if ((scan & SCAN_UNTIDY) || plfs_path_near(w->path, len))
		return find_absolute(w, w->path);
	return is_fd_link(w->path) ? find_fd_link(w, w->path) : 0;
}

static bool root_changed;

void path_root_changed(void) { root_changed = true; }

/* Whether a path that begins like this, below a backend, leads to the container directory. */
static bool begins_hidden(const char *path)
{
	const size_t len = sizeof(PLFS_DIR_NAME) - 1;

	return *path == '.' && !strncmp(path, PLFS_DIR_NAME, len) && (!path[len] || path[len] == '/');
}

int path_find_at(struct where *w, int dirfd, const char *path)
{
	size_t len = shim_on() && !root_changed && path && user_has_byte(path) && *path == '/' ?
			     scan_tidy(path) :
			     0;

	for (int i = 0; i < plfs_nr_roots && len && len < PATH_MAX; i++) {
		const struct plfs_root *r = &plfs_roots[i];

		if (path[1] != r->letter || len < r->len || memcmp(path, r->path, r->len) ||
		    (path[r->len] && path[r->len] != '/'))
			continue;
		if (len < r->len + 2) /* the mount itself */
			break;
		if (begins_hidden(path + r->len + 1))
			return -ENOENT;
		w->dirfd = r->dirfd;
		w->path = path + r->len + 1;
		w->m = r->m;
		return 0;
	}
	return path_find(w, dirfd, path);
}

off_t path_shown_link_len(const struct where *w, off_t len)
{
	char text[PATH_MAX], shown[PATH_MAX];
	int saved = errno;
	ssize_t n = sys.readlinkat(w->dirfd, w->path, text, sizeof(text));
	size_t changed = n > 0 ? path_show(text, (size_t)n, shown) : 0;

	errno = saved;
	return changed ? (off_t)changed : len;
}

void path_cwd_changed(void)
{
	struct plfs_mount *m = NULL;
	char real[PATH_MAX] = "";
	int class = OUTSIDE;
	ssize_t len;

	mutex_lock(&cwd_lock);
	len = real_dir(AT_FDCWD, real);
	if (len >= 0)
		class = plfs_cwd_class(real, &m);
	__atomic_store_n(&cwd_seq, cwd_seq + 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	cwd_len = len < 0 ? 0 : (size_t)len;
	memcpy(cwd_path, real, cwd_len + 1);
	__atomic_store_n(&cwd_seq, cwd_seq + 1, __ATOMIC_RELEASE);
	__atomic_store_n(&cwd_mount, class == INSIDE ? m : NULL, __ATOMIC_RELAXED);
	__atomic_store_n(&path_cwd_class, class, __ATOMIC_RELAXED);
	mutex_unlock(&cwd_lock);
}

/* Another thread of the parent may have been at it, or between its chdir() and this. */
void path_fork_child(void)
{
	pthread_mutex_init(&cwd_lock, NULL);
	cwd_seq = 0;
	path_cwd_changed();
}

bool path_cwd_inside(void) { return __atomic_load_n(&path_cwd_class, __ATOMIC_RELAXED) == INSIDE; }

struct plfs_mount *path_mount_of_dir(int dirfd)
{
	struct plfs_mount *m = NULL;
	char real[PATH_MAX];

	if (real_dir(dirfd, real) < 0 || plfs_cwd_class(real, &m) != INSIDE)
		return NULL;
	return m;
}

/* A thread that is cancelled while it waits for the other end of a fifo owns nothing of ours. */
int path_openat2_cancellable(int dirfd, const char *path, const struct open_how *how)
{
	int r, type;

	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
	r = raw_openat2(dirfd, path, how);
	pthread_setcanceltype(type, NULL);
	return r;
}
