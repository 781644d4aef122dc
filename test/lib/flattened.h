/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The file "a" of tests that make it a plain one in its place.
 */
#ifndef TEST_FLATTENED_H
#define TEST_FLATTENED_H

#include "test/lib/scratch.h"

#define LEN_OF_A 100000

extern char path_of_a[PATH_MAX]; /* once it was made */

/* A logical file, LEN_OF_A bytes of pattern 1. */
void make_a(void);

/* As plfs_flatten() of "a". */
int flatten_a(void);

bool a_is_plain(void);
bool a_is_whole(void); /* logical or plain: it has the bytes that it was made with */
bool a_left_nothing(void); /* in containers, of a file that was flattened or removed */

#endif
