/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checking one file, for plfs_check() and plfs_check_tree().
 */
#ifndef PLFS_CHECK_FILE_H
#define PLFS_CHECK_FILE_H

#include "core/admin/scan/examine.h"

/*
 * As plfs_check(), but without counting the file. @file: its name in reports. *@st and *@stub: as found,
 * zeros where they could not be read.
 */
int check_file(struct plfs_mount *m, int dirfd, const char *path, const char *file, struct plfs_check *check,
	       struct stat *st, struct stub *stub);

/* Count the file @st by @ret, the result of check_file(). */
void check_count(struct plfs_check *check, const struct stat *st, int ret);

#endif
