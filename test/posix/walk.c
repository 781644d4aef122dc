/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls that walk names inside the C library: ftw, nftw, fts, glob, wordexp, the makers of temporary names,
 * and others that take a path and only look at it. Lines whose order is the directory's are sorted before
 * they are said.
 */
#include "posix.h"
#include <fts.h>
#include <ftw.h>
#include <limits.h>
#include <stdarg.h>

/* ---- lines ---- */

static char *lines[4096];
static int nr_lines;

static void note(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	if (nr_lines == 4096 || vasprintf(&lines[nr_lines++], format, ap) < 0)
		abort();
	va_end(ap);
}

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static void say_sorted(const char *title)
{
	qsort(lines, nr_lines, sizeof lines[0], by_text);
	say("== %s\n", title);
	for (int i = 0; i < nr_lines; i++) {
		say("%s\n", lines[i]);
		free(lines[i]);
	}
	nr_lines = 0;
}

/* @path as seen from the directory of the case, which has a longer name in some variants than in others. */
static const char *rel(const char *path)
{
	const char *p = getenv("P");
	size_t len = strlen(p);

	if (strncmp(path, p, len))
		return path;
	return path[len] == '/' ? path + len + 1 : path[len] ? path : ".";
}

static const char *cwd(void)
{
	static char buf[PATH_MAX];

	return getcwd(buf, sizeof buf) ? rel(buf) : strerrorname_np(errno);
}

/* Whether the walk came back to where it began. */
static void say_home(bool begin)
{
	static char home[PATH_MAX];

	if (begin)
		getcwd(home, sizeof home);
	else
		say("back: %d\n", !strcmp(get_current_dir_name(), home));
}

