/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The trailers in a log (index/record/trailer.h): making the piece that ends with one, and finding them in a
 * log that may be cut, damaged or hostile.
 *
 * A closed log ends with a trailer, and each trailer gives the position of the one before:
 *
 *   struct trailer_walk walk = { .s = s, .h = h, .id = id };
 *
 *   for (ret = trailer_last(s, h, id, &t); !ret; ret = trailer_prev(&walk, &t)) {
 *           n = trailer_walk_block(&walk, &t, &buf);      the block, as index_block_parse() takes it
 *           ...
 *           mem_free(buf);
 *   }
 *   trailer_walk_end(&walk);
 *
 * Results of a step:
 *   0                  a whole trailer
 *   -ENODATA           there is none before: the walk is complete
 *   -EBADMSG           the end of the log is lost, or a trailer is damaged; trailer_scan() finds all that are
 *                      whole
 *   -EPROTONOSUPPORT   a trailer has a feature that is not known here: the log must not be used
 *   other -errno       a read failed
 *
 * Each step leads towards the beginning of the log, so a walk ends. A position is not trusted: outside the
 * log it finds no trailer. A log with a live file need not end with a trailer. The live file has the position
 * of the last one (live_layout.h), from which trailer_at() begins the walk.
 *
 * @h is a handle of the log, @id the id of its container. Positions are of the data area (datalog.h).
 */
#ifndef PLFS_TRAILERS_H
#define PLFS_TRAILERS_H

#include "index/record/chunks.h"
#include "index/record/trailer.h"
#include "core/store/store.h"

/* The trailer at position @at. -EBADMSG: none is there. */
int trailer_at(struct store *s, int h, const uint8_t *id, uint64_t at, struct index_trailer *t);

/*
 * The trailer that the log ends with. -ENODATA: the log has no bytes; -EBADMSG: it ends with something else.
 */
int trailer_last(struct store *s, int h, const uint8_t *id, struct index_trailer *t);

/*
 * A walk towards the beginning of a log. A log that was closed often has thousands of trailers near each
 * other. After two short steps the walk therefore reads a window of 64 KiB, and takes from it all trailers
 * that are in it. It reads its first trailers alone, and those that are far from each other. If a window
 * cannot be had, they are all read alone, with the same results. A window serves one walk: the next one may
 * meet another log of the same name.
 */
struct trailer_walk {
	struct store *s;
	int h;
	const uint8_t *id;
	/* Its own, zeros to begin with: the window, and where it begins; the position of the last trailer. */
	uint8_t *window;
	uint64_t from, last;
	size_t len;
	unsigned nr_near; /* short steps, since the last long one */
	bool no_window;
};

/* Release what the walk holds. It may go on, and begins with trailers that are read alone. */
void trailer_walk_end(struct trailer_walk *walk);

/* As trailer_at(), as the next step of the walk. */
int trailer_walk_at(struct trailer_walk *walk, uint64_t at, struct index_trailer *t);

/* *@t becomes the trailer before it. */
int trailer_prev(struct trailer_walk *walk, struct index_trailer *t);

/* *@t becomes the latest trailer before it whose block has a table of checksums. */
int trailer_prev_table(struct trailer_walk *walk, struct index_trailer *t);

/*
 * Read the block of @t, at most INDEX_TRAILER_BLOCK_MAX bytes, to *@buf, which is mem_alloc()ed. The bytes
 * are not checked: index_block_parse() does that. >= 0: the length; -errno.
 */
ssize_t trailer_block(struct store *s, int h, const struct index_trailer *t, void **buf);

/* The same, from the walk's window if the block is in it. */
ssize_t trailer_walk_block(const struct trailer_walk *walk, const struct index_trailer *t, void **buf);

/*
 * Search trailers from position @from on, by the magic at each multiple of 8. @fn gets each one that is
 * whole, in the order of positions. The search stops at a non-zero of @fn and returns that; at a trailer with
 * unknown features it returns -EPROTONOSUPPORT. It reads the whole log, with a buffer of fixed size. Bytes
 * that a program wrote count as a trailer only if they hold this container's id and their own position.
 */
int trailer_scan(struct store *s, int h, const uint8_t *id, uint64_t from,
		 int (*fn)(void *arg, const struct index_trailer *t), void *arg);

/* The end of a part of a log: a table of checksums, if any, the block, the trailer. */
struct trailer_piece {
	const uint8_t *id;
	uint64_t at;                      /* where the piece begins */
	const struct index_chunks *table; /* or NULL */
	struct index_block *block;        /* its chunks_off is set here */
	/* For the trailer. With a table, prev_table becomes the trailer's own position. */
	uint64_t prev, prev_table;
	uint64_t end_unit;                /* the piece ends at a multiple of this, at least 8; */
	uint64_t len;                     /* or, unless 0, has this length. Afterwards: its length */
	/* results */
	uint8_t *buf;                     /* mem_alloc()ed */
	uint64_t trailer_at;
	const uint8_t *block_buf;         /* inside buf */
	size_t block_len;
};

/* 0; -ENOMEM; -E2BIG: it does not fit into @len, or its block is too long for a trailer. */
int trailer_piece_make(struct trailer_piece *p);

#endif
