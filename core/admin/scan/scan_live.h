/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Scanning the live files of a container: the first part, since a log that is closed meanwhile is then in a
 * node index.
 */
#ifndef PLFS_SCAN_LIVE_H
#define PLFS_SCAN_LIVE_H

#include "core/admin/scan/scan.h"

/* Scan all of l->lives. 0; -errno. */
int scan_lives(struct scan *l);

#endif
