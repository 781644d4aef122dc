/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The options of all verbs, as one table a verb. The parser, the help, the completion of the shells
 * (completion.h), and
 * scripts/check-command, which compares plfs(1) with them, all take them from there.
 *
 * A letter has one meaning in all verbs: scripts/check-command holds that too.
 */
#ifndef PLFS_OPTIONS_H
#define PLFS_OPTIONS_H

#include "core/base/base.h"

#include <unistd.h> /* optarg, optind */

/* From here on, options without a letter. */
enum {
	OPT_LONG = 256,
	OPT_JSON = OPT_LONG,
	OPT_VERSION,
	OPT_QUICK,
	OPT_MODE,
	OPT_WHICH,
	OPT_STATS,
	OPT_ONCE,
	OPT_KEEP,
	OPT_STALLED,
	OPT_FORGET,
	OPT_PLACES,
	OPT_BACKGROUND,
	OPT_COPIES,
	OPT_RATE,
	OPT_WAIT,
	OPT_TIMEOUT,
	OPT_AUTO,
	OPT_TO,
	OPT_DROP,
	OPT_WRITERS,
	OPT_NAMES,
	OPT_ADD,
	OPT_REMOVE,
};

struct verb_option {
	int letter;        /* or OPT_X */
	const char *name;  /* of two dashes; NULL: the end of a table */
	const char *value; /* what the help calls its value; NULL: it takes none. OUT, MAP: a path;
			      "[=FILE]": it may be left out */
	const char *text;  /* for the help, with "\n" where a line ends */
};

/* Which common options a verb lacks. */
enum {
	VERB_NO_MAP = 1,
	VERB_NO_JSON = 2,
	VERB_NO_SIZES = 4,
	VERB_IS_COMMAND = 8, /* the first argument ends the options */
};

struct verb {
	const char *name;
	int (*run)(const struct verb *v, int argc, char **argv); /* argv[0] is the verb; an exit code */
	int flags;
	const char *what;      /* a line, for the help of the command */
	const char *arguments; /* as "PATH..."; "\n" begins another form of the command */
	const char *about;     /* sentences */
	const char *end;       /* of the help: exit codes; or NULL */
	const struct verb_option *options;
};

extern const struct verb verb_report; /* cmd_report.c */

/* What the common options have set. */
extern struct settings {
	const char *map; /* or NULL */
	bool json, quiet, verbose;
} opt;

/*
 * The next option of @v on the command line, as getopt() with optarg and optind; -1: no more. Common options
 * are done here. Help and version end the process, and so does a misuse, with TOOL_USAGE.
 */
int options_next(const struct verb *v, int argc, char **argv);

/* The number that optarg has for -j. */
unsigned options_jobs(const struct verb *v);

/* The number from 1 to @most that optarg has for --@name. */
unsigned options_number(const struct verb *v, const char *name, unsigned most);

/* The size above 0 that optarg has for --@name: a number, then nothing or one of K, M, G, T. */
uint64_t options_size(const struct verb *v, const char *name);

/* The number of seconds that optarg has for --@name. */
unsigned options_seconds(const struct verb *v, const char *name);

/* Each in its cmd_*.c. */
extern const struct verb verb_run, verb_init, verb_stat, verb_map, verb_du, verb_df, verb_gc, verb_flatten,
	verb_compact, verb_check, verb_doctor, verb_repair, verb_stats, verb_watch, verb_advise, verb_drain,
	verb_places, verb_stage;

/* The options that all verbs have; some verbs lack some of them. */
extern const struct verb_option COMMON_OPTIONS[];
bool options_has(const struct verb *v, const struct verb_option *common);

/* The one of the words that may be meant by @word, misspelt or its beginning; NULL: none. */
const char *options_similar(const char *word, const char *(*word_at)(const void *arg, size_t i),
			    const void *arg);

#endif
