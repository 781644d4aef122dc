/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plfs drain and plfs places: options, output and exit codes. Core moves the logs.
 */
#include "background.h"
#include "options.h"
#include "places.h"
#include "progress.h"
#include "tool.h"

#include <stdlib.h>

/* ---- plfs drain ---- */

struct run {
	struct progress progress;
	struct plfs_drain drain;
	bool failed;
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

static int drain_top(void *arg, struct top *top, struct plfs_mount *m)
{
	struct run *r = arg;
	int ret = m ? plfs_drain_place(m, top->path, false, &r->drain) : -ENXIO;

	if (ret) {
		progress_hide(&r->progress);
		tool_error("%s: %s", top->path,
			   ret == -ENXIO ? "its backend is not there: nothing was moved or removed" :
					   strerror(-ret));
		r->failed = true;
	}
	return 0;
}

static int drain_one(void *arg, const char *name, const char *path, struct plfs_mount *m)
{
	struct run *r = arg;
	int ret = plfs_drain_file(m, AT_FDCWD, path, &r->drain);

	if (ret) {
		progress_hide(&r->progress);
		tool_error("%s: %s", name, strerror(-ret));
		r->failed = true;
	}
	return 0;
}

static void print_drained(const struct run *r, int rc)
{
	const struct plfs_drain *d = &r->drain;
	char size[TOOL_SIZE_LEN];

	if (opt.json) {
		printf("{\"logs\": %llu, \"bytes\": %llu, \"left\": %llu, \"elsewhere\": %llu, \"lost\": %llu, \"orphans\": %llu, \"exit\": %d}\n",
		       (unsigned long long)d->nr_logs, (unsigned long long)d->bytes,
		       (unsigned long long)d->nr_left, (unsigned long long)d->nr_elsewhere,
		       (unsigned long long)d->nr_lost, (unsigned long long)d->nr_orphans, rc);
		return;
	}
	if (opt.quiet)
		return;
	tool_print("%llu logs moved home, %s", (unsigned long long)d->nr_logs, tool_size(d->bytes, size));
	if (d->nr_left)
		tool_print("%llu logs stay: open, or they could not be moved; try again later",
			   (unsigned long long)d->nr_left);
	if (d->nr_elsewhere)
		tool_print("%llu places are not on this host: run plfs drain there",
			   (unsigned long long)d->nr_elsewhere);
	if (d->nr_lost)
		tool_print("%llu logs are damaged and stay: plfs check lists what is lost",
			   (unsigned long long)d->nr_lost);
	if (d->nr_orphans)
		tool_print("%llu containers of files that are gone were removed",
			   (unsigned long long)d->nr_orphans);
}

static int run_drain(const struct verb *v, int argc, char **argv)
{
	struct run r = { .drain = { .progress = show, .trouble = trouble } };
	int rc, ret, c;
	bool background = false;

	r.drain.arg = &r;
	while ((c = options_next(v, argc, argv)) != -1) {
		background |= c == OPT_BACKGROUND;
		if (c == OPT_RATE)
			r.drain.rate = options_size(v, "rate");
	}
	if (optind == argc)
		return tool_misuse(v->name, "no place and no file given");
	if (background)
		return background_drain(argv[optind], BACKGROUND_PATIENCE_S, r.drain.rate);
	progress_begin(&r.progress, argv[optind], 0);
	ret = places_each(argv + optind, argc - optind, drain_top, drain_one, &r);
	progress_end(&r.progress);
	rc = r.drain.nr_lost ? DRAIN_LOST :
	     ret || r.failed || r.drain.nr_left || r.drain.nr_elsewhere ? DRAIN_LEFT : TOOL_OK;
	print_drained(&r, rc);
	return tool_finish(rc);
}

const struct verb verb_drain = {
	.name = "drain",
	.run = run_drain,
	.what = "move logs from a node-local place to the backend",
	.arguments = "NEAR|FILE...",
	.about = "Move the closed logs of files, or all that this user has in the place NEAR (near= in libplfs(7)),\n"
		 "to the backend. Killed at any moment, it loses nothing, and goes on when it is run again.\n",
	.end = "Exit status: 0 all is in the backend; 75 something is not yet, try again; 1 something is damaged.\n",
	.options = (const struct verb_option[]){
		{ OPT_BACKGROUND, "background", NULL, "be the helper that the library starts (drain=helper); NEAR is PLACE/plfs.UID/ID" },
		{ OPT_RATE, "rate", "SIZE", "copy so many bytes a second at most: a number, and K, M, G or T" },
		{ 0 },
	},
};

/* ---- plfs places ---- */

struct listing {
	const char *name, *forget;
	bool failed;
};

static void print_json(const struct listing *l, const struct plfs_place *p)
{
	printf("{\"file\": ");
	tool_print_json(l->name);
	printf(", \"host\": ");
	tool_print_json(p->host);
	printf(", \"place\": ");
	tool_print_json(p->path);
	printf(", \"here\": %s", p->here ? "true" : "false");
	if (p->here)
		printf(", \"logs\": %llu, \"open\": %llu, \"bytes\": %llu", (unsigned long long)p->nr_logs,
		       (unsigned long long)p->nr_open, (unsigned long long)p->bytes);
	puts("}");
}

static int print_place(void *arg, const struct plfs_place *p)
{
	struct listing *l = arg;
	char size[TOOL_SIZE_LEN];

	if (opt.json)
		print_json(l, p);
	else if (p->here)
		tool_print("%s: on %s in %s: %llu logs (%llu open), %s", l->name, p->host, p->path,
			   (unsigned long long)p->nr_logs, (unsigned long long)p->nr_open,
			   tool_size(p->bytes, size));
	else
		tool_print("%s: on %s in %s: not on this host, or gone", l->name, p->host, p->path);
	return 0;
}

static int list_top(void *arg, struct top *top, struct plfs_mount *m)
{
	(void)arg;
	if (opt.json) {
		printf("{\"place\": ");
		tool_print_json(top->path);
		printf(", \"backend\": ");
		tool_print_json(top->home);
		printf(", \"reachable\": %s}\n", m ? "true" : "false");
	} else {
		tool_print("%s: of the backend %s%s", top->path, top->home, m ? "" : ", which is not there");
	}
	return 0;
}

static int forget(struct listing *l, const char *path, struct plfs_mount *m)
{
	unsigned nr = 0;
	int ret = plfs_places_forget(m, AT_FDCWD, path, l->forget, &nr);

	if (ret == -EBUSY)
		tool_error("%s: the place of %s is on this host: run plfs drain", l->name, l->forget);
	else if (ret)
		tool_error("%s: %s", l->name, strerror(-ret));
	else if (!nr)
		tool_error("%s: has nothing on %s", l->name, l->forget);
	else if (!opt.quiet)
		tool_print("%s: what %s had is given up: plfs check lists what is lost", l->name, l->forget);
	l->failed |= ret || !nr;
	return 0;
}

static int list_one(void *arg, const char *name, const char *path, struct plfs_mount *m)
{
	struct listing *l = arg;
	int ret;

	l->name = name;
	if (l->forget)
		return forget(l, path, m);
	ret = plfs_places_of(m, AT_FDCWD, path, print_place, l);
	if (ret < 0) {
		tool_error("%s: %s", name, strerror(-ret));
		l->failed = true;
	}
	return 0;
}

static int run_places(const struct verb *v, int argc, char **argv)
{
	struct listing l = { .name = "" };
	int c, ret;

	while ((c = options_next(v, argc, argv)) != -1)
		if (c == OPT_FORGET)
			l.forget = optarg;
	if (optind == argc)
		return tool_misuse(v->name, "no place and no file given");
	ret = places_each(argv + optind, argc - optind, list_top, list_one, &l);
	return tool_finish(ret || l.failed ? TOOL_FAILED : TOOL_OK);
}

const struct verb verb_places = {
	.name = "places",
	.run = run_places,
	.what = "show what of a file is in node-local places",
	.arguments = "NEAR|FILE...",
	.about = "Show in which places logs of files are (near= in libplfs(7)), or of which backends NEAR has some.\n",
	.end = "Exit status: 0 all was shown, or given up; 1 something could not be done.\n",
	.options = (const struct verb_option[]){
		{ OPT_FORGET, "forget", "HOST", "give up on what the files have on HOST, which is lost" },
		{ 0 },
	},
};
