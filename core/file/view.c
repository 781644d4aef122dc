/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How the facts of a view combine, and how a few events change them.
 */
#include "core/file/view.h"

bool view_is_cut(const struct view *v)
{
	const struct stub *s = &v->stub;

	if (likely(!s->cut_ns) || s->in_body)
		return false;
	return s->cut_size ? v->r.loaded && v->r.levels.cut_ns == s->cut_ns : stub_is_emptied(s);
}

uint64_t view_told_len(const struct view *v, off_t st_size)
{
	return view_is_cut(v) ? v->stub.cut_size : stub_body_len(st_size);
}

uint64_t view_known_size(const struct view *v)
{
	if (v->stub.in_body)
		return v->told_len;
	return max_u64(max_u64(v->told_len, v->own_end), v->r.loaded ? reader_end(&v->r) : 0);
}

void view_drop_end(struct view *v)
{
	v->own_end = 0;
	v->end_lost = false;
}

void view_lose_end(struct view *v)
{
	v->end_lost |= v->own_end != 0;
	v->own_end = 0;
}

void view_forget_end(struct view *v)
{
	view_lose_end(v);
	v->acquired = true;
	reader_doubt(&v->r);
}

bool view_heed_cut(struct view *v, uint64_t notified_ns, uint64_t last_ns)
{
	if (notified_ns <= v->heeded_ns)
		return false;
	v->heeded_ns = notified_ns;
	/* the truncating process may have died before the truncation */
	v->end_lost |= v->own_end || last_ns > notified_ns;
	v->own_end = 0;
	v->acquired = true; /* what is known of the length may be new by now, but the map is not */
	reader_doubt(&v->r);
	return true;
}

void view_enter_body(struct view *v, const struct stub *now)
{
	reader_release(&v->r);
	v->stub = *now;
	v->stub.has_container = false; /* a damaged header may name one */
	view_drop_end(v);
	v->touched = false;
	v->acquired = false;
}
