/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The part of core that only the plfs command uses, besides plfs.h: whole backends, damage, and how a file is
 * stored. preload/ does not include it. The rules of plfs.h hold.
 */
#ifndef PLFS_ADMIN_H
#define PLFS_ADMIN_H

#include "core/plfs.h"

/* ---- whole backends ---- */

/* The canonical path of the mount's directory; and the path under which programs see it. */
const char *plfs_backend(const struct plfs_mount *m);
const char *plfs_prefix(const struct plfs_mount *m);

/* Whether other hosts may use its file system as well. */
bool plfs_is_remote(const struct plfs_mount *m);

/*
 * Whether the directory of containers @plfs in the directory @dir, both by their attributes, may be that of
 * files of the user @uid. Whoever may write to a directory can make one there. So it counts if it is root's,
 * the caller's or @uid's; or if it is @dir's owner's, and others may write to it too. nested.c.
 */
bool plfs_counts(const struct stat *dir, const struct stat *plfs, uid_t uid);

/* The mounts of the settings, from 0 on; NULL: there are no more. mount.c. */
struct plfs_mount *plfs_mount_at(int i);

/* The nearest backend in which the mount's lies; NULL: in none. nested.c. */
const char *plfs_outer_backend(struct plfs_mount *m);

enum plfs_gc_kind {
	PLFS_GC_CONTAINER, /* no file leads to it */
	PLFS_GC_TEMP,      /* a killed process left this temporary file */
};

enum plfs_gc_fate {
	PLFS_GC_REMOVED,
	PLFS_GC_WOULD_BE, /* removed, without @dry */
	PLFS_GC_KEPT,     /* @why has the reason */
	PLFS_GC_FAILED,   /* could not be removed; @why has the error */
};

struct plfs_gc_item {
	enum plfs_gc_kind kind;
	enum plfs_gc_fate fate;
	const char *path; /* below the backend */
	uint64_t bytes;   /* allocated */
	uint64_t age_ns;  /* since it was last changed */
	bool young;       /* kept for its age, before anything else was looked at */
	const char *why;
};

struct plfs_gc {
	/* Options */
	uint64_t age_ns;     /* anything that changed more recently than this stays */
	bool dry;            /* remove nothing */
	unsigned nr_threads;
	uint64_t later_ns;   /* for tests: added to the clock */

	/* Called by any thread, one at a time; each may be NULL. */
	void (*item)(void *arg, const struct plfs_gc_item *item);
	void (*trouble)(void *arg, const char *path, const char *why); /* @path could not be read */
	void (*progress)(void *arg, const char *what, uint64_t done, uint64_t total); /* total 0: not known */
	void *arg;

	/* Results */
	uint64_t nr_files;      /* regular files below the backend */
	uint64_t nr_containers;
	uint64_t nr_removed, removed_bytes;
	uint64_t nr_left, left_bytes; /* found but not removed */
	uint64_t nr_young, young_bytes; /* of these, what is younger than the age */
	uint64_t nr_failed;
	uint64_t nr_troubles;
	uint64_t nr_unknown; /* not every file could be read: containers to which no other leads; they stay */
};

/*
 * Remove the containers of a backend to which no file leads, and old temporary files. Programs may use the
 * backend meanwhile. A container stays
 *  - if some file led to it at one moment after the command began, even one that is being renamed;
 *  - if it changed within the age, by the file system's clock;
 *  - if the owner of one of its live files is alive;
 *  - if a process of this host has it open, as far as this user may see.
 *
 * No container of a user is removed if a file of his cannot be read, and none at all if a directory below
 * the backend cannot be read or is hidden by a mount that this process cannot look beneath: files of anybody
 * may be in it. Names outside the backend are not searched.
 * 0; -errno: the backend cannot be used, as a line or trouble() reports.
 */
int plfs_gc(struct plfs_mount *m, struct plfs_gc *gc);

/* ---- damage ---- */

enum plfs_severity {
	PLFS_NOTED,    /* nothing is lost: left by killed processes, or tidied up by a repair */
	PLFS_DAMAGED,  /* bytes are lost, or the index that finds them, or the checksum that verifies them */
	PLFS_REPAIRED, /* done; with dry_run, to be done */
	PLFS_REMAINS,  /* damage that a repair cannot undo */
	PLFS_FAILED,   /* could not be read, or could not be repaired */
};

