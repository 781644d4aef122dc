/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A growing list of names.
 */
#include "core/backend/name_list.h"

#include "core/base/alloc.h"
#include "core/base/vec.h"

int name_list_add(void *list, const char *name)
{
	struct name_list *n = list;
	char **v = vec_room(n->v, &n->cap, n->nr + 1, sizeof(*v));

	if (!v)
		return -ENOMEM;
	n->v = v;
	v[n->nr] = mem_strdup(name);
	return v[n->nr++] ? 0 : -ENOMEM;
}

bool name_list_has(const struct name_list *list, const char *name)
{
	for (size_t i = 0; i < list->nr; i++)
		if (!strcmp(list->v[i], name))
			return true;
	return false;
}

void name_list_release(struct name_list *list)
{
	for (size_t i = 0; i < list->nr; i++)
		mem_free(list->v[i]);
	mem_free(list->v);
	*list = (struct name_list){ .nr = 0 };
}
