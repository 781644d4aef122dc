/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Puts records into bins. A run is not expanded where its pieces are smaller than a bin can show.
 */
#include "report_bins.h"

#define CHUNKS_ALL (1u << 24) /* parts of records that are placed one by one */
#define CHUNKS_MIN 64         /* of each record, unless there are very many */
#define MANY_RECORDS (1u << 20)
#define SAMPLES_ALL (1u << 28) /* questions whether a record has a sample */

/* ---- numbers ---- */

static double random_below_1(struct report_bins *b)
{
	b->random ^= b->random << 13;
	b->random ^= b->random >> 7;
	b->random ^= b->random << 17;
	return (double)(b->random >> 11) * 0x1p-53;
}

static uint32_t bin_of(uint64_t value, uint64_t from, uint64_t to, uint32_t nr)
{
	uint64_t at;

	if (value <= from || to <= from)
		return 0;
	at = (uint64_t)((double)(value - from) / (double)(to - from) * nr);
	return at < nr ? (uint32_t)at : nr - 1;
}

uint64_t report_sample_off(const struct report_bins *b, uint64_t i)
{
	return (uint64_t)(((double)i + 0.5) * b->sample_step);
}

/* The first sample at or behind @off. */
static uint64_t sample_at(const struct report_bins *b, uint64_t off)
{
	uint64_t i = off >= b->size ? REPORT_SAMPLES : (uint64_t)((double)off / b->sample_step);

	while (i > 0 && report_sample_off(b, i - 1) >= off)
		i--;
	while (i < REPORT_SAMPLES && report_sample_off(b, i) < off)
		i++;
	return i;
}

/* ---- time and place ---- */

/* The writers of a cell are drawn by lot: a cell shared by four shows each as often as the others. */
static void add_to_cell(struct report_bins *b, struct report_cell *cell, uint32_t writer, double bytes)
{
	cell->bytes += bytes;
	if (cell->writer != writer && random_below_1(b) * cell->bytes < bytes)
		cell->writer = writer;
}

/* The bytes of @log from @log_off on that lie, more or less evenly, from @off to @end of the file. */
static void add_stretch(struct report_bins *b, struct report_log *log, uint64_t log_off, uint64_t bytes,
			uint64_t off, uint64_t end)
{
	const struct report_writer *w = log->writer;
	double *row = b->hosts[w->host < ARRAY_SIZE(b->host_row) ? b->host_row[w->host] : REPORT_HOSTS];
	double *group = b->matrix[w->no * b->nr_matrix_rows / b->nr_writers];
	uint32_t x0 = bin_of(report_logs_when(log, log_off), b->from_ns, b->to_ns, REPORT_TIMES);
	uint32_t x1 = bin_of(report_logs_when(log, log_off + bytes), b->from_ns, b->to_ns, REPORT_TIMES);
	uint32_t y0 = bin_of(off, 0, b->size, REPORT_OFFSETS);
	uint32_t y1 = bin_of(end - 1, 0, b->size, REPORT_OFFSETS);
	uint32_t wide = x1 > x0 ? x1 - x0 : 0, high = y1 - y0, steps = 1 + (wide > high ? wide : high);
	double part = (double)bytes / steps;

	for (uint32_t i = 0; i < steps; i++) {
		uint32_t x = x0 + (uint32_t)((uint64_t)wide * i / (steps > 1 ? steps - 1 : 1));
		uint32_t y = y0 + (uint32_t)((uint64_t)high * i / (steps > 1 ? steps - 1 : 1));

		add_to_cell(b, &b->cells[y][x], w->no, part);
		row[x] += part;
	}
	x0 = bin_of(off, 0, b->size, REPORT_MATRIX_COLUMNS);
	x1 = bin_of(end - 1, 0, b->size, REPORT_MATRIX_COLUMNS);
	for (uint32_t x = x0; x <= x1; x++)
		group[x] += (double)bytes / (x1 - x0 + 1);
}

