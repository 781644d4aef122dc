/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies of logs that stay where they are: on this node for its readers, in other backends, and back.
 */
#include "core/dropping/carry.h"

#include "core/backend/names.h"
#include "core/backend/placed.h"
#include "core/backend/staged.h"
#include "core/base/alloc.h"
#include "core/dropping/datalog.h"

#include <stdio.h>

/* ---- a staged copy ---- */

static int remove_tmp(void *arg, const char *name)
{
	struct store *to = arg;

	if (strstr(name, ".tmp."))
		to->ops->unlink(to, name);
	return 0;
}

/* Into the directory of copies, k->home: under a temporary name. Those of processes that were killed go. */
static int stage(struct carried *k, const char *name, struct carry *carry)
{
	char tmp[STORE_PATH_LEN];
	off_t len;
	int ret = carried_name_tmp(name, tmp);

	if (ret)
		return ret;
	k->home.ops->list(&k->home, ".", remove_tmp, &k->home);
	ret = carried_copy_all(k, tmp, &len, carry);
	if (!ret)
		ret = carried_is_same(k, len);
	if (!ret)
		ret = k->home.ops->rename(&k->home, tmp, name);
	if (ret)
		k->home.ops->unlink(&k->home, tmp);
	return ret ? ret : store_sync_path(&k->home, ".", true);
}

int carry_stage(const struct container *c, const char *path, struct carry *carry)
{
	struct carried k = { .c = c, .path = path, .near = -1, .from = -1, .other = -1, .to = -1,
			     .reserves = true, .private = true };
	char dir[CONTAINER_PATH_LEN];
	struct store to;
	struct stat st;
	uint64_t len;
	int ret;

	container_path(c, path, k.full);
	if (placed_is_near(c->store, k.full))
		return -EALREADY;
	snprintf(dir, sizeof(dir), "%.*s", (int)(strrchr(k.full, '/') - k.full), k.full);
	k.from = datalog_open(c, path, false);
	ret = k.from < 0 ? k.from : c->store->ops->fstat(c->store, k.from, &st);
	if (!ret && staged_find(c->store, k.full, &len) && len == (uint64_t)st.st_size)
		ret = -EALREADY;
	if (!ret)
		ret = carried_make_buf(&k);
	if (!ret)
		ret = carried_is_open(&k) ? -EBUSY : staged_enter(c->store, dir, &to);
	if (!ret) {
		k.home = to;
		ret = stage(&k, strrchr(k.full, '/') + 1, carry);
	}
	carry->nr_logs += !ret;
	carried_end(&k);
	if (k.home.ops)
		store_close(&to, &to.root);
	return ret;
}

/* ---- copies elsewhere ---- */

/* k->from is open: copy it to k->home under the name k->full, beside which others are put first. */
static int copy_to(struct carried *k, struct carry *carry)
{
	char tmp[STORE_PATH_LEN] = "";
	off_t len = 0;
	int ret = carried_name_tmp(k->full, tmp);

	if (!ret)
		ret = carried_make_buf(k);
	if (!ret)
		ret = carried_is_open(k) ? -EBUSY : 0;
	if (ret)
		return ret;
	ret = carried_copy_all(k, tmp, &len, carry);
	if (!ret)
		ret = carried_commit(k, tmp, len);
	if (ret)
		k->home.ops->unlink(&k->home, tmp);
	return ret;
}

/* From the log itself, or from @from, which stays open. */
static int copy_there(const struct container *c, const char *path, int from, struct place_dir *to,
		      struct carry *carry)
{
	struct carried k = { .c = c, .home = to->store, .path = path, .near = -1, .other = -1, .to = -1,
			     .private = from < 0, .restores = from >= 0 };
	int ret;

	snprintf(k.full, sizeof(k.full), "%s", name_of(path));
	k.from = from < 0 ? datalog_open(c, path, false) : from;
	ret = k.from < 0 ? k.from : copy_to(&k, carry);
	if (!ret)
		ret = to->store.ops->sync(&to->store, to->store.root, true);
	carry->nr_logs += !ret;
	k.from = from < 0 ? k.from : -1;
	carried_end(&k);
	return ret;
}

int carry_copy(const struct container *c, const char *path, struct place_dir *to, struct carry *carry)
{
	return copy_there(c, path, -1, to, carry);
}

int carry_there(const struct container *c, const char *path, int from, struct place_dir *to,
		struct carry *carry)
{
	return copy_there(c, path, from, to, carry);
}

int carry_back(const struct container *c, const char *path, int from, int other, struct carry *carry)
{
	struct carried k = { .c = c, .home = placed_home(c->store), .path = path, .near = -1, .from = from,
			     .other = other, .to = -1, .restores = true };
	int ret;

	container_path(c, path, k.full);
	ret = copy_to(&k, carry);
	if (!ret)
		ret = carried_sync_hostdir(&k);
	carry->nr_logs += !ret;
	k.from = -1; /* the caller's */
	carried_end(&k);
	return ret;
}
