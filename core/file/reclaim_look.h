/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the logs of a file have, and what of it is hidden: the first steps of reclaim.h, and the parts of them
 * that a sweep (reclaim_hidden.h) has as well.
 */
#ifndef PLFS_RECLAIM_LOOK_H
#define PLFS_RECLAIM_LOOK_H

#include "core/backend/names.h"
#include "core/base/hash.h"
#include "core/file/inode.h"

struct reclaim_log {
	UT_hash_handle hh;
	uint64_t min_ns, max_ns;   /* of records that count: of writes; of all */
	uint64_t written, used;    /* bytes by these records; those that are visible */
	uint64_t written_end;      /* of these in the log */
	uint64_t indexed_len, len; /* as the index says; of its data area */
	bool listed, indexed, open; /* it is there; it has a block; it has a live file */
	bool goes;                 /* everything in it is up to void_ns */
	bool moves;                /* what is visible in it is to be copied, by reclaim_copy_hidden() */
	char path[];               /* relative to the container */
};

struct reclaim {
	struct inode *ino;
	int fd;                   /* the stub, to write */
	int marked;               /* a descriptor of the description that has the mark */
	bool alone;               /* the caller has locked all others out */
	uint64_t stamp_ns;        /* F */
	uint64_t void_ns, next_ns; /* what to void at first, and at the end */
	bool copies;              /* all that is visible has to be copied */
	bool moves;               /* some of it has, by reclaim_copy_hidden() */
	uint64_t nr_logs, nr_goes; /* that are there; of them, that go without a copy */
	uint64_t nr_gone;          /* void blocks in an index name so many that are gone */
	uint64_t used, overwritten; /* visible bytes in logs; others in logs that stay */
	uint64_t goes_bytes;
	struct timespec times[2]; /* of the stub, before */
	struct reclaim_log *logs;
	struct reclaim_past *past;
	char why[256];            /* after an error, in words, or "" */
};

/*
 * R1 to R3, with the inode's lock held as for all that follows. 0; 1: the file has no logs; -EBUSY: it is
 * being written, or killed writers have left logs and others have it open; -EIO: damaged; -errno.
 */
int reclaim_begin(struct reclaim *rc);

void reclaim_end(struct reclaim *rc);

/* ---- parts ---- */

#define RECLAIM_CLOCKS_NS 60000000 /* more than clocks of hosts may differ without being noticed */

/* Note @why. Returns @ret. */
int reclaim_refuse(struct reclaim *rc, int ret, const char *why);

/* The container's lock, a real one. No truncation is under way afterwards. inode_unlock_end(); -errno. */
int reclaim_lock_end(struct reclaim *rc);

/* Whether it is a file with logs, its own, and no truncation is under way. 0; 1: it has none; -errno. */
int reclaim_check_file(struct reclaim *rc);

/* R1 without the wait: a stamp, and the floor after it. 0; -errno. */
int reclaim_take_stamp(const struct reclaim *rc, uint64_t *stamp_ns, uint64_t *floor_ns);

/* The same for F, with the container's lock: all truncations with earlier stamps have happened. */
int reclaim_take_f(struct reclaim *rc, uint64_t *stamp_ns, uint64_t *floor_ns);

/* Whether the clock has come to the stamp: hosts that do not share the floor may be behind it. 0; -EAGAIN. */
int reclaim_check_clock(struct reclaim *rc, uint64_t stamp_ns);

/* The floor stays behind: -ENOSPC, -EDQUOT: the table has no room; -EOPNOTSUPP: it cannot be mapped. */
int reclaim_lacks_floor(struct reclaim *rc);

/* R2. 0; -EBUSY; -errno. */
int reclaim_check_writers(struct reclaim *rc);

/* For container_list(): note what a dropping says in rc->logs. */
int reclaim_add_dropping(void *arg, const char *path, const char *name, enum dropping_kind kind);
struct reclaim_log *reclaim_log_of(struct reclaim *rc, const char *path); /* NULL: there is none */

/* For index_map_each(): count the visible bytes of each log. @logs, of the map's numbers: the caller's. */
struct reclaim_pieces {
	struct reclaim *rc;
	struct reclaim_log **logs;
	uint32_t nr;
};
int reclaim_begin_pieces(struct reclaim_pieces *p, struct reclaim *rc, uint32_t nr);
int reclaim_add_piece(void *arg, const struct index_piece *piece);

/* The header was changed. Whoever writes the file meanwhile sets its time; else it stays as @before. */
void reclaim_keep_times(struct reclaim *rc, const struct stat *before);

/* Whether all that goes ends as a closed log does. 0; -ESTALE: one does not. */
int reclaim_check_logs(struct reclaim *rc);

#endif
