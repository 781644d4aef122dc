/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The removal of a container. What is at home goes first: until then the file has all its bytes.
 */
#include "core/backend/container_remove.h"

#include "core/backend/container_dirs.h"
#include "core/backend/spare.h"
#include "core/base/alloc.h"
#include "core/base/event.h"

int container_remove(const struct container *c)
{
	struct container copy = *c;
	struct spare_removal *spares;
	int ret = container_check(&copy, CONTAINER_CHANGE);

	if (ret || !container_is_checked(&copy, CONTAINER_CHANGE)) /* gone already */
		return ret;
	spares = spare_may_be(c) ? spare_find(c) : NULL;
	ret = store_remove_tree(c->store, c->dir, container_has);
	event(EVENT_CONTAINER_REMOVED, .container = c->dir, .result = ret);
	if (spares && (!ret || ret == -ENOENT))
		spare_remove(c, spares);
	mem_free(spares);
	return ret == -ENOENT ? 0 : ret;
}
