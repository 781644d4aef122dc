/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The file "a" of image.h in three backends or more with parity: the scratch directory, which is home and
 * number 1, and the others of near_spread(). Each of those can go, and come back.
 */
#ifndef TEST_THREE_H
#define TEST_THREE_H

#include "test/lib/image.h"
#include "test/lib/near.h"

#define THREE_LEN 300000 /* of a piece, by one process */
#define THREE_PATHS_MAX 64

/* What was found last. */
extern char three_paths[THREE_PATHS_MAX][PATH_MAX];
extern int three_nr_paths;

/* Find the files whose names begin with @prefix, in all backends, or below @top: how many. */
int three_find(const char *prefix);
int three_count(const char *top, const char *prefix);

/* The path number @i of them, into @path (PATH_MAX). */
void three_path(char *path, int i);

/* The directory of the backend @i, not home, into @path (PATH_MAX). */
void three_other(char *path, int i);

/* The number of logs in a backend. */
int three_logs(int backend);

/* Run a command, into which @a and @b are put. */
void three_shell(const char *fmt, const char *a, const char *b);

/* A backend goes: its directory too, or that is empty, as where a disk is not mounted. */
void three_lose(int i, bool empty);
void three_bring_back(int i);

/* The file is read without each of the others. */
void three_look_without_each(bool empty);

/* The pieces @from to @to - 1, each by a process. */
void three_write(int from, int to, unsigned round);

/* Pieces until each backend has a log; and a drain. */
void three_make(void);
void three_make_covered(void);

/* The piece at 0, over and over by @fn, until one more log is in the backend @i. */
void three_write_into(int i, unsigned round, int (*fn)(void *arg));

#endif
