/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plfs map: which log holds which bytes of a file, one line for each piece in one place.
 */
#include "options.h"
#include "tool.h"

struct printer {
	struct plfs_file *f;
	uint64_t logical_off, len, log_off; /* the piece under way; len 0: none */
	char log[PATH_MAX];                 /* "": no log */
	uint64_t nr, limit;
	uint64_t bytes, most; /* of pieces in logs; so many there can be */
	unsigned nr_beyond;   /* pieces beyond that */
};

#define COMPRESSED 64 /* no file system stores a byte in less than a 64th of one */
#define BEYOND_MAX 100 /* as many lost pieces as plfs check shows */

/* Each byte of a log belongs to one place of the file. A log may have holes, which nobody has written. */
static uint64_t most_bytes(struct plfs_file *f)
{
	struct plfs_info info;
	uint64_t most;

	if (plfs_get_info(f, &info))
		return UINT64_MAX;
	most = info.log_bytes + info.index_bytes; /* some may be in live files still */
	return info.disk_bytes < most / COMPRESSED ? info.disk_bytes * COMPRESSED : most;
}

/*
 * Whether there can be a piece of @len bytes. A log may have lost its end; another process may make it
 * longer.
 */
static bool is_possible(struct printer *p, uint64_t len)
{
	p->bytes = len > UINT64_MAX - p->bytes ? UINT64_MAX : p->bytes + len;
	if (p->bytes > p->most)
		p->most = most_bytes(p->f);
	return p->bytes <= p->most || p->nr_beyond++ < BEYOND_MAX;
}

static void put_json(const struct printer *p)
{
	printf("{\"offset\": %llu, \"length\": %llu, \"log\": ", (unsigned long long)p->logical_off,
	       (unsigned long long)p->len);
	if (!*p->log) {
		puts("null}");
		return;
	}
	tool_print_json(p->log);
	printf(", \"log_offset\": %llu}\n", (unsigned long long)p->log_off);
}

/* 1: the limit is reached. */
static int put(struct printer *p)
{
	if (!p->len)
		return 0;
	if (p->nr == p->limit)
		return 1;
	p->nr++;
	if (opt.json)
		put_json(p);
	else if (*p->log)
		tool_print("%16llu %16llu %16llu  %s", (unsigned long long)p->logical_off,
			   (unsigned long long)p->len, (unsigned long long)p->log_off, p->log);
	else
		printf("%16llu %16llu %16s  -\n", (unsigned long long)p->logical_off,
		       (unsigned long long)p->len, "-");
	p->len = 0;
	return ferror(stdout) != 0;
}

/* A piece that continues the one before, in the file and in the log, makes that longer. */
static int add_piece(void *arg, uint64_t logical_off, uint64_t len, const char *log, uint64_t log_off)
{
	struct printer *p = arg;

	if (log && log != plfs_in_stub && log != plfs_lost && !is_possible(p, len))
		return put(p) ? 1 : -ERANGE;
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
		if (!opt.json)
			tool_print("%s is a plain file: all %llu bytes are in it", name,
				   (unsigned long long)t.size);
		target_close(&t);
		return TOOL_OK;
	}
	ret = plfs_get_info(t.file, &info);
	if (!ret) {
		p.f = t.file;
		if (!opt.json) {
			tool_print("# %s", *info.container ? info.container : t.path);
			tool_print("%16s %16s %16s  %s", "OFFSET", "LENGTH", "OFFSET IN LOG", "LOG");
		}
		ret = plfs_get_map(t.file, add_piece, &p);
	}
	if (!ret)
		ret = put(&p);
	if (ret > 0 && !opt.json && !ferror(stdout))
		printf("# more pieces follow: the limit of %llu lines is reached\n",
		       (unsigned long long)limit);
	if (ret == -ERANGE)
		tool_error("%s: damaged: its index has more bytes than its logs (see plfs check)", name);
	else if (ret < 0)
		tool_error("%s: %s", name, strerror(-ret));
	target_close(&t);
	return ret < 0 ? TOOL_FAILED : TOOL_OK;
}

static int run(const struct verb *v, int argc, char **argv)
{
	uint64_t limit = UINT64_MAX;

	while (options_next(v, argc, argv) != -1)
		if (!tool_number(optarg, 0, UINT64_MAX, &limit))
			return tool_misuse(v->name, "\"%s\" is not a number of lines", optarg);
	if (argc - optind != 1)
		return tool_misuse(v->name, optind == argc ? "no file given" : "more than one file given");
	target_setup(opt.map, argv + optind, 1);
	return tool_finish(show(argv[optind], limit));
}

const struct verb verb_map = {
	.name = "map",
	.run = run,
	.flags = VERB_NO_SIZES,
	.what = "show which log holds which bytes of a file",
	.arguments = "FILE",
	.about = "Show which log holds which bytes of FILE. Offsets in a log count from the start of its data area; see\n"
		 "plfs-format(5). Small files, and files that were mapped into memory for writing, are in the stub itself,\n"
		 "from byte 4096 on. \"-\" stands for a hole: zeros.\n",
	.options = (const struct verb_option[]){
		{ 'l', "limit", "N", "stop after N lines" },
		{ 0 },
	},
};
