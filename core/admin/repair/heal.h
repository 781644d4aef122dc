/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Healing a log by its copies in other backends, or the copies by the log.
 */
#ifndef PLFS_HEAL_H
#define PLFS_HEAL_H

#include "core/admin/scan/scan.h"

/*
 * By what the scan found: have the log of @c made anew from its copies, or its copies from the log. All are
 * read again, and only what is proved to be better replaces anything. 1: done; 0: there was no need; -errno.
 */
int heal_log(const struct container *c, const struct scan_log *log);

/*
 * Make each parity file anew that is missing or damaged; @quick: without reading them. *@nr: how many. 0;
 * -ENXIO: the backends of some are not in the mapping, or not there, and all others are made; -errno.
 */
int heal_parity(const struct container *c, bool quick, unsigned *nr);

#endif
