/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plfs stage: options, output and exit codes. Core copies the logs.
 */
#include "options.h"
#include "places.h"
#include "progress.h"
#include "tool.h"

struct run {
	struct progress progress;
	struct plfs_drain drain;
	struct places places;
	bool drops, failed;
	bool misused, never; /* no file; what another attempt will not do either */
};

static void show(void *arg, const struct plfs_drain *d)
{
	struct run *r = arg;

	progress_count(&r->progress, d->nr_logs, d->bytes, NULL);
}

static void trouble(void *arg, const char *path, const char *why)
{
	struct run *r = arg;

	progress_hide(&r->progress);
	tool_error("%s: %s", path, why);
}

static int no_place(void *arg, struct top *top, struct plfs_mount *m)
{
	struct run *r = arg;

	(void)m;
	progress_hide(&r->progress);
	tool_error("%s: a place: name files", top->path);
	r->misused = true;
	return 0;
}

/* Whether it may be otherwise the next time. */
static bool may_pass(int err)
{
	static const int errors[] = { ENOSPC, EDQUOT, EBUSY,  EAGAIN, ETIME,
				      ENOMEM, EMFILE, ENFILE, EIO,    ESTALE };

	for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++)
		if (err == errors[i])
			return true;
	return false;
}

static int stage_one(void *arg, const char *name, const char *path, struct plfs_mount *m)
{
	struct run *r = arg;
	int ret = r->drain.keep ? plfs_drain_file(m, AT_FDCWD, path, &r->drain) :
				  plfs_stage_file(m, AT_FDCWD, path, r->drops, &r->drain);

	if (!ret || (ret == -ENOENT && r->places.walks))
		return 0;
	progress_hide(&r->progress);
	tool_error("%s: %s", name,
		   ret == -EOPNOTSUPP ? "its mapping has no near= (-m, or PLFS_MAP)" : strerror(-ret));
	r->failed = true;
	r->never |= !may_pass(-ret);
	return 0;
}

static void print_staged(const struct run *r, int rc)
{
	const struct plfs_drain *d = &r->drain;
	char size[TOOL_SIZE_LEN];

	if (opt.json) {
		printf("{\"logs\": %llu, \"bytes\": %llu, \"there\": %llu, \"left\": %llu, \"elsewhere\": %llu, \"lost\": %llu, \"exit\": %d}\n",
		       (unsigned long long)d->nr_logs, (unsigned long long)d->bytes,
		       (unsigned long long)d->nr_there, (unsigned long long)d->nr_left,
		       (unsigned long long)d->nr_elsewhere, (unsigned long long)d->nr_lost, rc);
		return;
	}
	if (opt.quiet || r->drops)
		return;
	tool_print("%llu logs %s, %s", (unsigned long long)d->nr_logs,
		   d->keep ? "moved home" : "staged", tool_size(d->bytes, size));
	if (d->nr_there)
		tool_print("%llu logs are on this node already", (unsigned long long)d->nr_there);
	if (d->nr_left)
		tool_print("%llu logs are left: open, or they could not be copied; try again later",
			   (unsigned long long)d->nr_left);
	if (d->nr_elsewhere)
		tool_print("%llu logs or places are not on this host: run plfs drain there",
			   (unsigned long long)d->nr_elsewhere);
	if (d->nr_lost)
		tool_print("%llu logs are damaged: plfs check lists what is lost",
			   (unsigned long long)d->nr_lost);
}

static int run_stage(const struct verb *v, int argc, char **argv)
{
	struct run r = { .drain = { .progress = show, .trouble = trouble },
			 .places = { .top = no_place, .file = stage_one, .arg = &r } };
	const struct plfs_drain *d = &r.drain;
	int rc, ret, c;

	r.drain.arg = &r;
	while ((c = options_next(v, argc, argv)) != -1) {
		if (c == OPT_TO) {
			r.drain.keep = !strcmp(optarg, "home");
			if (!r.drain.keep && strcmp(optarg, "near"))
				return tool_misuse(v->name, "--to is near or home");
		}
		if (c == OPT_RATE)
			r.drain.rate = options_size(v, "rate");
		r.drops |= c == OPT_DROP;
		r.places.recursive |= c == 'r';
	}
	if (optind == argc)
		return tool_misuse(v->name, "no file given");
	if (r.drops && r.drain.keep)
		return tool_misuse(v->name, "--drop does not go with --to home");
	progress_begin(&r.progress, argv[optind], 0);
	r.places.names = argv + optind;
	r.places.nr = r.places.nr_given = argc - optind;
	ret = places_each(&r.places);
	progress_end(&r.progress);
	r.failed |= d->nr_left || d->nr_elsewhere;
	rc = d->nr_lost || r.never || ret ? DRAIN_LOST :
	     r.misused			  ? TOOL_USAGE :
	     r.failed ? DRAIN_LEFT : TOOL_OK;
	print_staged(&r, rc);
	return tool_finish(rc);
}

const struct verb verb_stage = {
	.name = "stage",
	.run = run_stage,
	.what = "copy logs to this node, for its readers",
	.arguments = "FILE|DIRECTORY...",
	.about = "Copy the closed logs of files to the node-local place of this node (near= in libplfs(7)): its readers\n"
		 "take the bytes from there. The originals stay in the backend, so a copy that is lost loses nothing.\n",
	.end = "Exit status: 0 all is there; 75 something is not, try again; 1 something is damaged, or\n"
	       "no file that this user can stage; 2 a place was named.\n",
	.options = (const struct verb_option[]){
		{ 'r', "recursive", NULL, "take directories for all below them, up to whole backends" },
		{ OPT_TO, "to", "near|home", "home: move logs to the backend as plfs drain does, and keep copies here" },
		{ OPT_DROP, "drop", NULL, "remove the copies of this node" },
		{ OPT_RATE, "rate", "SIZE", "copy so many bytes a second at most: a number, and K, M, G or T" },
		{ 0 },
	},
};
