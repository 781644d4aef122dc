/* SPDX-License-Identifier: BSD-3-Clause */
/* Advisory locks of all kinds between processes, and what a lock makes visible. */
#include "posix.h"
#include <limits.h>

static struct flock lock(int type, off_t start, off_t len)
{
	return (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = len};
}

static void say_lock(const struct flock *fl)
{
	say("type %d whence %d start %ld len %ld %s\n", fl->l_type, fl->l_whence, (long)fl->l_start,
	    (long)fl->l_len,
	    fl->l_pid == getppid() ? "by the parent" :
	    fl->l_pid == -1	   ? "by a description" :
				     "");
}

CASE(record_locks_between_processes)
{
	struct flock fl = lock(F_WRLCK, 10, 20);
	int fd = T(rw("f"));

	T(write(fd, "0123456789012345678901234567890123456789", 40));
	T(fcntl(fd, F_SETLK, &fl));
	fl = lock(F_RDLCK, 0, 0);
	T(fcntl(fd, F_GETLK, &fl));
	say_lock(&fl);
	IN_CHILD(fl = lock(F_RDLCK, 0, 0); T(fcntl(fd, F_GETLK, &fl)); say_lock(&fl);
		 fl = lock(F_WRLCK, 29, 1); T(fcntl(fd, F_SETLK, &fl)); fl = lock(F_WRLCK, 30, 0);
		 T(fcntl(fd, F_SETLK, &fl)); fl = lock(F_WRLCK, 0, 10); T(fcntl(fd, F_SETLK, &fl));
		 fl = lock(F_RDLCK, 0, 11); T(fcntl(fd, F_SETLK, &fl)));
	fl = lock(F_UNLCK, 0, 0);
	T(fcntl(fd, F_SETLK, &fl));
	IN_CHILD(fl = lock(F_WRLCK, 0, 0); T(fcntl(fd, F_GETLK, &fl)); say_lock(&fl);
		 T(fcntl(fd, F_SETLK, &fl)));
}

CASE(locks_relative_to_the_offset_and_the_end)
{
	struct flock fl;
	int fd = T(rw("f"));

	T(write(fd, "0123456789", 10));
	T(lseek(fd, 4, SEEK_SET));
	fl = (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_CUR, .l_start = 1, .l_len = 2};
	T(fcntl(fd, F_SETLK, &fl));
	fl = (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_END, .l_start = -1, .l_len = 5};
	T(fcntl(fd, F_SETLK, &fl));
	fl = (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_CUR, .l_start = -1, .l_len = -2};
	T(fcntl(fd, F_SETLK, &fl));
	for (int i = 0; i < 16; i++)
		IN_CHILD(fl = lock(F_WRLCK, i, 1); fcntl(fd, F_GETLK, &fl);
			 say("%d: %d %ld %ld\n", i, fl.l_type, (long)fl.l_start, (long)fl.l_len));
	fl = (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_CUR, .l_start = -5, .l_len = 1};
	T(fcntl(fd, F_SETLK, &fl));
	fl = (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_END, .l_start = -11, .l_len = 1};
	T(fcntl(fd, F_SETLK, &fl));
	fl = (struct flock){.l_type = F_WRLCK, .l_whence = 9};
	T(fcntl(fd, F_SETLK, &fl));
	fl = lock(F_WRLCK, LONG_MAX, 1);
	T(fcntl(fd, F_SETLK, &fl));
	IN_CHILD(fl = lock(F_WRLCK, LONG_MAX, 1); T(fcntl(fd, F_SETLK, &fl));
		 fl = lock(F_WRLCK, LONG_MAX - 5000, 1); T(fcntl(fd, F_SETLK, &fl)));
	fl = lock(F_UNLCK, LONG_MAX, 1);
	T(fcntl(fd, F_SETLK, &fl));
	IN_CHILD(fl = lock(F_WRLCK, LONG_MAX, 1); T(fcntl(fd, F_SETLK, &fl)));
	fl = (struct flock){.l_type = 9};
	T(fcntl(fd, F_SETLK, &fl));
	T(fcntl(fd, F_SETLK, NULL));
}

CASE(locks_go_with_a_close)
{
	struct flock fl = lock(F_WRLCK, 0, 0);
	int fd = T(rw("f")), other = T(rw("f"));

	T(fcntl(fd, F_SETLK, &fl));
	IN_CHILD(fl = lock(F_WRLCK, 0, 0); T(fcntl(fd, F_SETLK, &fl)));
	T(close(other));
	IN_CHILD(fl = lock(F_WRLCK, 0, 0); T(fcntl(fd, F_SETLK, &fl)));
}

/*
 * The library has its own descriptors of the same file: closing them must not take the program's locks away.
 */
