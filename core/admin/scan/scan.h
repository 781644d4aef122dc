/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What one scan of a container knows: its logs, indexes, blocks, live files, and their damage. The parts of
 * the scan add to it; a repair acts by it.
 */
#ifndef PLFS_SCAN_H
#define PLFS_SCAN_H

#include "core/dropping/datalog.h"
#include "core/admin/scan/findings.h"
#include "core/backend/stub_hosts.h"
#include "core/base/hash.h"
#include "core/dropping/live.h"

#define SCAN_NONE UINT32_MAX

/* A data log that exists, or that an index names. */
struct scan_log {
	UT_hash_handle hh;
	uint32_t no;         /* its place in scan.logs */
	uint32_t live;       /* its live file's place in scan.lives, or SCAN_NONE */
	uint32_t nr_blocks;  /* that name it, in node indexes and in the log itself */
	uint32_t nr_told;    /* of these, only their checksums are of use */
	uint32_t first_block, last_block; /* their places in scan.blocks, or SCAN_NONE */
	bool listed;         /* it is in its directory */
	bool needed;         /* some index has a valid record of it */
	bool complete;       /* it ends as a closed log does, or has a live file */
	bool elsewhere;      /* what is not here may be in a place that is not on this host */
	bool indexed;        /* a node index has a block of it */
	bool heals;          /* it is damaged, and a copy of it is whole (scan_copies.h) */
	bool rebuilds;       /* and that is made of parity (scan_parity.h) */
	bool wants_copy;     /* it is whole, and a copy of it is not */
	bool placed;         /* only index.global has the places of its bytes */
	int state;           /* 0; -errno: why it cannot be read: -ENOENT, -EIO ... */
	uint64_t len;        /* bytes in its data area */
	uint64_t indexed_len; /* the largest log_len of its blocks */
	uint64_t records_end; /* the end of its data by its records */
	char path[];         /* relative to the container */
};

struct scan_index {
	char *path; /* relative to the container */
	uint8_t *buf;
	size_t len;
	bool untouchable;    /* blocks of another version, or unreadable: a repair leaves it alone */
	unsigned nr_damaged; /* unreadable blocks */
};

/* A block of a node index, or (index SCAN_NONE) one that only the log itself has. */
struct scan_block {
	uint32_t index, log;
	uint32_t next;    /* the next block of this log, or SCAN_NONE */
	const uint8_t *p; /* its bytes */
	size_t len;
	struct index_block block;
	bool told; /* only the log has it, but all its records are known: it is here for its checksums */
};

enum scan_owner { OWNER_UNKNOWN, OWNER_LIVES, OWNER_SEEMS_DEAD, OWNER_DEAD };

struct scan_live {
	char *path; /* relative to the container */
	uint32_t log;
	enum scan_owner owner;
	int ret;           /* 0; -errno: it cannot be read */
	bool unmapped;     /* its process could not map files: it has what was released alone */
	uint64_t unplaced; /* so many bytes of the log were written later: nobody knows their places */
	uint64_t sure_len; /* stranded: the bytes of the log that survived its host's restart for certain */
	bool sums_cut;     /* it lacks checksums of the log's end */
	uint64_t staged_end; /* the log's length with the staged bytes that are there */
	struct live_state state;
	struct index_record *records;
};

/* So many staged bytes are missing from the live file, which was cut short. */
static inline uint64_t scan_live_lacks(const struct scan_live *live)
{
	return live->state.flushed_len + live->state.staged_len - live->staged_end;
}

/* Unreadable bytes of a log. */
struct scan_bad {
	uint32_t log;
	uint64_t log_off, len;
	const struct finding *finding; /* that reports them */
};

/* A piece of the file that only index.global knows. */
struct scan_extra {
	uint32_t log;
	uint64_t logical_off, len, log_off;
};

/* A flipped bit. */
struct scan_mend {
	char *path;      /* relative to the container */
	uint64_t off;    /* of the byte, in that file */
	uint8_t is, was; /* the byte with and without the flip */
	bool live;       /* it is in a live file */
};

