/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Access control lists as Linux keeps them (system.posix_acl_access and _default): how the list of a file
 * becomes one of the directory that holds its bytes.
 */
#ifndef PLFS_POSIX_ACL_H
#define PLFS_POSIX_ACL_H

#include "core/base/base.h"

#include <sys/types.h>

#define ACL_LEN_MAX 4096 /* bytes of a list: 511 entries */

/*
 * Read the list of @fd into @buf of ACL_LEN_MAX bytes. Its length; 0: there is only the mode; -E2BIG; -errno.
 */
ssize_t acl_get(int fd, void *buf);

/* Whether @fd has a list that acl_get() can read. */
bool acl_is_there(int fd);

/*
 * What the group of @fd may by its list, as 0 to 7; the mode's bits are the most that anybody named may.
 * -ENODATA: there is no list; another -errno.
 */
int acl_group(int fd);

/*
 * Give the directory @fd, and what is made in it from then on, the users and groups in @acl, the list of a
 * file of @owner. An entry that may read the file may list and read here; one that may write it may also make
 * files. The mode of a new file limits both. @len 0: only the mode counts, whatever the directory above
 * passes on. @made: the caller has just made it, and nobody else can have given it a list.
 */
int acl_set(int fd, const void *acl, size_t len, uid_t owner, bool made);

/*
 * Give a lock the users and groups in @acl, the list of a file of @owner, who may write that: they may open
 * it, and nobody else. The mode limits them as well.
 */
int acl_set_of_lock(int fd, const void *acl, size_t len, uid_t owner);

#endif
