/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plfs gc of the scratch backend, what it reported, and the files that its tests make.
 */
#ifndef TEST_GC_H
#define TEST_GC_H

#include "test/lib/scratch.h"

#include "core/admin/gc/gc_run.h"

#include <criterion/criterion.h>

#define LEN 100000
#define HOUR_NS 3600000000000ULL

/* ---- running it ---- */

/* The last report of gc(): the fate of an item and why; the path of a trouble. */
extern char last_why[256], last_trouble[PATH_MAX];
extern enum plfs_gc_fate last_fate;

/* gc of the scratch backend with the options in @gc, which gets the counts. As plfs_gc(). */
int gc(struct plfs_gc *gc);

/* gc that removes at once all that can go. Returns the counts. */
struct plfs_gc gc_now(void);

/* ---- files ---- */

void make_dir(const char *name);

/* A file of LEN bytes, the pattern of @round; assert_whole() reads it back. */
void make(const char *name, unsigned round);
void assert_whole(const char *name, unsigned round);

/* Remove the stub as rm does without the library: the container stays. */
void orphan(const char *name);

/* Make an empty file at @format with @dir in it: its times are those of now. */
void touch_below(const char *format, const char *dir);

/* The path of the container of @name goes into @dir of PATH_MAX bytes. */
void container_of_file(const char *name, char *dir);

#endif
