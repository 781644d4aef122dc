/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Record locks on logical files: the kernel's own, on the stub, shifted by PLFS_BODY_OFF.
 */
#ifndef PLFS_LOCK_H
#define PLFS_LOCK_H

#include "ofile.h"

/* fcntl() with one of the six lock commands. 0 or -errno. */
int lock_fcntl(struct ofile *f, int fd, int cmd, struct flock *fl);

#endif
