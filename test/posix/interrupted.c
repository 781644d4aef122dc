// SPDX-License-Identifier: BSD-3-Clause
/*
 * Calls that a signal handler ends: waits that it interrupts or that start again after it, and calls that it
 * jumps out of.
 */
#include "signals.h"

#include <setjmp.h>

/* Until alarms(false), again and again: on a busy machine the first may come before the wait. */
static void alarms(bool on)
{
	every_us(on ? 50000 : 0);
	if (!on)
		say("%s\n", hits ? "alarmed" : "not alarmed");
	hits = 0;
}

/* A child takes the lock, says so, and keeps it until it is killed. */
static pid_t holder(int how)
{
	struct flock fl = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 10, .l_len = 5};
	int ready[2], fd;
	char byte;
	pid_t pid;

	pipe(ready);
	pid = fork();
	if (pid == 0) {
		catch(SIGALRM, SIG_DFL, 0);
		fd = open(at("f"), O_RDWR);
		if (how == LOCK_EX)
			flock(fd, LOCK_EX);
		else
			fcntl(fd, how, &fl);
		write(ready[1], "r", 1);
		alarm(60);
		for (;;)
			pause();
	}
	close(ready[1]);
	read(ready[0], &byte, 1);
	close(ready[0]);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

CASE(alarm_ends_waiting_for_a_lock)
{
	struct flock fl = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 12, .l_len = 1};
	pid_t pid;
	int fd;

	make("f", "locked");
	fd = open(at("f"), O_RDWR);
	catch(SIGALRM, count, 0);
	pid = holder(F_SETLK);
	alarms(true);
	T(fcntl(fd, F_SETLKW, &fl));
	alarms(false);
	T(lseek(fd, 12, SEEK_SET));
	alarms(true);
	T(lockf(fd, F_LOCK, 1));
	alarms(false);
	end(pid);
	pid = holder(F_OFD_SETLK);
	alarms(true);
	T(fcntl(fd, F_OFD_SETLKW, &fl));
	alarms(false);
	end(pid);
	pid = holder(LOCK_EX);
	alarms(true);
	T(flock(fd, LOCK_EX));
	alarms(false);
	end(pid);
	T(flock(fd, LOCK_EX));
	T(fcntl(fd, F_SETLKW, &fl));
	T(write(fd, "after", 5));
	T(close(fd));
	nothing_blocked();
}

static volatile pid_t holding;

static void release(int sig)
{
	(void)sig;
	if (++hits == 3)
		kill(holding, SIGKILL);
}

/* The handler ends who has the lock: then the call, which started again, gets it. */
CASE(alarm_restarts_waiting_for_a_lock)
{
	struct flock fl = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 12, .l_len = 1};
	int fd;

	make("f", "locked");
	fd = open(at("f"), O_RDWR);
	catch(SIGALRM, release, SA_RESTART);
	holding = holder(F_SETLK);
	alarms(true);
	T(fcntl(fd, F_SETLKW, &fl));
	alarms(false);
	T(waitpid(holding, NULL, 0) == holding);
	holding = holder(LOCK_EX);
	alarms(true);
	T(flock(fd, LOCK_EX));
	alarms(false);
	T(waitpid(holding, NULL, 0) == holding);
	T(close(fd));
}

CASE(alarm_ends_other_waits)
{
	int fds[2], fd = open(at("f"), O_RDWR | O_CREAT, 0644);
	char byte;

	write(fd, "x", 1);
	pipe(fds);
	catch(SIGALRM, count, 0);
	alarms(true);
	T(read(fds[0], &byte, 1));
	alarms(false);
	alarms(true);
	T(pause());
	alarms(false);
	T(mkfifo(at("fifo"), 0600));
	alarms(true);
	T(open(at("fifo"), O_WRONLY));
	alarms(false);
	alarms(true);
	T(open(at("fifo"), O_RDONLY));
	alarms(false);
	T(write(fd, "y", 1));
	T(close(fd));
	nothing_blocked();
}

/* ---- handlers that do not return ---- */

static sigjmp_buf back;
static volatile bool may_jump;

static void jumps(int sig)
{
	(void)sig;
	hits++;
	if (may_jump)
		siglongjmp(back, 1);
}

CASE(handler_jumps_out)
{
	int volatile busy_fd;
	char line[LINE];
	int volatile fd, rounds = 0;
	struct stat st;

	start("lines");
	busy_fd = open(at("busy"), O_RDWR | O_CREAT, 0644);
	memset(line, 'm', sizeof line);
	catch(SIGALRM, jumps, 0);
	every_us(1000);
	while (rounds < 200) {
		if (sigsetjmp(back, 1)) {
			rounds++;
			continue;
		}
		may_jump = true;
		for (;;) { /* until the jump */
			pwrite(busy_fd, line, sizeof line, rounds * LINE);
			pread(busy_fd, line, sizeof line, 0);
			fstat(busy_fd, &st);
			close(dup(busy_fd));
		}
	}
	may_jump = false;
	every_us(0);
	T(write(busy_fd, "end\n", 4));
	T(fsync(busy_fd));
	T(fstat(busy_fd, &st));
	T(close(busy_fd));
	fd = open(at("busy"), O_RDWR);
	T(read(fd, line, 4));
	say("%.4s", line);
	T(close(fd));
	/* Nobody has it open any more, and its data go with it. */
	T(unlink(at("busy")));
	append_line('m');
	check_lines("lines");
	nothing_blocked();
}

/* The classic: a lock with a time limit. */
CASE(handler_jumps_out_of_a_wait_for_a_lock)
{
	struct flock fl = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 12, .l_len = 1};
	pid_t pid;
	int fd;

	make("f", "locked");
	fd = open(at("f"), O_RDWR);
	pid = holder(F_SETLK);
	catch(SIGALRM, jumps, 0);
	may_jump = true;
	if (!sigsetjmp(back, 1)) {
		every_us(50000);
		fcntl(fd, F_SETLKW, &fl);
		say("not reached\n");
	}
	every_us(0);
	end(pid);
	T(write(fd, "more", 4));
	T(close(fd));
	show("f");
	T(unlink(at("f")));
	nothing_blocked();
}
