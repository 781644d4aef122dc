/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One run of plfs gc: the set of containers, reports, and the clock.
 */
#include "core/admin/gc/gc_run.h"

#include "core/base/vec.h"
#include "core/store/dirs.h"

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

void gc_set_sort(struct gc_set *set)
{
	if (set->nr)
		qsort(set->v, set->nr, sizeof(*set->v), compare_ids);
}

size_t gc_set_nr_unnamed(const struct gc_set *set)
{
	size_t nr = 0;

	for (size_t i = 0; i < set->nr; i++)
		nr += !set->v[i].named;
	return nr;
}

int gc_set_add(struct gc_set *set, const uint8_t *id)
{
	struct gc_container *v = vec_room(set->v, &set->cap, set->nr + 1, sizeof(*v));

	if (!v)
		return -ENOMEM;
	set->v = v;
	v[set->nr] = (struct gc_container){ .named = false };
	memcpy(v[set->nr++].id, id, STUB_ID_LEN);
	return 0;
}

/* ---- reports ---- */

void gc_failed(struct gc_run *run, const char *path, int err)
{
	mutex_lock(&run->lock);
	run->gc->nr_troubles++;
	if (run->gc->trouble)
		run->gc->trouble(run->gc->arg, path, strerror(-err));
	mutex_unlock(&run->lock);
}

/* With the lock. */
static void tell_trouble(struct gc_run *run, const char *path, int err, const char *so)
{
	const char *what = err == -EXDEV ? "something is mounted there and may hide files" :
			   err == -EIO ? "the stub is damaged, or the file system reports an error" :
			   err == -EPROTONOSUPPORT ? "written by a newer libplfs" : strerror(-err);
	char why[256];

	snprintf(why, sizeof(why), "%s: %s", what, so);
	run->gc->nr_troubles++;
	if (run->gc->trouble)
		run->gc->trouble(run->gc->arg, path, why);
}

void gc_trouble(struct gc_run *run, const char *path, int err)
{
	mutex_lock(&run->lock);
	run->blind = true;
	tell_trouble(run, path, err, "a file there may lead to any container, so none is removed");
	mutex_unlock(&run->lock);
}

void gc_trouble_of(struct gc_run *run, const char *path, int err, uid_t uid)
{
	char so[100];

	snprintf(so, sizeof(so), "it may lead to any container of user %u, so none of his is removed",
		 (unsigned)uid);
	mutex_lock(&run->lock);
	owners_add(&run->unread, uid);
	tell_trouble(run, path, err, so);
	mutex_unlock(&run->lock);
}

void gc_never_rests(struct gc_run *run, const char *path, uid_t uid, mode_t mode)
{
	bool all = mode & (S_IWGRP | S_IWOTH);
	char why[200];

	mutex_lock(&run->lock);
	if (!(all ? run->restless.all : owners_have(&run->restless, uid))) {
		snprintf(why, sizeof(why), "names in it were changed all the time (user %u owns it): %s are kept until it rests",
			 (unsigned)uid, all ? "all containers" : "his containers");
		if (run->gc->trouble)
			run->gc->trouble(run->gc->arg, path, why);
	}
	owners_add(&run->restless, uid);
	run->restless.all |= all;
	mutex_unlock(&run->lock);
}

void gc_report(struct gc_run *run, const struct plfs_gc_item *item)
{
	struct plfs_gc *gc = run->gc;

	mutex_lock(&run->lock);
	if (item->fate == PLFS_GC_REMOVED) {
		gc->nr_removed++;
		gc->removed_bytes += item->bytes;
	} else {
		gc->nr_left++;
		gc->left_bytes += item->bytes;
		gc->nr_young += item->young;
		gc->young_bytes += item->young ? item->bytes : 0;
		gc->nr_failed += item->fate == PLFS_GC_FAILED;
	}
	if (gc->item)
		gc->item(gc->arg, item);
	mutex_unlock(&run->lock);
}

void gc_wait(unsigned ms)
{
	const struct timespec wait = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };

	io_nanosleep(&wait, NULL);
}

/* ---- the clock ---- */

/* The clock by which a local file system sets times; one that keeps whole seconds may seem behind it. */
static uint64_t host_clock_ns(const struct gc_run *run)
{
	const bool is_local = !run->m->store.remote;
	struct timespec now;
	struct stat st;

	sys.clock_gettime(is_local ? CLOCK_REALTIME_COARSE : CLOCK_REALTIME, &now);
	if (is_local && !sys.fstat(run->dir, &st) && !st.st_ctim.tv_nsec)
		now.tv_nsec = 0;
	return dirs_time_ns(&now);
}

uint64_t gc_now_ns(struct gc_run *run)
{
	int fd = run->no_room ? run->dir : run->clock;
	struct stat st;

	if (fd >= 0 && !sys.futimens(fd, NULL) && !sys.fstat(fd, &st))
		return dirs_time_ns(&st.st_ctim) + run->gc->later_ns;
	return host_clock_ns(run) + run->gc->later_ns;
}

/*
 * Where no file can be made, as room is wanted, making and removing one would have changed the times of the
 * directory: they are set alone. With a clock of another host there must be one of the two. A dry run that
 * may not make a file uses the clock of this host.
 */
int gc_open_clock(struct gc_run *run)
{
	char name[40];
	uint64_t random;
	int ret;

	if (sys.getrandom(&random, sizeof(random), 0) != sizeof(random))
		return -EIO;
	snprintf(name, sizeof(name), "gc.tmp.%016llx", (unsigned long long)random);
	run->clock = io_openat(run->dir, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (run->clock >= 0) {
		sys.unlinkat(run->dir, name, 0);
		return 0;
	}
	ret = run->gc->dry ? 0 : -errno;
	run->no_room = errno == ENOSPC || errno == EDQUOT;
	return run->no_room && (!run->m->store.remote || !sys.futimens(run->dir, NULL)) ? 0 : ret;
}
