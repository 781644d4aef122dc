/* SPDX-License-Identifier: BSD-3-Clause */
/* The first memory of a process. */
#include "core/base/early.h"

#include "core/base/newer.h"

#define ROOM ((size_t)64 << 10)

struct block {
	uint32_t len;   /* of its data, a multiple of 16 */
	uint32_t below; /* where the block below begins; of the lowest its own beginning */
	uint32_t freed; /* atomic */
	uint32_t unused;
};
static_assert(sizeof(struct block) == 16, "data is 16-byte aligned");

static char room[ROOM] __attribute__((aligned(4096)));
static bool busy;     /* atomic: a thread is at what follows, or was when this process was forked off */
static uint32_t top;  /* the first byte behind the blocks */
static uint32_t last; /* the uppermost block, if there is any */
static uint32_t used; /* all bytes from here on are 0 still */

static struct block *at(uint32_t off) { return (struct block *)(room + off); }

static bool begin(void) { return !__atomic_exchange_n(&busy, true, __ATOMIC_ACQUIRE); }
static void end(void) { __atomic_store_n(&busy, false, __ATOMIC_RELEASE); }

static void *push(uint32_t len, bool zero)
{
	struct block *b = at(top);
	uint32_t below = top ? last : 0, dirty;

	if (top + sizeof(*b) + len > ROOM)
		return NULL;
	last = top;
	top += (uint32_t)sizeof(*b) + len;
	dirty = used < top ? used : top;
	used = used < top ? top : used;
	if (zero && (size_t)dirty > last + sizeof(*b))
		memset(b + 1, 0, dirty - last - sizeof(*b));
	b->len = len;
	b->below = below;
	__atomic_store_n(&b->freed, 0, __ATOMIC_RELAXED);
	return b + 1;
}

void *early_alloc(size_t len, bool zero)
{
	void *p;

	if (!__libc_single_threaded || len > EARLY_LEN_MAX || !begin())
		return NULL;
	p = push((uint32_t)round_up_u64(len ? len : 1, 16), zero);
	end();
	return p;
}

bool early_has(const void *p) { return (const char *)p >= room && (const char *)p < room + ROOM; }

size_t early_len(const void *p) { return ((const struct block *)p - 1)->len; }

void early_free(void *p)
{
	__atomic_store_n(&((struct block *)p - 1)->freed, 1, __ATOMIC_RELEASE);
	if (!begin())
		return;
	while (top && __atomic_load_n(&at(last)->freed, __ATOMIC_ACQUIRE)) {
		top = last;
		last = at(top)->below;
	}
	end();
}
