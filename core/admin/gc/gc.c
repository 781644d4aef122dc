/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plfs_gc(): lists the containers, then scans the names below the backend (gc_names.c) and the open files of
 * processes (gc_proc.c), then removes the containers that neither leads to (gc_remove.c). A container that is
 * made meanwhile is not in the list. One that was listed has its name by then, unless a process is claiming
 * it at this moment: such a container is younger than the age, and the claiming process makes it anew if it
 * is missing.
 */
#include "core/admin/gc/gc_names.h"
#include "core/admin/gc/gc_proc.h"
#include "core/admin/gc/gc_remove.h"
#include "core/admin/walk/walk.h"
#include "core/base/critical.h"
#include "core/store/dirs.h"

#include <stdio.h>

/* ---- listing containers ---- */

static int hex(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* *@gone: the rest of a container whose remover was killed. */
static bool parse_id(const char *name, uint8_t *id, bool *gone)
{
	*gone = strlen(name) > 2 * STUB_ID_LEN && !strcmp(name + 2 * STUB_ID_LEN, STORE_GONE);
	if (strlen(name) != 2 * STUB_ID_LEN && !*gone)
		return false;
	for (int i = 0; i < STUB_ID_LEN; i++) {
		int high = hex(name[2 * i]), low = hex(name[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		id[i] = (uint8_t)(high << 4 | low);
	}
	return true;
}

struct list_arg {
	struct gc_run *run;
	const char *parent;
};

static int list_container(void *arg, int fd, const char *name, unsigned char type)
{
	struct list_arg *la = arg;
	uint8_t id[STUB_ID_LEN];
	bool gone;

	if ((type != DT_DIR && type != DT_UNKNOWN) || !parse_id(name, id, &gone) ||
	    strncmp(name, la->parent, 2))
		return 0;
	if (gone)
		gc_remove_gone(la->run, fd, la->parent, name);
	return gone ? 0 : gc_set_add(&la->run->set, id);
}

static int list_parent(void *arg, int fd, const char *name, unsigned char type)
{
	struct list_arg la = { .run = arg, .parent = name };
	char path[PATH_MAX];
	int dir, ret;

	(void)type;
	if (strlen(name) != 2 || hex(name[0]) < 0 || hex(name[1]) < 0)
		return 0;
	dir = dirs_open(fd, name);
	if (dir == -ENOENT || dir == -ENOTDIR || dir == -ELOOP)
		return 0;
	ret = dir < 0 ? dir : dirs_list(dir, list_container, &la);
	if (ret) {
		snprintf(path, sizeof(path), PLFS_DIR_NAME "/%s", name);
		gc_failed(la.run, path, ret);
	}
	if (dir >= 0)
		io_close(dir);
	return 0;
}

/* ---- by several threads ---- */

struct work {
	struct gc_run *run;
	void (*fn)(struct gc_run *run, const struct gc_container *c);
	const char *what;
	bool unnamed;  /* only for unnamed containers */
	size_t next, done, total;
};

static void *do_work(void *arg)
{
	struct work *w = arg;
	struct gc_run *run = w->run;
	size_t i;

	while ((i = __atomic_fetch_add(&w->next, 1, __ATOMIC_RELAXED)) < run->set.nr) {
		const struct gc_container *c = &run->set.v[i];

		if (w->unnamed && c->named)
			continue;
		w->fn(run, c);
		mutex_lock(&run->lock);
		w->done++;
		if (run->gc->progress)
			run->gc->progress(run->gc->arg, w->what, w->done, w->total);
		mutex_unlock(&run->lock);
	}
	return NULL;
}

static void for_each_container(struct work *w)
{
	w->total = w->unnamed ? gc_set_nr_unnamed(&w->run->set) : w->run->set.nr;
	threads_run((unsigned)min_size(w->run->gc->nr_threads, w->total), do_work, w);
}

/* ---- the whole ---- */

static void collect(struct gc_run *run)
{
	struct gc_set *set = &run->set;
	int ret;

	run->start_ns = gc_now_ns(run);
	ret = dirs_list(run->dir, list_parent, run);
	if (ret)
		gc_failed(run, PLFS_DIR_NAME, ret);
	gc_set_sort(set);
	run->gc->nr_containers = set->nr;
	gc_scan_names(run);
	if (gc_set_nr_unnamed(set))
		gc_scan_processes(run);
	gc_remove_temps(run);
	for_each_container(&(struct work){ .run = run, .fn = gc_remove_temps_in, .what = "containers" });
	if (run->blind)
		run->gc->nr_unknown = gc_set_nr_unnamed(set);
	else
		for_each_container(&(struct work){ .run = run, .fn = gc_remove_container, .what = "removals",
			.unnamed = true });
}

int plfs_gc(struct plfs_mount *m, struct plfs_gc *gc)
{
	int saved ERRNO_KEPT = errno;
	struct gc_run run = { .m = m, .gc = gc, .clock = -1 };
	int ret = mount_check_format(m);

	if (ret && ret != -ENOENT)
		return ret;
	run.dir = store_fd(&m->store, m->store.root);
	if (run.dir >= 0)
		run.dir = dirs_open(run.dir, PLFS_DIR_NAME);
	if (run.dir == -ENOENT)
		return 0;
	pthread_mutex_init(&run.lock, NULL);
	ret = run.dir < 0 ? run.dir : gc_open_clock(&run);
	if (ret)
		gc_failed(&run, PLFS_DIR_NAME, ret);
	else
		collect(&run);
	if (run.clock >= 0)
		io_close(run.clock);
	if (run.dir >= 0)
		io_close(run.dir);
	mem_free(run.set.v);
	owners_release(&run.unread);
	owners_release(&run.restless);
	pthread_mutex_destroy(&run.lock);
	return ret;
}
