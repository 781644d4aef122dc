/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pauses between looks.
 */
#include "waiting.h"

#include "tool.h"

#include <time.h>

#define PAUSE_MS 50
#define PAUSE_MAX_MS 2000

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

void waiting_take(struct waiting *w, const struct verb *v, int option)
{
	w->waits |= option == OPT_WAIT;
	if (option != OPT_TIMEOUT)
		return;
	w->ends = true;
	w->timeout_s = options_seconds(v, "timeout");
}

int waiting_begin(struct waiting *w, const struct verb *v)
{
	if (w->ends && !w->waits)
		return tool_misuse(v->name, "--timeout goes with --wait");
	w->until_ns = w->ends ? now_ns() + w->timeout_s * 1000000000ULL : 0;
	waiting_restart(w);
	return TOOL_OK;
}

void waiting_restart(struct waiting *w) { w->pause_ms = PAUSE_MS; }

bool waiting_pause(struct waiting *w)
{
	uint64_t ns = w->pause_ms * 1000000ULL, now = now_ns();
	struct timespec ts;

	if (!w->waits || (w->ends && now >= w->until_ns))
		return false;
	if (w->ends)
		ns = min_u64(ns, w->until_ns - now);
	ts = (struct timespec){ .tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000) };
	nanosleep(&ts, NULL);
	w->pause_ms = w->pause_ms * 2 < PAUSE_MAX_MS ? w->pause_ms * 2 : PAUSE_MAX_MS;
	return true;
}
