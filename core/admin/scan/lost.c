/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Merges all records of a scan into one map, as readers do, and intersects it with the bad parts of logs.
 */
#include "core/admin/scan/lost.h"

#include "index/map/merge.h"

#include <stdlib.h>

/* ---- the map ---- */

static int by_path(const void *a, const void *b)
{
	return strcmp((*(struct scan_log *const *)a)->path, (*(struct scan_log *const *)b)->path);
}

/*
 * Number the logs in the order of their names, which decides between equal stamps. *@logs: from the new
 * number to the log; *@order: from its place in scan.logs to the new number.
 */
static int number_logs(const struct scan *l, struct scan_log ***logs, uint32_t **order)
{
	*logs = mem_alloc((l->nr_logs + (size_t)1) * sizeof(**logs));
	*order = mem_alloc((l->nr_logs + (size_t)1) * sizeof(**order));
	if (!*logs || !*order)
		return -ENOMEM;
	memcpy(*logs, l->logs, l->nr_logs * sizeof(**logs));
	qsort(*logs, l->nr_logs, sizeof(**logs), by_path);
	for (uint32_t i = 0; i < l->nr_logs; i++)
		(*order)[(*logs)[i]->no] = i;
	return 0;
}

static int add_record(struct index_merge *m, const struct scan *l, uint32_t no,
		      const struct index_record *rec)
{
	if (rec->stamp_ns <= l->stub.generation_ns ||
	    (rec->type != INDEX_WRITE && rec->type != INDEX_TRUNCATE))
		return 0;
	return index_merge_add(m, no, rec);
}

static int add_all(struct index_merge *m, const struct scan *l, const uint32_t *order)
{
	int ret = 0;

	for (uint32_t i = 0; i < l->nr_blocks && !ret; i++) {
		struct index_cursor cur = { 0 };
		struct index_record rec;

		while (!ret && index_block_record(&l->blocks[i].block, &cur, &rec) > 0)
			ret = add_record(m, l, order[l->blocks[i].log], &rec);
	}
	for (uint32_t i = 0; i < l->nr_lives && !ret; i++)
		for (uint64_t k = 0; !l->lives[i].ret && k < l->lives[i].state.nr_records && !ret; k++)
			ret = add_record(m, l, order[l->lives[i].log], &l->lives[i].records[k]);
	for (uint32_t i = 0; i < l->nr_extras && !ret; i++) {
		const struct scan_extra *e = &l->extras[i];
		struct index_record rec = { .type = INDEX_WRITE, .logical_off = e->logical_off,
			.length = e->len, .count = 1,
					    .log_off = e->log_off, .stamp_ns = l->stub.generation_ns + 1 };

		ret = index_merge_add(m, order[e->log], &rec);
	}
	return ret;
}

/* Map @map into *@image, mem_alloc()ed. */
static int make_map(const struct scan *l, const uint32_t *order, struct index_map *map, void **image)
{
	struct index_merge m;
	size_t len;
	int ret;

	index_merge_init(&m);
	ret = add_all(&m, l, order);
	if (!ret)
		ret = index_merge_build(&m, image, &len);
	if (!ret)
		ret = index_map_open(map, *image, len, false);
	index_merge_release(&m);
	return ret;
}

int scan_find_end(struct scan *l, uint64_t *end)
{
	struct scan_log **logs = NULL;
	struct index_map map;
	uint32_t *order = NULL;
	void *image = NULL;
	int ret = number_logs(l, &logs, &order);

	if (!ret)
		ret = make_map(l, order, &map, &image);
	*end = ret ? 0 : map.end;
	mem_free(image);
	mem_free(order);
	mem_free(logs);
	return ret;
}

/* ---- what is lost ---- */

#define PIECES_MAX ((uint64_t)1 << 30) /* minutes */

struct lost {
	const struct scan_bad **bad; /* sorted by number of the log, and position */
	const uint32_t *order;
	uint32_t nr_bad;
	uint64_t from, to; /* the present range */
	uint64_t pieces_left, max;
	struct scan_lost *sum;
	void (*fn)(void *arg, uint64_t logical_off, uint64_t len);
	void *arg;
};

