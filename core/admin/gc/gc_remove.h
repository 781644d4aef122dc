/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Removing containers and temporary files, unless something speaks against it. Each function reports what it
 * removes or leaves.
 */
#ifndef PLFS_GC_REMOVE_H
#define PLFS_GC_REMOVE_H

#include "core/admin/gc/gc_run.h"

/*
 * Remove old temporary files in .plfs, or in the container @c. A stub among them is kept, and marks the
 * container it leads to.
 */
void gc_remove_temps(struct gc_run *run);
void gc_remove_temps_in(struct gc_run *run, const struct gc_container *c);

/* Remove @name in the directory @fd, .plfs/@parent: the rest of a container whose remover was killed. */
void gc_remove_gone(struct gc_run *run, int fd, const char *parent, const char *name);

/* Remove the unmarked container @c unless it has changed within the age or a writer of it may be alive. */
void gc_remove_container(struct gc_run *run, const struct gc_container *c);

#endif
