/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The same N-1 or N-N strided job by MPI: MPI_File_write_at, independently, from open to close of the slowest
 * rank, with and without MPI_File_sync; then each rank reads what the next one wrote. In the N-N variant
 * every rank opens a file of its own.
 */
#include "bench.h"

#include <mpi.h>

static void ok(int rc, const char *what)
{
	if (rc != MPI_SUCCESS) {
		fprintf(stderr, "bench_n1_mpi: %s failed\n", what);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
}

/* Open, write or read all blocks of @owner, sync, close: seconds until the slowest rank is done. */
static double transfer(const struct bench *b, enum phase phase, int owner, char *buf)
{
	bool reading = phase == READ_SHIFTED;
	char path[4096];
	double start_s, mine_s, slowest_s;
	MPI_File fh;

	bench_path(b, owner, path, sizeof(path));
	MPI_Barrier(MPI_COMM_WORLD);
	start_s = now_s();
	ok(MPI_File_open(b->nn ? MPI_COMM_SELF : MPI_COMM_WORLD, path,
			 reading ? MPI_MODE_RDONLY : MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &fh),
	   "open");
	for (long k = 0; k < b->nr_blocks; k++) {
		char *block = buf + (size_t)k * b->block_len;

		if (reading)
			ok(MPI_File_read_at(fh, bench_off(b, owner, k), block, (int)b->block_len, MPI_BYTE,
					    MPI_STATUS_IGNORE), "read_at");
		else
			ok(MPI_File_write_at(fh, bench_off(b, owner, k), block, (int)b->block_len, MPI_BYTE,
					     MPI_STATUS_IGNORE), "write_at");
	}
	if (phase == WRITE_FSYNC)
		ok(MPI_File_sync(fh), "sync");
	ok(MPI_File_close(&fh), "close");
	mine_s = now_s() - start_s;
	MPI_Allreduce(&mine_s, &slowest_s, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	return slowest_s;
}

static void fresh(const struct bench *b, int rank)
{
	MPI_Barrier(MPI_COMM_WORLD);
	if (!rank) {
		bench_unlink(b);
		bench_settle(b->dir);
	}
	MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
	double seconds[NR_PHASES] = { 0 }, read_s;
	int rank, good = 1, all_good;
	struct bench b;
	char *buf;

	MPI_Init(&argc, &argv);
	bench_options(&b, argc, argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &b.nr_ranks);
	buf = bench_buffer(bench_rank_len(&b));
	for (int i = 0; i < NR_PHASES; i++) {
		enum phase phase = (enum phase)i;

		if (!b.wanted[i] || phase == READ_SEQUENTIAL || phase == READ_RESTART)
			continue;
		if (phase != READ_SHIFTED) {
			bench_fill(&b, buf, rank);
			fresh(&b, rank);
			seconds[i] = transfer(&b, phase, rank, buf);
		}
		memset(buf, 0x5a, bench_rank_len(&b));
		read_s = transfer(&b, READ_SHIFTED, (rank + 1) % b.nr_ranks, buf);
		good = good && bench_good(&b, buf, (rank + 1) % b.nr_ranks);
		if (phase == READ_SHIFTED)
			seconds[i] = read_s;
	}
	MPI_Allreduce(&good, &all_good, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
	fresh(&b, rank);
	if (!rank)
		bench_print(seconds, all_good);
	MPI_Finalize();
	return !all_good;
}
