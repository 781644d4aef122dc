/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What checking a file and repairing it share.
 */
#ifndef PLFS_CHECK_H
#define PLFS_CHECK_H

#include "look.h"
#include "mount.h"

/* A file that is being checked. */
struct checked {
	struct plfs_mount *m;
	struct plfs_check *check;
	const char *file;   /* as it is told of */
	int fd;
	struct stat st;
	struct stub stub;
	struct container c; /* if there is one */
	bool plain;         /* it is no logical file */
	bool gone;          /* it has been removed, or needs no container any more */
};

/* What plfs_check() does, without counting files. @st, @stub: as they were found, zeros if they could not be. */
int check_file(struct plfs_mount *m, int dirfd, const char *path, const char *file, struct plfs_check *check,
	       struct stat *st, struct stub *stub);

/* Count a file by what came of it. */
void check_count(struct plfs_check *check, const struct stat *st, int ret);

/* Set right what @l and @found, which have been told, say. As plfs_check(). */
int check_repair(struct checked *k, struct look *l, struct findings *found);

/*
 * Look at the container until it is sure what is damaged. What was found is in @found, and is not told yet. Both are
 * to be released.
 */
int check_look(struct checked *k, struct look *l, struct findings *found);

/*
 * Tell it. @remains: what a repair has left: damage alone, and which bytes of the file are lost. These a check tells
 * of at once.
 */
void check_report(struct checked *k, struct look *l, const struct findings *found, bool remains);

/* What plfs_check() returns after that. */
int check_result(const struct look *l, const struct findings *found);

void check_tell(struct checked *k, enum plfs_severity severity, const char *code, const char *path, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));

#endif
