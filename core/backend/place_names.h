/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Places of a backend that have names, for near=NAME: what a site says once for all who use it.
 *
 *   BACKEND/.plfs/places     text, written by plfs places --add
 *     place NAME posix DIR       DIR up to the end of the line, with variables as in near=
 *     # ...                      and all other lines: nothing, and they stay
 *
 * It counts if it belongs to root, to the backend's owner or to the user, and nobody else may write it.
 */
#ifndef PLFS_PLACE_NAMES_H
#define PLFS_PLACE_NAMES_H

#include "core/backend/option.h"
#include "core/store/store.h"

#define PLACE_NAMES_PATH PLFS_DIR_NAME "/places"

/* Whose list it is. */
struct place_names {
	struct store *store; /* of the backend */
	uid_t owner;
	const char *home;    /* its path */
};

/* The text: mem_alloc()ed *@text. 0; -ENOENT: there is none; -EPERM: it does not count; another -errno. */
int place_names_read(const struct place_names *pn, char **text);

/* A line of it. */
struct place_line {
	char name[CONFIG_NAME_MAX + 1];
	bool is_posix;
	const char *dir; /* in the line */
	size_t dir_len;
};

/* Take @line apart, up to a newline. False: it gives no place a name. */
bool place_names_line(const char *line, struct place_line *pl);

/* Call @fn for each place that is a directory. 0; -errno but -ENOENT; the first non-zero of @fn. */
int place_names_each(const struct place_names *pn, int (*fn)(void *arg, const char *name, const char *dir),
		     void *arg);

/* The directory of the place @name becomes *@dir, which the caller frees. 0; -errno: one sentence in @err. */
int place_names_find(const struct place_names *pn, const char *name, char **dir, char *err, size_t err_len);

#endif
