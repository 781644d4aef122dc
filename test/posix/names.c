/* SPDX-License-Identifier: BSD-3-Clause */
/* Names: attributes, links, renames, removals, modes, times, access, temporary files. */
#include "posix.h"
#include <limits.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <utime.h>

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
	list_dir("");
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
	T(rmdir(at(".")));
	T(rmdir(at("./")));
	T(rmdir(at("d/..")));
	T(mkdir(at("e"), 0700));
	T(chdir(at("d")));
	T(rmdir("../e/."));
	T(rmdir("../e/./"));
	T(rmdir("../d/.."));
	T(remove("../e/."));
	T(chdir(".."));
	T(rmdir(at("d/")));
	T(mkdir(at("x/y"), 0700));
	T(mkdirat(AT_FDCWD, at("m"), 0751));
	list_dir("");
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
