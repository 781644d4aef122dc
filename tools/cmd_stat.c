/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plfs stat: how a file is stored, for people or as one JSON object a line.
 */
#include "tool.h"

#include <getopt.h>

static const char HELP[] =
	"usage: plfs stat [-m MAP] [--json] FILE...\n"
	"\n"
	"Show how files are stored: size, logs, index records, bytes on disk.\n"
	"\n"
	"  -m, --map=MAP  the mapping, as in PLFS_MAP\n"
	"  -j, --json     one JSON object a line\n"
	"  -h, --help\n"
	"\n"
	"A FILE is named by its path below the prefix or by that on the backend.\n";

static void print_json(const struct target *t, const struct plfs_info *info)
{
	printf("{\"file\": ");
	tool_print_json(t->name);
	printf(", \"path\": ");
	tool_print_json(t->path);
	printf(", \"type\": \"%s\", \"size\": %llu, \"disk_bytes\": %llu", t->file ? "log" : "plain",
	       (unsigned long long)t->size, (unsigned long long)info->disk_bytes);
	if (t->file) {
		printf(", \"logs\": %llu, \"writers\": %llu, \"hosts\": %llu, \"records\": %llu, \"log_bytes\": %llu, "
		       "\"index_bytes\": %llu, \"id\": \"%s\", \"container\": ",
		       (unsigned long long)info->nr_logs, (unsigned long long)info->nr_writers,
		       (unsigned long long)info->nr_hosts, (unsigned long long)info->nr_records,
		       (unsigned long long)info->log_bytes, (unsigned long long)info->index_bytes, info->id);
		tool_print_json(info->container);
	}
	puts("}");
}

/* "1234 bytes (1.2 KiB)" */
static void print_bytes(const char *label, uint64_t bytes)
{
	static const char *const units[] = { "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	double scaled = (double)bytes / 1024;
	unsigned unit = 0;

	printf("%-10s %llu", label, (unsigned long long)bytes);
	if (bytes >= 1024) {
		for (; scaled >= 1023.95 && unit + 1 < ARRAY_SIZE(units); unit++)
			scaled /= 1024;
		printf(" (%.1f %s)", scaled, units[unit]);
	}
	putchar('\n');
}

static void print_text(const struct target *t, const struct plfs_info *info)
{
	printf("%-10s %s\n", "File", t->name);
	if (!t->file)
		printf("%-10s a plain file\n", "Kind");
	print_bytes("Size", t->size);
	if (t->file) {
		printf("%-10s %llu", "Logs", (unsigned long long)info->nr_logs);
		if (info->nr_writers)
			printf(", %llu of them of processes that write now or were killed",
			       (unsigned long long)info->nr_writers);
		printf("\n%-10s %llu\n", "Hosts", (unsigned long long)info->nr_hosts);
		printf("%-10s %llu\n", "Records", (unsigned long long)info->nr_records);
		print_bytes("In logs", info->log_bytes);
		print_bytes("In indexes", info->index_bytes);
	}
	print_bytes("On disk", info->disk_bytes);
	printf("%-10s %s\n", t->file ? "Stub" : "Path", t->path);
	if (t->file)
		printf("%-10s %s\n", "Container", *info->container ? info->container : "none: all of it is in the stub");
}

static int show(const char *name, bool json)
{
	struct plfs_info info = { 0 };
	struct target t;
	int ret = 0;

	if (!target_open(&t, name))
		return TOOL_FAILED;
	if (t.file)
		ret = plfs_get_info(t.file, &info);
	else
		info.disk_bytes = (uint64_t)t.st.st_blocks * 512;
	if (ret)
		tool_error("%s: %s", name, strerror(-ret));
	else if (json)
		print_json(&t, &info);
	else
		print_text(&t, &info);
	target_close(&t);
	return ret ? TOOL_FAILED : TOOL_OK;
}

int cmd_stat(int argc, char **argv)
{
	static const struct option options[] = {
		{ "map", required_argument, NULL, 'm' },
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	const char *map = NULL;
	bool json = false;
	int c, rc = TOOL_OK;

	opterr = 0;
	while ((c = getopt_long(argc, argv, "m:jh", options, NULL)) != -1) {
		switch (c) {
		case 'm':
			map = optarg;
			break;
		case 'j':
			json = true;
			break;
		default:
			return tool_other_option("stat", c, argv, HELP);
		}
	}
	if (optind == argc)
		return tool_misuse("stat", "no file given");
	target_setup(map, argv + optind, argc - optind);
	for (int i = optind; i < argc; i++) {
		if (i > optind && !json && !rc)
			putchar('\n');
		if (show(argv[i], json))
			rc = TOOL_FAILED;
	}
	return tool_finish(rc);
}
