/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What calls cost that have nothing to do with a mapped file: pread of one byte, open with close, and stat of a
 * plain file in the page cache. Prints nanoseconds per call, the least of several stretches.
 *
 *     bench_calls FILE
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "../job.h"

enum { CALLS = 20000, STRETCHES = 15 };

static const char *path;
static int fd;

static void call_pread(void)
{
	char c;

	if (pread(fd, &c, 1, 0) != 1)
		die("%s: pread", path);
}

static void call_open(void)
{
	int new_fd = open(path, O_RDONLY);

	if (new_fd < 0 || close(new_fd))
		die("%s: open and close", path);
}

static void call_stat(void)
{
	struct stat st;

	if (stat(path, &st))
		die("%s: stat", path);
}

static double cost_ns(void (*call)(void))
{
	double least = 1e300;

	for (int s = 0; s < STRETCHES; s++) {
		double start_s = now_s(), ns;

		for (int i = 0; i < CALLS; i++)
			call();
		ns = (now_s() - start_s) * 1e9 / CALLS;
		least = ns < least ? ns : least;
	}
	return least;
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: bench_calls FILE\n");
		return 2;
	}
	path = argv[1];
	fd = open(path, O_RDWR | O_CREAT, 0644);
	if (fd < 0)
		die("%s", path);
	write_all(fd, "x", 1, 0, path);
	printf("{\"pread\": %.2f, ", cost_ns(call_pread));
	printf("\"open_close\": %.2f, ", cost_ns(call_open));
	printf("\"stat\": %.2f}\n", cost_ns(call_stat));
	return 0;
}
