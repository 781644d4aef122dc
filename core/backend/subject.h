/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which file an error line is about, by the name that its user knows. Lines name containers, for that is what
 * is at hand where something is wrong.
 */
#ifndef PLFS_SUBJECT_H
#define PLFS_SUBJECT_H

#include "core/base/base.h"

/*
 * A msg_subject: find the file that this process has open, and whose container the @line begins with; or the
 * path below a prefix of the backend path that it begins with. Takes no lock. *@skip: how much of the line
 * @name takes the place of. False: there is none.
 */
bool subject_find(const char *line, char *name, size_t len, size_t *skip);

#endif
