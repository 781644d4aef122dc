/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The parser of the settings: PLFS_MAP and the file that PLFSRC names. It reads text only; mount.c finds out
 * whether a backend exists.
 *
 *   MAP     = MAPPING *( ":" MAPPING )
 *   MAPPING = ( PREFIX "=" BACKEND *( "," BACKEND ) / DIR ) [ "{" OPTION *( "," OPTION ) "}" ]
 *   OPTION  = "mode=" ( "log" / "flat" ) / "match=" GLOB / "exclude=" GLOB /
 *             "small=" NUMBER [ "K" / "M" ] / "hostdirs=" NUMBER /
 *             "near=" ( DIR / "auto" ) / "near-max=" NUMBER [ "K" / "M" / "G" / "T" ] /
 *             "drain=" ( "helper" / "none" / "close" ) / "sync=" ( "home" / "near" ) /
 *             "release=" ( "near" / "home" ) / "rate=" NUMBER [ "K" / "M" / "G" / "T" ] /
 *             "wait=" NUMBER / "writers=" NUMBER / "exit-wait=" NUMBER /
 *             "spread=" ( "host" / "process" / "file" ) / "mirror=" NUMBER /
 *             "parity=" ( "0" / "1" / "2" )
 *
 * In the DIR of near= "$NAME" stands for the environment variable NAME.
 *
 * A backslash makes the character after it (":", ",", ";", "=", "{", "}", "#", a blank) a part of the name.
 */
#ifndef PLFS_CONFIG_H
#define PLFS_CONFIG_H

#include "core/backend/option.h"

#define CONFIG_MOUNTS_MAX 16

struct config {
	struct mount_spec specs[CONFIG_MOUNTS_MAX];
	int nr_specs;
};

/*
 * Add the mappings in @text to @c, which owns the strings. 0; -EINVAL, -ENOMEM: one sentence in @err names
 * the fault.
 */
int config_parse(struct config *c, const char *text, char *err, size_t err_len);

/*
 * The same for the text of a file: one MAP a line. Blanks around it are no part of it, nor is a comment,
 * which begins with "#" at the start of a line or behind a blank. Empty lines are skipped.
 */
int config_parse_file(struct config *c, const char *text, char *err, size_t err_len);

/*
 * Let hints choose what the mappings in @c leave open: @text is a file with one OPTION a line, and comments
 * as above; lines that begin with "expect " are not for mappings. An exclude= is added to all mappings that
 * have no patterns of their own; hostdirs= and small= to those that have none. 0; -EINVAL as above, and
 * hints before the bad one are in.
 */
int config_parse_hints(struct config *c, const char *text, char *err, size_t err_len);

void config_release(struct config *c);

/*
 * Copy the map @text to @out with the relative backends and directories in it made absolute, from the
 * directory @cwd. Prefixes, and what makes no sense, are copied as they are. 0; -ENAMETOOLONG: @len is too
 * little.
 */
int config_absolute(const char *text, const char *cwd, char *out, size_t len);

#endif
