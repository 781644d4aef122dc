/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plfs check and plfs repair: options, output for people or as JSON, and exit codes.
 */
#include "options.h"
#include "progress.h"
#include "tool.h"
#include "total.h"

#include <stdlib.h>
#include <time.h>

#define JSON_LOST_MAX 1000 /* for scripts, not for people */

enum { EXIT_SOUND = 0, EXIT_DAMAGED = 1, EXIT_UNCHECKED = 2 };

/*
 * Findings of one kind in one file, one behind the other, that are no damage now: a killed job leaves one for
 * each of its ranks.
 */
#define SHOWN_MAX 3
struct alike {
	enum plfs_severity severity;
	char file[PATH_MAX], code[32];
	uint64_t nr;
};

struct job {
	bool recursive;
	struct alike alike;
	unsigned nr_threads;
	struct progress progress;
	struct plfs_check check;
	uint64_t named_bytes; /* of the sizes of files that were named, and are done */
	uint64_t now_bytes, now_from; /* size of the one that is being checked; log_bytes before it */
	double begun_s;
};

/* What a name on the command line leads to. */
struct place {
	const char *name;
	char *path; /* NULL: nothing, as was said */
	struct plfs_mount *m;
};

/* ---- findings ---- */

static const char *const SEVERITIES[] = {
	[PLFS_NOTED] = "note",	    [PLFS_DAMAGED] = "damage", [PLFS_REPAIRED] = "repaired",
	[PLFS_REMAINS] = "remains", [PLFS_FAILED] = "failed",
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
	if (f->len)
		tool_print("%s: lost: bytes %llu to %llu", f->file, (unsigned long long)f->logical_off,
			   (unsigned long long)(f->logical_off + f->len - 1));
	else
		tool_print("%s: %s%s: %s%s%s", f->file, f->severity == PLFS_REPAIRED && job->check.dry_run ? "to be " : "",
		       SEVERITIES[f->severity], f->path, *f->path ? ": " : "", f->text);
}

static void end_alike(struct job *job)
{
	struct alike *a = &job->alike;

	if (a->nr > SHOWN_MAX)
		tool_print("%s: %s%s: and %llu more like these (-v shows them)", a->file,
			   a->severity == PLFS_REPAIRED && job->check.dry_run ? "to be " : "",
			   SEVERITIES[a->severity], (unsigned long long)(a->nr - SHOWN_MAX));
	a->nr = 0;
}

/* Whether @f is one too many of its kind, and is only counted. */
static bool is_counted(struct job *job, const struct plfs_finding *f)
{
	struct alike *a = &job->alike;

	if (opt.verbose || (f->severity != PLFS_NOTED && f->severity != PLFS_REPAIRED))
		return false;
	if (!a->nr || a->severity != f->severity || strcmp(a->code, f->code) || strcmp(a->file, f->file)) {
		end_alike(job);
		a->severity = f->severity;
		snprintf(a->file, sizeof(a->file), "%s", f->file);
		snprintf(a->code, sizeof(a->code), "%s", f->code);
	}
	return ++a->nr > SHOWN_MAX;
}

static void found(void *arg, const struct plfs_finding *f)
{
	struct job *job = arg;

	if ((opt.quiet && f->severity == PLFS_NOTED) || (!opt.json && is_counted(job, f)))
		return;
	progress_hide(&job->progress);
	if (opt.json)
		print_json(f);
	else
		print_text(job, f);
	if (job->progress.on)
		fflush(stdout);
}

static void failed(struct job *job, const char *file, const char *text)
{
	struct plfs_finding f = { .severity = PLFS_FAILED, .file = file, .code = "unreadable", .path = "",
		.text = text };

	job->check.nr_failed++;
	if (opt.json)
		found(job, &f);
	else
		tool_error("%s: %s", file, text);
}

static void progress(void *arg, const struct plfs_check *check)
{
	struct job *job = arg;
	uint64_t files, bytes, done = job->named_bytes + check->done_bytes;

	done += min_u64(check->log_bytes - job->now_from, job->now_bytes);

	if (job->progress.on && total_known(&files, &bytes)) {
		job->progress.part = check->quick ? (double)check->nr_files / (double)(files ? files : 1) :
						    (double)done / (double)(bytes ? bytes : 1);
		job->progress.part = job->progress.part > 0.99 ? 0.99 : job->progress.part;
	}
	progress_count(&job->progress, check->nr_files, check->log_bytes, &check->nr_damaged);
}

/* ---- paths ---- */

static void find_place(struct job *job, struct place *p)
{
	char path[PATH_MAX];

	if (!target_follow(p->name, path, &p->m))
		job->check.nr_failed++;
	else if (!p->m)
		failed(job, p->name,
		       target_unmapped(path, "not below a mapped directory and not on a backend: give a mapping with "
					     "-m, or a path on a backend"));
	else if (!(p->path = strdup(path)))
		failed(job, p->name, strerror(ENOMEM));
}

