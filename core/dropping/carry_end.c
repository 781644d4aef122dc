/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Removing near.HOST, and the directories that have become empty, behind the last log of a host.
 */
#include "core/dropping/carry.h"

#include "core/backend/names.h"
#include "core/backend/placed.h"

#include <stdio.h>

static int find_log(void *arg, const char *name)
{
	(void)arg;
	return !name_is_near(name);
}

/* From the hostdir upwards. Others may be making logs there: then they stay. */
void carry_remove_way(const char *dir, struct place_dir *top)
{
	char path[CONTAINER_PATH_LEN];

	snprintf(path, sizeof(path), "%s", strchr(dir, '/') + 1);
	for (char *slash = path + strlen(path); slash; slash = strrchr(path, '/')) {
		*slash = '\0';
		if (store_rmdir(&top->store, path))
			return;
	}
}

int carry_end(const struct container *c, const char *hostdir, const char *host, size_t host_len)
{
	struct store home = placed_home(c->store);
	char dir[CONTAINER_PATH_LEN], name[CONTAINER_PATH_LEN], full[CONTAINER_PATH_LEN];
	struct place_dir near, top;
	int ret;

	container_path(c, hostdir, dir);
	snprintf(name, sizeof(name), "near.%.*s", (int)host_len, host);
	if (snprintf(full, sizeof(full), "%s/%s", dir, name) >= (int)sizeof(full))
		return -ENAMETOOLONG;
	ret = place_enter_top(c->store, dir, host, host_len, &top);
	if (ret)
		return ret;
	ret = place_enter(c->store, dir, host, host_len, &near);
	if (!ret) {
		near.lock = store_open(&near.store, name, O_RDWR | STORE_BRIEFLY, 0);
		/* -EBUSY: somebody makes a log */
		ret = near.lock < 0 ? near.lock : store_try_lock(&near.store, near.lock);
		if (!ret && near.store.ops->list(&near.store, ".", find_log, NULL))
			ret = -EBUSY;
		if (!ret) /* no log comes back once nothing leads to it */
			ret = near.store.ops->sync(&near.store, near.store.root, true);
		if (!ret)
			ret = home.ops->unlink(&home, full);
		if (!ret)
			ret = near.store.ops->unlink(&near.store, name);
		place_leave(&near);
		if (!ret)
			carry_remove_way(dir, &top);
	}
	place_leave(&top);
	return ret;
}
