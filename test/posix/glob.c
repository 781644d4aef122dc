/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Patterns and names that the C library expands or makes up by itself: glob, wordexp, mktemp, tempnam and the
 * like.
 */
#include "posix.h"
#include <execinfo.h>
#include <glob.h>
#include <limits.h>
#include <mntent.h>
#include <pty.h>
#include <sys/fanotify.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/xattr.h>
#include <utime.h>
#include <wordexp.h>

/* @path as seen from the directory of the case. */
static const char *rel(const char *path)
{
	const char *p = getenv("P");
	size_t len = strlen(p);

	return strncmp(path, p, len) || path[len] != '/' ? path : path + len + 1;
}

static void tree(void)
{
	mkdir(at("d"), 0755);
	mkdir(at("d/sub"), 0755);
	mkdir(at("e"), 0755);
	make("d/one.c", "1");
	make("d/two.c", "22");
	make("d/sub/three.c", "333");
	make("e/f*g", "star");
	make("e/.hidden", "h");
	symlink("nowhere", at("e/none"));
	symlink("../d", at("e/to_d"));
}

/* ---- glob ---- */

static int said(const char *path, int err)
{
	say("error at %s: %s\n", rel(path), strerrorname_np(err));
	return !strcmp(path + strlen(path) - 3, "one");
}

static void expand(const char *pattern, int flags)
{
	glob_t g;
	int r;

	memset(&g, 0x5a, sizeof g);
	g.gl_offs = 2;
	r = glob(at(pattern), flags, said, &g);
	say("glob %s %x = %d, flags %x, functions %s\n", pattern, flags, r, r ? 0 : g.gl_flags,
	    g.gl_opendir == (void *(*)(const char *))0x5a5a5a5a5a5a5a5a ? "kept" : "changed");
	if (r)
		return;
	for (size_t i = 0; i < g.gl_pathc; i++)
		say("  %s\n", rel(g.gl_pathv[i + (flags & GLOB_DOOFFS ? g.gl_offs : 0)]));
	globfree(&g);
}

CASE(glob_patterns)
{
	tree();
	expand("*", 0);
	expand("d/*.c", 0);
	expand("*/*", 0);
	expand("*/*/", 0);
	expand("d/sub/three.c", 0);
	expand("d/nothing", 0);
	expand("nodir/*", 0);
	expand("e/f\\*g", 0);
	expand("e/f\\*g", GLOB_NOESCAPE);
	expand("e/f\\**", 0);
	expand("[de]/[!.]*", 0);
	expand("d/t?o.c", 0);
	expand("../*/d/one*", 0);
	expand("../*/d", 0);
	expand("../.p*", 0);
	expand("../.plfs", 0);
	expand("../.plfs/*", 0);
	expand("../.*", 0);
	expand("../.p*/*", 0);
	expand(".plfs*", GLOB_NOCHECK);
	expand("e/none", 0);
	expand("e/none*", 0);
	expand("e/to_d/*.c", 0);
	expand("d/one.c/*", 0);
	expand("*/one.c/*", GLOB_ERR);
}

CASE(glob_flags)
{
	tree();
	expand("*", GLOB_MARK);
	expand("*/*", GLOB_MARK | GLOB_ONLYDIR);
	expand("d/*", GLOB_ONLYDIR);
	expand("nothing*", GLOB_NOCHECK);
	expand("nothing*", GLOB_NOMAGIC);
	expand("nothing", GLOB_NOMAGIC);
	expand("e/*", GLOB_PERIOD);
	expand("{d,e,x}/*", GLOB_BRACE);
	expand("d/{one,two}.c", GLOB_BRACE);
	expand("{d/{one,x}*,e/f*}", GLOB_BRACE | GLOB_NOSORT * 0);
	expand("d/*.c", GLOB_DOOFFS);
	expand("d/~*", GLOB_TILDE);
}

CASE(glob_of_the_home_directory)
{
	char home[PATH_MAX];
	glob_t g;

	tree();
	T(setenv("HOME", getenv("P"), 1));
	T(glob("~/d/*.c", GLOB_TILDE, NULL, &g));
	for (size_t i = 0; i < g.gl_pathc; i++)
		say("%s\n", rel(g.gl_pathv[i]));
	globfree(&g);
	snprintf(home, sizeof home, "%s/d", getenv("P"));
	setenv("HOME", home, 1);
	T(glob("{~,~/sub}/*.c", GLOB_TILDE | GLOB_BRACE, NULL, &g));
	for (size_t i = 0; i < g.gl_pathc; i++)
		say("%s\n", rel(g.gl_pathv[i]));
	globfree(&g);
	T(glob("~no-such-user/*", GLOB_TILDE_CHECK, NULL, &g));
}

