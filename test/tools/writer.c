/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * writer FILE RANK RANKS COUNT BLOCK END: write blocks RANK, RANK + RANKS, ... of FILE, each filled with a
 * letter of its number; then END: "close", "kill" (by SIGKILL, the file open), "synced" (the same, after
 * fsync(2)) or "wait" (say so and read standard input to its end).
 */
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	long rank, ranks, count, len;
	char *buf, c;
	int fd;

	if (argc != 7)
		errx(2, "usage: writer FILE RANK RANKS COUNT BLOCK close|kill|synced|wait");
	rank = atol(argv[2]);
	ranks = atol(argv[3]);
	count = atol(argv[4]);
	len = atol(argv[5]);
	buf = malloc((size_t)len);
	fd = open(argv[1], O_RDWR | O_CREAT, 0640);
	if (!buf || fd < 0)
		err(1, "%s", argv[1]);
	for (long i = rank; i < count * ranks; i += ranks) {
		memset(buf, 'a' + (int)(i % 26), (size_t)len);
		if (pwrite(fd, buf, (size_t)len, i * len) != len)
			err(1, "%s: write", argv[1]);
	}
	if (!strcmp(argv[6], "synced") && fsync(fd))
		err(1, "%s: fsync", argv[1]);
	if (!strcmp(argv[6], "kill") || !strcmp(argv[6], "synced"))
		raise(SIGKILL);
	if (!strcmp(argv[6], "wait")) {
		puts("written");
		fflush(stdout);
		while (read(0, &c, 1) > 0)
			;
	}
	if (close(fd))
		err(1, "%s: close", argv[1]);
	return 0;
}
