/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Looking at logs and groups.
 */
#include "core/admin/places/grouped.h"

#include "core/backend/container_dirs.h"
#include "core/backend/names.h"
#include "core/backend/placed.h"
#include "core/backend/spread_store.h"
#include "core/base/alloc.h"
#include "core/base/vec.h"
#include "core/dropping/datalog.h"
#include "core/dropping/node_index.h"
#include "core/dropping/parities.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- logs that are there ---- */

unsigned grouped_top(struct grouped *g, const char *top)
{
	char dir[PLACE_PATH_LEN];

	/* The backend itself: a file that was given away has logs in the trees of two users (plfs.UID). */
	snprintf(dir, sizeof(dir), "%.*s", place_near_len(top), top);
	for (unsigned i = 0; i < g->nr_tops; i++)
		if (!strcmp(g->tops[i], dir))
			return i;
	if (g->nr_tops == GROUPED_TOPS_MAX)
		return 0;
	g->tops[g->nr_tops] = mem_strdup(dir);
	return g->tops[g->nr_tops] ? g->nr_tops++ : 0;
}

/* A log of which all is known here is as long as its blocks say. */
struct measuring {
	uint32_t pid, seq;
	uint64_t len;
};

static int measure(void *arg, const struct index_block *block)
{
	struct measuring *m = arg;

	if (block->pid == m->pid && block->seq == m->seq)
		m->len = max_u64(m->len, block->log_len);
	return 0;
}

static uint64_t indexed_len(const struct container *c, const char *path)
{
	struct measuring m = { .len = 0 };
	char index[CONTAINER_PATH_LEN];
	unsigned damaged = 0;

	name_log_numbers(name_of(path), &m.pid, &m.seq);
	name_index_of(path, index);
	node_index_each(c, index, measure, &m, &damaged);
	return datalog_place(m.len);
}

/* What is near comes home first. */
static void look_at(struct grouped *g, struct grouped_log *log)
{
	const struct container *c = g->c;
	char full[CONTAINER_PATH_LEN], top[PLACE_PATH_LEN];
	struct stat st;

	container_path(c, log->path, full);
	if (listed_has_live(c, log->path)) {
		log->ret = -EBUSY;
		g->any_open = true;
		return;
	}
	log->ret = placed_is_near(c->store, full) ? -EBUSY : spread_where(c->store, full, top);
	if (!log->ret)
		log->ret = c->store->ops->stat(c->store, full, &st);
	log->len = log->ret == -EREMOTE ? indexed_len(c, log->path) : log->ret ? 0 : (uint64_t)st.st_size;
	log->top = log->ret ? 0 : grouped_top(g, top);
}

/* ---- those in a backend that is not there ---- */

struct away {
	struct grouped *g;
	const char *index;
	uint32_t pid, seq; /* of the block before */
	bool is;
};

static int find_away(void *arg, const char *path, const char *name, enum dropping_kind kind)
{
	struct away *a = arg;
	struct store *s = a->g->c->store;
	char dir[CONTAINER_PATH_LEN];
	struct place_dir to;
	int ret;

	if (kind != DROPPING_SPREAD)
		return 0;
	container_path(a->g->c, path, dir);
	*strrchr(dir, '/') = '\0';
	ret = spread_enter(s, dir, name, NULL, &to);
	if (!ret)
		place_leave(&to);
	a->is |= ret == -EREMOTE;
	return 0;
}

/* What is there is in the list already, and a log that has gone for good is nowhere. */
static int add_named(void *arg, const struct index_block *block)
{
	struct away *a = arg;
	char path[CONTAINER_PATH_LEN], full[CONTAINER_PATH_LEN];
	struct stat st;

	if (block->pid == a->pid && block->seq == a->seq)
		return 0;
	a->pid = block->pid;
	a->seq = block->seq;
	name_log_of_block(a->index, block, path);
	container_path(a->g->c, path, full);
	return a->g->c->store->ops->stat(a->g->c->store, full, &st) == -EREMOTE ?
		       listed_add(&a->g->listed, path) : 0;
}

