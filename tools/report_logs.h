/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The logs of a logical file and their records, read from the container, for plfs report: who wrote what, in
 * which order, and between which moments. Nothing is opened for writing, and nobody is asked.
 */
#ifndef PLFS_REPORT_LOGS_H
#define PLFS_REPORT_LOGS_H

#include "core/plfs_admin.h"
#include "index/record/record.h"

#include <uthash.h>

#define REPORT_HOST_LEN 64

/* A process that has written, on one host. Its log is one or several. */
struct report_writer {
	UT_hash_handle hh;
	uint32_t no;   /* by the first byte that it wrote */
	uint32_t host; /* in report_logs.hosts */
	uint64_t pid;
	uint64_t bytes, pieces, records, logs;
	uint64_t first_off, end_off, first_ns, last_ns;
	uint64_t sequential, strided, random; /* pieces */
	bool open; /* one of its logs is not closed: it is running, or was killed */
	/* of a trace alone: */
	int64_t rank; /* -1: not known */
	char program[REPORT_HOST_LEN]; /* "": it is of no trace */
	uint64_t call_ns, slowest_ns, read_calls, read_bytes, read_ns, errors;
	char key[]; /* "HOST.PID" */
};

/* At this moment the log had so many bytes. */
struct report_knot {
	uint64_t log_off, ns;
};

struct report_log {
	UT_hash_handle hh;
	uint32_t no;
	struct report_writer *writer;
	uint64_t born_ns, end_ns; /* by the file system's clock */
	uint64_t log_end;         /* so far in a walk */
	uint64_t bytes_end;       /* of all that has a record */
	/* in the file, of the last piece: */
	uint64_t logical_end, last_off, distance;
	bool open;
	/* Moments at which records began, sparse if there are many; ascending in both members. */
	struct report_knot *knots;
	uint32_t nr_knots, at; /* at: of the last question */
	uint32_t every, skipped;
	char path[]; /* "hostdir.K/data.HOST.PID.SEQ" */
};

/*
 * @pieces of @rec from number @first on, which lie in @log, in the order of the log. A truncation has no log
 * and no pieces.
 */
typedef void report_record_fn(void *arg, struct report_log *log, const struct index_record *rec,
			      uint64_t first, uint64_t pieces);

struct report_logs {
	const char *container;
	uint64_t generation_ns; /* records from before it are void */
	struct report_log *by_path;
	struct report_writer *by_key, **writers;
	char (*hosts)[REPORT_HOST_LEN];
	size_t nr_logs, nr_writers, nr_hosts, cap_hosts, nr_open;
	uint64_t nr_damaged, nr_unknown; /* blocks that cannot be read; blocks of logs that are gone */
	uint64_t from_ns, to_ns;         /* of all */
	uint64_t nr_records, nr_runs, pieces, bytes, end_off;
	report_record_fn *fn; /* of a walk that is under way */
	void *arg;
};

/* List the logs of the container. @l: all zeros but for its first two members. 0; -errno. */
int report_logs_list(struct report_logs *l);
void report_logs_release(struct report_logs *l);

/* The log of the process @name, "data.HOST.PID.SEQ", made now. @path ends with it. NULL: no memory. */
struct report_log *report_logs_add(struct report_logs *l, const char *path, const char *name);

/* The log called @path; NULL: there is none. */
struct report_log *report_logs_find(const struct report_logs *l, const char *path);

/* Call @fn with each record of the node indexes. 0; -errno: an index cannot be read. */
int report_logs_each(struct report_logs *l, report_record_fn *fn, void *arg);

/* A report_record_fn, whose @arg is the report_logs: adds up who wrote what. Before any question of time. */
report_record_fn report_logs_survey;

/* After the survey: number the writers by their first byte, and find the moments of the whole. 0; -errno. */
int report_logs_end_survey(struct report_logs *l);

/* When the log had @log_off bytes, as far as it is known: between two moments they come evenly. */
uint64_t report_logs_when(struct report_log *log, uint64_t log_off);

/* Where piece @i of the record begins in the file. */
uint64_t report_piece_off(const struct index_record *rec, uint64_t i);
uint64_t report_pieces(const struct index_record *rec);

#endif
