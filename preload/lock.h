/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Record locks on logical files: the kernel's own, on the stub, shifted by PLFS_BODY_OFF.
 */
#ifndef PLFS_LOCK_H
#define PLFS_LOCK_H

#include "ofile.h"

/* Whether it is one of the six lock commands of fcntl(). */
bool lock_is_command(int cmd);

/*
 * fcntl() with one of them. Takes over the reference to @f, for while the kernel waits nothing is held, and signals end
 * the wait. 0 or -errno.
 */
int lock_fcntl(struct ofile *f, int fd, int cmd, struct flock *fl);

#endif
