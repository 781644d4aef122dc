/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What near=auto finds on this node, for the command.
 */
#include "core/backend/auto_find.h"

#include "core/backend/auto_take.h"
#include "core/backend/mount.h"
#include "core/base/alloc.h"
#include "core/base/sys.h"
#include "core/plfs_admin.h"

/* As the first process of the job found it: not as full as it may be by now. */
static void take_chosen(struct auto_found *f, const char *dir, uint64_t max)
{
	f->taken = -1;
	for (int i = 0; i < f->nr; i++) {
		if (strcmp(f->v[i].dir, dir))
			continue;
		f->taken = i;
		f->v[i].why = NULL;
		f->v[i].max = max;
	}
}

static int tell(const struct auto_found *f, bool is_chosen, int (*fn)(void *arg, const struct plfs_auto *a),
		void *arg)
{
	int ret = 0;

	for (int i = 0; i < f->nr && !ret; i++) {
		const struct auto_candidate *c = &f->v[i];
		const struct plfs_auto a = {
			.dir = c->dir,
			.from = c->from,
			.fs = c->fs,
			.why = c->why,
			.exists = c->exists,
			.writable = c->writable && !c->read_only,
			.size = c->size,
			.free = c->free,
			.max = c->max,
			.taken = i == f->taken,
			.chosen = i == f->taken && is_chosen,
		};

		ret = fn(arg, &a);
	}
	return ret;
}

bool plfs_finds_near(const struct plfs_mount *m) { return m->spec->near_auto; }

int plfs_auto_each(const char *backend, int (*fn)(void *arg, const struct plfs_auto *a), void *arg)
{
	int saved ERRNO_KEPT = errno;
	struct auto_found *f = mem_alloc(sizeof(*f));
	char dir[CONFIG_NEAR_MAX + 1];
	uint64_t max;
	bool is_chosen;
	int ret = f ? auto_find(f, backend, "") : -ENOMEM;

	if (!ret) {
		is_chosen = backend && auto_chosen(backend, dir, &max);
		if (is_chosen)
			take_chosen(f, dir, max);
		ret = tell(f, is_chosen, fn, arg);
	}
	mem_free(f);
	return ret;
}
