/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What counters and traces add to a small write: pieces of 64 bytes at a stride, as a rank writes them.
 * Prints nanoseconds per write, the least of several stretches.
 *
 *     bench_counted FILE
 */
#include <fcntl.h>

#include "../lib/job.h"

#include <time.h>

enum { WRITES = 300000, STRETCHES = 9, LEN = 64, RANKS = 4 };

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

int main(int argc, char **argv)
{
	int fd = argc == 2 ? open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0644) : -1;
	double least = 1e18, begun;
	char buf[LEN];
	off_t at = 0;

	if (fd < 0)
		die("usage: bench_counted FILE");
	memset(buf, 'x', sizeof(buf));
	for (int s = 0; s < STRETCHES; s++) {
		begun = now_ns();
		for (int i = 0; i < WRITES; i++, at += LEN * RANKS)
			if (pwrite(fd, buf, LEN, at) != LEN)
				die("%s: write", argv[1]);
		begun = (now_ns() - begun) / WRITES;
		least = begun < least ? begun : least;
	}
	close(fd);
	printf("{\"write\": %.2f}\n", least);
	return 0;
}
