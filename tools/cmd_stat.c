/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plfs stat: how a file is stored, for people or as one JSON object a line.
 */
#include "options.h"
#include "tool.h"

static void print_json(const struct target *t, const struct plfs_info *info, uint64_t overwritten)
{
	printf("{\"file\": ");
	tool_print_json(t->name);
	printf(", \"path\": ");
	tool_print_json(t->path);
	printf(", \"type\": \"%s\", \"size\": %llu, \"disk_bytes\": %llu", t->file ? "log" : "plain",
	       (unsigned long long)t->size, (unsigned long long)info->disk_bytes);
	if (t->file) {
		printf(", \"logs\": %llu, \"writers\": %llu, \"hosts\": %llu, \"records\": %llu, \"log_bytes\": %llu, "
		       "\"overwritten_bytes\": %llu, \"index_bytes\": %llu, \"id\": \"%s\", \"container\": ",
		       (unsigned long long)info->nr_logs, (unsigned long long)info->nr_writers,
		       (unsigned long long)info->nr_hosts, (unsigned long long)info->nr_records,
		       (unsigned long long)info->log_bytes, (unsigned long long)overwritten,
		       (unsigned long long)info->index_bytes, info->id);
		tool_print_json(info->container);
	}
	puts("}");
}

/* "1234 (1.2 KiB)" */
static void print_bytes(const char *label, uint64_t bytes)
{
	char size[TOOL_SIZE_LEN];

	printf("%-10s %llu", label, (unsigned long long)bytes);
	if (bytes >= 1024 && !tool_in_bytes)
		printf(" (%s)", tool_size(bytes, size));
	putchar('\n');
}

/* Where it is worth a command: so much of the logs. */
static bool is_much(uint64_t overwritten, uint64_t log_bytes)
{
	return overwritten >= 65536 && overwritten >= log_bytes / 8;
}

static void print_text(const struct target *t, const struct plfs_info *info, uint64_t overwritten)
{
	char hint[PATH_MAX + 40] = "", size[TOOL_SIZE_LEN];

	tool_print("%-10s %s", "File", t->name);
	if (!t->file)
		printf("%-10s a plain file\n", "Kind");
	print_bytes("Size", t->size);
	if (t->file) {
		printf("%-10s %llu", "Logs", (unsigned long long)info->nr_logs);
		if (info->nr_writers)
			printf(", %llu of them of writers that are running or were killed",
			       (unsigned long long)info->nr_writers);
		printf("\n%-10s %llu\n", "Hosts", (unsigned long long)info->nr_hosts);
		printf("%-10s %llu\n", "Records", (unsigned long long)info->nr_records);
		print_bytes("In logs", info->log_bytes);
		if (is_much(overwritten, info->log_bytes))
			snprintf(hint, sizeof(hint), ": plfs compact %s", t->name);
		if (overwritten)
			tool_print("%-11s %s%s", "Overwritten", tool_size(overwritten, size), hint);
		print_bytes("In indexes", info->index_bytes);
	}
	print_bytes("On disk", info->disk_bytes);
	tool_print("%-10s %s", t->file ? "Stub" : "Path", t->path);
	if (!t->file)
		return;
	tool_print("%-10s %s", "Container", *info->container ? info->container : "none: all of it is in the stub");
	if (opt.verbose)
		tool_print("%-10s %s", "Id", info->id);
}

static int show(const char *name)
{
	struct plfs_info info = { 0 };
	uint64_t overwritten = 0;
	struct target t;
	int ret = 0;

	if (!target_open(&t, name))
		return TOOL_FAILED;
	if (t.file)
		ret = plfs_get_info(t.file, &info);
	if (t.file && !ret && plfs_get_reclaimable(t.file, &info, &overwritten))
		overwritten = 0;
	if (!t.file)
		info.disk_bytes = (uint64_t)t.st.st_blocks * 512;
	if (ret)
		tool_error("%s: %s", name, strerror(-ret));
	else if (opt.json)
		print_json(&t, &info, overwritten);
	else
		print_text(&t, &info, overwritten);
	target_close(&t);
	return ret ? TOOL_FAILED : TOOL_OK;
}

static int run(const struct verb *v, int argc, char **argv)
{
	int rc = TOOL_OK;

	while (options_next(v, argc, argv) != -1)
		;
	if (optind == argc)
		return tool_misuse(v->name, "no file given");
	target_setup(opt.map, argv + optind, argc - optind);
	for (int i = optind; i < argc; i++) {
		if (i > optind && !opt.json && !rc)
			putchar('\n');
		if (show(argv[i]))
			rc = TOOL_FAILED;
	}
	return tool_finish(rc);
}

const struct verb verb_stat = {
	.name = "stat",
	.run = run,
	.what = "show how files are stored",
	.arguments = "FILE...",
	.about = "Show how files are stored: size, logs, index records, bytes on disk. FILE is a path below the prefix of\n"
		 "the mapping, or a path on the backend.\n",
};
