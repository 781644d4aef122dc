/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A set of users: few, most often none.
 */
#include "core/admin/walk/owners.h"

#include "core/base/vec.h"

void owners_add(struct owners *o, uid_t uid)
{
	uid_t *v = owners_have(o, uid) ? NULL : vec_room(o->v, &o->cap, o->nr + 1, sizeof(*v));

	if (v) {
		o->v = v;
		v[o->nr++] = uid;
	} else if (!owners_have(o, uid)) {
		o->all = true;
	}
}

bool owners_have(const struct owners *o, uid_t uid)
{
	for (size_t i = 0; i < o->nr; i++)
		if (o->v[i] == uid)
			return true;
	return o->all;
}

void owners_release(struct owners *o)
{
	mem_free(o->v);
	*o = (struct owners){ .all = false };
}
