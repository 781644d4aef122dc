/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plfs flatten -o: a plain copy in another place.
 */
#ifndef PLFS_FLATTEN_OUT_H
#define PLFS_FLATTEN_OUT_H

#include "flatten_watch.h"

/* Write a plain copy of @name to @out, and add its size to *@bytes. 0: done; else an error was printed. */
int flatten_elsewhere(const char *name, const char *out, uint64_t *bytes);

#endif
