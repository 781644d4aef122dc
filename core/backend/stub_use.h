/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The mark of a file that is in use, a lock on a byte of its stub (stub.h): shared by all who have it open,
 * or exclusive.
 */
#ifndef PLFS_STUB_USE_H
#define PLFS_STUB_USE_H

#include "core/base/base.h"

/*
 * Mark the file as in use for as long as the open file description of @fd lives. Waits while another process
 * has it for itself, as one does that makes it a plain file: the stub has no name any more afterwards. If
 * others than this user may write the file, each of them can lock it for no good reason: then it waits for 5
 * seconds, and goes on waiting for one that shows that it works (stub_show_work()); root a minute at most. 0:
 * also without working locks; -EBUSY: it is locked still, and one line says so.
 */
int stub_mark_in_use(int fd);
extern uint64_t stub_roots_patience_ns; /* that minute, which tests change */
extern uint64_t stub_told_ns;           /* so long a wait is silent; tests change it, too */

/* The same without waiting. False: it is locked. */
bool stub_try_mark_in_use(int fd);

/*
 * Show those who wait that this process, which has the file for itself, is at work: the stub's ctime goes on,
 * and no other attribute changes. Call it as often as may be: *@shown_ns, at first 0, sees to it that this
 * is done every tenth of a second. The process is the owner's, or root's.
 */
void stub_show_work(int fd, uint64_t *shown_ns);

/* Remove the mark, for all descriptors of the description. */
void stub_unmark_in_use(int fd);

/*
 * flock(2) of the description @fd, by byte 3: where flock() itself would lock byte 0 and byte 2, also against
 * this process. 0; -EOPNOTSUPP: such locks do not work there; -errno, as of flock(2).
 */
int stub_flock(int fd, int op);

/* Whether another description marks the file as in use. Without working locks: false. */
bool stub_in_use(int fd);

/* Whether it is certain that no other does. */
bool stub_is_alone(int fd);

/*
 * Keep all other processes from opening the file until stub_unmark_in_use(). @fd is writable. 0: also without
 * working locks; -EBUSY: the file is open; -EAGAIN: it has just changed; -ETIMEDOUT: as
 * stub_wait_flattened().
 */
int stub_lock_out(int fd);

/* The same, only if it is certain that the file is not open. -EOPNOTSUPP: locks do not work. */
int stub_lock_alone(int fd);

/*
 * Wait while another process locks the file out. 0: none did; -EBUSY: the file is open; -EAGAIN: one did,
 * look again; -ETIMEDOUT: one does, as stub_mark_in_use() gives up (one line).
 */
int stub_wait_flattened(int fd);

#endif
