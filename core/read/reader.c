/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The stack of maps: how it is made and kept, and lookups through it.
 */
#include "core/read/reader.h"

#include "core/backend/container_dirs.h"
#include "core/gather/attempts.h"
#include "core/gather/gather.h"
#include "core/backend/names.h"
#include "core/base/alloc.h"
#include "core/base/msg.h"
#include "core/base/stamp.h"
#include "core/base/event.h"
#include "core/base/vec.h"
#include "core/read/parked.h"
#include "core/write/resume.h"

void reader_init(struct reader *r, const struct container *c)
{
	memset(r, 0, sizeof(*r));
	r->c = c;
	r->own_log = UINT32_MAX;
	logset_init(&r->logs, c);
}

static void drop_spilled(struct reader *r)
{
	mem_free(r->spilled);
	r->spilled = NULL;
	r->nr_spilled = r->cap_spilled = 0;
}

static void drop_base(struct reader *r)
{
	levels_drop(&r->levels);
	r->watch.revoked = NULL;
	kept_map_close(&r->global, r->c);
	logset_clear(&r->logs);
	r->own_log = UINT32_MAX;
	r->loaded = false;
	index_inputs_release(&r->inputs);
	mem_free(r->seen);
	r->seen = NULL;
}

void reader_release(struct reader *r)
{
	drop_base(r);
	drop_spilled(r);
	logset_release(&r->logs);
	levels_release(&r->levels);
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
	const struct level base = {
		.image = g->image, .image_len = g->image_len, .mapped = g->mapped, .map = g->map
	};
	int ret = 0;

	drop_base(r);
	for (uint32_t i = 0; i < g->nr_logs; i++) {
		if (ret >= 0)
			ret = logset_add(&r->logs, g->logs[i]);
		if (ret < 0)
			mem_free(g->logs[i]);
	}
	mem_free(g->logs);
	levels_set_base(&r->levels, &base, g->cut_ns);
	r->global = g->global;
	r->seen = g->seen;
	r->watch.revoked = kept_map_revoked(&r->global);
	if (ret < 0) {
		drop_base(r);
		return ret;
	}
	r->inputs = *in;
	memset(in, 0, sizeof(*in));
	drop_spilled(r);
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

/* The inputs of a process that writes lack its live file, and the log of that (index_inputs_list()). */
void reader_begin_own(struct reader *r, struct writer *w)
{
	const char *path = w->tail.log_path;

	r->own_log = UINT32_MAX;
	r->own_indexed = 0;
	drop_spilled(r);
	w->nr_pinned = 0; /* whatever was in other maps, which have gone */
	for (uint32_t i = r->logs.nr; r->loaded && i-- > 0;)
		if (!strcmp(r->logs.logs[i].path, path)) { /* one that is gone on with */
			r->inputs.logs_digest -= index_log_digest(path, strlen(path));
			return;
		}
}

void reader_end_own(struct reader *r, const struct writer *w)
{
	const char *path = w->tail.log_path;
	char index[CONTAINER_PATH_LEN];
	uint64_t more = w->indexed_len - r->own_indexed;

	r->own_log = UINT32_MAX;
	if (!r->loaded)
		return;
	r->inputs.logs_digest += index_log_digest(path, strlen(path));
	name_index_here(r->c, index);
	if (more && index_inputs_grow(&r->inputs, index, more))
		drop_base(r);
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

	r->nr_lists += !ret;
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
		r->own_indexed = w->indexed_len;
		ret = own_log_no(r, w);
		ret = ret < 0 ? ret : 0;
	}
	event(EVENT_INDEX_LOADED, .container = r->c->dir, .count = ret ? 0 : r->levels.v[0].map.nr_records,
	      .logs = r->logs.nr, .result = ret);
	return ret;
}

/* ---- maps that are parked between a close and an open ---- */

/*
 * Not of a file that a process opens once more to read what it has written. Nor of a store where a look at
 * the size of a node index may be older than its last append. Of a confirmed map the inputs are not known.
 */
static bool is_worth_parking(const struct reader *r)
{
	const struct store *s = r->c->store;

	return r->loaded && !r->inputs.nr_lives && !r->lacks_hosts && (!s->remote || s->coherent) &&
	       (!r->global.base || r->inputs.nr_indexes) && resume_again(r->c);
}

/* The base is a kept map, which goes with the next write: have a copy. 0; -errno: it stays. */
static int copy_base(struct reader *r)
{
	struct level *base = &r->levels.v[0];
	struct level copy = { .image_len = base->image_len };
	int ret;

	if (!base->mapped)
		return 0;
	if (base->image_len > PARKED_MAX)
		return -EFBIG;
	copy.image = mem_alloc(base->image_len);
	if (!copy.image)
		return -ENOMEM;
	memcpy(copy.image, base->image, base->image_len);
	ret = index_map_open(&copy.map, copy.image, copy.image_len, false);
	if (!ret && guard_is_broken(r->global.base))
		ret = -EIO;
	if (ret)
		mem_free(copy.image);
	else
		*base = copy;
	return ret;
}

