/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The layers of a mixed panel: which of them is seen at a byte. One lookup searches all that are over it; a
 * walk keeps from piece to piece what it has found, and looks at each element once.
 */
#include "index/map/layers.h"

#include "index/map/image.h"
#include "index/map/piece.h"

#include "core/base/alloc.h"
#include "core/base/bytes.h"

/* What a search through the layers has found so far. */
struct layer_search {
	uint64_t x;
	uint64_t stop;         /* nothing changes before here */
	const uint8_t *newest; /* of the layers with an element over x */
	uint64_t newest_log_off, newest_len;
};

static bool layer_newer(const uint8_t *a, const uint8_t *b)
{
	if (get_le64(a + 40) != get_le64(b + 40))
		return get_le64(a + 40) > get_le64(b + 40);
	if (get_le32(a + 56) != get_le32(b + 56))
		return get_le32(a + 56) > get_le32(b + 56);
	return get_le32(a + 60) > get_le32(b + 60);
}

/*
 * Where x is in a layer: @log_off and the @len left of the element that is over it, 0 if none is; else @next,
 * how far the next element is, 0 if there is none.
 */
struct layer_place {
	uint64_t log_off, len, next;
};

static struct layer_place find_place(const uint8_t *layer, uint64_t x)
{
	uint64_t into = x - get_le64(layer), length = get_le64(layer + 8);
	uint64_t stride = get_le64(layer + 16), count = get_le64(layer + 24);
	uint64_t outer_stride = get_le64(layer + 72), outer_count = get_le64(layer + 80);
	uint64_t i = 0, j = 0, end = get_le64(layer + 96);
	struct layer_place place = { 0 };

	if (x >= end)
		return place;
	if (outer_stride > 0 && outer_count > 0) {
		j = min_u64(into / outer_stride, outer_count - 1);
		into -= j * outer_stride;
	}
	if (stride > 0 && count > 0) {
		i = min_u64(into / stride, count - 1);
		into -= i * stride;
	}
	if (into < length) {
		place.len = min_u64(length - into, end - x);
		place.log_off =
			get_le64(layer + 32) + i * get_le64(layer + 64) + j * get_le64(layer + 88) + into;
	} else if (i + 1 < count && stride > into) {
		place.next = stride - into;
	} else if (j + 1 < outer_count && outer_stride > i * stride + into) {
		place.next = outer_stride - i * stride - into;
	}
	if (place.next >= end - x)
		place.next = 0;
	return place;
}

/* First time around: is this layer the one that is seen at x? */
static void layer_covers(struct layer_search *s, const uint8_t *layer)
{
	struct layer_place place;

	if (s->newest && !layer_newer(layer, s->newest))
		return;
	place = find_place(layer, s->x);
	if (place.len > 0) {
		s->newest = layer;
		s->newest_log_off = place.log_off;
		s->newest_len = place.len;
	}
}

/* Second time: a newer one has no element over x, but its next one hides what is seen there. */
static void layer_stops(struct layer_search *s, const uint8_t *layer)
{
	struct layer_place place;

	if (s->newest && !layer_newer(layer, s->newest))
		return;
	place = find_place(layer, s->x);
	if (place.next > 0)
		s->stop = min_u64(s->stop, s->x + place.next);
}

/*
 * Call @visit for each layer of the @nr at @v that begins at or before x and ends after it. The first
 * that begins after x stops the piece, whatever is newer: true enough, and no need to look further.
 * A subtree is half as long as the one above, so the stack never fills.
 */
static void layers_at(const uint8_t *v, uint64_t nr, struct layer_search *s,
		      void (*visit)(struct layer_search *s, const uint8_t *layer))
{
	struct { uint64_t l, r; } stack[66];
	int depth = 0;

	stack[depth].l = 0;
	stack[depth++].r = nr;
	while (depth > 0) {
		uint64_t l = stack[--depth].l, r = stack[depth].r, mid;
		const uint8_t *layer;

		if (l >= r)
			continue;
		mid = l + (r - l) / 2;
		layer = v + mid * IMAGE_LAYER_LEN;
		if (get_le64(layer + 48) <= s->x)
			continue;
		stack[depth].l = l;
		stack[depth++].r = mid;
		if (get_le64(layer) > s->x) {
			s->stop = min_u64(s->stop, get_le64(layer));
			continue;
		}
		visit(s, layer);
		stack[depth].l = mid + 1;
		stack[depth++].r = r;
	}
}

