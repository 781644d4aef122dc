/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pieces that overlap: at each byte the newest is visible. Private to the building of maps (merge.c), which
 * uses it along the file, and along the phases of a stride.
 */
#ifndef PLFS_OVERLAY_H
#define PLFS_OVERLAY_H

#include "core/base/base.h"

/* [lo, hi) is at log_off (for lo) of log log_no; one row of a strided table further, at log_off + step. */
struct overlay_piece {
	uint64_t lo, hi;
	uint64_t log_off, step;
	uint64_t stamp_ns;
	uint32_t log_no, seq; /* seq: order of adding */
};

/* The fixed rule: the later stamp, then the higher log number, then the later added. */
static inline bool overlay_newer(const struct overlay_piece *a, const struct overlay_piece *b)
{
	if (a->stamp_ns != b->stamp_ns)
		return a->stamp_ns > b->stamp_ns;
	if (a->log_no != b->log_no)
		return a->log_no > b->log_no;
	return a->seq > b->seq;
}

/* The part of @piece from @lo to @hi. */
static inline struct overlay_piece overlay_cut(const struct overlay_piece *piece, uint64_t lo, uint64_t hi)
{
	struct overlay_piece p = *piece;

	p.log_off += lo - p.lo;
	p.lo = lo;
	p.hi = hi;
	return p;
}

/* Pieces, grown by doubling; as a heap, the newest is v[0]. */
struct overlay_list {
	struct overlay_piece *v;
	size_t n, cap;
};

int overlay_list_add(struct overlay_list *list, const struct overlay_piece *piece);
int overlay_heap_push(struct overlay_list *heap, const struct overlay_piece *piece);
void overlay_heap_pop(struct overlay_list *heap);
/* The newest piece that reaches beyond @x, NULL if there is none; those that do not are dropped. */
const struct overlay_piece *overlay_heap_top(struct overlay_list *heap, uint64_t x);
void overlay_list_release(struct overlay_list *list);

/* A sort key and the item it is for; as a heap, the lowest is v[0]. */
struct overlay_key {
	uint64_t key;
	uint32_t idx, sub;
};

struct overlay_keys {
	struct overlay_key *v;
	size_t n, cap;
};

/* Make room for @nr in all. Returns 0 or -ENOMEM. */
int overlay_keys_reserve(struct overlay_keys *keys, size_t nr);
int overlay_keys_add(struct overlay_keys *keys, uint64_t key, uint32_t idx, uint32_t sub);
/* Sort by key; equal keys stay in order. Linear. Returns 0 or -ENOMEM. */
int overlay_keys_sort(struct overlay_keys *keys);
int overlay_keys_push(struct overlay_keys *heap, uint64_t key, uint32_t idx);
void overlay_keys_pop(struct overlay_keys *heap);
void overlay_keys_release(struct overlay_keys *keys);

/* Scratch space of overlay_resolve(); zeros to begin with, kept from call to call. */
struct overlay {
	struct overlay_list heap;
	struct overlay_keys order;
};

/*
 * Call @emit, in ascending order, for each visible part of @pieces, which are in any order. 0; -ENOMEM; the
 * first negative return of @emit, which ends it.
 */
int overlay_resolve(struct overlay *o, const struct overlay_list *pieces,
		    int (*emit)(void *arg, const struct overlay_piece *visible), void *arg);
void overlay_release(struct overlay *o);

#endif