static int by_place(const void *a, const void *b, void *arg)
{
	const struct scan_bad *x = *(const struct scan_bad *const *)a,
		*y = *(const struct scan_bad *const *)b;
	const uint32_t *order = arg;

	if (x->log != y->log)
		return order[x->log] < order[y->log] ? -1 : 1;
	return x->log_off < y->log_off ? -1 : x->log_off > y->log_off;
}

static void end_range(struct lost *lost)
{
	if (lost->to > lost->from) {
		if (lost->sum->nr++ < lost->max)
			lost->fn(lost->arg, lost->from, lost->to - lost->from);
		lost->sum->bytes += lost->to - lost->from;
	}
	lost->from = lost->to = 0;
}

static void add_range(struct lost *lost, uint64_t from, uint64_t to)
{
	if (lost->to != from || lost->to == lost->from) {
		end_range(lost);
		lost->from = from;
	}
	lost->to = to;
}

/* The first bad part that is not before the piece. */
static uint32_t find_bad(const struct lost *lost, const struct index_piece *piece)
{
	uint32_t lo = 0, hi = lost->nr_bad;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		const struct scan_bad *b = lost->bad[mid];
		uint32_t no = lost->order[b->log];

		if (no < piece->log_no ||
		    (no == piece->log_no && b->len <= piece->log_off &&
		     b->log_off <= piece->log_off - b->len))
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static int intersect(void *arg, const struct index_piece *piece)
{
	struct lost *lost = arg;

	if (!lost->pieces_left-- || lost->sum->nr == LOST_MAX) {
		lost->sum->more = true;
		return 1;
	}
	for (uint32_t i = find_bad(lost, piece); i < lost->nr_bad; i++) {
		const struct scan_bad *b = lost->bad[i];
		uint64_t from, to;

		if (lost->order[b->log] != piece->log_no || b->log_off >= piece->log_off + piece->len)
			break;
		from = max_u64(b->log_off, piece->log_off) - piece->log_off;
		to = min_u64(b->len > UINT64_MAX / 2 - b->log_off ? UINT64_MAX / 2 : b->log_off + b->len,
			     piece->log_off + piece->len) - piece->log_off;
		if (from < to)
			add_range(lost, piece->logical_off + from, piece->logical_off + to);
	}
	return 0;
}

/* Each byte of a log belongs to one place of the file. */
static uint64_t pieces_max(const struct scan *l)
{
	uint64_t sum = LOST_MAX;

	for (uint32_t i = 0; i < l->nr_logs && sum < PIECES_MAX; i++)
		sum += min_u64(l->logs[i]->len, PIECES_MAX);
	return min_u64(sum, PIECES_MAX);
}

int scan_each_lost(struct scan *l, uint64_t max, void (*fn)(void *arg, uint64_t logical_off, uint64_t len),
		   void *arg, struct scan_lost *sum)
{
	struct lost lost = { .fn = fn, .arg = arg, .max = max, .sum = sum, .pieces_left = pieces_max(l),
		.bad = mem_alloc((l->nr_bad + (size_t)1) * sizeof(*lost.bad)) };
	struct scan_log **logs = NULL;
	struct index_map map;
	uint32_t *order = NULL;
	void *image = NULL;
	int ret = lost.bad ? 0 : -ENOMEM;

	*sum = (struct scan_lost){ 0 };
	for (uint32_t i = 0; i < l->nr_bad && !ret && !l->absurd; i++)
		if (!l->bad[i].finding->doubtful)
			lost.bad[lost.nr_bad++] = &l->bad[i];
	if (!ret && lost.nr_bad)
		ret = number_logs(l, &logs, &order);
	if (!ret && lost.nr_bad) {
		lost.order = order;
		qsort_r(lost.bad, lost.nr_bad, sizeof(*lost.bad), by_place, order);
		ret = make_map(l, order, &map, &image);
		if (!ret)
			ret = index_map_each(&map, intersect, &lost) < 0 ? -EIO : 0;
		end_range(&lost);
	}
	mem_free(image);
	mem_free(order);
	mem_free(logs);
	mem_free(lost.bad);
	return ret;
}
