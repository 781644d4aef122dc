/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sweep's state: made, filled with the input, released.
 */
#include "index/map/sweep_state.h"

#include "core/base/vec.h"

void sweep_init(struct sweep *sw, struct extents *extents)
{
	memset(sw, 0, sizeof(*sw));
	sw->extents = extents;
}

void sweep_release(struct sweep *sw)
{
	overlay_keys_release(&sw->begins);
	overlay_keys_release(&sw->ends);
	overlay_keys_release(&sw->elements);
	overlay_list_release(&sw->top);
	overlay_list_release(&sw->top_run);
	overlay_list_release(&sw->pieces);
	overlay_release(&sw->overlay);
	mem_free(sw->runs);
	mem_free(sw->nested);
	mem_free(sw->boxes);
	mem_free(sw->active);
	mem_free(sw->active_pos);
	mem_free(sw->cache);
	mem_free(sw->layers);
}

int sweep_add_layer(struct image_layer **v, size_t *n, size_t *cap, const struct image_layer *layer)
{
	if (*n == *cap) {
		size_t bigger = *cap ? *cap * 2 : 64;
		struct image_layer *p = mem_realloc(*v, bigger * sizeof(*p));

		if (!p)
			return -ENOMEM;
		*v = p;
		*cap = bigger;
	}
	(*v)[(*n)++] = *layer;
	return 0;
}

int sweep_reserve_runs(struct sweep *sw, size_t nr)
{
	struct image_layer *runs = vec_room(sw->runs, &sw->cap_runs, nr, sizeof(*runs));

	sw->runs = runs ? runs : sw->runs;
	return runs ? 0 : -ENOMEM;
}

int sweep_add_run(struct sweep *sw, const struct image_layer *run)
{
	return sweep_add_layer(&sw->runs, &sw->nr_runs, &sw->cap_runs, run);
}

int sweep_add_nested(struct sweep *sw, const struct image_layer *nested)
{
	return sweep_add_layer(&sw->nested, &sw->nr_nested, &sw->cap_nested, nested);
}
