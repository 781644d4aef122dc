/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * N-1 or N-N strided by forked processes. The clock runs from the barrier before open to the close of the
 * slowest rank; what a rank writes was made before, what it reads is checked after. The shifted reader of
 * rank i reads, block by block, what rank i + 1 wrote; the sequential one reads everything in one process, 1 MiB
 * at a time. Everything is in the page cache, and nothing is dirty when the clock starts.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "bench.h"

enum { WINDOW_LEN = 1 << 20 };

static struct shared {
	pthread_barrier_t barrier;
	double start_s[MAX_RANKS], end_s[MAX_RANKS];
} *shared;

static void start_clock(int rank)
{
	pthread_barrier_wait(&shared->barrier);
	shared->start_s[rank] = now_s();
}

static bool write_rank(const struct bench *b, int rank, bool sync_it)
{
	char path[4096], *buf = bench_buffer(bench_rank_len(b));
	int fd;

	bench_fill(b, buf, rank);
	bench_path(b, rank, path, sizeof(path));
	start_clock(rank);
	fd = open(path, O_WRONLY | O_CREAT, 0644);
	if (fd < 0)
		die("%s: open", path);
	for (long k = 0; k < b->nr_blocks; k++)
		write_all(fd, buf + (size_t)k * b->block_len, b->block_len, bench_off(b, rank, k), path);
	if (sync_it && fsync(fd))
		die("%s: fsync", path);
	if (close(fd))
		die("%s: close", path);
	shared->end_s[rank] = now_s();
	return true;
}

static bool read_shifted(const struct bench *b, int rank)
{
	int writer = (rank + 1) % b->nr_ranks, fd;
	char path[4096], *buf = bench_buffer(bench_rank_len(b));

	bench_path(b, writer, path, sizeof(path));
	start_clock(rank);
	fd = open(path, O_RDONLY);
	if (fd < 0)
		die("%s: open", path);
	for (long k = 0; k < b->nr_blocks; k++)
		if (read_all(fd, buf + (size_t)k * b->block_len, b->block_len, bench_off(b, writer, k), path) < b->block_len)
			die("%s: short", path);
	close(fd);
	shared->end_s[rank] = now_s();
	return bench_good(b, buf, writer);
}

static bool read_sequential(const struct bench *b)
{
	size_t all_len = bench_rank_len(b) * (size_t)b->nr_ranks, pos = 0;
	char path[4096], *all = bench_buffer(all_len + WINDOW_LEN), *buf = malloc(bench_rank_len(b));
	bool good = true;

	shared->start_s[0] = now_s();
	for (int r = 0; r < (b->nn ? b->nr_ranks : 1); r++) {
		ssize_t n;
		int fd;

		bench_path(b, r, path, sizeof(path));
		fd = open(path, O_RDONLY);
		if (fd < 0)
			die("%s: open", path);
		while (pos <= all_len && (n = read(fd, all + pos, WINDOW_LEN)) > 0)
			pos += (size_t)n;
		close(fd);
	}
	shared->end_s[0] = now_s();
	if (pos != all_len)
		die("%s: %zu bytes read, not %zu", path, pos, all_len);
	for (int r = 0; r < b->nr_ranks; r++) {
		const char *base = b->nn ? all + (size_t)r * bench_rank_len(b) : all;

		for (long k = 0; k < b->nr_blocks; k++)
			memcpy(buf + (size_t)k * b->block_len, base + bench_off(b, r, k), b->block_len);
		good = good && bench_good(b, buf, r);
	}
	return good;
}

/* Do @phase with its processes; returns its seconds. */
static double run(const struct bench *b, enum phase phase, bool *good)
{
	int nr = phase == READ_SEQUENTIAL ? 1 : b->nr_ranks;
	double start_s = 1e300, end_s = 0;
	pid_t pid[MAX_RANKS];

	if (phase == WRITE || phase == WRITE_FSYNC) {
		bench_unlink(b);
		sync();
	}
	for (int r = 0; r < nr; r++) {
		pid[r] = fork();
		if (pid[r] < 0)
			die("fork");
		if (!pid[r]) {
			bool fine = phase == READ_SHIFTED      ? read_shifted(b, r)
				    : phase == READ_SEQUENTIAL ? read_sequential(b)
							       : write_rank(b, r, phase == WRITE_FSYNC);

			_exit(fine ? 0 : 3);
		}
	}
	for (int r = 0; r < nr; r++) {
		int status;

		if (waitpid(pid[r], &status, 0) != pid[r] || status)
			*good = false;
		start_s = shared->start_s[r] < start_s ? shared->start_s[r] : start_s;
		end_s = shared->end_s[r] > end_s ? shared->end_s[r] : end_s;
	}
	return end_s - start_s;
}

int main(int argc, char **argv)
{
	pthread_barrierattr_t attr;
	double seconds[NR_PHASES];
	bool good = true;
	struct bench b;

	bench_options(&b, argc, argv);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		die("mmap");
	pthread_barrierattr_init(&attr);
	pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(&shared->barrier, &attr, (unsigned)b.nr_ranks);
	for (int i = 0; i < NR_PHASES; i++)
		seconds[i] = run(&b, (enum phase)i, &good);
	bench_unlink(&b);
	bench_print(seconds, good);
	return !good;
}
