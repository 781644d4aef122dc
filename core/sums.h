/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether the bytes of a log are those that were written: the checksums of its chunks, wherever they stand, and reads
 * that are checked by them (PLFS_VERIFY). Of a log that has been closed they are in tables that the trailers lead to
 * (trailers.h): the last 16 KiB of a log tell of 128 MiB in front of them, and a table is read when a chunk of it is
 * wanted. Of one that has not, what no table tells of is in the live file. Bytes that are staged, or in the file but
 * in no checksum yet, cannot be checked.
 */
#ifndef PLFS_SUMS_H
#define PLFS_SUMS_H

#include "../index/chunks.h"
#include "container.h"

#include <sys/uio.h>

/* PLFS_VERIFY=read. Set before the first file is opened. */
extern bool sums_verify;

/* The checksum of the first @len bytes of a chunk. 0: none is known. */
struct sums_chunk {
	uint32_t crc, len;
};

/* What is known of one log. Zeros to begin with. */
struct log_sums {
	struct sums_table *latest; /* of the end of the log */
	struct sums_table *older;  /* and one of what is in front of that, the one that was used last */
	/* Of tables, the latest first, as far as the walk has got; where there are many, some of them. */
	uint64_t *trailers;
	uint32_t nr_trailers, cap_trailers;
	bool loaded, live, warned;
};

void sums_release(struct log_sums *sums);

/* Memory that can be given up, bytes: sums_release() does it. */
size_t sums_held(const struct log_sums *sums);

/*
 * What is known of chunk @no of the log @path of @c, open at @h, of which bytes up to @need are wanted. @growing: it
 * has, or had, a live file. What cannot be known (@chunk->len is 0) is no error; where it should be known one line
 * says so. -ENOMEM.
 */
int sums_find(struct log_sums *sums, const struct container *c, const char *path, int h, bool growing, uint64_t no,
	      uint32_t need, struct sums_chunk *chunk);

/*
 * The same of all chunks that [log_off, log_off + len) is in. mem_alloc()ed, or NULL: -ENOMEM.
 */
struct sums_chunk *sums_find_all(struct log_sums *sums, const struct container *c, const char *path, int h, bool growing,
				 uint64_t log_off, uint64_t len);

/*
 * Check @len bytes that were read from @log_off on to @iov, all of @cnt. @chunks is of the first that they touch. A
 * chunk that is only partly among them is read again, all of it, and so is one that seems wrong, for its bytes may be
 * in memory that others write to; what is given is what was checked. True: all is right that is known. *@bad, unless
 * NULL, becomes the number of the first chunk that is not.
 */
bool sums_check(struct store *s, int h, const struct iovec *iov, int cnt, uint64_t log_off,
		const struct sums_chunk *chunks, uint64_t *bad);

/*
 * Read and check. @part is room for @cnt. Needs no lock. False: not all was there, or right.
 */
bool sums_read(struct store *s, int h, const struct iovec *iov, int cnt, struct iovec *part, uint64_t log_off,
	       const struct sums_chunk *chunks);

#endif