static int add_all_named(void *arg, const char *path, const char *name, enum dropping_kind kind)
{
	struct away *a = arg;
	unsigned damaged = 0;
	int ret;

	(void)name;
	if (kind != DROPPING_INDEX)
		return 0;
	a->index = path;
	a->pid = a->seq = 0;
	ret = node_index_each(a->g->c, path, add_named, a, &damaged);
	return ret ? (ret == -ENOENT ? 0 : ret) : damaged ? -EIO : 0;
}

static int by_path(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* By their paths, each once. */
static void sort(struct listed *l)
{
	size_t nr = 0;

	if (l->nr)
		qsort(l->v, l->nr, sizeof(*l->v), by_path);
	for (size_t i = 0; i < l->nr; i++)
		if (nr && !strcmp(l->v[nr - 1], l->v[i]))
			mem_free(l->v[i]);
		else
			l->v[nr++] = l->v[i];
	l->nr = nr;
}

static int list_logs(struct grouped *g)
{
	struct away a = { .g = g };
	int ret = listed_take_there(&g->listed, g->c);

	if (!ret)
		ret = container_list_there(g->c, find_away, &a);
	if (!ret && a.is)
		ret = container_list_there(g->c, add_all_named, &a);
	sort(&g->listed);
	return ret;
}

int grouped_take(struct grouped *g, const struct container *c, unsigned wanted)
{
	int ret;

	*g = (struct grouped){ .c = c, .wanted = wanted };
	grouped_top(g, "");
	ret = parity_read(c, &g->groups);
	if (!ret)
		ret = list_logs(g);
	if (ret)
		return ret;
	g->logs = mem_zalloc((g->listed.nr + 1) * sizeof(*g->logs));
	if (!g->logs)
		return -ENOMEM;
	for (size_t i = 0; i < g->listed.nr; i++) {
		g->logs[i].path = g->listed.v[i];
		look_at(g, &g->logs[i]);
	}
	return 0;
}

void grouped_release(struct grouped *g)
{
	for (unsigned i = 0; i < g->nr_tops; i++)
		mem_free(g->tops[i]);
	mem_free(g->logs);
	mem_free(g->states);
	parity_release(&g->groups);
	listed_release(&g->listed);
}

static int is_it(const void *path, const void *log)
{
	return strcmp(path, ((const struct grouped_log *)log)->path);
}

struct grouped_log *grouped_find(const struct grouped *g, const char *path)
{
	return g->listed.nr ? bsearch(path, g->logs, g->listed.nr, sizeof(*g->logs), is_it) : NULL;
}

/* ---- groups ---- */

struct naming {
	uint32_t pid, seq;
	uint64_t void_ns;
};

static int is_named(void *arg, const struct index_block *block)
{
	const struct naming *n = arg;

	return block->pid == n->pid && block->seq == n->seq && block->max_stamp_ns > n->void_ns;
}

/*
 * Whether the log that is missing is still of the file, or that cannot be told. Blocks of void logs may stay
 * behind those (core/gather/void_logs.h).
 */
static bool is_lost(const struct container *c, const char *path, uint64_t void_ns)
{
	char index[CONTAINER_PATH_LEN];
	struct naming n = { .void_ns = void_ns };
	unsigned damaged = 0;
	int ret;

	name_log_numbers(name_of(path), &n.pid, &n.seq);
	name_index_of(path, index);
	ret = node_index_each(c, index, is_named, &n, &damaged);
	return (ret && ret != -ENOENT) || damaged;
}

/* Two of a group in one backend do not protect each other. */
static bool is_apart(struct grouped *g, const struct parity_group *group)
{
	uint64_t seen = 1ULL << grouped_top(g, group->top);

	for (unsigned i = 0; i < group->nr; i++) {
		const struct grouped_log *log = grouped_find(g, group->logs[i].path);

		if (!log || log->ret)
			continue;
		if (seen >> log->top & 1)
			return false;
		seen |= 1ULL << log->top;
	}
	return true;
}

static enum grouped_state judge(struct grouped *g, const struct parity_group *group, uint64_t void_ns)
{
	bool away = false;
	int ret;

	for (unsigned i = 0; i < group->nr; i++) {
		const struct grouped_log *log = grouped_find(g, group->logs[i].path);

		if (!log)
			return is_lost(g->c, group->logs[i].path, void_ns) ? GROUPED_NEEDED : GROUPED_DEAD;
		away |= log->ret == -EREMOTE;
	}
	ret = parities_look(g->c, group, false);
	if (ret == -ENOENT || ret == -EIO)
		return away ? GROUPED_NEEDED : GROUPED_DEAD;
	return away || ret ? GROUPED_AWAY : is_apart(g, group) ? GROUPED_GOOD : GROUPED_DEAD;
}

static bool is_of_use(const struct grouped *g, size_t no)
{
	return g->states[no] == GROUPED_GOOD || g->states[no] == GROUPED_AWAY;
}

/* How many parity files of the group of number @no, which is one, are of use. */
static unsigned nr_of_group(const struct grouped *g, size_t no)
{
	const struct parity_group *other = parity_other(&g->groups, &g->groups.v[no]);

	return other && is_of_use(g, (size_t)(other - g->groups.v)) ? 2 : 1;
}

static void cover(struct grouped *g, size_t no, bool here)
{
	const struct parity_group *group = &g->groups.v[no];
	unsigned nr = nr_of_group(g, no);

	for (unsigned i = 0; i < group->nr; i++) {
		struct grouped_log *log = grouped_find(g, group->logs[i].path);

		if (log && (log->ret == -EREMOTE || here) && group->logs[i].len >= log->len)
			log->covered = nr > log->covered ? nr : log->covered;
	}
}

void grouped_judge(struct grouped *g, uint64_t void_ns, bool waits)
{
	g->states = mem_zalloc((g->groups.cap + 1) * sizeof(*g->states));
	for (size_t i = 0; g->states && i < g->groups.nr; i++)
		g->states[i] = judge(g, &g->groups.v[i], void_ns);
	for (size_t i = 0; g->states && i < g->groups.nr; i++)
		if (is_of_use(g, i))
			cover(g, i, waits || g->states[i] == GROUPED_GOOD);
}

int grouped_add(struct grouped *g, const struct parity_group *group)
{
	size_t cap = g->groups.cap;
	struct parity_group *v = vec_room(g->groups.v, &g->groups.cap, g->groups.nr + 1, sizeof(*v));
	enum grouped_state *states;

	if (!v)
		return -ENOMEM;
	g->groups.v = v;
	if (g->groups.cap != cap) {
		states = mem_realloc(g->states, (g->groups.cap + 1) * sizeof(*states));
		if (!states)
			return -ENOMEM;
		g->states = states;
	}
	g->states[g->groups.nr] = GROUPED_GOOD;
	v[g->groups.nr++] = *group;
	cover(g, g->groups.nr - 1, true);
	return 0;
}

bool grouped_is_again(const struct grouped *g, size_t no, const struct parity_log *log)
{
	unsigned nr = is_of_use(g, no) ? nr_of_group(g, no) : 1;

	nr = nr < g->wanted ? nr : g->wanted;
	for (size_t i = no + 1; i < g->groups.nr; i++)
		if (g->states[i] == GROUPED_GOOD && parity_has(&g->groups.v[i], log->path) >= log->len &&
		    !parity_is_pair(&g->groups.v[i], &g->groups.v[no]) && nr_of_group(g, i) >= nr)
			return true;
	return false;
}

bool grouped_is_spare(const struct grouped *g, size_t no)
{
	const struct parity_group *group = &g->groups.v[no];

	if (g->states[no] != GROUPED_GOOD && g->states[no] != GROUPED_DEAD)
		return false;
	for (unsigned i = 0; i < group->nr; i++) {
		const struct grouped_log *log = grouped_find(g, group->logs[i].path);

		if (log && !grouped_is_again(g, no, &group->logs[i]))
			return g->states[no] == GROUPED_DEAD && log->covered >= g->wanted;
	}
	return true;
}
