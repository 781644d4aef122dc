/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plfs check and plfs repair: what they find, for people or as one JSON object a line, and their exit codes.
 */
#include "progress.h"
#include "tool.h"

#include <getopt.h>
#include <signal.h>

static const char HELP_CHECK[] =
	"usage: plfs check [-m MAP] [-r] [-j N] [--quick] [--json] PATH...\n"
	"\n"
	"Look for damage of logical files. Changes nothing.\n"
	"\n"
	"  -m, --map=MAP    the mapping, as in PLFS_MAP\n"
	"  -r, --recursive  directories, with all below them; whole backends\n"
	"  -j, --jobs=N     so many files at once\n"
	"      --quick      do not read the files' data\n"
	"      --json       one JSON object a line\n"
	"  -h, --help\n"
	"\n"
	"The exit status is 0 if all is sound, 1 if something is damaged, 2 if something could not be checked.\n";

static const char HELP_REPAIR[] =
	"usage: plfs repair [-m MAP] [-n] [-p] [-r] [-j N] [--quick] [--json] PATH...\n"
	"\n"
	"Check logical files, and set right what can be without guessing. What it replaces it keeps.\n"
	"\n"
	"  -m, --map=MAP    the mapping, as in PLFS_MAP\n"
	"  -n, --dry-run    only say what would be done\n"
	"  -p, --partial    make files readable that have lost a part as well: it reads as what was there before, or zeros\n"
	"  -r, --recursive  directories, with all below them; whole backends\n"
	"  -j, --jobs=N     so many files at once\n"
	"      --quick      do not read the files' data\n"
	"      --json       one JSON object a line\n"
	"  -h, --help\n"
	"\n"
	"The exit status is 0 if all is sound now, 1 if something remains, 2 if something could not be done.\n";

enum { EXIT_SOUND = 0, EXIT_DAMAGED = 1, EXIT_UNCHECKED = 2 };

struct job {
	const char *verb;
	bool recursive, json;
	unsigned nr_threads;
	struct progress progress;
	struct plfs_check check;
};

/* ---- what is found ---- */

static const char *const SEVERITIES[] = {
	[PLFS_NOTED] = "note", [PLFS_DAMAGED] = "damage", [PLFS_REPAIRED] = "repaired", [PLFS_REMAINS] = "remains",
	[PLFS_FAILED] = "failed",
};

static void print_json(const struct plfs_finding *f)
{
	printf("{\"file\": ");
	tool_print_json(f->file);
	printf(", \"severity\": \"%s\", \"code\": \"%s\"", SEVERITIES[f->severity], f->code);
	if (*f->path) {
		printf(", \"path\": ");
		tool_print_json(f->path);
	}
	if (f->len) {
		printf(", \"offset\": %llu, \"length\": %llu", (unsigned long long)f->logical_off,
		       (unsigned long long)f->len);
	} else {
		printf(", \"text\": ");
		tool_print_json(f->text);
	}
	puts("}");
}

static void print_text(const struct job *job, const struct plfs_finding *f)
{
	printf("%s: ", f->file);
	if (f->len)
		printf("lost: bytes %llu to %llu\n", (unsigned long long)f->logical_off,
		       (unsigned long long)(f->logical_off + f->len - 1));
	else
		printf("%s%s: %s%s%s\n", f->severity == PLFS_REPAIRED && job->check.dry_run ? "to be " : "",
		       SEVERITIES[f->severity], f->path, *f->path ? ": " : "", f->text);
}

static void found(void *arg, const struct plfs_finding *f)
{
	struct job *job = arg;

	progress_hide(&job->progress);
	if (job->json)
		print_json(f);
	else
		print_text(job, f);
	if (job->progress.on)
		fflush(stdout);
}

static void failed(struct job *job, const char *file, const char *text)
{
	struct plfs_finding f = { .severity = PLFS_FAILED, .file = file, .code = "unreadable", .path = "", .text = text };

	job->check.nr_failed++;
	if (job->json)
		found(job, &f);
	else
		tool_error("%s: %s", file, text);
}

static void progress(void *arg, const struct plfs_check *check)
{
	struct job *job = arg;

	progress_count(&job->progress, check->nr_files, check->log_bytes, check->nr_damaged);
}

/* ---- paths ---- */

