/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of parked maps: few files, and not too large.
 */
#include "core/read/parked.h"

#include "core/base/alloc.h"
#include "core/base/critical.h"

#define NR_PARKED 8

/* Only tried, never waited for: a thread may hold it during a fork, and the child parks nothing then. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct parked *table[NR_PARKED];
static unsigned next_slot;
static size_t total; /* of the sizes in the table */

struct parked *parked_new(const struct container *c, uint64_t generation_ns)
{
	struct parked *p = mem_zalloc(sizeof(*p));

	if (!p)
		return NULL;
	p->store = c->store;
	memcpy(p->id, c->id, STUB_ID_LEN);
	p->generation_ns = generation_ns;
	return p;
}

void parked_free(struct parked *p)
{
	if (!p)
		return;
	levels_release(&p->levels);
	index_inputs_release(&p->inputs);
	for (uint32_t i = 0; i < p->nr_logs; i++)
		mem_free(p->logs[i]);
	mem_free(p->logs);
	mem_free(p);
}

/* Take what is in the slot @i out of the table, and put it before @list. */
static void take_out(unsigned i, struct parked **list)
{
	struct parked *p = table[i];

	if (!p)
		return;
	table[i] = NULL;
	total -= p->size;
	p->next = *list;
	*list = p;
}

/* Take what is of that container out of the table: one entry at most. NULL: none. */
static struct parked *take(const struct store *store, const uint8_t *id)
{
	struct parked *found = NULL;

	for (unsigned i = 0; i < NR_PARKED; i++)
		if (table[i] && table[i]->store == store && !memcmp(table[i]->id, id, STUB_ID_LEN))
			take_out(i, &found);
	return found;
}

void parked_put(struct parked *p)
{
	struct parked *gone, *next;

	p->size = levels_size(&p->levels);
	if (p->size > PARKED_MAX || !mutex_trylock(&lock)) {
		parked_free(p);
		return;
	}
	gone = take(p->store, p->id);
	do {
		next_slot = (next_slot + 1) % NR_PARKED;
		take_out(next_slot, &gone);
	} while (total + p->size > PARKED_MAX);
	table[next_slot] = p;
	total += p->size;
	mutex_unlock(&lock);
	for (; gone; gone = next) {
		next = gone->next;
		parked_free(gone);
	}
}

struct parked *parked_take(const struct container *c, uint64_t generation_ns)
{
	struct parked *p;

	if (!mutex_trylock(&lock))
		return NULL;
	p = take(c->store, c->id);
	mutex_unlock(&lock);
	if (!p || p->generation_ns == generation_ns)
		return p;
	parked_free(p);
	return NULL;
}
