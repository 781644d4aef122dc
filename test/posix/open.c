/* SPDX-License-Identifier: BSD-3-Clause */
/* open and its flags; what a wrong open, read or write answers. Needs glibc 2.34: closefrom, close_range. */
#include "posix.h"

CASE(creat_exclusive_and_existing)
{
	T(open(at("f"), O_WRONLY | O_CREAT | O_EXCL, 0640));
	T(open(at("f"), O_WRONLY | O_CREAT | O_EXCL, 0640));
	T(open(at("f"), O_RDWR | O_CREAT, 0600));
	T(creat(at("g"), 0604));
	T(symlink("none", at("l")));
	T(open(at("l"), O_WRONLY | O_CREAT | O_EXCL, 0644));
	T(open(at("l"), O_WRONLY | O_CREAT, 0644));
	T(symlink("f", at("m")));
	T(open(at("m"), O_RDWR | O_CREAT | O_EXCL, 0644));
}

CASE(truncating_opens)
{
	make("f", "hello");
	T(close(T(open(at("f"), O_WRONLY | O_TRUNC))));
	show("f");
	make("f", "hello");
	T(close(T(open(at("f"), O_RDONLY | O_TRUNC))));
	show("f");
	make("f", "hello");
	T(close(T(open(at("f"), O_RDWR | O_CREAT | O_TRUNC, 0600))));
	show("f");
	make("f", "hello");
	T(open(at("f"), O_RDWR | O_CREAT | O_TRUNC | O_EXCL, 0600));
	show("f");
	T(close(T(open(at("f"), O_RDWR | O_APPEND))));
	show("f");
}

CASE(truncated_by_another_open)
{
	char buf[16] = "";
	int a = T(open(at("f"), O_RDWR | O_CREAT, 0644)), b;

	T(write(a, "0123456789", 10));
	b = T(open(at("f"), O_RDWR | O_TRUNC));
	T(lseek(a, 0, SEEK_END));
	T(pread(a, buf, 5, 0));
	T(lseek(a, 10, SEEK_SET));
	T(write(a, "ab", 2));
	T(write(b, "XY", 2));
	T(close(a));
	T(close(b));
	show("f");
}

CASE(access_modes)
{
	char buf[8];
	int r, w;

	make("f", "hello");
	r = T(open(at("f"), O_RDONLY));
	w = T(open(at("f"), O_WRONLY));
	T(read(w, buf, 4));
	T(pread(w, buf, 4, 0));
	T(readv(w, &(struct iovec){buf, 4}, 1));
	T(write(r, "x", 1));
	T(pwrite(r, "x", 1, 0));
	T(writev(r, &(struct iovec){"x", 1}, 1));
	T(ftruncate(r, 2));
	T(ftruncate(w, 4));
	T(fallocate(r, 0, 0, 10));
	V(posix_fallocate(r, 0, 10));
	T(read(r, buf, 0));
	T(write(r, buf, 0));
	T(fcntl(r, F_GETFL) & O_ACCMODE);
	T(fcntl(w, F_GETFL) & O_ACCMODE);
	T(open(at("f"), 3));
	T(fsync(r));
	show("f");
}

CASE(wrong_descriptors)
{
	char buf[8];
	struct stat st;

	T(read(77, buf, 1));
	T(write(77, buf, 1));
	T(pread(77, buf, 1, 0));
	T(lseek(77, 0, SEEK_SET));
	T(close(77));
	T(fstat(77, &st));
	T(ftruncate(77, 0));
	T(fsync(77));
	T(dup(77));
	T(dup2(77, 5));
	T(fcntl(77, F_GETFL));
	T(flock(77, LOCK_SH));
	T(read(-1, buf, 1));
	T(close(-1));
	T(dup2(1, 1 << 20));
	T(fchmod(-5, 0644));
	T(openat(77, "x", O_RDONLY));
}

CASE(closed_descriptor_is_gone)
{
	char buf[8];
	int fd = T(open(at("f"), O_RDWR | O_CREAT, 0644));

	T(write(fd, "abc", 3));
	T(close(fd));
	T(close(fd));
	T(write(fd, "abc", 3));
	T(read(fd, buf, 3));
	T(pwrite(fd, "abc", 3, 0));
	T(lseek(fd, 0, SEEK_CUR));
	show("f");
}

