/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Data logs. A log is made by one process, appended to by that process alone, and never changed where it has
 * been written.
 *
 *   data.HOST.PID.SEQ             (little-endian)
 *   off size field
 *     0   8  magic          "PLFSLOG1"
 *     8   4  version        3
 *    12   4  crc            CRC-32C of bytes 0..255 with this field 0
 *    16  16  id             of the container
 *    32   8  created_ns
 *    40   8  pid
 *    48   4  chunk_len      65536: the data area is checksummed in chunks of this size
 *                           (index/record/chunks.h)
 *    52   4  seq
 *    56   4  compat         features that a reader may ignore: 0
 *    60   4  incompat       features that a reader must know: 0
 *    64  64  host           NUL-padded; with pid and seq the log's name
 *   128 128  zeros
 *   256   .  zeros up to 4096, then a hole
 * 65536   .  the data area: bytes as they were written, one write after the other, and between them tables of
 *            chunk checksums, and index blocks with their trailers (index/record/trailer.h)
 *
 * The data area begins at a round number so that large aligned writes meet large pages of the page cache
 * (measured: 1 MiB writes on ext4 are 7 % faster than at 4096).
 *
 * Positions. Every position that a record, block, trailer, table or live file holds counts bytes of the data
 * area, as the program wrote them: before any codec. This is the only room that knows where in the file the
 * byte at a position lies. All others read and write a log through the functions below, with the handle of
 * the log and a position. A codec that keeps positions is a change of this file alone.
 */
#ifndef PLFS_DATALOG_H
#define PLFS_DATALOG_H

#include "index/record/block.h"
#include "index/record/chunks.h"
#include "core/backend/container.h"
#include "core/backend/placed.h"

#define DATALOG_MAGIC "PLFSLOG1"
#define DATALOG_VERSION 3
#define DATALOG_INCOMPAT_KNOWN 0u
#define DATALOG_HEADER_LEN 256
#define DATALOG_DATA_OFF 65536

/* ---- logs ---- */

/*
 * Make a new log, and this host's hostdir if it is missing. @name (INDEX_LOG_NAME_LEN): its file name. With
 * c->near it is made near, or with c->hold there, or not at all. >= 0: a handle, for appending; -EIDRM: the
 * container has gone, or was purged; -errno.
 */
int datalog_create(const struct container *c, uint64_t now_ns, char *name);

/*
 * Check the DATALOG_HEADER_LEN bytes at @buf against the log @path, relative to the container.
 * 0: its header; -EIO: damaged, or of another log; -EPROTONOSUPPORT: of another version, or with a feature in
 *    incompat that
 * is not known here (one line says so).
 */
int datalog_check_header(const struct container *c, const char *path, const uint8_t *buf);

/* The same of the open file @h; also -errno. */
int datalog_check(const struct container *c, const char *path, int h);

/*
 * Open a log for reading, @path relative to the container. @growing: a process may be appending to it.
 * >= 0: a handle; -EIO, -EPROTONOSUPPORT: as above; -errno.
 */
int datalog_open(const struct container *c, const char *path, bool growing);

/* Whether the log @path, or what follows the part that is at home, is in a place that is not on this host. */
bool datalog_is_elsewhere(const struct container *c, const char *path);

/*
 * Open a log that is there, to write to it: the header is checked through the handle that is written to. A
 * name says nothing of whose bytes it leads to. @flags: 0 or STORE_BRIEFLY; *@st: its attributes. >= 0: a
 * handle; -EMLINK: it has a second name; as above.
 */
int datalog_open_to_write(const struct container *c, const char *path, int flags, struct stat *st);

/* ---- the data area ---- */

/* Its length, in a log with these attributes. 0 also for a log that is cut in front of it. */
static inline uint64_t datalog_len(const struct stat *st)
{
	return st->st_size > DATALOG_DATA_OFF ? (uint64_t)st->st_size - DATALOG_DATA_OFF : 0;
}