static void check_path(struct job *job, const char *name)
{
	char path[PATH_MAX];
	struct plfs_mount *m;
	struct stat st;
	int ret;

	if (!target_find(name, path, &m)) {
		job->check.nr_failed++;
		return;
	}
	if (!m) {
		failed(job, name, "below no mapping, and on no backend");
		return;
	}
	if (lstat(path, &st)) {
		failed(job, name, strerror(errno));
		return;
	}
	if (S_ISDIR(st.st_mode)) {
		if (job->recursive)
			plfs_check_tree(m, path, job->nr_threads, &job->check);
		else
			failed(job, name, "a directory: -r looks at all that is below it");
		return;
	}
	if (!S_ISREG(st.st_mode)) {
		failed(job, name, S_ISLNK(st.st_mode) ? "a symbolic link: name the file that it leads to" :
		       "no regular file");
		return;
	}
	ret = plfs_check(m, AT_FDCWD, path, &job->check);
	if (ret == -EACCES || ret == -ENOENT || ret == -EPERM)
		tool_error("%s: %s", name, strerror(-ret));
}

static void print_sum(const struct job *job)
{
	const struct plfs_check *c = &job->check;

	if (job->json)
		printf("{\"files\": %llu, \"plain\": %llu, \"damaged\": %llu, \"repaired\": %llu, \"failed\": %llu, \"bytes\": %llu}\n",
		       (unsigned long long)c->nr_files, (unsigned long long)c->nr_plain, (unsigned long long)c->nr_damaged,
		       (unsigned long long)c->nr_repaired, (unsigned long long)c->nr_failed,
		       (unsigned long long)c->log_bytes);
	else
		printf("%llu logical files, %.1f MiB read: %llu damaged, %llu repaired, %llu failed\n",
		       (unsigned long long)c->nr_files,
		       (double)c->log_bytes / 1048576, (unsigned long long)c->nr_damaged, (unsigned long long)c->nr_repaired,
		       (unsigned long long)c->nr_failed);
}

static int run(struct job *job, const char *map, char **names, int nr)
{
	target_setup(map, names, nr);
	log_is_muted = true; /* what the library would say of each is found, and told, here */
	job->check.found = found;
	job->check.progress = progress;
	job->check.arg = job;
	progress_begin(&job->progress, "", 0);
	for (int i = 0; i < nr; i++)
		check_path(job, names[i]);
	progress_end(&job->progress);
	print_sum(job);
	if (tool_finish(TOOL_OK))
		return EXIT_UNCHECKED;
	return job->check.nr_failed ? EXIT_UNCHECKED : job->check.nr_damaged ? EXIT_DAMAGED : EXIT_SOUND;
}

static unsigned default_jobs(void)
{
	long nr = sysconf(_SC_NPROCESSORS_ONLN);

	return nr < 1 ? 1 : nr > 8 ? 8 : (unsigned)nr;
}

enum { OPT_JSON = 256, OPT_QUICK };

static const struct option OPTIONS[] = {
	{ "map", required_argument, NULL, 'm' },
	{ "recursive", no_argument, NULL, 'r' },
	{ "jobs", required_argument, NULL, 'j' },
	{ "dry-run", no_argument, NULL, 'n' },
	{ "partial", no_argument, NULL, 'p' },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "quick", no_argument, NULL, OPT_QUICK },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static int check_or_repair(int argc, char **argv, bool repair)
{
	struct job job = { .verb = argv[0], .nr_threads = default_jobs(), .check = { .repair = repair } };
	const char *map = NULL;
	uint64_t n;
	int c;

	opterr = 0;
	while ((c = getopt_long(argc, argv, repair ? "m:rj:nph" : "m:rj:h", OPTIONS, NULL)) != -1) {
		switch (c) {
		case 'm':
			map = optarg;
			break;
		case 'r':
			job.recursive = true;
			break;
		case 'j':
			if (!tool_number(optarg, 1, TOOL_JOBS_MAX, &n))
				return tool_misuse(job.verb, "\"%s\" is no number of jobs from 1 to %d", optarg,
						   TOOL_JOBS_MAX);
			job.nr_threads = (unsigned)n;
			break;
		case OPT_JSON:
			job.json = true;
			break;
		case OPT_QUICK:
			job.check.quick = true;
			break;
		case 'n':
		case 'p':
			if (!repair)
				return tool_misuse(job.verb, "bad option: %s", argv[optind - 1]);
			*(c == 'n' ? &job.check.dry_run : &job.check.partial) = true;
			break;
		default:
			return tool_other_option(job.verb, c, argv, repair ? HELP_REPAIR : HELP_CHECK);
		}
	}
	if (optind == argc)
		return tool_misuse(job.verb, "no path given");
	return run(&job, map, argv + optind, argc - optind);
}

int cmd_check(int argc, char **argv)
{
	return check_or_repair(argc, argv, false);
}

int cmd_repair(int argc, char **argv)
{
	return check_or_repair(argc, argv, true);
}
