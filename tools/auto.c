/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Printing the candidates of near=auto.
 */
#include "auto.h"

#include "options.h"
#include "tool.h"

#include <stdlib.h>

/* ---- places --auto ---- */

struct explaining {
	const char *backend; /* or NULL */
	bool taken;
};

static void print_json(const struct explaining *e, const struct plfs_auto *a)
{
	printf("{\"directory\": ");
	tool_print_json(a->dir);
	if (e->backend) {
		printf(", \"backend\": ");
		tool_print_json(e->backend);
	}
	printf(", \"file_system\": ");
	tool_print_json(a->fs);
	if (*a->from) {
		printf(", \"variable\": ");
		tool_print_json(a->from);
	}
	if (a->exists)
		printf(", \"size\": %llu, \"free\": %llu, \"writable\": %s", (unsigned long long)a->size,
		       (unsigned long long)a->free, a->writable ? "true" : "false");
	if (a->why) {
		printf(", \"why\": ");
		tool_print_json(a->why);
	} else if (a->max) {
		printf(", \"max\": %llu", (unsigned long long)a->max);
	}
	printf(", \"taken\": %s, \"chosen\": %s}\n", a->taken ? "true" : "false", a->chosen ? "true" : "false");
}

static void print_text(const struct plfs_auto *a)
{
	char size[TOOL_SIZE_LEN], max[TOOL_SIZE_LEN], room[TOOL_SIZE_LEN + 16] = "", limit[TOOL_SIZE_LEN + 32] = "";

	if (a->exists)
		snprintf(room, sizeof(room), ", %s free", tool_size(a->free, size));
	if (!a->why && a->max)
		snprintf(limit, sizeof(limit), ", at most %s of logs", tool_size(a->max, max));
	tool_print("%s%s%s%s: %s%s%s: %s", a->dir, *a->from ? " ($" : "", a->from, *a->from ? ")" : "", a->fs,
		   room, limit,
		   a->chosen ? "taken, as the first process of this job on this node has" :
		   a->taken  ? "taken" :
		   a->why    ? a->why :
			       "not taken: another comes first");
}

static int explain(void *arg, const struct plfs_auto *a)
{
	struct explaining *e = arg;

	e->taken |= a->taken;
	if (opt.json)
		print_json(e, a);
	else if (!opt.quiet)
		print_text(a);
	return 0;
}

static int explain_for(const char *backend)
{
	struct explaining e = { .backend = backend };
	int ret = plfs_auto_each(backend, explain, &e);

	if (ret) {
		tool_error("the mounts of this node: %s", strerror(-ret));
		return TOOL_FAILED;
	}
	if (!e.taken && !opt.json && !opt.quiet)
		tool_print("nothing is taken: logs are written to the backend");
	return TOOL_OK;
}

int auto_explain(char **names, int nr)
{
	char path[PATH_MAX], real[PATH_MAX];
	struct plfs_mount *m;
	int rc = TOOL_OK;

	target_setup(opt.map, names, nr);
	for (int i = 0; i < nr; i++) {
		bool found = target_find(names[i], path, &m);
		const char *backend = found && m ? plfs_backend(m) : realpath(names[i], real);

		if (!backend)
			tool_error("%s: %s", names[i], strerror(errno));
		if (!backend || explain_for(backend))
			rc = TOOL_FAILED;
	}
	for (int i = 0; !nr && (m = plfs_mount_at(i)); i++)
		rc = explain_for(plfs_backend(m)) ? TOOL_FAILED : rc;
	if (!nr && !plfs_mount_at(0))
		rc = explain_for(NULL);
	return tool_finish(rc);
}

/* ---- drain --auto ---- */

struct adding {
	char **v;
	int nr;
};

static int none(void *arg, const char *top, const char *home)
{
	(void)arg, (void)top, (void)home;
	return 1;
}

static int add(void *arg, const struct plfs_auto *a)
{
	struct adding *g = arg;
	char **v;

	if (!a->exists || plfs_places_in(a->dir, none, NULL) <= 0)
		return 0;
	v = realloc(g->v, ((size_t)g->nr + 1) * sizeof(*v));
	if (!v)
		return -ENOMEM;
	g->v = v;
	v[g->nr] = strdup(a->dir);
	return v[g->nr] ? (g->nr++, 0) : -ENOMEM;
}

/* They stay until the process ends. */
bool auto_add(char ***names, int *nr)
{
	struct adding g = { .v = calloc((size_t)*nr + 1, sizeof(char *)), .nr = *nr };
	int ret;

	if (!g.v)
		return false;
	memcpy(g.v, *names, (size_t)*nr * sizeof(char *));
	ret = plfs_auto_each(NULL, add, &g);
	if (ret)
		tool_error("the mounts of this node: %s", strerror(-ret));
	*names = g.v;
	*nr = g.nr;
	return !ret;
}
