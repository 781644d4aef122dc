/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The reader: which log holds which byte, and the bytes. It keeps a stack of immutable maps (index/map.h): at the
 * bottom what all node indexes and live files said when they were last looked at, above it what this process has
 * written since, and others where that was simple, each map newer than those below. Nothing here is thread-safe; the
 * inode's lock is held around every call.
 */
#ifndef PLFS_READER_H
#define PLFS_READER_H

#include "../index/map.h"
#include "container.h"
#include "globalindex.h"
#include "logset.h"
#include "mapping.h"
#include "scatter.h"
#include "watch.h"
#include "writer.h"

#define READER_LEVELS_MAX 40

struct reader_level {
	void *image;
	size_t image_len;
	bool mapped;           /* image is part of global's mapping */
	struct index_map map;
	struct index_hint hint;
	size_t first_own;      /* levels above the base: its records are own[first_own...] up to the next level's */
};

/* A record that has come since the base was made: of this process, or of one that was followed. */
struct reader_own {
	struct index_record rec;
	uint32_t log_no;
};

struct reader {
	const struct container *c;
	bool loaded;
	struct reader_level levels[READER_LEVELS_MAX]; /* 0 is the base */
	int nr_levels;
	struct logset logs;    /* as the maps number them */
	uint32_t own_log;      /* number of this process's open log, UINT32_MAX: none or not looked up */
	struct reader_own *own; /* records that have come since the base was made */
	size_t nr_own, cap_own;
	struct index_inputs inputs; /* what the base was made from */
	struct live_seen *seen;     /* of each live file of these: up to where it is in the maps; or NULL */
	uint64_t generation_ns;     /* records up to this are left out */
	uint64_t max_stamp_ns;      /* of all records in the maps */
	uint64_t cut_ns;            /* of the last truncate record in them; 0: none, or none was sought */
	bool seeks_cut;             /* cut_ns is to be right after the next load */
	bool emptied;               /* nothing is to be read from the body */
	bool took_body;             /* the last read did read from it */
	struct global_index global; /* the kept map, if the base is that */
	struct watch watch;
	struct scatter *spare; /* for the next large read, or NULL; atomic */
	bool may_make; /* what is watched, if it is missing */
	char lost[CONTAINER_PATH_LEN]; /* the log that has no index, when reader_load() said -ENOMSG */
};

void reader_init(struct reader *r, const struct container *c);
void reader_release(struct reader *r);

/*
 * Make the base anew from all that is in the container, records stamped at or before @generation_ns left out. @w,
 * this process's writer or NULL, has been committed; its records are in the base afterwards. -EIO: an index is
 * damaged (one line names it); -ENOMSG: one is lost (@lost names its log); -EIDRM: there is no container.
 */
int reader_load(struct reader *r, struct writer *w, uint64_t generation_ns);

/*
 * The same unless nothing has changed but by this process. @changed says whether it was done. Where the base is a
 * kept map that is confirmed, and has its name still, that is all that is looked at.
 */
int reader_reload(struct reader *r, struct writer *w, uint64_t generation_ns, bool *changed);

/* Take in what @w has written since the last load or call. Its open record stops growing. */
int reader_add_own(struct reader *r, struct writer *w);

/*
 * Put @nr records, which are later than all that is known or fill holes, on top: a new level. After an error the
 * maps are gone, to be made anew.
 */
int reader_put(struct reader *r, const struct reader_own *records, size_t nr);

/*
 * Take in what the live files that are watched have more than the maps (follow.c): their records from memory, with
 * no system call. False: that is not all that has changed, or not all that simple, and reader_reload() is to be asked.
 */
bool reader_follow(struct reader *r);

/* Whether other processes of this host have written, or truncated the file, since the maps were made or brought up to date. */
bool reader_is_stale(const struct reader *r);

/* Whether the kept map that the base is has been cut (mapping.h): nothing that was looked up since is true. */
static inline bool reader_is_broken(const struct reader *r) { return mapping_is_broken(r->global.base); }

/* First byte after the last one that any map knows, truncations taken into account. */
uint64_t reader_end(const struct reader *r);

/*
 * Read all of [logical_off, logical_off + len), which the caller has cut at the end of the file. What no log holds
 * comes from the body of the stub @stub_fd up to reader_body_end(), or is zeros. Returns 0 or -EIO (one line names
 * the log), or another -errno. -ENOENT: a log is missing; unless the file has been truncated to 0 meanwhile that is an error, and
 * reader_log_missing() says so in one line.
 */
int reader_read(struct reader *r, const struct writer *w, int stub_fd, void *buf, size_t len, uint64_t logical_off);
void reader_log_missing(const struct reader *r);

/* What is left of a read to be done without the lock. */
struct reading {
	struct log_handle *handle; /* @len bytes at @log_off of one log to @buf, or NULL */
	void *buf;
	size_t len;
	uint64_t log_off;
	struct sums_chunk *sums; /* what they are checked by, or NULL */
	struct scatter *scatter; /* or these */
	bool in_body;            /* or all of it, from the body of the stub */
	bool more;               /* it is not all that was asked for: begin again behind it */
};

#define READING_MAX ((size_t)1 << 30)

/*
 * The same in three steps: what is quick is done at once, the rest is left in @rd; reading_run(), with no lock held;
 * reading_end(), with or without it, which says whether logset_bury() is to be called, with it. The memory at @buf
 * need not be good. Returns how many bytes this is for, or -errno, and then nothing is left. After an error, or if
 * reading_run() says that bytes were missing or wrong, reader_read() is to be asked.
 */
ssize_t reader_begin(struct reader *r, const struct writer *w, int stub_fd, void *buf, size_t len, uint64_t logical_off,
		     struct reading *rd);
bool reading_run(struct reading *rd, struct store *store);
bool reading_end(struct reader *r, struct reading *rd);

/*
 * How many bytes from @logical_off on, at most @len, lie together, and where in a log: *@fd, which stays the
 * reader's, and the offset in it. *@fd -1: in no log's file. -errno as reader_read().
 */
ssize_t reader_extent(struct reader *r, uint64_t logical_off, uint64_t len, int *fd, uint64_t *fd_off);

/*
 * Whether readers have been told of a truncation since the maps were made: then bytes that a read took from the body may
 * be of another time. A truncating process tells readers before it cuts.
 */
bool reader_body_is_doubtful(const struct reader *r);

/* Where the body of the stub ends for readers: a truncation in the maps has cut it there, or is about to. */
uint64_t reader_body_end(const struct reader *r);

/* The piece of the file at @logical_off; as index_map_lookup(). */
void reader_lookup(struct reader *r, uint64_t logical_off, uint64_t len, struct index_piece *piece);

#endif
