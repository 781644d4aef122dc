/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The inode: the state that all descriptions of one logical file in this process share. It has one log, one
 * view of the file (view.h) and the container. The table finds it by the stub's device and inode number.
 *
 * inode.c has the state and its transitions: the container appears, the file enters its body, a notice comes,
 * a log is given up. inode_table.c has the table, and the end of an inode.
 *
 * Locks: the table's lock is taken before an inode's, never the other way round. Neither is ever held while
 * waiting for something that the program does. Only appenders and truncating processes wait for other
 * processes (the container's lock file).
 */
#ifndef PLFS_INODE_H
#define PLFS_INODE_H

#include "core/base/critical.h"
#include "core/base/hash.h"
#include "core/backend/mount.h"
#include "core/backend/stub_known.h"
#include "core/file/view.h"
#include "core/observe/observe.h"
#include "core/write/writer.h"

struct inode_key {
	dev_t dev;
	ino_t ino;
};

struct inode {
	UT_hash_handle hh;
	struct inode_key key;
	unsigned refs;   /* under the table's lock: one of each description, and those of calls that go on */
	uint64_t entered; /* 1 + the generation in which the stub has this host (stub_hosts.h) */
	uint64_t settled_ns; /* the generation of the header by the last inode_settle() */
	uint64_t number; /* among all of this process, in order */
	bool listed;     /* in the table; under the lock of that */
	pthread_mutex_t lock; /* for all that follows */
	bool opened;     /* it has a description, or had one */
	bool over;       /* its last description has gone: inode_put_over() */
	struct plfs_file *files;
	struct plfs_mount *m;     /* whose .plfs has its container */
	struct plfs_mount *found; /* that of its name, where that is another (nested.h); else NULL */
	struct container c; /* valid if v.stub.has_container */
	struct writer w;    /* valid if writing */
	bool writing;
	struct counted {
		/* The tables of writers that it is in (writer_table.h): of m, of found; NULL: none. */
		void *in[2];
	} counted;
	struct view v;
	bool bare_writer;   /* this process was alone when it wrote the body of a bare file first (bare.h) */
	uint64_t bare_spent; /* of what it may write to the body of a file that is not small (bare.h) */
	bool explained;     /* its header has the sentence, by which a bare file is known without its mark */
	int lock_h;         /* the container's lock file, or -1 */
	unsigned end_locks; /* calls of inode_lock_end() without their inode_unlock_end() */
	int move_fd;        /* another description of the stub, or -1 (move.c) */
	/* this process may hold some; closing any descriptor of the stub here would release them */
	bool record_locks;
	bool shared;        /* another process may have one of our descriptions: a fork, an exec */
	int sync_error;     /* of a log that was given up; the next sync reports it */
	/* another process has been syncing the file for too long: no longer wait for it */
	bool impatient;
	const char *sync_failed; /* what the last sync that failed was at, in words */
	bool sync_told;          /* a line has said so, and none has succeeded since */
	/* the stub says "synced", but the directories above its container are not (logged_sync()) */
	bool way_due;
	/* droppings of this process may have an owner from before, until a close (owned.h) */
	bool owner_due;
	bool near_full;     /* a log near has found no space: later ones are at home */
	int release_error;  /* why other hosts cannot read what was released (release=home) */
	bool release_told;  /* a line has said so */
	bool anew_told;     /* a line has said that the stub was written anew without the library */
	bool access_due;    /* nobody had read the file for a day when this process began: accessed.h */
	uint64_t accessed_ns; /* when accessed_daily() last looked; 0: never */
	struct tally *tally; /* what is counted of it (core/observe/observe.h); NULL: nothing */
	/* the file has no name and no other user: its container is removed, and its maps are not kept */
	bool removed;
};

/* One for each open() of a logical file in this process. */
struct plfs_file {
	struct inode *ino;
	struct plfs_file *next; /* of the same inode */
	int fd;                 /* hidden descriptor of the stub */
	int own_fd;             /* of the program's description, where @fd is of another; else -1 */
	bool writable;
	bool lifted; /* O_APPEND was taken off the program's description, which @fd shares */
};

/* PLFS_CONSISTENCY=posix: nothing is kept back. */
extern bool inode_posix;

/* The process is about to end: a log is closed as soon as something has been written to it. */
extern bool inode_exiting;

/* ---- the table ---- */

/* Find or make the inode of the stub @fd, and take a reference. -EIO: the stub is damaged; -ENOMEM. */
int inode_get(struct plfs_mount *m, int fd, const struct stat *st, struct inode **out);

/* Find it if this process has it open, and take a reference. NULL: it has not. */
struct inode *inode_find(dev_t dev, ino_t ino);

/*
 * Drop a reference. @f: the description that held it, which is no longer one of ino->files; its hidden
 * descriptors are closed here. NULL: the reference came from inode_find(). The last description closes the
 * log. It removes the container if the stub has no name left and no other process has it open.
 */
void inode_put(struct inode *ino, struct plfs_file *f);

/*
 * Drop a reference that inode_get() gave. Its last description has gone since it was found: inode_get() makes
 * another one. The stub may be another by now, with the number of one that was removed.
 */
void inode_put_over(struct inode *ino);

/*
 * At exit, with the inode's lock held: close the log, and remove the container of a file that has no name
 * left if only this process has it open. A process that shares a description with others leaves the removal
 * to them.
 */
void inode_finish(struct inode *ino, int fd);

/*
 * Call @fn for every inode that has a description, locked, with a descriptor fit for writing if it has one
 * (else for reading). Without the table's lock: other files are opened and closed meanwhile. Inodes made
 * after the call began are left out.
 */
void inode_each(void (*fn)(struct inode *ino, int fd));

/* Lock the table and all inodes; unlock. Around a fork. */
void inode_lock_all(void);
void inode_unlock_all(void);

/*
 * In the child, behind that: drop the references that calls of the parent's other threads held. Takes no
 * lock.
 */
void inode_drop_threads(void);

/*
 * ---- all below with the inode's lock held; @fd is a descriptor of the stub, writable and without O_APPEND
 * where something is written ----
 */

/*
 * The mark that the file is in use lives on the program's own description, which processes inherit and pass
 * on. The result is a descriptor of that description: for asking whether others have a mark, and for removing
 * this one. inode_marked_fd(): the same for @fd, the descriptor of one of ino->files.
 */
static inline int file_marked_fd(const struct plfs_file *f) { return f->own_fd >= 0 ? f->own_fd : f->fd; }
int inode_marked_fd(const struct inode *ino, int fd);

/* A descriptor of the stub for core's own use, writable if there is one; -1: none. */
int inode_any_fd(const struct inode *ino);

/* Close the hidden descriptors of @f. */
void file_close_fds(struct plfs_file *f);

/* ---- its container ---- */

/* @c as the options of @m say. */
void inode_init_container(struct plfs_mount *m, struct container *c, const uint8_t *id,
			  const struct stat *st);

/*
 * The header of the stub is @now: enter the body, or take the header over with its container. Stamps are
 * later than its generation from here on. @st: attributes of the stub; NULL if ino->c is set up already.
 */
void inode_follow(struct inode *ino, const struct stub *now, const struct stat *st);

/* The same for the header as it is now. 0 or -errno. */
int inode_read_header(struct inode *ino, int fd, const struct stat *st);

/*
 * Set a feature in the header by @set, of stub_lock.h. Of the header only features are taken over: what else
 * has changed there, the next look finds, and follows. 0 or -errno.
 */
int inode_set_feature(struct inode *ino, int fd, int (*set)(int fd, struct stub *stub));

/*
 * container_check(), for the stub as it is. A container that is missing, or is the first's of a copied stub,
 * is looked for in other backends (nested.h): the inode then has their mount.
 */
int inode_check_container(struct inode *ino, enum container_use use);

/* The missing container of the stub @fd is in another backend, which the inode has from here on. */
bool inode_find_elsewhere(struct inode *ino, int fd);

/* The same before it is removed, if this process has not used it. */
void inode_seek_container(struct inode *ino, int fd);

/* Make the container anew, as the stub @fd is. 0 or -errno. */
int inode_make_container(struct inode *ino, int fd);

/*
 * The container has gone: -EIDRM has said so. 0: the file is empty, and this process has no log of it, so
 * nothing is lost, and whoever writes makes it anew. Else -EIO, and one line.
 */
int inode_container_gone(struct inode *ino, int fd);

/* Remove the container, unless it may belong to another stub. @alone: no other process has the file open. */
void inode_remove_container(const struct inode *ino, bool alone);

/* ---- its form (form.h) ---- */

/* Whether the file has no container and is not in its body, as far as this process knows. */
static inline bool inode_seems_bare(const struct inode *ino)
{
	return stub_has_none(&ino->v.stub);
}

/*
 * Whether the file is bare (bare.h), by the header as it is now, which the inode follows. 1: all bytes whose
 * write has returned are in the body, where they can be read without the lock; 0: it is not; -errno.
 */
int inode_look_bare(struct inode *ino, int fd);

/*
 * Before a bare file gets a body: write the sentence, by which it is known without its mark, unless this
 * process has. 0; -errno.
 */
int inode_explain(struct inode *ino, int fd);

/*
 * Whether the file is in its body (body.h), by the header. Waits for a process that is moving it
 * (the container's lock); then v.stub.in_body is set. Of a logged file the word "cut" is taken over. 0 or
 * -errno.
 */
int inode_settle(struct inode *ino, int fd);

/* The same without waiting: v.stub.moving then says that a process is still moving it. 0 or -errno. */
int inode_look_for_move(struct inode *ino, int fd);

/*
 * What came of looking at a logged file: @ret if not 0; -EREMCHG (form.h): it has entered its body; 0: it is
 * logged still.
 */
static inline int inode_still_logged(const struct inode *ino, int ret)
{
	return !ret && unlikely(ino->v.stub.in_body) ? -EREMCHG : ret;
}

/*
 * The header @now says that the file is in its body: abandon the log, drop the maps, remove what is left of
 * the container.
 */
void inode_enter_body(struct inode *ino, const struct stub *now);

/* stub_check_still(). */
static inline int inode_check_stub(struct inode *ino, int fd)
{
	return stub_check_still(fd, &ino->v.stub, &ino->anew_told);
}

/*
 * Write "synced" into the stub, before something of the file is; that is no change of the file. A description
 * that can only read leaves it to those that write. Returns whether it was not there before.
 */
bool inode_mark_synced(struct inode *ino, int fd);

/* ---- this process and others ---- */

/* writer_table_begin() and _end(), by the mapping of the container and by that of the name. */
struct counted inode_count(struct inode *ino);

/* The same for a stub that is about to have the attributes @st. */
struct counted inode_count_as(struct inode *ino, const struct stat *st);

/*
 * The stub has the attributes @st, taken with the lock held: another process may have changed its owner or
 * group since it was opened.
 */
void inode_heed_owner(struct inode *ino, const struct stat *st);

void inode_uncount(struct inode *ino, struct counted *counted);

/* The stub says all that this process had to say of the size: it no longer counts as a writer. */
void inode_not_counted(struct inode *ino);

/*
 * The log was closed or given up, and its live file with it. An end that the stub does not say by now is
 * lost. If the process still counts as a writer in the table, it stays there as a killed process does.
 */
void inode_stop_writing(struct inode *ino);

/* Acquire: from here on reads see what others had released. The next read looks. */
void inode_refresh(struct inode *ino);

/* Have the writers of this host end their records and look at the header, and its readers look again. */
void inode_notify(struct inode *ino, uint64_t stamp_ns);

/* The first half of that; returns how many live files others have. */
unsigned inode_notify_writers(struct inode *ino, uint64_t stamp_ns);

static inline bool inode_is_notified(const struct inode *ino)
{
	return ino->writing && live_notified(&ino->w.tail.live) > ino->v.notified_ns;
}

/*
 * Take a truncation by another process into account, if a notice says that there may be one: view_heed_cut().
 */
static inline bool inode_heed_cut(struct inode *ino)
{
	return ino->writing && view_heed_cut(&ino->v, live_notified(&ino->w.tail.live), ino->w.last.stamp_ns);
}

/*
 * If a notice has come, read the header. 0; -EREMCHG: the file has entered its body; -errno: the notice stays
 * one.
 */
int inode_heed_notice(struct inode *ino, int fd);

/*
 * The container's lock file: no other process appends or truncates meanwhile. Taken before the header's lock;
 * calls nest. inode_try_lock_end() does not wait.
 */
int inode_lock_end(struct inode *ino);
int inode_try_lock_end(struct inode *ino);
void inode_unlock_end(struct inode *ino);

/*
 * Whether a mapped file was cut, or its file system failed (guard.h): all that was done with it since is
 * void.
 */
static inline bool inode_is_broken(const struct inode *ino)
{
	return unlikely(__atomic_load_n(&guard_nr_broken, __ATOMIC_RELAXED)) &&
	       ((ino->writing && live_is_broken(&ino->w.tail.live)) || reader_is_broken(&ino->v.r));
}

/*
 * Then let go of it: of the maps, and of a log whose live file it was. That log stays on disk as a killed
 * process's does, with all that was acknowledged. The next write begins another. 0; or the error of the log,
 * and the operation under way has not been done.
 */
int inode_mend(struct inode *ino);

#endif
