/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Scans the copies of logs in other backends (core/dropping/copies.h), after the logs.
 */
#ifndef PLFS_SCAN_COPIES_H
#define PLFS_SCAN_COPIES_H

#include "core/admin/scan/scan.h"

/*
 * Of a log that is damaged: whether a copy is whole, so that nothing of it is lost. Of one that is not:
 * whether each copy is there, as long as the log, and whole. A quick check reads no copy of a whole log.
 */
int scan_copies(struct scan *l);

/* Whether damage of the log was found. */
bool scan_is_damaged(const struct scan *l, const struct scan_log *log);

/* What a copy has of the log, or parity, cannot be lost. */
void scan_forget_bad(struct scan *l, const struct scan_log *log);

/* Copies or parity may have the beginning of a log that is damaged: of that nothing is lost. */
void scan_look_at_beginning(struct scan *l, const struct scan_log *log);

#endif
