/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Files that are in their body: all bytes lie in the stub itself, behind its header, and there are no logs. So
 * the kernel can do with them what it can do with a plain file, at offsets that are PLFS_BODY_OFF more: map them shared
 * above all. A file is moved there when somebody needs that, and stays there until it is removed.
 *
 * Who writes the file to a log at that moment is told through the notify word of his live file (stage.h), as of a
 * truncation: he looks at the header after each write that he was told during, and writes the same to the body if need be.
 * Either his record is seen by who moves the file, or he sees the word.
 *
 * Readers are told in the same moment (watch.h). As long as the header says that the file is being moved they look at it
 * before each read.
 */
#ifndef PLFS_BODY_H
#define PLFS_BODY_H

#include "inode.h"

#include <sys/uio.h>

/*
 * Have the file in its body; with the inode's lock held. Waits for others who do the same, and for one another's appends.
 * -EBUSY: another host has logs open, which cannot be told, or a process of this one that cannot map its live file. -EACCES, -EROFS: no write access to the stub. -ENOSPC. After an error the
 * file is as it was.
 */
int body_move(struct inode *ino);

/* The same for who only reads a bare file (bare.h): it keeps its time of modification. Best effort; @fd is a descriptor of the stub. */
void body_move_unseen(struct inode *ino, int fd);

/*
 * Whether somebody here may be writing: a log is open on some host, or this process has the file open for writing. 1, 0
 * or -errno.
 */
int body_is_written(const struct inode *ino);

/* The data calls on such a file: as pread(), pwrite() and a write() with O_APPEND; -errno. */
ssize_t body_read(int fd, void *buf, size_t len, uint64_t logical_off);
ssize_t body_write(int fd, const void *buf, size_t len, uint64_t logical_off);
ssize_t body_append(int fd, const struct iovec *iov, int cnt, uint64_t *end);

#endif
