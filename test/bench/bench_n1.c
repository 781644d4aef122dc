/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * N-1 or N-N strided by forked processes. The clock runs from the barrier before open to the close of the
 * slowest rank; what a rank writes was made before, and nobody checks bytes or ends while another is still
 * measured. Everything is in the page cache, and nothing is dirty when the clock starts.
 *
 * The shifted reader of rank i reads, block by block, what rank i + 1 wrote; the scattered one reads these
 * blocks out of order. The sequential one reads everything in one process into one small buffer, as cp and
 * md5sum do. A restart has one rank less than there were writers, and each reads its part of the file from
 * end to end.
 */
#include "bench.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { WINDOW_LEN = 1 << 20, COPY_LEN = 1 << 17 };

static struct shared {
	pthread_barrier_t barrier;
	double start_s[MAX_RANKS], end_s[MAX_RANKS];
} *shared;

/* Marked for who looks on (strace): a call that fails and does nothing. */
static void mark(const struct bench *b, const char *word)
{
	if (b->marked && write(-1, word, strlen(word)) >= 0)
		die("descriptor -1");
}

static void start_clock(const struct bench *b, int rank)
{
	pthread_barrier_wait(&shared->barrier);
	mark(b, "begin");
	shared->start_s[rank] = now_s();
}

static void stop_clock(const struct bench *b, int rank)
{
	shared->end_s[rank] = now_s();
	mark(b, "end");
	pthread_barrier_wait(&shared->barrier);
}

static bool write_rank(const struct bench *b, int rank, bool sync_it)
{
	char path[4096], *buf = bench_buffer(bench_rank_len(b));
	int fd;

	bench_fill(b, buf, rank);
	bench_path(b, rank, path, sizeof(path));
	start_clock(b, rank);
	fd = bench_open(path, O_WRONLY | O_CREAT);
	for (long k = 0; k < b->nr_blocks; k++)
		write_all(fd, buf + (size_t)k * b->block_len, b->block_len, bench_off(b, rank, k), path);
	if (sync_it && fsync(fd))
		die("%s: fsync", path);
	if (close(fd))
		die("%s: close", path);
	stop_clock(b, rank);
	return true;
}

static bool write_one(const struct bench *b)
{
	size_t total = bench_total_len(b);
	char path[4096], *all = bench_buffer(total), *buf = bench_buffer(bench_rank_len(b));
	int fd;

	for (int r = 0; r < b->nr_ranks; r++) {
		bench_fill(b, buf, r);
		for (long k = 0; k < b->nr_blocks; k++)
			memcpy(all + bench_off(b, r, k), buf + (size_t)k * b->block_len, b->block_len);
	}
	bench_path(b, 0, path, sizeof(path));
	start_clock(b, 0);
	fd = bench_open(path, O_WRONLY | O_CREAT);
	for (size_t pos = 0; pos < total; pos += WINDOW_LEN)
		write_all(fd, all + pos, total - pos < WINDOW_LEN ? total - pos : WINDOW_LEN, (off_t)pos,
			  path);
	if (close(fd))
		die("%s: close", path);
	stop_clock(b, 0);
	return true;
}

static long common_divisor(long a, long b) { return b ? common_divisor(b, a % b) : a; }

/*
 * From one of @nr blocks to the next where they are read out of order: each once, and none close to the one
 * before.
 */
static long far_step(long nr)
{
	long step = nr * 5 / 8 + 1;

	while (common_divisor(step, nr) != 1)
		step++;
	return step;
}

static bool read_shifted(const struct bench *b, int rank, bool in_order)
{
	int writer = (rank + 1) % b->nr_ranks, fd;
	char path[4096], *buf = bench_buffer(bench_rank_len(b));

	bench_path(b, writer, path, sizeof(path));
	start_clock(b, rank);
	fd = bench_open(path, O_RDONLY);
	for (long i = 0, k = 0, step = in_order ? 1 : far_step(b->nr_blocks); i < b->nr_blocks;
	     i++, k = (k + step) % b->nr_blocks)
		if (read_all(fd, buf + (size_t)k * b->block_len, b->block_len, bench_off(b, writer, k),
			     path) < b->block_len)
			die("%s: short", path);
	close(fd);
	stop_clock(b, rank);
	return bench_good(b, buf, writer);
}

/* Everything is there, and right; not timed. Read as read_sequential() does. */
static bool check(const struct bench *b)
{
	size_t file_len = b->nn ? bench_rank_len(b) : bench_total_len(b), done;
	char path[4096], *buf = bench_buffer(COPY_LEN);
	bool good = true;
	ssize_t n;

	for (int r = 0; good && r < (b->nn ? b->nr_ranks : 1); r++) {
		int fd;

		bench_path(b, r, path, sizeof(path));
		fd = bench_open(path, O_RDONLY);
		for (done = 0; good && (n = read(fd, buf, COPY_LEN)) > 0; done += (size_t)n)
			good = b->nn ? pattern_check(buf, (size_t)n, ((uint64_t)r << 40) + done, b->round) ==
					       (size_t)n :
				       bench_good_at(b, buf, done, (size_t)n);
		good = good && !n && done == file_len;
		close(fd);
	}
	return good;
}

