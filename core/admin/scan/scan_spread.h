/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Other backends that have logs of a file (core/backend/spread.h), and may not be there.
 */
#ifndef PLFS_SCAN_SPREAD_H
#define PLFS_SCAN_SPREAD_H

#include "core/admin/scan/scan.h"

/* The file @path, "spread.N.HOST", in the container. 0; -errno. */
int scan_spread(struct scan *l, const char *path, const char *name);

/*
 * Behind the scan of logs, copies and parity, with l->away: whether all that is in backends that are not
 * there is known, and made anew by a repair. Else l->gone. 0; -errno.
 */
int scan_away(struct scan *l);

#endif
