/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plfs gc: options, output and exit code. Core decides what is removed.
 */
#include "options.h"
#include "places.h"
#include "progress.h"
#include "tool.h"

#include <stdlib.h>

#define AGE_S 86400

/* Its exit codes besides TOOL_OK: something is left; something could not be done. */
enum { GC_LEFT = 1, GC_FAILED = 2 };

struct run {
	const char *backend;
	struct progress progress;
	struct plfs_gc gc;
};

/* ---- printing ---- */

static const char *fate_name(enum plfs_gc_fate fate)
{
	static const char *const names[] = { "removed", "would be removed", "kept", "failed" };

	return names[fate];
}

static void print_item(void *arg, const struct plfs_gc_item *item)
{
	struct run *r = arg;
	const char *kind = item->kind == PLFS_GC_CONTAINER ? "container" : "temporary file";
	char size[TOOL_SIZE_LEN];

	progress_hide(&r->progress);
	if (opt.json) {
		printf("{\"backend\": ");
		tool_print_json(r->backend);
		printf(", \"path\": ");
		tool_print_json(item->path);
		printf(", \"kind\": \"%s\", \"fate\": \"%s\", \"bytes\": %llu, \"age_s\": %llu", kind,
		       fate_name(item->fate), (unsigned long long)item->bytes,
		       (unsigned long long)(item->age_ns / 1000000000));
		if (item->why && *item->why) {
			printf(", \"why\": ");
			tool_print_json(item->why);
		}
		puts("}");
	} else if (!opt.quiet) {
		tool_print("%s/%s: %s, %s, %s%s%s", r->backend, item->path, kind,
			   fate_name(item->fate), tool_size(item->bytes, size),
			   item->why && *item->why ? ": " : "", item->why ? item->why : "");
	}
}

static void print_trouble(void *arg, const char *path, const char *why)
{
	struct run *r = arg;

	progress_hide(&r->progress);
	tool_error("%s%s%s: %s", r->backend, *path ? "/" : "", path, why);
}

static void show_progress(void *arg, const char *what, uint64_t done, uint64_t total)
{
	struct run *r = arg;

	progress_tally(&r->progress, what, done, total);
}

static void print_summary(const struct run *r, int rc)
{
	const struct plfs_gc *gc = &r->gc;
	char size[TOOL_SIZE_LEN], left[TOOL_SIZE_LEN];

	if (opt.json) {
		printf("{\"backend\": ");
		tool_print_json(r->backend);
		printf(", \"files\": %llu, \"containers\": %llu, \"removed\": %llu, \"removed_bytes\": %llu, \"left\": %llu, "
		       "\"left_bytes\": %llu, \"young\": %llu, \"young_bytes\": %llu, \"failed\": %llu, \"not_seen\": %llu, \"undecided\": %llu, \"exit\": %d}\n",
		       (unsigned long long)gc->nr_files, (unsigned long long)gc->nr_containers,
		       (unsigned long long)gc->nr_removed, (unsigned long long)gc->removed_bytes,
		       (unsigned long long)gc->nr_left, (unsigned long long)gc->left_bytes,
		       (unsigned long long)gc->nr_young, (unsigned long long)gc->young_bytes,
		       (unsigned long long)gc->nr_failed, (unsigned long long)gc->nr_troubles,
		       (unsigned long long)gc->nr_unknown, rc);
		return;
	}
	if (opt.quiet)
		return;
	tool_print("%s: %llu files, %llu containers; removed %llu (%s), left %llu (%s)", r->backend,
		   (unsigned long long)gc->nr_files, (unsigned long long)gc->nr_containers,
		   (unsigned long long)gc->nr_removed, tool_size(gc->removed_bytes, size),
		   (unsigned long long)gc->nr_left, tool_size(gc->left_bytes, left));
	if (gc->nr_young)
		tool_print("%s: %s could be had back now, by: plfs gc -a 0 %s", r->backend,
			   tool_size(gc->young_bytes, size), r->backend);
	if (gc->nr_unknown)
		tool_print("%s: %llu containers stay: none of the files that could be read leads to them",
			   r->backend, (unsigned long long)gc->nr_unknown);
}

/* ---- one backend ---- */

static int collect(struct plfs_mount *m, struct run *r)
{
	int ret, rc;

	r->backend = plfs_backend(m);
	r->gc.item = print_item;
	r->gc.trouble = print_trouble;
	r->gc.progress = show_progress;
	r->gc.arg = r;
	progress_begin(&r->progress, r->backend, 0);
	ret = plfs_gc(m, &r->gc);
	progress_end(&r->progress);
	rc = ret || r->gc.nr_troubles || r->gc.nr_failed ? GC_FAILED :
	     r->gc.nr_left > r->gc.nr_young ? GC_LEFT : TOOL_OK;
	print_summary(r, rc);
	return rc;
}

/* ---- places ---- */

static void place_trouble(void *arg, const char *path, const char *why)
{
	(void)arg;
	tool_error("%s: %s", path, why);
}

