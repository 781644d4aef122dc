/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Scanning the kept map of a container, after the logs.
 */
#ifndef PLFS_SCAN_GLOBAL_H
#define PLFS_SCAN_GLOBAL_H

#include "core/admin/scan/scan.h"

/*
 * Find out whether index.global misleads readers, and what it knows of logs and indexes that are lost. 0;
 * -errno.
 */
int scan_global(struct scan *l);

#endif
