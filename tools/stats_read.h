/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reading stats files, man/plfs-stats.5: each line, and the sums of each file.
 */
#ifndef PLFS_STATS_READ_H
#define PLFS_STATS_READ_H

#include "tool.h"

#include <uthash.h>

#define STATS_SIZES 32
#define STATS_COMMON 4

struct stats_way {
	double calls, appends, bytes, seconds, slowest, first, last, sequential, strided, random;
	double sizes[STATS_SIZES];
	struct stats_common {
		double len, stride, calls;
	} common[STATS_COMMON];
};

/* One line: what a process did with a file. Texts are "" where the line has none. */
struct stats_line {
	double version, pid, part, start, rank, ranks; /* rank -1: not known */
	double files, first, last, opens, closes, syncs, truncates, errors;
	double open_seconds, close_seconds, sync_seconds, end, records;
	bool ended;
	char job[72], host[72], program[72], stored[8];
	char file[PATH_MAX];
	struct stats_way write, read;
	double backend_seconds; /* in all its calls */
};

/* Lines of one file by one job, summed. */
struct stats_file {
	UT_hash_handle hh;
	char *key;	       /* job, newline, file */
	struct stats_line sum; /* pid, rank: of the last line */
	unsigned processes, killed, hosts, writers, readers;
	double least, most; /* bytes written by one of the writers */
	char slowest_host[72];
	double slowest_rank, slowest_seconds; /* of those that wrote */
};

struct stats {
	struct stats_file *files; /* in the order of the file */
	unsigned lines, newer, damaged, repeated;
};

/*
 * Take in what processes have left, then read the stats file @path. False: an error was printed. Lines that
 * are damaged or newer are left out; one line on standard error says how many.
 */
bool stats_read(struct stats *s, const char *path);
void stats_release(struct stats *s);

/*
 * Parse one line. 1: of this version; 0: of a newer one; -1: no whole object.
 */
int stats_parse(struct stats_line *l, const char *text);

#endif
