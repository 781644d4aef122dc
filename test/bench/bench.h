/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the N-1 benchmarks share: their options, where a rank's blocks lie, the data, which is made before
 * and checked after the clock runs, and the line of results.
 */
#ifndef BENCH_H
#define BENCH_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* syncfs() */
#endif

#include <fcntl.h>
#include <getopt.h>

#include "../lib/job.h"

enum { MAX_RANKS = 64 };

static const char *const mode_names[] = { "n1", "nn", "one" };

/* What can be measured, in the order in which it is done. */
enum phase { WRITE, READ_SHIFTED, READ_SCATTERED, READ_SEQUENTIAL, READ_RESTART, WRITE_FSYNC, NR_PHASES };

static const char *const phase_names[NR_PHASES] = { "write",	       "read_shifted", "read_scattered",
						    "read_sequential", "read_restart", "write_fsync" };

struct bench {
	int nr_ranks;
	size_t block_len;
	long nr_blocks; /* of each rank */
	bool nn;  /* a file per rank instead of one for all */
	bool one; /* one file of the same bytes, written from end to end by one process */
	bool wanted[NR_PHASES];
	bool marked; /* see start_clock() of bench_n1.c */
	unsigned round;
	const char *dir;
};

/* The index of @word in @names, or exit code 2. */
static inline int bench_word(const char *word, const char *const *names, int nr)
{
	for (int i = 0; i < nr; i++)
		if (!strcmp(word, names[i]))
			return i;
	fprintf(stderr, "no such word: %s\n", word);
	exit(2);
}

/* PROGRAM [-p RANKS] -b BLOCK -n BLOCKS_PER_RANK -m n1|nn|one -r ROUND [-w PHASE,...] [-t] DIR */
static inline void bench_options(struct bench *b, int argc, char **argv)
{
	int c;

	*b = (struct bench){
		.nr_ranks = 4, .block_len = 4096, .nr_blocks = 100, .wanted = { [WRITE] = true }
	};
	while ((c = getopt(argc, argv, "p:b:n:m:r:w:t")) != -1)
		switch (c) {
		case 'p':
			b->nr_ranks = atoi(optarg);
			break;
		case 'b':
			b->block_len = strtoul(optarg, NULL, 0);
			break;
		case 'n':
			b->nr_blocks = atol(optarg);
			break;
		case 'm':
			c = bench_word(optarg, mode_names, 3);
			b->nn = c == 1;
			b->one = c == 2;
			break;
		case 'r':
			b->round = (unsigned)atoi(optarg);
			break;
		case 'w':
			for (char *word = strtok(optarg, ","); word; word = strtok(NULL, ","))
				b->wanted[bench_word(word, phase_names, NR_PHASES)] = true;
			break;
		case 't':
			b->marked = true;
			break;
		default:
			exit(2);
		}
	if (optind != argc - 1 || b->nr_ranks < 1 || b->nr_ranks > MAX_RANKS || !b->block_len ||
	    b->nr_blocks < 1) {
		fprintf(stderr,
			"usage: %s [-p RANKS] [-b BLOCK] [-n BLOCKS_PER_RANK] [-m n1|nn|one] [-r ROUND] [-w PHASE,...] "
			"[-t] DIR\n",
			argv[0]);
		exit(2);
	}
	b->dir = argv[optind];
}

static inline size_t bench_rank_len(const struct bench *b) { return b->block_len * (size_t)b->nr_blocks; }
static inline size_t bench_total_len(const struct bench *b)
{
	return bench_rank_len(b) * (size_t)b->nr_ranks;
}

/* The file that holds the data of @rank. */
static inline void bench_path(const struct bench *b, int rank, char *out, size_t len)
{
	if (b->nn)
		snprintf(out, len, "%s/nn.%u.%d", b->dir, b->round, rank);
	else
		snprintf(out, len, "%s/n1.%u", b->dir, b->round);
}

/* Where block @k of @rank lies in that file. */
static inline off_t bench_off(const struct bench *b, int rank, long k)
{
	return (off_t)(b->nn ? k : k * b->nr_ranks + rank) * (off_t)b->block_len;
}

/* The data of @rank, all blocks one after the other, at @buf. In every variant they are the same. */
static inline void bench_fill(const struct bench *b, char *buf, int rank)
{
	pattern_fill(buf, bench_rank_len(b), (uint64_t)rank << 40, b->round);
}

static inline bool bench_good(const struct bench *b, const char *buf, int rank)
{
	return pattern_check(buf, bench_rank_len(b), (uint64_t)rank << 40, b->round) == bench_rank_len(b);
}

/* Whether @len bytes of the file that all share, from @off on, are right. */
static inline bool bench_good_at(const struct bench *b, const char *buf, size_t off, size_t len)
{
	for (size_t done = 0, n; done < len; done += n) {
		size_t block = (off + done) / b->block_len, in_block = (off + done) % b->block_len;
		uint64_t rank = block % (size_t)b->nr_ranks, k = block / (size_t)b->nr_ranks;

		n = b->block_len - in_block < len - done ? b->block_len - in_block : len - done;
		if (pattern_check(buf + done, n, (rank << 40) + k * b->block_len + in_block, b->round) != n)
			return false;
	}
	return true;
}

/* Memory for @len bytes, each page touched: the clock is not to see page faults. */
static inline char *bench_buffer(size_t len)
{
	char *buf = malloc(len);

	if (!buf)
		die("%zu bytes of memory", len);
	memset(buf, 0x5a, len);
	return buf;
}

static inline int bench_open(const char *path, int flags)
{
	int fd = open(path, flags, 0644);

	if (fd < 0)
		die("%s: open", path);
	return fd;
}

/*
 * Nothing of the file system of @dir is dirty afterwards: neither what was written before nor its removal
 * meets the clock.
 */
static inline void bench_settle(const char *dir)
{
	int fd = bench_open(dir, O_RDONLY | O_DIRECTORY);

	if (syncfs(fd))
		die("%s: syncfs", dir);
	close(fd);
}

static inline void bench_unlink(const struct bench *b)
{
	char path[4096];

	for (int r = 0; r < (b->nn ? b->nr_ranks : 1); r++) {
		bench_path(b, r, path, sizeof(path));
		if (unlink(path) && errno != ENOENT)
			die("%s: unlink", path);
	}
}

/* One JSON object: the seconds of each phase, and whether all bytes were right. */
static inline void bench_print(const double *seconds, bool good)
{
	printf("{");
	for (int i = 0; i < NR_PHASES; i++)
		if (seconds[i] > 0)
			printf("\"%s\": %.9f, ", phase_names[i], seconds[i]);
	printf("\"good\": %s}\n", good ? "true" : "false");
}

#endif
