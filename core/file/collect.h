/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Giving back the space of what a truncation to 0 has made void.
 */
#ifndef PLFS_COLLECT_H
#define PLFS_COLLECT_H

#include "core/backend/container.h"

/*
 * After a truncation to 0 at @generation_ns: remove node indexes that hold nothing later, and the logs that
 * they name unless their process still has them open. @stub_fd: the stub, or -1. If its description is the
 * only one of the file, logs of killed writers are removed as well; without such logs that costs no call.
 * Returns how many of these were of this host (writer_table.h).
 */
unsigned collect_void(const struct container *c, uint64_t generation_ns, int stub_fd);

/* The logs of killed writers alone. */
unsigned collect_dead(const struct container *c, uint64_t generation_ns, int stub_fd);

#endif
