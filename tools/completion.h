/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion of the command line, made from the tables of the verbs.
 */
#ifndef PLFS_COMPLETION_H
#define PLFS_COMPLETION_H

#include "options.h"

/*
 * Print the completion of all @verbs (the last is NULL) for bash, zsh or fish; or, for "table", a line an
 * option. False: no such @shell.
 */
bool completion_print(const struct verb *const *verbs, const char *shell);

#endif
