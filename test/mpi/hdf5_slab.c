/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A parallel HDF5 job: one dataset "field" of ROWS x COLS 32-bit integers in one file, rank i writing rows i,
 * i + nr_ranks, ... as one strided hyperslab, independently or collectively. Element (r, c) is
 * r * 1000 + c, which the serial readers check.
 *
 *     hdf5_slab independent|collective FILE
 *     hdf5_slab rows FILE DONE 0|1    row by row; DONE.RANK gets a byte for each; 1: every second rank kills
 *                                     itself when all have half of them
 *     hdf5_slab computes FILE STEPS ENOUGH FILE2 DONE
 *                                     FILE; then steps of a computation, a byte of STEPS each, until
 *                                     ENOUGH is there; then "rows FILE2 DONE 1"
 */
#include <hdf5.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "../lib/job.h"

enum { ROWS = 240, COLS = 500 };

static hid_t ok(hid_t id, const char *what)
{
	if (id >= 0)
		return id;
	fprintf(stderr, "hdf5_slab: %s failed\n", what);
	MPI_Abort(MPI_COMM_WORLD, 1);
	return id;
}

/* @nr rows from @first on, each @nr_ranks behind the one before. */
static void write_rows(hid_t dataset, hid_t transfer, int first, int nr, int nr_ranks)
{
	hsize_t start[2] = { (hsize_t)first, 0 }, stride[2] = { (hsize_t)nr_ranks, 1 };
	hsize_t count[2] = { (hsize_t)nr, COLS };
	hid_t memory = ok(H5Screate_simple(2, count, NULL), "H5Screate_simple");
	hid_t file = ok(H5Dget_space(dataset), "H5Dget_space");
	int *rows = malloc(count[0] * COLS * sizeof(int));

	for (hsize_t i = 0; i < count[0]; i++)
		for (int c = 0; c < COLS; c++)
			rows[i * COLS + (hsize_t)c] = ((int)i * nr_ranks + first) * 1000 + c;
	ok(H5Sselect_hyperslab(file, H5S_SELECT_SET, start, stride, count, NULL), "H5Sselect_hyperslab");
	ok(H5Dwrite(dataset, H5T_NATIVE_INT, memory, file, transfer, rows), "H5Dwrite");
	ok(H5Sclose(file), "H5Sclose");
	ok(H5Sclose(memory), "H5Sclose");
	free(rows);
}

static void write_row_by_row(hid_t dataset, hid_t transfer, int rank, int nr_ranks, const char *done,
			     bool kills)
{
	char path[4096];
	int log;

	snprintf(path, sizeof(path), "%s.%d", done, rank);
	log = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	for (int row = rank; row < ROWS; row += nr_ranks) {
		write_rows(dataset, transfer, row, 1, nr_ranks);
		if (write(log, ".", 1) != 1)
			MPI_Abort(MPI_COMM_WORLD, 1);
		if (!kills || row < ROWS / 2 || row - nr_ranks >= ROWS / 2)
			continue;
		MPI_Barrier(MPI_COMM_WORLD);
		if (rank % 2 == 0)
			kill(getpid(), SIGKILL);
	}
	close(log);
}

/* @done: row by row, else all at once. */
static void write_file(const char *path, bool collective, int rank, int nr_ranks, const char *done,
		       bool kills)
{
	hsize_t dims[2] = { ROWS, COLS };
	hid_t access = ok(H5Pcreate(H5P_FILE_ACCESS), "H5Pcreate");
	hid_t transfer, file, space, dataset;

	ok(H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL), "H5Pset_fapl_mpio");
	file = ok(H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access), "H5Fcreate");
	space = ok(H5Screate_simple(2, dims, NULL), "H5Screate_simple");
	dataset = ok(H5Dcreate2(file, "field", H5T_STD_I32LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
		     "H5Dcreate2");
	transfer = ok(H5Pcreate(H5P_DATASET_XFER), "H5Pcreate");
	ok(H5Pset_dxpl_mpio(transfer, collective ? H5FD_MPIO_COLLECTIVE : H5FD_MPIO_INDEPENDENT),
	   "H5Pset_dxpl_mpio");
	if (done)
		write_row_by_row(dataset, transfer, rank, nr_ranks, done, kills);
	else
		write_rows(dataset, transfer, rank, ROWS / nr_ranks, nr_ranks);
	ok(H5Pclose(transfer), "H5Pclose");
	ok(H5Dclose(dataset), "H5Dclose");
	ok(H5Sclose(space), "H5Sclose");
	ok(H5Fclose(file), "H5Fclose");
	ok(H5Pclose(access), "H5Pclose");
}

/* Steps of all ranks, a byte of @steps for each, until @enough is there. */
static void compute(int rank, const char *steps, const char *enough)
{
	static double field[2][20000];
	int log = rank ? -1 : open(steps, O_WRONLY | O_CREAT | O_TRUNC, 0644), end = 0;
	double heat = 0, all;

	field[0][0] = 1;
	for (int now = 0; !end; now = !now) {
		for (int i = 1; i < 19999; i++)
			field[!now][i] = (field[now][i - 1] + field[now][i] + field[now][i + 1]) / 3;
		field[!now][0] = 1;
		heat += field[!now][1];
		MPI_Allreduce(&heat, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
		if (!rank && write(log, ".", 1) != 1)
			MPI_Abort(MPI_COMM_WORLD, 1);
		end = !rank && !access(enough, F_OK);
		MPI_Bcast(&end, 1, MPI_INT, 0, MPI_COMM_WORLD);
	}
	close(log);
}

int main(int argc, char **argv)
{
	int rank, nr_ranks;
	bool by_row, computes;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &nr_ranks);
	by_row = argc == 5 && !strcmp(argv[1], "rows");
	computes = argc == 7 && !strcmp(argv[1], "computes");
	if ((argc != 3 && !by_row && !computes) || ROWS % nr_ranks) {
		fprintf(stderr, "usage: hdf5_slab independent|collective FILE, ranks that divide %d\n", ROWS);
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	write_file(argv[2], !strcmp(argv[1], "collective"), rank, nr_ranks, by_row ? argv[3] : NULL,
		   by_row && *argv[4] == '1');
	if (computes) {
		compute(rank, argv[3], argv[4]);
		write_file(argv[5], false, rank, nr_ranks, argv[6], true);
	}
	MPI_Finalize();
	return 0;
}
