/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parsing a verb's options, and its help, both from its table.
 */
#include "options.h"

#include "tool.h"

#include <getopt.h>
#include <stdlib.h>

#define OPTIONS_MAX 24 /* of a verb, with the common ones */
#define JOBS_MAX 64
#define USAGE_WIDTH 110

struct settings opt;

const struct verb_option COMMON_OPTIONS[] = {
	{ 'm', "map", "MAP", "the mapping, as in PLFS_MAP" },
	{ OPT_JSON, "json", NULL, "print one JSON object a line" },
	{ 'b', "bytes", NULL, "print sizes as numbers of bytes" },
	{ 'q', "quiet", NULL, "print results and errors alone: no progress, no notes, no totals" },
	{ 'v', "verbose", NULL, "print more of what is done" },
	{ 'h', "help", NULL, "show this" },
	{ 'V', "version", NULL, "show the version" },
	{ 0, NULL, NULL, NULL },
};

bool options_has(const struct verb *v, const struct verb_option *common)
{
	return !(common->letter == 'm' && (v->flags & VERB_NO_MAP)) &&
	       !(common->letter == OPT_JSON && (v->flags & VERB_NO_JSON)) &&
	       !(common->letter == 'b' && (v->flags & VERB_NO_SIZES));
}

/* The options of @v, its own first, into @all. Returns their number. */
static size_t collect(const struct verb *v, const struct verb_option *all[OPTIONS_MAX])
{
	size_t nr = 0;

	for (const struct verb_option *o = v->options; o && o->name; o++)
		all[nr++] = o;
	for (const struct verb_option *o = COMMON_OPTIONS; o->name; o++)
		if (options_has(v, o))
			all[nr++] = o;
	return nr;
}

/* ---- help ---- */

/* "-m, --map=MAP" */
static int print_name(char *out, size_t len, const struct verb_option *o)
{
	char letter[8] = "    ";

	if (o->letter < OPT_LONG)
		snprintf(letter, sizeof(letter), "-%c, ", o->letter);
	return snprintf(out, len, "%s--%s%s%s", letter, o->name, !o->value || *o->value == '[' ? "" : "=",
			o->value ? o->value : "");
}

static void print_option(const struct verb_option *o, int width)
{
	const char *text = o->text;
	char name[80];

	print_name(name, sizeof(name), o);
	for (;; text++) {
		int len = (int)strcspn(text, "\n");

		printf("  %-*s  %.*s\n", width, text == o->text ? name : "", len, text);
		text += len;
		if (!*text)
			break;
	}
}

/* The options of @v itself into @out (len), as "[-r] [-o OUT] ". */
static void usage_options(const struct verb *v, char *out, size_t len)
{
	size_t used = 0;

	*out = '\0';
	for (const struct verb_option *o = v->options; o && o->name && used < len; o++) {
		char dash_letter[] = { '-', (char)o->letter, 0 };

		used += (size_t)snprintf(out + used, len - used, "[%s%s%s%s] ",
					 o->letter < OPT_LONG ? dash_letter : "--",
					 o->letter < OPT_LONG ? "" : o->name,
					 !o->value || *o->value == '[' ? "" : o->letter < OPT_LONG ? " " : "=",
					 o->value ? o->value : "");
	}
}

/* A form for each line of the arguments. Where a line would be long, the list of options below has to do. */
static void print_usage(const struct verb *v)
{
	const char *form = v->arguments;
	char options[USAGE_WIDTH];

	usage_options(v, options, sizeof(options));
	if (strlen(options) + strlen(v->arguments) > USAGE_WIDTH - sizeof("usage: plfs flatten [OPTION...] "))
		*options = '\0';
	for (const char *begin = "usage: ";; begin = "       ", form++) {
		int len = (int)strcspn(form, "\n");

		printf("%splfs %s %s[OPTION...] %.*s\n", begin, v->name, options, len, form);
		form += len;
		if (!*form)
			break;
	}
}

static int print_help(const struct verb *v)
{
	const struct verb_option *all[OPTIONS_MAX];
	size_t nr = collect(v, all);
	char name[80];
	int width = 0;

	for (size_t i = 0; i < nr; i++) {
		int len = print_name(name, sizeof(name), all[i]);

		width = len > width ? len : width;
	}
	print_usage(v);
	printf("\n%s\n", v->about);
	for (size_t i = 0; i < nr; i++)
		print_option(all[i], width);
	if (v->end)
		printf("\n%s", v->end);
	return tool_finish(TOOL_OK);
}

/* ---- what may be meant ---- */

/* How many letters have to be added, left out, exchanged or swapped (Damerau). */
static int distance(const char *a, const char *b)
{
	size_t la = strlen(a), lb = strlen(b);
	int d[33][33];

	if (la > 32 || lb > 32)
		return 99;
	for (size_t i = 0; i <= la; i++)
		for (size_t j = 0; j <= lb; j++) {
			int best = !i ? (int)j : !j ? (int)i : d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);

			if (i && j && d[i - 1][j] + 1 < best)
				best = d[i - 1][j] + 1;
			if (i && j && d[i][j - 1] + 1 < best)
				best = d[i][j - 1] + 1;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    d[i - 2][j - 2] + 1 < best)
				best = d[i - 2][j - 2] + 1;
			d[i][j] = best;
		}
	return d[la][lb];
}

