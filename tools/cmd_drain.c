/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plfs drain: options, output and exit codes. Core moves the logs.
 */
#include "auto.h"
#include "background.h"
#include "copying.h"
#include "options.h"
#include "places.h"
#include "progress.h"
#include "tool.h"
#include "total.h"
#include "waiting.h"

#include <stdlib.h>
#include <string.h>

/* What is to be drained: a place's directory of one backend, or a file. */
struct wanted {
	char *name, *path;
	struct plfs_mount *m; /* NULL: its backend is not there */
	bool is_place, is_below; /* of a directory that was named: it may be gone meanwhile */
	bool is_gone; /* a file that is not there */
	uint64_t nr_left; /* by the last pass; also what is elsewhere, and what could not be looked at */
};

struct run {
	struct progress progress;
	struct plfs_drain drain;
	struct waiting w;
	struct places places;
	struct wanted *v;
	size_t nr;
	uint64_t nr_tried; /* logs of killed processes for which the backend was searched */
	unsigned nr_passes; /* since then */
	char why[2 * PATH_MAX]; /* with --wait: the last trouble of the last pass */
	char **named; /* with --auto: the arguments */
	int nr_named; /* -1: there is no --auto */
	bool failed; /* something could not be looked at */
	bool misused; /* a backend of spread= was named */
};

static void show(void *arg, const struct plfs_drain *d)
{
	struct run *r = arg;
	uint64_t logs, bytes;

	if (r->progress.on && total_known(&logs, &bytes) && bytes) {
		r->progress.part = (double)d->bytes / (double)bytes;
		r->progress.part = r->progress.part > 0.99 ? 0.99 : r->progress.part;
	}
	progress_count(&r->progress, d->nr_logs, d->bytes, NULL);
}

/* Who waits reports at the end what is still so. */
static void trouble(void *arg, const char *path, const char *why)
{
	struct run *r = arg;

	if (r->w.waits) {
		snprintf(r->why, sizeof(r->why), "%s: %s", path, why);
		return;
	}
	progress_hide(&r->progress);
	tool_error("%s: %s", path, why);
}

static int add_wanted(struct run *r, const char *name, const char *path, struct plfs_mount *m, bool is_place)
{
	struct wanted *v = realloc(r->v, (r->nr + 1) * sizeof(*v));

	if (!v)
		return -ENOMEM;
	r->v = v;
	v[r->nr] = (struct wanted){
		.name = strdup(name), .path = strdup(path), .m = m, .is_place = is_place,
		.is_below = r->places.walks,
	};
	return v[r->nr].name && v[r->nr].path ? (r->nr++, 0) : -ENOMEM;
}

/*
 * Whether --auto alone leads to it, and it is of a backend of another job: one that no near=auto of the
 * settings has, if there is any.
 */
static bool is_of_others(const struct run *r, const struct top *top, const struct plfs_mount *m)
{
	bool finds = false;

	for (int i = 0; i < r->nr_named; i++) {
		size_t len = strlen(r->named[i]);

		while (len && r->named[i][len - 1] == '/')
			len--;
		if (!strncmp(top->path, r->named[i], len) && (top->path[len] == '/' || !top->path[len]))
			return false;
	}
	for (int i = 0; plfs_mount_at(i); i++)
		finds |= plfs_finds_near(plfs_mount_at(i));
	return r->nr_named >= 0 && finds && (!m || !plfs_finds_near(m));
}

static int add_top(void *arg, struct top *top, struct plfs_mount *m)
{
	struct run *r = arg;

	if (is_of_others(r, top, m))
		return 0;
	if (!plfs_place_is_shared(top->path))
		return add_wanted(r, top->path, top->path, m, true);
	tool_error("%s: of a backend of spread=, and no place: its logs stay there, but for plfs drain --to home FILE",
		   top->path);
	r->misused = true;
	return 0;
}

static int add_file(void *arg, const char *name, const char *path, struct plfs_mount *m)
{
	return add_wanted(arg, name, path, m, false);
}

#define AGAIN 8 /* passes: a helper may have had their files at the same time */

/* Logs of killed processes need the whole backend: for each number of them, and now and then. */
static int drain_place(struct run *r, const struct wanted *t)
{
	struct plfs_drain *d = &r->drain;
	uint64_t left = d->nr_left;
	int ret = t->m ? plfs_drain_place(t->m, t->path, false, d) : -ENXIO;

	if (ret || !d->closed_only || !d->nr_dead || (d->nr_dead <= r->nr_tried && ++r->nr_passes % AGAIN))
		return ret;
	r->nr_tried = d->nr_dead;
	d->closed_only = false;
	d->nr_left = left;
	ret = plfs_drain_place(t->m, t->path, false, d);
	d->closed_only = true;
	return ret;
}

