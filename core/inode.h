/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The inode: what all descriptions of one logical file in this process share. One log, one stack of maps, one idea of
 * the size. Found by the stub's device and inode number.
 *
 * Locks: the table's lock is taken before an inode's, never the other way round. Neither is ever held while waiting for
 * something that the program does; only appenders wait for other processes (container lock file).
 */
#ifndef PLFS_INODE_H
#define PLFS_INODE_H

#include "critical.h"
#include "hash.h"
#include "mount.h"
#include "reader.h"
#include "stub.h"
#include "writer.h"

struct plfs_file;

struct inode_key {
	dev_t dev;
	ino_t ino;
};

struct inode {
	UT_hash_handle hh;
	struct inode_key key;
	unsigned refs; /* under the table's lock */
	pthread_mutex_t lock; /* for all that follows */
	struct plfs_file *files;
	struct plfs_mount *m;
	struct stub stub;
	struct container c; /* valid if stub.has_container */
	struct writer w;    /* valid if writing */
	bool writing;
	bool counted;       /* among those that write (writers.h) */
	struct reader r;
	struct timespec first_ctim; /* of the stub, when it was first looked at */
	uint64_t body_len;  /* logical size that the stub said when last looked at: inode_told_len() */
	uint64_t own_end;   /* end of what was written here and is not published yet; 0: nothing */
	bool end_lost;      /* own_end was dropped, and may be behind the cut: only a map tells (inode_recall_end()) */
	uint64_t notified_ns; /* last notice after which the header was looked at */
	uint64_t cut_ns;    /* last notice that own_end takes into account */
	uint64_t told_cut_ns; /* the truncation to 0 of which this process has told readers */
	bool bare_writer;   /* this process writes the body of a bare file (bare.h) */
	bool touched;       /* written to since the stub's times were last set */
	uint64_t last_publish_ns;
	int lock_h;         /* the container's lock file, or -1 */
	unsigned end_locks; /* how many times inode_lock_end() was called more than inode_unlock_end() */
	int move_fd;        /* another description of the stub, or -1 (body.c) */
	bool record_locks;  /* this process may hold some, which go when any descriptor of the stub is closed here */
	bool acquired;      /* what others have released is to be looked for before the next read: an open, a lock, a sync */
	bool shared;        /* another process may have one of our descriptions: a fork, an exec */
	int sync_error;     /* of a log that was given up: the next sync reports it */
	bool impatient;     /* who was syncing it when last looked at has been at it for too long to be waited for */
	bool way_due;       /* the way to its container has not been synced, though the stub says that it is synced (inode_sync()) */
	bool removed;       /* at exit: nobody can ever read what is still written */
};

/* PLFS_CONSISTENCY=posix: nothing is kept back. */
extern bool inode_posix;

/* The process is about to end: a log is closed as soon as something has been written to it. */
extern bool inode_exiting;

/* Find or make the inode of the stub @fd, and take a reference. -EIO for a damaged stub, -ENOMEM. */
int inode_get(struct plfs_mount *m, int fd, const struct stat *st, struct inode **out);

/* Find it if this process has it open, and take a reference. */
struct inode *inode_find(dev_t dev, ino_t ino);

/*
 * Drop a reference. @f: the description that held it, which is no longer one of ino->files; its hidden descriptors are closed
 * here. NULL: the reference came from inode_find(). The last reference closes the log, and removes the container if the stub
 * has no name left and nobody else has it open.
 */
void inode_put(struct inode *ino, struct plfs_file *f);

/* ---- with the inode's lock held; @fd is a descriptor of the stub, writable and without O_APPEND where something is written ---- */

/* Write at @logical_off; as plfs_pwrite(). */
ssize_t inode_write(struct inode *ino, int fd, const void *buf, size_t len, uint64_t logical_off);

/*
 * The same for a small write that goes on where the last one had it expected: nothing but a copy and a count, and no
 * call that could change errno. False: use inode_write(), and the bytes may be there already.
 */
bool inode_write_next(struct inode *ino, const void *buf, size_t len, uint64_t logical_off);

/* Read; as plfs_pread(). */
ssize_t inode_read(struct inode *ino, int fd, void *buf, size_t len, uint64_t logical_off);

/*
 * The same with a rest, @rd, that is done without the lock; as reader_begin(), but an error is final. If rd->in_body,
 * body_read() is to be asked.
 */
ssize_t inode_begin_read(struct inode *ino, int fd, void *buf, size_t len, uint64_t logical_off, struct reading *rd);

/* The size now. @st: fresh attributes of the stub. */
int inode_size(struct inode *ino, int fd, const struct stat *st, uint64_t *size);

/* container_check(), for the stub as it is. */
int inode_check_container(struct inode *ino, enum container_use use);

/* Have a container and a log. */
int inode_make_writer(struct inode *ino, int fd);

/* Where clocks cannot be trusted, see all stamps in the container, so that what comes now is later. */
int inode_heed_clock(struct inode *ino, int fd);

/*
 * Close the log if there is one; the next write opens another. Publishes. -errno: acknowledged bytes could not be
 * kept (writer_close(), or the error with which the log was closed).
 */
int inode_close_writer(struct inode *ino, int fd);

/*
 * At exit: close the log, and remove the container of a file that has no name left if only this process has it open. Whoever
 * shares a description with others leaves that to them.
 */
void inode_finish(struct inode *ino, int fd);

/* Release. */
int inode_commit(struct inode *ino, int fd);

