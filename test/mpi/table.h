/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For the jobs of the array libraries: a table of 32-bit integers whose element (r, c) is r * 1000 + c. Ranks
 * write every nr_ranks-th row; a job of any number of ranks reads stretches of columns and checks every
 * element.
 *
 *     PROGRAM write|read independent|collective FILE
 */
#ifndef TEST_TABLE_H
#define TEST_TABLE_H

#include "mpi_job.h"

enum { ROWS = 120, COLS = 500 };

struct table {
	bool writing, collective;
	const char *path;
	int rank, nr_ranks;
};

static inline struct table table_init(int argc, char **argv)
{
	struct table t;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &t.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &t.nr_ranks);
	if (argc != 4 || ROWS % t.nr_ranks || COLS % t.nr_ranks) {
		fprintf(stderr, "usage: %s write|read independent|collective FILE, 1, 2 or 4 ranks\n",
			argv[0]);
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	t.writing = !strcmp(argv[1], "write");
	t.collective = !strcmp(argv[2], "collective");
	t.path = argv[3];
	return t;
}

/* The rows that a rank writes, and where a rank's columns are compared. */
static inline int *table_rows(const struct table *t)
{
	int *v = malloc(sizeof(int) * ROWS / (size_t)t->nr_ranks * COLS);

	for (int i = 0; i < ROWS / t->nr_ranks; i++)
		for (int c = 0; c < COLS; c++)
			v[i * COLS + c] = (i * t->nr_ranks + t->rank) * 1000 + c;
	return v;
}

static inline void table_check(const struct table *t, const int *v)
{
	int cols = COLS / t->nr_ranks;

	for (int i = 0; i < ROWS * cols; i++)
		if (v[i] != i / cols * 1000 + t->rank * cols + i % cols) {
			fprintf(stderr, "%s: wrong element (%d, %d)\n", t->path, i / cols,
				t->rank * cols + i % cols);
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
}

#endif
