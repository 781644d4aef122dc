/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the library says to people: one line an event, "libplfs: ...". Errors always go to
 * standard error; debug lines go where PLFS_DEBUG says, and cost one load when it is unset.
 */
#ifndef PLFS_LOG_H
#define PLFS_LOG_H

#include "base.h"

enum log_category {
	LOG_CONFIG = 1 << 0, /* mappings and settings */
	LOG_OPEN = 1 << 1,   /* open, create, close, adopt */
	LOG_WRITE = 1 << 2,  /* logs, stages, flushes */
	LOG_READ = 1 << 3,   /* lookups and windows */
	LOG_INDEX = 1 << 4,  /* merges, kept maps */
	LOG_PATH = 1 << 5,   /* translated paths, namespace operations */
	LOG_LOCK = 1 << 6,   /* acquire and release points */
	LOG_PROC = 1 << 7,   /* fork, exec, exit */
	LOG_REFUSE = 1 << 8, /* calls that cannot be served on a mapped file, with their errno */
	LOG_ALL = (1 << 9) - 1,
};

extern unsigned log_mask; /* categories that are on; written once, at start */

/*
 * Read PLFS_DEBUG: CATEGORY[,CATEGORY...][@FILE], categories as above in lower case or "all";
 * "%p" in FILE becomes the process id. Returns 0, or -EINVAL with a sentence in @err.
 */
int log_init(const char *setting, char *err, size_t err_len);

/* Whether log_error() says nothing: for who tells of errors himself (plfs check). */
extern bool log_is_muted;

/* One line to standard error, "libplfs: " before it. Leaves errno alone. */
void log_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* log_error(), then exit code 78 (EX_CONFIG). */
void log_die_config(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

void log_line(enum log_category category, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A debug line: the arguments are evaluated only when the category is on. */
#define log_debug(category, ...) \
	do { \
		if (unlikely(log_mask & (category))) \
			log_line((category), __VA_ARGS__); \
	} while (0)

/* The name of an error, ENOENT or the like; glibc before 2.32 has none, and then it is the message. */
const char *log_errno_name(int err);

#endif
