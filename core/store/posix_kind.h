/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is known of a file system by its type.
 */
#ifndef PLFS_STORE_POSIX_KIND_H
#define PLFS_STORE_POSIX_KIND_H

#include "core/store/store.h"

struct statfs;

/*
 * Say in @s what the file system @fs of its directory does: whether other hosts change its files (remote),
 * keep the same memory of names (coherent), and so on. True: it is a remote one behind FUSE.
 */
bool store_kind_set(struct store *s, const struct statfs *fs);

#endif
