/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a process has mapped, by /proc.
 */
#ifndef PLFS_MAPPED_BY_H
#define PLFS_MAPPED_BY_H

#include "core/base/base.h"

/*
 * Whether process @pid has mapped a file whose path has @name in it, of 255 bytes at most. 1; 0, also if
 * there is no such process; -errno: it may not be asked, as one of another user.
 */
int mapped_by(unsigned long pid, const char *name);

#endif