CASE(glob_appends)
{
	glob_t g = {.gl_offs = 1};

	tree();
	T(glob(at("d/*.c"), GLOB_DOOFFS, NULL, &g));
	T(glob(at("e/f*"), GLOB_DOOFFS | GLOB_APPEND, NULL, &g));
	T(glob(at("none*"), GLOB_DOOFFS | GLOB_APPEND, NULL, &g));
	T(glob("/etc/passwd", GLOB_DOOFFS | GLOB_APPEND, NULL, &g));
	say("%zu %p\n", g.gl_pathc, (void *)g.gl_pathv[0]);
	for (size_t i = 0; i < g.gl_pathc; i++)
		say("%s\n", rel(g.gl_pathv[i + 1]));
	globfree(&g);
}

static int nr_opened;
static void *my_opendir(const char *path) { return nr_opened++, opendir(path); }
static struct dirent *my_readdir(void *dir) { return readdir(dir); }
static void my_closedir(void *dir) { closedir(dir); }

CASE(glob_with_own_functions)
{
	glob_t g = { .gl_opendir = my_opendir,
		     .gl_readdir = my_readdir,
		     .gl_closedir = my_closedir,
		     .gl_stat = stat,
		     .gl_lstat = lstat };

	tree();
	T(glob(at("d/*"), GLOB_ALTDIRFUNC, NULL, &g));
	for (size_t i = 0; i < g.gl_pathc; i++)
		say("%s\n", rel(g.gl_pathv[i]));
	say("%d %d\n", nr_opened, g.gl_opendir == my_opendir);
	globfree(&g);
}

CASE(glob_64_and_relative)
{
	glob64_t g;

	tree();
	T(chdir(at("d")));
	V(glob64("*", 0, NULL, &g));
	for (size_t i = 0; i < g.gl_pathc; i++)
		say("%s\n", g.gl_pathv[i]);
	globfree64(&g);
	V(glob64("../e/*", 0, NULL, &g));
	for (size_t i = 0; i < g.gl_pathc; i++)
		say("%s\n", g.gl_pathv[i]);
	globfree64(&g);
	V(glob64("../../.p*", 0, NULL, &g));
}

/* ---- wordexp ---- */

static void words(const char *text, int flags, wordexp_t *we)
{
	int r = wordexp(text, we, flags);

	say("wordexp %s = %d\n", strncmp(text, getenv("P"), strlen(getenv("P"))) ? text : rel(text), r);
	for (size_t i = 0; !r && i < we->we_wordc; i++)
		say("  %s\n", rel(we->we_wordv[i + (flags & WRDE_DOOFFS ? we->we_offs : 0)]));
}

CASE(wordexp_patterns)
{
	static const char *const texts[] = { "$D/d/*.c",
					     "\"$D\"/d/*.c",
					     "$D/d/'*'.c",
					     "\"$D/d/*.c\"",
					     "$D/d/\\*.c",
					     "$D/e/f\\**",
					     "~/d/*.c x y",
					     "$D/none*",
					     "$D/{d,e}/* a*b",
					     "${D}/d/t?o.*",
					     "$D/$(echo d)/*.c",
					     "`echo $D`/d/*.c",
					     "$D/[de]/o*",
					     "$X",
					     "\"$X\"",
					     "$D/$X",
					     "a${D##*/}",
					     "$((1 + 2 * 3))",
					     "$D/e/'f*g'",
					     "$D/e/\"f\"*",
					     "$D/../*/d/one*",
					     "$D/d/* |",
					     "$D/d/* ${undefined?no}",
					     "",
					     "'$D/*'",
					     "~",
					     "$D/.p* $D/../.p*",
					     "*.nothing",
					     "$D/e/.*d*n" };
	wordexp_t we;
	char text[PATH_MAX];

	tree();
	T(setenv("D", getenv("P"), 1));
	T(setenv("HOME", getenv("P"), 1));
	T(setenv("X", "d/*.c  e/*", 1));
	for (unsigned i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		memset(&we, 0, sizeof we);
		words(texts[i], 0, &we);
	}
	snprintf(text, sizeof text, "%s/d/*", getenv("P"));
	words(text, 0, &we);
	wordfree(&we);
	T(chdir(at("d")));
	words("*.c ../e/f* sub/*", 0, &we);
	wordfree(&we);
	words("$(ls *.c)", WRDE_NOCMD, &we);
	words("$undefined/*", WRDE_UNDEF, &we);
	words("$(cat one.c two.c)", 0, &we);
}

