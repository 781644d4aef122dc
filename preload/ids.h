/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Root's process becomes another user's.
 */
#ifndef PLFS_IDS_H
#define PLFS_IDS_H

#include "shim.h"

/*
 * The effective user is about to be @euid; (uid_t)-1: it stays. Moves the files that are open here, and that
 * this user could not open, into their bodies.
 */
void ids_before_user(uid_t euid);

#endif
