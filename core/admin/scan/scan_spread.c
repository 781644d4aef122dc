/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What leads to other backends.
 */
#include "core/admin/scan/scan_spread.h"

#include "core/backend/container_dirs.h"
#include "core/backend/spread_open.h"
#include "core/backend/spread_store.h"

static int report_damaged(struct scan *l, const char *path)
{
	return findings_add(l->found, PLFS_DAMAGED, "spread-damaged", path, 0,
			    "damaged: what it leads to, in another backend, cannot be read; the file of "
			    "this name there has the same bytes: copy it") ? 0 : -ENOMEM;
}

static int report_gone(struct scan *l, const char *path, const struct place *p, bool open)
{
	return findings_add(l->found, PLFS_DAMAGED, "backend-gone", path, 0,
			    "the backend %s is not there, or cannot be read%s; nothing is repaired until it is back, or "
			    "given up with: plfs places --forget %.*s FILE",
			    p->path, open ? ": a process was killed, or is writing, and has a log in it: until then "
					    "nothing of the file can be read" : "",
			    place_near_len(p->path), p->path) ? 0 : -ENOMEM;
}

/* The directory of @path in the container. */
static void dir_of(const struct scan *l, const char *path, char *dir)
{
	container_path(l->c, path, dir);
	*strrchr(dir, '/') = '\0';
}

/* 0; -EREMOTE: the backend is not there; -errno. */
static int look_into(struct scan *l, const char *dir, const char *name)
{
	struct place_dir there;
	int ret = spread_enter(l->c->store, dir, name, NULL, &there);

	if (!ret)
		place_leave(&there);
	return ret == -ENOENT ? 0 : ret;
}

int scan_spread(struct scan *l, const char *path, const char *name)
{
	char dir[CONTAINER_PATH_LEN];
	struct place p;
	int ret;
	bool open;

	dir_of(l, path, dir);
	ret = look_into(l, dir, name);
	if (ret && ret != -EREMOTE)
		return ret;
	open = spread_has_open(l->c->store, dir, name, NULL);
	if (!ret) {
		l->has_notes |= open;
		return 0;
	}
	ret = place_read_as(l->c->store, dir, name, &p);
	if (ret && ret != -EBADMSG)
		return ret == -ENOENT ? 0 : ret;
	if (!ret && !open) {
		l->away = true;
		return 0;
	}
	l->gone = true;
	return ret == -EBADMSG ? report_damaged(l, path) : report_gone(l, path, &p, true);
}

/* An index names each log that was closed there. */
static bool is_all_known(const struct scan *l)
{
	for (uint32_t i = 0; i < l->nr_indexes; i++)
		if (l->indexes[i].nr_damaged || l->indexes[i].untouchable)
			return false;
	for (uint32_t i = 0; i < l->nr_logs; i++)
		if (l->logs[i]->needed && l->logs[i]->state == -EREMOTE && !l->logs[i]->heals)
			return false;
	return true;
}

static int report_one(void *arg, const char *path, const char *name, enum dropping_kind kind)
{
	struct scan *l = arg;
	char dir[CONTAINER_PATH_LEN];
	struct place p;

	if (kind != DROPPING_SPREAD)
		return 0;
	dir_of(l, path, dir);
	if (look_into(l, dir, name) != -EREMOTE || spread_has_open(l->c->store, dir, name, NULL) ||
	    place_read_as(l->c->store, dir, name, &p))
		return 0;
	if (l->gone)
		return report_gone(l, path, &p, false);
	return findings_add(l->found, PLFS_NOTED, "backend-gone", path, 0,
			    "the backend %s is not there, or cannot be read: nothing of the file is lost with it",
			    p.path) ? 0 : -ENOMEM;
}

int scan_away(struct scan *l)
{
	l->gone |= !is_all_known(l);
	return container_list_there(l->c, report_one, l);
}
