/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What happens while plfs flatten copies: progress, damaged ranges, and signals.
 */
#ifndef PLFS_FLATTEN_WATCH_H
#define PLFS_FLATTEN_WATCH_H

#include "progress.h"
#include "tool.h"

/* Bytes that are not as they were written. */
struct range {
	uint64_t off, len;
	bool as_they_are; /* damaged; else lost */
	char *why;
};

struct watched {
	struct plfs_progress watch;
	struct progress one;
	struct progress *progress; /* that one, or that of all */
	uint64_t size;
	struct range *ranges;
	size_t nr, cap;
};

/* The option --partial. */
extern bool flatten_partial;

/* From here on one progress for all files below the @nr @paths, which stay until it ends. */
void flatten_all_begin(char *const *paths, int nr);
void flatten_all_end(void);

/* Before a line is printed. */
void flatten_all_hide(void);

/* The temporary file that a signal removes; NULL: none. */
void flatten_temp_named(void *arg, const char *path);

/* Begin to watch the copy of @t. */
void flatten_watch(struct watched *w, const struct target *t);

/*
 * At the end: print what went wrong. @ret and @hint: of an error. Returns @ret, or 1 if the plain file has
 * bytes that are not those of the logical one.
 */
int flatten_unwatch(struct watched *w, const char *name, int ret, const char *hint);

/* A signal that ends the process removes the temporary file. */
void flatten_watch_signals(void);

#endif
