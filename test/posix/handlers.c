// SPDX-License-Identifier: BSD-3-Clause
/*
 * Signal handlers that come in the middle of calls on files, and call the same functions: nothing may hang,
 * be lost or be torn. The timer hits all sorts of moments; what is printed does not depend on which.
 * Needs glibc 2.34: close_range.
 */
#include "signals.h"

#include <pthread.h>
#include <spawn.h>

static void handler_appends(int sig)
{
	int saved = errno;

	(void)sig;
	append_line('h');
	hits++;
	errno = saved;
}

/* All sorts of calls, on other files and on the shared one. */
static void work(int nr)
{
	char name[2][600], buf[512];
	struct stat st;
	int fd, i, wrong = 0;

	snprintf(name[0], sizeof name[0], "%s/work%d", dir, nr);
	snprintf(name[1], sizeof name[1], "%s/moved%d", dir, nr);
	memset(buf, 'w', sizeof buf);
	for (i = 0; !stop; i++) {
		append_line('m');
		fd = open(name[0], O_RDWR | O_CREAT | O_TRUNC, 0644);
		wrong += write(fd, buf, sizeof buf) != sizeof buf;
		wrong += pwrite(fd, buf, 100, 1000) != 100;
		wrong += pread(fd, buf, 512, 0) != 512 || buf[511] != 'w';
		wrong += lseek(fd, 0, SEEK_END) != 1100;
		wrong += fstat(fd, &st) || st.st_size != 1100;
		wrong += i % 16 == 0 && fsync(fd);
		wrong += ftruncate(fd, 600) != 0;
		wrong += close(dup(fd)) != 0;
		wrong += close(fd) != 0;
		wrong += stat(name[0], &st) || st.st_size != 600;
		wrong += rename(name[0], name[1]) || chmod(name[1], 0600) || unlink(name[1]);
	}
	say("worker: %d wrong\n", wrong);
}

static void *worker(void *arg)
{
	work((int)(intptr_t)arg);
	return NULL;
}

static void *stopper(void *arg)
{
	for (int ms = 0; hits < (int)(intptr_t)arg && ms < 15000; ms++)
		usleep(1000);
	stop = true;
	return NULL;
}

/* By this thread; the one that waits for enough of them has them blocked. */
static void work_under_alarms(void (*handler)(int), long us, intptr_t enough)
{
	pthread_t t;
	sigset_t set;

	start("lines");
	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	pthread_create(&t, NULL, stopper, (void *)enough);
	catch(SIGALRM, handler, SA_RESTART);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	every_us(us);
	work(0);
	every_us(0);
	pthread_join(t, NULL);
}

CASE(handler_appends_to_what_main_appends_to)
{
	work_under_alarms(handler_appends, 1000, 300);
	say("%s\n", hits >= 300 ? "enough hits" : "few hits");
	T(close(shared_fd));
	check_lines("lines");
	nothing_blocked();
}

CASE(handler_appends_among_four_threads)
{
	pthread_t t[4];

	start("lines");
	catch(SIGALRM, handler_appends, SA_RESTART);
	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, worker, (void *)(intptr_t)i);
	every_us(1000);
	stopper((void *)300);
	every_us(0);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	T(close(shared_fd));
	check_lines("lines");
}

static volatile int made;

static void handler_makes_file(int sig)
{
	int saved = errno, fd;
	char name[600];

	(void)sig;
	snprintf(name, sizeof name, "%s/made%d", dir, made);
	fd = open(name, O_WRONLY | O_CREAT | O_EXCL, 0644);
	if (fd >= 0 && write(fd, "made\n", 5) == 5 && !close(fd))
		made++;
	hits++;
	errno = saved;
}

CASE(handler_makes_files)
{
	struct stat st;
	char name[16];
	int whole = 0;

	work_under_alarms(handler_makes_file, 10000, 100);
	for (int i = 0; i < made; i++) {
		snprintf(name, sizeof name, "made%d", i);
		whole += !stat(at(name), &st) && st.st_size == 5 && !unlink(at(name));
	}
	say("%s\n", made == hits && whole == made ? "all made" : "not all made");
	check_lines("lines");
}

static volatile int born, reaped;

static void handler_forks(int sig)
{
	int saved = errno;
	pid_t pid;

	(void)sig;
	if (born < 20) {
		pid = fork();
		if (pid == 0) {
			append_line('h');
			_exit(0);
		}
		born += pid > 0;
	}
	hits++;
	errno = saved;
}