struct plfs_finding {
	enum plfs_severity severity;
	const char *file;          /* the backend path */
	const char *code;          /* a word for scripts, see plfs(1) */
	const char *path;          /* relative to the container; "": the file itself */
	const char *text;          /* for people; "" for the code "lost" */
	uint64_t logical_off, len; /* for the code "lost": bytes of the file that cannot be read */
};

/* Options and results of a check or repair. */
struct plfs_check {
	bool repair;
	bool dry_run; /* of a repair: only report what it would do */
	bool partial; /* of a repair: make a file readable even if a part of it is then missing */
	bool quick;   /* do not read the data of the logs */
	uint64_t lost_max; /* lost ranges of one file that are reported one by one; 0: 100 */
	/* Called by one thread at a time, also for a tree. The strings are valid until it returns. */
	void (*found)(void *arg, const struct plfs_finding *finding);
	void (*progress)(void *arg, const struct plfs_check *check); /* may be NULL */
	void *arg;
	/* Results, added to what is there */
	uint64_t nr_files;   /* logical files */
	uint64_t nr_plain;   /* other files */
	uint64_t nr_damaged; /* logical files that are or remain damaged; with dry_run: that need a repair */
	uint64_t nr_repaired;
	uint64_t nr_failed;  /* could not be read, or could not be repaired */
	uint64_t log_bytes;  /* read from logs */
	uint64_t done_bytes; /* of a tree: of the sizes of its files so many are done; for progress */
};

/*
 * Check the logical file (dirfd, path), a backend path below @m, for damage, and with @repair mend it where
 * that takes no guess. Files that other processes are writing are not reported as damaged. A repair removes
 * nothing readable.
 * 0: sound; 1: damaged, or something remains to be done; -errno: could not be checked or repaired, already
 * reported, except that the path could not be opened: -EISDIR, -ELOOP (a symbolic link), -ENOENT ...
 */
int plfs_check(struct plfs_mount *m, int dirfd, const char *path, struct plfs_check *check);

/*
 * Check all logical files in the directory @path (a backend path) and below, @nr_threads at once, and whether
 * two of them share a container. Follows no symbolic link. 0, 1: as plfs_check(); -errno: the first one.
 */
int plfs_check_tree(struct plfs_mount *m, const char *path, unsigned nr_threads, struct plfs_check *check);

/*
 * Make PATH/.plfs and the directories of its first level for several users, or correct those that exist: the
 * owner of @path owns them, and *@mode is their mode. *@mode (mode_t)-1: the mode of @path decides, and is
 * stored there. Needs no plfs_setup(). 0; -errno: reported in one line.
 */
int plfs_init_backend(const char *path, mode_t *mode);

/*
 * Places with names, for near=NAME (core/backend/place_names.h). Call @fn for each of the backend @path; @dir
 * is what the list has, variables and all. 0; the first non-zero of @fn; -errno: reported in one line.
 */
int plfs_place_names(const char *path, int (*fn)(void *arg, const char *name, const char *dir), void *arg);

/*
 * The backend @path gets the place @name, which is the directory @dir, or another one; @dir NULL: it loses
 * it. The caller is root or owns the backend. 0; -ENOENT: it had none; another -errno: reported in one line.
 */
int plfs_place_name(const char *path, const char *name, const char *dir);

/* ---- space ---- */

struct plfs_compact {
	bool dry;       /* only find out */
	/* Results */
	uint64_t nr_logs, nr_after;     /* data logs before and afterwards */
	uint64_t disk_bytes, disk_after; /* allocated for the file; of a dry run an estimate */
	uint64_t copied_bytes;
	uint64_t nr_left; /* logs that hold nothing any more and could not be removed yet */
};

/*
 * Give the space of overwritten bytes of the logical file @path back, which stays one: logs without a visible
 * byte go; if others have overwritten bytes, what is visible is copied to one new log, and compared with its
 * checksums. Other processes may read the file meanwhile, or begin to write it. Its mode, owner and time of
 * modification stay. Killed at any moment, the file has its bytes, and the next call goes on.
 * 0; 1: there is nothing to gain, as @watch->why says; -EBUSY: it is being written, and where hosts share the
 * backend, also if it is open; -EPERM: not by its owner or root; -EIO: damaged; -errno. @watch->why has the
 * reason in words.
 */