static void check_place(struct job *job, const struct place *p)
{
	struct stat st;
	int ret;

	if (lstat(p->path, &st)) {
		failed(job, p->name, strerror(errno));
		return;
	}
	if (S_ISDIR(st.st_mode)) {
		if (job->recursive)
			plfs_check_tree(p->m, p->path, job->nr_threads, &job->check);
		else
			failed(job, p->name, "a directory: use -r to check everything below it");
		return;
	}
	if (!S_ISREG(st.st_mode)) {
		failed(job, p->name, "not a regular file");
		return;
	}
	job->now_bytes = (uint64_t)st.st_size;
	job->now_from = job->check.log_bytes;
	ret = plfs_check(p->m, AT_FDCWD, p->path, &job->check);
	if (ret == -EACCES || ret == -ENOENT || ret == -EPERM)
		tool_error("%s: %s", p->name, strerror(-ret));
	job->named_bytes += job->now_bytes;
	job->now_bytes = 0;
}

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void print_sum(const struct job *job)
{
	const struct plfs_check *c = &job->check;
	double seconds = now_s() - job->begun_s;
	char size[TOOL_SIZE_LEN], rate[TOOL_SIZE_LEN], took[TOOL_SIZE_LEN + 40] = "";

	tool_size((uint64_t)((double)c->log_bytes / (seconds > 0.001 ? seconds : 0.001)), rate);
	if (c->log_bytes)
		snprintf(took, sizeof(took), " in %.1f s (%s/s)", seconds, rate);
	if (opt.json)
		printf("{\"files\": %llu, \"plain\": %llu, \"damaged\": %llu, \"repaired\": %llu, \"failed\": %llu, \"bytes\": %llu}\n",
		       (unsigned long long)c->nr_files, (unsigned long long)c->nr_plain,
		       (unsigned long long)c->nr_damaged, (unsigned long long)c->nr_repaired,
		       (unsigned long long)c->nr_failed, (unsigned long long)c->log_bytes);
	else
		printf("%llu logical files, %s read%s: %llu damaged, %llu repaired, %llu failed%s\n",
		       (unsigned long long)c->nr_files, tool_size(c->log_bytes, size), took,
		       (unsigned long long)c->nr_damaged, (unsigned long long)c->nr_repaired,
		       (unsigned long long)c->nr_failed,
		       c->repair && c->dry_run && !c->nr_damaged && !c->nr_repaired && !c->nr_failed ?
		       "; there is nothing to repair" : "");
}

static void check_places(struct job *job, const struct place *places, int nr)
{
	for (int i = 0; i < nr; i++) {
		uint64_t nr_files = job->check.nr_files, nr_damaged = job->check.nr_damaged;

		if (!places[i].path)
			continue;
		check_place(job, &places[i]);
		progress_hide(&job->progress);
		if (opt.verbose && !opt.json)
			tool_print("%s: %llu logical files, %llu damaged", places[i].name,
				   (unsigned long long)(job->check.nr_files - nr_files),
				   (unsigned long long)(job->check.nr_damaged - nr_damaged));
	}
}

/* All are found before the first is checked: the total is known sooner. */
static void check_all(struct job *job, char **names, int nr)
{
	struct place *places = calloc((size_t)nr, sizeof(*places));
	char **paths = calloc((size_t)nr, sizeof(*paths));
	int nr_paths = 0;

	if (places && paths) {
		for (int i = 0; i < nr; i++) {
			places[i].name = names[i];
			find_place(job, &places[i]);
			if (places[i].path)
				paths[nr_paths++] = places[i].path;
		}
		if (job->progress.on)
			total_begin(paths, nr_paths);
		check_places(job, places, nr);
		total_end();
		for (int i = 0; i < nr_paths; i++)
			free(paths[i]);
	} else {
		failed(job, *names, strerror(ENOMEM));
	}
	free(paths);
	free(places);
}

static int run(struct job *job, const char *map, char **names, int nr)
{
	target_setup(map, names, nr);
	msg_is_muted = true; /* the findings report what the library would */
	job->check.found = found;
	job->check.progress = progress;
	job->check.arg = job;
	job->check.lost_max = opt.json ? JSON_LOST_MAX : 0;
	job->begun_s = now_s();
	progress_begin(&job->progress, "", 0);
	check_all(job, names, nr);
	progress_end(&job->progress);
	end_alike(job);
	if (opt.json || !opt.quiet)
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

static int run_either(const struct verb *v, int argc, char **argv)
{
	struct job job = { .nr_threads = default_jobs(), .check = { .repair = v == &verb_repair } };
	int c;

	while ((c = options_next(v, argc, argv)) != -1) {
		switch (c) {
		case 'r':
			job.recursive = true;
			break;
		case 'j':
			job.nr_threads = options_jobs(v);
			break;
		case OPT_QUICK:
			job.check.quick = true;
			break;
		case 'n':
			job.check.dry_run = true;
			break;
		case 'p':
			job.check.partial = true;
			break;
		}
	}
	if (optind == argc)
		return tool_misuse(v->name, "no path given");
	return run(&job, opt.map, argv + optind, argc - optind);
}

const struct verb verb_check = {
	.name = "check",
	.run = run_either,
	.what = "check files for damage",
	.arguments = "PATH...",
	.about = "Check logical files for damage. Nothing is changed.\n",
	.end = "Exit status: 0 everything is sound; 1 something is damaged; 2 something could not be checked.\n",
	.options = (const struct verb_option[]){
		{ 'r', "recursive", NULL, "check directories and everything below them, up to whole backends" },
		{ 'j', "jobs", "N", "check N files at once" },
		{ OPT_QUICK, "quick", NULL, "do not read the data of the files" },
		{ 0 },
	},
};

const struct verb verb_repair = {
	.name = "repair",
	.run = run_either,
	.what = "repair damaged files as far as that takes no guess",
	.arguments = "PATH...",
	.about = "Check logical files and repair them as far as that takes no guess. Replaced parts are kept.\n",
	.end = "Exit status: 0 everything is sound now; 1 some damage remains; 2 something could not be done.\n",
	.options = (const struct verb_option[]){
		{ 'n', "dry-run", NULL, "only show what would be done" },
		{ 'p', "partial", NULL, "make a file readable even if a part is lost; it reads as older bytes, or zeros" },
		{ 'r', "recursive", NULL, "repair directories and everything below them, up to whole backends" },
		{ 'j', "jobs", "N", "repair N files at once" },
		{ OPT_QUICK, "quick", NULL, "do not read the data of the files" },
		{ 0 },
	},
};
