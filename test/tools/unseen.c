/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unseen FILE: write FILE, whose logs are near, and close it several times. Then look for what a helper would
 * have left in this process: a child, a signal, a thread, a descriptor, another directory or mask.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char __libc_single_threaded __attribute__((weak)); /* since glibc 2.32 */

static volatile sig_atomic_t nr_signals;

static void count(int sig) { (void)sig, nr_signals++; }

static int count_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int nr = 0;

	while (readdir(dir))
		nr++;
	closedir(dir);
	return nr;
}

static void write_once(const char *path, char letter)
{
	static char buf[100000];
	int fd = open(path, O_RDWR | O_CREAT, 0644);

	memset(buf, letter, sizeof(buf));
	if (fd < 0 || pwrite(fd, buf, sizeof(buf), 0) != sizeof(buf) || close(fd))
		err(1, "%s", path);
}

int main(int argc, char **argv)
{
	struct sigaction act = { .sa_handler = count };
	static sigset_t before, after; /* static: the C library fills in a part of each */
	siginfo_t info;
	char cwd[4096], cwd_after[4096];
	int threads, nr;
	pid_t sid = getsid(0);

	if (argc != 2)
		errx(2, "usage: unseen FILE");
	for (int sig = 1; sig < NSIG; sig++)
		sigaction(sig, &act, NULL);
	sigprocmask(SIG_SETMASK, NULL, &before);
	if (!getcwd(cwd, sizeof(cwd)))
		err(1, "getcwd");
	write_once(argv[1], 'a');
	threads = &__libc_single_threaded ? __libc_single_threaded : -1;
	nr = count_descriptors();
	for (int i = 0; i < 20; i++) {
		write_once(argv[1], (char)('a' + i));
		usleep(20000);
	}
	if (waitpid(-1, NULL, WNOHANG) != -1 || errno != ECHILD)
		errx(1, "there is a child");
	if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | __WALL) != -1 || errno != ECHILD)
		errx(1, "there is a child without a signal");
	if (nr_signals)
		errx(1, "%d signals", (int)nr_signals);
	if (threads != (&__libc_single_threaded ? __libc_single_threaded : -1) || !threads)
		errx(1, "the C library takes it for a program of threads");
	if (count_descriptors() != nr)
		errx(1, "%d descriptors, not %d", count_descriptors(), nr);
	sigprocmask(SIG_SETMASK, NULL, &after);
	if (memcmp(&before, &after, sizeof(before)) || getsid(0) != sid ||
	    !getcwd(cwd_after, sizeof(cwd_after)) || strcmp(cwd, cwd_after))
		errx(1, "another mask, session or directory");
	return 0;
}
