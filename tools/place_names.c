/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names are taken from the command line, and printed.
 */
#include "core/base/base.h"

#include "place_names.h"

#include "options.h"
#include "tool.h"

static int print(void *arg, const char *name, const char *dir)
{
	if (!opt.json)
		return tool_print("%s: near=%s: %s", (const char *)arg, name, dir), 0;
	printf("{\"backend\": ");
	tool_print_json(arg);
	printf(", \"name\": ");
	tool_print_json(name);
	printf(", \"directory\": ");
	tool_print_json(dir);
	puts("}");
	return 0;
}

/* The name in "NAME=DIR", into @name; DIR; NULL: it is none of that form. */
static const char *split(const char *text, char *name, size_t len)
{
	const char *is = strchr(text, '=');

	if (!is || (size_t)(is - text) >= len)
		return NULL;
	memcpy(name, text, (size_t)(is - text));
	name[is - text] = '\0';
	return is[1] ? is + 1 : NULL;
}

static int change(char *backend, const char *name, const char *dir)
{
	int ret = plfs_place_name(backend, name, dir);

	if (ret == -ENOENT)
		tool_error("%s: has no place \"%s\": plfs places --names %s lists them", backend, name,
			   backend);
	else if (!ret && dir && !opt.quiet)
		print(backend, name, dir);
	return ret;
}

int naming_run(const struct naming *n, char **names, int nr)
{
	const char *dir = NULL, *name = n->remove;
	char given[256];
	int rc = TOOL_OK;

	if (n->add) {
		name = given;
		dir = split(n->add, given, sizeof(given));
		if (!dir)
			return tool_misuse("places", "\"%s\" is not NAME=DIR", n->add);
	}
	tool_leave_library();
	for (int i = 0; i < nr; i++)
		if (n->lists ? plfs_place_names(names[i], print, names[i]) : change(names[i], name, dir))
			rc = TOOL_FAILED;
	return tool_finish(rc);
}
