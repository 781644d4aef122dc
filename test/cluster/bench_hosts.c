/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The N-1 benchmark on several hosts that share a kernel: one such program runs on each host and forks the
 * ranks of that host; all ranks meet at a barrier in a file that every host maps. Rank 0 makes the file, the
 * others open it after that, as MPI-IO does. The clock runs from the barrier before that to the close of the
 * slowest rank; then rank i reads what rank i + 1 wrote, which is on the other host if there are two, and
 * checks it, and the files go.
 *
 *     bench_hosts FILE FIRST COUNT -p RANKS -b BLOCK -n BLOCKS_PER_RANK -m n1|nn -r ROUND -w PHASE,... DIR
 *
 * FILE holds the barrier: empty, and a new one for each run; ranks FIRST to FIRST + COUNT - 1 are those of
 * this host. -w write: no more than that; write_fsync,read_shifted: all, with an fsync before the close;
 * read_shifted: of what is there. Whoever has rank 0 prints the seconds, and all say by their exit status
 * whether all bytes were right.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "../bench/bench.h"

static struct shared {
	int ready; /* 1: somebody is making the barrier; 2: it is made */
	pthread_barrier_t barrier;
	double start_s[MAX_RANKS], end_s[2][MAX_RANKS];
	bool bad[MAX_RANKS];
} *shared;

static void map_shared(const char *path, int nr_ranks)
{
	int fd = open(path, O_RDWR), none = 0;
	pthread_barrierattr_t attr;

	if (fd < 0 || ftruncate(fd, sizeof(*shared)))
		die("%s", path);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (shared == MAP_FAILED)
		die("%s: mmap", path);
	close(fd);
	if (__atomic_compare_exchange_n(&shared->ready, &none, 1, false, __ATOMIC_SEQ_CST,
					__ATOMIC_SEQ_CST)) {
		pthread_barrierattr_init(&attr);
		pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
		pthread_barrier_init(&shared->barrier, &attr, (unsigned)nr_ranks);
		__atomic_store_n(&shared->ready, 2, __ATOMIC_SEQ_CST);
	}
	while (__atomic_load_n(&shared->ready, __ATOMIC_SEQ_CST) != 2)
		usleep(1000);
}

static void wait_for_all(void)
{
	pthread_barrier_wait(&shared->barrier);
}

static void write_rank(const struct bench *b, int rank)
{
	char path[4096], *buf = bench_buffer(bench_rank_len(b));
	int fd;

	bench_fill(b, buf, rank);
	bench_path(b, rank, path, sizeof(path));
	wait_for_all();
	shared->start_s[rank] = now_s();
	if (!b->nn && !rank) {
		fd = open(path, O_WRONLY | O_CREAT, 0644);
		if (fd < 0 || close(fd))
			die("%s: create", path);
	}
	if (!b->nn)
		wait_for_all();
	fd = open(path, O_WRONLY | (b->nn ? O_CREAT : 0), 0644);
	if (fd < 0)
		die("%s: open", path);
	for (long k = 0; k < b->nr_blocks; k++)
		write_all(fd, buf + (size_t)k * b->block_len, b->block_len, bench_off(b, rank, k), path);
	if (b->wanted[WRITE_FSYNC] && fsync(fd))
		die("%s: fsync", path);
	if (close(fd))
		die("%s: close", path);
	shared->end_s[0][rank] = now_s();
	free(buf);
}

static void read_shifted(const struct bench *b, int rank)
{
	int writer = (rank + 1) % b->nr_ranks, fd;
	char path[4096], *buf = bench_buffer(bench_rank_len(b));

	bench_path(b, writer, path, sizeof(path));
	wait_for_all();
	shared->start_s[rank] = now_s();
	fd = open(path, O_RDONLY);
	if (fd < 0)
		die("%s: open", path);
	for (long k = 0; k < b->nr_blocks; k++)
		if (read_all(fd, buf + (size_t)k * b->block_len, b->block_len, bench_off(b, writer, k),
			     path) < b->block_len)
			die("%s: short", path);
	close(fd);
	shared->end_s[1][rank] = now_s();
	if (!bench_good(b, buf, writer)) {
		shared->bad[rank] = true;
		die("%s: wrong bytes of rank %d, read by rank %d", path, writer, rank);
	}
}

/* From the first start to the last end. */
static double span(const struct bench *b, const double *end_s)
{
	double first = shared->start_s[0], last = 0;

	for (int r = 0; r < b->nr_ranks; r++) {
		first = shared->start_s[r] < first ? shared->start_s[r] : first;
		last = end_s[r] > last ? end_s[r] : last;
	}
	return last - first;
}

/* Everything of one rank; returns whether it is fine. */
static void run_rank(const struct bench *b, int rank)
{
	double seconds[NR_PHASES] = { 0 };

	if (b->wanted[WRITE_FSYNC] || !b->wanted[READ_SHIFTED]) {
		write_rank(b, rank);
		wait_for_all();
		seconds[b->wanted[WRITE_FSYNC] ? WRITE_FSYNC : WRITE] = span(b, shared->end_s[0]);
	}
	wait_for_all();
	if (b->wanted[READ_SHIFTED]) {
		read_shifted(b, rank);
		wait_for_all();
		seconds[READ_SHIFTED] = span(b, shared->end_s[1]);
	}
	if (rank)
		return;
	bench_print(seconds, true);
	fflush(stdout);
	if (b->wanted[READ_SHIFTED])
		bench_unlink(b);
}

int main(int argc, char **argv)
{
	int first, count, rc = 0, status;
	struct bench b;

	if (argc < 5) {
		fprintf(stderr, "usage: %s FILE FIRST COUNT -p RANKS ... (see its head)\n", argv[0]);
		return 2;
	}
	first = atoi(argv[2]);
	count = atoi(argv[3]);
	bench_options(&b, argc - 3, argv + 3);
	map_shared(argv[1], b.nr_ranks);
	for (int r = first; r < first + count; r++) {
		pid_t pid = fork();

		if (pid < 0)
			die("fork");
		if (!pid) {
			run_rank(&b, r);
			_exit(0);
		}
	}
	/* Who fails leaves the others at the barrier: the script ends them. */
	for (int i = 0; i < count; i++)
		if (wait(&status) < 0 || status)
			return 1;
	return rc;
}
