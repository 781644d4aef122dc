/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Drawing the progress bar.
 */
#include "progress.h"

#include "options.h"
#include "tool.h"

#include "core/base/printable.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define BAR_WIDTH 30
#define NAME_WIDTH 24
#define SHOW_MS 100

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

void progress_begin(struct progress *p, const char *name, uint64_t total)
{
	size_t len = strlen(name);

	p->on = !opt.quiet && isatty(STDERR_FILENO);
	name += len > NAME_WIDTH ? len - NAME_WIDTH : 0;
	p->name[printable_copy(p->name, sizeof(p->name) - 1, name, strlen(name))] = '\0';
	p->total = total;
	p->part = 0;
	p->begun_ms = p->on ? now_ms() : 0;
	p->shown_ms = p->begun_ms;
}

/* The time left, when there is some to tell it by. */
static void print_left(double part, uint64_t took_ms)
{
	uint64_t left_s = part > 0.01 ? (uint64_t)((double)took_ms * (1 / part - 1) / 1000) : 0;

	if (took_ms > 1000 && part > 0.01)
		fprintf(stderr, " %3u:%02u left", (unsigned)(left_s / 60), (unsigned)(left_s % 60));
}

void progress_show(struct progress *p, uint64_t done)
{
	char bar[BAR_WIDTH + 1], rate[TOOL_SIZE_LEN];
	double part = p->total ? (double)done / (double)p->total : 1;
	uint64_t now = p->on ? now_ms() : 0;

	if (!p->on || now - p->shown_ms < SHOW_MS)
		return;
	for (int i = 0; i < BAR_WIDTH; i++)
		bar[i] = i < (int)(part * BAR_WIDTH) ? '#' : '.';
	bar[BAR_WIDTH] = '\0';
	fprintf(stderr, "\r%-*s [%s] %3d%% %10s/s", NAME_WIDTH, p->name, bar, (int)(part * 100),
		tool_size(done * 1000 / (now - p->begun_ms), rate));
	print_left(part, now - p->begun_ms);
	p->shown_ms = now;
}

void progress_tally(struct progress *p, const char *what, uint64_t done, uint64_t total)
{
	uint64_t now = p->on ? now_ms() : 0;

	if (!p->on || now - p->shown_ms < SHOW_MS)
		return;
	fprintf(stderr, "\r\033[K%-*s %llu", NAME_WIDTH, p->name, (unsigned long long)done);
	if (total)
		fprintf(stderr, " of %llu", (unsigned long long)total);
	fprintf(stderr, " %s", what);
	p->shown_ms = now;
}

void progress_count(struct progress *p, uint64_t files, uint64_t bytes, const uint64_t *bad)
{
	char size[TOOL_SIZE_LEN], rate[TOOL_SIZE_LEN];
	uint64_t now = p->on ? now_ms() : 0;

	if (!p->on || now - p->shown_ms < SHOW_MS)
		return;
	fputs("\r\033[K", stderr);
	if (p->part > 0)
		fprintf(stderr, "%3d%%  ", (int)(p->part * 100));
	fprintf(stderr, "%llu files, %s, %s/s", (unsigned long long)files, tool_size(bytes, size),
		tool_size(bytes * 1000 / (now - p->begun_ms), rate));
	if (bad)
		fprintf(stderr, ", %llu damaged", (unsigned long long)*bad);
	print_left(p->part, now - p->begun_ms);
	p->shown_ms = now;
}

void progress_hide(struct progress *p)
{
	if (p->on && p->shown_ms != p->begun_ms)
		fputs("\r\033[K", stderr);
}

void progress_end(struct progress *p)
{
	if (p->on && p->shown_ms != p->begun_ms)
		fputs("\r\033[K", stderr);
	p->on = false;
}
