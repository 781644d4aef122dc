/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ftw and nftw. The C library's own open what they walk where we cannot see it, and give no way to leave a
 * directory out before they are through with it (FTW_DEPTH); so a walk that may meet a mount is walked here,
 * on our own calls. It does what glibc's does, down to the order of reports and the directory that each finds
 * itself in.
 */
#include "path.h"
#include "through.h"

#include <ftw.h>
#include <search.h>
#include <stdlib.h>

struct walk {
	__nftw_func_t nftw_fn; /* one of the two */
	__ftw_func_t ftw_fn;
	int flags;
	int nr_fds; /* directories that may stay open */
	char *path; /* the object's; grows */
	size_t room;
	struct FTW at;
	dev_t dev;  /* of the start */
	void *seen; /* directories, when links are followed: see first_visit() */
};

/* The names of one directory, each with its 0, and one more at the end. */
struct names {
	char *text;
	size_t len;
	size_t room;
};

/* ---- the callback ---- */

/* What ftw() calls the types that only nftw() knows. */
static int ftw_type(int type)
{
	return type == FTW_SL ? FTW_F : type == FTW_DP ? FTW_D : type == FTW_SLN ? FTW_NS : type;
}

static int report(struct walk *w, const struct stat *st, int type)
{
	return w->ftw_fn ? w->ftw_fn(w->path, st, ftw_type(type)) : w->nftw_fn(w->path, st, type, &w->at);
}

/* ---- directories seen: a walk that follows links enters each only once ---- */

struct place {
	dev_t dev;
	ino_t ino;
};

static int compare_places(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->dev != y->dev)
		return x->dev < y->dev ? -1 : 1;
	return x->ino < y->ino ? -1 : x->ino > y->ino;
}

/* 1, or 0: has been here before, or -1 and errno. */
static int first_visit(struct walk *w, const struct stat *st)
{
	struct place *p = malloc(sizeof(*p)), **found;

	if (!p)
		return -1;
	*p = (struct place){st->st_dev, st->st_ino};
	found = tsearch(p, &w->seen, compare_places);
	if (found && *found == p)
		return 1;
	free(p);
	return found ? 0 : -1;
}

/* ---- names ---- */

/* Have room for @len bytes behind the first @used of *@text. 0, or -1 and errno. */
static int have_room(char **text, size_t *room, size_t used, size_t len)
{
	size_t want = max_u64(2 * *room, used + len);
	char *more;

	if (used + len <= *room)
		return 0;
	more = realloc(*text, want);
	if (!more)
		return -1;
	*text = more;
	*room = want;
	return 0;
}

static bool is_dot(const char *name) { return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2])); }

static int read_names(DIR *dir, struct names *n)
{
	struct dirent *e;
	size_t len;

	while ((e = readdir(dir))) {
		len = strlen(e->d_name) + 1;
		if (is_dot(e->d_name))
			continue;
		if (have_room(&n->text, &n->room, n->len, len + 1))
			return -1;
		memcpy(n->text + n->len, e->d_name, len);
		n->len += len;
	}
	if (n->text)
		n->text[n->len] = '\0';
	return 0; /* what cannot be read is the end, for glibc too */
}

/* ---- the walk ---- */

