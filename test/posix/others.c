/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What other processes do to a file that this one has open: its size, as stat tells it, when all is closed.
 */
#include "posix.h"

#include <signal.h>

static void truncate_elsewhere(const char *name, off_t size)
{
	IN_CHILD(execl("/usr/bin/truncate", "truncate", "-s", size ? "5000" : "0", at(name), NULL));
}

static void size_after_truncation(bool write_before, off_t size)
{
	char text[70000];
	struct stat st;
	int fd;

	memset(text, 'x', sizeof text);
	fd = open(at("f"), O_RDWR | O_CREAT, 0644);
	T(write(fd, text, sizeof text));
	T(close(fd));
	fd = open(at("f"), O_RDWR);
	if (write_before)
		T(pwrite(fd, "before", 6, 100));
	truncate_elsewhere("f", size);
	T(pwrite(fd, "after", 5, size + 35));
	T(close(fd));
	T(stat(at("f"), &st));
	say("%lld bytes\n", (long long)st.st_size);
	show("f");
}

CASE(written_after_another_has_emptied_it) { size_after_truncation(false, 0); }
CASE(written_before_and_after_another_has_emptied_it) { size_after_truncation(true, 0); }
CASE(written_after_another_has_cut_it) { size_after_truncation(false, 5000); }
CASE(written_before_and_after_another_has_cut_it) { size_after_truncation(true, 5000); }

/* Two processes of one host that have the file open all the time, and tell each other by pipes alone. */
static void dialogue(int flags, void (*speak)(int fd, int turn), off_t scan_container)
{
	int ask[2], answer[2], fd;
	char buf[64], c;

	make("f", "0123456789");
	fd = open(at("f"), flags);
	T(pread(fd, buf, 10, 0));
	pipe(ask);
	pipe(answer);
	if (!fork()) {
		int mine = open(at("f"), O_RDWR);

		close(ask[1]);
		for (int turn = 0; read(ask[0], &c, 1) == 1; turn++) {
			speak(mine, turn);
			write(answer[1], "", 1);
		}
		_exit(0);
	}
	close(ask[0]);
	for (int turn = 0; turn < 12; turn++) {
		ssize_t n;

		write(ask[1], "", 1);
		read(answer[0], &c, 1);
		memset(buf, 0, sizeof buf);
		n = pread(fd, buf, 10, scan_container);
		say("turn %d: %zd %.10s\n", turn, n, buf);
		if (turn == 5 && flags == O_RDWR)
			T(pwrite(fd, "mine", 4, scan_container + 3));
	}
	close(ask[1]);
	wait(NULL);
}

static void overwrite(int fd, int turn)
{
	char text[11];

	snprintf(text, sizeof text, "turn %05d", turn);
	pwrite(fd, text, 10, 0);
}

static void overwrite_in_order(int fd, int turn)
{
	static const char letters[] = "abcdefghijkl";

	pwrite(fd, letters + turn, 1, turn);
}

static void overwrite_much(int fd, int turn)
{
	static char text[200000];

	memset(text, 'a' + turn, sizeof text);
	pwrite(fd, text, sizeof text, 0);
}

static void overwrite_and_close(int fd, int turn)
{
	(void)fd;
	fd = open(at("f"), O_RDWR);
	overwrite(fd, turn);
	close(fd);
}

static void cut_and_grow(int fd, int turn)
{
	ftruncate(fd, turn % 4 == 3 ? 0 : turn % 2 ? 5 : 7);
	ftruncate(fd, 10);
	if (turn % 3)
		pwrite(fd, "x", 1, turn % 10);
}

static void by_a_new_process(int fd, int turn)
{
	IN_CHILD(close(fd); overwrite_and_close(-1, turn));
}

CASE(writes_are_seen_while_all_have_it_open) { dialogue(O_RDWR, overwrite, 0); }
CASE(writes_are_seen_by_one_who_only_reads) { dialogue(O_RDONLY, overwrite, 0); }
CASE(writes_that_continue_one_another_are_seen) { dialogue(O_RDONLY, overwrite_in_order, 2); }
CASE(long_writes_are_seen) { dialogue(O_RDWR, overwrite_much, 0); }
CASE(writes_that_are_closed_are_seen) { dialogue(O_RDWR, overwrite_and_close, 0); }
CASE(truncations_are_seen) { dialogue(O_RDWR, cut_and_grow, 0); }
CASE(writes_of_new_processes_are_seen) { dialogue(O_RDONLY, by_a_new_process, 0); }