CASE(locks_survive_reads_writes_and_syncs)
{
	struct flock fl = lock(F_WRLCK, 0, 0);
	struct stat st;
	char buf[4];
	int fd = T(rw("f"));

	T(fcntl(fd, F_SETLK, &fl));
	T(write(fd, "abc", 3));
	T(pread(fd, buf, 3, 0));
	T(fsync(fd));
	T(fstat(fd, &st));
	T(stat(at("f"), &st));
	T(ftruncate(fd, 0));
	T(write(fd, "x", 1));
	T(chmod(at("f"), 0600));
	T(utimensat(AT_FDCWD, at("f"), NULL, 0));
	T(fork() ? wait(NULL) > 0 : (_exit(0), 0));
	IN_CHILD(fl = lock(F_WRLCK, 0, 0); T(fcntl(fd, F_SETLK, &fl)));
}

CASE(locks_survive_a_truncation_by_name)
{
	struct flock fl = lock(F_WRLCK, 0, 0);
	struct stat st;
	int fd = T(rw("f"));

	T(write(fd, "0123456789", 10));
	T(fcntl(fd, F_SETLK, &fl));
	T(truncate(at("f"), 5));
	T(truncate(at("f"), 100000));
	T(truncate(at("f"), -1));
	T(fstat(fd, &st));
	say("size %ld\n", (long)st.st_size);
	IN_CHILD(fl = lock(F_WRLCK, 0, 0); T(fcntl(fd, F_SETLK, &fl)); T(truncate(at("f"), 7)));
	T(fstat(fd, &st));
	say("size %ld\n", (long)st.st_size);
	T(truncate(at("f/x"), 1));
	T(truncate(at("none"), 1));
	T(truncate(at("."), 1));
	T(symlink("f", at("l")));
	T(truncate(at("l"), 3));
	IN_CHILD(fl = lock(F_WRLCK, 0, 0); T(fcntl(fd, F_SETLK, &fl)));
}

CASE(waiting_locks_order_a_counter)
{
	char buf[16];
	int fd;

	make("n", "0");
	for (int p = 0; p < 4; p++)
		if (fork() == 0) {
			fd = open(at("n"), O_RDWR);
			for (int i = 0; i < 50; i++) {
				struct flock fl = lock(F_WRLCK, 0, 0), un = lock(F_UNLCK, 0, 0);
				ssize_t len;
				fcntl(fd, F_SETLKW, &fl);
				len = pread(fd, buf, 15, 0);
				buf[len > 0 ? len : 0] = 0;
				len = snprintf(buf, sizeof buf, "%d", atoi(buf) + 1);
				pwrite(fd, buf, len, 0);
				fcntl(fd, F_SETLK, &un);
			}
			_exit(0);
		}
	while (wait(NULL) > 0)
		;
	show("n");
}

static void count_with(void (*take)(int), void (*give)(int))
{
	char buf[16];

	make("n", "0");
	for (int p = 0; p < 4; p++)
		if (fork() == 0) {
			int fd = open(at("n"), O_RDWR);
			for (int i = 0; i < 50; i++) {
				ssize_t len;
				take(fd);
				len = pread(fd, buf, 15, 0);
				buf[len > 0 ? len : 0] = 0;
				len = snprintf(buf, sizeof buf, "%d", atoi(buf) + 1);
				pwrite(fd, buf, len, 0);
				give(fd);
			}
			_exit(0);
		}
	while (wait(NULL) > 0)
		;
	show("n");
}

static void take_flock(int fd) { flock(fd, LOCK_EX); }
static void give_flock(int fd) { flock(fd, LOCK_UN); }
static void take_lockf(int fd) { lseek(fd, 0, SEEK_SET), lockf(fd, F_LOCK, 0); }
static void give_lockf(int fd) { lseek(fd, 0, SEEK_SET), lockf(fd, F_ULOCK, 0); }
static void take_ofd(int fd)
{
	struct flock fl = lock(F_WRLCK, 0, 0);
	fcntl(fd, F_OFD_SETLKW, &fl);
}
static void give_ofd(int fd)
{
	struct flock fl = lock(F_UNLCK, 0, 0);
	fcntl(fd, F_OFD_SETLK, &fl);
}

CASE(flock_orders_a_counter) { count_with(take_flock, give_flock); }
CASE(lockf_orders_a_counter) { count_with(take_lockf, give_lockf); }
CASE(description_locks_order_a_counter) { count_with(take_ofd, give_ofd); }

CASE(description_locks)
{
	struct flock fl = lock(F_WRLCK, 5, 5);
	int a = T(rw("f")), b = T(rw("f"));

	T(fcntl(a, F_OFD_SETLK, &fl));
	fl = lock(F_WRLCK, 0, 0);
	T(fcntl(b, F_OFD_GETLK, &fl));
	say_lock(&fl);
	fl = lock(F_WRLCK, 9, 1);
	T(fcntl(b, F_OFD_SETLK, &fl));
	fl = lock(F_WRLCK, 10, 1);
	T(fcntl(b, F_OFD_SETLK, &fl));
	IN_CHILD(fl = lock(F_WRLCK, 5, 1); T(fcntl(a, F_OFD_SETLK, &fl)); T(fcntl(b, F_OFD_SETLK, &fl)));
	T(close(a));
	fl = lock(F_WRLCK, 0, 0);
	T(fcntl(b, F_OFD_SETLK, &fl));
}

