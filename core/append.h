/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How bytes get into a log: through the stage, past it, and into the checksums on the way. What they are is
 * writer.c's, the only one to call this.
 */
#ifndef PLFS_APPEND_H
#define PLFS_APPEND_H

#include "bytes.h"
#include "trailers.h"
#include "writer.h"

/*
 * From here on copying and checksumming are done at once. For less the latency of a checksum that continues the last
 * one shows.
 */
#define FUSED_LEN 2048

/*
 * What a program writes next most often stands behind this, cold: asked for so far ahead, 512-byte writes take a tenth
 * less time. An address that is none does no harm.
 */
#define NEXT_LEN 2048

static inline uint64_t append_log_len(const struct writer *w)
{
	return w->stage.flushed_len + w->stage.staged_len;
}

/*
 * Copy @len bytes into the stage, where there is room, and take them into the checksums with all that is staged
 * before them.
 */
void append_fused(struct writer *w, const void *buf, size_t len);

/* Stage @len bytes, for which there is room. */
static inline void append_put(struct writer *w, const void *buf, size_t len)
{
	struct stage *s = &w->stage;

	if (len < FUSED_LEN) {
		for (size_t i = 0; i < len; i += 64)
			__builtin_prefetch((const char *)buf + NEXT_LEN + i);
		copy_to_pages(stage_bytes(s) + s->staged_len, buf, len);
	} else {
		append_fused(w, buf, len);
	}
	stage_put(s, (ssize_t)len);
}

/*
 * Append @len bytes: small ones to the stage, large ones to the log file behind what is staged. Returns how many were
 * taken, fewer only when an error came after some, or -errno: then none.
 */
ssize_t append_bytes(struct writer *w, const void *buf, size_t len);

/* What is to be known of a writer to take the last piece back. */
struct append_undo {
	uint64_t flushed_len, last_trailer, last_table;
	struct writer_sums summed;
};

/*
 * Append @block, whose records are in it, and its trailer (index/trailer.h) to the log: they are staged, as any bytes
 * are. With @table, for which the stage must be empty, the checksums in the live file go in front of them as a table,
 * and the whole, padded to one chunk, is written at once. *@p tells how it stands in the log; the caller frees its
 * buf (mem_free()), after an error too. *@undo is for append_undo(). -errno: the log is as before.
 */
int append_block(struct writer *w, struct index_block *block, bool table, struct append_undo *undo, struct trailer_piece *p);

/* Take it back if nothing of it has been written: the block went nowhere else. */
void append_undo(struct writer *w, const struct append_undo *undo, const struct trailer_piece *p);

/*
 * The same at the end, always with a table unless the log is empty, in one call with what is staged: the chunk under
 * way is cut off, and the piece is in none.
 */
int append_last_block(struct writer *w, struct index_block *block, struct trailer_piece *p);

/* The log is complete: give back the space that it did not use. */
void append_give_back(struct writer *w);

#endif
