/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Growing arrays, two heaps, a radix sort, and the sweep that finds what is visible. The C library's
 * qsort is no choice here: it allocates from the host program's heap.
 */
#include "index/map/overlay.h"

#include "core/base/alloc.h"

/* Room for one more element of @size in an array of @n. */
static int grow(void **v, size_t n, size_t *cap, size_t size)
{
	size_t bigger;
	void *p;

	if (n < *cap)
		return 0;
	bigger = *cap ? *cap * 2 : 64;
	if (bigger > SIZE_MAX / size)
		return -ENOMEM;
	p = mem_realloc(*v, bigger * size);
	if (!p)
		return -ENOMEM;
	*v = p;
	*cap = bigger;
	return 0;
}

int overlay_list_add(struct overlay_list *list, const struct overlay_piece *piece)
{
	void *v = list->v;
	int ret = grow(&v, list->n, &list->cap, sizeof(*list->v));

	list->v = v;
	if (!ret)
		list->v[list->n++] = *piece;
	return ret;
}

void overlay_list_release(struct overlay_list *list)
{
	mem_free(list->v);
	memset(list, 0, sizeof(*list));
}

int overlay_heap_push(struct overlay_list *heap, const struct overlay_piece *piece)
{
	int ret = overlay_list_add(heap, piece);
	size_t i = heap->n - 1;

	if (ret)
		return ret;
	while (i > 0 && overlay_newer(piece, &heap->v[(i - 1) / 2])) {
		heap->v[i] = heap->v[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	heap->v[i] = *piece;
	return 0;
}

void overlay_heap_pop(struct overlay_list *heap)
{
	struct overlay_piece *v = heap->v;
	size_t n = --heap->n, i = 0;

	for (;;) {
		size_t child = 2 * i + 1;

		if (child >= n)
			break;
		if (child + 1 < n && overlay_newer(&v[child + 1], &v[child]))
			child++;
		if (!overlay_newer(&v[child], &v[n]))
			break;
		v[i] = v[child];
		i = child;
	}
	v[i] = v[n];
}

const struct overlay_piece *overlay_heap_top(struct overlay_list *heap, uint64_t x)
{
	while (heap->n > 0 && heap->v[0].hi <= x)
		overlay_heap_pop(heap);
	return heap->n > 0 ? &heap->v[0] : NULL;
}

int overlay_keys_reserve(struct overlay_keys *keys, size_t nr)
{
	struct overlay_key *v = nr > keys->cap ? mem_realloc(keys->v, nr * sizeof(*v)) : keys->v;

	if (nr > keys->cap && !v)
		return -ENOMEM;
	keys->v = v;
	keys->cap = max_u64(keys->cap, nr);
	return 0;
}

int overlay_keys_add(struct overlay_keys *keys, uint64_t key, uint32_t idx, uint32_t sub)
{
	void *v = keys->v;
	int ret = grow(&v, keys->n, &keys->cap, sizeof(*keys->v));

	keys->v = v;
	if (!ret)
		keys->v[keys->n++] = (struct overlay_key){ key, idx, sub };
	return ret;
}

void overlay_keys_release(struct overlay_keys *keys)
{
	mem_free(keys->v);
	memset(keys, 0, sizeof(*keys));
}

int overlay_keys_push(struct overlay_keys *heap, uint64_t key, uint32_t idx)
{
	int ret = overlay_keys_add(heap, key, idx, 0);
	size_t i = heap->n - 1;
	struct overlay_key added;

	if (ret)
		return ret;
	added = heap->v[i];
	while (i > 0 && key < heap->v[(i - 1) / 2].key) {
		heap->v[i] = heap->v[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	heap->v[i] = added;
	return 0;
}

void overlay_keys_pop(struct overlay_keys *heap)
{
	struct overlay_key *v = heap->v;
	size_t n = --heap->n, i = 0;

	for (;;) {
		size_t child = 2 * i + 1;

		if (child >= n)
			break;
		if (child + 1 < n && v[child + 1].key < v[child].key)
			child++;
		if (v[child].key >= v[n].key)
			break;
		v[i] = v[child];
		i = child;
	}
	v[i] = v[n];
}

static void insertion_sort(struct overlay_key *v, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		struct overlay_key k = v[i];
		size_t j = i;

		for (; j > 0 && v[j - 1].key > k.key; j--)
			v[j] = v[j - 1];
		v[j] = k;
	}
}

static bool is_sorted(const struct overlay_key *v, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (v[i - 1].key > v[i].key)
			return false;
	return true;
}

/* Least significant byte first; bytes that are the same in all keys cost nothing. @tmp: room for as many. */
static void radix_sort(struct overlay_key *keys, size_t n, struct overlay_key *tmp, size_t counts[8][256])
{
	struct overlay_key *from = keys, *to = tmp;

	for (size_t i = 0; i < n; i++)
		for (int d = 0; d < 8; d++)
			counts[d][from[i].key >> (8 * d) & 255]++;
	for (int d = 0; d < 8; d++) {
		size_t sum = 0, *count = counts[d];
		struct overlay_key *swap = from;

		if (count[from[0].key >> (8 * d) & 255] == n)
			continue;
		for (int b = 0; b < 256; b++) {
			size_t c = count[b];

			count[b] = sum;
			sum += c;
		}
		for (size_t i = 0; i < n; i++)
			to[count[from[i].key >> (8 * d) & 255]++] = from[i];
		from = to;
		to = swap;
	}
	if (from != keys)
		memcpy(keys, from, n * sizeof(*from));
}

/* The counts take 16 KiB, which is all the stack that a thread may have. */
int overlay_keys_sort(struct overlay_keys *keys)
{
	struct overlay_key *tmp;
	size_t(*counts)[256];
	bool done;

	if (keys->n <= 48) {
		insertion_sort(keys->v, keys->n);
		return 0;
	}
	if (is_sorted(keys->v, keys->n))
		return 0;
	counts = mem_zalloc(8 * sizeof(*counts));
	tmp = mem_alloc(keys->n * sizeof(*tmp));
	done = counts && tmp;
	if (done)
		radix_sort(keys->v, keys->n, tmp, counts);
	mem_free(counts);
	mem_free(tmp);
	return done ? 0 : -ENOMEM;
}

/*
 * From left to right; the heap holds what has begun (and, waiting below what hides it, some that
 * will begin before that ends). An older piece that ends before the top does is never seen.
 */
int overlay_resolve(struct overlay *o, const struct overlay_list *pieces,
		    int (*emit)(void *arg, const struct overlay_piece *visible), void *arg)
{
	const struct overlay_key *order;
	size_t i = 0, n = pieces->n;
	uint64_t x = 0;
	int ret = 0;

	o->heap.n = 0;
	o->order.n = 0;
	for (size_t k = 0; k < n && !ret; k++)
		ret = overlay_keys_add(&o->order, pieces->v[k].lo, (uint32_t)k, 0);
	if (!ret)
		ret = overlay_keys_sort(&o->order);
	order = o->order.v;

	while (!ret) {
		const struct overlay_piece *top = overlay_heap_top(&o->heap, x);
		struct overlay_piece visible;
		uint64_t y;

		if (i < n && (!top || order[i].key <= x)) {
			x = max_u64(x, order[i].key);
			ret = overlay_heap_push(&o->heap, &pieces->v[order[i++].idx]);
			continue;
		}
		if (!top)
			break;
		for (y = top->hi; i < n && order[i].key < y && !ret; i++) {
			const struct overlay_piece *next = &pieces->v[order[i].idx];

			if (overlay_newer(next, top)) {
				y = next->lo;
				break;
			}
			if (next->hi > top->hi) {
				ret = overlay_heap_push(&o->heap, next);
				top = &o->heap.v[0]; /* still the same, perhaps elsewhere */
			}
		}
		if (ret)
			break;
		visible = overlay_cut(top, x, y);
		ret = emit(arg, &visible);
		x = y;
	}
	return ret;
}

void overlay_release(struct overlay *o)
{
	overlay_list_release(&o->heap);
	overlay_keys_release(&o->order);
}
