/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lists of hostdirs whose logs may be in several backends (spread.h). Two numbers of a host may lead to one
 * directory: two mappings had other rules, or processes with different ones began the file at once under a
 * library that did not prevent it. Its logs are listed once.
 */
#ifndef PLFS_SPREAD_LIST_H
#define PLFS_SPREAD_LIST_H

#include "core/backend/name_list.h"
#include "core/store/store.h"

/* list() of the store: names in a hostdir from all backends, other directories as they are. */
int spread_list_path(struct store *s, const char *path, int (*fn)(void *arg, const char *name), void *arg);

/* The logs and live files in the directory to which @file leads, as spread_enter(). To be released. */
int spread_list(struct store *s, const char *dir, const char *file, struct name_list *names);

#endif