static void drain_one(struct run *r, struct wanted *t)
{
	struct plfs_drain *d = &r->drain;
	uint64_t left = d->nr_left, elsewhere = d->nr_elsewhere;
	int ret;

	d->nr_open = d->nr_dead = 0;
	ret = t->is_place ? drain_place(r, t) : plfs_drain_file(t->m, AT_FDCWD, t->path, d);
	if (ret == -ENOENT && t->is_below)
		ret = 0;
	if (t->is_place && d->closed_only)
		d->nr_left += d->nr_open;
	t->is_gone = ret == -ENOENT && !t->is_place;
	t->nr_left = d->nr_left - left + d->nr_elsewhere - elsewhere + (ret && !t->is_gone);
	if (!ret)
		return;
	r->failed |= !t->is_gone;
	if (r->w.waits && !t->is_gone) {
		snprintf(r->why, sizeof(r->why), "%s: %s", t->name, strerror(-ret));
		return;
	}
	progress_hide(&r->progress);
	tool_error("%s: %s", t->name,
		   ret == -ENXIO ? "its backend is not there: nothing was moved or removed" : strerror(-ret));
}

/* An exit code: what all of them are by now. */
static int drain_all(struct run *r)
{
	struct plfs_drain *d = &r->drain;
	bool gone = false;

	d->nr_left = d->nr_elsewhere = 0;
	r->failed = false;
	*r->why = '\0';
	for (size_t i = 0; i < r->nr; i++) {
		if (!r->v[i].is_gone)
			drain_one(r, &r->v[i]);
		gone |= r->v[i].is_gone;
	}
	return d->nr_lost				     ? DRAIN_LOST :
	       r->failed || d->nr_left || d->nr_elsewhere ? DRAIN_LEFT :
	       gone					     ? TOOL_FAILED : TOOL_OK;
}

static int drain_and_wait(struct run *r)
{
	uint64_t logs = 0;
	int rc;

	r->drain.closed_only = r->w.waits;
	r->drain.until_ns = r->w.until_ns;
	while ((rc = drain_all(r)) == DRAIN_LEFT && waiting_pause(&r->w)) {
		if (r->drain.nr_logs != logs)
			waiting_restart(&r->w);
		logs = r->drain.nr_logs;
	}
	if (rc != DRAIN_LEFT || !r->w.waits)
		return rc;
	progress_hide(&r->progress);
	for (size_t i = 0; i < r->nr; i++)
		if (r->v[i].nr_left)
			tool_error("%s: not all is in the backend", r->v[i].name);
	if (*r->why)
		tool_error("%s", r->why);
	return rc;
}