CASE(wordexp_appends)
{
	wordexp_t we = {.we_offs = 2};

	tree();
	T(setenv("D", getenv("P"), 1));
	words("$D/d/*.c", WRDE_DOOFFS, &we);
	words("more $D/e/f*", WRDE_DOOFFS | WRDE_APPEND, &we);
	say("%p %p %p\n", (void *)we.we_wordv[0], (void *)we.we_wordv[1],
	    (void *)we.we_wordv[2 + we.we_wordc]);
	words("$D/d/t*", WRDE_DOOFFS | WRDE_REUSE, &we);
	words("$D/d/o* plain", WRDE_APPEND | WRDE_DOOFFS, &we);
	say("%zu %p\n", we.we_wordc, (void *)we.we_wordv[1]);
	wordfree(&we);
	words("$D/d/*.c", 0, &we);
	wordfree(&we);
}

/* ---- temporary names ---- */

static const char *masked(char *path, int nr)
{
	if (path && strlen(path) > 6)
		memset(path + strlen(path) - nr, '.', nr);
	return path ? rel(path) : strerrorname_np(errno);
}

CASE(mktemp_names)
{
	char name[PATH_MAX], longer[3][PATH_MAX];
	char *p;

	T(mkdir(at("d"), 0755));
	snprintf(name, sizeof name, "%s", at("d/tXXXXXX"));
	p = mktemp(name);
	V(p == name);
	T(access(name, F_OK));
	say("%s\n", masked(name, 6));
	snprintf(name, sizeof name, "%s", at("d/t"));
	errno = 0;
	p = mktemp(name);
	say("%d %d \"%s\"\n", p == name, errno, name);
	snprintf(name, sizeof name, "%s", at("none/tXXXXXX"));
	p = mktemp(name);
	say("%s\n", *name ? masked(name, 6) : "none");
	for (int i = 0; i < 3; i++) {
		snprintf(longer[i], PATH_MAX, "%s", at("d/tXXXXXX"));
		make(rel(mktemp(longer[i])), "x");
	}
	V(strcmp(longer[0], longer[1]) && strcmp(longer[1], longer[2]));
	for (int i = 0; i < 3; i++)
		T(unlink(longer[i]));
}

CASE(tempnam_names)
{
	char *p;
	FILE *fp;

	T(mkdir(at("d"), 0755));
	T(unsetenv("TMPDIR"));
	say("%s\n", masked(p = tempnam(at("d"), "pre"), 6));
	free(p);
	say("%s\n", masked(p = tempnam(at("d"), "longprefix"), 6));
	free(p);
	say("%s\n", masked(p = tempnam(at("d/"), NULL), 6));
	free(p);
	say("%s\n", masked(p = tempnam(at("missing"), "x"), 6));
	free(p);
	T(setenv("TMPDIR", getenv("P"), 1));
	say("%s\n", masked(p = tempnam(at("d"), "pre"), 6));
	free(p);
	say("%s\n", masked(p = tempnam(NULL, ""), 6));
	free(p);
	T(setenv("TMPDIR", "/nonexistent", 1));
	say("%s\n", masked(p = tempnam(at("d"), "pre"), 6));
	free(p);
	T(setenv("TMPDIR", getenv("P"), 1));
	fp = tmpfile();
	V(fputs("hello", fp) >= 0);
	rewind(fp);
	V(fgetc(fp));
	V(fclose(fp));
}

/* ---- others that take a path and look at it ---- */

CASE(keys_of_files)
{
	struct stat st;

	make("f", "x");
	T(stat(at("f"), &st));
	V(ftok(at("f"), 7) == (key_t)((st.st_ino & 0xffff) | (st.st_dev & 0xff) << 16 | 7u << 24));
	T(ftok(at("missing"), 7));
}

