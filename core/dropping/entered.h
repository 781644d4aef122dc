/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * That a host is entered in the table of a stub (core/backend/stub_hosts.h) is noted in its notice as well:
 * so its processes need not look.
 */
#ifndef PLFS_ENTERED_H
#define PLFS_ENTERED_H

#include "core/backend/stub_hosts.h"

/*
 * stub_hosts_forget_missing(). By their notices these hosts are entered still, and would not enter themselves
 * when they write again: so these say that they are not. 0; -errno.
 */
int entered_forget_missing(const struct container *c, int fd, struct stub_hosts *hosts);

#endif