static int collect_place(void *arg, struct top *top, struct plfs_mount *m)
{
	struct plfs_drain *d = arg;
	uint64_t left = d->nr_left, orphans = d->nr_orphans, young = d->nr_young;
	int ret = m ? plfs_drain_place(m, top->path, true, d) : -ENXIO;

	if (ret) {
		tool_error("%s: %s", top->path,
			   ret == -ENXIO ? "its backend is not there: nothing is removed" : strerror(-ret));
		return GC_FAILED;
	}
	if (opt.json) {
		printf("{\"place\": ");
		tool_print_json(top->path);
		printf(", \"removed\": %llu, \"young\": %llu, \"failed\": %llu}\n",
		       (unsigned long long)(d->dry ? 0 : d->nr_orphans - orphans),
		       (unsigned long long)(d->nr_young - young), (unsigned long long)(d->nr_left - left));
	} else if (!opt.quiet) {
		tool_print("%s: %llu containers of files that are gone%s", top->path,
			   (unsigned long long)(d->nr_orphans - orphans), d->dry ? "" : " removed");
		if (d->nr_young > young)
			tool_print("%s: %llu more can be removed now, by: plfs gc --places -a 0", top->path,
				   (unsigned long long)(d->nr_young - young));
	}
	return d->nr_left > left ? GC_FAILED : d->dry && d->nr_orphans > orphans ? GC_LEFT : TOOL_OK;
}

static int no_place(void *arg, const char *name, const char *path, struct plfs_mount *m)
{
	(void)arg, (void)path, (void)m;
	tool_error("%s: no directory, so it has no places", name);
	return GC_FAILED;
}

static int collect_places(char **names, int nr, const struct plfs_gc *gc)
{
	struct plfs_drain d = { .dry = gc->dry, .age_ns = gc->age_ns, .trouble = place_trouble };
	struct places p = { .names = names, .nr = nr, .nr_given = nr, .top = collect_place,
			    .file = no_place, .arg = &d };
	int ret = places_each(&p);

	return ret < 0 ? GC_FAILED : ret;
}

/* ---- the command ---- */

/* "90", "90s", "15m", "36h", "7d". False: none of these. */
static bool parse_time(const char *text, uint64_t *ns)
{
	static const char units[] = "smhd";
	static const uint64_t seconds[] = { 1, 60, 3600, 86400 };
	uint64_t value = 0;
	const char *unit;

	if (*text < '0' || *text > '9')
		return false;
	for (; *text >= '0' && *text <= '9' && value < 1000000000; text++)
		value = value * 10 + (uint64_t)(*text - '0');
	unit = *text ? strchr(units, *text) : units;
	if (!unit || value >= 1000000000 || (*text && text[1]))
		return false;
	*ns = value * seconds[unit - units];
	if (*ns >= UINT64_MAX / 2 / 1000000000)
		return false;
	*ns *= 1000000000;
	return true;
}

static int run(const struct verb *v, int argc, char **argv)
{
	struct plfs_gc gc = { .age_ns = AGE_S * 1000000000ULL, .nr_threads = 4 };
	struct plfs_mount **done;
	int c, nr, nr_done = 0, rc = TOOL_OK;
	bool places = false;

	while ((c = options_next(v, argc, argv)) != -1) {
		switch (c) {
		case 'a':
			if (!parse_time(optarg, &gc.age_ns))
				return tool_misuse(v->name, "--age: \"%s\" is not a time, as 90, 15m, 36h or 7d",
						   optarg);
			break;
		case 'n':
			gc.dry = true;
			break;
		case OPT_PLACES:
			places = true;
			break;
		case 'j':
			gc.nr_threads = options_jobs(v);
			break;
		}
	}
	nr = argc - optind;
	if (!nr)
		return tool_misuse(v->name, "no backend given");
	if (places)
		return tool_finish(collect_places(argv + optind, nr, &gc));
	target_setup(opt.map, argv + optind, nr);
	done = calloc((size_t)nr, sizeof(struct plfs_mount *));
	if (!done)
		return GC_FAILED;
	for (int i = 0; i < nr; i++) {
		const char *name = argv[optind + i];
		struct run r = { .gc = gc };
		char path[PATH_MAX];
		struct plfs_mount *m;
		int seen = 0, ret;

		if (!target_find(name, path, &m)) {
			rc = GC_FAILED;
			continue;
		}
		if (!m) {
			tool_error("%s: %s", name, target_unmapped(path, NOT_ON_A_BACKEND));
			rc = GC_FAILED;
			continue;
		}
		while (seen < nr_done && strcmp(plfs_backend(done[seen]), plfs_backend(m)))
			seen++;
		if (seen < nr_done)
			continue;
		done[nr_done++] = m;
		ret = collect(m, &r);
		rc = ret > rc ? ret : rc;
	}
	free(done);
	c = tool_finish(rc);
	return c == rc ? rc : GC_FAILED;
}

const struct verb verb_gc = {
	.name = "gc",
	.run = run,
	.what = "remove containers that no file leads to",
	.arguments = "BACKEND|PATH...",
	.about = "Remove old temporary files, and containers to which no file leads, from whole backends. Programs may\n"
		 "use the backends meanwhile.\n",
	.end = "Exit status: 0 nothing is left but what is younger than TIME; 1 something else was kept;\n"
	       "2 something could not be read or removed.\n",
	.options = (const struct verb_option[]){
		{ 'a', "age", "TIME", "keep what changed within TIME: seconds, or a number with s, m, h or d (default 1d)" },
		{ 'n', "dry-run", NULL, "only show what would be removed" },
		{ 'j', "jobs", "N", "use N threads (default 4)" },
		{ OPT_PLACES, "places", NULL, "the paths are places (near=), or other backends (spread=, mirror=):\n"
		  "remove what no file has any more" },
		{ 0 },
	},
};
