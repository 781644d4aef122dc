/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plfs doctor: options, the sum, and the exit code.
 */
#include "doctor.h"
#include "options.h"


enum { EXIT_WELL = 0, EXIT_ILL = 1, EXIT_UNEXAMINED = 2 };

static int print_sum(const struct doctor *d)
{
	int rc = d->nr_ills ? EXIT_ILL : EXIT_WELL;

	if (opt.json) {
		printf("{\"backend\": ");
		tool_print_json(d->backend);
		printf(", \"file_system\": ");
		tool_print_json(d->type);
		printf(", \"mount_options\": ");
		tool_print_json(d->options);
		printf(", \"problems\": %u, \"notes\": %u, \"exit\": %d}\n", d->nr_ills, d->nr_remarks, rc);
	} else {
		tool_print("%s on %s: %u problem%s, %u note%s%s", d->backend, d->type, d->nr_ills,
			   d->nr_ills == 1 ? "" : "s", d->nr_remarks, d->nr_remarks == 1 ? "" : "s",
			   d->quick ? "; its files were not looked at" : "");
	}
	return rc;
}

/* ---- the command ---- */

static int examine(struct doctor *d, const char *name)
{
	char path[PATH_MAX];
	int rc = EXIT_UNEXAMINED;
	struct stat st;

	if (!target_find(name, path, &d->m))
		return rc;
	if (stat(path, &st)) {
		tool_error("%s: %s", name, strerror(errno));
		return rc;
	}
	if (!d->m) {
		tool_error("%s: not a directory, or PLFSRC has no mapping of it: give one with -m", name);
		return rc;
	}
	msg_is_muted = true; /* the findings say what the library would */
	d->backend = plfs_backend(d->m);
	d->dir = open(d->backend, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (d->dir >= 0 && !fstat(d->dir, &d->st)) {
		d->plfs = openat(d->dir, PLFS_DIR_NAME, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (d->plfs >= 0)
			fstat(d->plfs, &d->plfs_st);
		doctor_backend(d);
		doctor_file_system(d);
		if (!d->quick && d->plfs >= 0)
			doctor_tree(d);
		rc = print_sum(d);
	} else {
		tool_error("%s: %s", d->backend, strerror(errno));
	}
	if (d->plfs >= 0)
		close(d->plfs);
	if (d->dir >= 0)
		close(d->dir);
	return rc;
}

static int run(const struct verb *v, int argc, char **argv)
{
	struct doctor d = { .dir = -1, .plfs = -1, .fd = -1, .nr_threads = 4 };
	int c;

	while ((c = options_next(v, argc, argv)) != -1) {
		if (c == OPT_QUICK)
			d.quick = true;
		else
			d.nr_threads = options_jobs(v);
	}
	if (argc - optind != 1)
		return tool_misuse(v->name, optind == argc ? "no directory given" :
							     "more than one directory given");
	target_setup_directory(opt.map, argv[optind]);
	c = examine(&d, argv[optind]);
	return tool_finish(c) == c ? c : EXIT_UNEXAMINED;
}

const struct verb verb_doctor = {
	.name = "doctor",
	.run = run,
	.what = "show what a directory can as a backend, and what is wrong with it",
	.arguments = "DIRECTORY",
	.about = "Show what DIRECTORY can and cannot as a backend, and what is wrong with it, each with the command that\n"
		 "mends it. Nothing is changed, and nothing is left behind. With -q, only what is not in order.\n",
	.end = "Exit status: 0 nothing is wrong; 1 something is; 2 DIRECTORY could not be examined.\n",
	.options = (const struct verb_option[]){
		{ 'j', "jobs", "N", "look at N files at once (default 4)" },
		{ OPT_QUICK, "quick", NULL, "do not look at the files and containers" },
		{ 0 },
	},
};
