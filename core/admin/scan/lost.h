/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From the bad parts of logs to ranges of the file.
 */
#ifndef PLFS_LOST_H
#define PLFS_LOST_H

#include "core/admin/scan/scan.h"

/* *@end: the size of the file by all records together. 0; -errno. */
int scan_find_end(struct scan *l, uint64_t *end);

/* The ranges of a file that are lost. */
struct scan_lost {
	uint64_t nr, bytes;
	bool more; /* there are more, which were not looked for */
};

/*
 * Call @fn with each range of the file that lies in bad parts of logs, in ascending order, but with @max at
 * most. *@sum counts all of them; but records that a stranger made may say more than anybody has time for,
 * so the search ends behind as many pieces as the logs have room for, and LOST_MAX lost ones. 0; -errno.
 */
#define LOST_MAX ((uint64_t)1 << 22)
int scan_each_lost(struct scan *l, uint64_t max, void (*fn)(void *arg, uint64_t logical_off, uint64_t len),
		   void *arg, struct scan_lost *sum);

#endif
