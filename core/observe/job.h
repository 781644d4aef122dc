/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which process of which job this is, as batch systems and MPI libraries say in the environment.
 */
#ifndef PLFS_JOB_H
#define PLFS_JOB_H

#include "core/base/base.h"

#define JOB_NAME_LEN 64

struct job {
	char job[JOB_NAME_LEN]; /* the batch system's number, or "" */
	char program[JOB_NAME_LEN];
	int rank, ranks; /* -1: not known */
};

/* Of this process, by its environment as it is now. */
void job_find(struct job *j);

/* The rank that the @len bytes of an environment tell, as in /proc/PID/environ; -1: none. */
int job_rank_in(const char *vars, size_t len);

#endif
