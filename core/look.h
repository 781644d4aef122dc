/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One look at all of a container: what a check finds, and what a repair goes by. Nothing is changed, and no lock is
 * taken; what has changed while it was looked at is found out by another look.
 */
#ifndef PLFS_LOOK_H
#define PLFS_LOOK_H

#include "dropping.h"
#include "findings.h"
#include "hash.h"
#include "stage.h"

#define LOOK_NONE UINT32_MAX

/* A data log that is there, or that something names. */
struct look_log {
	UT_hash_handle hh;
	uint32_t no;         /* in the order in which they were met */
	uint32_t live;       /* number of its live file, or LOOK_NONE */
	uint32_t nr_blocks;  /* that name it, of node indexes and of its own */
	uint32_t first_block, last_block; /* of them, LOOK_NONE: none */
	bool listed;         /* the directory has it */
	bool needed;         /* some index has a record of it that is not void */
	bool complete;       /* it is closed and says so itself, or has a live file */
	bool indexed;        /* a node index knows it */
	bool placed;         /* only index.global knows where its bytes belong */
	int state;           /* 0, or why it cannot be read: -ENOENT, -EIO ... */
	uint64_t len;        /* bytes in its data area */
	uint64_t indexed_len; /* the largest log_len of its blocks */
	uint64_t records_end; /* where its data ends by its records */
	char path[];         /* relative to the container */
};

struct look_index {
	char *path; /* relative to the container */
	uint8_t *buf;
	size_t len;
	bool untouchable;    /* it has blocks of another version, or cannot be read: not ours to change */
	unsigned nr_damaged; /* blocks that cannot be read */
};

/* A block of a node index, or (index LOOK_NONE) one that only its log has. */
struct look_block {
	uint32_t index, log;
	uint32_t next; /* of this log, or LOOK_NONE */
	const uint8_t *p; /* as it stands there */
	size_t len;
	struct index_block block;
};

enum look_owner { OWNER_UNKNOWN, OWNER_LIVES, OWNER_SEEMS_DEAD, OWNER_DEAD };

struct look_live {
	char *path; /* relative to the container */
	uint32_t log;
	enum look_owner owner;
	int ret; /* of reading it */
	uint64_t sure_len; /* if its host was started anew since: so much of the log is certain */
	struct stage_state state;
	struct index_record *records;
};

/* Bytes of a log that cannot be read. */
struct look_bad {
	uint32_t log;
	uint64_t log_off, len;
	const struct finding *finding; /* that told of them */
};

/* A piece of a log that is missing, as index.global has it. */
struct look_extra {
	uint32_t log;
	uint64_t logical_off, len, log_off;
};

/* A flipped bit: where it is, and the byte as it is and as it was. */
struct look_mend {
	char *path;   /* relative to the container */
	uint64_t off; /* in the file */
	uint8_t is, was;
	bool live;    /* it is in a live file */
};

/* What lies in the container and is no part of the file. */
struct look_leftover {
	char *path; /* relative to the container */
	bool doomed; /* of somebody who was killed, if nobody has the file open; else something else */
};

struct look {
	const struct container *c;
	struct plfs_check *check;
	struct findings *found;
	struct stub stub;
	struct stat st;    /* of the stub */
	bool alone;        /* it is certain that nobody has the file open */
	bool missing;      /* there is no container, or nothing in it */
	uint32_t nr_hostdirs;
	bool unknown;      /* something is of a later version: not all could be looked at */
	bool stale_global; /* index.global is to go */
	uint64_t end;      /* where the file ends as the indexes say, when that is behind where the stub does; else 0 */
	uint64_t write_end;
	uint64_t cut_ns;   /* of the last truncate record */
	bool cut_due;      /* a truncation is under way: that to stub.cut_size */
	bool cut_happened; /* and all go by it: the stub's body is to be cut */
	struct look_index *indexes;
	uint32_t nr_indexes, cap_indexes;
	struct look_block *blocks;
	uint32_t nr_blocks, cap_blocks;
	struct look_live *lives;
	uint32_t nr_lives, cap_lives;
	struct look_log **logs, *by_path;
	uint32_t nr_logs, cap_logs;
	struct look_bad *bad;
	uint32_t nr_bad, cap_bad;
	struct look_extra *extras;
	uint32_t nr_extras, cap_extras;
	struct look_mend *mends;
	uint32_t nr_mends, cap_mends;
	struct look_leftover *leftovers;
	uint32_t nr_leftovers, cap_leftovers;
	void **bufs; /* what else is to be freed */
	uint32_t nr_bufs, cap_bufs;
};

/*
 * Look at the container @c of the stub @fd, whose header is @stub. 0 or -errno: it could not be done. look_release()
 * in any case.
 */
int look_at(struct look *l, const struct container *c, int fd, const struct stub *stub, struct plfs_check *check,
	    struct findings *found);
void look_release(struct look *l);

/* Its log at @path, made known if it is new. NULL without memory. */
struct look_log *look_log(struct look *l, const char *path);

/* Room for one more in an array. False without memory. */
bool look_room(void **array, uint32_t nr, uint32_t *cap, size_t size);
#define LOOK_ROOM(l, what) look_room((void **)&(l)->what, (l)->nr_##what, &(l)->cap_##what, sizeof(*(l)->what))

/* Take a block of @log to what is known of it, of the index @index or LOOK_NONE. */
int look_add_block(struct look *l, uint32_t index, struct look_log *log, const uint8_t *p, size_t len,
		   const struct index_block *block);

/* What a record of @log adds to what is known. */
void look_take_record(struct look *l, struct look_log *log, const struct index_record *rec);

int look_add_bad(struct look *l, const struct look_log *log, uint64_t log_off, uint64_t len, const struct finding *finding);

/* The byte at @off of the file @path is to be @was. */
int look_add_mend(struct look *l, const char *path, uint64_t off, uint8_t is, uint8_t was);

/* Free @buf with the look. */
int look_keep(struct look *l, void *buf);

int look_at_lives(struct look *l);
int look_at_indexes(struct look *l);

/* look_log.c: the logs, when the indexes are known. */
int look_at_logs(struct look *l);

/* look_global.c: the kept map, when the logs are known. */
int look_at_global(struct look *l);

/* lost.c */

/* Where the file ends, as all records together say. */
int look_find_end(struct look *l, uint64_t *end);

/* Call @fn with each range of the file that lies in bad parts of logs, in ascending order. */
int look_each_lost(struct look *l, void (*fn)(void *arg, uint64_t logical_off, uint64_t len), void *arg);

#endif
