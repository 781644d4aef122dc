/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The hostdirs of a container, by descriptors: as it is in a place, or in another backend.
 */
#ifndef PLFS_HOSTDIRS_H
#define PLFS_HOSTDIRS_H

#include "core/base/base.h"

/*
 * Call @fn for each name in each hostdir of the container @name in the directory @dir, with a descriptor of
 * the hostdir, until one returns non-zero. False: the container cannot be opened.
 */
bool hostdirs_each(int dir, const char *name,
		   int (*fn)(void *arg, int fd, const char *name, unsigned char type), void *arg);

#endif
