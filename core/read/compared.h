/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which chunks of a reader's logs have been compared with their checksums (core/dropping/sums.h), and which
 * checksums the next read needs. A whole chunk never changes: it is compared once for each loaded map, and
 * has one bit from then on. A chunk that is not whole is compared as far as its checksum goes, and that far
 * is remembered of the last one. The inode's lock is held around every call.
 */
#ifndef PLFS_COMPARED_H
#define PLFS_COMPARED_H

#include "core/dropping/sums.h"

struct compared_entry; /* 64 chunks of a log, a bit for each */

/* Of all logs. Zeros to begin with, but for @how. */
struct compared {
	enum sums_verify how;
	struct compared_entry *table; /* by hash */
	uint32_t nr, cap;
};

/* Of one log. Zeros to begin with. */
struct compared_log {
	struct log_sums sums;
	uint64_t part_end; /* the chunk with the byte in front of this is compared up to here; 0: none */
};

/* A log that is open. */
struct compared_source {
	const struct container *c;
	const char *path; /* relative to the container */
	uint32_t no;
	int h;
	bool growing; /* it has, or had, a live file */
};

/* Forget what has been compared. The memory is bounded: 2 MiB. */
void compared_release(struct compared *set);

/*
 * Whether a read of [log_off, log_off + len) has nothing to compare: it is off, or all that can be compared
 * has been. Of a growing log it may look for checksums. A later read may find something to compare.
 */
bool compared_is_done(const struct compared *set, struct compared_log *log,
		      const struct compared_source *src, uint64_t log_off, uint64_t len);

/*
 * The checksums of the chunks that [log_off, log_off + len) touches, mem_alloc()ed, for sums_read() and
 * sums_check(). Chunks that need no comparison have none. *@chunks NULL: no chunk needs one. -errno.
 */
int compared_sums(struct compared *set, struct compared_log *log, const struct compared_source *src,
		  uint64_t log_off, uint64_t len, struct sums_chunk **chunks);

/* Chunk @no has @chunk, which cannot be compared with what a power failure has left: nor is it again. */
void compared_excuse(struct compared *set, uint32_t log_no, uint64_t no, struct sums_chunk *chunk);

/* These bytes have been compared with @chunks. Without memory they are compared again. */
void compared_add(struct compared *set, struct compared_log *log, uint32_t no, uint64_t log_off, uint64_t len,
		  const struct sums_chunk *chunks);

#endif