/* A name in the container that is no part of the file. */
struct scan_leftover {
	char *path;  /* relative to the container */
	bool doomed; /* a temporary file: it may go when no process has the file open */
};

struct scan {
	const struct container *c;
	struct plfs_check *check;
	struct findings *found;
	struct stub stub;
	struct stat st;    /* of the stub */
	struct stub_hosts hosts; /* of the stub, before anything was listed */
	bool alone;        /* certainly no process has the file open */
	bool gone;         /* another backend is not there, and may have what nothing here names or has */
	bool away;         /* another backend is not there, and has no open logs */
	bool missing;      /* there is no container, or it is empty */
	uint32_t nr_void;  /* closed logs that have no record that counts */
	uint32_t nr_hostdirs;
	bool absurd;       /* more records than the logs have bytes: no map is made of them */
	bool unknown;      /* a later version wrote something: not everything was scanned */
	bool has_copies;   /* there is a copies.HOST */
	bool has_notes;    /* of live files in another backend, which is there */
	uint32_t nr_copies_wanted;
	bool has_parity;           /* there are groups of logs (core/backend/parity.h) */
	uint32_t nr_parity_wanted; /* of them, those whose parity file is missing or damaged */
	bool stale_global; /* a repair removes index.global */
	uint64_t end;      /* the size by the indexes, if the stub's length is less; else 0 */
	uint64_t write_end; /* the largest end of a valid record */
	uint64_t cut_ns;   /* stamp of the last truncate record */
	bool cut_due;      /* a truncation, to stub.cut_size, is under way */
	bool cut_happened; /* and readers see it already: only the stub's body is still too long */
	struct scan_index *indexes;
	uint32_t nr_indexes;
	struct scan_block *blocks;
	uint32_t nr_blocks;
	struct scan_live *lives;
	uint32_t nr_lives;
	struct scan_log **logs, *by_path;
	uint32_t nr_logs;
	struct scan_bad *bad;
	uint32_t nr_bad;
	struct scan_extra *extras;
	uint32_t nr_extras;
	struct scan_mend *mends;
	uint32_t nr_mends;
	struct scan_leftover *leftovers;
	uint32_t nr_leftovers;
	void **bufs; /* other memory to be freed with the scan */
	uint32_t nr_bufs;
	/* The room of these arrays (vec.h). */
	size_t cap_indexes, cap_blocks, cap_lives, cap_logs, cap_bad, cap_extras, cap_mends;
	size_t cap_leftovers, cap_bufs;
};

/* Free everything in @l, but not @l. */
void scan_release(struct scan *l);

/* The log at @path (relative to the container), added if it is new. NULL: no memory. */
struct scan_log *scan_log(struct scan *l, const char *path);

/* Make room for one more in an array. False: no memory. */
bool scan_room(void **array, uint32_t nr, size_t *cap, size_t size);
#define SCAN_ROOM(l, what) \
	scan_room((void **)&(l)->what, (l)->nr_##what, &(l)->cap_##what, sizeof(*(l)->what))

/*
 * Add a block of @log and its records, found in the index @index or (SCAN_NONE) in the log. @p stays valid
 * with @l.
 */
int scan_add_block(struct scan *l, uint32_t index, struct scan_log *log, const uint8_t *p, size_t len,
		   const struct index_block *block);

/* Add a record of @log to what is known of the log and of the file. */
void scan_take_record(struct scan *l, struct scan_log *log, const struct index_record *rec);

/* Add unreadable bytes. -ENOMEM, also if @finding is NULL. */
int scan_add_bad(struct scan *l, const struct scan_log *log, uint64_t log_off, uint64_t len,
		 const struct finding *finding);

/* Add a flipped bit: the byte at @off of the file @path is @is, and should be @was. */
int scan_add_mend(struct scan *l, const char *path, uint64_t off, uint8_t is, uint8_t was);

/*
 * The same at position @log_off of the data area of the log @path. Where no byte of the file stands for it
 * alone: nothing.
 */
int scan_add_log_mend(struct scan *l, const char *path, uint64_t log_off, uint8_t is, uint8_t was);

/* Let scan_release() free @buf. On failure it is freed at once. */
int scan_keep(struct scan *l, void *buf);

#endif
