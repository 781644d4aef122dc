/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plfs gc: remove what killed and careless programs leave on whole backends. What may go is core's to say; here are the
 * options, what is printed, and the exit code.
 */
#include "progress.h"
#include "tool.h"

#include <getopt.h>
#include <stdlib.h>

#define AGE_S 86400

/* Exit codes of its own: TOOL_OK, something is left, something could not be done. */
enum { GC_LEFT = 1, GC_FAILED = 2 };

static const char HELP[] =
	"usage: plfs gc [-m MAP] [--age TIME] [-n] [-j N] [--json] BACKEND|PATH...\n"
	"\n"
	"Remove containers to which no file leads, and old temporary files, from whole backends. Programs may go on meanwhile.\n"
	"\n"
	"  -a, --age=TIME   leave what has changed within TIME: seconds, or with s, m, h or d behind (default 1d)\n"
	"  -n, --dry-run    remove nothing\n"
	"  -j, --jobs=N     so many threads (default 4)\n"
	"      --json       one JSON object a line\n"
	"  -m, --map=MAP    the mapping, as in PLFS_MAP\n"
	"  -h, --help\n"
	"\n"
	"Exit code: 0 nothing left; 1 something was found and not removed; 2 not all could be looked at or removed.\n";

struct run {
	const char *backend;
	bool json;
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

	progress_hide(&r->progress);
	if (r->json) {
		printf("{\"backend\": ");
		tool_print_json(r->backend);
		printf(", \"path\": ");
		tool_print_json(item->path);
		printf(", \"kind\": \"%s\", \"fate\": \"%s\", \"bytes\": %llu, \"age_s\": %llu", kind, fate_name(item->fate),
		       (unsigned long long)item->bytes, (unsigned long long)(item->age_ns / 1000000000));
		if (item->why && *item->why) {
			printf(", \"why\": ");
			tool_print_json(item->why);
		}
		puts("}");
	} else {
		printf("%s/%s: %s, %s, %llu bytes%s%s\n", r->backend, item->path, kind, fate_name(item->fate),
		       (unsigned long long)item->bytes, item->why && *item->why ? ": " : "", item->why ? item->why : "");
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

	if (r->json) {
		printf("{\"backend\": ");
		tool_print_json(r->backend);
		printf(", \"files\": %llu, \"containers\": %llu, \"removed\": %llu, \"removed_bytes\": %llu, \"left\": %llu, "
		       "\"left_bytes\": %llu, \"failed\": %llu, \"not_seen\": %llu, \"undecided\": %llu, \"exit\": %d}\n",
		       (unsigned long long)gc->nr_files, (unsigned long long)gc->nr_containers,
		       (unsigned long long)gc->nr_removed,
		       (unsigned long long)gc->removed_bytes, (unsigned long long)gc->nr_left,
		       (unsigned long long)gc->left_bytes,
		       (unsigned long long)gc->nr_failed, (unsigned long long)gc->nr_troubles,
		       (unsigned long long)gc->nr_unknown, rc);
		return;
	}
	printf("%s: %llu files, %llu containers; removed %llu (%llu bytes), left %llu (%llu bytes)\n", r->backend,
	       (unsigned long long)gc->nr_files, (unsigned long long)gc->nr_containers, (unsigned long long)gc->nr_removed,
	       (unsigned long long)gc->removed_bytes, (unsigned long long)gc->nr_left, (unsigned long long)gc->left_bytes);
	if (gc->nr_unknown)
		printf("%s: no file that could be looked at leads to %llu containers; they stay\n", r->backend,
		       (unsigned long long)gc->nr_unknown);
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
	rc = ret || r->gc.nr_troubles || r->gc.nr_failed ? GC_FAILED : r->gc.nr_left ? GC_LEFT : TOOL_OK;
	print_summary(r, rc);
	return rc;
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

int cmd_gc(int argc, char **argv)
{
	static const struct option options[] = {
		{ "map", required_argument, NULL, 'm' },
		{ "age", required_argument, NULL, 'a' },
		{ "dry-run", no_argument, NULL, 'n' },
		{ "jobs", required_argument, NULL, 'j' },
		{ "json", no_argument, NULL, 'J' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	struct plfs_gc gc = { .age_ns = AGE_S * 1000000000ULL, .nr_threads = 4 };
	struct plfs_mount **done;
	const char *map = NULL;
	bool json = false;
	uint64_t n;
	int c, nr, nr_done = 0, rc = TOOL_OK;

	opterr = 0;
	while ((c = getopt_long(argc, argv, "m:a:nj:h", options, NULL)) != -1) {
		switch (c) {
		case 'm':
			map = optarg;
			break;
		case 'a':
			if (!parse_time(optarg, &gc.age_ns))
				return tool_misuse("gc", "--age: no time: %s", optarg);
			break;
		case 'n':
			gc.dry = true;
			break;
		case 'j':
			if (!tool_number(optarg, 1, TOOL_JOBS_MAX, &n))
				return tool_misuse("gc", "\"%s\" is no number of jobs from 1 to %d", optarg, TOOL_JOBS_MAX);
			gc.nr_threads = (unsigned)n;
			break;
		case 'J':
			json = true;
			break;
		default:
			return tool_other_option("gc", c, argv, HELP);
		}
	}
	nr = argc - optind;
	if (!nr)
		return tool_misuse("gc", "no backend given");
	target_setup(map, argv + optind, nr);
	done = calloc((size_t)nr, sizeof(struct plfs_mount *));
	if (!done)
		return GC_FAILED;
	for (int i = 0; i < nr; i++) {
		const char *name = argv[optind + i];
		struct run r = { .json = json, .gc = gc };
		char path[PATH_MAX];
		struct plfs_mount *m;
		int seen = 0, ret;

		if (!target_find(name, path, &m)) {
			rc = GC_FAILED;
			continue;
		}
		if (!m) {
			tool_error("%s: on no backend: there is no directory " PLFS_DIR_NAME " above it, and no mapping has it", name);
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
