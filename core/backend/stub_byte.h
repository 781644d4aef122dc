/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Locks on single bytes of a stub (stub.h).
 */
#ifndef PLFS_STUB_BYTE_H
#define PLFS_STUB_BYTE_H

#include "core/base/base.h"

#include <fcntl.h>

/* @cmd: F_SETLK or F_OFD_SETLK. @type: F_RDLCK, F_WRLCK, F_UNLCK. 0; -EBUSY: another has it; -errno. */
int stub_byte_lock(int fd, int cmd, off_t byte, short type);

/*
 * What keeps this process, or with F_OFD_GETLK instead of F_GETLK this description, from having the byte
 * exclusively: F_RDLCK, F_WRLCK or F_UNLCK; @unknown where locks do not work.
 */
short stub_byte_of_others(int fd, int cmd, off_t byte, short unknown);

/* Whether nobody but this user, and root, can have one of the locks exclusively. */
bool stub_is_ours_alone(int fd);

#endif
