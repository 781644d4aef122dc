/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Making parity files (core/backend/parity.h).
 */
#ifndef PLFS_PARITIES_MAKE_H
#define PLFS_PARITIES_MAKE_H

#include "core/backend/parity.h"
#include "core/dropping/carry.h"

/* One parity file that is to be made. */
struct parities_row {
	struct parity_group *g;
	const struct place_settings *ps; /* its backend; NULL: home */
};

/* Why parities_make() failed. */
struct parities_failure {
	unsigned log; /* that is damaged or missing; UINT_MAX: none is */
	unsigned row; /* that could not be written; UINT_MAX: none */
};

/*
 * Make the parity files @rows, at most PARITY_ROWS_MAX, of the same logs, which are read once: their blocks
 * are appended to @record (parity_lock()), then the files are made under temporary names, synced and renamed.
 * The bytes of each log are compared with its checksums meanwhile. 0: carry->bytes has the bytes read; -EIO:
 * a log is damaged; -ENXIO: a backend is not there; -errno: no file has its name, and @f says why.
 */
int parities_make(const struct container *c, int record, const struct parities_row *rows, unsigned nr_rows,
		  struct carry *carry, struct parities_failure *f);

/* Drop the parity file of @g, best effort. */
void parities_drop(const struct container *c, int record, const struct parity_group *g);

/*
 * Have another parity file in the place of that of @g, in the same backend and of the same logs, of which
 * each is whole. 0; -ENXIO: that backend is not of the mapping; as parities_make().
 */
int parities_remake(const struct container *c, const struct parity_group *g, struct carry *carry);

#endif
