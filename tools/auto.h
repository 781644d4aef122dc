/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * near=auto: what it finds on this node.
 */
#ifndef PLFS_TOOL_AUTO_H
#define PLFS_TOOL_AUTO_H

#include "core/base/base.h"

/*
 * plfs places --auto: print each candidate for the backends @names; without one, for those of the settings.
 * An exit code.
 */
int auto_explain(char **names, int nr);

/*
 * Add to the *@nr names at *@names the directories of this node that near=auto looks at, in which somebody
 * whose places this user drains has something. False: they cannot be found (one line).
 */
bool auto_add(char ***names, int *nr);

#endif
