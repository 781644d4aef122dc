/* SPDX-License-Identifier: BSD-3-Clause */
/* Names: attributes, links, renames, directories and their streams, working directories, temporary files. */
#include "posix.h"
#include <limits.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <utime.h>

static void list(const char *name)
{
	struct dirent **all;
	int n = scandir(at(name), &all, NULL, alphasort);

	for (int i = 0; i < n; i++)
		say("%s:%d ", all[i]->d_name, all[i]->d_type);
	say("(%d)\n", n);
}

/* The names of glibc before 2.33. */
int __xstat(int, const char *, struct stat *);
int __lxstat(int, const char *, struct stat *);
int __fxstat(int, int, struct stat *);
int __fxstatat(int, int, const char *, struct stat *, int);
int __xstat64(int, const char *, struct stat64 *);

CASE(every_stat_says_the_same)
{
	struct stat st[8];
	struct stat64 st64;
	struct statx sx;
	int fd = T(rw("f"));

	T(write(fd, "hello", 5));
	T(symlink("f", at("l")));
	memset(st, 0, sizeof st);
	/* the first may look into the stub, which the kernel takes for an access (LIMITS) */
	T(stat(at("f"), &st[0]));
	T(stat(at("f"), &st[0]));
	T(fstat(fd, &st[1]));
	T(lstat(at("f"), &st[2]));
	T(fstatat(AT_FDCWD, at("l"), &st[3], 0));
	T(fstatat(fd, "", &st[4], AT_EMPTY_PATH));
	T(__xstat(1, at("f"), &st[5]));
	T(__fxstat(1, fd, &st[6]));
	T(__fxstatat(1, AT_FDCWD, at("f"), &st[7], AT_SYMLINK_NOFOLLOW));
	for (int i = 1; i < 8; i++)
		say("%d: %d\n", i, memcmp(&st[0], &st[i], sizeof st[0]) != 0);
	T(__xstat64(1, at("f"), &st64));
	T(memcmp(&st64, &st[0], sizeof st64));
	T(stat64(at("f"), &st64));
	T(memcmp(&st64, &st[0], sizeof st64));
	T(__lxstat(1, at("l"), &st[1]));
	say("link %o\n", st[1].st_mode);
	T(statx(AT_FDCWD, at("f"), 0, STATX_BASIC_STATS, &sx));
	say("%d %d %d %d %d %d\n", sx.stx_size == (uint64_t)st[0].st_size, sx.stx_mode == st[0].st_mode,
	    sx.stx_ino == st[0].st_ino, sx.stx_mtime.tv_nsec == st[0].st_mtim.tv_nsec,
	    sx.stx_blocks == (uint64_t)st[0].st_blocks,
	    makedev(sx.stx_dev_major, sx.stx_dev_minor) == st[0].st_dev);
	T(statx(fd, "", AT_EMPTY_PATH, STATX_SIZE, &sx));
	say("size %ld mode %o nlink %d\n", (long)sx.stx_size, sx.stx_mode, sx.stx_nlink);
	say("size %ld mode %o nlink %ld\n", (long)st[0].st_size, st[0].st_mode, (long)st[0].st_nlink);
	T(statx(AT_FDCWD, at("none"), 0, STATX_SIZE, &sx));
	T(stat(at("none"), &st[0]));
	T(stat(at("f/x"), &st[0]));
	T(fstatat(AT_FDCWD, at("f"), &st[0], 0x40000000));
}

CASE(size_grows_as_seen_by_all)
{
	struct stat st;
	int fd = T(rw("f"));

	for (int i = 0; i < 6; i++) {
		T(pwrite(fd, "0123456789", 10, i * 1000));
		stat(at("f"), &st);
		say("%ld ", (long)st.st_size);
		fstat(fd, &st);
		say("%ld ", (long)st.st_size);
		IN_CHILD(stat(at("f"), &st); say("%ld\n", (long)st.st_size));
	}
	T(system("stat -c %s $P/f"));
}