/* Pieces @from to @to of the record. Those of several runs may lie before and behind each other. */
static void add_pieces(struct report_bins *b, struct report_log *log, const struct index_record *rec,
		       uint64_t from, uint64_t to)
{
	uint64_t off = report_piece_off(rec, from), last = report_piece_off(rec, to - 1), end;

	if (from / rec->count != (to - 1) / rec->count) {
		off = min_u64(off - from % rec->count * rec->stride,
			      last - (to - 1) % rec->count * rec->stride);
		last = max_u64(last, report_piece_off(rec, from / rec->count * rec->count)) +
		       (rec->count - 1 - (to - 1) % rec->count) * rec->stride;
	}
	end = last + rec->length;
	if (off >= b->size)
		return;
	add_stretch(b, log, rec->log_off + from * rec->length, (to - from) * rec->length, off,
		    min_u64(end, b->size));
}

static void place(struct report_bins *b, struct report_log *log, const struct index_record *rec,
		  uint64_t first, uint64_t pieces)
{
	uint64_t chunks = min_u64(pieces, b->chunks);

	for (uint64_t i = 0; i < chunks; i++) {
		uint64_t from = (uint64_t)((__uint128_t)pieces * i / chunks);
		uint64_t to = (uint64_t)((__uint128_t)pieces * (i + 1) / chunks);

		add_pieces(b, log, rec, first + from, first + to);
	}
}

/* ---- whose the bytes are in the end ---- */

static void take_sample(struct report_bins *b, uint64_t i, uint64_t stamp_ns, uint32_t writer, uint32_t log)
{
	struct report_sample *s = &b->samples[i];

	if (stamp_ns < s->stamp_ns || (stamp_ns == s->stamp_ns && s->stamp_ns && log < s->log))
		return;
	*s = (struct report_sample){ stamp_ns, writer, log };
}

static void sample_range(struct report_bins *b, const struct report_log *log, uint64_t stamp_ns, uint64_t off,
			 uint64_t len)
{
	for (uint64_t i = sample_at(b, off); i < REPORT_SAMPLES && report_sample_off(b, i) < off + len; i++)
		if (i % b->nr_steps == 0)
			take_sample(b, i, stamp_ns, log->writer->no, log->no);
}

/*
 * Whether @at, behind the first byte, is in a piece. Nested runs: each ends before the next begins, or all
 * have their piece i before any has its piece i + 1. Either way the larger stride comes first.
 */
static bool covers(const struct index_record *rec, uint64_t at)
{
	bool outer = rec->outer_count && rec->outer_stride > rec->stride;
	uint64_t large = outer ? rec->outer_stride : rec->stride;
	uint64_t small = outer ? rec->stride : rec->outer_stride;
	uint64_t nr_large = outer ? rec->outer_count : rec->count;
	uint64_t nr_small = outer ? rec->count : rec->outer_count;

	if (large && nr_large > 1) {
		if (at / large >= nr_large)
			return false;
		at %= large;
	}
	if (small && nr_small > 1) {
		if (at / small >= nr_small)
			return false;
		at %= small;
	}
	return at < rec->length;
}

static void sample_by_place(struct report_bins *b, const struct report_log *log,
			    const struct index_record *rec, uint64_t i, uint64_t end)
{
	for (i = (i + b->nr_steps - 1) / b->nr_steps * b->nr_steps; i < end; i += b->nr_steps)
		if (covers(rec, report_sample_off(b, i) - rec->logical_off))
			take_sample(b, i, rec->stamp_ns, log->writer->no, log->no);
}

/* What a record has in front of @first is the same writer's. */
static void sample(struct report_bins *b, const struct report_log *log, const struct index_record *rec,
		   uint64_t first, uint64_t pieces)
{
	uint64_t i = sample_at(b, rec->logical_off), end = sample_at(b, index_record_end(rec));

	if (pieces > (end - i) / b->nr_steps) {
		sample_by_place(b, log, rec, i, end);
		return;
	}
	for (uint64_t p = first; p < first + pieces; p++)
		sample_range(b, log, rec->stamp_ns, report_piece_off(rec, p), rec->length);
}