CASE(watches)
{
	char buf[4096];
	struct inotify_event *ev = (struct inotify_event *)buf;
	int fd = inotify_init1(IN_NONBLOCK), group;

	V(fd >= 0);
	T(mkdir(at("d"), 0755));
	V(inotify_add_watch(fd, at("d"), IN_CREATE | IN_DELETE) > 0);
	T(inotify_add_watch(fd, at("missing"), IN_CREATE));
	T(mkdir(at("d/new"), 0755));
	V(read(fd, buf, sizeof buf) > 0);
	say("%s %x\n", ev->name, ev->mask);
	group = fanotify_init(FAN_CLASS_NOTIF | FAN_NONBLOCK, O_RDONLY);
	if (group >= 0) {
		T(fanotify_mark(group, FAN_MARK_ADD, FAN_OPEN | FAN_ONDIR, AT_FDCWD, at("d")));
		T(fanotify_mark(group, FAN_MARK_ADD, FAN_OPEN, AT_FDCWD, at("missing")));
		T(fanotify_mark(group, FAN_MARK_ADD | FAN_MARK_ONLYDIR, FAN_OPEN, open(at("d"), O_RDONLY),
				"new"));
		V(close(group));
	}
}

/* A handle is all that is left of a name. */
CASE(opened_by_handle)
{
	union {
		struct file_handle h;
		char room[sizeof(struct file_handle) + MAX_HANDLE_SZ];
	} u = {.h.handle_bytes = MAX_HANDLE_SZ};
	char buf[32] = "";
	int id, dir, fd;

	make("f", "0123456789");
	V(name_to_handle_at(AT_FDCWD, at("f"), &u.h, &id, 0));
	dir = open(at("."), O_RDONLY);
	fd = open_by_handle_at(dir, &u.h, O_RDWR);
	if (fd >= 0) {
		V(read(fd, buf, sizeof buf));
		say("%s\n", buf);
		T(pwrite(fd, "ab", 2, 3));
		T(lseek(fd, 0, SEEK_END));
		T(close(fd));
	}
	show("f");
	fd = open_by_handle_at(dir, &u.h, O_WRONLY | O_TRUNC);
	T(write(fd, "new", 3));
	T(close(fd));
	show("f");
	fd = open_by_handle_at(dir, &u.h, O_WRONLY | O_APPEND);
	T(write(fd, "er", 2));
	T(read(fd, buf, 1));
	T(close(fd));
	show("f");
}

CASE(attributes_of_descriptors)
{
	char buf[64] = "";
	int fd;

	make("f", "x");
	fd = open(at("f"), O_RDWR);
	T(fsetxattr(fd, "user.one", "1", 1, 0));
	T(setxattr(at("f"), "user.two", "22", 2, XATTR_CREATE));
	T(fsetxattr(fd, "user.one", "1", 1, XATTR_CREATE));
	T(fgetxattr(fd, "user.two", buf, sizeof buf));
	T(getxattr(at("f"), "user.one", buf, sizeof buf));
	T(flistxattr(fd, buf, sizeof buf));
	T(fremovexattr(fd, "user.one"));
	T(fgetxattr(fd, "user.one", buf, sizeof buf));
	T(listxattr(at("f"), buf, 0));
	say("%s\n", buf);
}

CASE(times_by_every_call)
{
	static const struct timeval tv[2] = {{1000, 500000}, {2000, 250000}};
	static const struct timespec ts[2] = {{3000, 5}, {4000, 7}};
	struct utimbuf ut = {5000, 6000};
	struct stat st;
	int fd, dir = open(at("."), O_RDONLY);

#define TIMES(call) \
	T(call); \
	T(stat(at("f"), &st)); \
	say("%ld.%09ld %ld.%09ld\n", st.st_atim.tv_sec, st.st_atim.tv_nsec, st.st_mtim.tv_sec, \
	    st.st_mtim.tv_nsec)
	make("f", "x");
	T(symlink("f", at("l")));
	fd = open(at("f"), O_WRONLY);
	TIMES(utime(at("f"), &ut));
	TIMES(utimes(at("l"), tv));
	TIMES(lutimes(at("l"), tv));
	T(lstat(at("l"), &st));
	say("link %ld\n", st.st_mtim.tv_sec);
	TIMES(futimesat(dir, "f", tv));
	TIMES(utimensat(dir, "f", ts, 0));
	TIMES(futimens(fd, ts));
	T(write(fd, "y", 1));
	TIMES(futimes(fd, tv));
	T(close(fd));
	T(stat(at("f"), &st));
	say("%ld\n", st.st_mtim.tv_sec);
}

