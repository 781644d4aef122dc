/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plfs report: who wrote what and when, as a page. Here are its numbers (--json); the page is drawn from them
 * by the Python program in tools/report/, which this process becomes.
 */
#include "options.h"
#include "report_facts.h"
#include "report_trace.h"
#include "tool.h"

#include <stdlib.h>

#define SCRIPT "main.py"

/* The directory of the Python program: where it is installed, or in the tree, for a build there. */
static bool find_script(char *self, char *script)
{
	static const char *const places[] = { "../share/libplfs/report", "../tools/report", "../../tools/report" };
	char beside[PATH_MAX + 64], *slash;

	if (!realpath("/proc/self/exe", self))
		return false;
	slash = strrchr(self, '/');
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		snprintf(beside, sizeof(beside), "%.*s/%s/" SCRIPT, (int)(slash - self), self, places[i]);
		if (realpath(beside, script))
			return true;
	}
	return false;
}

/* Become python3. The arguments after the program's name are its own ones. */
static int draw(const char *format, const char *out, char **jobs, int nr)
{
	char self[PATH_MAX], script[PATH_MAX];
	char **argv = calloc((size_t)nr + 16, sizeof(*argv));
	int n = 0;

	if (!argv)
		return TOOL_FAILED;
	if (!find_script(self, script)) {
		tool_error("the program that draws the page, share/libplfs/report/" SCRIPT
			   ", is not installed beside %s: plfs report --json prints the numbers",
			   self);
		return TOOL_FAILED;
	}
	argv[n++] = (char *)"python3";
	argv[n++] = (char *)"-B"; /* leaves no compiled files behind */
	argv[n++] = (char *)"-I";
	argv[n++] = script;
	argv[n++] = (char *)"--plfs";
	argv[n++] = self;
	argv[n++] = (char *)"--format";
	argv[n++] = (char *)format;
	if (out) {
		argv[n++] = (char *)"--output";
		argv[n++] = (char *)out;
	}
	if (opt.quiet)
		argv[n++] = (char *)"--quiet";
	if (opt.map) {
		argv[n++] = (char *)"--map";
		argv[n++] = (char *)opt.map;
	}
	argv[n++] = (char *)"--";
	memcpy(argv + n, jobs, (size_t)nr * sizeof(*jobs));
	execvp(argv[0], argv);
	tool_error("python3: %s: the page is drawn by it; plfs report --json prints the numbers",
		   strerror(errno));
	return TOOL_FAILED;
}

static int run(const struct verb *v, int argc, char **argv)
{
	const char *format = "html", *out = NULL;
	int c, rc = TOOL_OK;

	while ((c = options_next(v, argc, argv)) != -1)
		*(c == 'o' ? &out : &format) = optarg;
	if (optind == argc)
		return tool_misuse(v->name, "no file given");
	if (strcmp(format, "html") && strcmp(format, "csv") && strcmp(format, "perfetto"))
		return tool_misuse(v->name, "\"%s\" is none of the formats html, csv, perfetto", format);
	if (!opt.json && !out && isatty(STDOUT_FILENO))
		return tool_misuse(v->name, "a page is no text for a terminal: -o FILE");
	if (!opt.json) {
		tool_leave_library();
		return draw(format, out, argv + optind, argc - optind);
	}
	target_setup(opt.map, argv + optind, argc - optind);
	for (int i = optind; i < argc; i++)
		if (report_is_traces(argv[i]) ? report_trace(argv[i]) : report_facts(argv[i]))
			rc = TOOL_FAILED;
	return tool_finish(rc);
}

const struct verb verb_report = {
	.name = "report",
	.run = run,
	.what = "show who wrote which bytes of a file, and when, as a page",
	.arguments = "JOB...",
	.about = "Write a page for a web browser: which process wrote which bytes of the files, when, how fast, and in\n"
		 "what pieces. A JOB is a logical file, a directory of such files, a file of PLFS_STATS or a directory of\n"
		 "PLFS_TRACE. The page needs no network, and says what is not known. It needs python3.\n",
	.options = (const struct verb_option[]){
		{ 'o', "output", "OUT", "the page; without it standard output" },
		{ 'f', "format", "FORMAT", "html, the default; csv, a line for each process and file; or\n"
						  "perfetto, a trace for https://ui.perfetto.dev" },
		{ 0 },
	},
};
