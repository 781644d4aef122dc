/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The reader: which log holds which byte, and the bytes. It keeps a stack of maps (levels.h). The base has
 * all records of node indexes and live files at the time of the last load. The maps above it have what this
 * process has written since, and in simple cases what others have. Nothing here is thread-safe; the inode's
 * lock is held around every call.
 */
#ifndef PLFS_READER_H
#define PLFS_READER_H

#include "core/backend/container.h"
#include "core/gather/gathered.h"
#include "core/read/entries.h"
#include "core/read/levels.h"
#include "core/read/logset.h"
#include "core/base/guard.h"
#include "core/read/scatter.h"
#include "core/read/watch.h"
#include "core/write/writer.h"

struct reader {
	const struct container *c;
	bool loaded;
	struct levels levels;
	/* Without maps: what the writer has spilled since it was opened, for reader_carry(). mem_alloc()ed */
	struct own_record *spilled;
	size_t nr_spilled, cap_spilled;
	struct logset logs;    /* as the maps number them */
	uint32_t own_log;      /* number of this process's open log, UINT32_MAX: none or not looked up */
	uint64_t own_indexed;  /* so much of the node index by the writer is in the inputs (w->indexed_len) */
	struct index_inputs inputs; /* what the base was made from */
	struct live_seen *seen;     /* for each live file of the inputs: how far it is in the maps; or NULL */
	uint64_t generation_ns;     /* records up to this are left out */
	bool seeks_cut;             /* the next load must know levels.cut_ns */
	bool emptied;               /* the body counts as empty */
	bool took_body;             /* the last read did read from it */
	struct kept_map global; /* the kept map, if it is the base */
	uint64_t nr_lists; /* so often the container was listed for them, all of it */
	struct watch watch;
	struct entries entries; /* as the last load or reload found them; of an older one nothing is known */
	struct scatter *spare; /* for the next large read, or NULL; atomic */
	bool lacks_hosts; /* bytes of no log may be lost ones of a host that has gone: they cannot be read */
	bool may_make; /* the notice, if it is missing */
	/* after -EIO from reader_load(): a log that has no index; "": that is not why */
	char lost[CONTAINER_PATH_LEN];
};

void reader_init(struct reader *r, const struct container *c);
void reader_release(struct reader *r);

/*
 * Make the base anew from the whole container, records stamped at or before @generation_ns left out. @w, this
 * process's writer or NULL, has been committed; its records are in the base afterwards.
 * 0: done; -EIO: an index is damaged (one line names it), or r->lost names a log that has none; -EIDRM: there
 * is no container.
 */
int reader_load(struct reader *r, struct writer *w, uint64_t generation_ns);

/*
 * The same, unless only this process has changed the file since. *@changed: the base was made anew. If the
 * base is a kept map that is confirmed and still has its name, nothing is listed.
 */
int reader_reload(struct reader *r, struct writer *w, uint64_t generation_ns, bool *changed);

/*
 * After reader_load() or reader_reload() on a store of this host alone, which began at @began: remember what
 * shows that the container has no other writers than those that are watched.
 */
void reader_note_writers(struct reader *r, const struct timespec *began);

/*
 * Whether there still are no others. Then all that has been written since, by whomever, is in the files that
 * are watched.
 */
bool reader_knows_writers(const struct reader *r);

/* Something says that the maps may lack more than the watch shows: the next reload lists the container. */
static inline void reader_doubt(struct reader *r) { r->entries.known = false; }

/*
 * Release @r, which nobody uses any more. If this process may go on with a log of the file (write/resume.h),
 * its maps are parked (parked.h), and the next reader_load() has them.
 */
void reader_park(struct reader *r);

/*
 * @w, which has needed no maps, is about to be closed. True: @r has those that are parked, for the records of
 * @w to be added. They have not been compared with the container, so after reader_end_own() they are parked
 * again, under the same lock.
 */
bool reader_carry(struct reader *r, struct writer *w, uint64_t generation_ns);

/* @w has just spilled these records. Without maps a few of them are kept for reader_carry(). */
void reader_keep_spilled(struct reader *r, const struct writer *w, const struct index_record *records,
			 size_t nr);

/*
 * Keep the inputs of the maps in step with this process's own log: its own work does not make them stale.
 * reader_begin_own(): @w was opened, and the maps have none of its records. reader_end_own(): @w was closed,
 * after reader_add_own().
 */
