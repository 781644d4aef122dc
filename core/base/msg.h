/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages for people, one line each: "libplfs: ...". Errors go to standard error. Debug lines go where
 * PLFS_DEBUG says, and cost one load when it is unset; those that are events (event.h) get here as a
 * listener.
 */
#ifndef PLFS_MSG_H
#define PLFS_MSG_H

#include "core/base/base.h"

enum msg_category {
	MSG_CONFIG = 1 << 0, /* mappings and settings */
	MSG_OPEN = 1 << 1,   /* open, create, close, adopt */
	MSG_WRITE = 1 << 2,  /* logs, stages, flushes */
	MSG_READ = 1 << 3,   /* lookups and windows */
	MSG_INDEX = 1 << 4,  /* merges, kept maps */
	MSG_PATH = 1 << 5,   /* translated paths, namespace operations */
	MSG_LOCK = 1 << 6,   /* acquire and release points */
	MSG_PROC = 1 << 7,   /* fork, exec, exit */
	MSG_REFUSE = 1 << 8, /* calls that cannot be served on a mapped file, with their errno */
	MSG_VERSION = 1 << 9, /* which library this is, once a process */
	MSG_ALL = (1 << 10) - 1,
};

extern unsigned msg_mask; /* categories that are on; written once, at start */

/*
 * Read PLFS_DEBUG: CATEGORY[,CATEGORY...][@FILE], categories as above in lower case or "all";
 * "%p" in FILE becomes the process id. Returns 0, or -EINVAL with a sentence in @err.
 */
int msg_init(const char *setting, char *err, size_t err_len);

/*
 * NULL, or what finds the file that a line is about, by the name that its user knows. It goes in front of the
 * line, in place of the first *@skip bytes. False: none is known. Called with any lock held.
 */
extern bool (*msg_subject)(const char *line, char *name, size_t len, size_t *skip);

/* msg_error() writes nothing: for callers that report errors themselves (plfs check). */
extern bool msg_is_muted;

/*
 * From here on the lines that this thread would write as errors go to @buf instead, the last one alone and
 * without "libplfs: ", also if they are muted. NULL: they are written again.
 */
void msg_catch(char *buf, size_t len);

/* One line to standard error, "libplfs: " before it. Leaves errno alone. */
void msg_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* How many there were in this process, also muted ones: for callers that say one if nothing else has. */
unsigned msg_nr_errors(void);

/* msg_error(), then exit code 78 (EX_CONFIG). */
void msg_die_config(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

void msg_line(enum msg_category category, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A debug line: the arguments are evaluated only when the category is on. */
#define msg_debug(category, ...) \
	do { \
		if (unlikely(msg_mask & (category))) \
			msg_line((category), __VA_ARGS__); \
	} while (0)

/* The name of an error, as ENOENT; with a glibc before 2.32, which has no names, its message. */
const char *msg_errno_name(int err);

#endif