/* ---- lengths ---- */

static void count_length(struct report_bins *b, uint64_t length, uint64_t pieces)
{
	unsigned log2 = 63 - (unsigned)__builtin_clzll(length);
	uint64_t at = length * 0x9e3779b97f4a7c15ULL >> 53; /* of 11 bits: REPORT_COMMON */

	b->by_log2[log2] += pieces;
	b->bytes_by_log2[log2] += pieces * length;
	for (;; at = (at + 1) % REPORT_COMMON) {
		struct report_length *l = &b->lengths[at];

		if (!l->length && b->nr_lengths > REPORT_COMMON / 2) {
			b->other_lengths += pieces;
			return;
		}
		b->nr_lengths += !l->length;
		if (l->length && l->length != length)
			continue;
		l->length = length;
		l->pieces += pieces;
		return;
	}
}

/* ---- all of it ---- */

void report_bins_add(void *arg, struct report_log *log, const struct index_record *rec, uint64_t first,
		     uint64_t pieces)
{
	struct report_bins *b = arg;

	if (!b->size)
		return;
	if (!log) {
		for (uint64_t i = sample_at(b, min_u64(rec->logical_off, b->size)); i < REPORT_SAMPLES; i++)
			take_sample(b, i, rec->stamp_ns, REPORT_NOBODY, UINT32_MAX);
		return;
	}
	count_length(b, rec->length, pieces);
	place(b, log, rec, first, pieces);
	sample(b, log, rec, first, pieces);
}

/* The hosts with a line of their own come first in report_logs.hosts, those that wrote most. */
static void choose_hosts(struct report_bins *b, const struct report_logs *l)
{
	uint64_t bytes[ARRAY_SIZE(b->host_row)] = { 0 };
	size_t nr = l->nr_hosts < ARRAY_SIZE(bytes) ? l->nr_hosts : ARRAY_SIZE(bytes);

	for (size_t i = 0; i < l->nr_writers; i++)
		if (l->writers[i]->host < nr)
			bytes[l->writers[i]->host] += l->writers[i]->bytes;
	for (size_t i = 0; i < nr; i++)
		b->host_row[i] = REPORT_HOSTS;
	for (uint32_t row = 0; row < REPORT_HOSTS; row++) {
		size_t most = 0;

		for (size_t i = 1; i < nr; i++)
			most = bytes[i] > bytes[most] ? i : most;
		if (nr && bytes[most])
			b->host_row[most] = row;
		bytes[most] = 0;
	}
}

struct report_bins *report_bins_make(const struct report_logs *l, uint64_t size)
{
	struct report_bins *b = mem_zalloc(sizeof(*b));
	uint64_t nr = l->nr_records + 1;

	if (!b)
		return NULL;
	b->from_ns = l->from_ns;
	b->to_ns = l->to_ns;
	b->size = size;
	b->sample_step = (double)size / REPORT_SAMPLES;
	b->random = 0x2545f4914f6cdd1dULL;
	b->nr_writers = l->nr_writers ? l->nr_writers : 1;
	b->nr_matrix_rows = b->nr_writers < REPORT_MATRIX_ROWS ? b->nr_writers : REPORT_MATRIX_ROWS;
	b->chunks = max_u64(CHUNKS_ALL / nr, nr > MANY_RECORDS ? 1 : CHUNKS_MIN);
	b->nr_steps = 1;
	while (l->nr_runs * (REPORT_SAMPLES / b->nr_steps) > SAMPLES_ALL && b->nr_steps < REPORT_STRIP_ROWS)
		b->nr_steps *= 2;
	for (size_t i = 0; i < REPORT_SAMPLES; i++)
		b->samples[i] = (struct report_sample){ 0, REPORT_NOBODY, 0 };
	for (size_t y = 0; y < REPORT_OFFSETS; y++)
		for (size_t x = 0; x < REPORT_TIMES; x++)
			b->cells[y][x].writer = REPORT_NOBODY;
	choose_hosts(b, l);
	return b;
}