CASE(link_length_is_that_of_its_target)
{
	char target[PATH_MAX], buf[PATH_MAX];
	struct stat st;
	const char *name = at("f");
	ssize_t n;

	snprintf(target, sizeof target, "%s/f", getenv("P"));
	T(symlink(target, at("l")));
	n = readlink(at("l"), buf, sizeof buf);
	T(n == (ssize_t)strlen(target) && !memcmp(buf, target, n));
	T(lstat(at("l"), &st));
	T(st.st_size == n);
	T(readlink(at("l"), buf, 3));
	T(readlink(at("l"), buf, 0));
	T(readlink(name, buf, 10));
	T(readlink(at("none"), buf, 10));
	make("f", "x");
	T(readlink(at("f"), buf, 10));
	T(symlink("x", at("l")));
	T(symlink("", at("e")));
	T(symlinkat("f", AT_FDCWD, at("m")));
	show("m");
	show("l");
}

CASE(hard_links)
{
	struct stat st;
	int fd = T(rw("a"));

	T(write(fd, "one", 3));
	T(link(at("a"), at("b")));
	T(fstat(fd, &st));
	say("nlink %ld\n", (long)st.st_nlink);
	T(write(fd, "two", 3));
	show("b");
	T(close(fd));
	T(unlink(at("a")));
	show("b");
	T(linkat(AT_FDCWD, at("b"), AT_FDCWD, at("c"), 0));
	T(rename(at("b"), at("c")));
	list("");
	T(link(at("b"), at("b")));
	T(link(at("none"), at("x")));
	T(mkdir(at("d"), 0755));
	T(link(at("d"), at("e")));
	T(symlink("b", at("l")));
	T(link(at("l"), at("l2")));
	T(linkat(AT_FDCWD, at("l"), AT_FDCWD, at("l3"), AT_SYMLINK_FOLLOW));
	T(stat(at("l3"), &st));
	say("nlink %ld\n", (long)st.st_nlink);
	T(unlink(at("b")));
	T(unlink(at("c")));
	show("l3");
	fd = T(open(at("l3"), O_WRONLY | O_TRUNC));
	T(write(fd, "new", 3));
	T(close(fd));
}

CASE(renames)
{
	make("a", "aaa");
	make("b", "bbb");
	T(mkdir(at("d"), 0755));
	T(mkdir(at("e"), 0755));
	make("e/x", "in e");
	T(rename(at("a"), at("b")));
	show("b");
	T(rename(at("b"), at("b")));
	T(rename(at("none"), at("b")));
	T(rename(at("b"), at("d")));
	T(rename(at("d"), at("b")));
	T(rename(at("d"), at("e")));
	T(rename(at("e"), at("d")));
	T(rename(at(""), "/nonexistent/x")); /* also of what is mapped */
	T(rename("/nonexistent/x", at("")));
	T(rename(at("d"), at("d/sub")));
	show("d/x");
	make("c", "ccc");
	T(renameat2(AT_FDCWD, at("b"), AT_FDCWD, at("c"), RENAME_NOREPLACE));
	T(renameat2(AT_FDCWD, at("b"), AT_FDCWD, at("c"), RENAME_EXCHANGE));
	show("b");
	show("c");
	T(renameat2(AT_FDCWD, at("b"), AT_FDCWD, at("n"), RENAME_NOREPLACE));
	T(renameat2(AT_FDCWD, at("n"), AT_FDCWD, at("o"), RENAME_EXCHANGE));
	T(renameat2(AT_FDCWD, at("n"), AT_FDCWD, at("d"), RENAME_EXCHANGE));
	T(renameat2(AT_FDCWD, at("n"), AT_FDCWD, at("o"), 1 << 20));
	T(rename(at("c"), "/proc/x"));
	T(symlink("c", at("l")));
	T(rename(at("l"), at("c")));
	show("c");
}

CASE(removals)
{
	make("f", "x");
	T(mkdir(at("d"), 0755));
	make("d/f", "x");
	T(remove(at("f")));
	T(remove(at("d")));
	T(rmdir(at("d")));
	T(unlinkat(AT_FDCWD, at("d/f"), AT_REMOVEDIR));
	T(unlinkat(AT_FDCWD, at("d/f"), 0));
	T(unlinkat(AT_FDCWD, at("d"), 0));
	T(unlinkat(AT_FDCWD, at("d"), AT_REMOVEDIR));
	T(unlink(at("d")));
	T(unlink(at("d/x")));
	T(mkdir(at("d/"), 0700));
	T(rmdir(at("d/.")));
	T(rmdir(at("d/")));
	T(mkdir(at("x/y"), 0700));
	T(mkdirat(AT_FDCWD, at("m"), 0751));
	list("");
}

