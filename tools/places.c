/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names on the command line: which are places, what is in them, and the settings that all need.
 */
#include "places.h"

#include "options.h"
#include "tool.h"

#include <stdlib.h>

struct tops {
	struct top *v;
	size_t nr;
	bool failed;
};

static int add_top(void *arg, const char *path, const char *home)
{
	struct tops *tops = arg;
	struct top *v = realloc(tops->v, (tops->nr + 1) * sizeof(*v));

	if (!v)
		return -ENOMEM;
	tops->v = v;
	v[tops->nr].path = strdup(path);
	v[tops->nr].home = strdup(home);
	return v[tops->nr].path && v[tops->nr].home ? (tops->nr++, 0) : -ENOMEM;
}

static bool is_dir(const char *name)
{
	struct stat st;

	return !stat(name, &st) && S_ISDIR(st.st_mode);
}

int places_each(char **names, int nr, int (*fn)(void *arg, struct top *top, struct plfs_mount *m),
		int (*file)(void *arg, const char *name, const char *path, struct plfs_mount *m), void *arg)
{
	char **settings = calloc((size_t)nr + 1, sizeof(*settings)), path[PATH_MAX];
	struct tops tops = { .nr = 0 };
	struct plfs_mount *m;
	int ret = 0, nr_settings = 0;

	for (int i = 0; i < nr && settings; i++) {
		size_t before = tops.nr;

		if (is_dir(names[i]) && plfs_places_in(names[i], add_top, &tops))
			tops.failed = true;
		for (size_t k = before; k < tops.nr; k++) {
			char **more = realloc(settings, ((size_t)nr + tops.nr + 1) * sizeof(*settings));

			if (!more)
				break;
			settings = more;
			settings[nr_settings++] = tops.v[k].home;
		}
		if (!is_dir(names[i]))
			settings[nr_settings++] = names[i];
	}
	target_setup(opt.map, settings, nr_settings);
	for (size_t k = 0; k < tops.nr; k++) {
		bool found = target_find(tops.v[k].home, path, &m) && m;
		int one = fn(arg, &tops.v[k], found && !strcmp(plfs_backend(m), tops.v[k].home) ? m : NULL);

		ret = ret ? ret : one;
	}
	for (int i = 0; i < nr; i++) {
		int one;

		if (is_dir(names[i]))
			continue;
		one = target_find(names[i], path, &m) ? 0 : -EINVAL;
		if (!one && !m) {
			tool_error("%s: not on a backend", names[i]);
			one = -EINVAL;
		}
		if (!one)
			one = file(arg, names[i], path, m);
		ret = ret ? ret : one;
	}
	for (size_t k = 0; k < tops.nr; k++) {
		free(tops.v[k].path);
		free(tops.v[k].home);
	}
	free(tops.v);
	free(settings);
	return tops.failed && !ret ? -EIO : ret;
}
