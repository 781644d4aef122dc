/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a truncation to 0 has made void, and giving its space back.
 */
#ifndef PLFS_COLLECT_H
#define PLFS_COLLECT_H

#include "container.h"

/*
 * After a truncation to 0 at @generation_ns: remove node indexes that hold nothing later, and the logs that they name
 * unless their process still has them open. If nobody has the file open but by the description of @stub_fd (-1: that
 * is not known), no process has: then logs whose writers were killed go as well. Where there are none that costs no
 * call. Returns how many of these were of this host (writers.h).
 */
unsigned collect_void(const struct container *c, uint64_t generation_ns, int stub_fd);

#endif
