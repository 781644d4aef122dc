/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The plfs command: chooses the verb. Each verb is a cmd_*.c; their shared functions are in tool.c, options.c
 * and target.c.
 */
#include "completion.h"
#include "tool.h"

static const struct verb *const VERBS[] = {
	&verb_run,     &verb_init,    &verb_stat,  &verb_map,    &verb_report, &verb_du,    &verb_df,
	&verb_gc,      &verb_flatten, &verb_compact, &verb_check, &verb_doctor, &verb_repair,
	&verb_stats,   &verb_watch,   &verb_advise, &verb_drain,  &verb_places, &verb_stage, NULL,
};

/* What people try. */
static const char *const MEANT[][2] = {
	{ "exec", "run" },     { "mount", "run" },   { "info", "stat" },       { "status", "stat" },
	{ "ls", "stat" },      { "fsck", "check" },  { "verify", "check" },    { "scrub", "check" },
	{ "fix", "repair" },   { "clean", "gc" },    { "prune", "gc" },	       { "recover", "repair" },
	{ "copy", "flatten" }, { "cat", "flatten" }, { "export", "flatten" },  { "defrag", "compact" },
	{ "plot", "report" },  { "draw", "report" },
	{ "create", "init" },  { "flush", "drain" }, { "stage-out", "drain" }, { "stage-in", "stage" },  { "quota", "du" },    { "diagnose", "doctor" }, { "counters", "stats" }, { "top", "watch" }, { "tune", "advise" }, { "hints", "advise" },
};

static int help(void)
{
	puts("usage: plfs VERB [OPTION...] [ARGUMENT...]\n");
	for (const struct verb *const *v = VERBS; *v; v++)
		printf("  %-8s %s\n", (*v)->name, (*v)->what);
	puts("\nplfs VERB --help shows the options of a verb; the manual pages are plfs(1) and libplfs(7).");
	return tool_finish(TOOL_OK);
}

static const char *verb_at(const void *arg, size_t i)
{
	(void)arg;
	return VERBS[i] ? VERBS[i]->name : NULL;
}

static int no_verb(const char *word)
{
	const char *meant = options_similar(word, verb_at, NULL);

	if (!*word)
		return tool_misuse("", "no verb given");
	if (*word == '-')
		return tool_misuse("", "%s: options stand behind a verb, as in: plfs stat --json FILE", word);
	for (size_t i = 0; i < ARRAY_SIZE(MEANT); i++)
		if (!strcmp(word, MEANT[i][0]))
			meant = MEANT[i][1];
	if (meant)
		return tool_misuse("", "no verb \"%s\": did you mean \"plfs %s\"?", word, meant);
	return tool_misuse("", "no verb \"%s\"", word);
}

int main(int argc, char **argv)
{
	const char *verb = argc > 1 ? argv[1] : "";

	if (!strcmp(verb, "--help") || !strcmp(verb, "-h") || !strcmp(verb, "help"))
		return help();
	if (!strcmp(verb, "--version") || !strcmp(verb, "-V")) {
		puts("plfs " PLFS_VERSION);
		return tool_finish(TOOL_OK);
	}
	if (!strncmp(verb, "--completion=", 13))
		return completion_print(VERBS, verb + 13) ? tool_finish(TOOL_OK) :
							    tool_misuse("", "%s: no such shell", verb);
	sys_init();
	guard_handle_faults();
	for (const struct verb *const *v = VERBS; *v; v++)
		if (!strcmp(verb, (*v)->name))
			return (*v)->run(*v, argc - 1, argv + 1);
	return no_verb(verb);
}
