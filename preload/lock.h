/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Record locks on logical files: the kernel's own, on the stub, shifted by PLFS_BODY_OFF.
 */
#ifndef PLFS_LOCK_H
#define PLFS_LOCK_H

#include "ofile.h"

/* Whether @cmd is one of the six lock commands of fcntl(). */
bool lock_is_command(int cmd);

/*
 * fcntl() with one of them. Drops the caller's reference to @f before the kernel may wait, so that a signal
 * can end the wait. 0; -errno.
 */
int lock_fcntl(struct ofile *f, int fd, int cmd, struct flock *fl);

#endif
