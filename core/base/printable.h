/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names as text for people. A name may hold any byte but a slash and a zero: a newline forges a line, an
 * escape sequence does as it likes with a terminal. What is no printable character is written as in C: \n,
 * \x1b.
 */
#ifndef PLFS_PRINTABLE_H
#define PLFS_PRINTABLE_H

#include "core/base/base.h"

#define PRINTABLE_MAX 4 /* bytes that one byte becomes at most */

/*
 * The length of the character at @text, of which @len bytes (at least 1) are left, if it can be printed. 0:
 * its first byte is a control character, part of one (U+0080 to U+009F), or no UTF-8.
 */
size_t printable_char(const char *text, size_t len);

/*
 * Write @len bytes at @text to @out, of @cap bytes, what cannot be printed as escapes. Stops before the first
 * character that does not fit. Returns the bytes written; no zero follows them.
 */
size_t printable_copy(char *out, size_t cap, const char *text, size_t len);

/* Whether all of it can be printed as it is. */
bool is_printable(const char *text, size_t len);

#endif