CASE(access_by_every_call)
{
	make("f", "x");
	T(symlink("none", at("l")));
	T(chmod(at("f"), 0644));
	T(faccessat(AT_FDCWD, at("l"), F_OK, AT_SYMLINK_NOFOLLOW));
	T(faccessat(AT_FDCWD, at("l"), F_OK, 0));
	T(faccessat(AT_FDCWD, at("f"), R_OK | W_OK, AT_EACCESS));
	T(faccessat(AT_FDCWD, at("f"), X_OK, AT_EACCESS));
	T(faccessat(open(at("f"), O_RDONLY), "", R_OK, AT_EMPTY_PATH));
	T(faccessat(AT_FDCWD, at("f"), R_OK, 0x100000));
	T(eaccess(at("f"), W_OK));
	T(euidaccess(at("missing"), W_OK));
	T(fchmodat(AT_FDCWD, at("f"), 0600, AT_SYMLINK_NOFOLLOW));
	T(lchmod(at("f"), 0640));
	V(mkfifo(at("fifo"), 0600));
	V(mknod(at("fifo2"), S_IFIFO | 0600, 0));
	V(mknod(at("regular"), S_IFREG | 0600, 0));
	V(mknodat(open(at("."), O_RDONLY), "reg2", S_IFREG | 0600, 0));
	V(mkfifo(at("f"), 0600));
	T(access(at("regular"), F_OK));
	make("regular", "made by mknod");
	show("regular");
}

CASE(tables_of_file_systems)
{
	struct mntent in = {"dev", "/mnt", "ext4", "rw,nosuid", 1, 2}, *out;
	FILE *fp = setmntent(at("tab"), "w+");

	V(fp != NULL);
	V(addmntent(fp, &in));
	V(addmntent(fp, &in));
	V(endmntent(fp));
	show("tab");
	fp = setmntent(at("tab"), "r");
	while ((out = getmntent(fp)))
		say("%s %s %s %d %s\n", out->mnt_fsname, out->mnt_dir, out->mnt_opts, out->mnt_passno,
		    hasmntopt(out, "nosuid"));
	V(endmntent(fp));
	V(setmntent(at("missing"), "r") == NULL);
}

CASE(directory_entries_by_the_old_name)
{
	char buf[4096];
	off_t base = -1;
	int fd, n, nr = 0;

	tree();
	fd = open(at("e"), O_RDONLY);
	while ((n = getdirentries(fd, buf, sizeof buf, &base)) > 0) {
		say("%d\n", base == 0);
		for (int i = 0; i < n; i += ((struct dirent *)(buf + i))->d_reclen)
			nr++;
	}
	say("%d entries\n", nr);
	fd = open(at(".."), O_RDONLY);
	for (n = getdirentries(fd, buf, sizeof buf, &base), nr = 0; nr < n;
	     nr += ((struct dirent *)(buf + nr))->d_reclen)
		if (((struct dirent *)(buf + nr))->d_name[0] == '.' &&
		    strlen(((struct dirent *)(buf + nr))->d_name) > 2)
			say("%s\n", ((struct dirent *)(buf + nr))->d_name);
	fd = open(at("d/one.c"), O_RDONLY);
	T(getdirentries(fd, buf, sizeof buf, &base));
}

CASE(backtrace_into_a_file)
{
	void *frames[] = {(void *)0x10, (void *)0x20};
	int fd = open(at("trace"), O_WRONLY | O_CREAT, 0644);

	T(write(fd, "before\n", 7));
	backtrace_symbols_fd(frames, 2, fd);
	T(write(fd, "after\n", 6));
	show("trace");
}

/* What was on 0 to 2 gives way to the terminal. */
CASE(terminal_instead_of_files)
{
	char line[64] = "";
	int out = dup(1), fd = open(at("f"), O_RDWR | O_CREAT, 0644), master, status, n = 0, got;
	pid_t pid;

	T(dup2(fd, 0));
	T(dup2(fd, 1));
	pid = forkpty(&master, NULL, NULL, NULL);
	if (!pid) {
		write(1, "to the terminal", 15);
		_exit(isatty(0) + isatty(1) + isatty(2));
	}
	while (n < 15 && (got = read(master, line + n, sizeof line - n - 1)) > 0)
		n += got;
	waitpid(pid, &status, 0);
	dup2(out, 1);
	say("%s %d\n", line, WEXITSTATUS(status));
	show("f");
}
