/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The plfs command: picks the verb. Each verb is in a cmd_*.c of its own; what they share is in target.c and here.
 */
#include "tool.h"

#include <stdlib.h>

static const struct verb {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *what;
} VERBS[] = {
	{ "run", cmd_run, "run a command with its files below the mapping kept by libplfs" },
	{ "init", cmd_init, "make a directory a backend that several users share" },
	{ "stat", cmd_stat, "show how files are stored" },
	{ "map", cmd_map, "show which log holds which bytes of a file" },
	{ "gc", cmd_gc, "remove what no file leads to from whole backends" },
	{ "flatten", cmd_flatten, "turn files into plain files, or copy one to a plain file" },
	{ "check", cmd_check, "look for damage" },
	{ "repair", cmd_repair, "set right what check finds, as far as that takes no guessing" },
};

static void say(const char *fmt, va_list args)
{
	fflush(stdout);
	fputs("plfs: ", stderr);
	vfprintf(stderr, fmt, args);
}

void tool_error(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	say(fmt, args);
	va_end(args);
	fputc('\n', stderr);
}

int tool_misuse(const char *verb, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	say(fmt, args);
	va_end(args);
	fprintf(stderr, " (see: plfs %s%s--help)\n", verb, *verb ? " " : "");
	return TOOL_USAGE;
}

int tool_other_option(const char *verb, int c, char **argv, const char *help)
{
	if (c != 'h')
		return tool_misuse(verb, "bad option or missing value: %s", argv[optind - 1]);
	fputs(help, stdout);
	return tool_finish(TOOL_OK);
}

bool tool_number(const char *text, uint64_t least, uint64_t most, uint64_t *nr)
{
	char *end;

	errno = 0;
	*nr = strtoull(text, &end, 10);
	return *text >= '0' && *text <= '9' && !*end && !errno && *nr >= least && *nr <= most;
}

int tool_finish(int rc)
{
	if (fflush(stdout) || ferror(stdout)) {
		tool_error("standard output: %s", strerror(errno));
		return rc ? rc : TOOL_FAILED;
	}
	return rc;
}

void tool_print_json(const char *s)
{
	putchar('"');
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			printf("\\%c", *s);
		else if ((unsigned char)*s < 0x20)
			printf("\\u%04x", *s);
		else
			putchar(*s);
	}
	putchar('"');
}

static int help(void)
{
	puts("usage: plfs VERB [OPTION...] [ARGUMENT...]\n");
	for (size_t i = 0; i < ARRAY_SIZE(VERBS); i++)
		printf("  %-8s %s\n", VERBS[i].name, VERBS[i].what);
	puts("\nplfs VERB --help shows the options of a verb; the manual pages are plfs(1) and libplfs(7).");
	return tool_finish(TOOL_OK);
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
	sys_init();
	mapping_guard();
	for (size_t i = 0; i < ARRAY_SIZE(VERBS); i++)
		if (!strcmp(verb, VERBS[i].name))
			return VERBS[i].run(argc - 1, argv + 1);
	return *verb ? tool_misuse("", "no verb \"%s\"", verb) : tool_misuse("", "no verb given");
}