bool layers_lookup(const uint8_t *v, uint64_t nr, struct index_piece *piece)
{
	struct layer_search s = { .x = piece->logical_off, .stop = UINT64_MAX };

	layers_at(v, nr, &s, layer_covers);
	layers_at(v, nr, &s, layer_stops);
	if (s.stop > s.x)
		piece->len = min_u64(piece->len, s.stop - s.x);
	if (!s.newest)
		return false;
	piece->len = min_u64(piece->len, s.newest_len);
	piece->log_off = s.newest_log_off;
	piece->log_no = get_le32(s.newest + 56);
	return true;
}

/* ---- a walk ---- */

void index_walk_release(struct index_walk *w)
{
	overlay_list_release(&w->seen);
	overlay_keys_release(&w->next);
	*w = (struct index_walk){ .nr_looks = w->nr_looks };
}

/*
 * Look at layer @idx at @x, which is at or behind where it begins: its element there becomes one of those
 * that may be seen, and it is looked at again where that ends, or where the next one begins. A layer that has
 * none any more is forgotten.
 */
static int walk_look(struct index_walk *w, uint32_t idx, uint64_t x)
{
	const uint8_t *layer = w->v + (size_t)idx * IMAGE_LAYER_LEN;
	struct layer_place place = find_place(layer, x);
	struct overlay_piece element = {
		.lo = x, .hi = x + place.len, .log_off = place.log_off, .stamp_ns = get_le64(layer + 40),
		.log_no = get_le32(layer + 56), .seq = get_le32(layer + 60),
	};
	uint64_t next = place.len ? place.len : place.next;
	int ret = 0;

	w->nr_looks++;
	if (!next)
		return 0;
	if (place.len)
		ret = overlay_heap_push(&w->seen, &element);
	return ret ? ret : overlay_keys_push(&w->next, x + next, idx);
}

/* All layers are as they are at @x. */
static int walk_to(struct index_walk *w, uint64_t x)
{
	int ret = 0;

	while (!ret && w->next.n && w->next.v[0].key <= x) {
		uint32_t idx = w->next.v[0].idx;

		overlay_keys_pop(&w->next);
		ret = walk_look(w, idx, x);
	}
	while (!ret && w->nr_begun < w->nr && get_le64(w->v + w->nr_begun * IMAGE_LAYER_LEN) <= x)
		ret = walk_look(w, (uint32_t)w->nr_begun++, x);
	return ret;
}

/*
 * Where a newer element than @top begins, at most @stop. What @top hides until its end is passed over: such
 * layers are looked at there.
 */
static int walk_stop(struct index_walk *w, const struct overlay_piece *top, uint64_t *stop)
{
	int ret = 0;

	while (!ret && w->next.n && w->next.v[0].key < *stop) {
		uint32_t idx = w->next.v[0].idx;
		const uint8_t *layer = w->v + (size_t)idx * IMAGE_LAYER_LEN;
		struct overlay_piece its = { .stamp_ns = get_le64(layer + 40), .log_no = get_le32(layer + 56),
					     .seq = get_le32(layer + 60) };

		if (!top || overlay_newer(&its, top)) {
			*stop = w->next.v[0].key;
			break;
		}
		overlay_keys_pop(&w->next);
		ret = walk_look(w, idx, top->hi);
	}
	return ret;
}

bool layers_walk(struct index_walk *w, const uint8_t *v, uint64_t nr, struct index_piece *piece)
{
	uint64_t x = piece->logical_off, stop = UINT64_MAX;
	const struct overlay_piece *newest;
	struct overlay_piece top;
	int ret;

	if (w->v != v || w->nr != nr || x < w->x) {
		index_walk_release(w);
		w->v = v;
		w->nr = nr;
	}
	w->x = x;
	ret = nr > UINT32_MAX ? -ERANGE : walk_to(w, x);
	newest = ret ? NULL : overlay_heap_top(&w->seen, x);
	if (newest)
		top = *newest;
	if (w->nr_begun < nr)
		stop = get_le64(v + w->nr_begun * IMAGE_LAYER_LEN);
	if (newest)
		stop = min_u64(stop, top.hi);
	if (!ret)
		ret = walk_stop(w, newest ? &top : NULL, &stop);
	if (ret) { /* no memory: without a walk */
		index_walk_release(w);
		return layers_lookup(v, nr, piece);
	}
	piece->len = min_u64(piece->len, stop - x);
	if (!newest)
		return false;
	piece->log_off = top.log_off + (x - top.lo);
	piece->log_no = top.log_no;
	return true;
}
