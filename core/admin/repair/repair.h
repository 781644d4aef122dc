/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Repairing a file whose container has been scanned.
 */
#ifndef PLFS_REPAIR_H
#define PLFS_REPAIR_H

#include "core/admin/scan/examine.h"

/*
 * Repair the file by @l and @found; they may be replaced by those of a later scan. Each finding is reported
 * once: as what was found, if it is gone afterwards, else as what remains.
 * Results as of plfs_check().
 */
int repair_file(struct examined *k, struct scan *l, struct findings *found);

#endif
