/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The users of whom something could not be read. A file leads only to a container of its owner, or one that
 * was made for him: so what is damaged or closed of one user says nothing of the containers of others.
 */
#ifndef PLFS_OWNERS_H
#define PLFS_OWNERS_H

#include "core/base/base.h"

#include <sys/types.h>

/* All zeros: nobody. Any thread may use it that has the lock of whoever owns it. */
struct owners {
	uid_t *v;
	size_t nr, cap;
	bool all; /* files of any user could be there */
};

/* Add @uid; without memory, all. */
void owners_add(struct owners *o, uid_t uid);

bool owners_have(const struct owners *o, uid_t uid);

void owners_release(struct owners *o);

#endif