CASE(flock_of_two_descriptions)
{
	int a = T(rw("f")), b = T(rw("f")), c = T(dup(a));

	T(flock(a, LOCK_EX));
	T(flock(b, LOCK_EX | LOCK_NB));
	T(flock(b, LOCK_SH | LOCK_NB));
	T(flock(c, LOCK_SH));
	T(flock(b, LOCK_SH | LOCK_NB));
	T(flock(c, LOCK_UN));
	T(flock(b, LOCK_EX | LOCK_NB));
	T(flock(b, 77));
	IN_CHILD(T(flock(b, LOCK_UN)));
	T(flock(a, LOCK_EX | LOCK_NB));
	T(close(a));
	T(flock(b, LOCK_EX | LOCK_NB));
	T(close(c));
	T(flock(b, LOCK_EX | LOCK_NB));
}

CASE(lockf_sections)
{
	int fd = T(rw("f"));

	T(write(fd, "0123456789", 10));
	T(lseek(fd, 5, SEEK_SET));
	T(lockf(fd, F_LOCK, 3));
	T(lockf(fd, F_TEST, 3));
	T(lseek(fd, 5, SEEK_SET));
	T(lockf(fd, F_TLOCK, -2));
	IN_CHILD(for (int i = 0; i < 10; i++) {
		lseek(fd, i, SEEK_SET);
		say("%d", lockf(fd, F_TEST, 1));
	} say("\n");
		 lseek(fd, 5, SEEK_SET));
	T(lockf(fd, F_ULOCK, 0));
	IN_CHILD(T(lockf(fd, F_TLOCK, 1)));
	T(lockf(fd, 77, 1));
	T(lockf(99, F_LOCK, 1));
}

CASE(deadlock_is_refused)
{
	int fd = T(rw("f")), ready[2], c;
	struct flock fl = lock(F_WRLCK, 0, 1);
	char b;

	T(pipe(ready));
	T(fcntl(fd, F_SETLK, &fl));
	c = fork();
	if (c == 0) {
		fl = lock(F_WRLCK, 1, 1);
		fcntl(fd, F_SETLK, &fl);
		write(ready[1], "r", 1);
		fl = lock(F_WRLCK, 0, 1);
		fcntl(fd, F_SETLKW, &fl);
		_exit(0);
	}
	read(ready[0], &b, 1);
	usleep(100000);
	fl = lock(F_WRLCK, 1, 1);
	T(fcntl(fd, F_SETLKW, &fl));
	fl = lock(F_UNLCK, 0, 0);
	T(fcntl(fd, F_SETLK, &fl));
	say_child(c);
}

CASE(what_was_written_under_a_lock_is_read_under_the_next)
{
	char buf[8] = "";
	int fd = T(rw("f")), go[2], back[2], c;
	struct flock fl = lock(F_WRLCK, 0, 0), un = lock(F_UNLCK, 0, 0);

	T(write(fd, "0000", 4));
	T(pipe(go));
	T(pipe(back));
	c = fork();
	if (c == 0) {
		int o = open(at("f"), O_RDWR);
		for (int i = 0; i < 3; i++) {
			read(go[0], buf, 1);
			fcntl(o, F_SETLKW, &fl);
			pread(o, buf, 4, 0);
			say("child %s\n", buf);
			snprintf(buf, sizeof buf, "c%03d", i);
			pwrite(o, buf, 4, 0);
			fcntl(o, F_SETLK, &un);
			write(back[1], "b", 1);
		}
		_exit(0);
	}
	for (int i = 0; i < 3; i++) {
		fcntl(fd, F_SETLKW, &fl);
		pread(fd, buf, 4, 0);
		say("parent %s\n", buf);
		snprintf(buf, sizeof buf, "p%03d", i);
		pwrite(fd, buf, 4, 0);
		fcntl(fd, F_SETLK, &un);
		write(go[1], "g", 1);
		read(back[0], buf, 1);
	}
	say_child(c);
	show("f");
}

/* Closing any descriptor of a file takes its record locks away; opening one must not. */
CASE(record_locks_outlive_other_opens)
{
	static const int flags[] = { O_RDONLY, O_WRONLY | O_APPEND, O_RDWR | O_APPEND, O_RDWR | O_CREAT,
				     O_WRONLY | O_TRUNC };
	struct flock lk = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 20, .l_len = 8};
	int fd = open(at("f"), O_RDWR | O_CREAT, 0644), ap = open(at("f"), O_WRONLY | O_APPEND);

	T(fcntl(fd, F_SETLK, &lk));
	for (unsigned i = 0; i < sizeof flags / sizeof *flags; i++) {
		int other = open(at("f"), flags[i], 0644);

		if (other >= 0 && (flags[i] & O_ACCMODE) != O_RDONLY)
			T(write(other, "0123456789", 10));
		T(write(ap, "appended", 8));
		IN_CHILD({
			T(fcntl(fd, F_GETLK, &lk));
			say("%s\n", lk.l_type == F_WRLCK ? "locked" : "not locked");
		});
	}
	show("f");
}
