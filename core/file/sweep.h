/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sweep: whoever closes a file last removes logs. It does so for two reasons.
 *
 * What is hidden: a file that is written over in place, again and again, keeps to about twice its size, and
 * what is being written. The logs all of whose bytes are hidden go.
 *
 * Each writer adds what it has written to a word that the processes of a host share (lease_close_log()). A
 * file whose logs have got more than SWEEP_AT quarters of its size since the last sweep is looked at, by
 * one process, with no other writer on this host. So a file that is written once is never looked at, and
 * one that is written over and over once for each time.
 *
 * What goes is what was hidden when the newest logs were begun, those that have most of the bytes of the
 * file: by the steps of reclaim.h. A little that is visible in an old log, and keeps it and all later ones
 * from going, is copied, as the cleaner of a log-structured file system does (Rosenblum and Ousterhout,
 * 1992). What hides it has been on the disk for as long as the last run took, and is synced here. The
 * newest logs are not: they need not be, and it would take long.
 *
 * Logs of little: a new process for each line, as in a script's loop, makes as many logs. Each adds one to
 * another word if it was closed while nobody else wrote the file: so ranks that write it at once do not
 * count. Of sweep_little_at such logs, and of one for each RECLAIM_LITTLE bytes of the file, one is made, by
 * the same steps: it has all that is visible, and the copy takes as long as writing the file once took.
 *
 * Not swept: logs of which more is visible (plfs compact copies all); a file of another user; one that
 * others may write too, where hosts share the backend: there the sweep has to lock all others out, who wait
 * for it.
 */
#ifndef PLFS_SWEEP_H
#define PLFS_SWEEP_H

#include "core/file/inode.h"

extern uint64_t sweep_little_at; /* tests make it smaller */

/*
 * The last description of @ino in this process is about to be closed, and its log has been. @fd: a
 * descriptor of the stub, writable and without O_APPEND. @marked: one of the description that has the mark;
 * -1: others share it. The inode's lock is held. Nothing comes of an error: the logs stay.
 */
void sweep(struct inode *ino, int fd, int marked);

#endif
