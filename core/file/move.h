/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Moving a file into its body (body.h).
 *
 * The mover sets "moving" in the header and the notify word in every live file (live.h), as for a truncation.
 * A writer that finds the word set after publishing a record reads the header, waits while it says "moving",
 * and then repeats the write to the body. So either the mover sees the record, or the writer sees the word.
 *
 * Readers are notified in the same moment (watch.h). As long as the header says that the file is being moved
 * they read it before each read.
 */
#ifndef PLFS_MOVE_H
#define PLFS_MOVE_H

#include "core/file/inode.h"

/*
 * Have the file in its body; with the inode's lock held. Waits for other movers, and for appenders. 0;
 * -EBUSY: another host has logs open, which cannot be notified, or a process of this host that cannot map its
 * live file; -EACCES, -EROFS: no write access to the stub; -ENOSPC. After an error the file is as it was.
 */
int move_into_body(struct inode *ino);

/*
 * The same for a process that only reads a bare file (bare.h): the file keeps its time of modification. Best
 * effort; @fd is a descriptor of the stub.
 */
void move_unseen(struct inode *ino, int fd);

/*
 * plfs_before_user(): @write, the user may go on to write it. It keeps its time of modification. 0; -errno.
 */
int move_before_user(struct inode *ino, int fd, uid_t uid, bool write);

/* 1: a log is open on some host, or this process has the file open for writing; 0: neither; -errno. */
int move_finds_writers(const struct inode *ino);

#endif
