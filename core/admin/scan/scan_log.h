/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Scanning the data logs of a container, after the node indexes.
 */
#ifndef PLFS_SCAN_LOG_H
#define PLFS_SCAN_LOG_H

#include "core/admin/scan/scan.h"

/* Scan all of l->logs. 0; -errno. */
int scan_logs(struct scan *l);

/* The length of the log up to which its bytes can be read, staged ones included. */
uint64_t scan_readable_len(const struct scan *l, const struct scan_log *log);

#endif
