/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PLFS_STATS and PLFS_TRACE, as text.
 */
#include "core/observe/settings.h"

#include "core/backend/mount.h"
#include "core/base/alloc.h"
#include "core/base/msg.h"
#include "core/base/sys.h"
#include "core/observe/job.h"
#include "core/observe/trace.h"

#include <stdio.h>
#include <stdlib.h>

void settings_default_file(const char *dir, char *out)
{
	struct job j;

	job_find(&j);
	if (snprintf(out, PATH_MAX, "%s/plfs-stats%s%s.jsonl", dir, *j.job ? "." : "", j.job) >= PATH_MAX)
		*out = '\0';
}

#define SHOWN_LEN 200 /* of a path in a line, which a longer one would push out of it */

/* NULL, after one line. */
static char *refuse(const char *variable, const char *text, const char *why)
{
	msg_error("%s: \"%.*s%s\": %s: nothing is recorded; name a file elsewhere", variable, SHOWN_LEN, text,
		  strlen(text) > SHOWN_LEN ? "..." : "", why);
	return NULL;
}

/* The path of a setting as the kernel knows it, mem_alloc()ed; NULL after one line. */
static char *real_path(const char *variable, const char *text)
{
	char out[PATH_MAX];
	struct plfs_mount *m;
	int ret;

	if (*text != '/')
		return refuse(variable, text, "relative, and there is no working directory");
	ret = mount_path_map(text, out, &m);
	if (ret >= 0)
		return mem_strdup(ret ? out : text);
	return refuse(variable, text, ret == -ENOENT ? "inside a container directory" : strerror(-ret));
}

static bool is_yes(const char *text)
{
	return !strcmp(text, "yes") || !strcmp(text, "on") || !strcmp(text, "1") || !strcmp(text, "true");
}

bool settings_is_off(const char *text)
{
	return !text || !*text || !strcmp(text, "no") || !strcmp(text, "off") || !strcmp(text, "0");
}

char *settings_absolute(const char *stats)
{
	char dir[PATH_MAX], path[PATH_MAX + NAME_MAX];

	if (settings_is_off(stats) || *stats == '/' || !sys.getcwd(dir, sizeof(dir)))
		return NULL;
	if (is_yes(stats))
		settings_default_file(dir, path);
	else
		snprintf(path, sizeof(path), "%s/%s", dir, stats);
	return mem_strdup(path);
}

char *settings_stats_file(void)
{
	const char *stats = secure_getenv("PLFS_STATS");
	char *absolute, *file;

	if (settings_is_off(stats))
		return NULL;
	absolute = settings_absolute(stats);
	file = real_path("PLFS_STATS", absolute ? absolute : stats);
	mem_free(absolute);
	return file;
}

/* "64M". 0: it is no size. */
static uint64_t parse_size(const char *text)
{
	static const char units[] = "KMGT";
	uint64_t nr = 0;
	const char *unit;

	for (; *text >= '0' && *text <= '9' && nr < 1ULL << 40; text++)
		nr = nr * 10 + (uint64_t)(*text - '0');
	unit = *text ? strchr(units, *text) : NULL;
	if (unit)
		nr <<= 10 * (unit - units + 1);
	return *text && (!unit || text[1]) ? 0 : nr;
}

char *settings_trace_dir(uint64_t *max)
{
	const char *text = secure_getenv("PLFS_TRACE"), *comma;
	char path[PATH_MAX], cwd[PATH_MAX] = "";
	int len, n;

	if (settings_is_off(text))
		return NULL;
	comma = strstr(text, ",max=");
	len = (int)(comma ? (size_t)(comma - text) : strlen(text));
	*max = comma ? parse_size(comma + strlen(",max=")) : TRACE_MAX;
	if (!*max) {
		msg_error("PLFS_TRACE: \"%s\" is no size, as 64M: nothing is traced", comma + 1);
		return NULL;
	}
	if (*text != '/' && (!sys.getcwd(cwd, sizeof(cwd)) || *cwd != '/'))
		*cwd = '\0';
	n = snprintf(path, sizeof(path), "%s%s%.*s", cwd, *cwd ? "/" : "", len, text);
	return n < PATH_MAX ? real_path("PLFS_TRACE", path) :
			      refuse("PLFS_TRACE", path, strerror(ENAMETOOLONG));
}
