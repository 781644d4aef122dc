/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Taking hosts out of the table in a stub's header (stub_hosts.h).
 */
#ifndef PLFS_FORGET_H
#define PLFS_FORGET_H

#include "core/admin/scan/scan.h"

/*
 * The hosts that had something in the container at the scan @l and have nothing any more: a repair closed a
 * log that turned out to be empty, or set one aside. With @give_up those that had nothing then, as well. @fd
 * is the stub, which no other process has open. 0; -errno.
 */
int forget_hosts_of(const struct scan *l, int fd, bool give_up);

/*
 * The hosts that had something at the scan @l, none of which counts: before it is removed, so that a repair
 * that dies between leaves no host that has nothing. On stable storage then. 0; -errno.
 */
int forget_hosts_of_void(const struct scan *l, int fd);

#endif
