/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A node index: the blocks of all logs of one host in one container. A log gets its block there when it is
 * closed, or when its live index is full.
 *
 *   index.HOST                    a sequence of index blocks (index/record/block.h)
 */
#ifndef PLFS_NODE_INDEX_H
#define PLFS_NODE_INDEX_H

#include "index/record/block.h"
#include "core/backend/container.h"

/*
 * Append a block, @len bytes, to this host's node index, whole or not at all. Other processes may do the same
 * at the same time. A missing file is made, and its hostdir. 0; -errno: -EIO, and one line, if the file is
 * none that may be written to (container_check_file()); -EIO without a line if the container has gone.
 */
int node_index_append(const struct container *c, const void *block, size_t len);

/*
 * The same to the node index @index, relative to the container, in a directory that is there, and on stable
 * storage.
 */
int node_index_append_to(const struct container *c, const char *index, const void *block, size_t len);

/*
 * Lock this host's node index, with others that do the same: no process collects a log of it meanwhile.
 * >= 0: a handle; -ENOENT: there is none; -EOPNOTSUPP: there are no locks.
 */
int node_index_lock(const struct container *c);

/*
 * Have the open node index @h alone: no process appends to it, or resumes a log of it. 0; -EBUSY: another
 * process has held a lock for as long as @patience_ms: one that reads the file, for all that is known;
 * -errno.
 */
int node_index_own(struct store *s, int h, unsigned patience_ms);

/*
 * Open the node index @index, relative to the container, in a directory that is there, and have it alone. A
 * missing file is made. *@st: its attributes. A store without locks leaves it unlocked. >= 0: a handle;
 * -EIO as above; -EBUSY: as node_index_own(), after a second; -errno.
 */
int node_index_lock_of(const struct container *c, const char *index, struct stat *st);

/* A container_proof. */
bool node_index_is_one(const struct container *c, const struct stat *st, const uint8_t *head, size_t len);

/* The end of either. */
void node_index_unlock(const struct container *c, int h);

/* A node index in memory. */
struct node_index {
	void *buf;
	size_t len, pos;
	unsigned damaged; /* damaged blocks passed over so far */
	uint64_t in_vain; /* bytes examined that turned out to be no block */
	char path[CONTAINER_PATH_LEN]; /* relative to the store's root */
};

/* Read the node index @path, relative to the container. 0; -EIO: it is none (one line says so); -errno. */
int node_index_open(struct node_index *idx, const struct container *c, const char *path);
void node_index_close(struct node_index *idx);

/*
 * Read the bytes from @from to @size of the node index at @h into @idx, which is zeros but for its path. 0;
 * -errno. @idx->damaged becomes 1 if they cannot all be a node index.
 */
int node_index_read(struct node_index *idx, struct store *s, int h, uint64_t from, uint64_t size);

/*
 * The next block, which points into the memory of @idx. Torn and damaged ones are passed over; one line names
 * the first damaged one. 1: a block; 0: the end; -EPROTONOSUPPORT: a block of another version, or with
 * unknown features (one line).
 */
int node_index_next(struct node_index *idx, struct index_block *block);

/*
 * Each write puts a byte at least into its log, so a block has no more records of writes than its log has
 * bytes. A stranger's may, at three bytes each, and each takes 70 bytes of memory. So many are let pass, for
 * a log may have been cut; and so many of logs that have gone, whose records say what is lost.
 */
#define NODE_INDEX_SPARE_RECORDS ((uint64_t)1 << 18)
#define NODE_INDEX_LOST_RECORDS ((uint64_t)1 << 22)

/*
 * Count the bytes at @p, of which @left are left and which are no block, as examined in vain. True: the limit
 * is reached, and the rest of the node index is to be left alone.
 */
bool node_index_is_hopeless(struct node_index *idx, const uint8_t *p, size_t left);

/*
 * Call @fn without a process that appends to the node index of the log @path, continues that log, or removes
 * logs that are void: for a moment. @tries: also where there are no locks. What @fn returns; -errno.
 */
int node_index_alone(const struct container *c, const char *path, bool tries, int (*fn)(void *arg),
		     void *arg);

/*
 * Read the node index @path and call @fn for each of its blocks. *@damaged grows by the number of those
 * passed over. 0; a non-zero of @fn, which ends the walk; -errno.
 */
int node_index_each(const struct container *c, const char *path,
			int (*fn)(void *arg, const struct index_block *block), void *arg, unsigned *damaged);

#endif
