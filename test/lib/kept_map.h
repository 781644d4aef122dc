/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A file with so many logs that a reader keeps a map of it, and what each reader must find in it.
 */
#ifndef TEST_KEPT_MAP_H
#define TEST_KEPT_MAP_H

#include "test/lib/calls.h"
#include "test/lib/scratch.h"

#include "core/file/file.h"

#include <criterion/criterion.h>

#define SUITE(name) TestSuite(name, .init = setup_in_memory, .fini = scratch_remove, .timeout = 300)

void setup_in_memory(void);

/* ---- the file ---- */

#define LOGS 8 /* enough for a map to be kept */
#define PART 100
#define LEN (LOGS * PART)

extern char kept_name[16]; /* of the file, "a" at first */

/* These run in_child(). 0: it worked, or the file was as expected. */

/* Make the file: each part by a process of its own, in a log of its own. */
int make_file(void *arg);

/* Make one part. @arg: its number, an int. */
int make_part(void *arg);

/* Write 10 bytes at 50; check_as_made() and check_written() read the file as before and as after it. */
int write_some(void *arg);
int check_as_made(void *arg);
int check_written(void *arg);

/* ---- the map ---- */

#define OFF_CONFIRMED 128 /* a word of index.global */

/* Overwrite the word at @off of index.global. */
void set_word(off_t off, uint64_t value);

/* For the sys table: calls that fail with EACCES on a map that this process may read and not change. */
int some_openat2(int dirfd, const char *path, struct open_how *how, size_t size);
int some_unlinkat(int dirfd, const char *path, int flags);

extern bool open_fails, unlink_fails; /* which of the two do */

#endif
