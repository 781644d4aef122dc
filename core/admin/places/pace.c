/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pauses between the pieces of a copy.
 */
#include "core/admin/places/pace.h"

#include "core/base/io.h"
#include "index/record/chunks.h"

#include <time.h>

#define PIECES_A_SECOND 8
#define NS_A_SECOND 1000000000ULL
#define PIECE_MAX ((uint64_t)1 << 20)
#define LATE_MAX 32

static uint64_t now_ns(void)
{
	struct timespec now;

	sys.clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_A_SECOND + (uint64_t)now.tv_nsec;
}

static void sleep_ns(uint64_t ns)
{
	struct timespec left = { .tv_sec = (time_t)(ns / NS_A_SECOND), .tv_nsec = (long)(ns % NS_A_SECOND) };

	while (io_nanosleep(&left, &left) && errno == EINTR)
		;
}

bool pace_is_over(const struct plfs_drain *d) { return d->until_ns && now_ns() >= d->until_ns; }

size_t pace_piece(const struct plfs_drain *d)
{
	uint64_t len = d->rate / PIECES_A_SECOND / INDEX_CHUNK_LEN * INDEX_CHUNK_LEN;

	if (!d->rate)
		return 0;
	return (size_t)(len < INDEX_CHUNK_LEN ? INDEX_CHUNK_LEN : min_u64(len, PIECE_MAX));
}

bool pace_is_direct(const struct plfs_drain *d) { return d->rate && d->nr_late < LATE_MAX; }

void pace_keep(struct plfs_drain *d, uint64_t len)
{
	uint64_t now, took;
	bool late;

	if (!d->rate)
		return;
	took = (uint64_t)((double)len / (double)d->rate * (double)NS_A_SECOND);
	now = now_ns();
	late = d->due_ns + took < now;
	d->nr_late = late ? d->nr_late + 1 : 0;
	if (late) /* or it was idle: no more than these bytes are free */
		d->due_ns = now - min_u64(now, took);
	d->due_ns += took;
	if (d->due_ns > now)
		sleep_ns(d->due_ns - now);
}

int pace_copied(void *arg, uint64_t len)
{
	struct plfs_drain *d = arg;

	d->bytes += len;
	if (d->progress)
		d->progress(d->arg, d);
	pace_keep(d, len);
	return pace_is_over(d) ? -ETIME : 0;
}
