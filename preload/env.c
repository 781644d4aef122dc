/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Our settings in the environment: kept from the start, put back where a program drops them.
 */
#include "env.h"

#include <stdlib.h>

static const char *const names[] = { "LD_PRELOAD", "PLFS_MAP",	       "PLFSRC",
				     "PLFS_DEBUG", "PLFS_CONSISTENCY", "PLFS_VERIFY",
				     "PLFS_STATS", "PLFS_TRACE",	 "PLFS_HINTS" };

static char *kept[ARRAY_SIZE(names)];  /* "NAME=value", or NULL: was not set */
static char *given[ARRAY_SIZE(names)]; /* as it was at start, with relative paths; or NULL */

static char *setting(const char *name, const char *value)
{
	size_t len = strlen(name) + 1 + strlen(value) + 1;
	char *text = mem_alloc(len);

	if (text)
		snprintf(text, len, "%s=%s", name, value);
	return text;
}

void env_remember(void)
{
	const char *value;
	char *absolute;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		value = secure_getenv(names[i]);
		if (!value)
			continue;
		absolute = plfs_setting_absolute(names[i], value);
		if (absolute) {
			given[i] = setting(names[i], value);
			setenv(names[i], absolute, 1);
		}
		kept[i] = setting(names[i], absolute ? absolute : value);
		mem_free(absolute);
	}
}

static bool has(char *const vars[], const char *setting)
{
	size_t len = (size_t)(strchr(setting, '=') - setting) + 1;

	for (; vars && *vars; vars++) {
		if (!strncmp(*vars, setting, len))
			return true;
	}
	return false;
}

/* Which of the settings it is, as it was at start and with relative paths; else ARRAY_SIZE(names). */
static size_t given_at(const char *var)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(names) && (!given[i] || strcmp(given[i], var)); i++)
		;
	return i;
}

int env_complete(struct env *e, char *const vars[])
{
	char *missing[ARRAY_SIZE(names)], **out;
	size_t i, k, nr = 0, nr_missing = 0;
	bool stale = false;

	e->vars = vars;
	e->map = NULL;
	for (i = 0; i < ARRAY_SIZE(names); i++) {
		if (kept[i] && !has(vars, kept[i]))
			missing[nr_missing++] = kept[i];
	}
	while (vars && vars[nr])
		stale |= given_at(vars[nr++]) < ARRAY_SIZE(names);
	if (!nr_missing && !stale)
		return 0;
	e->map_len = (nr + nr_missing + 1) * sizeof(*out);
	out = sys.mmap(NULL, e->map_len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (out == MAP_FAILED)
		return -ENOMEM;
	if (nr)
		memcpy(out, vars, nr * sizeof(*out));
	for (i = 0; stale && i < nr; i++) {
		k = given_at(out[i]);
		if (k < ARRAY_SIZE(names) && kept[k])
			out[i] = kept[k];
	}
	memcpy(out + nr, missing, nr_missing * sizeof(*out));
	e->map = out;
	e->vars = out;
	return 0;
}

void env_release(struct env *e)
{
	if (e->map)
		sys.munmap(e->map, e->map_len);
	e->map = NULL;
}
