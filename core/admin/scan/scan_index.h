/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Scanning the node indexes of a container, after the live files.
 */
#ifndef PLFS_SCAN_INDEX_H
#define PLFS_SCAN_INDEX_H

#include "core/admin/scan/scan.h"

/* Scan all of l->indexes. 0; -errno. */
int scan_indexes(struct scan *l);

#endif
