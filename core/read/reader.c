/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The stack of maps: how it is made and kept, and lookups through it.
 */
#include "core/read/reader.h"

#include "index/map/merge.h"
#include "core/backend/container_dirs.h"
#include "core/gather/attempts.h"
#include "core/gather/gather.h"
#include "core/backend/names.h"
#include "core/base/alloc.h"
#include "core/base/msg.h"
#include "core/base/stamp.h"
#include "core/base/event.h"
#include "core/base/vec.h"

void reader_init(struct reader *r, const struct container *c)
{
	memset(r, 0, sizeof(*r));
	r->c = c;
	r->own_log = UINT32_MAX;
	logset_init(&r->logs, c);
}

static void drop_levels(struct reader *r, int from)
{
	while (r->nr_levels > from) {
		struct reader_level *l = &r->levels[--r->nr_levels];

		if (!l->mapped)
			mem_free(l->image);
	}
	if (from)
		return;
	r->watch.revoked = NULL;
	kept_map_close(&r->global, r->c);
}

static void drop_base(struct reader *r)
{
	drop_levels(r, 0);
	logset_clear(&r->logs);
	r->nr_own = 0;
	r->own_log = UINT32_MAX;
	r->loaded = false;
	index_inputs_release(&r->inputs);
	mem_free(r->seen);
	r->seen = NULL;
}

void reader_release(struct reader *r)
{
	drop_base(r);
	logset_release(&r->logs);
	mem_free(r->own);
	r->own = NULL;
	r->nr_own = r->cap_own = 0;
	mem_free(__atomic_exchange_n(&r->spare, NULL, __ATOMIC_ACQUIRE));
	entries_forget(&r->entries, r->c);
	watch_release(&r->watch, r->c);
}

/* Logs and live files are both in the order of their names, which differ in "data" and "live" alone. */
static void mark_growing(struct reader *r)
{
	char live[CONTAINER_PATH_LEN];
	uint32_t at = 0;

	for (uint32_t i = 0; i < r->logs.nr && at < r->inputs.nr_lives; i++) {
		int order = -1;

		name_live_of_log(r->logs.logs[i].path, live);
		while (at < r->inputs.nr_lives && (order = strcmp(r->inputs.lives[at], live)) < 0)
			at++;
		r->logs.logs[i].growing = !order;
	}
}

static int install(struct reader *r, struct gathered *g, struct index_inputs *in)
{
	int ret = 0;

	drop_base(r);
	for (uint32_t i = 0; i < g->nr_logs; i++) {
		if (ret >= 0)
			ret = logset_add(&r->logs, g->logs[i]);
		if (ret < 0)
			mem_free(g->logs[i]);
	}
	mem_free(g->logs);
	r->levels[0] = (struct reader_level){
		.image = g->image, .image_len = g->image_len, .mapped = g->mapped, .map = g->map
	};
	r->nr_levels = 1;
	r->global = g->global;
	r->seen = g->seen;
	r->watch.revoked = kept_map_revoked(&r->global);
	if (ret < 0) {
		drop_base(r);
		return ret;
	}
	r->max_stamp_ns = g->map.max_stamp_ns;
	r->cut_ns = g->cut_ns;
	r->inputs = *in;
	memset(in, 0, sizeof(*in));
	mark_growing(r);
	r->loaded = true;
	stamp_seen(g->map.max_stamp_ns);
	return 0;
}

static int own_log_no(struct reader *r, const struct writer *w)
{
	char *path;
	int ret;

	if (r->own_log != UINT32_MAX)
		return (int)r->own_log;
	for (uint32_t i = r->logs.nr; i-- > 0;)
		if (!strcmp(r->logs.logs[i].path, w->tail.log_path)) {
			logset_goes_on(&r->logs, i);
			return (int)(r->own_log = i);
		}
	path = mem_strdup(w->tail.log_path);
	ret = path ? logset_add(&r->logs, path) : -ENOMEM;
	if (ret >= 0) {
		r->own_log = (uint32_t)ret;
		r->logs.logs[ret].growing = true;
	}
	return ret;
}

