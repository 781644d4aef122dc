/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The helper (drain=helper): plfs drain --background, as the library starts it.
 */
#ifndef PLFS_TOOL_BACKGROUND_H
#define PLFS_TOOL_BACKGROUND_H

#include "core/plfs_admin.h"

#define BACKGROUND_PATIENCE_S 30

/*
 * Move home what the user has in @top, NEAR/plfs.UID/BACKEND-ID, until nothing is left that could move, or
 * nothing has moved for @patience_s. One process does; another returns at once. An exit code of plfs drain;
 * why it ended early is in the file "helper" of @top. @limits: its @rate
 * and @writers hold.
 */
int background_drain(const char *top, unsigned patience_s, const struct plfs_drain *limits);

/* What a helper does first: nothing of who started it stays but the descriptor of the lock, 3. */
void background_detach(void);
void background_sleep(unsigned ms);

#endif