/* T() for what may leave any errno behind on success. */
#define N(call) \
	({ \
		long n_ret = (long)(call); \
		say_result(#call, n_ret, n_ret < 0 ? errno : 0); \
		n_ret; \
	})

/* In the directory of the case: t/{a,b,c/d/{e,f},c/g -> d,link -> a,none -> nowhere,empty/} */
static void tree(void)
{
	chdir(getenv("P"));
	mkdir(at("t"), 0755);
	mkdir(at("t/c"), 0755);
	mkdir(at("t/c/d"), 0755);
	mkdir(at("t/empty"), 0755);
	make("t/a", "hello");
	make("t/b", "");
	make("t/c/d/e", "some more");
	make("t/c/d/f", "f");
	symlink("d", at("t/c/g"));
	symlink("a", at("t/link"));
	symlink("nowhere", at("t/none"));
}

/* ---- ftw and nftw ---- */

static int walk_flags;

static void note_visit(const char *path, const struct stat *st, int flag, const struct FTW *f)
{
	long size = flag == FTW_NS || S_ISDIR(st->st_mode) ? 0 : (long)st->st_size;

	note("%s %d level %d base %s %o %ld links %d%s%s", rel(path), flag, f ? f->level : 0,
	     f ? path + f->base : "", flag == FTW_NS ? 0 : st->st_mode, size,
	     flag == FTW_NS ? 0 : (int)st->st_nlink, walk_flags & FTW_CHDIR ? " in " : "",
	     walk_flags & FTW_CHDIR ? cwd() : "");
}

static int visit(const char *path, const struct stat *st, int flag, struct FTW *f)
{
	note_visit(path, st, flag, f);
	return 0;
}

static int visit_old(const char *path, const struct stat *st, int flag)
{
	note_visit(path, st, flag, NULL);
	return 0;
}

static int visit64(const char *path, const struct stat64 *st, int flag, struct FTW *f)
{
	return visit(path, (const struct stat *)st, flag, f);
}

static void walk(const char *name, int nr_fds, int flags)
{
	walk_flags = flags;
	say("nftw %s, %d descriptors, flags %d\n", name, nr_fds, flags);
	say_home(true);
	N(nftw(at(name), visit, nr_fds, flags));
	say_sorted("visited");
	say_home(false);
	walk_flags = 0;
}

CASE(nftw_with_all_flags)
{
	tree();
	for (int flags = 0; flags < 16; flags++)
		walk("t", 20, flags);
}

CASE(nftw_with_few_descriptors)
{
	tree();
	walk("t", 1, FTW_PHYS);
	walk("t", 2, FTW_PHYS | FTW_DEPTH);
	walk("t", 0, FTW_PHYS | FTW_CHDIR);
	walk("t", -1, FTW_CHDIR);
}

CASE(nftw_of_other_things)
{
	tree();
	walk("t/a", 5, FTW_PHYS);
	walk("t/a", 5, FTW_CHDIR);
	walk("t/link", 5, 0);
	walk("t/link", 5, FTW_PHYS);
	walk("t/none", 5, 0);
	walk("t/none", 5, FTW_PHYS);
	walk("t/c/", 5, 0);
	walk("t//c///", 5, FTW_CHDIR);
	walk("t/./c/../c", 5, FTW_PHYS);
	walk("missing", 5, 0);
	walk("missing", 5, FTW_PHYS | FTW_CHDIR);
	walk("t/a/x", 5, 0);
	walk(".plfs", 5, 0);
	N(nftw("", visit, 5, 0));
	T(chmod(at("t/c/d"), 0));
	walk("t", 5, FTW_PHYS);
	T(chmod(at("t/c/d"), 0755));
}

CASE(nftw_64_and_ftw)
{
	tree();
	N(nftw64(at("t"), visit64, 5, FTW_PHYS));
	say_sorted("nftw64");
	N(ftw(at("t"), visit_old, 5));
	say_sorted("ftw");
	N(ftw64(at("t/c"), (int (*)(const char *, const struct stat64 *, int))visit_old, 1));
	say_sorted("ftw64");
	N(ftw(at("missing"), visit_old, 5));
	N(ftw(at("t/none"), visit_old, 5));
	say_sorted("ftw of a dangling link");
}

/* The directory of the case is all that there is above, but for what programs do not see. */
CASE(nftw_from_the_top)
{
	tree();
	walk("..", 20, FTW_PHYS);
	walk("..", 20, FTW_PHYS | FTW_DEPTH);
	walk("../", 2, FTW_CHDIR | FTW_DEPTH);
	walk("../.", 2, FTW_CHDIR);
}

static const char *stop_at;
static int stop_with;

static int visit_until(const char *path, const struct stat *st, int flag, struct FTW *f)
{
	note_visit(path, st, flag, f);
	errno = ESTALE;
	return strcmp(path + f->base, stop_at) ? 0 : stop_with;
}

CASE(nftw_stopped)
{
	static const int values[] = {1, 2, 3, 7, -1, FTW_STOP, FTW_SKIP_SUBTREE, FTW_SKIP_SIBLINGS};

	tree();
	say_home(true);
	for (unsigned i = 0; i < sizeof values / sizeof values[0]; i++) {
		stop_with = values[i];
		stop_at = "t";
		say("stopping with %d\n", stop_with);
		V(nftw(at("t"), visit_until, 5, FTW_PHYS));
		say_sorted("at the start");
		V(nftw(at("t"), visit_until, 5, FTW_PHYS | FTW_ACTIONRETVAL));
		say_sorted("at the start, as an action");
		stop_at = "e";
		V(nftw(at("t/c/d/e"), visit_until, 5, FTW_PHYS | FTW_ACTIONRETVAL));
		say_sorted("at a file alone");
		stop_at = "c";
		V(nftw(at("t/c"), visit_until, 5, FTW_PHYS | FTW_DEPTH | FTW_CHDIR));
		say_sorted("at the end");
		stop_at = "d";
		V(nftw(at("t/c"), visit_until, 5, FTW_PHYS | FTW_ACTIONRETVAL) == stop_with);
		nr_lines = 0;
		say_home(false);
	}
	stop_at = "c";
	stop_with = FTW_SKIP_SUBTREE;
	V(nftw(at("t"), visit_until, 5, FTW_PHYS | FTW_ACTIONRETVAL | FTW_CHDIR));
	say_sorted("without c");
	T(errno);
}

static int remove_it(const char *path, const struct stat *st, int flag, struct FTW *f)
{
	(void)st, (void)flag, (void)f;
	return remove(path);
}

CASE(nftw_removes_a_tree)
{
	tree();
	N(nftw(at("t"), remove_it, 3, FTW_PHYS | FTW_DEPTH));
	T(access(at("t"), F_OK));
}

static int visit_within(const char *path, const struct stat *st, int flag, struct FTW *f)
{
	note("outer %s", rel(path));
	return flag == FTW_D && f->level == 1 ? nftw(path, visit, 3, FTW_PHYS) : (void)st, 0;
}

CASE(nftw_within_nftw)
{
	tree();
	N(nftw(at("t"), visit_within, 3, FTW_PHYS));
	say_sorted("both");
}

CASE(nftw_in_the_directory)
{
	tree();
	T(chdir(at("t")));
	say_home(true);
	N(nftw(".", visit, 5, FTW_PHYS));
	say_sorted("here");
	walk_flags = FTW_CHDIR;
	N(nftw("c", visit, 5, FTW_CHDIR));
	N(nftw("./c/..", visit, 5, FTW_CHDIR));
	say_sorted("changing");
	say_home(false);
}

static int visit_and_write(const char *path, const struct stat *st, int flag, struct FTW *f)
{
	int fd = flag == FTW_F ? open(path + f->base, O_WRONLY | O_APPEND) : -1;

	(void)st;
	if (fd >= 0) {
		write(fd, "+", 1);
		close(fd);
	}
	return 0;
}

/* Relative names while the walk itself changes the directory. */
CASE(nftw_callback_uses_relative_names)
{
	tree();
	N(nftw(at("t"), visit_and_write, 3, FTW_PHYS | FTW_CHDIR));
	show("t/a");
	show("t/b");
	show("t/c/d/e");
	T(access("t", F_OK));
}

/* ---- fts ---- */

static int by_name(const FTSENT **a, const FTSENT **b) { return strcmp((*a)->fts_name, (*b)->fts_name); }

/* Largest first: needs sizes as the program sees them. */
static int by_size(const FTSENT **a, const FTSENT **b)
{
	long x = (*a)->fts_statp->st_size, y = (*b)->fts_statp->st_size;

	if (S_ISREG((*a)->fts_statp->st_mode) != S_ISREG((*b)->fts_statp->st_mode))
		return S_ISREG((*a)->fts_statp->st_mode) ? -1 : 1;
	return !S_ISREG((*a)->fts_statp->st_mode) || x == y ? by_name(a, b) : x > y ? -1 : 1;
}

static void note_entry(FTSENT *e, int options)
{
	bool stat_is_there = !(options & FTS_NOSTAT) && e->fts_info != FTS_NS && e->fts_info != FTS_NSOK;

	note("%03d %d %s name %s%s path %d level %d errno %d parent %s %s", nr_lines, e->fts_info,
	     rel(e->fts_path), e->fts_name, strlen(e->fts_name) == e->fts_namelen ? "" : "(length)",
	     strlen(e->fts_path) == e->fts_pathlen, e->fts_level, e->fts_errno, rel(e->fts_parent->fts_name),
	     options & FTS_NOCHDIR ? rel(e->fts_accpath) : cwd());
	if (access(e->fts_accpath, F_OK) && e->fts_info != FTS_SLNONE && e->fts_info != FTS_SL &&
	    e->fts_info != FTS_NS && e->fts_info != FTS_NSOK)
		note("%03d no access to %s: %d", nr_lines, e->fts_accpath, errno);
	if (stat_is_there)
		note("%03d %o %ld links %d", nr_lines, e->fts_statp->st_mode,
		     S_ISREG(e->fts_statp->st_mode) || S_ISLNK(e->fts_statp->st_mode) ?
			     (long)e->fts_statp->st_size :
			     0,
		     (int)e->fts_statp->st_nlink);
	if (e->fts_info == FTS_D)
		note("%03d links %d", nr_lines, (int)e->fts_nlink);
	if (e->fts_cycle && e->fts_info == FTS_DC)
		note("%03d cycle to %s", nr_lines, e->fts_cycle->fts_name);
}

static void walk_fts(char *const *roots, int options, int (*compar)(const FTSENT **, const FTSENT **))
{
	FTSENT *e;
	FTS *fts;

	say_home(true);
	fts = fts_open(roots, options, compar);
	if (!fts) {
		say("fts_open: %s\n", strerrorname_np(errno));
		return;
	}
	for (errno = 0; (e = fts_read(fts)); errno = 0) {
		if (e->fts_info == FTS_D)
			e->fts_number = 42 + e->fts_level;
		if (e->fts_info == FTS_DP && e->fts_number != 42 + e->fts_level)
			note("%03d lost number of %s", nr_lines, e->fts_name);
		if (e->fts_info == FTS_F && e->fts_parent->fts_level >= 0 &&
		    e->fts_parent->fts_number != 42 + e->fts_parent->fts_level)
			note("%03d lost number of the parent of %s", nr_lines, e->fts_name);
		note_entry(e, options);
	}
	say("end with %d\n", errno);
	T(fts_close(fts));
	say_home(false);
}

CASE(fts_with_all_options)
{
	static const int options[] = { FTS_PHYSICAL,
				       FTS_LOGICAL,
				       FTS_PHYSICAL | FTS_NOCHDIR,
				       FTS_PHYSICAL | FTS_COMFOLLOW,
				       FTS_PHYSICAL | FTS_NOSTAT,
				       FTS_PHYSICAL | FTS_NOSTAT | FTS_NOCHDIR,
				       FTS_PHYSICAL | FTS_SEEDOT,
				       FTS_PHYSICAL | FTS_SEEDOT | FTS_NOCHDIR | FTS_XDEV,
				       FTS_LOGICAL | FTS_SEEDOT | FTS_NOSTAT };
	char root[PATH_MAX], *roots[2] = {root, NULL};

	tree();
	symlink("..", at("t/c/up"));
	snprintf(root, sizeof root, "%s", at("t"));
	for (unsigned i = 0; i < sizeof options / sizeof options[0]; i++) {
		say("options %x\n", options[i]);
		walk_fts(roots, options[i], by_name);
		say_sorted("read");
	}
	walk_fts(roots, FTS_PHYSICAL, by_size);
	say_sorted("by size");
}

CASE(fts_from_several_roots)
{
	char root[6][PATH_MAX], *roots[7] = {0};
	static const char *const names[] = {"t/none", "t/c/", "missing", "t/a", "t/c/g", "t/c/.//d"};

	tree();
	for (int i = 0; i < 6; i++)
		snprintf(roots[i] = root[i], PATH_MAX, "%s", at(names[i]));
	walk_fts(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	say_sorted("physical"); /* one entry in most of the directories: no order to lose */
	walk_fts(roots, FTS_LOGICAL, by_name);
	say_sorted("logical");
	walk_fts(roots, FTS_PHYSICAL | FTS_COMFOLLOW, by_size);
	say_sorted("links given are followed");
	T(fts_open(roots, 0, NULL) != NULL);
	T(fts_open(roots, 0x4000, NULL) != NULL);
	roots[1] = "";
	walk_fts(roots, FTS_PHYSICAL, NULL);
	nr_lines = 0;
}

/* What fts_open() was given is the program's to use again. */
CASE(fts_of_names_that_are_overwritten)
{
	char root[PATH_MAX], *roots[2] = {root, NULL};
	FTSENT *e;
	FTS *fts;

	tree();
	snprintf(root, sizeof root, "%s", at("t"));
	fts = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, by_name);
	memset(root, 'x', sizeof root - 1);
	roots[0] = NULL;
	while ((e = fts_read(fts)))
		say("%s %s %d\n", rel(e->fts_path), e->fts_name,
		    (int)e->fts_pathlen - (int)strlen(e->fts_path));
	T(fts_close(fts));
}

CASE(fts_from_the_top)
{
	char root[PATH_MAX], *roots[2] = {root, NULL};

	tree();
	snprintf(root, sizeof root, "%s", at(".."));
	walk_fts(roots, FTS_PHYSICAL, by_name);
	say_sorted("with chdir");
	walk_fts(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_NOSTAT, by_name);
	say_sorted("without");
	snprintf(root, sizeof root, "%s", at("../"));
	walk_fts(roots, FTS_LOGICAL, by_name);
	say_sorted("logical");
}

static void children(FTS *fts, int instr)
{
	FTSENT *e;

	errno = 0;
	e = fts_children(fts, instr);
	note("%03d children%s, errno %d", nr_lines, e ? "" : ": none", errno);
	for (; e; e = e->fts_link)
		note("%03d child %s %d level %d %s", nr_lines, rel(e->fts_name),
		     (int)e->fts_namelen == (int)strlen(e->fts_name), e->fts_level,
		     instr		  ? "" :
		     e->fts_info == FTS_F ? "file" :
					    "other");
}

CASE(fts_children_and_set)
{
	char root[PATH_MAX], *roots[3] = {root, root, NULL};
	FTSENT *e;
	FTS *fts;
	int again = 0;

	tree();
	snprintf(root, sizeof root, "%s", at(".."));
	for (int options = 0; options <= FTS_NOCHDIR; options += FTS_NOCHDIR) {
		fts = fts_open(roots, FTS_PHYSICAL | options, by_name);
		V(fts != NULL);
		children(fts, 0);
		while ((e = fts_read(fts))) {
			note_entry(e, FTS_PHYSICAL | options);
			if (e->fts_info == FTS_D)
				children(fts, e->fts_level & 1 ? FTS_NAMEONLY : 0);
			if (!strcmp(e->fts_name, "d") && e->fts_info == FTS_D)
				T(fts_set(fts, e, FTS_SKIP));
			if (!strcmp(e->fts_name, "a") && again++ < 2)
				T(fts_set(fts, e, FTS_AGAIN));
			if ((!strcmp(e->fts_name, "g") || !strcmp(e->fts_name, "none")) &&
			    e->fts_info == FTS_SL)
				T(fts_set(fts, e, FTS_FOLLOW));
		}
		T(fts_set(fts, (FTSENT *)roots, 99));
		T(fts_close(fts));
		say_sorted("read");
	}
	say_home(true);
	fts = fts_open(roots, FTS_PHYSICAL, NULL);
	e = fts_read(fts);
	T(fts_close(fts));
	say_home(false);
}

CASE(fts_64)
{
	char root[PATH_MAX], *roots[2] = {root, NULL};
	FTSENT64 *e;
	FTS64 *fts;

	tree();
	snprintf(root, sizeof root, "%s", at("t"));
	fts = fts64_open(roots, FTS_PHYSICAL, NULL);
	V(fts != NULL);
	while ((e = fts64_read(fts))) {
		note("%s %ld", rel(e->fts_path),
		     S_ISREG(e->fts_statp->st_mode) ? (long)e->fts_statp->st_size : 0);
		if (e->fts_info == FTS_D && !strcmp(e->fts_name, "c")) {
			note("%d", fts64_children(fts, 0) != NULL);
			note("%d", fts64_set(fts, e, FTS_SKIP));
		}
	}
	T(fts64_close(fts));
	say_sorted("read");
}

CASE(two_fts_at_once)
{
	char root[PATH_MAX], *roots[2] = {root, NULL};
	FTSENT *a, *b;
	FTS *one, *two;

	tree();
	snprintf(root, sizeof root, "%s", at("t"));
	one = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, by_name);
	two = fts_open(roots, FTS_LOGICAL, by_size);
	do {
		a = fts_read(one);
		b = fts_read(two);
		say("%s %s\n", a ? rel(a->fts_path) : "-", b ? rel(b->fts_path) : "-");
	} while (a || b);
	T(fts_close(one));
	T(fts_close(two));
}

/*
 * A program of its own for walk.sh: what lies below a directory of the shell's choice, by each of the
 * walkers.
 */
CASE(everything_below)
{
	char root[PATH_MAX], *roots[2] = {root, NULL};
	const char *dir = getenv("BELOW");

	if (!dir)
		return;
	snprintf(root, sizeof root, "%s", dir);
	setenv("P", dir, 1);
	for (int flags = 0; flags < 16; flags++) {
		walk_flags = flags;
		N(nftw(root, visit, 5, flags));
		say_sorted("nftw");
	}
	walk_fts(roots, FTS_PHYSICAL, by_name);
	say_sorted("fts");
	walk_fts(roots, FTS_LOGICAL, by_name);
	say_sorted("fts logical");
}
