/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is left of a read once it is known which bytes come from where: reads from logs, straight into the program's
 * memory, that need no lock. The pieces of a large read interleave the logs that it is made of, but in each log they
 * lie together mostly: those become one scattering read (list I/O, Thakur et al., "On implementing MPI-IO portably
 * and with high performance", 1999).
 */
#ifndef PLFS_SCATTER_H
#define PLFS_SCATTER_H

#include "logset.h"

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
	struct sums_chunk *sums; /* mem_alloc()ed, or NULL: it is not checked */
};

struct scatter {
	uint16_t nr_pieces, nr_groups, max_groups;
	uint16_t last; /* the group that was added to last */
	struct scatter_group groups[SCATTER_GROUPS];
	struct scatter_piece pieces[SCATTER_PIECES];
	struct iovec iov[SCATTER_PIECES], part[SCATTER_PIECES];
};

/* With room for reads from @max_groups logs. */
void scatter_init(struct scatter *s, unsigned max_groups);

/* Have @len bytes (less than 4 GiB) at @log_off of a log read to @buf. False: there is no room for it. */
bool scatter_add(struct scatter *s, uint32_t log_no, uint64_t log_off, void *buf, size_t len);

/*
 * Read all that has a handle. Needs no lock. Returns whether all bytes were there, and right; if not they are to be
 * read in another way. The handles are still to be given back.
 */
bool scatter_run(struct scatter *s, struct store *store);

#endif
