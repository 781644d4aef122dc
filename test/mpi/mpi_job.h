/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the MPI programs of this directory share: giving up, and the main function of the N-1 jobs of
 * layout.h.
 */
#ifndef TEST_MPI_JOB_H
#define TEST_MPI_JOB_H

#include <mpi.h>

#include "layout.h"

static inline void ok(int rc, const char *what, const char *path)
{
	char text[MPI_MAX_ERROR_STRING];
	int len;

	if (rc == MPI_SUCCESS)
		return;
	MPI_Error_string(rc, text, &len);
	fprintf(stderr, "%s: %s: %s\n", path, what, text);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

/* PROGRAM write|read DIR ROUND: calls @write_file or @read_file for every file of the two @ways. */
static inline int
n1_main(int argc, char **argv, const char *const ways[2],
	void (*write_file)(const struct part *p, const char *path, const char *how, unsigned round),
	void (*read_file)(const struct part *p, const char *path, const char *how, unsigned round))
{
	int rank, nr_ranks;
	bool writing;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &nr_ranks);
	writing = argc == 4 && !strcmp(argv[1], "write");
	if (argc != 4 || (writing && nr_ranks != 2 && nr_ranks != 4 && nr_ranks != 8)) {
		fprintf(stderr, "usage: %s write|read DIR ROUND, 2, 4 or 8 ranks to write\n", argv[0]);
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	for (int i = 0; i < 2; i++)
		layout_each(argv[2], ways[i], rank, nr_ranks, writing ? write_file : read_file,
			    (unsigned)strtoul(argv[3], NULL, 10));
	MPI_Finalize();
	return 0;
}

#endif