void reader_begin_own(struct reader *r, struct writer *w);
void reader_end_own(struct reader *r, const struct writer *w);

/* Add the records that @w has written since the last load or call. Its open record stops growing. */
int reader_add_own(struct reader *r, struct writer *w);

/* levels_put(). After -errno the maps are gone, and the next load makes them anew. */
int reader_put(struct reader *r, const struct own_record *records, size_t nr);

/*
 * Add the records that the watched live files have and the maps lack (follow.c), from memory. Only what has
 * moved to the node index since takes system calls.
 * True: the maps are up to date; false: more has changed, or the case is not simple: use reader_reload().
 */
bool reader_follow(struct reader *r);

/*
 * Whether other processes of this host have written or truncated the file since the maps were last up to
 * date.
 */
bool reader_is_stale(const struct reader *r);

/* Whether the base is a kept map that was cut (guard.h): no lookup since then is right. */
static inline bool reader_is_broken(const struct reader *r) { return guard_is_broken(r->global.base); }

/* The end of the file by the maps, after their truncations. */
static inline uint64_t reader_end(const struct reader *r) { return levels_end(&r->levels); }

/*
 * Read all of [logical_off, logical_off + len), which the caller has cut at the end of the file. Bytes of no
 * log come from the body of the stub @stub_fd up to reader_body_end(), or are zeros, unless lacks_hosts.
 * 0: all was read; -EIO: one line names the log, or there was one about the hosts; -ENOENT: a log is missing.
 * If the file was not truncated to 0 meanwhile, that is an error, which reader_log_missing() reports in one
 * line; another -errno.
 */
int reader_read(struct reader *r, const struct writer *w, int stub_fd, void *buf, size_t len,
		uint64_t logical_off);
void reader_log_missing(const struct reader *r);

/* The rest of a read, for which the lock is not needed. */
struct read_rest {
	struct log_handle *handle; /* @len bytes at @log_off of one log to @buf, or NULL */
	void *buf;
	size_t len;
	uint64_t log_off;
	uint32_t log_no;
	unsigned logs_age;       /* of the logset */
	bool compares;           /* it compares: reader_compared() */
	struct sums_chunk *sums; /* their checksums, or NULL: not compared */
	struct scatter *scatter; /* or reads from several logs */
	bool in_body;            /* or one from the body of the stub */
	bool more;               /* the read is longer: begin again behind this part */
};

#define READ_REST_MAX ((size_t)1 << 30)

/*
 * A read in three steps. reader_begin() does what is quick, and leaves the rest in @rd. read_rest_run() needs
 * no lock; false: bytes were missing or wrong, use reader_read(). read_rest_end() needs no lock; true: call
 * logset_bury() with the lock. The memory at @buf may be invalid. reader_begin() returns the number of bytes
 * that the three steps read; -errno: nothing is left to do, use reader_read().
 */
ssize_t reader_begin(struct reader *r, const struct writer *w, int stub_fd, void *buf, size_t len,
		     uint64_t logical_off, struct read_rest *rd);
bool read_rest_run(struct read_rest *rd, struct store *store);
bool read_rest_end(struct reader *r, struct read_rest *rd);

/* Between the last two, if it compares, with the lock: it was all right, and is not compared again. */
void reader_compared(struct reader *r, const struct read_rest *rd);

/*
 * Find the bytes at @logical_off in a log's file. *@fd stays the reader's; *@fd_off: the offset in it; *@fd
 * -1: no log's file has them. Returns how many bytes lie together, at most @len; -errno as reader_read().
 */
ssize_t reader_extent(struct reader *r, uint64_t logical_off, uint64_t len, int *fd, uint64_t *fd_off);

/*
 * Whether readers were notified of a truncation since the maps were made. Then bytes that a read took from
 * the body may be of another time. A truncating process notifies readers before it cuts the body.
 */
bool reader_body_is_doubtful(const struct reader *r);

/* The end of the stub's body for readers: a truncation in the maps has cut the body there, or is about to. */
static inline uint64_t reader_body_end(const struct reader *r)
{
	return r->emptied ? 0 : levels_cut(&r->levels);
}

/* The piece of the file at @logical_off; as index_map_lookup(). */
static inline void reader_lookup(struct reader *r, uint64_t logical_off, uint64_t len,
				 struct index_piece *piece)
{
	levels_lookup(&r->levels, logical_off, len, piece);
}

#endif
