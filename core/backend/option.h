/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The options of one mapping, "NAME=VALUE": what each may be, and what a mapping is made of. config.c takes
 * the text apart.
 */
#ifndef PLFS_OPTION_H
#define PLFS_OPTION_H

#include "core/base/base.h"

#define CONFIG_BACKENDS_MAX 8
#define CONFIG_GLOBS_MAX 16
#define CONFIG_HOSTDIRS_MAX 4096
#define CONFIG_NEAR_MAX 1024 /* bytes of the name; near.HOST has room for it (place.h) */
#define CONFIG_NAME_MAX 64   /* bytes of the name of a place */

#define CONFIG_SMALL_DEFAULT (64 * 1024)
#define CONFIG_SMALL_REACH 64 /* times small=: so far in a file some small writes stay in its stub (bare.h) */

enum mount_mode { MOUNT_LOG, MOUNT_FLAT };

/* Which of several backends a log goes to: by the words of spread=. */
enum spread_rule { SPREAD_NONE, SPREAD_HOST, SPREAD_PROCESS, SPREAD_FILE };

struct mount_spec {
	char *prefix; /* absolute; no trailing, double or "." components; equals backends[0] in place */
	char *backends[CONFIG_BACKENDS_MAX];
	int nr_backends;
	bool in_place;
	unsigned mode; /* enum mount_mode */
	char *match[CONFIG_GLOBS_MAX], *exclude[CONFIG_GLOBS_MAX];
	int nr_match, nr_exclude;
	unsigned nr_hostdirs; /* 1 to CONFIG_HOSTDIRS_MAX; 0: not given */
	uint64_t small; /* bytes: up to here a file that one process writes stays in its stub (bare.h) */
	bool small_given;
	char *near;        /* the directory in which new logs are made; NULL: the backend */
	char *near_name;   /* of a place of the backend: found when that is mounted (place_names.h) */
	bool near_auto;    /* "auto": found out when the backend is mounted (auto_take.h) */
	uint64_t near_max; /* bytes of a user there; 0: no limit */
	unsigned drain;    /* enum place_drain (place.h) */
	uint64_t log_max;  /* bytes of a log there, about; 0: not given */
	uint64_t rate;     /* bytes a second that the helper copies at most; 0: no limit */
	unsigned writers;  /* processes that copy to the backend at a time; 0: any number */
	unsigned exit_wait; /* seconds that the end of a process waits for its logs to be moved */
	unsigned sync;     /* enum place_sync */
	unsigned release;  /* enum place_release */
	unsigned mirror;   /* copies of each log, with the log itself, in so many backends; 0: not given */
	unsigned wait;     /* seconds that a read waits for what is near on another host */
	unsigned spread;   /* enum spread_rule */
	unsigned parity;   /* so many parity files for logs in several backends (parity.h) */
};

/* Put the option @text into @m. 0; -EINVAL: one sentence in @err; -ENOMEM. */
int option_take(struct mount_spec *m, const char *text, char *err, size_t err_len);

/* Put @text into @out (PATH_MAX), with the values of the variables in it. As option_take(). */
int option_expand(const char *text, char *out, char *err, size_t err_len);

/* Whether the name of a variable is behind each "$" of @text. */
bool option_names_variables(const char *text);

/* Whether @text can be the name of a place: letters, digits, "_", and not as the first "-" or ".". */
bool option_is_place_name(const char *text);

/* The directory @path becomes *@slot, which the caller frees. As option_take(). */
int option_near(char **slot, const char *path, char *err, size_t err_len);

/* Whether the options of @m go together. As option_take(). */
int option_check(const struct mount_spec *m, char *err, size_t err_len);

/*
 * The same for a hint: what the mapping itself says comes first. @own: how many patterns it has of its own.
 */
int option_take_hint(struct mount_spec *m, int own, const char *text, char *err, size_t err_len);

/*
 * Put the normalised path @text into *@slot, mem_alloc()ed. @what names it in @err. Returns as
 * option_take().
 */
int option_path(char **slot, const char *what, const char *text, char *err, size_t err_len);

/*
 * Normalise an absolute path by its text alone into @out (PATH_MAX): without "//", "." and "..", and without
 * a slash at the end. 0; -EINVAL: it is not absolute; -ENAMETOOLONG.
 */
int option_normalise(const char *path, char *out);

#endif
