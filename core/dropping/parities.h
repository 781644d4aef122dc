/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parity files (core/backend/parity.h): making and proving them, and logs made anew of them.
 */
#ifndef PLFS_PARITIES_H
#define PLFS_PARITIES_H

#include "core/backend/parity.h"
#include "core/dropping/carry.h"

/*
 * Open what the log @path was, by a parity file and the other logs of its group: for reading, by
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
 * Make the parity file of @g, of which the logs are known, in the backend of @ps (NULL: home): its block is
 * appended to @record (parity_lock()), then the file is made under a temporary name, synced and renamed. The
 * bytes of each log are compared with its checksums meanwhile. 0: carry->bytes has the bytes read; -EIO: the
 * log g->logs[*@bad] is damaged (UINT_MAX: none is); -ENXIO: the backend is not there; -errno: no file has
 * its name.
 */
int parities_make(const struct container *c, int record, const struct place_settings *ps,
		  struct parity_group *g, struct carry *carry, unsigned *bad);

/* Drop the group and remove its file, best effort. */
void parities_drop(const struct container *c, int record, const struct parity_group *g);

/*
 * Have another parity file in the place of that of @g, in the same backend and of the same logs, of which
 * each is whole. 0; -ENXIO: that backend is not of the mapping; as parities_make().
 */
int parities_remake(const struct container *c, const struct parity_group *g, struct carry *carry);

/*
 * Have the log @path again where its name says that it was, or at home if that backend is not there, from
 * parity. At least @least bytes of its data area. 1: done; -ENOENT: no parity is of use; -errno.
 */
int parities_restore(const struct container *c, const char *path, uint64_t least, struct carry *carry);

#endif
