/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How much memory the job has left. Files in memory count as memory of the control group of who writes them,
 * also after that has ended; who goes beyond its limit is killed, without an ENOSPC before.
 */
#ifndef PLFS_MEMROOM_H
#define PLFS_MEMROOM_H

#include "core/base/base.h"

/*
 * The bytes that the memory control groups of this process, and the machine, have left, besides a tenth of
 * each limit, which stays for the program. What the kernel can take back, such as the cache of files on
 * disks, counts as left. UINT64_MAX: there is no limit that can be read. Linux' control groups of both
 * versions. @root: "", or what is before the names in /proc and /sys, for tests.
 */
uint64_t memroom(const char *root);

#endif
