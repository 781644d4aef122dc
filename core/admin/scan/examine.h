/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Scans one file's container until the result is certain, and reports it. A check and a repair both use it.
 */
#ifndef PLFS_EXAMINE_H
#define PLFS_EXAMINE_H

#include "core/admin/scan/scan.h"
#include "core/backend/mount.h"

/* A file that is being checked or repaired. */
struct examined {
	struct plfs_mount *m;
	struct plfs_check *check;
	const char *file;   /* its name in reports */
	int fd;
	struct stat st;
	struct stub stub;
	struct container c; /* if the stub has one */
	bool plain;         /* it is no logical file */
	bool gone;          /* it was removed, or has lost its container to a move or a flattening */
};

/*
 * Scan the container until two scans agree on the damage. Reports nothing. The caller releases @l and @found.
 * 0; -errno: could not be read. k->gone: nothing was found, since there is no container any more.
 */
int examine_container(struct examined *k, struct scan *l, struct findings *found);

/*
 * Report all findings. @remains: after a repair, only damage and failures, as PLFS_REMAINS. The lost bytes of
 * the file come with the last report: that of a check, or that with @remains.
 */
void examine_report_all(struct examined *k, struct scan *l, const struct findings *found, bool remains);

/* Report those of @first that are no damage, or that @now has no more. */
void examine_report_gone(struct examined *k, const struct findings *first, const struct findings *now);

/*
 * The result of plfs_check() after that scan. 0: sound; 1: damaged; -EPROTONOSUPPORT: written by a later
 * version.
 */
int examine_result(const struct scan *l, const struct findings *found);

/* Report one finding. @path: relative to the container; "": the file itself. */
void examine_report(struct examined *k, enum plfs_severity severity, const char *code, const char *path,
		    const char *fmt, ...) __attribute__((format(printf, 5, 6)));

#endif
