/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The first line of a script, taken apart as Linux does.
 */
#ifndef PLFS_SCRIPT_H
#define PLFS_SCRIPT_H

#include "shim.h"

#define SCRIPT_HEAD_LEN 256 /* what the kernel looks at */

struct script {
	char *interpreter;
	char *arg; /* the rest of the line, or NULL */
};

static inline bool script_is(const char *head, ssize_t len) { return len >= 2 && head[0] == '#' && head[1] == '!'; }

/*
 * Take @head (SCRIPT_HEAD_LEN bytes, zeros behind the end of the file) apart, in place: @s points into it. -ENOEXEC: it
 * names no interpreter, or not all of its name fits.
 */
int script_parse(struct script *s, char *head);

#endif