/* What a load works with. It is too large for a small stack. */
struct load {
	char own[CONTAINER_PATH_LEN]; /* path of this process's live file */
	struct attempts a;
	struct index_inputs in;
	struct gathered g;
};

/* Load from a confirmed map. -errno: the container must be listed. */
static int load_confirmed(struct reader *r, struct load *l)
{
	struct index_inputs none = { 0 };
	int ret = gather_confirmed(&l->g, r->c, r->generation_ns);

	if (ret)
		return ret;
	watch_lives(&r->watch, r->c, &none);
	return install(r, &l->g, &none);
}

/* One attempt. @own: l->own, or NULL. 0; 1: not complete, l->a has the reason; -errno */
static int load_listed(struct reader *r, const char *own, struct load *l)
{
	unsigned how = attempts_flags(&l->a) | (r->seeks_cut ? GATHER_ANEW : 0);
	struct index_inputs *in = &l->in;
	int ret = index_inputs_list(in, r->c, own);

	if (ret == -ENOENT && !r->c->filled && !own) /* the file is empty, and nobody here has written */
		ret = 0;
	if (ret == -ENOENT)
		return -EIDRM;
	if (!ret && !own && !in->nr_lives && !in->nr_indexes && container_is_purged(r->c))
		ret = -EIDRM;
	if (!ret) {
		watch_lives(&r->watch, r->c, in);
		ret = gather(&l->g, r->c, in, own, r->generation_ns, how);
		if (ret > 0)
			attempts_note(&l->a, l->g.reason, l->g.unknown);
	} else if (ret == -EAGAIN) {
		attempts_note(&l->a, GATHER_CHANGED, "");
		ret = 1;
	}
	if ((ret == -EMFILE || ret == -ENFILE) && logset_give_back(&r->logs)) {
		attempts_note(&l->a, GATHER_NO_HANDLES, "");
		ret = 1;
	}
	if (!ret)
		ret = install(r, &l->g, in);
	index_inputs_release(in);
	return ret;
}

/* No attempt was complete. */
static int give_up(struct reader *r, const struct attempts *a)
{
	if (a->reason == GATHER_UNKNOWN_LOG)
		memcpy(r->lost, a->unknown, sizeof(r->lost));
	return -EIO;
}

static int load(struct reader *r, struct writer *w, struct load *l)
{
	const struct attempts *a = &l->a;
	int ret;

	if (w) {
		writer_break(w); /* a record in the base must not grow any more */
		name_live_of_log(w->tail.log_path, l->own);
	}
	/* A load that fails leaves the maps of before, and a watch that has gone on. */
	entries_forget(&r->entries, r->c);
	do {
		watch_word(&r->watch, r->c, r->may_make);
		if (!w && !r->seeks_cut && !load_confirmed(r, l))
			return 0;
		ret = load_listed(r, w ? l->own : NULL, l);
	} while (ret > 0 && attempts_go_on(a));
	if (ret > 0)
		ret = give_up(r, a);
	if (!ret && *a->missed && name_is_ours(name_of(a->missed))) /* else it may be the power that failed */
		msg_error("%s/%s: the log is not in any index, but describes itself: plfs repair rebuilds the index",
			  r->c->dir, a->missed);
	if (!ret && w) {
		w->nr_pinned = w->tail.live.nr_records;
		ret = own_log_no(r, w);
		ret = ret < 0 ? ret : 0;
	}
	event(EVENT_INDEX_LOADED, .container = r->c->dir, .count = ret ? 0 : r->levels[0].map.nr_records,
	      .logs = r->logs.nr, .result = ret);
	return ret;
}

int reader_load(struct reader *r, struct writer *w, uint64_t generation_ns)
{
	struct load *l = mem_zalloc(sizeof(*l));
	int ret;

	r->generation_ns = generation_ns;
	*r->lost = '\0';
	ret = l ? load(r, w, l) : -ENOMEM;
	mem_free(l);
	return ret;
}

