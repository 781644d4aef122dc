/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a report draws, in bins of fixed number: a file of 31 million records makes as large a page as one of
 * ten. First all is binned here, then the page is drawn from the bins (tools/report/).
 */
#ifndef PLFS_REPORT_BINS_H
#define PLFS_REPORT_BINS_H

#include "report_logs.h"

#define REPORT_TIMES 480    /* columns of the pictures with time */
#define REPORT_OFFSETS 240  /* rows of the picture offset x time */
#define REPORT_STRIP 960    /* columns of the picture of the file's bytes, and its rows */
#define REPORT_STRIP_ROWS 8
#define REPORT_SAMPLES (REPORT_STRIP * REPORT_STRIP_ROWS)
#define REPORT_MATRIX_ROWS 64 /* groups of writers */
#define REPORT_MATRIX_COLUMNS 128
#define REPORT_HOSTS 12  /* each with a line of its own; the others have one together */
#define REPORT_COMMON 2048 /* lengths of pieces that are counted one by one */
#define REPORT_NOBODY UINT32_MAX

/* One writer among those of a cell, each as likely as it has bytes there. */
struct report_cell {
	uint32_t writer;
	double bytes;
};

/* Whose the byte at a place of the file is: the latest record's that has it. */
struct report_sample {
	uint64_t stamp_ns;
	uint32_t writer, log;
};

struct report_length {
	uint64_t length, pieces; /* length 0: empty */
};

struct report_bins {
	uint64_t from_ns, to_ns, size;
	uint64_t random;    /* state */
	uint64_t chunks;    /* so many parts of a record are placed one by one */
	size_t nr_matrix_rows, nr_writers;
	double sample_step; /* bytes from one to the next */
	uint64_t nr_steps;  /* between samples; 1: each counts */
	struct report_cell cells[REPORT_OFFSETS][REPORT_TIMES];
	double hosts[REPORT_HOSTS + 1][REPORT_TIMES];
	uint32_t host_row[4096]; /* of each host; those beyond are among the others */
	double matrix[REPORT_MATRIX_ROWS][REPORT_MATRIX_COLUMNS];
	struct report_sample samples[REPORT_SAMPLES];
	struct report_length lengths[REPORT_COMMON];
	uint64_t nr_lengths, other_lengths;     /* pieces of lengths for which there was no room */
	uint64_t by_log2[64], bytes_by_log2[64];
};

/* For a file of @size bytes with the logs @l, surveyed. NULL: no memory. mem_free() it. */
struct report_bins *report_bins_make(const struct report_logs *l, uint64_t size);

/* A report_record_fn, whose @arg is the bins. */
report_record_fn report_bins_add;

/* The place in the file of sample number @i. */
uint64_t report_sample_off(const struct report_bins *b, uint64_t i);

#endif
