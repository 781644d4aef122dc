/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waiting for bytes that are near on another host to be drained (wait=).
 */
#ifndef PLFS_PATIENCE_H
#define PLFS_PATIENCE_H

#include "core/base/base.h"

/* How long a read has waited. */
struct patience {
	uint64_t until_ns; /* 0: it has not waited yet */
	uint64_t pause_ns; /* the next */
	bool over;
};

/*
 * Pause, longer each time, or note that the @wait_s seconds are over. No lock is held, so that others can use
 * the file. Handlers of signals run meanwhile, and the wait goes on: no program expects EINTR of a file.
 */
void patience_wait(struct patience *p, unsigned wait_s);

#endif
