/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How bytes get into a log: through the stage, past it, and into the checksums on the way. What they are is writer.c's, the only
 * one to call this.
 */
#ifndef PLFS_APPEND_H
#define PLFS_APPEND_H

#include "writer.h"

/* From here on copying and checksumming are done at once. For less the latency of a checksum that continues the last one shows. */
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

/* Copy @len bytes into the stage, where there is room, and take them into the checksums with all that is staged before them. */
void append_fused(struct writer *w, const void *buf, size_t len);

/* Stage @len bytes, for which there is room. */
static inline void append_put(struct writer *w, const void *buf, size_t len)
{
	struct stage *s = &w->stage;

	if (len < FUSED_LEN) {
		for (size_t i = 0; i < len; i += 64)
			__builtin_prefetch((const char *)buf + NEXT_LEN + i);
		memcpy(stage_bytes(s) + s->staged_len, buf, len);
	} else {
		append_fused(w, buf, len);
	}
	stage_put(s, (ssize_t)len);
}

/*
 * Append @len bytes: small ones to the stage, large ones to the log file behind what is staged. Returns how many were taken, fewer
 * only when an error came after some, or -errno: then none.
 */
ssize_t append_bytes(struct writer *w, const void *buf, size_t len);

/*
 * Flush, and move the chunk checksums to the log to make room for others. The table takes up as many bytes as a chunk,
 * so that what is written later is as well aligned as before, and is checksummed with them. @block learns where it is.
 */
int append_table(struct writer *w, struct index_block *block);

/* The same at the end, in one call with what is staged: the chunk under way is cut off, and the table is in none. */
int append_last_table(struct writer *w, struct index_block *block);

/* The log is complete: give back the space that it did not use. */
void append_give_back(struct writer *w);

#endif
