/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plfs stats: complete a stats file, and show its sums.
 */
#include "options.h"
#include "stats_read.h"

#include <stdlib.h>

static double rate(const struct stats_way *w)
{
	return w->last > w->first ? w->bytes / (w->last - w->first) : 0;
}

static const char *pattern(const struct stats_way *w)
{
	double most = w->sequential > w->strided ? w->sequential : w->strided;

	if (w->calls < 2)
		return "one call";
	if (w->random > most)
		return "random";
	return w->sequential > w->strided ? "sequential" : "strided";
}

static void print_way(const char *name, const struct stats_way *w, unsigned processes)
{
	char bytes[TOOL_SIZE_LEN], each[TOOL_SIZE_LEN], speed[TOOL_SIZE_LEN];

	if (!w->calls && !w->bytes)
		return;
	tool_print("  %-8s %s in %.0f calls by %u processes, %s, mostly %s each; %s/s; slowest call %.3f s",
		   name, tool_size((uint64_t)w->bytes, bytes), w->calls, processes, pattern(w),
		   tool_size((uint64_t)w->common[0].len, each), tool_size((uint64_t)rate(w), speed),
		   w->slowest);
}

static void print_file(const struct stats_file *f)
{
	const struct stats_line *l = &f->sum;

	tool_print("%s%s%s%s", *l->file ? l->file : "(other files)",
		   strcmp(l->stored, "plain") ? "" : ", a plain file", *l->job ? ", job " : "", l->job);
	print_way("written", &l->write, f->writers);
	print_way("read", &l->read, f->readers);
	if (f->writers > 1)
		tool_print("  slowest  rank %.0f on %s, %.3f s in calls", f->slowest_rank, f->slowest_host,
			   f->slowest_seconds);
	if (l->errors)
		tool_print("  errors   %.0f", l->errors);
	if (f->killed)
		tool_print("  killed   %u processes", f->killed);
}

static void print_json_way(const char *name, const struct stats_way *w)
{
	printf(", \"%s\": {\"calls\": %.0f, \"bytes\": %.0f, \"seconds\": %.9f, \"slowest\": %.9f, \"pattern\": \"%s\", \"rate\": %.0f}",
	       name, w->calls, w->bytes, w->seconds, w->slowest, pattern(w), rate(w));
}

static void print_json(const struct stats_file *f)
{
	const struct stats_line *l = &f->sum;

	printf("{\"job\": ");
	tool_print_json(l->job);
	printf(", \"file\": ");
	if (*l->file)
		tool_print_json(l->file);
	else
		printf("null");
	printf(", \"stored\": ");
	tool_print_json(l->stored);
	printf(", \"processes\": %u, \"hosts\": %u, \"writers\": %u, \"readers\": %u, \"killed\": %u, \"errors\": %.0f",
	       f->processes, f->hosts, f->writers, f->readers, f->killed, l->errors);
	print_json_way("write", &l->write);
	print_json_way("read", &l->read);
	printf("}\n");
}

static int run(const struct verb *v, int argc, char **argv)
{
	struct stats_file *f, *tmp;
	int rc = TOOL_OK;
	struct stats s;

	while (options_next(v, argc, argv) != -1)
		;
	if (optind == argc)
		return tool_misuse(v->name, "no stats file given");
	tool_leave_library();
	for (int i = optind; i < argc; i++) {
		if (!stats_read(&s, argv[i])) {
			rc = TOOL_FAILED;
			continue;
		}
		HASH_ITER(hh, s.files, f, tmp)
		{
			if (opt.json)
				print_json(f);
			else
				print_file(f);
		}
		stats_release(&s);
	}
	return tool_finish(rc);
}

const struct verb verb_stats = {
	.name = "stats",
	.run = run,
	.flags = VERB_NO_MAP,
	.what = "show what the processes of a job counted",
	.arguments = "FILE...",
	.about =
		"Complete each stats FILE (plfs run --stats, PLFS_STATS) with what killed processes have left beside\n"
		"it, and show for each file of the job how it was written and read.\n",
	.options = (const struct verb_option[]){ { 0 } },
};
