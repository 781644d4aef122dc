/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether all hosts that have written a file still have something in its container (stub_hosts.h).
 */
#ifndef PLFS_HOSTS_H
#define PLFS_HOSTS_H

#include "core/backend/stub_hosts.h"
#include "core/file/inode.h"

/*
 * The maps of @ino have just been loaded; @hosts was read from the stub @fd since. If a host has nothing
 * left, say so once, and let the reader give no bytes that no log has. The inode's lock is held.
 */
void hosts_look(struct inode *ino, int fd, struct stub_hosts *hosts);

/*
 * This process is about to make its first log. If its host is entered and has nothing left, say so in the
 * stub: from now on it has something.
 */
void hosts_look_before_log(struct inode *ino);

/* This process publishes something of its log: enter this host, unless one of its processes has. */
void hosts_enter(struct inode *ino);

#endif
