/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The text of the settings taken apart: PLFS_MAP and the file that PLFSRC names. Only text is
 * looked at here; whether a backend exists is mount.c's business.
 *
 *   MAP     = MAPPING *( ":" MAPPING )
 *   MAPPING = ( PREFIX "=" BACKEND *( "," BACKEND ) / DIR ) [ "{" OPTION *( "," OPTION ) "}" ]
 *   OPTION  = "mode=" ( "log" / "flat" ) / "match=" GLOB / "exclude=" GLOB / "small=" NUMBER [ "K" / "M" ] / "hostdirs=" NUMBER
 *
 * A backslash takes the meaning of the character after it away (":", ",", "=", "{", "}" in names).
 */
#ifndef PLFS_CONFIG_H
#define PLFS_CONFIG_H

#include "base.h"

#define CONFIG_MOUNTS_MAX 16
#define CONFIG_BACKENDS_MAX 8
#define CONFIG_GLOBS_MAX 16
#define CONFIG_HOSTDIRS_MAX 4096

#define CONFIG_SMALL_DEFAULT (64 * 1024)

enum mount_mode { MOUNT_LOG, MOUNT_FLAT };

struct mount_spec {
	char *prefix; /* absolute; no trailing, double or "." components; equals backends[0] in place */
	char *backends[CONFIG_BACKENDS_MAX];
	int nr_backends;
	bool in_place;
	enum mount_mode mode;
	char *match[CONFIG_GLOBS_MAX], *exclude[CONFIG_GLOBS_MAX];
	int nr_match, nr_exclude;
	unsigned nr_hostdirs; /* 1 to CONFIG_HOSTDIRS_MAX; 0: not said */
	uint64_t small; /* bytes: up to here a file that one process writes stays in its stub (bare.h) */
	bool small_given;
};

struct config {
	struct mount_spec specs[CONFIG_MOUNTS_MAX];
	int nr_specs;
};

/*
 * Add the mappings in @text to @c. Returns 0, or -EINVAL (-ENOMEM) with one sentence that names what is
 * wrong in @err. The strings belong to @c.
 */
int config_parse(struct config *c, const char *text, char *err, size_t err_len);

/* The same for a file: one MAP a line, empty lines and lines that begin with "#" ignored. */
int config_parse_file(struct config *c, const char *text, char *err, size_t err_len);

void config_release(struct config *c);

/*
 * Normalise an absolute path by its text alone into @out (PATH_MAX): "//", "." and ".." taken out, no trailing
 * slash. -EINVAL if it is not absolute, -ENAMETOOLONG.
 */
int config_normalise(const char *path, char *out);

#endif
