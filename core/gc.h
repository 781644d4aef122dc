/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What plfs gc consists of: the containers of a backend (gc.c), which of them files name (gc_names.c), what processes
 * of this host have open (gc_proc.c), and what becomes of the others (gc_remove.c). What it promises is in plfs.h.
 */
#ifndef PLFS_GC_H
#define PLFS_GC_H

#include "mount.h"
#include "own.h"
#include "plfs.h"
#include "stub.h"

#include <pthread.h>

/* ---- the containers that there are ---- */

struct gc_container {
	uint8_t id[STUB_ID_LEN];
	bool named; /* a file, or an open descriptor, leads to it */
};

struct gc_set {
	struct gc_container *v; /* sorted by id */
	size_t nr, cap;
};

/* Note that @id is in use, if it is one of the set; by any thread. */
void gc_set_name(struct gc_set *set, const uint8_t *id);

size_t gc_set_nr_unnamed(const struct gc_set *set);

/* ---- one run ---- */

struct gc_run {
	struct plfs_mount *m;
	struct plfs_gc *gc;
	struct gc_set set;
	int dir;             /* .plfs */
	int clock;           /* a file without a name, whose times are the file system's */
	uint64_t start_ns;   /* before anything was looked at */
	pthread_mutex_t lock; /* for what follows, and the functions of @gc */
	bool blind;          /* something could not be looked at: any container may have its file there */
	bool restless;       /* names kept changing */
};

/* The time by the file system's clock, since 1970. */
uint64_t gc_now_ns(struct gc_run *run);

/* Something of the containers cannot be looked at. */
void gc_failed(struct gc_run *run, const char *path, int err);

/* Something where files may be cannot: run->blind from here on. */
void gc_trouble(struct gc_run *run, const char *path, int err);

/* Tell the caller of one thing, and count it. */
void gc_tell(struct gc_run *run, const struct plfs_gc_item *item);

/* Mark and tell of, or remove, temporary files beside the containers, and in the container @c. */
void gc_look_for_temps(struct gc_run *run);
void gc_look_for_temps_in(struct gc_run *run, const struct gc_container *c);

/* Remove @name in the directory @fd, .plfs/@parent: what somebody has left who was killed while he removed a container. */
void gc_remove_gone(struct gc_run *run, int fd, const char *parent, const char *name);

/* Remove the container @c, to which nothing leads, unless something speaks against it. */
void gc_remove_container(struct gc_run *run, const struct gc_container *c);

/* Sleep. */
void gc_wait(unsigned ms);

/*
 * Look at all names below the backend and mark the containers that they lead to. Afterwards there was, unless
 * run->blind or run->restless, one moment in which no name led to a container that is not marked.
 */
void gc_look_at_names(struct gc_run *run);

/* Mark those that processes of this host have open, as far as it may be seen. */
void gc_look_at_processes(struct gc_run *run);

/*
 * Whether the process @pid of this host has the file @name mapped or open, as far as that may be seen: if it may not,
 * true.
 */
bool gc_process_has(unsigned long pid, const char *name);

#endif