CASE(wrong_names)
{
	char longer[5000];
	struct stat st;

	make("f", "x");
	T(mkdir(at("d"), 0755));
	T(open(at("none"), O_RDWR));
	T(open(at("none/x"), O_RDWR | O_CREAT, 0644));
	T(open(at("f/x"), O_RDWR | O_CREAT, 0644));
	T(open(at("f/"), O_RDONLY));
	T(open(at("d"), O_WRONLY));
	T(open(at("d"), O_RDWR | O_CREAT, 0644));
	T(open(at("g/"), O_RDWR | O_CREAT, 0644));
	T(open("", O_RDONLY));
	T(stat("", &st));
	T(open(NULL, O_RDONLY));
	T(stat(NULL, &st));
	T(unlink(NULL));
	T(rename(at("f"), NULL));
	memset(longer, 'a', 300);
	longer[300] = 0;
	T(open(at(longer), O_RDWR | O_CREAT, 0644));
	memset(longer, '/', sizeof longer - 1);
	longer[sizeof longer - 1] = 0;
	T(open(longer, O_RDONLY));
	T(symlink("loop", at("loop")));
	T(open(at("loop"), O_RDONLY));
	T(open(at("loop"), O_RDWR | O_CREAT, 0644));
	T(stat(at("loop/x"), &st));
	T(open(at("f"), O_RDONLY | O_DIRECTORY));
	T(unlink(at("d")));
	T(rmdir(at("f")));
	T(mkdir(at("f"), 0755));
	T(truncate(at("d"), 0));
	T(truncate(at("none"), 0));
	T(truncate(at("f"), -1));
}