int plfs_compact(const char *path, struct plfs_compact *out, struct plfs_progress *watch);

/* ---- places ---- */

/* Kept from one drain of a helper to the next; begins with most_ns alone. */
struct plfs_yield {
	uint64_t most_ns; /* so long it waits for processes that write */
	int place; /* the drain's own, as the next: descriptor */
	uint64_t free_until_ns; /* none waits before */
};

/* Options and results of a drain; results are added to what is there. */
struct plfs_drain {
	bool dry; /* only with orphans: remove nothing */
	/* Logs of processes that write are left alone; of a place, those of killed processes as well. */
	bool closed_only;
	bool of_place; /* the drain's own: places of other hosts are not counted, they drain theirs */
	bool to_home; /* of a file: also logs in other backends (spread=) */
	bool keep; /* logs that are moved stay in the place as staged copies, if it is that of the mapping */
	bool patient; /* logs that find too few partners for parity wait for others that may be closed */
	uint64_t age_ns;   /* in a backend that hosts share: what has changed since then is no orphan */
	uint64_t until_ns; /* by CLOCK_MONOTONIC: what is not copied by then stays; 0: no end */
	void (*progress)(void *arg, const struct plfs_drain *d);           /* may be NULL, as the next */
	void (*trouble)(void *arg, const char *path, const char *why); /* of one log or near.HOST */
	void *arg;
	uint64_t rate;           /* bytes a second to copy at most; 0: no limit */
	unsigned writers;        /* processes of all hosts that copy at a time; 0: as the mapping says */
	uint64_t due_ns;         /* when they may go on; the drain's own, as the next */
	unsigned nr_late;        /* pieces one after the other that took longer than the rate lets them */
	struct plfs_yield *yield; /* of a place: give way to processes that write there; or NULL */
	uint64_t nr_logs, bytes; /* moved, copied */
	uint64_t nr_copies;      /* made in other backends (mirror=); their bytes are among those */
	uint64_t nr_parity;      /* parity files made (parity=); the bytes read for them are among those */
	uint64_t nr_waiting;     /* with patient: logs that wait */
	uint64_t nr_left;        /* logs that stay near, or get no copy: open, or what they go to fails */
	uint64_t nr_elsewhere;   /* near.HOSTs that lead to places that are not on this host */
	uint64_t nr_lost;        /* logs that are damaged, or lost their ends */
	uint64_t nr_there;       /* of a staging: logs that are on this node already */
	uint64_t nr_orphans;     /* containers near, of which no file is left, that were removed */
	uint64_t nr_young;       /* such ones that stay, for their age */
	uint64_t nr_open;        /* with closed_only: logs with a live file, */
	uint64_t nr_dead;        /* and of these those whose process has gone */
};

/*
 * Move the logs of the file (dirfd, path), a backend path below @m, from the places of this host home. Logs
 * of killed processes are closed first, as by a repair. Killed at any moment, the file has its bytes, and the
 * next call goes on. 0: @d has what happened; -errno: the first that failed.
 */
int plfs_drain_file(struct plfs_mount *m, int dirfd, const char *path, struct plfs_drain *d);

/*
 * The same of all that @top has, NEAR/plfs.UID/BACKEND-ID, whose backend is that of @m; what no file leads
 * to any more is removed, and nothing else is done with @only_orphans. -ENXIO: the backend is not there;
 * -EINVAL: it is in another backend, and stays.
 */
int plfs_drain_place(struct plfs_mount *m, const char *top, bool only_orphans, struct plfs_drain *d);

/*
 * Make the copies (mirror=) of the closed logs of all containers in the queue @fd of @m: of this host and
 * user, who is the caller. *@end: how many bytes of the queue that was. As plfs_drain_file(). The path of the
 * queue, into @path (PATH_MAX).
 */
int plfs_drain_queue(struct plfs_mount *m, int fd, uint64_t *end, struct plfs_drain *d);
void plfs_queue_path(const struct plfs_mount *m, char *path);