static bool read_sequential(const struct bench *b)
{
	char path[4096], *buf = bench_buffer(COPY_LEN);
	size_t done = 0;

	start_clock(b, 0);
	for (int r = 0; r < (b->nn ? b->nr_ranks : 1); r++) {
		ssize_t n;
		int fd;

		bench_path(b, r, path, sizeof(path));
		fd = bench_open(path, O_RDONLY);
		while ((n = read(fd, buf, COPY_LEN)) > 0)
			done += (size_t)n;
		if (n < 0)
			die("%s: read", path);
		close(fd);
	}
	stop_clock(b, 0);
	return done == bench_total_len(b) && check(b);
}

static bool read_restart(const struct bench *b, int rank, int nr)
{
	size_t total = bench_total_len(b), from = total / (size_t)nr * (size_t)rank;
	size_t len = rank == nr - 1 ? total - from : total / (size_t)nr;
	char path[4096], *buf = bench_buffer(len);
	int fd;

	bench_path(b, 0, path, sizeof(path));
	start_clock(b, rank);
	fd = bench_open(path, O_RDONLY);
	for (size_t pos = 0; pos < len; pos += WINDOW_LEN) {
		size_t want = len - pos < WINDOW_LEN ? len - pos : WINDOW_LEN;

		if (read_all(fd, buf + pos, want, (off_t)(from + pos), path) < want)
			die("%s: short", path);
	}
	close(fd);
	stop_clock(b, rank);
	return bench_good_at(b, buf, from, len);
}

static bool work(const struct bench *b, enum phase phase, int rank, int nr)
{
	switch (phase) {
	case READ_SHIFTED:
	case READ_SCATTERED:
		return read_shifted(b, rank, phase == READ_SHIFTED);
	case READ_SEQUENTIAL:
		return read_sequential(b);
	case READ_RESTART:
		return read_restart(b, rank, nr);
	default:
		return b->one ? write_one(b) : write_rank(b, rank, phase == WRITE_FSYNC);
	}
}

static int nr_workers(const struct bench *b, enum phase phase)
{
	if (phase == READ_SEQUENTIAL || (b->one && phase != READ_SHIFTED && phase != READ_RESTART))
		return 1;
	return phase == READ_RESTART && b->nr_ranks > 1 ? b->nr_ranks - 1 : b->nr_ranks;
}

/* Do @phase with its processes; returns its seconds. */
static double run(const struct bench *b, enum phase phase, bool *good)
{
	int nr = nr_workers(b, phase);
	double start_s = 1e300, end_s = 0;
	pthread_barrierattr_t attr;
	pid_t pid[MAX_RANKS];

	pthread_barrierattr_init(&attr);
	pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(&shared->barrier, &attr, (unsigned)nr);
	if (phase == WRITE || phase == WRITE_FSYNC)
		bench_unlink(b);
	bench_settle(b->dir);
	for (int r = 0; r < nr; r++) {
		pid[r] = fork();
		if (pid[r] < 0)
			die("fork");
		if (!pid[r])
			_exit(work(b, phase, r, nr) ? 0 : 3);
	}
	for (int ended = 0; ended < nr; ended++) {
		int status;

		if (waitpid(-1, &status, 0) > 0 && !status)
			continue;
		*good = false; /* and the others wait for it */
		for (int r = 0; r < nr; r++)
			kill(pid[r], SIGKILL);
	}
	for (int r = 0; r < nr; r++) {
		start_s = shared->start_s[r] < start_s ? shared->start_s[r] : start_s;
		end_s = shared->end_s[r] > end_s ? shared->end_s[r] : end_s;
	}
	return end_s - start_s;
}

int main(int argc, char **argv)
{
	double seconds[NR_PHASES] = { 0 };
	bool good = true;
	struct bench b;

	bench_options(&b, argc, argv);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		die("mmap");
	for (int i = 0; i < NR_PHASES && good; i++) {
		if (!b.wanted[i])
			continue;
		seconds[i] = run(&b, (enum phase)i, &good);
		if (good && (i == WRITE_FSYNC ||
			     (i == WRITE && !b.wanted[READ_SHIFTED] && !b.wanted[READ_SEQUENTIAL])))
			good = check(&b);
	}
	bench_unlink(&b);
	bench_print(seconds, good);
	return !good;
}
