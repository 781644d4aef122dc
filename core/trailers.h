/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The trailers in a log (index/trailer.h): making what goes in front of one, and finding them, of a log that may be cut,
 * damaged or hostile.
 *
 * A log that has been closed ends with one, and each tells of the one before:
 *
 *   for (ret = trailer_last(s, h, id, &t); !ret; ret = trailer_prev(s, h, id, &t)) {
 *           n = trailer_block(s, h, &t, &buf);            the block, as index_block_parse() takes it
 *           ...
 *           mem_free(buf);
 *   }
 *
 * ret is -ENODATA at the end; -EBADMSG where the end of the log is lost or a trailer is damaged: trailer_scan() then
 * finds all that are whole. Each step leads towards the beginning of the log, so a walk ends. Nothing is believed
 * that has not been checked: a position that leads outside the log finds no trailer. A log whose live file is still
 * there need not end with one: the live file tells of the last (stage.h), all before it can be walked from there by
 * trailer_at().
 *
 * @h is a handle of the log, @id that of its container; positions are those of the data area, which begins at
 * DROPPING_DATA_OFF. -errno is that of a read.
 */
#ifndef PLFS_TRAILERS_H
#define PLFS_TRAILERS_H

#include "../index/chunks.h"
#include "../index/trailer.h"
#include "store.h"

/* The trailer at position @at. -EBADMSG: there is none. */
int trailer_at(struct store *s, int h, const uint8_t *id, uint64_t at, struct index_trailer *t);

/* The one that the log ends with. -ENODATA: the log holds nothing; -EBADMSG: it ends with something else. */
int trailer_last(struct store *s, int h, const uint8_t *id, struct index_trailer *t);

/* *@t becomes the one before it. -ENODATA: there is none before. */
int trailer_prev(struct store *s, int h, const uint8_t *id, struct index_trailer *t);

/* *@t becomes the latest before it whose block tells of a table of checksums. -ENODATA: there is none. */
int trailer_prev_table(struct store *s, int h, const uint8_t *id, struct index_trailer *t);

/*
 * Read the block of @t, at most INDEX_TRAILER_BLOCK_MAX bytes: mem_alloc()ed *@buf. Returns its length or -errno;
 * what it is is for index_block_parse() to say.
 */
ssize_t trailer_block(struct store *s, int h, const struct index_trailer *t, void **buf);

/*
 * Look for trailers from position @from on, by the magic at each multiple of 8, and call @fn for each that is whole,
 * in the order of their positions. Stops at and returns a non-zero of @fn. Reads the whole log, with a buffer of
 * fixed size. Bytes that a program wrote count as a trailer only if they have this container's id and their own
 * position in them.
 */
int trailer_scan(struct store *s, int h, const uint8_t *id, uint64_t from,
		 int (*fn)(void *arg, const struct index_trailer *t), void *arg);

/* What stands at the end of a part of a log: a table of checksums, if any, the block, the trailer. */
struct trailer_piece {
	const uint8_t *id;
	uint64_t at;                      /* where the piece begins */
	const struct index_chunks *table; /* or NULL */
	struct index_block *block;        /* its chunks_off is set here */
	/* Of the trailer; prev_table becomes the trailer's own position if there is a table. */
	uint64_t prev, prev_table;
	uint64_t end_unit;                /* the piece ends at a multiple of this, at least 8; */
	uint64_t len;                     /* or, if not 0, is so long. Its length afterwards */
	/* afterwards */
	uint8_t *buf;                     /* mem_alloc()ed */
	uint64_t trailer_at;
	const uint8_t *block_buf;         /* inside buf */
	size_t block_len;
};

/* -ENOMEM; -E2BIG: it does not fit into @len. */
int trailer_piece_make(struct trailer_piece *p);

#endif
