/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A sum over all that lies in the scratch directory and in that of near.h: names, lengths and bytes.
 */
#ifndef TEST_UNCHANGED_H
#define TEST_UNCHANGED_H

#include "core/base/base.h"

uint64_t all_that_is(void);

#endif
