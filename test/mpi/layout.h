/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The N-1 files of the MPI jobs: which there are, how they are called, and which block of a file which rank
 * writes. All layouts fill the file without a hole, and its size depends on the block size alone, so
 * that a file written by 4 ranks can be overwritten by 8 and read by 3.
 */
#ifndef TEST_LAYOUT_H
#define TEST_LAYOUT_H

#include "../lib/job.h"

enum layout { STRIDED, SEGMENTED, NESTED, NR_LAYOUTS };

static const char *const layout_names[NR_LAYOUTS] = { "strided", "segmented", "nested" };

/*
 * Block size in bytes and blocks in the file, powers of two and at least 16; the collective files have
 * fewer, because ranks that wait for each other with more ranks than processors are slow.
 */
static const struct {
	size_t block_len;
	long nr_blocks, nr_blocks_coll;
} layout_sizes[] = {
	{ 47, 4096, 128 }, { 512, 4096, 128 }, { 4096, 1024, 64 }, { 47001, 128, 32 }, { 1 << 20, 16, 16 },
};

enum { NR_SIZES = sizeof(layout_sizes) / sizeof(layout_sizes[0]) };

/* One file as one rank of @nr_ranks (2, 4 or 8) sees it. */
struct part {
	enum layout layout;
	size_t block_len;
	long nr_blocks; /* in the file */
	int rank, nr_ranks;
};

/*
 * Nested strided: the file is a table of rows of @cols blocks, dealt out in both directions. The ranks
 * form a grid of 2 columns; a rank has every 2nd block of every (nr_ranks / 2)th row.
 */
static inline long part_cols(const struct part *p)
{
	long cols = 1;

	while (cols * cols * 4 <= p->nr_blocks)
		cols *= 2;
	return cols;
}

static inline long part_count(const struct part *p) { return p->nr_blocks / p->nr_ranks; }

static inline off_t part_size(const struct part *p) { return (off_t)p->block_len * p->nr_blocks; }

/* Where the rank's @k-th block lies in the file, in bytes. */
static inline off_t part_off(const struct part *p, long k)
{
	long block = 0;

	switch (p->layout) {
	case STRIDED:
		block = k * p->nr_ranks + p->rank;
		break;
	case SEGMENTED:
		block = p->rank * part_count(p) + k;
		break;
	case NESTED: {
		long cols = part_cols(p), per_row = cols / 2;
		long row = k / per_row * (p->nr_ranks / 2) + p->rank / 2;

		block = row * cols + k % per_row * 2 + p->rank % 2;
		break;
	}
	case NR_LAYOUTS:
		break;
	}
	return (off_t)block * (off_t)p->block_len;
}

static inline void part_path(const struct part *p, char *out, size_t len, const char *dir, const char *how)
{
	snprintf(out, len, "%s/%s.%zu.%s", dir, layout_names[p->layout], p->block_len, how);
}

/* Calls @fn for every file of way @how of writing; nr_ranks of the part is @nr_ranks. */
static inline void layout_each(const char *dir, const char *how, int rank, int nr_ranks,
			       void (*fn)(const struct part *p, const char *path, const char *how,
					  unsigned round),
			       unsigned round)
{
	char path[4096];

	for (int l = 0; l < NR_LAYOUTS; l++)
		for (int s = 0; s < NR_SIZES; s++) {
			long nr = strcmp(how, "coll") ? layout_sizes[s].nr_blocks :
							layout_sizes[s].nr_blocks_coll;
			struct part p = { (enum layout)l, layout_sizes[s].block_len, nr, rank, nr_ranks };

			part_path(&p, path, sizeof(path), dir, how);
			fn(&p, path, how, round);
		}
}

#endif
