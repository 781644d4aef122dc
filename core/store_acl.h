/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Access control lists as Linux keeps them (system.posix_acl_access and _default): what a list of a file means for the
 * directory that holds its bytes.
 */
#ifndef PLFS_STORE_ACL_H
#define PLFS_STORE_ACL_H

#include "base.h"

#include <sys/types.h>

#define ACL_LEN_MAX 4096 /* bytes of a list: 511 entries */

/* The list of @fd, into @buf of ACL_LEN_MAX bytes. Returns its length; 0: it has none but its mode; -E2BIG, -errno. */
ssize_t acl_get(int fd, void *buf);

/*
 * Let the directory @fd, and what is made in it from then on, be for those who are in the list @acl of a file of
 * @owner's: who may read that may list and read here, who may write it may also make files. Files made here can be
 * used as far as the mode that they are made with allows. Without (@len 0): for nobody but those in its mode,
 * whatever the directory above says.
 */
int acl_set(int fd, const void *acl, size_t len, uid_t owner);

#endif
