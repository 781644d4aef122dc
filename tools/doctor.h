/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plfs doctor: what a directory can and cannot. doctor_fs.c asks the file system, doctor_backend.c the
 * backend; doctor.c has the output.
 */
#ifndef PLFS_DOCTOR_H
#define PLFS_DOCTOR_H

#include "options.h"
#include "progress.h"
#include "tool.h"

enum health {
	WELL,
	REMARK, /* nothing has to be done */
	ILL,
};

struct doctor {
	struct plfs_mount *m;
	const char *backend; /* its directory */
	bool quick;
	unsigned nr_threads;
	int dir, plfs;       /* the backend's directory; its .plfs: -1: there is none */
	struct stat st, plfs_st;
	int fd;              /* a file without a name, to try things with; -1: none can be made */
	char type[64];       /* of the file system, as "ext4" */
	char options[4096];  /* of its mount, separated by commas */
	struct progress progress;
	unsigned nr_remarks, nr_ills;
};

/* A finding about @about, and the command that mends it, or "". */
void doctor_says(struct doctor *d, enum health health, const char *about, const char *remedy, const char *fmt,
		 ...) __attribute__((format(printf, 5, 6)));

/* Make the file; false: a finding says why there is none. Then all that is asked of the file system. */
bool doctor_begin(struct doctor *d);
void doctor_file_system(struct doctor *d);

/* Its .plfs, and without d->quick all files and containers. */
void doctor_backend(struct doctor *d);
void doctor_tree(struct doctor *d);

#endif
