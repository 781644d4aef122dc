/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Adding calls to the counters of a file.
 */
#include "core/observe/counters.h"

/* ---- bins of time ---- */

/* Two bins become one, until that of the number @bin, in bins as wide as they are now, has room. */
static void widen(struct counters *c, uint64_t bin)
{
	while (bin - c->bins_from >= COUNTERS_BINS) {
		uint64_t from = c->bins_from / 2;

		for (int kind = 0; kind < NR_WAYS; kind++) {
			uint64_t wide[COUNTERS_BINS] = { 0 };

			for (uint64_t i = 0; i < COUNTERS_BINS; i++)
				wide[(c->bins_from + i) / 2 - from] += c->bins[kind][i];
			memcpy(c->bins[kind], wide, sizeof(wide));
		}
		c->bins_from = from;
		c->bins_width *= 2;
		bin /= 2;
	}
}

void counters_bin(struct counters *c, enum way_kind kind, uint64_t bytes, uint64_t now_ns)
{
	uint64_t bin;

	if (!bytes)
		return;
	if (!c->bins_width) {
		c->bins_width = COUNTERS_WIDTH_NS;
		c->bins_from = now_ns / c->bins_width;
	}
	bin = now_ns / c->bins_width;
	if (bin < c->bins_from) /* the clock was set back */
		bin = c->bins_from;
	widen(c, bin);
	bin = max_u64(now_ns / c->bins_width, c->bins_from);
	c->bins[kind][bin - c->bins_from] += bytes;
}

/* ---- calls ---- */

static unsigned size_bin(uint64_t len)
{
	unsigned bin = 63 - (unsigned)__builtin_clzll(len | 1);

	return bin < COUNTERS_SIZES ? bin : COUNTERS_SIZES - 1;
}

/* A pair that is not remembered replaces the rarest one if it is more frequent. */
static void note_common(struct way *w, uint64_t len, int64_t stride, uint64_t calls)
{
	struct common *rarest = &w->common[0];

	for (int i = 0; i < COUNTERS_COMMON; i++) {
		struct common *k = &w->common[i];

		if (k->calls && k->len == len && k->stride == stride) {
			k->calls += calls;
			return;
		}
		if (k->calls < rarest->calls)
			rarest = k;
	}
	if (calls > rarest->calls)
		*rarest = (struct common){ .len = len, .stride = stride, .calls = calls };
}

static void note_end(struct counters *c, uint64_t end)
{
	if (end > c->end)
		c->end = end;
}

static void note_time(struct way *w, struct counters *c, uint64_t first_ns, uint64_t last_ns)
{
	if (!w->first_ns || first_ns < w->first_ns)
		w->first_ns = first_ns;
	if (last_ns > w->last_ns)
		w->last_ns = last_ns;
	if (!c->first_ns || first_ns < c->first_ns)
		c->first_ns = first_ns;
	if (last_ns > c->last_ns)
		c->last_ns = last_ns;
}

/* What the run has that the sums lack. In numbers that cannot overflow: a part may have been forged. */
static uint64_t calls_of_run(const struct way *w)
{
	uint64_t way = w->next - w->begin, stride = (uint64_t)w->stride;

	return w->stride > 0 ? way / stride : w->stride < 0 ? (0 - way) / (0 - stride) : 0;
}

/* Into the sums what the run has more than they. */
static void fold(struct counters *c, enum way_kind kind, uint64_t now_ns)
{
	struct way *w = &c->ways[kind];
	uint64_t same = calls_of_run(w);
	uint64_t bytes = same * w->len;

	if (!same)
		return;
	now_ns = min_u64(now_ns, counters_bin_end(c, w->last_ns) - 1);
	w->calls += same;
	w->bytes += bytes;
	w->ns += same * w->each_ns;
	w->sizes[size_bin(w->len)] += same;
	if (w->stride == (int64_t)w->len)
		w->sequential += same;
	else
		w->strided += same;
	note_common(w, w->len, w->stride, same);
	w->off = w->next - (uint64_t)w->stride;
	w->last_len = w->len;
	w->last_stride = w->stride;
	w->begin = w->next;
	note_end(c, w->off + w->len);
	if (w->stride < 0) /* then the first of them is farther */
		note_end(c, w->off - (same - 1) * (uint64_t)w->stride + w->len);
	note_time(w, c, now_ns, now_ns);
	counters_bin(c, kind, bytes, now_ns);
}

void counters_fold(struct counters *c, uint64_t now_ns)
{
	for (int kind = 0; kind < NR_WAYS; kind++)
		fold(c, (enum way_kind)kind, now_ns);
}

/* How the call lies to the one before it; the run that it begins. */
static void place(struct way *w, uint64_t off, uint64_t len)
{
	int64_t stride = w->last_len ? (int64_t)(off - w->off) : 0;
	bool sequential = w->last_len && off == w->off + w->last_len;
	bool strided = !sequential && stride && stride == w->last_stride;

	w->sequential += sequential;
	w->strided += strided;
	w->random += !sequential && !strided;
	note_common(w, len, sequential || strided ? stride : 0, 1);
	w->stride = stride && !sequential ? stride : (int64_t)len;
	w->last_stride = stride;
	w->off = off;
	w->last_len = len;
	w->next = w->begin = off + (uint64_t)w->stride;
	w->stop = w->next + (uint64_t)w->stride * (COUNTERS_MEASURED - 1);
	w->len = len;
}

void counters_call(struct counters *c, enum way_kind kind, uint64_t off, uint64_t len, uint64_t now_ns,
		   uint64_t took_ns, bool is_short)
{
	struct way *w = &c->ways[kind];

	fold(c, kind, now_ns - took_ns);
	w->calls++;
	note_time(w, c, now_ns - took_ns, now_ns);
	if (took_ns > w->slowest_ns) {
		w->slowest_ns = took_ns;
		w->slowest_at_ns = now_ns;
	}
	if (is_short && took_ns)
		w->each_ns = took_ns;
	w->ns += took_ns;
	if (!len)
		return;
	w->bytes += len;
	w->sizes[size_bin(len)]++;
	place(w, off, len);
	note_end(c, off + len);
	counters_bin(c, kind, len, now_ns);
}
