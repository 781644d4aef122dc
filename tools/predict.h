/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How large a file will be, from the one before it of the same name but for the numbers in it.
 */
#ifndef PLFS_PREDICT_H
#define PLFS_PREDICT_H

#include "core/base/base.h"

/*
 * *@bytes: the size of the file that was changed last among those in the directory of @path whose names
 * differ from its own in numbers alone; 0: there is none. *@seconds: how long writing it took; 0: not known.
 */
void predict_file(const char *path, uint64_t *bytes, double *seconds);

/*
 * The same of a line "expect NAME BYTES SECONDS" for it in the hints that PLFS_HINTS names, which comes
 * first.
 */
void predict_by_hints(const char *path, uint64_t *bytes, double *seconds);

/* The name with "*" for each number. @out: NAME_MAX + 1. */
void predict_series(const char *name, char *out);

/* Whether the two names differ in numbers alone. */
bool predict_is_like(const char *a, const char *b);

#endif
