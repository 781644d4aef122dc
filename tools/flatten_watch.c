/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What happens while plfs flatten copies: progress, damaged ranges, and signals.
 */
#include "flatten_watch.h"

#include "total.h"

#include "core/base/vec.h"

#include <signal.h>
#include <stdlib.h>

#define RANGES_MAX 100 /* that are printed one by one, as those of plfs check */

bool flatten_partial;

static char doomed[PATH_MAX]; /* a signal removes this file */
static volatile sig_atomic_t is_doomed;

static void remove_and_die(int sig)
{
	if (is_doomed)
		unlink(doomed);
	signal(sig, SIG_DFL);
	raise(sig);
}

void flatten_temp_named(void *arg, const char *path)
{
	(void)arg;
	is_doomed = 0;
	if (!path)
		return;
	snprintf(doomed, sizeof(doomed), "%s", path);
	is_doomed = 1;
}

/* ---- progress ---- */

static struct {
	bool on;
	struct progress progress;
	uint64_t files, bytes; /* done */
} all;

void flatten_all_begin(char *const *paths, int nr)
{
	all.on = true;
	all.files = all.bytes = 0;
	progress_begin(&all.progress, "", 0);
	if (all.progress.on)
		total_begin(paths, nr);
}

void flatten_all_end(void)
{
	total_end();
	progress_end(&all.progress);
	all.on = false;
}

void flatten_all_hide(void)
{
	if (all.on)
		progress_hide(&all.progress);
}

/* What was flattened before it was counted is not in the total. */
static void show_all(uint64_t done)
{
	uint64_t files, bytes;

	if (all.progress.on && total_known(&files, &bytes) && bytes) {
		all.progress.part = (double)(all.bytes + done) / (double)bytes;
		all.progress.part = all.progress.part > 0.99 ? 0.99 : all.progress.part;
	}
	progress_count(&all.progress, all.files, all.bytes + done, NULL);
}

static void copied(void *arg, uint64_t done)
{
	struct watched *w = arg;

	if (all.on)
		show_all(done);
	else
		progress_show(w->progress, done);
}

static void drop_ranges(struct watched *w)
{
	for (size_t i = 0; i < w->nr; i++)
		free(w->ranges[i].why);
	w->nr = 0;
}

/* Neighbours are one range, if one fault is the cause of both. */
static void lost(void *arg, uint64_t off, uint64_t len, bool as_they_are, const char *why)
{
	struct watched *w = arg;
	struct range *last = w->nr ? &w->ranges[w->nr - 1] : NULL, *ranges;

	if (last && off < last->off + last->len) { /* it began again */
		drop_ranges(w);
		last = NULL;
	}
	if (last && last->off + last->len == off && last->as_they_are == as_they_are &&
	    !strcmp(last->why, why)) {
		last->len += len;
		return;
	}
	ranges = vec_room(w->ranges, &w->cap, w->nr + 1, sizeof(*ranges));
	if (!ranges) {
		tool_error("%s", strerror(ENOMEM));
		exit(TOOL_FAILED);
	}
	w->ranges = ranges;
	ranges[w->nr++] = (struct range){ off, len, as_they_are, strdup(why) };
}

void flatten_watch(struct watched *w, const struct target *t)
{
	w->watch.progress = copied;
	w->watch.lost = lost;
	w->watch.partial = flatten_partial;
	w->watch.arg = w;
	w->size = t->size;
	w->progress = all.on ? &all.progress : &w->one;
	if (!all.on)
		progress_begin(w->progress, t->name, t->size);
}

int flatten_unwatch(struct watched *w, const char *name, int ret, const char *hint)
{
	uint64_t bytes = 0;

	if (all.on) {
		all.files++;
		all.bytes += w->size;
		show_all(0);
		if (ret || w->nr)
			flatten_all_hide();
	} else {
		progress_end(w->progress);
	}
	for (size_t i = 0; i < w->nr && !ret; i++) {
		const struct range *r = &w->ranges[i];

		bytes += r->len;
		if (i >= RANGES_MAX)
			continue;
		if (!i || strcmp(r->why, r[-1].why))
			tool_error("%s: %s", name, r->why);
		tool_error("%s: bytes %llu to %llu are %s", name, (unsigned long long)r->off,
			   (unsigned long long)(r->off + r->len - 1),
			   r->as_they_are ? "damaged, and copied as they are" : "lost, and zeros in the copy");
	}
	if (!ret && w->nr > RANGES_MAX)
		tool_error("%s: and %zu more ranges; in all %llu bytes in %zu ranges", name,
			   w->nr - RANGES_MAX, (unsigned long long)bytes, w->nr);
	if (ret == -EIO && !flatten_partial)
		hint = "; it stays as it is; plfs check lists what is lost, and with --partial the rest is "
		       "copied";
	if (ret)
		tool_error("%s: %s%s", name, *w->watch.why ? w->watch.why : strerror(-ret), hint);
	ret = ret ? ret : w->nr > 0;
	drop_ranges(w);
	mem_free(w->ranges);
	return ret;
}

void flatten_watch_signals(void)
{
	static const int signals[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE };

	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		if (signal(signals[i], remove_and_die) == SIG_IGN)
			signal(signals[i], SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* the limit on file sizes: an error of the write */
}