static void handler_reaps(int sig)
{
	int saved = errno, status;

	(void)sig;
	while (waitpid(-1, &status, WNOHANG) > 0)
		reaped += status == 0;
	errno = saved;
}

CASE(handler_forks_and_child_writes)
{
	char byte;
	int i, fd;

	start("lines");
	fd = open(at("other"), O_RDWR | O_CREAT, 0644);
	catch(SIGCHLD, handler_reaps, SA_RESTART);
	catch(SIGALRM, handler_forks, SA_RESTART);
	every_us(5000);
	for (i = 0; reaped < 20 && i < 1000000; i++) {
		append_line('m');
		pwrite(fd, "x", 1, i);
		pread(fd, &byte, 1, i);
	}
	every_us(0);
	while (reaped < born)
		usleep(1000);
	say("born %d, reaped %d\n", born, reaped);
	written[1] = born;
	T(close(fd));
	T(close(shared_fd));
	check_lines("lines");
	T(unlink(at("other")));
}

/* What a section blocks must not be inherited by another program. */
CASE(children_start_with_nothing_blocked)
{
	static char *const argv[] = { "grep", "-q", "SigBlk:[[:space:]]*0000000000000000",
				      "/proc/self/status", NULL };
	int status, fine[3] = {0};
	pid_t pid;

	start("lines");
	catch(SIGALRM, handler_appends, SA_RESTART);
	every_us(1000);
	for (int i = 0; i < 60; i++) {
		append_line('m');
		if (i % 3 == 0) {
			posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ);
		} else if (i % 3 == 1 && (pid = fork()) == 0) {
			append_line('m'); /* so that exec has something to end */
			execvp(argv[0], argv);
			_exit(127);
		} else if (i % 3 == 2 && (pid = vfork()) == 0) {
			execvp(argv[0], argv);
			_exit(127);
		}
		written[0] += i % 3 == 1;
		while (waitpid(pid, &status, 0) < 0)
			;
		fine[i % 3] += status == 0;
	}
	every_us(0);
	say("%d %d %d\n", fine[0], fine[1], fine[2]);
	T(close(shared_fd));
	check_lines("lines");
	nothing_blocked();
}

/* ---- no call leaves anything switched off ---- */

static int calls;

/* Make a call, whatever it returns; a signal after it is handled at once. */
#define THEN(call) \
	do { \
		(void)(call); \
		raise(SIGUSR1); \
		if (hits != ++calls) { \
			say("after %s: not handled\n", #call); \
			hits = calls; \
		} \
	} while (0)

static void on_descriptor(int fd)
{
	struct flock fl = {.l_type = F_WRLCK, .l_whence = SEEK_CUR, .l_len = 1};
	struct timespec times[2] = {{1, 0}, {1, 0}};
	struct iovec iov = {(char[]){"vector"}, 6};
	struct stat st;
	char buf[16];
	void *map;

	THEN(write(fd, "0123456789", 10));
	THEN(write(fd, "0123456789", 0));
	THEN(write(fd, NULL, 1));
	THEN(pwrite(fd, "x", 1, -1));
	THEN(pwrite(fd, "x", 1, 20));
	THEN(writev(fd, &iov, 1));
	THEN(pwritev(fd, &iov, 1, 3));
	THEN(pwritev2(fd, &iov, 1, 3, RWF_SYNC));
	THEN(pwritev2(fd, &iov, 1, 3, 1 << 30));
	THEN(lseek(fd, 0, SEEK_SET));
	THEN(lseek(fd, -1, SEEK_SET));
	THEN(lseek(fd, 0, SEEK_HOLE));
	THEN(read(fd, buf, 4));
	THEN(read(fd, NULL, 4));
	THEN(pread(fd, buf, 4, 2));
	THEN(readv(fd, &iov, 1));
	THEN(preadv(fd, &iov, 1, 0));
	THEN(preadv2(fd, &iov, 1, -1, 0));
	THEN(fstat(fd, &st));
	THEN(ftruncate(fd, 15));
	THEN(ftruncate(fd, -1));
	THEN(fallocate(fd, 0, 0, 30));
	THEN(posix_fallocate(fd, 0, 40));
	THEN(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED));
	THEN(readahead(fd, 0, 10));
	THEN(fsync(fd));
	THEN(fdatasync(fd));
	THEN(sync_file_range(fd, 0, 0, 0));
	THEN(syncfs(fd));
	THEN(fchmod(fd, 0600));
	THEN(fchown(fd, -1, -1));
	THEN(futimens(fd, times));
	THEN(fcntl(fd, F_SETLK, &fl));
	THEN(fcntl(fd, F_GETLK, &fl));
	THEN(fcntl(fd, F_SETLK, NULL));
	THEN(lockf(fd, F_TEST, 1));
	THEN(lockf(fd, F_ULOCK, 1));
	THEN(lockf(fd, 99, 1));
	THEN(flock(fd, LOCK_EX));
	THEN(flock(fd, LOCK_UN));
	THEN(flock(fd, 99));
	THEN(fcntl(fd, F_GETFL));
	THEN(fcntl(fd, F_SETFL, O_APPEND));
	THEN(write(fd, "appended", 8));
	THEN(fcntl(fd, 9999));
	THEN(close(dup(fd)));
	THEN(close(fcntl(fd, F_DUPFD, 0)));
	THEN(dup2(fd, 100));
	THEN(dup2(fd, fd));
	THEN(dup3(fd, fd, 0));
	THEN(dup2(fd, -1));
	THEN(dup3(fd, 101, O_CLOEXEC));
	THEN(dup2(2, 100));
	THEN(close(100));
	THEN(close_range(100, 101, 0));
	THEN(map = mmap(NULL, 10, PROT_READ, MAP_PRIVATE, fd, 0));
	THEN(munmap(map, 10));
	THEN(mmap(NULL, 0, PROT_READ, MAP_PRIVATE, fd, 0));
	THEN(dprintf(fd, "%d", 1));
	THEN(fclose(fdopen(dup(fd), "r+")));
}