/* Whether @in is what the base was made from. */
static bool is_made_from(const struct reader *r, const struct index_inputs *in)
{
	if (!r->global.base)
		return index_inputs_equal(in, &r->inputs);
	return kept_map_made_from(&r->global, in) && kept_map_logs_digest(&r->global) == in->logs_digest;
}

int reader_reload(struct reader *r, struct writer *w, uint64_t generation_ns, bool *changed)
{
	char own[CONTAINER_PATH_LEN];
	struct index_inputs in;
	int ret;

	*changed = true;
	*r->lost = '\0';
	entries_forget(&r->entries, r->c); /* as in a load */
	if (r->loaded && r->generation_ns == generation_ns && !(r->seeks_cut && r->global.base)) {
		if (w)
			name_live_of_log(w->tail.log_path, own);
		watch_word(&r->watch, r->c, r->may_make);
		if (kept_map_is_current(&r->global, r->c)) {
			*changed = false;
			return 0;
		}
		ret = index_inputs_list(&in, r->c, w ? own : NULL);
		if (!ret)
			watch_lives(&r->watch, r->c, &in);
		/* Neither the list nor the watch would show a change between them. */
		if (!ret)
			*changed = !is_made_from(r, &in) || !watch_agrees(&r->watch, r->c, &in);
		index_inputs_release(&in);
		if (ret && ret != -ENOENT && ret != -EMFILE && ret != -ENFILE)
			return ret;
	}
	return *changed ? reader_load(r, w, generation_ns) : 0;
}

static bool watches_all(const struct reader *r)
{
	return r->loaded && r->watch.word && r->watch.nr_lives == r->inputs.nr_lives && !r->global.base &&
	       !r->lacks_hosts;
}

void reader_note_writers(struct reader *r, const struct timespec *began)
{
	if (watches_all(r))
		entries_note(&r->entries, r->c, began);
}

bool reader_knows_writers(const struct reader *r)
{
	return watches_all(r) && entries_rest(&r->entries, r->c);
}

/* Build the map of own[first...] and put it on top. */
static int push_level(struct reader *r, size_t first)
{
	struct reader_level *l = &r->levels[r->nr_levels];
	struct index_merge m;
	int ret = 0;

	index_merge_init(&m);
	for (size_t i = first; i < r->nr_own && !ret; i++)
		ret = index_merge_add(&m, r->own[i].log_no, &r->own[i].rec);
	*l = (struct reader_level){ .first_own = first };
	if (!ret)
		ret = index_merge_build(&m, &l->image, &l->image_len);
	if (!ret)
		ret = index_map_open(&l->map, l->image, l->image_len, false);
	index_merge_release(&m);
	if (ret)
		mem_free(l->image);
	else
		r->nr_levels++;
	return ret;
}

/* Whether @later hides all of @rec, whatever else there is. */
static bool hides(const struct index_record *later, const struct index_record *rec)
{
	return later->type == INDEX_WRITE && rec->type == INDEX_WRITE && later->stamp_ns > rec->stamp_ns &&
	       later->count == 1 && rec->count == 1 && !later->outer_count && !rec->outer_count &&
	       later->logical_off <= rec->logical_off &&
	       later->logical_off + later->length >= rec->logical_off + rec->length;
}

#define HIDING_MAX 8

/*
 * Drop the records from @first on that the latest of the last @nr hides, or one of the very last. So there
 * are few of them where processes write the same bytes in turn, as a counter under a lock.
 */
static void drop_hidden(struct reader *r, size_t first, size_t nr)
{
	struct reader_own *own = r->own;
	size_t to = first, from = r->nr_own - min_size(nr, HIDING_MAX);
	struct index_record latest = own[r->nr_own - 1].rec;

	for (size_t i = r->nr_own - nr; i < r->nr_own; i++)
		if (own[i].rec.stamp_ns > latest.stamp_ns)
			latest = own[i].rec;
	for (size_t i = first; i < r->nr_own; i++) {
		bool hidden = hides(&latest, &own[i].rec);

		for (size_t k = max_u64(from, i + 1); k < r->nr_own && !hidden; k++)
			hidden = hides(&own[k].rec, &own[i].rec);
		if (!hidden)
			own[to++] = own[i];
	}
	r->nr_own = to;
}

