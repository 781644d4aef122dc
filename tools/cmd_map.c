/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plfs map: which log holds which bytes of a file, a line for each piece that is in one place.
 */
#include "tool.h"

#include <getopt.h>

static const char HELP[] =
	"usage: plfs map [-m MAP] [-n N] FILE\n"
	"\n"
	"Show which log holds which bytes of FILE.\n"
	"\n"
	"  -m, --map=MAP   the mapping, as in PLFS_MAP\n"
	"  -n, --limit=N   stop after N lines\n"
	"  -h, --help\n"
	"\n"
	"Offsets in a log count from the start of its data area; see plfs-format(5). Small files, and\n"
	"those that have been mapped, are in the stub itself, from byte 4096 on. What is nowhere is shown as \"-\": zeros.\n";

struct printer {
	uint64_t logical_off, len, log_off; /* the piece under way; len 0: none */
	char log[PATH_MAX];                 /* "": no log */
	uint64_t nr, limit;
};

/* 1: the limit is reached. */
static int put(struct printer *p)
{
	if (!p->len)
		return 0;
	if (p->nr == p->limit)
		return 1;
	p->nr++;
	if (*p->log)
		printf("%16llu %16llu %16llu  %s\n", (unsigned long long)p->logical_off, (unsigned long long)p->len,
		       (unsigned long long)p->log_off, p->log);
	else
		printf("%16llu %16llu %16s  -\n", (unsigned long long)p->logical_off, (unsigned long long)p->len, "-");
	p->len = 0;
	return ferror(stdout) != 0;
}

/* Pieces are true but not maximal: what continues the last one in file and log makes it longer. */
static int add_piece(void *arg, uint64_t logical_off, uint64_t len, const char *log, uint64_t log_off)
{
	struct printer *p = arg;

	if (p->len && !strcmp(p->log, log ? log : "") && (!log || p->log_off + p->len == log_off)) {
		p->len += len;
		return 0;
	}
	if (put(p))
		return 1;
	p->logical_off = logical_off;
	p->len = len;
	p->log_off = log_off;
	snprintf(p->log, sizeof(p->log), "%s", log ? log : "");
	return 0;
}

static int show(const char *name, uint64_t limit)
{
	struct printer p = { .limit = limit };
	struct plfs_info info;
	struct target t;
	int ret;

	if (!target_open(&t, name))
		return TOOL_FAILED;
	if (!t.file) {
		printf("%s is a plain file: all %llu bytes are in it\n", name, (unsigned long long)t.size);
		target_close(&t);
		return TOOL_OK;
	}
	ret = plfs_get_info(t.file, &info);
	if (!ret) {
		printf("# %s\n%16s %16s %16s  %s\n", *info.container ? info.container : t.path, "OFFSET", "LENGTH",
		       "OFFSET IN LOG", "LOG");
		ret = plfs_get_map(t.file, add_piece, &p);
	}
	if (!ret)
		ret = put(&p);
	if (ret > 0 && !ferror(stdout))
		printf("# more: the limit of %llu lines is reached\n", (unsigned long long)limit);
	if (ret < 0)
		tool_error("%s: %s", name, strerror(-ret));
	target_close(&t);
	return ret < 0 ? TOOL_FAILED : TOOL_OK;
}

int cmd_map(int argc, char **argv)
{
	static const struct option options[] = {
		{ "map", required_argument, NULL, 'm' },
		{ "limit", required_argument, NULL, 'n' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	uint64_t limit = UINT64_MAX;
	const char *map = NULL;
	int c;

	opterr = 0;
	while ((c = getopt_long(argc, argv, "m:n:h", options, NULL)) != -1) {
		switch (c) {
		case 'm':
			map = optarg;
			break;
		case 'n':
			if (!tool_number(optarg, 0, UINT64_MAX, &limit))
				return tool_misuse("map", "\"%s\" is no number of lines", optarg);
			break;
		default:
			return tool_other_option("map", c, argv, HELP);
		}
	}
	if (argc - optind != 1)
		return tool_misuse("map", optind == argc ? "no file given" : "more than one file given");
	target_setup(map, argv + optind, 1);
	return tool_finish(show(argv[optind], limit));
}