static void print_drained(const struct run *r, int rc)
{
	const struct plfs_drain *d = &r->drain;
	char size[TOOL_SIZE_LEN];

	if (opt.json) {
		printf("{\"logs\": %llu, \"copies\": %llu, \"parity\": %llu, \"bytes\": %llu, \"left\": %llu, \"elsewhere\": %llu, \"lost\": %llu, \"orphans\": %llu, \"exit\": %d}\n",
		       (unsigned long long)d->nr_logs, (unsigned long long)d->nr_copies,
		       (unsigned long long)d->nr_parity,
		       (unsigned long long)d->bytes,
		       (unsigned long long)d->nr_left, (unsigned long long)d->nr_elsewhere,
		       (unsigned long long)d->nr_lost, (unsigned long long)d->nr_orphans, rc);
		return;
	}
	if (opt.quiet)
		return;
	tool_print("%llu logs moved home, %s", (unsigned long long)d->nr_logs, tool_size(d->bytes, size));
	if (d->nr_copies)
		tool_print("%llu logs copied to other backends, their bytes are among these",
			   (unsigned long long)d->nr_copies);
	if (d->nr_parity)
		tool_print("%llu parity files made, the bytes read for them are among these",
			   (unsigned long long)d->nr_parity);
	if (d->nr_left)
		tool_print("%llu logs stay, or lack copies or parity: open, or it could not be done; try again later",
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

/* Drain with a bar. How much there is can be counted where all of it is in places. */
static int drain_watched(struct run *r)
{
	char **paths = calloc(r->nr + 1, sizeof(*paths));
	bool places = paths && r->nr;
	int rc;

	progress_begin(&r->progress, r->places.nr ? r->places.names[0] : "", 0);
	for (size_t i = 0; i < r->nr && places; i++) {
		paths[i] = r->v[i].path;
		places = r->v[i].is_place;
	}
	if (r->progress.on && places)
		total_begin_logs(paths, (int)r->nr);
	rc = drain_and_wait(r);
	total_end();
	progress_end(&r->progress);
	free(paths);
	return rc;
}

static int run_drain(const struct verb *v, int argc, char **argv)
{
	struct run r = { .drain = { .progress = show, .trouble = trouble },
			 .places = { .top = add_top, .file = add_file, .arg = &r } };
	int rc, ret, c;
	bool background = false, copies = false, is_auto = false;
	char **names;

	r.drain.arg = &r;
	while ((c = options_next(v, argc, argv)) != -1) {
		background |= c == OPT_BACKGROUND;
		copies |= c == OPT_COPIES;
		is_auto |= c == OPT_AUTO;
		if (c == OPT_TO && strcmp(optarg, "home"))
			return tool_misuse(v->name, "--to is home");
		r.drain.to_home |= c == OPT_TO;
		r.places.recursive |= c == 'r';
		if (c == OPT_RATE)
			r.drain.rate = options_size(v, "rate");
		if (c == OPT_WRITERS)
			r.drain.writers = options_number(v, "writers", 4096);
		waiting_take(&r.w, v, c);
	}
	if (optind == argc && (!is_auto || background || copies))
		return tool_misuse(v->name, "no place and no file given");
	if (background)
		return background_drain(argv[optind], BACKGROUND_PATIENCE_S, &r.drain);
	if (copies)
		return copying_run(argv[optind], BACKGROUND_PATIENCE_S, &r.drain);
	rc = waiting_begin(&r.w, v);
	if (rc)
		return rc;
	names = argv + optind;
	c = argc - optind;
	r.named = names;
	r.places.nr_given = c;
	r.nr_named = is_auto ? c : -1;
	if (is_auto && !auto_add(&names, &c))
		return tool_finish(TOOL_FAILED);
	r.places.names = names;
	r.places.nr = c;
	ret = places_each(&r.places);
	rc = drain_watched(&r);
	r.misused |= ret == -EISDIR;
	if (rc == TOOL_OK && ret && ret != -EISDIR)
		rc = ret == -EINVAL ? TOOL_FAILED : DRAIN_LEFT;
	print_drained(&r, rc);
	return tool_finish(rc == TOOL_OK && r.misused ? TOOL_USAGE : rc);
}

const struct verb verb_drain = {
	.name = "drain",
	.run = run_drain,
	.what = "move logs from a node-local place to the backend",
	.arguments = "NEAR|FILE|DIRECTORY...\n--auto [NEAR|FILE|DIRECTORY...]",
	.about = "Move the closed logs of files, or all that this user has in the place NEAR (near= in libplfs(7)),\n"
		 "to the backend. Killed at any moment, it loses nothing, and goes on when it is run again.\n",
	.end = "Exit status: 0 all is in the backend; 75 something is not yet, try again; 1 something is\n"
	       "damaged, or there is no such file.\n",
	.options = (const struct verb_option[]){
		{ 'r', "recursive", NULL, "take directories for all below them, up to whole backends" },
		{ OPT_AUTO, "auto", NULL, "drain also the directories of this node that near=auto may have taken" },
		{ OPT_BACKGROUND, "background", NULL, "be the helper that the library starts (drain=helper); NEAR is PLACE/plfs.UID/ID" },
		{ OPT_COPIES, "copies", NULL, "be the helper that the library starts with mirror= or parity=; NEAR is the backend" },
		{ OPT_TO, "to", "home", "of files: move also what is in other backends (spread=) to the first" },
		{ OPT_WAIT, "wait", NULL, "wait until all is in the backend, also what is being written" },
		{ OPT_TIMEOUT, "timeout", "SECONDS", "with --wait: so long at most" },
		{ OPT_RATE, "rate", "SIZE", "copy so many bytes a second at most: a number, and K, M, G or T" },
		{ OPT_WRITERS, "writers", "NUMBER", "copy while no more than so many processes of all hosts do" },
		{ 0 },
	},
};
