/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a repair does to one file, by a scan, step after step.
 */
#ifndef PLFS_STEPS_H
#define PLFS_STEPS_H

#include "core/admin/scan/examine.h"

struct repair {
	struct examined *k;
	struct scan *l;
	int fd;       /* of the stub, writable */
	bool alone;   /* no other process has the file open, and none can open it */
	bool changed;
	struct findings steps; /* what was done, or is to be done, or failed */
	bool set_aside; /* --partial has set something aside */
	bool has_tables; /* a table is damaged, so the data has to be read */
	int mended;   /* rounds in which bits were restored */
};

static inline bool repair_is_dry(const struct repair *r) { return r->k->check->dry_run; }

/* Report a step: done (or, in a dry run, to be done) if @ret is 0, else failed. Returns @ret. */
int repair_report(struct repair *r, int ret, const char *code, const char *path, const char *text);

/*
 * Take all steps, each with the locks that it needs; the file stays as readable as before whenever one is
 * interrupted. 0; -EAGAIN: another process has changed what was scanned; -errno.
 */
int repair_take_steps(struct repair *r);

#endif
