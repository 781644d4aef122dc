/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which files have logs that are open, or were left open by a killed process, on this host: for stat(), which sees no
 * more than the stub's inode. What such files have beyond the size that their stub says is known to live files only;
 * of all others the stub says it. So a stat costs a load from memory, and whoever writes publishes the size now and
 * then only.
 *
 *   BACKEND/.plfs/writers.HOST, 64 KiB, mapped by all that write or stat
 *     0  8  how many logs have ended
 *    64  4  each: how many logs are open of the files whose inode numbers lead there
 *
 * A count may be too high, never too low: too high, and a file is looked at for nothing. Where the backend is shared with
 * other hosts, or nothing can be mapped, there is no table.
 */
#ifndef PLFS_WRITERS_H
#define PLFS_WRITERS_H

#include "container.h"
#include "mount.h"

/* Before the live file is made. False: there is no table that we can write to, and nothing is to be taken back. */
bool writers_begin(struct plfs_mount *m, ino_t number);

/* After the size has been published and the live file is gone; only what was begun. */
void writers_end(struct plfs_mount *m, ino_t number);

/* So many live files of dead processes of this host, of the stub @number, are gone. */
void writers_gone(struct plfs_mount *m, ino_t number, unsigned nr);

/*
 * Remove @c, that of the stub @number, as container_remove(). The caller knows that nobody has the file open: what
 * live files there are, are of the dead, and are not counted any more.
 */
int writers_remove_container(struct plfs_mount *m, const struct container *c, ino_t number);

/* How many logs have ended in all backends. */
uint64_t writers_ended(void);

/*
 * Whether the stub @number on @dev may have a live file, or has had one since writers_ended() said @ended (if that is
 * known).
 */
#define WRITERS_UNKNOWN UINT64_MAX
bool writers_may_be(dev_t dev, ino_t number, uint64_t ended);

/* Whether a file that is open here may have a live file now, though none is known. True as well where no table tells. */
bool writers_may_have_begun(struct plfs_mount *m, ino_t number);

#endif
