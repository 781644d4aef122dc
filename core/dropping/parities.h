/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parity files (core/backend/parity.h): proving them, and logs made anew of them. parities_make.h makes them.
 */
#ifndef PLFS_PARITIES_H
#define PLFS_PARITIES_H

#include "core/backend/parity.h"
#include "core/dropping/carry.h"

/*
 * Open what the log @path was, by parity files and the other logs of its group: for reading, by
 * datalog_pread() with the container's store. *@no and @where are as for copies_open(). Its header is that of
 * the log; its bytes are the caller's to check. >= 0: a handle; -ENOENT: there is none.
 */
int parities_open(const struct container *c, const char *path, unsigned *no, char *where);

/* Whether what the log @path was can be made of parity, with @len bytes of its data area. */
bool parities_cover(const struct container *c, const char *path, uint64_t len);

/*
 * Whether the parity file of @g is there, of its group, and as long as it says; with @proves whether its
 * bytes match their checksum. 0; -ENOENT: it is missing; -EIO: damaged; -ENXIO: the backend is not there;
 * -errno.
 */
int parities_look(const struct container *c, const struct parity_group *g, bool proves);

/*
 * Have the log @path again where its name says that it was, or at home if that backend is not there, from
 * parity. At least @least bytes of its data area. 1: done; -ENOENT: no parity is of use; -errno.
 */
int parities_restore(const struct container *c, const char *path, uint64_t least, struct carry *carry);

#endif
