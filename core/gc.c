/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Removing containers that no file leads to. The containers are listed first, then the names below the backend
 * (gc_names.c) and what processes have open (gc_proc.c): so a container that is made meanwhile is not even seen, and
 * whichever was there before has been named if it ever will be, but for one that is being claimed just now. Of that
 * the age takes care; and whoever claims it makes it anew if it is gone all the same.
 */
#include "gc.h"

#include "backend_walk.h"
#include "tree.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- the set ---- */

static int compare_ids(const void *a, const void *b)
{
	return memcmp(a, b, STUB_ID_LEN);
}

static struct gc_container *set_find(struct gc_set *set, const uint8_t *id)
{
	return set->nr ? bsearch(id, set->v, set->nr, sizeof(*set->v), compare_ids) : NULL;
}

void gc_set_name(struct gc_set *set, const uint8_t *id)
{
	struct gc_container *c = set_find(set, id);

	if (c)
		__atomic_store_n(&c->named, true, __ATOMIC_RELAXED);
}

size_t gc_set_nr_unnamed(const struct gc_set *set)
{
	size_t nr = 0;

	for (size_t i = 0; i < set->nr; i++)
		nr += !set->v[i].named;
	return nr;
}

static int set_add(struct gc_set *set, const uint8_t *id)
{
	if (set->nr == set->cap) {
		size_t cap = set->cap ? 2 * set->cap : 1024;
		struct gc_container *grown = mem_realloc(set->v, cap * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		set->v = grown;
		set->cap = cap;
	}
	set->v[set->nr] = (struct gc_container){ .named = false };
	memcpy(set->v[set->nr++].id, id, STUB_ID_LEN);
	return 0;
}

/* ---- telling ---- */

void gc_failed(struct gc_run *run, const char *path, int err)
{
	mutex_lock(&run->lock);
	run->gc->nr_troubles++;
	if (run->gc->trouble)
		run->gc->trouble(run->gc->arg, path, strerror(-err));
	mutex_unlock(&run->lock);
}

void gc_trouble(struct gc_run *run, const char *path, int err)
{
	const char *what = err == -EXDEV ? "something is mounted there, and hides what is beneath" :
			   err == -EIO ? "a damaged stub, or an error of the file system" :
			   err == -EPROTONOSUPPORT ? "written by a newer libplfs" : strerror(-err);
	char why[256];

	snprintf(why, sizeof(why), "%s: any container may belong to a file there, so none is removed", what);
	mutex_lock(&run->lock);
	run->blind = true;
	run->gc->nr_troubles++;
	if (run->gc->trouble)
		run->gc->trouble(run->gc->arg, path, why);
	mutex_unlock(&run->lock);
}

void gc_tell(struct gc_run *run, const struct plfs_gc_item *item)
{
	struct plfs_gc *gc = run->gc;

	mutex_lock(&run->lock);
	if (item->fate == PLFS_GC_REMOVED) {
		gc->nr_removed++;
		gc->removed_bytes += item->bytes;
	} else {
		gc->nr_left++;
		gc->left_bytes += item->bytes;
		gc->nr_failed += item->fate == PLFS_GC_FAILED;
	}
	if (gc->item)
		gc->item(gc->arg, item);
	mutex_unlock(&run->lock);
}

void gc_wait(unsigned ms)
{
	const struct timespec wait = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };

	own_nanosleep(&wait, NULL);
}

/* ---- the clock ---- */

uint64_t gc_now_ns(struct gc_run *run)
{
	struct timespec now;
	struct stat st;

	if (run->clock >= 0 && !sys.futimens(run->clock, NULL) && !sys.fstat(run->clock, &st))
		return tree_time_ns(&st.st_ctim) + run->gc->later_ns;
	sys.clock_gettime(CLOCK_REALTIME, &now);
	return tree_time_ns(&now) + run->gc->later_ns;
}

/* Where nothing is to be removed this host's clock does. */
static int open_clock(struct gc_run *run)
{
	char name[40];
	uint64_t random;

	if (sys.getrandom(&random, sizeof(random), 0) != sizeof(random))
		return -EIO;
	snprintf(name, sizeof(name), "gc.tmp.%016llx", (unsigned long long)random);
	run->clock = own_openat(run->dir, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (run->clock < 0)
		return run->gc->dry ? 0 : -errno;
	sys.unlinkat(run->dir, name, 0);
	return 0;
}

/* ---- listing containers ---- */

static int hex(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* *@gone: it is what is left of one. */
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

	if ((type != DT_DIR && type != DT_UNKNOWN) || !parse_id(name, id, &gone) || strncmp(name, la->parent, 2))
		return 0;
	if (gone)
		gc_remove_gone(la->run, fd, la->parent, name);
	return gone ? 0 : set_add(&la->run->set, id);
}

static int list_parent(void *arg, int fd, const char *name, unsigned char type)
{
	struct list_arg la = { .run = arg, .parent = name };
	char path[PATH_MAX];
	int dir, ret;

	(void)type;
	if (strlen(name) != 2 || hex(name[0]) < 0 || hex(name[1]) < 0)
		return 0;
	dir = tree_open(fd, name);
	if (dir == -ENOENT || dir == -ENOTDIR || dir == -ELOOP)
		return 0;
	ret = dir < 0 ? dir : tree_list(dir, list_container, &la);
	if (ret) {
		snprintf(path, sizeof(path), PLFS_DIR_NAME "/%s", name);
		gc_failed(la.run, path, ret);
	}
	if (dir >= 0)
		own_close(dir);
	return 0;
}

/* ---- by several threads ---- */

struct work {
	struct gc_run *run;
	void (*fn)(struct gc_run *run, const struct gc_container *c);
	const char *what;
	bool unnamed;  /* of those alone */
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
	ret = tree_list(run->dir, list_parent, run);
	if (ret)
		gc_failed(run, PLFS_DIR_NAME, ret);
	if (set->nr)
		qsort(set->v, set->nr, sizeof(*set->v), compare_ids);
	run->gc->nr_containers = set->nr;
	gc_look_at_names(run);
	if (gc_set_nr_unnamed(set))
		gc_look_at_processes(run);
	gc_look_for_temps(run);
	for_each_container(&(struct work){ .run = run, .fn = gc_look_for_temps_in, .what = "containers" });
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
	run.dir = tree_open(m->store.root, PLFS_DIR_NAME);
	if (run.dir == -ENOENT)
		return 0;
	pthread_mutex_init(&run.lock, NULL);
	ret = run.dir < 0 ? run.dir : open_clock(&run);
	if (ret)
		gc_failed(&run, PLFS_DIR_NAME, ret);
	else
		collect(&run);
	if (run.clock >= 0)
		own_close(run.clock);
	if (run.dir >= 0)
		own_close(run.dir);
	mem_free(run.set.v);
	pthread_mutex_destroy(&run.lock);
	return ret;
}
