/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The names of a directory, for those that list several as if they were one.
 */
#ifndef PLFS_NAME_LIST_H
#define PLFS_NAME_LIST_H

#include "core/base/base.h"

struct name_list {
	char **v; /* mem_alloc()ed, as each name */
	size_t nr, cap;
};

/* For list() of a store: add the name to the struct name_list @list. 0; -ENOMEM. */
int name_list_add(void *list, const char *name);

bool name_list_has(const struct name_list *list, const char *name);

/* It is empty then. */
void name_list_release(struct name_list *list);

#endif