int reader_put(struct reader *r, const struct reader_own *records, size_t nr)
{
	size_t first = r->nr_own;
	struct reader_own *own = vec_room(r->own, &r->cap_own, first + nr, sizeof(*own));
	int ret;

	if (!own) {
		drop_base(r);
		return -ENOMEM;
	}
	r->own = own;
	for (size_t i = 0; i < nr; i++) {
		r->own[r->nr_own++] = records[i];
		r->max_stamp_ns = max_u64(r->max_stamp_ns, records[i].rec.stamp_ns);
		if (records[i].rec.type == INDEX_TRUNCATE)
			r->cut_ns = max_u64(r->cut_ns, records[i].rec.stamp_ns);
	}
	/*
	 * A level that is less than twice as large as all above it is merged with them. So there are few
	 * levels, and each record is merged a logarithmic number of times.
	 */
	while (r->nr_levels > 1) {
		size_t below = first - r->levels[r->nr_levels - 1].first_own;

		if (below >= 2 * (r->nr_own - first) && r->nr_levels < READER_LEVELS_MAX)
			break;
		first = r->levels[r->nr_levels - 1].first_own;
		drop_levels(r, r->nr_levels - 1);
	}
	drop_hidden(r, first, nr);
	ret = push_level(r, first);
	if (ret)
		drop_base(r); /* it lacks records now: made anew when next needed */
	return ret;
}

int reader_add_own(struct reader *r, struct writer *w)
{
	uint64_t have = w->nr_pinned, nr;
	struct reader_own *records;
	int log_no, ret;

	if (have == w->tail.live.nr_records)
		return 0;
	writer_break(w);
	nr = w->tail.live.nr_records;
	log_no = own_log_no(r, w);
	if (log_no < 0)
		return log_no;
	records = mem_alloc((nr - have) * sizeof(*records));
	if (!records)
		return -ENOMEM;
	for (uint64_t i = have; i < nr; i++) {
		writer_record(w, i, &records[i - have].rec);
		records[i - have].log_no = (uint32_t)log_no;
	}
	if (live_is_broken(&w->tail.live)) {
		mem_free(records);
		return -EIO;
	}
	ret = reader_put(r, records, nr - have);
	if (!ret)
		w->nr_pinned = nr;
	mem_free(records);
	return ret;
}

uint64_t reader_end(const struct reader *r)
{
	uint64_t end = 0, cut = UINT64_MAX;

	for (int i = r->nr_levels - 1; i >= 0; i--) {
		end = max_u64(end, min_u64(r->levels[i].map.end, cut));
		cut = min_u64(cut, r->levels[i].map.cut);
	}
	return end;
}

uint64_t reader_body_end(const struct reader *r)
{
	uint64_t end = r->emptied ? 0 : UINT64_MAX;

	for (int i = 0; i < r->nr_levels; i++)
		end = min_u64(end, r->levels[i].map.cut);
	return end;
}

void reader_lookup(struct reader *r, uint64_t logical_off, uint64_t len, struct index_piece *piece)
{
	for (int i = r->nr_levels - 1; i >= 0; i--) {
		index_map_lookup_near(&r->levels[i].map, logical_off, len, piece, &r->levels[i].hint);
		if (piece->log_no != INDEX_LOG_HOLE)
			return;
		len = piece->len;
	}
	*piece = (struct index_piece){ .logical_off = logical_off, .len = len, .log_no = INDEX_LOG_HOLE };
}

void reader_walk_begin(struct reader *r, struct index_walk *walks)
{
	for (int i = 0; i < r->nr_levels; i++)
		r->levels[i].hint.walk = &walks[i];
}

void reader_walk_end(struct reader *r)
{
	for (int i = 0; i < r->nr_levels; i++) {
		index_walk_release(r->levels[i].hint.walk);
		r->levels[i].hint.walk = NULL;
	}
}

bool reader_is_stale(const struct reader *r)
{
	return !likely(watch_is_idle(&r->watch)) && watch_changed(&r->watch);
}
