/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plfs compact: give the space of overwritten bytes back. Core does it.
 */
#include "options.h"
#include "progress.h"
#include "tool.h"

static void copied(void *arg, uint64_t done)
{
	progress_show(arg, done);
}

static void print_json(const char *name, const struct plfs_compact *k, const char *why)
{
	printf("{\"file\": ");
	tool_print_json(name);
	printf(", \"compacted\": %s", why || k->dry ? "false" : "true");
	if (why) {
		printf(", \"why\": ");
		tool_print_json(why);
	} else {
		printf(", \"disk_bytes\": %llu, \"disk_bytes_after\": %llu, \"logs\": %llu, \"logs_after\": %llu",
		       (unsigned long long)k->disk_bytes, (unsigned long long)k->disk_after,
		       (unsigned long long)k->nr_logs, (unsigned long long)k->nr_after);
	}
	puts("}");
}

static void tell(const char *name, const struct plfs_compact *k)
{
	char had[TOOL_SIZE_LEN], has[TOOL_SIZE_LEN];

	tool_print("%s: %s in %llu logs%s %s in %llu", name, tool_size(k->disk_bytes, had),
		   (unsigned long long)k->nr_logs, k->dry ? " would become about" : " became",
		   tool_size(k->disk_after, has), (unsigned long long)k->nr_after);
	if (k->nr_left)
		tool_print("%s: %llu logs hold nothing any more, and stay for now: a process goes on with them, or "
			   "keeps their index locked; compact it again later",
			   name, (unsigned long long)k->nr_left);
}

static bool compact(const char *name, bool dry)
{
	struct progress progress;
	struct plfs_progress watch = { .progress = copied, .arg = &progress };
	struct plfs_compact k = { .dry = dry };
	struct target t;
	int ret;

	if (!target_open(&t, name))
		return false;
	target_close(&t);
	progress_begin(&progress, name, t.size);
	ret = plfs_compact(t.path, &k, &watch);
	progress_end(&progress);
	if (ret < 0)
		tool_error("%s: %s", name, *watch.why ? watch.why : strerror(-ret));
	else if (opt.json)
		print_json(name, &k, ret ? watch.why : NULL);
	else if (ret && !opt.quiet)
		tool_print("%s: nothing to gain: %s", name, watch.why);
	else if (!ret && !opt.quiet)
		tell(name, &k);
	return ret >= 0;
}

static int run(const struct verb *v, int argc, char **argv)
{
	bool dry = false;
	int rc = TOOL_OK;

	while (options_next(v, argc, argv) != -1)
		dry = true;
	if (optind == argc)
		return tool_misuse(v->name, "no file given");
	target_setup(opt.map, argv + optind, argc - optind);
	for (int i = optind; i < argc; i++)
		if (!compact(argv[i], dry))
			rc = TOOL_FAILED;
	return tool_finish(rc);
}

const struct verb verb_compact = {
	.name = "compact",
	.run = run,
	.what = "give the space of overwritten bytes back",
	.arguments = "FILE...",
	.about = "Give the space of overwritten bytes back. The files stay logical, and can be read meanwhile.\n",
	.options = (const struct verb_option[]){
		{ 'n', "dry-run", NULL, "only show what would be given back" },
		{ 0 },
	},
};
