/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Grouping pieces by the place in a log that they come from, and reading the groups.
 */
#include "core/read/scatter.h"

#include "core/dropping/datalog.h"

void scatter_init(struct scatter *s, unsigned max_groups)
{
	s->nr_pieces = s->nr_groups = s->last = 0;
	s->max_groups = (uint16_t)min_size(max_groups, SCATTER_GROUPS);
}

static bool goes_on(const struct scatter_group *g, uint32_t log_no, uint64_t log_off)
{
	return g->log_no == log_no && g->log_off + g->len == log_off;
}

/* The group that the piece continues; logs take turns mostly, so it is the one after the last. */
static struct scatter_group *find_group(struct scatter *s, uint32_t log_no, uint64_t log_off)
{
	for (unsigned i = 0, at = s->last; i < s->nr_groups; i++) {
		at = at + 1 < s->nr_groups ? at + 1 : 0;
		if (goes_on(&s->groups[at], log_no, log_off)) {
			s->last = (uint16_t)at;
			return &s->groups[at];
		}
	}
	if (s->nr_groups == s->max_groups)
		return NULL;
	s->last = s->nr_groups++;
	s->groups[s->last] = (struct scatter_group){ .log_no = log_no, .log_off = log_off };
	return &s->groups[s->last];
}

bool scatter_add(struct scatter *s, uint32_t log_no, uint64_t log_off, void *buf, size_t len)
{
	struct scatter_group *g;
	uint16_t no = s->nr_pieces;

	if (no == SCATTER_PIECES)
		return false;
	g = find_group(s, log_no, log_off);
	if (!g)
		return false;
	if (g->nr_pieces && s->pieces[g->last].buf + s->pieces[g->last].len == buf) {
		s->pieces[g->last].len += (uint32_t)len;
		g->len += len;
		return true;
	}
	s->pieces[no] = (struct scatter_piece){ .buf = buf, .len = (uint32_t)len };
	if (g->nr_pieces++)
		s->pieces[g->last].next = no;
	else
		g->first = no;
	g->last = no;
	g->len += len;
	s->nr_pieces++;
	return true;
}

static bool read_group(struct scatter *s, const struct scatter_group *g, struct store *store)
{
	ssize_t n;

	for (unsigned i = 0, at = g->first; i < g->nr_pieces; i++, at = s->pieces[at].next)
		s->iov[i] = (struct iovec){ .iov_base = s->pieces[at].buf, .iov_len = s->pieces[at].len };
	if (g->sums)
		return sums_read(store, g->handle->h, s->iov, g->nr_pieces, s->part, g->log_off, g->sums);
	n = datalog_preadv(store, g->handle->h, s->iov, g->nr_pieces, g->log_off);
	return n >= 0 && (uint64_t)n == g->len;
}

bool scatter_run(struct scatter *s, struct store *store)
{
	bool ok = true;

	for (unsigned i = 0; i < s->nr_groups && ok; i++)
		if (s->groups[i].handle)
			ok = read_group(s, &s->groups[i], store);
	return ok;
}
