/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * near=auto: the candidates of this node (auto_place.h).
 */
#ifndef PLFS_AUTO_FIND_H
#define PLFS_AUTO_FIND_H

#include "core/backend/auto_place.h"

#define AUTO_MEMORY_DIR "/dev/shm"

/* Candidates, and which is taken. */
struct auto_found {
	struct auto_candidate v[AUTO_CANDIDATES_MAX];
	int nr, taken; /* taken -1: none */
};

/*
 * Find out what there is. @backend: its path; NULL: any. @root: "", or what is before /proc and /sys, for
 * tests. Only file systems of this node are touched, but for what links in variables lead to. 0; -ENOMEM;
 * -errno: the mounts cannot be read, and nothing is found.
 */
int auto_find(struct auto_found *f, const char *backend, const char *root);

/* The batch system's name of this job; NULL: there is none. */
const char *auto_job(void);

#endif
