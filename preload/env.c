/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Our settings in the environment: kept from the start, put back where a program drops them.
 */
#include "env.h"

#include <stdlib.h>

static const char *const names[] = {"LD_PRELOAD", "PLFS_MAP", "PLFSRC", "PLFS_DEBUG", "PLFS_CONSISTENCY", "PLFS_VERIFY"};

static char *kept[ARRAY_SIZE(names)]; /* "NAME=value", or NULL: was not set */

void env_remember(void)
{
	const char *value;
	size_t i, len;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		value = secure_getenv(names[i]);
		if (!value)
			continue;
		len = strlen(names[i]) + 1 + strlen(value) + 1;
		kept[i] = mem_alloc(len);
		if (kept[i])
			snprintf(kept[i], len, "%s=%s", names[i], value);
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

int env_complete(struct env *e, char *const vars[])
{
	char *missing[ARRAY_SIZE(names)], **out;
	size_t i, nr = 0, nr_missing = 0;

	e->vars = vars;
	e->map = NULL;
	for (i = 0; i < ARRAY_SIZE(names); i++) {
		if (kept[i] && !has(vars, kept[i]))
			missing[nr_missing++] = kept[i];
	}
	if (!nr_missing)
		return 0;
	while (vars && vars[nr])
		nr++;
	e->map_len = (nr + nr_missing + 1) * sizeof(*out);
	out = sys.mmap(NULL, e->map_len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (out == MAP_FAILED)
		return -ENOMEM;
	if (nr)
		memcpy(out, vars, nr * sizeof(*out));
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