void reader_park(struct reader *r)
{
	struct parked *p = is_worth_parking(r) && !copy_base(r) ? parked_new(r->c, r->generation_ns) : NULL;

	if (p)
		p->logs = logset_take_paths(&r->logs, &p->nr_logs);
	if (p && p->logs) {
		p->levels = r->levels;
		p->inputs = r->inputs;
		memset(&r->levels, 0, sizeof(r->levels));
		memset(&r->inputs, 0, sizeof(r->inputs));
		parked_put(p);
	} else {
		parked_free(p);
	}
	reader_release(r);
}

/* Have what was parked. It has not been compared with its inputs yet. */
static bool unpark(struct reader *r)
{
	struct parked *p = parked_take(r->c, r->generation_ns);

	if (!p)
		return false;
	r->loaded = p->levels.knows_cut || !r->seeks_cut;
	for (uint32_t i = 0; i < p->nr_logs && r->loaded; i++) {
		r->loaded = logset_add(&r->logs, p->logs[i]) >= 0;
		if (r->loaded)
			p->logs[i] = NULL;
	}
	if (r->loaded) {
		r->levels = p->levels;
		r->inputs = p->inputs;
		memset(&p->levels, 0, sizeof(p->levels));
		memset(&p->inputs, 0, sizeof(p->inputs));
		stamp_seen(r->levels.max_stamp_ns);
	}
	parked_free(p);
	return r->loaded;
}

/* So many records are kept of a writer that spills them: of a few syncs. */
#define SPILLED_MAX 1024

void reader_keep_spilled(struct reader *r, const struct writer *w, const struct index_record *records,
			 size_t nr)
{
	bool lacks = r->nr_spilled + nr != w->nr_spilled;
	struct own_record *spilled = NULL;

	if (!nr || r->loaded)
		return;
	if (!lacks && w->tail.resumed && w->nr_spilled <= SPILLED_MAX)
		spilled = vec_room(r->spilled, &r->cap_spilled, r->nr_spilled + nr, sizeof(*spilled));
	if (!spilled) {
		drop_spilled(r);
		return;
	}
	r->spilled = spilled;
	for (size_t i = 0; i < nr; i++)
		spilled[r->nr_spilled++].rec = records[i];
}

/* 0; -errno: there are no maps. */
static int put_spilled(struct reader *r, struct own_record *spilled, size_t nr, const struct writer *w)
{
	int log_no = own_log_no(r, w);

	for (size_t i = 0; i < nr && log_no >= 0; i++)
		spilled[i].log_no = (uint32_t)log_no;
	if (log_no >= 0)
		return reader_put(r, spilled, nr);
	drop_base(r);
	return log_no;
}

bool reader_carry(struct reader *r, struct writer *w, uint64_t generation_ns)
{
	struct own_record *spilled = r->spilled;
	size_t nr = r->nr_spilled;
	bool good;

	/* some of its records are in the node index alone; or, of a log near, others that are not counted */
	if (r->loaded || nr != w->nr_spilled || (w->tail.near && w->indexed_len))
		return false;
	r->generation_ns = generation_ns;
	r->seeks_cut = false;
	if (!unpark(r))
		return false;
	r->spilled = NULL; /* it begins without any */
	reader_begin_own(r, w);
	good = !nr || !put_spilled(r, spilled, nr, w);
	mem_free(spilled);
	return good;
}

/* The maps that were parked, if they are of now; else new ones. */
static int load_parked(struct reader *r, struct writer *w)
{
	bool changed;
	int ret;

	if (w)
		reader_begin_own(r, w);
	ret = reader_reload(r, w, r->generation_ns, &changed);
	if (!ret && !changed && w)
		ret = reader_add_own(r, w);
	if (ret)
		drop_base(r);
	return ret;
}

int reader_load(struct reader *r, struct writer *w, uint64_t generation_ns)
{
	struct load *l;
	int ret;

	r->generation_ns = generation_ns;
	*r->lost = '\0';
	if (!r->loaded && unpark(r))
		return load_parked(r, w);
	l = mem_zalloc(sizeof(*l));
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
	if (r->loaded && r->generation_ns == generation_ns && (r->levels.knows_cut || !r->seeks_cut)) {
		if (w)
			name_live_of_log(w->tail.log_path, own);
		watch_word(&r->watch, r->c, r->may_make);
		if (kept_map_is_current(&r->global, r->c)) {
			*changed = false;
			return 0;
		}
		ret = index_inputs_list(&in, r->c, w ? own : NULL);
		r->nr_lists += !ret;
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

int reader_put(struct reader *r, const struct own_record *records, size_t nr)
{
	int ret = levels_put(&r->levels, records, nr);

	if (ret)
		drop_base(r);
	return ret;
}

int reader_add_own(struct reader *r, struct writer *w)
{
	uint64_t have = w->nr_pinned, nr;
	struct own_record *records;
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

bool reader_is_stale(const struct reader *r)
{
	return !likely(watch_is_idle(&r->watch)) && watch_changed(&r->watch);
}
