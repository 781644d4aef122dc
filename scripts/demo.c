/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The program of `make demo`: 4 processes write one file together, each its own pieces, in turn (N-1,
 * strided). demo FILE PIECE TOTAL: pieces of so many bytes, TOTAL bytes altogether. Prints the seconds from
 * the first open to the last close. It is an ordinary program that knows nothing of libplfs.
 */
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { RANKS = 4 };

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void write_rank(const char *path, int rank, size_t piece, size_t total, const volatile int *go)
{
	char *buf = malloc(piece);
	int fd;

	if (!buf)
		err(1, "memory");
	memset(buf, 'a' + rank, piece);
	while (!*go)
		;
	fd = open(path, O_WRONLY | O_CREAT, 0666);
	if (fd < 0)
		err(1, "%s", path);
	for (size_t off = (size_t)rank * piece; off < total; off += RANKS * piece)
		if (pwrite(fd, buf, piece, (off_t)off) != (ssize_t)piece)
			err(1, "%s", path);
	if (close(fd))
		err(1, "%s", path);
	exit(0);
}

int main(int argc, char **argv)
{
	int *go = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status, failed = 0;
	double begin;

	if (argc != 4 || go == MAP_FAILED)
		errx(2, "usage: demo FILE PIECE TOTAL");
	for (int rank = 0; rank < RANKS; rank++)
		if (!fork())
			write_rank(argv[1], rank, strtoul(argv[2], NULL, 10), strtoul(argv[3], NULL, 10), go);
	usleep(100000); /* all are there, and wait */
	begin = now_s();
	*go = 1;
	while (wait(&status) > 0)
		failed |= status;
	printf("%.6f\n", now_s() - begin);
	return failed != 0;
}