static void on_names(void)
{
	int sub;
	struct stat st;
	char buf[PATH_MAX]; /* as _FORTIFY_SOURCE wants it for realpath() */

	THEN(stat(at("f"), &st));
	THEN(lstat(at("f"), &st));
	THEN(access(at("f"), R_OK));
	THEN(truncate(at("f"), 5));
	THEN(truncate(at("none"), 5));
	THEN(chmod(at("f"), 0644));
	THEN(chmod(at("none"), 0644));
	THEN(chown(at("f"), -1, -1));
	THEN(utimensat(AT_FDCWD, at("f"), NULL, 0));
	THEN(link(at("f"), at("g")));
	THEN(rename(at("g"), at("h")));
	THEN(rename(at("none"), at("h")));
	THEN(symlink("f", at("s")));
	THEN(readlink(at("s"), buf, sizeof buf));
	THEN(close(open(at("s"), O_RDWR)));
	THEN(open(at("none"), O_RDWR));
	THEN(open(at("f"), O_CREAT | O_EXCL, 0600));
	THEN(close(open(at("f"), O_RDWR | O_TRUNC)));
	THEN(close(open(at("f"), O_RDWR | O_APPEND)));
	THEN(mkdir(at("d"), 0755));
	THEN(sub = open(at("d"), O_RDONLY | O_DIRECTORY));
	THEN(close(openat(sub, "f", O_RDWR | O_CREAT, 0644)));
	THEN(fstatat(sub, "f", &st, 0));
	THEN(unlinkat(sub, "f", 0));
	THEN(close(sub));
	THEN(rmdir(at("d")));
	THEN(unlink(at("s")));
	THEN(unlink(at("h")));
	THEN(unlink(at("none")));
	THEN(fclose(fopen(at("f"), "w")));
	THEN(chdir(getenv("P")));
	THEN(getcwd(buf, sizeof buf));
	THEN(chdir("none"));
	THEN(realpath("f", buf));
}

CASE(handlers_run_after_every_call)
{
	int fd, status;
	pid_t pid;

	catch(SIGUSR1, count, 0);
	THEN(fd = open(at("f"), O_RDWR | O_CREAT, 0644));
	on_descriptor(fd);
	on_names();
	THEN(pid = fork());
	if (pid == 0)
		_exit(hits != calls);
	THEN(waitpid(pid, &status, 0));
	T(status);
	THEN(pid = vfork());
	if (pid == 0)
		_exit(hits != calls);
	THEN(waitpid(pid, &status, 0));
	T(status);
	THEN(system("true"));
	THEN(pclose(popen("true", "r")));
	THEN(execl("/nonexistent", "none", NULL));
	THEN(sync());
	THEN(close(fd));
	nothing_blocked();
	T(unlink(at("f")));
}
