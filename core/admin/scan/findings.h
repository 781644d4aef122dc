/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The findings of one scan: a list that can be compared with that of another scan, and is reported later.
 */
#ifndef PLFS_FINDINGS_H
#define PLFS_FINDINGS_H

#include "core/plfs_admin.h"

struct finding {
	struct finding *next;
	enum plfs_severity severity;
	const char *code;
	uint64_t at;        /* a position: tells findings of one code and path apart */
	bool doubtful;      /* damage that the scan before did not find: not reported */
	char *path, *text;  /* mem_alloc()ed with it */
};

/*
 * In the order of finding. All zeros: none. Behind FINDINGS_MAX of them comes a last one that stands for all
 * others and counts them: a container may have been made to have millions.
 */
#define FINDINGS_MAX 1000
struct findings {
	struct finding *first, **end;
	struct finding *rest; /* that last one, or NULL */
	unsigned nr, nr_rest;
	unsigned nr_damaged;
	int ret; /* 0; -ENOMEM: one could not be added */
};

/*
 * Add a finding; it may be the last one, of many. @path: relative to the container; "": the file itself.
 * NULL: no memory, also in f->ret.
 */
struct finding *findings_add(struct findings *f, enum plfs_severity severity, const char *code,
			     const char *path, uint64_t at, const char *fmt, ...)
	__attribute__((format(printf, 6, 7)));

void findings_release(struct findings *f);

/* Whether @f has the same finding, of the same place. */
bool findings_have(const struct findings *f, const struct finding *one);

/* Mark as doubtful the damage in @f that the scan @before did not find. True: there was some. */
bool findings_confirm(struct findings *f, const struct findings *before);

#endif