CASE(chmod_of_all_kinds)
{
	struct stat st;
	int fd = T(rw("f"));

	T(write(fd, "x", 1));
	T(chmod(at("f"), 0600));
	T(fchmod(fd, 0640));
	T(fchmodat(AT_FDCWD, at("f"), 0444, 0));
	T(fstat(fd, &st));
	say("%o\n", st.st_mode);
	T(write(fd, "y", 1));
	T(fchmod(fd, 04711));
	T(fstat(fd, &st));
	say("%o\n", st.st_mode);
	T(symlink("f", at("l")));
	T(chmod(at("l"), 0604));
	T(stat(at("l"), &st));
	say("%o\n", st.st_mode);
	T(chmod(at("none"), 0600));
	T(mkdir(at("d"), 0755));
	T(chmod(at("d"), 01777));
	T(stat(at("d"), &st));
	say("%o\n", st.st_mode);
	T(fchown(fd, -1, -1));
	T(chown(at("l"), getuid(), getgid()));
	T(lchown(at("l"), -1, -1));
	T(fchownat(AT_FDCWD, at("f"), -1, -1, AT_SYMLINK_NOFOLLOW));
	T(chown(at("none"), 1, 1));
}

static void times_of(const char *name)
{
	struct stat st;

	if (stat(at(name), &st))
		say("%s: %s\n", name, strerrorname_np(errno));
	else
		say("%s: %ld.%09ld %ld.%09ld\n", name, st.st_atim.tv_sec, st.st_atim.tv_nsec,
		    st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
}

CASE(times_stay_as_they_are_set)
{
	struct timespec ts[2] = {{1000000000, 123456789}, {1100000000, 987654321}};
	struct timeval tv[2] = {{1200000000, 123456}, {1300000000, 654321}};
	struct stat st;
	time_t now = time(NULL) - 1; /* clocks of files tick behind it */
	int fd = T(rw("f"));

	T(utimensat(AT_FDCWD, at("f"), ts, 0));
	times_of("f");
	T(write(fd, "x", 1));
	T(fstat(fd, &st));
	T(st.st_mtime >= now && st.st_mtime <= time(NULL));
	T(futimens(fd, ts));
	times_of("f");
	T(close(fd));
	times_of("f");
	fd = T(rw("f"));
	T(write(fd, "y", 1));
	T(utimes(at("f"), tv));
	T(close(fd));
	times_of("f");
	T(utime(at("f"), &(struct utimbuf){5, 6}));
	times_of("f");
	T(utimensat(AT_FDCWD, at("f"), (struct timespec[]){{0, UTIME_OMIT}, {77, 0}}, 0));
	times_of("f");
	T(symlink("f", at("l")));
	T(lutimes(at("l"), tv));
	times_of("f");
	fd = T(rw("f"));
	T(futimes(fd, tv));
	IN_CHILD(exit(0));
	T(system("cat $P/f"));
	T(close(fd));
	fd = T(open(at("f"), O_RDWR));
	T(fsync(fd));
	T(fstat(fd, &st));
	say("%ld\n", (long)st.st_mtime);
	T(utimensat(AT_FDCWD, at("none"), ts, 0));
	T(utimensat(AT_FDCWD, at("f"), (struct timespec[]){{0, -1}, {0, 0}}, 0));
	T(utime(at("f"), NULL));
	T(stat(at("f"), &st));
	T(st.st_mtime >= now);
}

CASE(truncation_moves_the_time)
{
	struct timespec ts[2] = {{1000000000, 0}, {1000000000, 0}};
	struct stat st;
	int fd;

	make("f", "hello");
	T(utimensat(AT_FDCWD, at("f"), ts, 0));
	T(truncate(at("f"), 2));
	T(stat(at("f"), &st));
	T(st.st_mtime > 1000000000);
	T(utimensat(AT_FDCWD, at("f"), ts, 0));
	fd = T(open(at("f"), O_WRONLY | O_TRUNC));
	T(fstat(fd, &st));
	T(st.st_mtime > 1000000000);
}

/* Stamp files of make are empty, and are made so again. */
CASE(truncation_to_the_same_size_moves_the_time)
{
	static const int flags[] = {O_WRONLY | O_TRUNC, O_RDONLY | O_TRUNC, O_RDWR | O_CREAT | O_TRUNC};
	struct timespec ts[2] = {{1000000000, 0}, {1000000000, 0}};
	struct stat st;
	int fd;

	for (int i = 0; i < 5; i++) {
		fd = T(rw("f"));
		T(close(fd));
		T(utimensat(AT_FDCWD, at("f"), ts, 0));
		if (i < 3) {
			fd = T(open(at("f"), flags[i], 0644));
		} else if (i == 3) {
			T(fclose(fopen(at("f"), "w")));
		} else {
			T(system(": >$P/f"));
		}
		T(stat(at("f"), &st));
		T(st.st_mtime > 1000000000);
		T(st.st_atime == 1000000000);
		if (i < 3)
			T(close(fd));
		T(stat(at("f"), &st));
		T(st.st_mtime > 1000000000);
	}
	make("g", "hello");
	T(utimensat(AT_FDCWD, at("g"), ts, 0));
	T(truncate(at("g"), 5));
	T(stat(at("g"), &st));
	T(st.st_mtime > 1000000000);
	T(utimensat(AT_FDCWD, at("g"), ts, 0));
	fd = T(open(at("g"), O_RDWR));
	T(ftruncate(fd, 5));
	T(stat(at("g"), &st));
	T(st.st_mtime > 1000000000);
}

CASE(overwriting_moves_the_time)
{
	struct timespec ts[2] = {{1000000000, 0}, {1000000000, 0}};
	struct stat st;
	int fd;

	make("f", "hello");
	T(utimensat(AT_FDCWD, at("f"), ts, 0));
	fd = T(open(at("f"), O_RDWR));
	T(pwrite(fd, "J", 1, 0));
	T(close(fd));
	T(stat(at("f"), &st));
	T(st.st_mtime > 1000000000);
}

CASE(directory_streams)
{
	struct dirent *e;
	char name[32], seen[300] = "";
	DIR *d;
	long pos = 0;
	int n = 0, again = 0;

	T(mkdir(at("d"), 0755));
	for (int i = 0; i < 200; i++) {
		snprintf(name, sizeof name, "d/name%d", i);
		close(rw(name));
	}
	d = opendir(at("d"));
	while ((e = readdir(d))) {
		if (sscanf(e->d_name, "name%d", &again) == 1)
			seen[again]++;
		if (++n == 100)
			pos = telldir(d);
	}
	say("%d entries\n", n);
	for (int i = 0; i < 200; i++)
		if (seen[i] != 1)
			say("name%d seen %d times\n", i, seen[i]);
	seekdir(d, pos);
	for (n = 0; readdir(d); n++)
		;
	say("%d after seekdir\n", n);
	rewinddir(d);
	for (n = 0; readdir(d); n++)
		;
	say("%d after rewinddir\n", n);
	rewinddir(d);
	while ((e = readdir(d)))
		if (*e->d_name != '.')
			unlinkat(dirfd(d), e->d_name, 0);
	T(closedir(d));
	list("d");
	T((long)opendir(at("none")) == 0);
	T((long)opendir(at("d/none")) == 0);
	T((long)fdopendir(77) == 0);
	d = fdopendir(open(at("d"), O_RDONLY));
	T(d != NULL);
	close(rw("d/x"));
	rewinddir(d);
	for (n = 0; readdir(d); n++)
		;
	say("%d through fdopendir\n", n);
}

CASE(directory_entries_tell_types)
{
	make("f", "x");
	T(mkdir(at("d"), 0755));
	T(symlink("f", at("l")));
	T(mkfifo(at("p"), 0644));
	list("");
}

CASE(container_directory_is_hidden)
{
	char path[PATH_MAX];
	struct stat st;

	make("f", "x");
	snprintf(path, sizeof path, "%s/../.plfs", getenv("P"));
	T(stat(path, &st));
	T(access(path, F_OK));
	T(open(path, O_RDONLY));
	snprintf(path, sizeof path, "%s/../.plfs/format", getenv("P"));
	T(open(path, O_RDONLY));
	T(unlink(path));
	T(system("ls -a $P/.. | grep plfs; find $P/.. -name '*plfs*' | grep -v plfs-test; echo done"));
	snprintf(path, sizeof path, "%s/..", getenv("P"));
	T(chdir(path));
	T(stat(".plfs", &st));
	T(open(".plfs/format", O_RDONLY));
	T(system("ls -a | grep plfs; echo done"));
}

CASE(working_directory)
{
	char buf[PATH_MAX], *p;
	struct stat a, b;
	int fd;

	T(mkdir(at("d"), 0755));
	T(mkdir(at("d/e"), 0755));
	fd = T(open(at("d"), O_RDONLY | O_DIRECTORY));
	T(chdir(at("d/e")));
	say("%s\n", getcwd(buf, sizeof buf));
	close(open("f", O_RDWR | O_CREAT, 0644));
	T(stat("../e/f", &a));
	T(stat("./f", &b));
	T(a.st_ino == b.st_ino);
	T(chdir(".."));
	say("%s\n", getcwd(NULL, 0));
	T(fchdir(fd));
	say("%s\n", p = get_current_dir_name());
	free(p);
	T(getcwd(buf, 3) == NULL);
	say("%s\n", strerrorname_np(errno));
	T(chdir("none"));
	T(chdir("e/f"));
	T(rename("e", "moved"));
	T(chdir("moved"));
	say("%s\n", getcwd(buf, sizeof buf));
	T(system("pwd; /bin/pwd -P; ls; echo from child >child"));
	T(system("cat child"));
	T(chdir("/"));
	say("%s\n", getcwd(buf, sizeof buf));
	T(rmdir(getenv("P")));
	T(openat(fd, "moved/child", O_RDONLY));
}

CASE(removed_working_directory)
{
	char buf[PATH_MAX];

	T(mkdir(at("d"), 0755));
	T(chdir(at("d")));
	T(system("rmdir \"$P/d\""));
	T(getcwd(buf, sizeof buf) == NULL);
	say("%s\n", strerrorname_np(errno));
	T(open("f", O_RDWR | O_CREAT, 0644));
	T(chdir(getenv("P")));
	say("%s\n", getcwd(buf, sizeof buf));
}

CASE(names_relative_to_a_directory)
{
	struct stat st;
	char buf[8], path[PATH_MAX];
	int d, fd;

	T(mkdir(at("d"), 0755));
	d = T(open(at("d"), O_RDONLY | O_DIRECTORY));
	fd = T(openat(d, "f", O_RDWR | O_CREAT, 0644));
	T(write(fd, "hello", 5));
	T(fstatat(d, "f", &st, 0));
	say("%ld\n", (long)st.st_size);
	T(mkdirat(d, "e", 0755));
	T(linkat(d, "f", d, "e/g", 0));
	T(renameat(d, "f", d, "e/h"));
	T(symlinkat("e/h", d, "l"));
	T(readlinkat(d, "l", buf, 8));
	T(faccessat(d, "l", R_OK, 0));
	T(faccessat(d, "none", R_OK, 0));
	T(fchmodat(d, "e/g", 0600, 0));
	T(fchownat(d, "e/g", -1, -1, 0));
	T(utimensat(d, "e/g", (struct timespec[]){{1, 0}, {2, 0}}, 0));
	T(unlinkat(d, "l", 0));
	T(openat(d, "../d/e/g", O_RDONLY));
	snprintf(path, sizeof path, "%s/d/e/g", getenv("P"));
	T(openat(d, path, O_RDONLY));
	T(openat(fd, "x", O_RDONLY));
	T(openat(d, "", O_RDONLY));
	T(openat(d, "e/../e/./g", O_RDWR | O_APPEND));
	T(renameat(d, "e", AT_FDCWD, at("moved")));
	T(unlinkat(d, "none", 0));
	T(mkfifoat(d, "fifo", 0600));
	T(mknodat(d, "node", S_IFREG | 0640, 0));
	fd = T(openat(d, "node", O_RDWR));
	T(write(fd, "into the node", 13));
	T(openat(d, "../../../../../../../../etc/passwd", O_RDONLY));
}

CASE(paths_with_dots)
{
	char path[PATH_MAX];
	const char *base = strrchr(getenv("P"), '/') + 1;

	make("f", "x");
	T(mkdir(at("d"), 0755));
	show("d/../f");
	show("./d/.././f");
	show("d//..//f");
	show("none/../f");
	show("f/../f");
	snprintf(path, sizeof path, "%s/../%s/f", getenv("P"), base);
	T(access(path, R_OK));
	snprintf(path, sizeof path, "/proc/..%s/f", getenv("P"));
	T(access(path, R_OK));
	snprintf(path, sizeof path, "/%s//f", getenv("P"));
	T(access(path, R_OK));
	snprintf(path, sizeof path, "%sx", getenv("P"));
	T(access(path, R_OK));
	T(symlink("d", at("l")));
	make("d/g", "through a link");
	show("l/g");
	show("l/../f");
	T(symlink("..", at("d/up")));
	show("d/up/f");
}

CASE(real_paths)
{
	char buf[PATH_MAX], *p;

	make("f", "x");
	T(mkdir(at("d"), 0755));
	T(symlink("../f", at("d/l")));
	say("%s\n", realpath(at("d/l"), buf));
	say("%s\n", p = realpath(at("d/../d/./l"), NULL));
	free(p);
	p = realpath(at("none"), NULL);
	say("%s %s\n", p ? p : "none", strerrorname_np(errno));
	say("%s\n", p = canonicalize_file_name(at("d")));
	free(p);
	T(chdir(at("d")));
	say("%s\n", p = realpath("l", NULL));
	say("%s\n", p = realpath(".", NULL));
	say("%s\n", p = realpath("..", NULL));
}

CASE(access_checks)
{
	make("f", "x");
	T(access(at("f"), F_OK));
	T(access(at("f"), R_OK | W_OK));
	T(access(at("f"), X_OK));
	T(chmod(at("f"), 0755));
	T(access(at("f"), X_OK));
	T(eaccess(at("f"), R_OK));
	T(access(at("none"), F_OK));
	T(access(at("f/x"), F_OK));
	T(access(at("f"), 99));
	T(symlink("none", at("l")));
	T(faccessat(AT_FDCWD, at("l"), F_OK, 0));
	T(faccessat(AT_FDCWD, at("l"), F_OK, AT_SYMLINK_NOFOLLOW));
}

CASE(file_systems)
{
	struct statvfs v;
	struct statfs s;
	int fd = T(rw("f"));

	T(statvfs(at("f"), &v));
	T(fstatvfs(fd, &v));
	T(statfs(at(""), &s));
	T(fstatfs(fd, &s));
	T(statfs(at("none"), &s));
	T(pathconf(at("f"), _PC_NAME_MAX));
	T(fpathconf(fd, _PC_NAME_MAX));
	T(pathconf(at("none"), _PC_NAME_MAX));
}

CASE(temporary_names)
{
	char t[PATH_MAX];
	struct stat st;
	int fd;

	snprintf(t, sizeof t, "%s", at("aXXXXXX"));
	fd = T(mkstemp(t));
	T(write(fd, "x", 1));
	T(stat(t, &st));
	say("%o %ld\n", st.st_mode, (long)st.st_size);
	T(unlink(t));
	snprintf(t, sizeof t, "%s", at("aXXXXXX.txt"));
	fd = T(mkostemps(t, 4, O_APPEND));
	T(write(fd, "x", 1));
	T(strcmp(t + strlen(t) - 4, ".txt"));
	T(unlink(t));
	snprintf(t, sizeof t, "%s", at("aXXXXXX"));
	T(mkdtemp(t) == t);
	T(stat(t, &st));
	say("%o\n", st.st_mode);
	T(rmdir(t));
	snprintf(t, sizeof t, "%s", at("wrong"));
	T(mkstemp(t));
	T(mkdtemp(t) == NULL);
	snprintf(t, sizeof t, "%s", at("none/aXXXXXX"));
	T(mkstemp(t));
}

CASE(extended_attributes)
{
	char buf[16];

	make("f", "x");
	T(setxattr(at("f"), "user.test", "value", 5, 0));
	T(getxattr(at("f"), "user.test", buf, sizeof buf));
	T(listxattr(at("f"), buf, sizeof buf));
	T(getxattr(at("f"), "user.none", buf, sizeof buf));
	T(removexattr(at("f"), "user.test"));
	T(getxattr(at("none"), "user.test", buf, sizeof buf));
}
