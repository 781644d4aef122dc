/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The first line of a script, parsed as Linux parses it.
 */
#ifndef PLFS_SCRIPT_H
#define PLFS_SCRIPT_H

#include "core/base/base.h"

#define SCRIPT_HEAD_LEN 256 /* as much as the kernel reads */

struct script {
	char *interpreter;
	char *arg; /* the rest of the line, or NULL */
};

static inline bool script_is(const char *head, ssize_t len)
{
	return len >= 2 && head[0] == '#' && head[1] == '!';
}

/*
 * Parse @head in place: SCRIPT_HEAD_LEN bytes, zeros behind the end of the file. @s points into it. 0;
 * -ENOEXEC: there is no interpreter, or its name does not fit.
 */
int script_parse(struct script *s, char *head);

#endif
