/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the verbs of the plfs command share: their exit codes, what they say, and how the FILE on the command
 * line becomes an open file. The command runs without the library in front of it: it may call libc by name.
 */
#ifndef PLFS_TOOL_H
#define PLFS_TOOL_H

#include "../core/plfs.h"

enum { TOOL_OK = 0, TOOL_FAILED = 1, TOOL_USAGE = 2, TOOL_SETTINGS = 78 };

/* A verb: argv[0] is its name. Returns an exit code. */
int cmd_run(int argc, char **argv);
int cmd_init(int argc, char **argv);
int cmd_stat(int argc, char **argv);
int cmd_map(int argc, char **argv);
int cmd_gc(int argc, char **argv);
int cmd_flatten(int argc, char **argv);
int cmd_check(int argc, char **argv);
int cmd_repair(int argc, char **argv);

/* One line to standard error, "plfs: " before it. */
void tool_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The same for a misuse of @verb, with a pointer to its help. Returns TOOL_USAGE. */
int tool_misuse(const char *verb, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/*
 * For what getopt_long() returned, @c, that the verb has no case of its own for: -h prints @help, all else is a misuse. Returns the
 * exit code.
 */
int tool_other_option(const char *verb, int c, char **argv, const char *help);

/* Whether all of @text is a number from @least to @most, which then is in *@nr. */
bool tool_number(const char *text, uint64_t least, uint64_t most, uint64_t *nr);

/* The -j of a verb that works with threads: 1 to so many. */
#define TOOL_JOBS_MAX 64

/* Flush standard output: a verb's last word. @rc, or TOOL_FAILED if what was printed did not arrive. */
int tool_finish(int rc);

/* @s in quotes, as JSON wants it, to standard output. */
void tool_print_json(const char *s);

/*
 * If the library is in front of us, start over without it, with the arguments of the process: below it every name
 * would be translated twice, and a stub show its contents instead of its header.
 */
void tool_leave_library(void);

/* ---- files named on the command line ---- */

struct target {
	const char *name;       /* as given */
	char path[PATH_MAX];    /* real, canonical: of the stub or plain file */
	struct plfs_mount *m;   /* NULL: below no mapping */
	int fd;                 /* read-only */
	struct plfs_file *file; /* NULL: a plain file */
	struct stat st;         /* of the stub or plain file, as the kernel says it */
	uint64_t size;          /* logical */
};

/*
 * Settings, once, before any target: @map replaces PLFS_MAP unless NULL. A backend that one of @names lies below
 * need not be in them: it is found by the container directory in it. Exits with TOOL_SETTINGS if they are bad.
 * Leaves the library first.
 */
void target_setup(const char *map, char *const *names, int nr);

/*
 * Where the name leads: *@m and a backend path, or NULL and an absolute path, in @path (PATH_MAX). False after an error
 * that has been told.
 */
bool target_find(const char *name, char *path, struct plfs_mount **m);

/* Open a regular file for reading. False after an error that has been told: then there is nothing to close. */
bool target_open(struct target *t, const char *name);

/* Close it. If it has lost its last name, its container goes too. */
void target_close(struct target *t);

#endif
