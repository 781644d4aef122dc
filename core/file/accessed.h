/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The times of last access of a file's droppings. Many sites remove what has not been accessed for weeks. A
 * reader accesses the stub, and those logs that have its bytes; a program sees one file, though. So the
 * others are accessed as well, as seldom as the kernel notes it (relatime).
 */
#ifndef PLFS_ACCESSED_H
#define PLFS_ACCESSED_H

#include "core/file/inode.h"

/* Whether by @st, the stub before it was read, its last access is more than a day ago. No system call. */
bool accessed_is_due(const struct stat *st);

/*
 * The inode, whose lock is held, is not used any more. If it was, the access is due, and the file system
 * notes accesses, read a byte of each dropping that has not been accessed for a day. Processes that do this
 * at once share the work. @fd: the stub.
 *
 * The stub was not accessed for a day when the use began: then it is due. Or the stub was, as by who appends
 * every hour and reads nothing, but the container's lock was not, which is accessed here alone: asked of
 * containers that are older than a day.
 */
void accessed_note(struct inode *ino, int fd);

/*
 * The same for a file that is written and stays open: once a day, the stub too. Called when the file's size
 * is published or its time set; costs a look at the clock on other days. A notice that is purged while this
 * process has it mapped would be made anew by the next one, which then does not see the leases in the old one
 * (core/dropping/lease.h).
 */
void accessed_daily(struct inode *ino, int fd);

#endif
