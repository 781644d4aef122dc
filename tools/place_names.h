/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plfs places --names, --add, --remove: the names of a backend's places.
 */
#ifndef PLFS_TOOL_PLACE_NAMES_H
#define PLFS_TOOL_PLACE_NAMES_H

/* What is asked for; one of these at most. */
struct naming {
	bool lists;
	const char *add, *remove; /* "NAME=DIR"; "NAME" */
};

/* Do it with each backend of @names. An exit code. */
int naming_run(const struct naming *n, char **names, int nr);

#endif
