/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The checksums of a log's chunks, and reads that are checked by them (PLFS_VERIFY). A closed log has them in
 * tables, which its trailers lead to (trailers.h). The last 16 KiB of a log cover the 128 MiB in front of
 * them; a table is read when one of its chunks is wanted. An open log has its latest checksums in the live
 * file. Bytes that are staged, or that no checksum covers yet, cannot be checked.
 */
#ifndef PLFS_SUMS_H
#define PLFS_SUMS_H

#include "index/record/chunks.h"
#include "core/backend/container.h"

#include <sys/uio.h>

/* PLFS_VERIFY: off; read, the default: each chunk once for a loaded map (core/read/compared.h); always. */
enum sums_verify { SUMS_OFF, SUMS_ONCE, SUMS_ALWAYS };

/* Set before the first file is opened. */
extern enum sums_verify sums_verify;

/* The checksum of the first @len bytes of a chunk. @len 0: none is known; @lost: and none will be. */
struct sums_chunk {
	uint32_t crc, len;
	bool lost;
};

/* The checksums of one log, as far as they have been read. Zeros to begin with. */
struct log_sums {
	struct sums_table *latest; /* of the end of the log */
	struct sums_table **older; /* of parts in front of that, in any order; of many, the last ones */
	size_t cap_older, older_bytes;
	uint32_t nr_older, next_older;
	/* Positions of trailers with tables, the latest first, as far as the walk has come; of many, some. */
	uint64_t *trailers;
	size_t cap_trailers;
	uint32_t nr_trailers;
	bool loaded, live, warned;
	bool quiet;         /* no line says that a table is lost */
	uint64_t looked;    /* sums_reach(): the length, in chunks, at the last look, and 1; 0: none yet */
	uint64_t end;       /* of the log's data, when sums_reach() last asked; 0: not yet */
	unsigned max_steps; /* from table to table at a time; 0: any number */
};

void sums_release(struct log_sums *sums);

/* Bytes of memory that sums_release() gives back. */
size_t sums_held(const struct log_sums *sums);

/*
 * The checksum of chunk @no of the log @path of @c, open at @h; the caller wants its bytes up to @need.
 * @growing: the log has, or had, a live file. 0: *@chunk, in which a len of 0 means that the checksum is not
 * known (one line says so where it should be), or is too many steps away for now; -ENOMEM; -EPROTONOSUPPORT:
 * features that are not known here (one line says so); -errno of a read; -EIO: the log is made of parity, and
 * nothing could tell wrong bytes.
 */
int sums_find(struct log_sums *sums, const struct container *c, const char *path, int h, bool growing,
	      uint64_t no, uint32_t need, struct sums_chunk *chunk);

/*
 * How far the checksums of a growing log go, at least, for a read of [@from, @end): *@reach. They are looked
 * for again if @end is beyond, @from is in the log's file, and that has more whole chunks than at the last
 * look. A log that another host writes is looked at once. -errno.
 */
int sums_reach(struct log_sums *sums, const struct container *c, const char *path, int h, uint64_t from,
	       uint64_t end, uint64_t *reach);

/*
 * How many bytes the log had from @from on when sums_reach() last asked; 0: some have checksums, or it has
 * not asked.
 */
uint64_t sums_unsummed(const struct log_sums *sums, uint64_t from);

/*
 * Check the bytes that were read from @log_off on to the @cnt places of @iov. @chunks begins with the first
 * chunk that they touch. A chunk that is not all among them is read again. So is one that seems wrong, for
 * other threads may write to @iov; the bytes that were checked are then copied there. True: no checksum that
 * is known is wrong; false: *@bad, unless NULL, is the number of the first wrong chunk.
 */
bool sums_check(struct store *s, int h, const struct iovec *iov, int cnt, uint64_t log_off,
		const struct sums_chunk *chunks, uint64_t *bad);

/*
 * Read and check. The rest of a chunk that is checked is read in the same call. @part has room for @cnt + 2
 * entries. Needs no lock. True: all was read and is right.
 */
bool sums_read(struct store *s, int h, const struct iovec *iov, int cnt, struct iovec *part, uint64_t log_off,
	       const struct sums_chunk *chunks);

#endif
