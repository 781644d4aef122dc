/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collecting the blocks of a log.
 */
#include "core/gather/salvage.h"

#include "core/dropping/datalog.h"
#include "core/dropping/node_index.h"
#include "core/backend/names.h"
#include "core/base/msg.h"
#include "core/base/alloc.h"
#include "core/dropping/trailers.h"

#include <stdio.h>

struct salvage_arg {
	struct node_index *idx;
	struct trailer_walk walk;
	uint32_t pid, seq;
};

/* Blocks of other logs, or damaged ones, are none. */
static int add_block(void *arg, const struct index_trailer *t)
{
	struct salvage_arg *sa = arg;
	struct index_block block;
	ssize_t n, parsed;
	void *buf, *more;

	n = trailer_walk_block(&sa->walk, t, &buf);
	if (n < 0)
		return n == -ENOMEM ? -ENOMEM : 0;
	parsed = index_block_parse(&block, buf, (size_t)n);
	if (parsed == -EPROTONOSUPPORT) {
		n = parsed;
	} else if (parsed == n && block.pid == sa->pid && block.seq == sa->seq) {
		more = mem_realloc(sa->idx->buf, sa->idx->len + (size_t)n);
		if (more) {
			memcpy((char *)more + sa->idx->len, buf, (size_t)n);
			sa->idx->buf = more;
			sa->idx->len += (size_t)n;
		}
		n = more ? 0 : -ENOMEM;
	}
	mem_free(buf);
	return n < 0 ? (int)n : 0;
}

int salvage_log(struct node_index *idx, const struct container *c, const char *path, bool *whole)
{
	struct salvage_arg sa = { .idx = idx };
	struct store *s = c->store;
	struct index_trailer t;
	int h, ret;

	memset(idx, 0, sizeof(*idx));
	*whole = false;
	container_path(c, path, idx->path);
	h = datalog_open(c, path, false);
	if (h < 0)
		return h == -EIO || h == -ENOENT ? 0 : h;
	sa.walk = (struct trailer_walk){ .s = s, .h = h, .id = c->id };
	name_log_numbers(name_of(path), &sa.pid, &sa.seq);
	ret = trailer_last(s, h, c->id, &t);
	*whole = !ret || ret == -ENODATA;
	while (!ret) {
		ret = add_block(&sa, &t);
		if (!ret)
			ret = trailer_prev(&sa.walk, &t);
	}
	trailer_walk_end(&sa.walk);
	if (ret == -EBADMSG) {
		idx->len = 0;
		ret = trailer_scan(s, h, c->id, 0, add_block, &sa);
	}
	store_close(s, &h);
	if (ret == -EPROTONOSUPPORT)
		msg_error(
			"%s: an index block or trailer with features that this library does not know: use the one that wrote it",
			idx->path);
	if (ret && ret != -ENODATA) {
		node_index_close(idx);
		return ret;
	}
	return 0;
}