/*
 * Copy the closed logs of the file to the place of this node, near= of the mapping of @m, for its readers.
 * The originals stay. Killed at any moment, nothing is lost, and the next call goes on. With @drops: remove
 * such copies. Results as of a drain, @d->nr_left with the logs for which there is no room. 0;
 * -EOPNOTSUPP: the mapping has no near=; -errno: the first that failed.
 */
int plfs_stage_file(struct plfs_mount *m, int dirfd, const char *path, bool drops, struct plfs_drain *d);

/* How many logs of the file have a copy on this node, and the sum of their bytes. 0; -errno. */
int plfs_staged_of(struct plfs_mount *m, int dirfd, const char *path, uint64_t *nr, uint64_t *bytes);

/*
 * Call @fn for each such directory in the directory @near that is this user's, all users' for root, with the
 * path of its backend. 0; the first non-zero of @fn; -errno.
 */
int plfs_places_in(const char *near, int (*fn)(void *arg, const char *top, const char *home), void *arg);

/* Whether such a directory is in another backend (spread=): then nothing is moved from there. */
bool plfs_place_is_shared(const char *top);

/* One near.HOST or spread.N.HOST of a file. */
struct plfs_place {
	bool shared;             /* another backend (spread=), which all hosts may read */
	const char *host, *path; /* of the host, without the digits behind its name; of the place */
	const char *name;        /* HOST, as in names */
	bool here;               /* the place is on this host */
	bool read_only;          /* and nothing can be written there: a log that is open stays so */
	uint64_t nr_logs, bytes; /* in it, if it is here */
	uint64_t nr_open;        /* of these, with a live file */
};

/* Call @fn for each. 0; -errno; the first non-zero of @fn. */
int plfs_places_of(struct plfs_mount *m, int dirfd, const char *path,
		   int (*fn)(void *arg, const struct plfs_place *place), void *arg);

/* The parity files of a file (parity=) that are in one backend. */
struct plfs_parity {
	const char *path;    /* OTHER/plfs.UID/BACKEND-ID-shared, or the first backend */
	bool elsewhere;      /* not in the first */
	bool here;           /* it can be read */
	uint64_t nr, bytes;  /* that are there, if it can */
	uint64_t nr_missing; /* that should be, and are not */
};

/* Call @fn for each backend that has some, or should. 0; -errno; the first non-zero of @fn. */
int plfs_parity_of(struct plfs_mount *m, int dirfd, const char *path,
		   int (*fn)(void *arg, const struct plfs_parity *parity), void *arg);

/*
 * Give up on what the file has in the place of @what: a host's name as plfs_places_of() gives it, or that of
 * the host alone. With a slash in it @what is the directory of a backend of spread=, or of a place. Bytes
 * that are nowhere else cannot be read any more, and plfs check lists them. *@nr: how many near.HOSTs and
 * spread.N.HOSTs were removed. -EBUSY: it is there; another -errno: that cannot be told, say.
 */
int plfs_places_forget(struct plfs_mount *m, int dirfd, const char *path, const char *what, unsigned *nr);

/* A directory that near=auto looks at. */
struct plfs_auto {
	const char *dir, *fs;
	const char *from; /* the variable that names it; "": none */
	const char *why;  /* words: why it cannot be taken; NULL: it could */
	bool exists;      /* on a file system of this node: what follows is known */
	bool writable;
	uint64_t size, free; /* bytes, of the file system */
	uint64_t max;        /* bytes of the user's logs there at most; 0: no limit */
	bool taken;
	bool chosen; /* taken, as a process of this job on this node has left it for all */
};

/* Whether the mapping of @m has near=auto. */
bool plfs_finds_near(const struct plfs_mount *m);

/* Call @fn for each. @backend: a path, or NULL. 0; the first non-zero of @fn; -errno: nothing was found. */
int plfs_auto_each(const char *backend, int (*fn)(void *arg, const struct plfs_auto *a), void *arg);

/* ---- looking inside ---- */

