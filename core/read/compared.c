/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of compared chunks: open addressing, one entry for 4 MiB of a log. So many logs that are read
 * here and there take little memory, and a log of 1 TiB has no table of its length.
 */
#include "core/read/compared.h"

#include "core/base/alloc.h"

#define CHUNK INDEX_CHUNK_LEN
#define GROUP 64 /* chunks of an entry */
#define CAP_MIN 16
#define CAP_MAX (1u << 17) /* of a table that is full all is forgotten, and compared again */

/*
 * Steps from table to table, back from the end of the log, for one read: 128 MiB each, mostly. One that has
 * not got there compares nothing, and the next one goes on where it stopped. Far away each step is a message.
 */
#define STEPS_MAX 512
#define FAR_STEPS_MAX 64

struct compared_entry {
	uint64_t key; /* 0: free */
	uint64_t bits;
};

static_assert(CAP_MAX * sizeof(struct compared_entry) == 2 << 20, "as the header says");

void compared_release(struct compared *set)
{
	mem_free(set->table);
	set->table = NULL;
	set->nr = set->cap = 0;
}

/* 0: so far behind that it is not remembered. */
static uint64_t key_of(uint32_t no, uint64_t chunk)
{
	uint64_t group = chunk / GROUP;

	return group >> 32 ? 0 : ((uint64_t)no + 1) << 32 | group;
}

/* Its entry, or the free one where it belongs. The table is never full. */
static struct compared_entry *find(struct compared_entry *table, uint32_t cap, uint64_t key)
{
	uint32_t at = (uint32_t)(key * 0x9e3779b97f4a7c15ULL >> 32) & (cap - 1);

	while (table[at].key && table[at].key != key)
		at = (at + 1) & (cap - 1);
	return &table[at];
}

static bool make_room(struct compared *set)
{
	uint32_t cap = set->cap ? 2 * set->cap : CAP_MIN;
	struct compared_entry *table;

	if (set->nr < set->cap / 4 * 3)
		return true;
	if (set->cap == CAP_MAX) {
		memset(set->table, 0, set->cap * sizeof(*set->table));
		set->nr = 0;
		return true;
	}
	table = mem_zalloc(cap * sizeof(*table));
	if (!table)
		return false;
	for (uint32_t i = 0; i < set->cap; i++)
		if (set->table[i].key)
			*find(table, cap, set->table[i].key) = set->table[i];
	mem_free(set->table);
	set->table = table;
	set->cap = cap;
	return true;
}

static void add_bit(struct compared *set, uint32_t no, uint64_t chunk)
{
	uint64_t key = key_of(no, chunk);
	struct compared_entry *e;

	if (!key || !make_room(set))
		return;
	e = find(set->table, set->cap, key);
	set->nr += !e->key;
	e->key = key;
	e->bits |= 1ULL << chunk % GROUP;
}

/* Of the chunk that has @part_end the bytes behind that come with a growth alone. */
static bool is_in_part(const struct compared_log *log, uint64_t chunk, uint64_t to, bool growing)
{
	return log->part_end && (log->part_end - 1) / CHUNK == chunk && (to <= log->part_end || !growing);
}

/* Whether [@from, @to) of the log has been compared. */
static bool has(const struct compared *set, const struct compared_log *log, const struct compared_source *src,
		uint64_t from, uint64_t to)
{
	const struct compared_entry *e = NULL;
	uint64_t key = 0;

	for (uint64_t chunk = from / CHUNK; chunk * CHUNK < to; chunk++) {
		uint64_t now = key_of(src->no, chunk);

		if (set->cap && (!e || now != key))
			e = find(set->table, set->cap, now ? now : UINT64_MAX);
		key = now;
		if (!(e && e->bits >> chunk % GROUP & 1) && !is_in_part(log, chunk, to, src->growing))
			return false;
	}
	return true;
}

/* How far the log can be compared, for a read of [from, end). */
static int reach(const struct compared *set, struct compared_log *log, const struct compared_source *src,
		 uint64_t from, uint64_t end, uint64_t *to)
{
	*to = UINT64_MAX;
	if (set->how == SUMS_ALWAYS || !src->growing)
		return 0;
	return sums_reach(&log->sums, src->c, src->path, src->h, from, end, to);
}

bool compared_is_done(const struct compared *set, struct compared_log *log,
		      const struct compared_source *src, uint64_t log_off, uint64_t len)
{
	uint64_t to;

	if (set->how != SUMS_ONCE)
		return set->how == SUMS_OFF;
	if (has(set, log, src, log_off, log_off + len))
		return true;
	return !reach(set, log, src, log_off, log_off + len, &to) && log_off >= to;
}

int compared_sums(struct compared *set, struct compared_log *log, const struct compared_source *src,
		  uint64_t log_off, uint64_t len, struct sums_chunk **chunks)
{
	uint64_t first = log_off / CHUNK, end = log_off + len, nr = (end + CHUNK - 1) / CHUNK - first;
	bool any = set->how == SUMS_ALWAYS;
	uint64_t to_compare;
	int ret;

	*chunks = NULL;
	if (set->how == SUMS_OFF || (!any && has(set, log, src, log_off, end)))
		return 0;
	log->sums.max_steps = any ? 0 : src->c->store->remote ? FAR_STEPS_MAX : STEPS_MAX;
	ret = reach(set, log, src, log_off, end, &to_compare);
	*chunks = ret ? NULL : mem_zalloc(nr * sizeof(**chunks));
	if (!ret && !*chunks)
		ret = -ENOMEM;
	for (uint64_t i = 0; i < nr && !ret; i++) {
		uint64_t start = (first + i) * CHUNK, from = max_u64(log_off, start);
		uint64_t to = min_u64(min_u64(end, start + CHUNK), to_compare);
		struct sums_chunk *chunk = &(*chunks)[i];

		if (from >= to || (set->how == SUMS_ONCE && has(set, log, src, from, to)))
			continue;
		ret = sums_find(&log->sums, src->c, src->path, src->h, src->growing, first + i,
				(uint32_t)(to - start), chunk);
		if (!ret && chunk->lost && set->how == SUMS_ONCE)
			add_bit(set, src->no, first + i);
		if (from - start >= chunk->len) /* nothing that is wanted */
			chunk->len = 0;
		any |= chunk->len > 0;
	}
	if (ret || !any) {
		mem_free(*chunks);
		*chunks = NULL;
	}
	return ret;
}

void compared_add(struct compared *set, struct compared_log *log, uint32_t no, uint64_t log_off, uint64_t len,
		  const struct sums_chunk *chunks)
{
	uint64_t first = log_off / CHUNK, end = log_off + len;

	for (uint64_t i = 0; set->how == SUMS_ONCE && (first + i) * CHUNK < end; i++) {
		if (chunks[i].len == CHUNK)
			add_bit(set, no, first + i);
		else if (chunks[i].len)
			log->part_end = max_u64(log->part_end, (first + i) * CHUNK + chunks[i].len);
	}
}

void compared_excuse(struct compared *set, uint32_t log_no, uint64_t no, struct sums_chunk *chunk)
{
	*chunk = (struct sums_chunk){ .lost = true };
	if (set->how == SUMS_ONCE)
		add_bit(set, log_no, no);
}
