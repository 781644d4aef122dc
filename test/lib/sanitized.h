/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether the library in this test is built for the address sanitizer. The test itself is the same one.
 */
#ifndef TEST_SANITIZED_H
#define TEST_SANITIZED_H

#include <stdbool.h>
#include <stddef.h>

void __asan_init(void) __attribute__((weak));

static inline bool is_sanitized(void) { return __asan_init != NULL; }

#endif