/* Whether a log can have @len bytes at @log_off. Positions come from files: they may be any number. */
static inline bool datalog_may_have(uint64_t log_off, uint64_t len)
{
	return log_off <= INT64_MAX - DATALOG_DATA_OFF && len <= INT64_MAX - DATALOG_DATA_OFF - log_off;
}

/*
 * The offset in the file of the byte at @log_off, to *@fd_off, for a caller that hands the descriptor on or
 * repairs single bytes. 0; -EOPNOTSUPP: no range of the file holds the bytes as they are.
 */
static inline int datalog_fd_off(uint64_t log_off, uint64_t *fd_off)
{
	*fd_off = DATALOG_DATA_OFF + log_off;
	return 0;
}

/*
 * The position of the byte at @fd_off of the file, of which all bytes are read as they are (parities.h).
 * UINT64_MAX: it is in front of the data area.
 */
static inline uint64_t datalog_log_off(uint64_t fd_off)
{
	return fd_off < DATALOG_DATA_OFF ? UINT64_MAX : fd_off - DATALOG_DATA_OFF;
}

static_assert(DATALOG_DATA_OFF % INDEX_CHUNK_LEN == 0, "whole chunks of the file are whole chunks of the data");

/*
 * The place that a write at @log_off has for the file system. Its remainders say what is aligned; it is no
 * offset.
 */
static inline uint64_t datalog_place(uint64_t log_off) { return DATALOG_DATA_OFF + log_off; }

/*
 * Read and write as the functions of the store do (store.h), at @log_off, for which datalog_may_have() is
 * true: bytes done, fewer at the end of the log; -errno. Writing is for the owner, or for a process that has
 * taken the log over.
 */
static inline ssize_t datalog_pread(struct store *s, int h, void *buf, size_t len, uint64_t log_off)
{
	return s->ops->pread(s, h, buf, len, DATALOG_DATA_OFF + log_off);
}

/* Into several places; @iov is used up. */
static inline ssize_t datalog_preadv(struct store *s, int h, struct iovec *iov, int cnt, uint64_t log_off)
{
	return store_preadv(s, h, iov, cnt, DATALOG_DATA_OFF + log_off);
}

static inline ssize_t datalog_pwrite(struct store *s, int h, const void *buf, size_t len, uint64_t log_off)
{
	return s->ops->pwrite(s, h, buf, len, DATALOG_DATA_OFF + log_off);
}

/* @len bytes at @buf and behind them @len2 at @buf2. */
static inline ssize_t datalog_pwrite2(struct store *s, int h, const void *buf, size_t len, const void *buf2,
				      size_t len2, uint64_t log_off)
{
	return store_pwrite2(s, h, buf, len, buf2, len2, DATALOG_DATA_OFF + log_off);
}

/* Cut the log to @len bytes, or let it reach to there in zeros. 0; -errno. */
static inline int datalog_truncate(struct store *s, int h, uint64_t len)
{
	return s->ops->truncate(s, h, DATALOG_DATA_OFF + len);
}

/*
 * Of a log near: have space for what comes behind @log_off, before it is written. 0; -ENOSPC, -EDQUOT: the
 * place is full.
 */
static inline int datalog_reserve_near(struct store *s, int h, uint64_t log_off, uint64_t len)
{
	return placed_reserve(s, h, DATALOG_DATA_OFF + log_off, len);
}

/* As store_allocate_ahead(). */
static inline int datalog_allocate_ahead(struct store *s, int h, uint64_t log_off, uint64_t len)
{
	return store_allocate_ahead(s, h, DATALOG_DATA_OFF + log_off, len);
}

/* The first position from @log_off on that is not certainly in a hole. UINT64_MAX: there is none. */
static inline uint64_t datalog_next_data(struct store *s, int h, uint64_t log_off)
{
	uint64_t off = store_next_data(s, h, DATALOG_DATA_OFF + log_off);

	return off == UINT64_MAX ? off : off - DATALOG_DATA_OFF;
}

#endif