CASE(directories)
{
	char buf[8];
	int fd;

	T(mkdir(at("d"), 0755));
	fd = T(open(at("d"), O_RDONLY));
	T(read(fd, buf, 8));
	T(pread(fd, buf, 8, 0));
	T(write(fd, buf, 8));
	T(ftruncate(fd, 0));
	T(fsync(fd));
	T(close(fd));
	fd = T(open(at("d"), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	T(fcntl(fd, F_GETFD));
	T(openat(fd, "f", O_RDWR | O_CREAT, 0644));
	T(open(at("d"), O_DIRECTORY | O_CREAT, 0644));
	T(open(at(""), O_RDONLY | O_DIRECTORY));
}

CASE(no_follow_and_path)
{
	struct stat st;
	char buf[8];
	int fd;

	make("f", "hello");
	T(symlink("f", at("l")));
	T(open(at("l"), O_RDONLY | O_NOFOLLOW));
	T(open(at("f"), O_RDONLY | O_NOFOLLOW));
	fd = T(open(at("f"), O_PATH));
	T(fstat(fd, &st));
	say("size %ld mode %o\n", (long)st.st_size, st.st_mode);
	T(read(fd, buf, 1));
	T(write(fd, buf, 1));
	T(lseek(fd, 0, SEEK_SET));
	fd = T(open(at("l"), O_PATH | O_NOFOLLOW));
	T(fstat(fd, &st));
	say("type %o\n", st.st_mode & S_IFMT);
	T(readlinkat(fd, "", buf, sizeof buf));
}

CASE(modes_and_umask)
{
	static const mode_t masks[] = { 0, 022, 077, 0777 },
			    modes[] = { 0644, 0600, 0777, 0, 0444, 04755, 02711 };
	struct stat st;
	char name[32];

	for (int m = 0; m < 4; m++)
		for (int i = 0; i < 7; i++) {
			umask(masks[m]);
			snprintf(name, sizeof name, "f%d%d", m, i);
			int fd = open(at(name), O_RDWR | O_CREAT, modes[i]);
			fstat(fd, &st);
			say("%o under %o: %o, written %zd\n", modes[i], masks[m], st.st_mode,
			    write(fd, "x", 1));
			close(fd);
			stat(at(name), &st);
			say("%o\n", st.st_mode);
		}
}

CASE(unwritable_for_a_user)
{
	char buf[4];

	if (geteuid()) {
		say("not root\n");
		return;
	}
	make("secret", "s");
	T(chmod(at("secret"), 0600));
	make("readable", "r");
	make("open", "o");
	T(chmod(at("open"), 0666));
	T(seteuid(65534));
	T(open(at("secret"), O_RDONLY));
	T(open(at("readable"), O_RDWR));
	T(open(at("new"), O_RDWR | O_CREAT, 0644));
	T(unlink(at("readable")));
	T(rename(at("readable"), at("x")));
	T(chmod(at("readable"), 0777));
	T(truncate(at("readable"), 0));
	T(access(at("secret"), R_OK));
	T(faccessat(AT_FDCWD, at("secret"), R_OK, AT_EACCESS));
	T(euidaccess(at("secret"), R_OK));
	T(read(open(at("readable"), O_RDONLY), buf, 4));
	T(write(open(at("open"), O_WRONLY), "user", 4));
	T(write(open(at("open"), O_WRONLY | O_APPEND), "user", 4));
	T(seteuid(0));
	show("open");
	show("secret");
}

CASE(write_only_and_read_only_files)
{
	int fd = T(open(at("f"), O_WRONLY | O_CREAT, 0200));
	char buf[8];

	T(write(fd, "abc", 3));
	T(pwrite(fd, "X", 1, 1));
	T(close(fd));
	fd = T(open(at("g"), O_RDWR | O_CREAT | O_EXCL, 0400));
	T(write(fd, "abc", 3));
	T(pread(fd, buf, 3, 0));
	T(close(fd));
	show("f");
	show("g");
}

CASE(lowest_descriptor)
{
	int a = T(open(at("a"), O_RDWR | O_CREAT, 0644)), b = T(open(at("b"), O_RDWR | O_CREAT, 0644));

	T(write(a, "x", 1));
	T(close(a));
	T(open(at("c"), O_RDWR | O_CREAT, 0644));
	T(close(0));
	T(open(at("d"), O_RDWR | O_CREAT, 0644));
	T(write(0, "zero", 4));
	T(lseek(0, 0, SEEK_SET));
	T(dup(b));
	show("d");
}

/*
 * The library needs some descriptors of its own: a program that keeps well below its limit does not notice.
 */
CASE(descriptor_limit)
{
	struct rlimit rl = {64, 64};
	char name[8];
	int fds[10];

	T(setrlimit(RLIMIT_NOFILE, &rl));
	for (int i = 0; i < 10; i++) {
		snprintf(name, sizeof name, "f%d", i);
		fds[i] = T(open(at(name), O_RDWR | O_CREAT, 0644));
		T(write(fds[i], name, 2));
	}
	for (int i = 0; i < 10; i++)
		T(pread(fds[i], name, 8, 0));
	T(close(fds[3]));
	T(open(at("new"), O_RDWR | O_CREAT, 0644));
	T(fcntl(1, F_DUPFD, 40) >= 40);
	T(fcntl(1, F_DUPFD, 64));
}

CASE(close_everything_from_three_up)
{
	int fd = T(open(at("f"), O_RDWR | O_CREAT, 0644));

	T(write(fd, "one", 3));
	for (int i = 3; i < 5000; i++)
		close(i);
	fd = T(open(at("f"), O_RDWR | O_APPEND));
	T(write(fd, "two", 3));
	closefrom(3);
	fd = T(open(at("f"), O_RDWR | O_APPEND));
	T(write(fd, "three", 5));
	T(close_range(3, ~0U, 0));
	fd = T(open(at("g"), O_RDWR | O_CREAT | O_APPEND, 0644));
	T(write(fd, "four", 4));
	T(close_range(3, ~0U, CLOSE_RANGE_CLOEXEC));
	T(fcntl(fd, F_GETFD));
	T(write(fd, "five", 4));
	show("f");
	show("g");
}

CASE(unnamed_temporary_file)
{
	char buf[8] = "", path[64];
	int fd = T(open(at(""), O_TMPFILE | O_RDWR, 0600));

	T(write(fd, "hello", 5));
	T(pread(fd, buf, 5, 0));
	say("%s\n", buf);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	T(linkat(AT_FDCWD, path, AT_FDCWD, at("named"), AT_SYMLINK_FOLLOW));
	T(close(fd));
	show("named");
}

CASE(through_proc_self_fd)
{
	char path[64];
	int fd = T(open(at("f"), O_RDWR | O_CREAT, 0644)), other;

	T(write(fd, "hello", 5));
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	other = T(open(path, O_RDWR));
	T(write(other, "HE", 2));
	T(close(other));
	snprintf(path, sizeof path, "/dev/fd/%d", fd);
	other = T(open(path, O_WRONLY | O_APPEND));
	T(write(other, "!", 1));
	T(close(other));
	T(close(fd));
	show("f");
}
