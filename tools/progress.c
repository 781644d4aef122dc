/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Drawing the progress bar.
 */
#include "progress.h"

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

	p->on = isatty(STDERR_FILENO);
	p->name = len > NAME_WIDTH ? name + len - NAME_WIDTH : name;
	p->total = total;
	p->begun_ms = p->on ? now_ms() : 0;
	p->shown_ms = p->begun_ms;
}

void progress_show(struct progress *p, uint64_t done)
{
	char bar[BAR_WIDTH + 1];
	double part = p->total ? (double)done / (double)p->total : 1;
	uint64_t now = p->on ? now_ms() : 0;

	if (!p->on || now - p->shown_ms < SHOW_MS)
		return;
	for (int i = 0; i < BAR_WIDTH; i++)
		bar[i] = i < (int)(part * BAR_WIDTH) ? '#' : '.';
	bar[BAR_WIDTH] = '\0';
	fprintf(stderr, "\r%-*s [%s] %3d%% %8.1f MiB/s", NAME_WIDTH, p->name, bar, (int)(part * 100),
		(double)done / 1048.576 / (double)(now - p->begun_ms));
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

void progress_count(struct progress *p, uint64_t files, uint64_t bytes, uint64_t bad)
{
	uint64_t now = p->on ? now_ms() : 0;

	if (!p->on || now - p->shown_ms < SHOW_MS)
		return;
	fprintf(stderr, "\r\033[K%llu files, %.1f MiB, %.1f MiB/s, %llu damaged", (unsigned long long)files,
		(double)bytes / 1048576,
		(double)bytes / 1048.576 / (double)(now - p->begun_ms), (unsigned long long)bad);
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
