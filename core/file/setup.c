/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The start of the library: settings from the environment, and the mappings.
 */
#include "core/plfs.h"

#include "core/backend/helper.h"
#include "core/backend/mount.h"
#include "core/backend/subject.h"
#include "core/dropping/sums.h"
#include "core/file/inode.h"
#include "core/observe/hooks.h"
#include "core/observe/settings.h"

#include <stdlib.h>

static struct config config;

void plfs_enable_helpers(void) { helper_enable(); }

char *plfs_map_absolute(const char *text)
{
	size_t nr = 0, room;
	char cwd[PATH_MAX], *out;

	for (const char *p = text; *p; p++)
		nr += *p != '/' && (p == text || strchr(":=,", p[-1])); /* and in options, at most */
	if (!nr || !sys.getcwd(cwd, sizeof(cwd)) || *cwd != '/')
		return NULL;
	room = strlen(text) + nr * (2 * strlen(cwd) + 1) + 1;
	out = mem_alloc(room);
	if (out && !config_absolute(text, cwd, out, room) && strcmp(out, text))
		return out;
	mem_free(out);
	return NULL;
}

char *plfs_path_absolute(const char *text)
{
	char cwd[PATH_MAX], *out;

	if (*text == '/' || !*text || !sys.getcwd(cwd, sizeof(cwd)) || *cwd != '/')
		return NULL;
	out = mem_alloc(strlen(cwd) + strlen(text) + 2);
	if (out)
		sprintf(out, "%s/%s", cwd, text);
	return out;
}

char *plfs_setting_absolute(const char *name, const char *text)
{
	if (!strcmp(name, "PLFS_MAP"))
		return plfs_map_absolute(text);
	if (!strcmp(name, "PLFS_STATS"))
		return settings_absolute(text);
	if (!strcmp(name, "PLFS_TRACE"))
		return settings_is_off(text) ? NULL : plfs_path_absolute(text);
	return !strcmp(name, "PLFSRC") || !strcmp(name, "PLFS_HINTS") ? plfs_path_absolute(text) : NULL;
}

#define HINTS_LEN_MAX 65536

/* Hints of an earlier job. What is wrong with them costs the hints, and nothing else. */
static void read_hints(void)
{
	const char *name = secure_getenv("PLFS_HINTS");
	char err[PATH_MAX + 256] = "", *text;
	ssize_t n = -1;
	int fd;

	if (!name || !*name)
		return;
	fd = io_open(name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0 && errno == ENOENT) /* the first job has none yet */
		return;
	text = mem_alloc(HINTS_LEN_MAX);
	if (fd >= 0 && text)
		n = io_read(fd, text, HINTS_LEN_MAX - 1);
	if (n < 0)
		snprintf(err, sizeof(err), "%s", strerror(fd >= 0 && !text ? ENOMEM : errno));
	if (n >= 0) {
		text[n] = '\0';
		config_parse_hints(&config, text, err, sizeof(err));
	}
	if (*err)
		msg_error("PLFS_HINTS: %s: %s: this hint and those behind it are not used; write the file anew with plfs advise",
			  name, err);
	mem_free(text);
	if (fd >= 0)
		io_close(fd);
}

const char *plfs_map_source = "PLFS_MAP";

static void read_map(const char *map)
{
	const char *rc = secure_getenv("PLFSRC");
	char err[2 * PATH_MAX + 256] = "";
	int ret = 0;

	if (map && *map) {
		ret = config_parse(&config, map, err, sizeof(err));
		if (ret)
			msg_die_config("%s: %s", plfs_map_source, err);
	} else if (rc && *rc) {
		char text[65536];
		ssize_t n = -1;
		int fd = io_open(rc, O_RDONLY | O_CLOEXEC);

		if (fd >= 0)
			n = io_read(fd, text, sizeof(text) - 1);
		if (n < 0)
			msg_die_config("PLFSRC: cannot read \"%s\": %s", rc, strerror(errno));
		io_close(fd);
		text[n] = '\0';
		ret = config_parse_file(&config, text, err, sizeof(err));
		if (ret)
			msg_die_config("PLFSRC: %s: %s", rc, err);
	}
	read_hints();
	ret = mount_setup(&config, err, sizeof(err));
	if (ret < 0)
		msg_die_config("%s", err);
}

int plfs_setup(const char *map)
{
	int saved ERRNO_KEPT = errno;
	const char *consistency, *verify, *debug;
	char err[256], *absolute;

	sys_init();
	msg_subject = subject_find;
	consistency = secure_getenv("PLFS_CONSISTENCY");
	verify = secure_getenv("PLFS_VERIFY");
	debug = secure_getenv("PLFS_DEBUG");
	if (debug && msg_init(debug, err, sizeof(err)))
		msg_die_config("%s", err);
	if (consistency && !strcmp(consistency, "posix"))
		inode_posix = true;
	else if (consistency && *consistency && strcmp(consistency, "default"))
		msg_die_config("PLFS_CONSISTENCY: \"%s\" is neither \"default\" nor \"posix\"", consistency);
	if (verify && !strcmp(verify, "off"))
		sums_verify = SUMS_OFF;
	else if (verify && !strcmp(verify, "always"))
		sums_verify = SUMS_ALWAYS;
	else if (verify && *verify && strcmp(verify, "read"))
		msg_die_config("PLFS_VERIFY: \"%s\" is neither \"read\" nor \"always\" nor \"off\"", verify);
	map = map ? map : secure_getenv("PLFS_MAP");
	absolute = map ? plfs_map_absolute(map) : NULL;
	read_map(absolute ? absolute : map);
	mem_free(absolute);
	return config.nr_specs;
}

bool plfs_observe(void)
{
	int saved ERRNO_KEPT = errno;

	observe_setup();
	if (observing)
		hooks_install(!config.nr_specs);
	return observing;
}

int plfs_path_map(const char *path, char *out, struct plfs_mount **m)
{
	return mount_path_map(path, out, m);
}

int plfs_path_unmap(const char *path, char *out)
{
	return mount_path_unmap(path, out);
}

int plfs_cwd_class(const char *cwd, struct plfs_mount **m)
{
	return mount_cwd_class(cwd, m);
}

bool plfs_is_root(dev_t dev, ino_t ino)
{
	return mount_is_root(dev, ino);
}
