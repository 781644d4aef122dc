/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Scattering reads: pieces from several logs go straight into the program's memory, without the lock. The
 * pieces of a large read interleave its logs, but in each log most of them lie together. Those become one
 * scattering read (list I/O, Thakur et al., "On implementing MPI-IO portably and with high performance",
 * 1999).
 */
#ifndef PLFS_SCATTER_H
#define PLFS_SCATTER_H

#include "core/read/logset.h"

#include <sys/uio.h>

#define SCATTER_PIECES 512
#define SCATTER_GROUPS 64

struct scatter_piece {
	uint8_t *buf;
	uint32_t len;
	uint16_t next; /* of its group */
};

/* Pieces that lie one behind the other in a log. */
struct scatter_group {
	uint64_t log_off, len;
	struct log_handle *handle; /* NULL: it has been read already */
	uint32_t log_no;
	uint16_t first, last, nr_pieces;
	struct sums_chunk *sums; /* mem_alloc()ed, or NULL: it is not compared */
};

struct scatter {
	uint16_t nr_pieces, nr_groups, max_groups;
	uint16_t last; /* the group that was added to last */
	struct scatter_group groups[SCATTER_GROUPS];
	struct scatter_piece pieces[SCATTER_PIECES];
	struct iovec iov[SCATTER_PIECES], part[SCATTER_PIECES + 2];
};

/* Begin, with room for reads from @max_groups logs. */
void scatter_init(struct scatter *s, unsigned max_groups);

/*
 * Add a piece: @len bytes (less than 4 GiB) at @log_off of a log go to @buf. False: there is no room for it.
 */
bool scatter_add(struct scatter *s, uint32_t log_no, uint64_t log_off, void *buf, size_t len);

/*
 * Read all groups that have a handle. Needs no lock. True: all bytes were there, and right; false: read them
 * in another way. The caller still returns the handles.
 */
bool scatter_run(struct scatter *s, struct store *store);

#endif
