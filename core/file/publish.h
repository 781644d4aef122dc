/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The release side of a view (view.h): making the stub say what this process knows. All with the inode's lock
 * held; @fd is a descriptor of the stub.
 */
#ifndef PLFS_PUBLISH_H
#define PLFS_PUBLISH_H

#include "core/file/inode.h"

#define TOLERANCE_NS 20000000 /* of two clocks: those of one kernel differ by a tick */

/*
 * Publish the size, and the time of the last write. 0 or -errno: the stub lacks something still.
 * publish_release(): the same where the program releases what it wrote, and so may wait for a process of this
 * host that publishes just now, and perhaps need not do it (published.h).
 */
int publish_size(struct inode *ino, int fd);
int publish_release(struct inode *ino, int fd);

/* Set the stub's time of modification. Best effort; errno is kept. */
void publish_date(struct inode *ino, int fd);

/* Make the stub's length reach at least to @end. */
int publish_extend(struct inode *ino, int fd, uint64_t end);

/*
 * Say at home, before the stub tells of it, what live files in a place of this host say (writer_tell()):
 * those of all its processes, killed ones too. 0; -errno.
 */
int publish_places(struct inode *ino);

/* Publish all that is known to be there, also from what others have in live files. */
int publish_known(struct inode *ino, int fd);

/*
 * Look at the end as the stub and the maps say it, with the end locked, so that no process cuts meanwhile. A
 * lost end is known again afterwards, and unpublished: a process that cuts from here on notifies this one. A
 * process without a live file gets no notice, so it publishes that end here.
 */
int publish_look_at_end(struct inode *ino, int fd, bool reload);

/* If own_end was lost, recall it from the maps, before the size is published for good. Best effort. */
void publish_recall_end(struct inode *ino, int fd);

#endif
