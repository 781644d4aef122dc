/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A scratch backend with near=: the place is a directory of its own.
 */
#ifndef TEST_PLACES_H
#define TEST_PLACES_H

extern char near_dir[64];

/* Map a new backend with small=0, near= and @options: "" or ",NAME=VALUE..." */
void near_map(const char *options);

/* Remove both. */
void near_remove(void);

/* All below @path, and that. */
void remove_tree(const char *path);

/* The files near whose names begin with @prefix. */
int count_near(const char *prefix);

#endif
