/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The data logs of a reader: few descriptors and little memory, however many logs there are. Small pieces are
 * read through *windows*: strided data that is read in order is in order in every log too, so one window
 * serves many small reads. Large pieces go from the log straight to the program's memory, without the lock.
 * The inode's lock is held around every call but log_handle_put().
 */
#ifndef PLFS_LOGSET_H
#define PLFS_LOGSET_H

#include "core/read/open_logs.h"

void logset_init(struct logset *set, const struct container *c);

/* Compare so from here on, whatever PLFS_VERIFY says. For whoever throws the checksums away: SUMS_ALWAYS. */
void logset_set_verify(struct logset *set, enum sums_verify how);

/* Forget all logs. Handles that are being read from stay with the set until logset_bury(). */
void logset_clear(struct logset *set);
void logset_release(struct logset *set);

/* Take over @path, which is mem_alloc()ed. Returns the log's number, or -ENOMEM. */
int logset_add(struct logset *set, char *path);

/* The paths of all logs, mem_alloc()ed as is each; NULL without memory. Afterwards release the set. */
char **logset_take_paths(struct logset *set, uint32_t *nr);

/* This process goes on with the log @no: from here on that is read, and no copy, which is shorter. */
void logset_goes_on(struct logset *set, uint32_t no);

/*
 * Read all of [log_off, log_off + len) of log @no: from the log, and bytes that its owner has not flushed
 * from the live file. 0; -EIO: neither has the bytes, or a checksum differs (one line names the log);
 * -ENOENT: the log is missing; another -errno.
 */
int logset_read(struct logset *set, uint32_t no, void *buf, size_t len, uint64_t log_off);

/*
 * Choose how to read [log_off, log_off + len) in @nr_pieces pieces. 1: the caller reads from *@out, a
 * reference to the log's handle, by datalog_preadv(), and gets bytes that the log lacks from logset_read();
 * 0: use logset_read(); -errno as that.
 */
int logset_take(struct logset *set, uint32_t no, uint64_t log_off, size_t len, unsigned nr_pieces,
		struct log_handle **out);

/*
 * The checksums to compare the bytes with that logset_take() was asked for: *@chunks, for sums_read(),
 * mem_alloc()ed; NULL: they are not compared. -errno. logset_compared(): they have been compared.
 */
int logset_sums(struct logset *set, uint32_t no, uint64_t log_off, size_t len, struct sums_chunk **chunks);
void logset_compared(struct logset *set, uint32_t no, uint64_t log_off, size_t len,
		     const struct sums_chunk *chunks);

/*
 * Compare [log_off, log_off + len) with its checksums, unless that has been done. Returns as logset_read();
 * the bytes are dropped.
 */
int logset_verify(struct logset *set, uint32_t no, uint64_t log_off, uint64_t len);

#endif
