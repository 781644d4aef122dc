/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Droppings: the data logs of a container and its node indexes. A log is made by one process, appended to by that process
 * alone, and never changed where it has been written.
 *
 *   data.HOST.PID.SEQ             (little-endian)
 *   off size field
 *     0   8  magic          "PLFSLOG1"
 *     8   4  version        2
 *    12   4  crc            CRC-32C of bytes 0..255 with this field 0
 *    16  16  container id
 *    32   8  created_ns
 *    40   8  pid
 *    48   4  chunk_len      65536: the data area is checksummed in chunks of this size (index/chunks.h)
 *    52   4  seq
 *    64  64  host           NUL-padded; with pid and seq the log's name
 *   128 128  zeros
 *   256   .  zeros up to 4096, then a hole
 * 65536   .  the data area: bytes as they were written, one write after the other, and between them tables of
 *            chunk checksums, and index blocks with their trailers (index/trailer.h). It begins at a round
 *            number so that large aligned writes meet large pages of the page cache (measured: 1 MiB
 *            writes on ext4 are 7 % faster than at 4096)
 *
 *   index.HOST                    a sequence of index blocks (index/block.h)
 */
#ifndef PLFS_DROPPING_H
#define PLFS_DROPPING_H

#include "../index/block.h"
#include "../index/chunks.h"
#include "container.h"

#define DROPPING_MAGIC "PLFSLOG1"
#define DROPPING_VERSION 2
#define DROPPING_HEADER_LEN 256
#define DROPPING_DATA_OFF 65536
#define DROPPING_LOST "lost." /* instead of "data.": a log of no bytes, to which maps send who reads what may be lost */

/*
 * This host in names: its host name (what is a letter, digit, "-" or "_" of it) and a hash of the kernel's boot
 * id, since two machines or containers may share a name.
 */
const char *dropping_host(void);

/* Of this host's kernel since it was started: CRC-32C of its boot id, made odd. 0: not known. */
uint32_t dropping_boot(void);

/* Whether the log, live file or node index called @name is of this host. */
bool dropping_is_ours(const char *name);

/* Whether the live file called @name ("live.HOST.PID.SEQ") is of this host. */
bool dropping_live_is_ours(const char *name);

/* Whether its owner is another process of this host, and there; nothing is asked of other hosts. */
bool dropping_is_running(const char *name);

/* Where the live file is that belongs to the log @log_path, both relative to the container; @path: CONTAINER_PATH_LEN. */
void dropping_live_path(const char *log_path, char *path);

/* Where the node index is that the writer of the live file @live_path appends to, likewise. */
void dropping_index_path(const char *live_path, char *path);

/* The hostdir of this host in @c. */
unsigned dropping_hostdir(const struct container *c);

/*
 * Make a new log. Returns a handle, @name (INDEX_LOG_NAME_LEN) its file name; makes the container's
 * directories when they are missing.
 */
int dropping_create_log(const struct container *c, uint64_t now_ns, char *name);

/*
 * Whether the DROPPING_HEADER_LEN bytes at @buf are the header of the log @path, relative to the container. -EIO,
 * -EPROTONOSUPPORT (one line says so).
 */
int dropping_check_header(const struct container *c, const char *path, const uint8_t *buf);

/*
 * Open a log for reading, @path relative to the container. @growing: somebody may be writing it. -EIO if its header
 * is damaged or of another log; -EPROTONOSUPPORT: of another version (one line says so).
 */
int dropping_open_log(const struct container *c, const char *path, bool growing);

/* The numbers in the name of a log: what stands for it in an index block. */
void dropping_log_numbers(const char *name, uint32_t *pid, uint32_t *seq);

/* The other way: the path of the log of @block, of the node index @index, both relative to the container. */
void dropping_log_path(const char *index, const struct index_block *block, char *path);

/*
 * Append a block, @len bytes, to this host's node index, whole or not at all. Other processes may do the same at the
 * same time.
 */
int dropping_append_index(const struct container *c, const void *block, size_t len);

/*
 * Lock this host's node index, so that nobody collects a log of it meanwhile. Returns a handle; -ENOENT: there is
 * none; -EOPNOTSUPP: there are no locks.
 */
int dropping_lock_index(const struct container *c);
void dropping_unlock_index(const struct container *c, int h);

/* A node index in memory. */
struct node_index {
	void *buf;
	size_t len, pos;
	unsigned damaged; /* blocks passed over so far */
	uint64_t in_vain; /* bytes looked at of blocks that turned out to be none */
	char path[CONTAINER_PATH_LEN]; /* relative to the store's root */
};

/* Read the node index @path, relative to the container. -EIO and one line: it is not one. */
int node_index_open(struct node_index *idx, const struct container *c, const char *path);
void node_index_close(struct node_index *idx);

/*
 * The bytes from @from to @size of the one at @h, into @idx, which is zeros but for its path. @idx->damaged: not all
 * of them could be.
 */
int node_index_read(struct node_index *idx, struct store *s, int h, uint64_t from, uint64_t size);

/*
 * The next block, which points into idx's memory. Returns 1, or 0 at the end; torn and damaged ones are passed over (one
 * line says so of the first damaged one). -EPROTONOSUPPORT: a block of another version (one line says so).
 */
int node_index_next(struct node_index *idx, struct index_block *block);

/*
 * Whether so much has been looked at in vain, with what is at @p, where @left bytes are left and no block, that nothing
 * behind it is worth it.
 */
bool node_index_is_hopeless(struct node_index *idx, const uint8_t *p, size_t left);

/*
 * Read the node index @path and call @fn for each of its blocks; *@damaged counts those passed over. Stops at and
 * returns a non-zero.
 */
int dropping_read_index(const struct container *c, const char *path,
			int (*fn)(void *arg, const struct index_block *block), void *arg, unsigned *damaged);

#endif
