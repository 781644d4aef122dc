/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The files that have open logs on this host, or logs that a killed process has left open. It is for stat(),
 * which sees the stub's inode only. The size of such a file may be known to its live files alone; the size of
 * all others is in the stub. So a stat costs one load from memory, and a writer publishes the size only now
 * and then.
 *
 * What a table says is believed only as far as those who can change it can change the files. So there is
 * one of each owner's files, in which the owner and root count; one of those of each group that it may write;
 * and one of those that all may write. Nobody locks a table or waits for one. One that is cut, or not what
 * it should be, says nothing: then live files are asked.
 *
 *   BACKEND/.plfs/writers.HOST.uUID (mode 0644, owner UID), .gGID (0664, group GID) and .all (0666)
 *   64 KiB, mapped by all processes that write or stat such a file
 *     0  8  the number of logs that have ended
 *     8  4  1: every reader that looked for the table before it was made looks again
 *    64  4  each: the number of open logs of all files whose inode numbers hash to it
 *
 * A reader that finds no table does without one for 100 us, and believes stubs. So no writer counts itself in
 * a new table before the table has been there for longer.
 *
 * A count may be too high, and costs a look at a file in vain; it is never too low. There is no table where
 * the backend is shared with other hosts, or where nothing can be mapped. A log that its writer can count
 * nowhere is known by what it has published alone.
 */
#ifndef PLFS_WRITER_TABLE_H
#define PLFS_WRITER_TABLE_H

#include "core/backend/container.h"
#include "core/backend/mount.h"

/*
 * Count a log of the file with the container @c and the stub @number, before its live file is made. Returns
 * what to pass to the end; NULL: there is no table to write to, and nothing to end.
 */
void *writer_table_begin(struct plfs_mount *m, const struct container *c, ino_t number);

/* End what was begun, after the size has been published and the live file is gone. */
void writer_table_end(void *table, ino_t number);

/* @nr live files of dead processes of this host, of the stub @number and its owner's, are gone. */
void writer_table_gone(struct plfs_mount *m, const struct container *c, ino_t number, unsigned nr);

/* Whether the live file @live, relative to the store, is one that writer_table_gone() is to be told of. */
bool writer_table_is_owners(const struct container *c, const char *live);

/*
 * container_remove() of @c, that of the stub @number. The caller knows that no process has the file open: its
 * live files are of dead processes, and stop counting.
 */
int writer_table_remove_container(struct plfs_mount *m, const struct container *c, ino_t number);

/*
 * The stub @before is about to get the owner, group and mode of @after, or has got them just now. If a log
 * may count in a table where nobody looks then, count it once more in the new owner's table, for good: its
 * writer may not be able to. @own: two tables in which this process counts a log of the file, which it
 * moves itself; or NULL. Returns whether there was such a log.
 */
bool writer_table_carry(const struct stat *before, const struct stat *after, void *const *own);

/* How many logs have ended in all tables that this process knows. _before() first looks for its user's. */
uint64_t writer_table_ended(void);
uint64_t writer_table_before(void);

/*
 * Whether the stub @st may have a live file, or may have had one since writer_table_before() was @ended.
 */
#define WRITER_TABLE_UNKNOWN UINT64_MAX
bool writer_table_may_be(const struct stat *st, uint64_t ended);

/*
 * Whether a file that is open here may have a live file that this process has not seen. true also without a
 * table.
 */
bool writer_table_may_have_begun(struct plfs_mount *m, const struct stat *st);

/*
 * Call @fn with the path, relative to the store, of each table in which who writes the file of @st may
 * count.
 */
void writer_table_each(const struct stat *st, void (*fn)(void *arg, const char *path), void *arg);

#endif
