/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One process whose threads write one file through one descriptor, each every nth block, and read it back,
 * each what its neighbour wrote. The clock runs from open to close; the threads are there before, and check
 * after.
 *
 *     bench_threads -p THREADS -b BLOCK -n BLOCKS_PER_THREAD -r ROUND DIR
 */
#include "bench.h"

#include <pthread.h>

static struct bench b;
static pthread_barrier_t start, end;
static int fd;
static char path[4096];

struct worker {
	pthread_t thread;
	int no;
	char *buf;
	bool good;
};

static void begin(void)
{
	pthread_barrier_wait(&start); /* all are ready */
	pthread_barrier_wait(&start); /* the file is open */
}

static void finish(void)
{
	pthread_barrier_wait(&end); /* all are done */
	pthread_barrier_wait(&end); /* the file is closed */
}

static void *write_blocks(void *arg)
{
	struct worker *w = arg;

	bench_fill(&b, w->buf, w->no);
	begin();
	for (long k = 0; k < b.nr_blocks; k++)
		write_all(fd, w->buf + (size_t)k * b.block_len, b.block_len, bench_off(&b, w->no, k), path);
	finish();
	return NULL;
}

static void *read_blocks(void *arg)
{
	struct worker *w = arg;
	int other = (w->no + 1) % b.nr_ranks;

	memset(w->buf, 0x5a, bench_rank_len(&b));
	begin();
	for (long k = 0; k < b.nr_blocks; k++)
		if (read_all(fd, w->buf + (size_t)k * b.block_len, b.block_len, bench_off(&b, other, k),
			     path) < b.block_len)
			die("%s: short", path);
	finish();
	w->good = bench_good(&b, w->buf, other);
	return NULL;
}

static double run(struct worker *workers, void *(*work)(void *), int flags)
{
	double start_s, seconds;

	bench_settle(b.dir);
	for (int i = 0; i < b.nr_ranks; i++)
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
			die("pthread_create");
	pthread_barrier_wait(&start);
	start_s = now_s();
	fd = bench_open(path, flags);
	pthread_barrier_wait(&start);
	pthread_barrier_wait(&end);
	if (close(fd))
		die("%s: close", path);
	seconds = now_s() - start_s;
	pthread_barrier_wait(&end);
	for (int i = 0; i < b.nr_ranks; i++)
		pthread_join(workers[i].thread, NULL);
	return seconds;
}

int main(int argc, char **argv)
{
	struct worker workers[MAX_RANKS] = { 0 };
	double write_s, read_s;
	bool good = true;

	bench_options(&b, argc, argv);
	bench_path(&b, 0, path, sizeof(path));
	for (int i = 0; i < b.nr_ranks; i++)
		workers[i] = (struct worker){ .no = i, .buf = bench_buffer(bench_rank_len(&b)) };
	pthread_barrier_init(&start, NULL, (unsigned)b.nr_ranks + 1);
	pthread_barrier_init(&end, NULL, (unsigned)b.nr_ranks + 1);
	bench_unlink(&b);
	write_s = run(workers, write_blocks, O_WRONLY | O_CREAT);
	read_s = run(workers, read_blocks, O_RDONLY);
	for (int i = 0; i < b.nr_ranks; i++)
		good = good && workers[i].good;
	bench_unlink(&b);
	printf("{\"write\": %.9f, \"read\": %.9f, \"good\": %s}\n", write_s, read_s, good ? "true" : "false");
	return !good;
}