/* Acquire: from here on reads see what others had released. The looking is done by the next read. */
void inode_refresh(struct inode *ino);

/*
 * -EBUSY: another process of the host is syncing the file. Try again, with the lock given back meanwhile, for that one may have been stopped; with
 * ino->impatient it is not waited for.
 */
int inode_sync(struct inode *ino, int fd);
int inode_truncate(struct inode *ino, int fd, uint64_t size);

/* Let the stub say that the file reaches at least to @end. */
int inode_extend(struct inode *ino, int fd, uint64_t end);

/* The same for fallocate(). No record says such a size, so a truncation under way is finished first. */
int inode_grow(struct inode *ino, int fd, uint64_t end);

/* If the map knows of more than the stub's size says, as of what a killed process wrote, let the stub say it. */
void inode_publish_found(struct inode *ino, int fd);

/*
 * Take and give back the right to append; between the two *@end is the true end. Of a file that is in its body
 * nothing is taken: use body_append().
 */
int inode_begin_append(struct inode *ino, int fd, uint64_t *end);
void inode_end_append(struct inode *ino, int fd);

/* ---- the same, for core/inode*.c and body.c alone ---- */

/* @c as the options of @m say. */
void inode_init_container(struct plfs_mount *m, struct container *c, const uint8_t *id, const struct stat *st);

/* Set ino->c up, the header having been read; stamps are later than its generation from here on. */
void inode_adopt_container(struct inode *ino, const struct stat *st);

/* Remove the container, unless the stub may not be the one that it belongs to. @alone: nobody else has the file open. */
void inode_remove_container(const struct inode *ino, bool alone);

/* The header says that the file is in its body (body.h): let go of log and maps. @now: the header. */
void inode_enter_body(struct inode *ino, const struct stub *now);

/* Whatever this process had to say of the file's size, the stub says it: it does not count as a writer any more. */
void inode_not_counted(struct inode *ino);

/*
 * See whether the header says so, waiting for whoever is moving the file (stub_settle()): then ino->stub.in_body is
 * set. 0 or -errno.
 */
int inode_settle(struct inode *ino, int fd);

/* The same without waiting: ino->stub.moving then says that somebody is still at it. 0 or -errno. */
int inode_look_for_move(struct inode *ino, int fd);

/*
 * Whether a truncation is under way that has happened, by the header and the maps as they are known here. Then the
 * stub's length is not to be believed. A truncate record that is not in the maps yet has not happened for their user.
 */
bool inode_is_cut(const struct inode *ino);

/* The logical size that the stub says, with this st_size. */
uint64_t inode_told_len(const struct inode *ino, off_t st_size);

/* Whatever is known: the stub's size, what was written here, what the map says. After inode_look_again(). */
uint64_t inode_known_size(const struct inode *ino);

/*
 * See what the stub says now; where others may have written or truncated (or @reload), make the map anew. Afterwards the
 * known size has all that this process wrote, and all that others have published.
 */
int inode_look_again(struct inode *ino, int fd, const struct stat *st, bool reload);

/* Make the map anew. */
int inode_load(struct inode *ino);

/* Have a map that covers what this process wrote. */
int inode_prepare_read(struct inode *ino);

/* Tell the stub the size, and that it was written to. */
int inode_publish(struct inode *ino, int fd);

/* Tell the writers of this host to end their records and to look at the header, and its readers to look again. */
void inode_notify(struct inode *ino, uint64_t stamp_ns);

/* The first half of that; returns how many live files others have. */
unsigned inode_notify_writers(struct inode *ino, uint64_t stamp_ns);

/*
 * Whether a file that we have mapped was cut, or failed, under us (mapping.h): what has been done with it since is
 * nothing.
 */
static inline bool inode_is_broken(const struct inode *ino)
{
	return unlikely(__atomic_load_n(&mapping_nr_broken, __ATOMIC_RELAXED)) &&
	       ((ino->writing && stage_is_broken(&ino->w.stage)) || reader_is_broken(&ino->r));
}

/*
 * Then let go of it: of the maps, and of a log whose live file it was, which stays on disk as that of a killed
 * process does, with all that was acknowledged. The next write begins another. 0, or why the log was given up: what
 * was under way has not been done.
 */
int inode_mend(struct inode *ino);

static inline bool inode_is_notified(const struct inode *ino)
{
	return ino->writing && stage_notified(&ino->w.stage) > ino->notified_ns;
}

/* Whether we have been told: then the header is looked at, and the file may be in its body afterwards. */
int inode_heed_notice(struct inode *ino, int fd);

/* The container's lock file: nobody appends or truncates meanwhile. Taken before the header's lock; calls nest. */
int inode_lock_end(struct inode *ino);
void inode_unlock_end(struct inode *ino);

/* If own_end was lost, have it again from a map, before the size is published for good. Best effort. */
void inode_recall_end(struct inode *ino, int fd);

/*
 * Finish what the header (inode_settle()) says of a truncation, with the end locked: its process has died. If it has
 * happened the body is cut, else it is forgotten.
 */
int inode_finish_cut(struct inode *ino, int fd);

/* ---- all of them ---- */

/* Call @fn for every inode, locked, with a descriptor fit for writing if it has one (else for reading). */
void inode_each(void (*fn)(struct inode *ino, int fd));

/* Lock the table and all inodes; unlock. Around a fork. */
void inode_lock_all(void);
void inode_unlock_all(void);

#endif