const char *options_similar(const char *word, const char *(*word_at)(const void *arg, size_t i),
			    const void *arg)
{
	size_t len = strlen(word);
	const char *best = NULL, *one;
	int least = 3;

	for (size_t i = 0; (one = word_at(arg, i)); i++) {
		int d = len > 1 && !strncmp(word, one, len) ? 0 : distance(word, one);

		if (d < least && (size_t)d < len && (size_t)d < strlen(one)) {
			least = d;
			best = one;
		}
	}
	return best;
}

static const char *option_at(const void *arg, size_t i)
{
	const struct verb_option *all[OPTIONS_MAX];

	return i < collect(arg, all) ? all[i]->name : NULL;
}

/* ---- the command line ---- */

static _Noreturn void end(int rc)
{
	exit(rc);
}

/* @c is what getopt_long() returned: '?' or ':'. */
static _Noreturn void bad_option(const struct verb *v, int c, char **argv)
{
	const char *wrong = c == ':' ? "missing value" : "bad option";
	const char *word = argv[optind - 1], *meant = NULL;
	char name[40];

	if (optopt && optopt < OPT_LONG && strncmp(word, "--", 2))
		end(tool_misuse(v->name, "%s: -%c", wrong, optopt));
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(word, "="), word);
	if (!strncmp(name, "--", 2))
		meant = options_similar(name + 2, option_at, v);
	if (meant && strcmp(meant, name + 2))
		end(tool_misuse(v->name, "bad option: %s: did you mean --%s?", word, meant));
	end(tool_misuse(v->name, "%s: %s", wrong, word));
}

/* The tables of getopt_long(). */
static void make_tables(const struct verb *v, struct option *longs, char *letters)
{
	const struct verb_option *all[OPTIONS_MAX];
	size_t nr = collect(v, all);

	*letters++ = v->flags & VERB_IS_COMMAND ? '+' : ':';
	if (v->flags & VERB_IS_COMMAND)
		*letters++ = ':';
	for (size_t i = 0; i < nr; i++) {
		*longs++ = (struct option){ all[i]->name,
					    !all[i]->value	  ? no_argument :
					    *all[i]->value == '[' ? optional_argument :
								    required_argument,
					    NULL, all[i]->letter };
		if (all[i]->letter < OPT_LONG) {
			*letters++ = (char)all[i]->letter;
			if (all[i]->value)
				*letters++ = ':';
		}
	}
	*longs = (struct option){ 0 };
	*letters = '\0';
}

/* Whether @c is a common option, which is done then. */
static bool is_common(const struct verb *v, int c)
{
	switch (c) {
	case 'm':
		opt.map = tool_join_map(opt.map, optarg);
		plfs_map_source = "-m";
		return true;
	case OPT_JSON:
		opt.json = true;
		return true;
	case 'b':
		tool_in_bytes = true;
		return true;
	case 'q':
		opt.quiet = true;
		return true;
	case 'v':
		opt.verbose = true;
		return true;
	case 'h':
		end(print_help(v));
	case 'V':
		puts("plfs " PLFS_VERSION);
		end(tool_finish(TOOL_OK));
	}
	return false;
}

int options_next(const struct verb *v, int argc, char **argv)
{
	struct option longs[OPTIONS_MAX + 1];
	char letters[3 * OPTIONS_MAX];
	int c;

	opterr = 0;
	make_tables(v, longs, letters);
	do {
		c = getopt_long(argc, argv, letters, longs, NULL);
		if (c == '?' || c == ':')
			bad_option(v, c, argv);
	} while (c != -1 && is_common(v, c));
	return c;
}

unsigned options_jobs(const struct verb *v)
{
	uint64_t nr;

	if (!tool_number(optarg, 1, JOBS_MAX, &nr))
		end(tool_misuse(v->name, "\"%s\" is not a number of jobs from 1 to %d", optarg, JOBS_MAX));
	return (unsigned)nr;
}

unsigned options_number(const struct verb *v, const char *name, unsigned most)
{
	uint64_t n;

	if (!tool_number(optarg, 1, most, &n))
		end(tool_misuse(v->name, "\"--%s=%s\" is no number from 1 to %u", name, optarg, most));
	return (unsigned)n;
}

uint64_t options_size(const struct verb *v, const char *name)
{
	static const char units[] = "KMGT";
	size_t len = strlen(optarg);
	const char *unit = len ? strchr(units, optarg[len - 1]) : NULL;
	unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;
	char digits[32];
	uint64_t n;

	snprintf(digits, sizeof(digits), "%.*s", (int)(len - (unit != NULL)), optarg);
	if (len >= sizeof(digits) || !tool_number(digits, 1, UINT64_MAX >> shift, &n))
		end(tool_misuse(v->name, "\"--%s=%s\" is no size, as 200M", name, optarg));
	return n << shift;
}

unsigned options_seconds(const struct verb *v, const char *name)
{
	uint64_t n;

	if (!tool_number(optarg, 0, UINT32_MAX, &n))
		end(tool_misuse(v->name, "\"--%s=%s\" is no number of seconds", name, optarg));
	return (unsigned)n;
}
