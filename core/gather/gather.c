/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The map of a container: the kept one if its inputs are unchanged, else a new one, which may be kept. Other
 * processes write meanwhile, so the container is listed again afterwards.
 */
#include "core/gather/gather.h"

#include "core/backend/container_dirs.h"
#include "core/base/alloc.h"
#include "core/backend/names.h"
#include "core/dropping/datalog.h"
#include "core/gather/merging.h"
#include "core/dropping/live.h"

#include <stdio.h>

/* A map below all of these is made as fast as a kept one is opened. */
#define GLOBAL_WORTH_RECORDS 4096
#define GLOBAL_WORTH_LOGS 8
#define GLOBAL_WORTH_INDEXES 4

/* ---- whether the map is complete ---- */

struct check_arg {
	const struct container *c;
	const struct index_inputs *in;
	struct gathered *g;
	bool alone; /* so far: no process writes, and the map has all that is listed */
};

/*
 * A log with bytes that no index knows, and that has no live file: its index is lost, or it was closed
 * meanwhile.
 */
static int check_log(struct check_arg *ca, const char *path)
{
	char full[CONTAINER_PATH_LEN], live[CONTAINER_PATH_LEN];
	struct stat st;

	if (path_is_among(path, ca->g->logs, ca->g->nr_logs))
		return 0;
	ca->alone = false;
	container_path(ca->c, path, full);
	if (ca->c->store->ops->stat(ca->c->store, full, &st) || !datalog_len(&st))
		return 0;
	name_live_of_log(path, live);
	if (live_is_unborn(ca->c, live))
		return 0;
	return gathered_lacks_log(ca->g, path);
}

static int check_dropping(void *arg, const char *path, const char *name, enum dropping_kind kind)
{
	struct check_arg *ca = arg;

	(void)name;
	if (kind == DROPPING_DATA)
		return check_log(ca, path);
	/* What a place on another host has is not listed here, and what is on this one may go on its way. */
	if (kind == DROPPING_LIVE || kind == DROPPING_NEAR)
		ca->alone = false;
	if (kind == DROPPING_INDEX && !path_is_among(path, ca->in->indexes, ca->in->nr_indexes))
		return gathered_is_outdated(ca->g);
	return 0;
}

/*
 * A node index that was made after the inputs were listed may have records that left their live file before
 * the merge read it. A listed one was read after all live files, so it had such records.
 *
 * *@alone: no process had a live file when this began, and the map had all records.
 */
static int check_complete(struct gathered *g, const struct container *c, const struct index_inputs *in,
			  bool *alone)
{
	struct check_arg ca = { .c = c, .in = in, .g = g, .alone = !in->nr_lives };
	int ret = container_list_there(c, check_dropping, &ca);

	for (uint32_t i = 0; i < in->nr_indexes && ca.alone && !ret; i++) { /* after the list, as above */
		uint64_t size;

		ret = index_input_size(c, in->indexes[i], &size);
		ca.alone = size == in->sizes[i];
	}
	*alone = ca.alone;
	if (ret == -ENOENT && !c->filled) /* gone, of an empty file */
		return 0;
	return ret == -ENOENT ? gathered_is_outdated(g) : ret;
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

void gather_drop(struct gathered *g, const struct container *c)
{
	drop_logs(g);
	mem_free(g->seen);
	g->seen = NULL;
	if (!g->mapped)
		mem_free(g->image);
	g->image = NULL;
	kept_map_close(&g->global, c);
}

/* Make the map and the logs in g->global those of @g. */
static int take_global(struct gathered *g)
{
	int ret = kept_map_take(&g->global, &g->map, &g->logs, &g->nr_logs);

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
	ret = kept_map_open(&g->global, c, generation_ns);
	if (!ret && !kept_map_is_confirmed(&g->global))
		ret = -ENOENT;
	if (!ret)
		ret = take_global(g);
	if (ret)
		gather_drop(g, c);
	return ret;
}

/* The kept map, if it was made from @in. -ENOENT: there is none; else as gather(). */
static int gather_kept(struct gathered *g, const struct container *c, const struct index_inputs *in,
		       uint64_t generation_ns)
{
	bool alone;
	int ret;

	if (kept_map_open(&g->global, c, generation_ns) || !kept_map_made_from(&g->global, in) ||
	    take_global(g)) {
		gather_drop(g, c);
		return -ENOENT;
	}
	ret = check_complete(g, c, in, &alone);
	if (!ret && alone)
		kept_map_confirm_opened(c, &g->global);
	return ret;
}

static bool is_worth_keeping(const struct gathered *g, const struct index_inputs *in)
{
	return g->nr_records >= GLOBAL_WORTH_RECORDS || g->nr_logs >= GLOBAL_WORTH_LOGS ||
	       in->nr_indexes >= GLOBAL_WORTH_INDEXES;
}

/*
 * Keep the map, which was made from @in, all of closed logs. Returns a handle, or -errno, which is no error
 * of gather().
 */
static int keep(const struct gathered *g, const struct container *c, const struct index_inputs *in,
		uint64_t generation_ns)
{
	struct kept_map_parts parts = {
		.inputs = in, .generation_ns = generation_ns, .logs = g->logs, .nr_logs = g->nr_logs,
		.image = g->image, .image_len = g->image_len,
	};

	return kept_map_create(c, &parts);
}

/* Use the kept map at @h instead of the same map in memory: its pages are shared with other processes. */
static void adopt(struct gathered *g, const struct container *c, int h, uint64_t generation_ns)
{
	struct index_map map;

	if (kept_map_adopt(&g->global, c, h, generation_ns))
		return;
	if (kept_map_map(&g->global, &map)) {
		kept_map_close(&g->global, c);
		return;
	}
	mem_free(g->image);
	g->map = map;
	g->image = (void *)map.image;
	g->mapped = true;
}

static int gather_anew(struct gathered *g, const struct container *c, const struct index_inputs *in,
		       const char *own_live, uint64_t generation_ns, unsigned how)
{
	bool ask_logs = how & GATHER_LOGS, alone;
	const struct gather_span span = { generation_ns, UINT64_MAX };
	int h = -ENOENT, ret = gather_merged(g, c, in, own_live, &span, &ask_logs);

	/* The file has its name before the container is listed again: R1 before R2 (kept_map.h). */
	if (!ret && !in->nr_lives && !own_live && !ask_logs && !(how & GATHER_ANEW) &&
	    is_worth_keeping(g, in))
		h = keep(g, c, in, generation_ns);
	if (!ret)
		ret = check_complete(g, c, in, &alone);
	if (h < 0)
		return ret;
	if (!ret && alone)
		kept_map_confirm(c, h);
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
	if (ret == -EAGAIN) /* a live file whose owner is busy, or a store that asks for it */
		ret = gathered_is_outdated(g);
	if (ret)
		gather_drop(g, c);
	return ret;
}

int gather_until(struct gathered *g, const struct container *c, const struct gather_span *span)
{
	struct index_inputs in;
	bool ask_logs = false, alone;
	int ret = index_inputs_list(&in, c, NULL);

	memset(g, 0, sizeof(*g));
	if (ret)
		return ret;
	ret = gather_merged(g, c, &in, NULL, span, &ask_logs);
	if (!ret)
		ret = ask_logs ? -EIO : check_complete(g, c, &in, &alone);
	index_inputs_release(&in);
	if (ret)
		gather_drop(g, c);
	return ret > 0 ? -EAGAIN : ret;
}
