/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One run of plfs gc: the set of containers, reports, and the clock. The driver is gc.c; gc_names.c finds the
 * containers to which files lead, gc_proc.c those which processes of this host have open, and gc_remove.c
 * removes the others. The promise is in plfs_admin.h.
 */
#ifndef PLFS_GC_RUN_H
#define PLFS_GC_RUN_H

#include "core/admin/walk/owners.h"
#include "core/backend/mount.h"
#include "core/backend/stub.h"
#include "core/base/io.h"
#include "core/plfs_admin.h"

#include <pthread.h>

/* ---- the containers of the backend ---- */

struct gc_container {
	uint8_t id[STUB_ID_LEN];
	bool named; /* a file, or an open descriptor, leads to it */
};

struct gc_set {
	struct gc_container *v; /* sorted by id */
	size_t nr, cap;
};

/* Add @id; the set is unsorted until gc_set_sort(). 0; -ENOMEM. */
int gc_set_add(struct gc_set *set, const uint8_t *id);
void gc_set_sort(struct gc_set *set);

/* Mark the container @id as named, if the set has it. Any thread may call this. */
void gc_set_name(struct gc_set *set, const uint8_t *id);

size_t gc_set_nr_unnamed(const struct gc_set *set);

/* ---- one run ---- */

struct gc_run {
	struct plfs_mount *m;
	struct plfs_gc *gc;
	struct gc_set set;
	int dir;              /* .plfs */
	int clock;            /* a file without a name, whose times are the file system's; -1: none */
	bool no_room;         /* for that file: the directory's own times are used */
	uint64_t start_ns;    /* before anything was scanned */
	pthread_mutex_t lock; /* for the rest, and for calling the functions of @gc */
	bool blind;           /* some place could not be read: a file there may lead to any container */
	struct owners unread; /* users who have a file that could not be read: it may lead to any of theirs */
	struct owners restless; /* users whose names kept changing: a file of theirs may have been missed */
};

/* Make the file of run->clock, or set run->no_room. 0; -errno. */
int gc_open_clock(struct gc_run *run);

/* The time by the file system's clock, since 1970. */
uint64_t gc_now_ns(struct gc_run *run);

/* Report that something in .plfs cannot be read. */
void gc_failed(struct gc_run *run, const char *path, int err);

/* Report that a place where files may be cannot be read, and set run->blind. */
void gc_trouble(struct gc_run *run, const char *path, int err);

/* Report that something of the user @uid that may lead to a container cannot be read: none of his goes. */
void gc_trouble_of(struct gc_run *run, const char *path, int err, uid_t uid);

/*
 * Report that names in the directory @path, of the user @uid and with @mode, kept changing. A file that was
 * missed there is of somebody who can write there.
 */
void gc_never_rests(struct gc_run *run, const char *path, uid_t uid, mode_t mode);

/* Report one container or temporary file, and count it. */
void gc_report(struct gc_run *run, const struct plfs_gc_item *item);

/* Sleep. */
void gc_wait(unsigned ms);

#endif
