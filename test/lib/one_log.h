/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A store with one container and, in it, one log that is being written. There is no file around them.
 */
#ifndef TEST_ONE_LOG_H
#define TEST_ONE_LOG_H

#include "test/lib/scratch.h"

#include "core/write/writer.h"
#include "core/store/posix.h"

#include <criterion/criterion.h>

extern struct store store;
extern struct container c;
extern struct writer w;

/* Make the three; scratch_remove() removes them. */
void log_setup(void);

/* A container with an open log; nothing is there yet. */
void log_begin(void);

/* Write @len bytes of the pattern of round 1 at @off. */
void put(uint64_t off, size_t len);

#endif