/* The directory at w->path, which is in the directory @parent (a descriptor, or -1). */
static DIR *open_dir(const struct walk *w, int parent)
{
	const char *name = w->flags & FTW_CHDIR || parent >= 0 ? w->path + w->at.base : w->path;
	DIR *dir;
	int fd;

	if (!*name)
		name = "."; /* the root directory has no last component */
	fd = openat(parent < 0 ? AT_FDCWD : parent, name, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	dir = sys.fdopendir(fd);
	if (!dir) {
		int saved ERRNO_KEPT = errno;

		close(fd);
	}
	return dir;
}

static void close_dir(DIR *dir)
{
	int saved ERRNO_KEPT = errno;

	if (dir)
		closedir(dir);
}

/* Out of a directory again, into @parent, for the next one beside it. */
static int change_back(const struct walk *w, int parent)
{
	if (parent >= 0 && !fchdir(parent))
		return 0;
	return chdir(w->at.base == 1 ? "/" : "..");
}

static int visit_entry(struct walk *w, int parent, const char *name);

/* All that is in the directory @dir, which w->at has been told of. @fd is its own, if it stays open. */
static int visit_names(struct walk *w, struct names *n, int fd)
{
	const char *name = n->text;
	int r = 0;

	for (; name && *name && !r; name += strlen(name) + 1)
		r = visit_entry(w, fd, name);
	return r == FTW_SKIP_SIBLINGS && (w->flags & FTW_ACTIONRETVAL) ? 0 : r;
}

/* The directory at w->path: itself, before or after what is in it. */
static int visit_dir(struct walk *w, int parent, const struct stat *st)
{
	struct names names = {0};
	int base = w->at.base, r = 0;
	DIR *dir = open_dir(w, parent);
	size_t len = strlen(w->path);

	if (!dir)
		return errno == EACCES ? report(w, st, FTW_DNR) : -1;
	if (!(w->flags & FTW_DEPTH))
		r = report(w, st, FTW_D);
	if (!r && (w->flags & FTW_CHDIR))
		r = fchdir(sys.dirfd(dir));
	if (!r)
		r = read_names(dir, &names);
	if (!r)
		r = have_room(&w->path, &w->room, len, 2);
	if (r) {
		close_dir(dir);
		free(names.text);
		return r;
	}
	if (w->path[len - 1] != '/')
		w->path[len++] = '/';
	w->path[len] = '\0';
	w->at.level++;
	w->at.base = (int)len;
	if (w->at.level >= w->nr_fds) {
		close_dir(dir);
		dir = NULL;
	}
	r = visit_names(w, &names, dir ? sys.dirfd(dir) : -1);
	close_dir(dir);
	free(names.text);
	w->path[w->at.base - 1] = '\0';
	w->at.level--;
	w->at.base = base;
	if (!r && (w->flags & FTW_DEPTH))
		r = report(w, st, FTW_DP);
	if (w->at.level && (w->flags & FTW_CHDIR) &&
	    (!r || ((w->flags & FTW_ACTIONRETVAL) && r != -1 && r != FTW_STOP)) && change_back(w, parent))
		r = -1;
	return r;
}

static int look(const struct walk *w, int parent, struct stat *st, int at_flags)
{
	const char *name = w->flags & FTW_CHDIR || parent >= 0 ? w->path + w->at.base : w->path;

	return fstatat(parent < 0 ? AT_FDCWD : parent, *name ? name : ".", st, at_flags);
}

/* What the object at w->path is, or -1: the walk ends. */
static int scan_container(const struct walk *w, int parent, struct stat *st)
{
	if (!look(w, parent, st, w->flags & FTW_PHYS ? AT_SYMLINK_NOFOLLOW : 0))
		return S_ISDIR(st->st_mode) ? FTW_D : S_ISLNK(st->st_mode) ? FTW_SL : FTW_F;
	if (errno != EACCES && errno != ENOENT)
		return -1;
	if (!(w->flags & FTW_PHYS) && !look(w, parent, st, AT_SYMLINK_NOFOLLOW) && S_ISLNK(st->st_mode))
		return FTW_SLN;
	return FTW_NS;
}

static int visit_entry(struct walk *w, int parent, const char *name)
{
	size_t len = strlen(name) + 1;
	struct stat st = {0};
	int type, r = 1;

	if (have_room(&w->path, &w->room, (size_t)w->at.base, len))
		return -1;
	memcpy(w->path + w->at.base, name, len);
	type = scan_container(w, parent, &st);
	if (type < 0)
		return -1;
	if (type != FTW_NS && (w->flags & FTW_MOUNT) && st.st_dev != w->dev)
		return 0;
	if (type != FTW_D)
		r = report(w, &st, type);
	else if ((w->flags & FTW_PHYS) || (r = first_visit(w, &st)) > 0)
		r = visit_dir(w, parent, &st);
	return r == FTW_SKIP_SUBTREE && (w->flags & FTW_ACTIONRETVAL) ? 0 : r;
}

static int visit_start(struct walk *w)
{
	struct stat st;
	int type = scan_container(w, -1, &st), r;

	if (type < 0 || type == FTW_NS || (type == FTW_SLN && errno != ENOENT))
		return -1;
	if (type != FTW_D)
		return report(w, &st, type);
	w->dev = st.st_dev;
	r = w->flags & FTW_PHYS ? 1 : first_visit(w, &st);
	return r < 0 ? r : visit_dir(w, -1, &st);
}

/* Into the directory that the start is in, so that its last component names it. */
static int change_to_start(const struct walk *w)
{
	size_t len = w->at.base > 1 ? (size_t)w->at.base - 1 : (size_t)w->at.base;
	char *dir;
	int r;

	if (!len)
		return 0;
	dir = strndup(w->path, len);
	r = dir ? chdir(dir) : -1;
	free(dir);
	return r;
}

/* Walk from where the program was, and come back there. */
static int walk_from(struct walk *w)
{
	int r, saved, home = -1;

	if (w->flags & FTW_CHDIR) {
		home = sys_fd_hide(sys.open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
		if (home < 0 || change_to_start(w)) {
			saved = errno;
			sys_fd_close(&home);
			errno = saved;
			return -1;
		}
	}
	r = visit_start(w);
	saved = errno;
	if (home >= 0) {
		critical_enter(); /* fchdir() does not take the library's own */
		if (!sys.fchdir(home))
			path_cwd_changed();
		critical_leave();
		sys_fd_close(&home);
	}
	errno = saved;
	if ((w->flags & FTW_ACTIONRETVAL) && (r == FTW_SKIP_SUBTREE || r == FTW_SKIP_SIBLINGS))
		return 0;
	return r;
}

/* Fill in the rest of @w, and walk. */
static int walk(struct walk *w, const char *path)
{
	size_t len = strlen(path);
	int r = -1, saved;

	if (!*path)
		return (int)done(-ENOENT);
	while (len > 1 && path[len - 1] == '/')
		len--;
	if (!have_room(&w->path, &w->room, 0, max_u64(2 * len, PATH_MAX))) {
		memcpy(w->path, path, len);
		w->path[len] = '\0';
		while (len > 0 && path[len - 1] != '/')
			len--;
		w->at.base = (int)len;
		r = walk_from(w);
	}
	saved = errno;
	tdestroy(w->seen, free);
	free(w->path);
	errno = saved;
	return r;
}

/* Whether the walk can meet a mount: it starts near one, or follows links to wherever they lead. */
static bool may_meet_mount(const char *path, int flags)
{
	return path && *path && shim_on() && (!(flags & FTW_PHYS) || path_is_near_mount(path));
}

EXPORT int nftw(const char *path, __nftw_func_t fn, int nr_fds, int flags)
{
	const int known = FTW_PHYS | FTW_MOUNT | FTW_CHDIR | FTW_DEPTH | FTW_ACTIONRETVAL;
	struct walk w = {.nftw_fn = fn, .flags = flags, .nr_fds = nr_fds};

	if (!may_meet_mount(path, flags) || (flags & ~known))
		return sys.nftw(path, fn, nr_fds, flags);
	return walk(&w, path);
}
ALIAS64(nftw64, nftw);

EXPORT int ftw(const char *path, __ftw_func_t fn, int nr_fds)
{
	struct walk w = {.ftw_fn = fn, .nr_fds = nr_fds};

	if (!may_meet_mount(path, 0))
		return sys.ftw(path, fn, nr_fds);
	return walk(&w, path);
}
ALIAS64(ftw64, ftw);