CASE(the_end_is_seen)
{
	int go[2], fd = open(at("f"), O_RDWR | O_CREAT, 0644);
	pid_t writers[6];
	char c;

	pwrite(fd, "0123456789", 10, 0);
	pipe(go);
	T(lseek(fd, 0, SEEK_END));
	for (int turn = 1; turn < 6; turn++) {
		writers[turn] = fork();
		if (!writers[turn]) {
			int mine = open(at("f"), O_RDWR);

			pwrite(mine, "y", 1, 100 * turn);
			write(go[1], "", 1);
			pause();
		}
		read(go[0], &c, 1);
		T(lseek(fd, 0, SEEK_END));
	}
	/* Not the group: timeout is in it, and sometimes takes the signal for the exit code. */
	for (int turn = 1; turn < 6; turn++)
		if (writers[turn] > 0)
			kill(writers[turn], SIGTERM);
	while (wait(NULL) > 0)
		;
}

/* rsync and make look at nothing else, and a writer that is killed has no later moment. */
CASE(an_overwrite_shows_in_the_time_of_modification_though_its_writer_is_killed)
{
	static const struct timespec old[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
	char text[100000];
	struct stat st;

	memset(text, 'A', sizeof text);
	make("f", "");
	for (unsigned len = 1; len <= sizeof(text); len *= 10) {
		int fd = open(at("f"), O_RDWR);

		T(pwrite(fd, text, len, 0));
		T(close(fd));
		T(utimensat(AT_FDCWD, at("f"), old, 0));
		IN_CHILD(fd = open(at("f"), O_RDWR); pwrite(fd, text, len, 0); kill(getpid(), SIGKILL));
		T(stat(at("f"), &st));
		say("%s\n", st.st_mtime == 1000000000 ? "old" : "new");
		IN_CHILD(fd = open(at("f"), O_RDWR); pwrite(fd, text, len, 0); futimens(fd, old);
			 pwrite(fd, text, 1, 0); kill(getpid(), SIGKILL));
		T(stat(at("f"), &st));
		say("%s\n", st.st_mtime == 1000000000 ? "old" : "new");
	}
}

CASE(a_growth_after_50_ms_shows_in_the_time_of_modification_though_its_writer_is_killed)
{
	static const struct timespec old[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
	struct stat st;

	make("f", "");
	T(truncate(at("f"), 5 << 20)); /* what is written behind them goes to a log */
	T(utimensat(AT_FDCWD, at("f"), old, 0));
	IN_CHILD(int fd = open(at("f"), O_WRONLY); pwrite(fd, "line", 4, 5 << 20);
		 utimensat(AT_FDCWD, at("f"), old, 0); usleep(60000); pwrite(fd, "next", 4, (5 << 20) + 4);
		 kill(getpid(), SIGKILL));
	T(stat(at("f"), &st));
	say("%jd bytes, %s\n", (intmax_t)st.st_size, st.st_mtime == 1000000000 ? "old" : "new");
}

/* Whether "f" is older than a file that is made now, before @fd is closed. */
static void marker_after(int fd, bool looked_at)
{
	struct stat st, marker;

	usleep(100000);
	make("marker", "");
	usleep(50000);
	if (looked_at)
		stat(at("f"), &st);
	close(fd);
	stat(at("f"), &st);
	stat(at("marker"), &marker);
	say("%s\n", st.st_mtim.tv_sec < marker.st_mtim.tv_sec ||
			    (st.st_mtim.tv_sec == marker.st_mtim.tv_sec &&
			     st.st_mtim.tv_nsec < marker.st_mtim.tv_nsec) ?
			    "older" : "newer");
	unlink(at("marker"));
}

CASE(the_time_of_modification_is_that_of_the_last_write)
{
	static char buf[500000];
	int fd;

	for (int looked_at = 0; looked_at < 2; looked_at++) {
		fd = open(at("f"), O_RDWR | O_CREAT | O_TRUNC, 0644);
		for (int i = 0; i < 20; i++)
			T(write(fd, buf, sizeof(buf)));
		marker_after(fd, looked_at);
		fd = open(at("f"), O_RDWR);
		T(pwrite(fd, "over", 4, 6000000));
		marker_after(fd, looked_at);
		fd = open(at("f"), O_WRONLY | O_APPEND);
		T(write(fd, "line", 4));
		marker_after(fd, looked_at);
	}
}

CASE(the_time_of_modification_of_two_writers_is_the_later_one)
{
	struct stat st, then;
	int fd;

	make("f", "");
	T(truncate(at("f"), 6 << 20));
	fd = T(open(at("f"), O_RDWR));
	T(pwrite(fd, "here", 4, 5 << 20));
	usleep(100000);
	IN_CHILD(close(fd); fd = open(at("f"), O_RDWR); pwrite(fd, "there", 5, (5 << 20) + 100000);
		 close(fd));
	T(stat(at("f"), &then));
	usleep(100000);
	T(close(fd));
	T(stat(at("f"), &st));
	say("%s\n", st.st_mtim.tv_sec == then.st_mtim.tv_sec && st.st_mtim.tv_nsec == then.st_mtim.tv_nsec ?
			    "as the other left it" : "another");
}
