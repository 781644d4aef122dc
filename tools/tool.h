/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared by the verbs of the plfs command: exit codes, messages, and how a FILE on the command line becomes
 * an open file. The library is not in front of the command, so it may call libc by name.
 */
#ifndef PLFS_TOOL_H
#define PLFS_TOOL_H

#include "core/plfs_admin.h"

enum { TOOL_OK = 0, TOOL_FAILED = 1, TOOL_USAGE = 2, TOOL_STALLED = 3, TOOL_SETTINGS = 78 };

/*
 * Print one line to standard output. Names in it may hold anything: what is no printable character is escaped
 * (printable.h), here and in all that follows.
 */
void tool_print(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Print one line to standard error, beginning with "plfs: ". */
void tool_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The same for a misuse of @verb, with a hint to its help. Returns TOOL_USAGE. */
int tool_misuse(const char *verb, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The mapping of several options -m: the one so far, or NULL, and @more. For the rest of the process. */
const char *tool_join_map(const char *map, const char *more);

/* Parse @text as a number from @least to @most into *@nr. False: it is none. */
bool tool_number(const char *text, uint64_t least, uint64_t most, uint64_t *nr);

/*
 * " (process 1234, python3, of user 1000)" into @out of @len bytes: one that has the file @path open, other
 * than this one. "": none is found. Returns @out.
 */
const char *tool_holder(const char *path, char *out, size_t len);

extern bool tool_in_bytes; /* sizes are printed as numbers of bytes */

/* "1.2 KiB", "47 bytes" into @out; with tool_in_bytes always the latter. Returns @out. */
#define TOOL_SIZE_LEN 32
const char *tool_size(uint64_t bytes, char *out);

/*
 * Flush standard output at the end of a verb. Returns @rc, or TOOL_FAILED if the output could not be written.
 */
int tool_finish(int rc);

/*
 * Print @s to standard output as a JSON string. A byte B that is no part of UTF-8 becomes the character
 * U+DC00 + B, as in Python.
 */
void tool_print_json(const char *s);

/*
 * If the library is in front of this process, execute the command again without it, with the same arguments.
 * With it, every name would be translated twice, and a stub would show the file's bytes instead of its
 * header.
 */
void tool_leave_library(void);

/* ---- files named on the command line ---- */

struct target {
	const char *name;       /* as given */
	char path[PATH_MAX];    /* real, canonical: of the stub or plain file */
	struct plfs_mount *m;   /* NULL: below no mapping */
	int fd;                 /* read-only */
	struct plfs_file *file; /* NULL: a plain file */
	struct stat st;         /* of the stub or plain file, from the kernel */
	uint64_t size;          /* logical */
};

/*
 * Read the settings, once, before any target. @map replaces PLFS_MAP unless NULL. The backends above @names
 * need not be in the settings: their container directory identifies them. Leaves the library first. Exits
 * with TOOL_SETTINGS if the settings are bad.
 */
void target_setup(const char *map, char *const *names, int nr);

/* The same for one directory @name, which is mapped in place if it is no backend yet. */
void target_setup_directory(const char *map, char *name);

/*
 * Find the file @name. @path (PATH_MAX) is a backend path below *@m, or an absolute path if *@m is NULL.
 * False: an error was printed.
 */
bool target_find(const char *name, char *path, struct plfs_mount **m);

/* The same of the file or directory that it leads to, if it is a symbolic link in a backend. */
bool target_follow(const char *name, char *path, struct plfs_mount **m);

/*
 * Why @path, an absolute path below no mapping, cannot be had: nothing is there, and there is no mapping; or
 * else @otherwise.
 */
#define NOT_ON_A_BACKEND \
	"not on a backend: no directory above it has a " PLFS_DIR_NAME ", and no mapping has it"
const char *target_unmapped(const char *path, const char *otherwise);

/* What the error below says of a directory besides. */
extern const char *target_directory_hint;

/* Open a regular file for reading. False: an error was printed, and nothing is open. */
bool target_open(struct target *t, const char *name);

/* The same, with the size of a logical file left 0: to find it out may take long. */
bool target_open_unsized(struct target *t, const char *name);

/* Close it. If the file has lost its last name, its container is removed. */
void target_close(struct target *t);

#endif
