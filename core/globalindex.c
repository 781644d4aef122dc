/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The map of a container: the kept one, if it is of what there is now, else one made anew, which may be kept; and
 * whether that was all, for others write meanwhile.
 */
#include "globalindex.h"

#include "alloc.h"
#include "dropping.h"
#include "merging.h"
#include "stage.h"

#include <stdio.h>

/* A map of less than all of these is made as fast as a kept one is found. */
#define GLOBAL_WORTH_RECORDS 4096
#define GLOBAL_WORTH_LOGS 8
#define GLOBAL_WORTH_INDEXES 4

/* ---- whether that was all ---- */

struct check_arg {
	const struct container *c;
	const struct index_inputs *in;
	struct gathered *g;
	bool alone; /* so far: nobody writes, and all that is listed is in the map */
};

/* A log that no index knows, has bytes, and whose process is not at work on it: its index is lost. */
static int check_log(struct check_arg *ca, const char *path)
{
	char full[CONTAINER_PATH_LEN], live[CONTAINER_PATH_LEN];
	struct stat st;

	if (path_is_among(path, ca->g->logs, ca->g->nr_logs))
		return 0;
	ca->alone = false;
	container_path(ca->c, path, full);
	if (ca->c->store->ops->stat(ca->c->store, full, &st) || st.st_size <= DROPPING_DATA_OFF)
		return 0;
	dropping_live_path(path, live);
	if (stage_is_unborn(ca->c, live))
		return 0;
	snprintf(ca->g->lost, sizeof(ca->g->lost), "%s", path);
	return -ENOMSG;
}

static int check_dropping(void *arg, const char *path, const char *name, enum dropping_kind kind)
{
	struct check_arg *ca = arg;

	(void)name;
	if (kind == DROPPING_DATA)
		return check_log(ca, path);
	if (kind == DROPPING_LIVE)
		ca->alone = false;
	return kind != DROPPING_INDEX || path_is_among(path, ca->in->indexes, ca->in->nr_indexes) ? 0 : -EAGAIN;
}

/*
 * A node index that came into being after the inputs were listed may hold records that had left their live file by the
 * time we read that. One that was listed has been read after all live files, and so held them.
 *
 * *@alone: nobody had a live file when this began, and the map has all that there was.
 */
static int check_complete(struct gathered *g, const struct container *c, const struct index_inputs *in, bool *alone)
{
	struct check_arg ca = { .c = c, .in = in, .g = g, .alone = !in->nr_lives };
	int ret = container_list(c, check_dropping, &ca);

	for (uint32_t i = 0; i < in->nr_indexes && ca.alone && !ret; i++) { /* after the list, as above */
		uint64_t size;

		ret = index_input_size(c, in->indexes[i], &size);
		ca.alone = size == in->sizes[i];
	}
	*alone = ca.alone;
	return ret == -ENOENT ? -EAGAIN : ret;
}

/* ---- the kept map ---- */

static void drop_logs(struct gathered *g)
{
	for (uint32_t i = 0; g->logs && i < g->nr_logs; i++)
		mem_free(g->logs[i]);
	mem_free(g->logs);
	g->logs = NULL;
	g->nr_logs = 0;
}

static void drop_gathered(struct gathered *g, const struct container *c)
{
	drop_logs(g);
	mem_free(g->seen);
	g->seen = NULL;
	if (!g->mapped)
		mem_free(g->image);
	g->image = NULL;
	global_close(&g->global, c);
}

/* Take over what is in g->global. */
static int take_global(struct gathered *g)
{
	int ret = global_take(&g->global, &g->map, &g->logs, &g->nr_logs);

	if (ret)
		return ret;
	g->image = (void *)g->map.image;
	g->image_len = g->map.image_len;
	g->mapped = true;
	g->nr_records = g->map.nr_records;
	return 0;
}

int gather_confirmed(struct gathered *g, const struct container *c, uint64_t generation_ns)
{
	int ret;

	memset(g, 0, sizeof(*g));
	ret = global_open(&g->global, c, generation_ns);
	if (!ret && !global_is_confirmed(&g->global))
		ret = -EAGAIN;
	if (!ret)
		ret = take_global(g);
	if (ret)
		drop_gathered(g, c);
	return ret;
}

/* The map that somebody has kept, if it was made from @in. -ENOENT: there is none of these; -EAGAIN as gather(). */
static int gather_kept(struct gathered *g, const struct container *c, const struct index_inputs *in, uint64_t generation_ns)
{
	bool alone;
	int ret;

	if (global_open(&g->global, c, generation_ns) || !global_made_from(&g->global, in) || take_global(g)) {
		drop_gathered(g, c);
		return -ENOENT;
	}
	ret = check_complete(g, c, in, &alone);
	if (!ret && alone)
		global_confirm_opened(c, &g->global);
	return ret;
}

static bool is_worth_keeping(const struct gathered *g, const struct index_inputs *in)
{
	return g->nr_records >= GLOBAL_WORTH_RECORDS || g->nr_logs >= GLOBAL_WORTH_LOGS ||
	       in->nr_indexes >= GLOBAL_WORTH_INDEXES;
}

/* Keep the map that was made from @in, which are closed. Returns a handle or -errno: a cache, so that is no error. */
static int keep(const struct gathered *g, const struct container *c, const struct index_inputs *in, uint64_t generation_ns)
{
	struct global_parts parts = {
		.inputs = in, .generation_ns = generation_ns, .logs = g->logs, .nr_logs = g->nr_logs,
		.image = g->image, .image_len = g->image_len,
	};

	return global_create(c, &parts);
}

/* Use the file at @h, which has what is in memory, instead of that: it is shared with others. */
static void adopt(struct gathered *g, const struct container *c, int h, uint64_t generation_ns)
{
	struct index_map map;

	if (global_adopt(&g->global, c, h, generation_ns))
		return;
	if (global_map(&g->global, &map)) {
		global_close(&g->global, c);
		return;
	}
	mem_free(g->image);
	g->map = map;
	g->image = (void *)map.image;
	g->mapped = true;
}

static int gather_anew(struct gathered *g, const struct container *c, const struct index_inputs *in, const char *own_live,
		       uint64_t generation_ns, unsigned how)
{
	bool ask_logs = how & GATHER_LOGS, alone;
	int h = -ENOENT, ret = gather_merged(g, c, in, own_live, generation_ns, &ask_logs);

	/* It has to be in its place before that is looked at which confirms it. */
	if (!ret && !in->nr_lives && !own_live && !ask_logs && !(how & GATHER_ANEW) &&
	    is_worth_keeping(g, in))
		h = keep(g, c, in, generation_ns);
	if (!ret)
		ret = check_complete(g, c, in, &alone);
	if (h < 0)
		return ret;
	if (!ret && alone)
		global_confirm(c, h);
	if (!ret)
		adopt(g, c, h, generation_ns);
	store_close(c->store, &h);
	return ret;
}

int gather(struct gathered *g, const struct container *c, const struct index_inputs *in, const char *own_live,
	   uint64_t generation_ns, unsigned how)
{
	int ret = -ENOENT;

	memset(g, 0, sizeof(*g));
	if (!in->nr_lives && !own_live && !how)
		ret = gather_kept(g, c, in, generation_ns);
	if (ret == -ENOENT)
		ret = gather_anew(g, c, in, own_live, generation_ns, how);
	if (ret)
		drop_gathered(g, c);
	return ret;
}
