/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The leases of a writer (lease.h): which one it takes, and how far a record may grow in the one that it
 * holds. The inode's lock is held around every call.
 */
#ifndef PLFS_LEASED_H
#define PLFS_LEASED_H

#include "index/record/record.h"
#include "index/record/shapes.h"
#include "core/dropping/lease.h"

/* The lease, and the habits by which the writer guesses where it needs the next one. */
struct leased {
	struct lease lease;
	struct index_shapes shapes;
	uint64_t seen_count, seen_len; /* of the last record, when @shapes last took it in */
	/* position of the log when the lease began, and bytes of its first write */
	uint64_t begun_at, begun_len;
	bool crowded;                  /* others have ended a lease: no later one is on all of the file */
	unsigned bad_luck;             /* leases in a row that others ended before they paid */
	unsigned skip;                 /* this many times no lease is tried */
};

/* Whether the writer holds a lease that has all of @range. */
bool leased_has(const struct leased *l, const struct index_pattern *range);

/*
 * Take a lease for the write of @range, or none; @log_len: length of the log. The old lease is over. Returns
 * the stamp of that write. The caller has ended the records that grew under the old lease.
 */
uint64_t leased_take(struct leased *l, const struct index_pattern *range, uint64_t log_len);

/*
 * Let the next guess know by how much the record @last has grown. To be called before any other use of @last.
 */
void leased_note_growth(struct leased *l, const struct index_record *last);

/* The same of a write that was indexed; @last is the record that holds it. */
void leased_note_write(struct leased *l, uint64_t logical_off, uint64_t len, const struct index_record *last);

/* How far the record @last may grow as it does now, with the last write at @logical_off. */
uint64_t leased_growth_end(const struct leased *l, const struct index_record *last, uint64_t logical_off);

/* Until when a record that begins now may grow; coarse. */
uint64_t leased_until_ns(const struct leased *l);

#endif
