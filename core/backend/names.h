/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * File names inside a container: the one room that puts them together and takes them apart.
 *
 * A *path* is relative to the container, "hostdir.K/data.HOST.PID.SEQ"; a *name* is its last part. All
 * functions that write a path have CONTAINER_PATH_LEN bytes for it.
 *
 *   data.HOST.PID.SEQ  log    live.HOST.PID.SEQ  its live file    index.HOST  node index    notice.HOST
 *                      notice
 */
#ifndef PLFS_NAMES_H
#define PLFS_NAMES_H

#include "index/record/block.h"
#include "core/backend/container.h"

/* ---- names ---- */

/* The name in @path, which has a slash. */
static inline const char *name_of(const char *path) { return strchr(path, '/') + 1; }

/* The kind of the dropping called @name. */
enum dropping_kind {
	DROPPING_OTHER,
	DROPPING_DATA,
	DROPPING_LIVE,
	DROPPING_INDEX,
	DROPPING_NEAR,
	DROPPING_SPREAD,
	DROPPING_COPIES,
	DROPPING_PARITY,
};
enum dropping_kind name_kind(const char *name);

/* The same; of a file that is about to replace another one: that other one's. */
enum dropping_kind name_kind_to_be(const char *name);

/* Whether @name begins like that of a log, a live file or a notice. */
static inline bool name_is_log(const char *name) { return !strncmp(name, "data.", 5) && !strchr(name, '/'); }
static inline bool name_is_live(const char *name) { return !strncmp(name, "live.", 5); }
static inline bool name_is_notice(const char *name) { return !strncmp(name, "notice.", 7); }

/* HOST in the name of a notice. */
static inline const char *name_notice_host(const char *name) { return name + strlen("notice."); }

/* The same of the file that says where a host's logs may be (place.h). */
static inline bool name_is_near(const char *name)
{
	return !strncmp(name, "near.", 5) && !strstr(name, ".tmp.");
}

/* N of "spread.N.HOST", which says in which other backend logs of a host are (spread.h); 0: no such. */
unsigned name_spread_slot(const char *name);

/* "sealed.N.HOST", which no version makes any more, or reads. It goes with its container. */
static inline bool name_is_old(const char *name) { return !strncmp(name, "sealed.", 7); }

/*
 * Whether a file in a hostdir, or with @top in the container itself, can have this name: that of a dropping,
 * also while it is being made or after a repair has set it aside. Nothing else is removed with a container.
 */
bool name_is_known(const char *name, bool top);

/* Whether the live file called @live belongs to the log called @log. */
bool name_is_live_of(const char *live, const char *log);

/* Whether the log, live file or node index called @name is of this host. */
bool name_is_ours(const char *name);

/*
 * HOST in @name, and its length: of a log, live file, node index, near.HOST, spread.N.HOST or copies.HOST;
 * NULL: it has none.
 */
const char *name_host(const char *name, size_t *len);

/*
 * "own.HOST", or with @process "own.HOST.PID", of the log or live file called @name: the directory in another
 * backend that is its host's or process's alone (spread.h). @own: INDEX_LOG_NAME_LEN. False: no such name.
 */
bool name_own_dir(const char *name, bool process, char *own);

/* Whether @name can be one. */
static inline bool name_is_own_dir(const char *name) { return !strncmp(name, "own.", 4) && name[4]; }

/* Whether the live file called @name is of this host. */
bool name_is_our_live(const char *name);

/* Whether its owner is another process of this host, and there. Live files of other hosts: false. */
bool name_is_running(const char *name);

/* The name of log number @seq of this process; @name: INDEX_LOG_NAME_LEN. */
void name_make_log(uint32_t seq, char *name);

/* Whether @name is that of the log @seq of the process @pid of @host. */
bool name_is_of(const char *name, const char *host, uint64_t pid, uint32_t seq);

/* The numbers in the name of a log: they stand for it in an index block. */
void name_log_numbers(const char *name, uint32_t *pid, uint32_t *seq);

/* ---- paths ---- */

/* The hostdir of this host in @c: its number, and the path of what is called @name in it. */
unsigned name_hostdir(const struct container *c);
void name_here(const struct container *c, const char *name, char *path);

/* The paths of the live file, the node index and the notice of this host; @log: the name of the log. */
void name_live_here(const struct container *c, const char *log, char *path);
void name_index_here(const struct container *c, char *path);
void name_notice_here(const struct container *c, char *path);

/* The path of what is called @name and lies beside @path. */
void name_beside(const char *path, const char *name, char *other);

/* The path of the live file of a log, and of the log of a live file. */
void name_live_of_log(const char *log_path, char *path);
void name_log_of_live(const char *live_path, char *path);

/* The path that maps give for lost bytes of a log: no file has it. And whether a path is such a one. */
void name_lost_of_log(const char *log_path, char *path);
bool name_is_lost(const char *path);

/* The path of the node index that the writer of a live file appends to. */
void name_index_of_live(const char *live_path, char *path);

/* The path of the node index of a log or live file. */
void name_index_of(const char *path, char *index);

/* The path of the log of @block, a block of the node index @index. */
void name_log_of_block(const char *index, const struct index_block *block, char *path);

/* A free path beside @path whose name readers ignore: @kept. 0; -errno. */
int name_kept(const struct container *c, const char *path, char *kept);

#endif
