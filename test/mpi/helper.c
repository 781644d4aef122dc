/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A job whose logs are near (near=) while a helper moves them.
 *
 *   helper write|abort|killed FILE NEAR
 *         each rank writes a part of FILE; rank 0 stops the helper of NEAR while that has something to do, so
 *         that the launcher has to end beside it. All ranks look for a child and for threads. Then they end;
 *         or rank 1 aborts, or kills itself
 *   helper read FILE RANKS
 *         a process compares what so many ranks have written
 */
#include <mpi.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LEN 3000000

extern char __libc_single_threaded __attribute__((weak)); /* since glibc 2.32 */

static char buf[LEN], got[LEN];

static void fail(const char *what)
{
	perror(what);
	MPI_Abort(MPI_COMM_WORLD, 3);
}

static void fill(int rank)
{
	for (int i = 0; i < LEN; i++)
		buf[i] = (char)(i * 7 + i / 1000 + rank);
}

static int read_all(const char *path, int nr_ranks)
{
	int fd = open(path, O_RDONLY);

	for (int rank = 0; rank < nr_ranks; rank++) {
		fill(rank);
		if (pread(fd, got, LEN, (off_t)rank * LEN) != LEN || memcmp(buf, got, LEN)) {
			fprintf(stderr, "%s: the part of rank %d is wrong\n", path, rank);
			return 1;
		}
	}
	return 0;
}

/* The helper of @near, or 0. */
static pid_t find_helper(const char *near)
{
	DIR *dir = opendir("/proc");
	struct dirent *e;
	pid_t found = 0;

	while (dir && !found && (e = readdir(dir))) {
		char path[300], text[4096];
		const char *option = "plfs\0drain\0--background\0";
		size_t len = sizeof("plfs\0drain\0--background\0") - 1;
		ssize_t n;
		int fd;

		snprintf(path, sizeof(path), "/proc/%s/cmdline", e->d_name);
		fd = atoi(e->d_name) > 0 ? open(path, O_RDONLY) : -1;
		if (fd < 0)
			continue;
		n = read(fd, text, sizeof(text) - 1);
		close(fd);
		if (n > (ssize_t)len && !memcmp(text, option, len) &&
		    !strncmp(text + len, near, strlen(near)))
			found = atoi(e->d_name);
	}
	if (dir)
		closedir(dir);
	return found;
}

static void stop_helper(const char *near)
{
	pid_t pid = 0;

	for (int tries = 0; tries < 2000 && !pid; tries++) {
		usleep(1000);
		pid = find_helper(near);
	}
	if (!pid || kill(pid, SIGSTOP))
		fail("there is no helper");
}

int main(int argc, char **argv)
{
	int rank, fd, threads;

	if (argc == 4 && !strcmp(argv[1], "read"))
		return read_all(argv[2], atoi(argv[3]));
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	threads = &__libc_single_threaded ? __libc_single_threaded : -1;
	fill(rank);
	fd = argc == 4 ? open(argv[2], O_RDWR | O_CREAT, 0644) : -1;
	/* Rank 0 has its log open until the helper is stopped, which may have moved the others by then. */
	if (fd < 0 || pwrite(fd, buf, LEN, (off_t)rank * LEN) != LEN || (rank && close(fd)))
		fail("write");
	if (waitpid(-1, NULL, WNOHANG) != -1 || errno != ECHILD)
		fail("there is a child");
	if (threads != (&__libc_single_threaded ? __libc_single_threaded : -1))
		fail("the C library takes it for a program of threads");
	if (!rank) {
		stop_helper(argv[3]);
		if (close(fd))
			fail("close");
	}
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 1 && !strcmp(argv[1], "abort"))
		MPI_Abort(MPI_COMM_WORLD, 5);
	if (rank == 1 && !strcmp(argv[1], "killed"))
		raise(SIGKILL);
	MPI_Finalize();
	return 0;
}
