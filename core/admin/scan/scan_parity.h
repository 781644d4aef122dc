/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Scans the parity of logs in several backends (core/dropping/parities.h), after the logs and their copies.
 */
#ifndef PLFS_SCAN_PARITY_H
#define PLFS_SCAN_PARITY_H

#include "core/admin/scan/scan.h"

/*
 * Of a log that is damaged or not there: whether parity has all of it, so that nothing of it is lost. Of each
 * group: whether its parity file is there and whole, and its logs are still of the file. A quick check reads
 * no parity file.
 */
int scan_parity(struct scan *l);

#endif
