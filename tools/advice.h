/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a logical file, as it is stored, suggests: for plfs advise and plfs report.
 */
#ifndef PLFS_ADVICE_H
#define PLFS_ADVICE_H

#include "tool.h"

#define ADVICE_HOSTS_MANY 64

/* @what to do with @about, and @why. */
typedef void advice_fn(void *arg, const char *about, const char *what, const char *why);

/* Call @fn for each. @waste: bytes in its logs to which no piece of the file leads. */
void advice_of_file(const struct target *t, const struct plfs_info *info, uint64_t waste, advice_fn *fn,
		    void *arg);

#endif