struct plfs_info {
	uint64_t size;           /* logical, bytes */
	uint64_t nr_logs;        /* data logs */
	uint64_t nr_writers;     /* logs of live or killed writers: not yet in a node index */
	uint64_t nr_hosts;       /* node indexes */
	bool in_use;             /* another description, of this or another process, has it open */
	uint64_t nr_records;     /* records in all indexes */
	uint64_t log_bytes;      /* in the logs */
	uint64_t index_bytes;    /* in node indexes and live files */
	uint64_t disk_bytes;     /* allocated for everything */
	uint64_t space_bytes;    /* the same with the container's directories and what else is in them */
	uint64_t nr_inodes;      /* that these take up */
	uint64_t written_bytes;  /* of logs, that a record has: what is not in the map was overwritten */
	uint64_t generation_ns;  /* records with this stamp or an earlier one are void */
	char container[PATH_MAX]; /* the container's directory; "": none */
	char id[33];
};

/* 0; -errno: the size cannot be found. Of a closed file no map is made. */
int plfs_get_info(struct plfs_file *f, struct plfs_info *info);

/*
 * *@bytes: in logs, to which no piece of the file leads any more: what was overwritten or cut off. They are
 * given back when the file is emptied, flattened or compacted. Behind the first million pieces all counts as
 * in use. 0; -errno.
 */
int plfs_get_reclaimable(struct plfs_file *f, const struct plfs_info *info, uint64_t *bytes);

/*
 * What a file is that lies in no backend. *@backend: that of the settings which has its container, or NULL.
 * -errno: @fd cannot be read.
 */
enum plfs_stray {
	PLFS_STRAY_NONE,      /* a plain file */
	PLFS_STRAY_CONTAINER, /* a stub: its data is in a container */
	PLFS_STRAY_BODY,      /* a stub: all its data is behind its header */
};
int plfs_is_stray(int fd, const char **backend);

/*
 * Call @fn for each piece of the file in ascending order: @log is the log that has it, plfs_in_stub if the
 * stub has it, NULL for a hole, plfs_lost for what may have been lost with a host, and cannot be read. Stops
 * at the first non-zero result and returns it.
 */
extern const char plfs_in_stub[], plfs_lost[];
int plfs_get_map(struct plfs_file *f,
		 int (*fn)(void *arg, uint64_t logical_off, uint64_t len, const char *log, uint64_t log_off),
		 void *arg);

/* ---- what happens now ---- */

enum plfs_writer_state {
	PLFS_WRITER_RUNS,    /* on this host */
	PLFS_WRITER_STOPPED, /* by a signal */
	PLFS_WRITER_GONE,    /* ended without closing its log */
	PLFS_WRITER_UNSEEN,  /* on another host: what it has not released is not seen from here */
};

/* One log of a file that is open. */
struct plfs_writer_now {
	char host[64], program[64]; /* @program "": not known */
	uint32_t pid, seq;
	int rank;                   /* -1: not known */
	enum plfs_writer_state state;
	uint64_t bytes;             /* in its log */
};

struct plfs_now {
	struct stat st; /* of the stub, for plfs_fix_stat() */
	struct plfs_writer_now *writers;
	size_t nr_writers;
};

/*
 * Who writes the file. 1: somebody; @now has to be released. 0: nobody, or it is no logical file. -errno.
 */
int plfs_look_now(struct plfs_mount *m, int dirfd, const char *path, struct plfs_now *now);
void plfs_now_release(struct plfs_now *now);

/*
 * Call @fn for each file below the directory @path, in @m, that somebody writes. What cannot be read is left
 * out.
 */
void plfs_look_below(struct plfs_mount *m, const char *path,
		     void (*fn)(void *arg, const char *path, struct plfs_now *now), void *arg);

/* ---- what jobs have counted ---- */

/* Take what processes have left beside the stats file @file (plfs-stats(5)) into it. 0; -errno. */
struct plfs_joined {
	unsigned parts;   /* that became lines */
	unsigned alive;   /* whose processes run */
	unsigned newer;   /* of another version of the library */
	unsigned damaged; /* not to be read */
};
int plfs_stats_join(const char *file, struct plfs_joined *out);

/* The name of a stats file in the directory @dir that none is given for, into @out (PATH_MAX). */
void plfs_stats_default(const char *dir, char *out);

/* The rank of this process in its job, by its environment; -1: it is none. */
int plfs_job_rank(void);

#endif
