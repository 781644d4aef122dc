/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Releases that could not bring bytes home (release=home). The error waits for the next sync, or for the last
 * close, which tries once more: an unlock that failed would keep others waiting for ever. All with the
 * inode's lock held.
 */
#ifndef PLFS_RELEASE_H
#define PLFS_RELEASE_H

#include "core/file/inode.h"

/* A release by this process ended with @ret. With @tell, one line says so if it failed, once. */
void release_note(struct inode *ino, int ret, bool tell);

/* The last close: have all home that is not. 0; -errno, and a line has said so. */
int release_end(struct inode *ino, int fd);

/* A sync has brought all home, or it is no matter any more. */
static inline void release_forget(struct inode *ino)
{
	ino->release_error = 0;
	ino->release_told = false;
}

#endif
