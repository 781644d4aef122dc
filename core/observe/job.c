/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The environment variables of batch systems and MPI libraries.
 */
#include "core/observe/job.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* Open MPI's and MPICH's own come first: a step of Slurm may run mpirun. */
static const char *const RANKS[][2] = {
	{ "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE" },
	{ "PMI_RANK", "PMI_SIZE" },
	{ "PMIX_RANK", NULL },
	{ "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE" },
	{ "PALS_RANKID", NULL },
	{ "ALPS_APP_PE", NULL },
	{ "SLURM_PROCID", "SLURM_NTASKS" },
	{ "FLUX_TASK_RANK", "FLUX_JOB_SIZE" },
	{ "JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE" },
};

static const char *const JOBS[] = { "SLURM_JOB_ID", "PBS_JOBID",  "LSB_JOBID", "FLUX_JOB_ID",
				    "COBALT_JOBID", "OAR_JOB_ID", "JOB_ID",    "PLFS_JOB" };

static int number_of(const char *text)
{
	long nr = 0;

	if (!text || !*text || strlen(text) > 9)
		return -1;
	for (; *text >= '0' && *text <= '9'; text++)
		nr = nr * 10 + (*text - '0');
	return *text ? -1 : (int)nr;
}

static int number(const char *name) { return number_of(name ? getenv(name) : NULL); }

int job_rank_in(const char *vars, size_t len)
{
	int rank = -1;

	for (size_t i = 0; i < ARRAY_SIZE(RANKS) && rank < 0; i++) {
		size_t name_len = strlen(RANKS[i][0]);

		for (size_t at = 0; at < len && rank < 0; at += strnlen(vars + at, len - at) + 1)
			if (len - at > name_len && !memcmp(vars + at, RANKS[i][0], name_len) &&
			    vars[at + name_len] == '=')
				rank = number_of(vars + at + name_len + 1);
	}
	return rank;
}

void job_find(struct job *j)
{
	memset(j, 0, sizeof(*j));
	j->rank = j->ranks = -1;
	for (size_t i = 0; i < ARRAY_SIZE(RANKS) && j->rank < 0; i++) {
		j->rank = number(RANKS[i][0]);
		j->ranks = j->rank < 0 ? -1 : number(RANKS[i][1]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(JOBS) && !*j->job; i++) {
		const char *job = getenv(JOBS[i]);

		/* JOB_ID is Grid Engine's, and a common word */
		if (job && *job && !strpbrk(job, "/\\\"\n"))
			snprintf(j->job, sizeof(j->job), "%s", job);
	}
	snprintf(j->program, sizeof(j->program), "%s", program_invocation_short_name);
}
