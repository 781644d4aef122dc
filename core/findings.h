/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a check has to say, kept until it is sure: a list of findings that can be compared with that of another look.
 */
#ifndef PLFS_FINDINGS_H
#define PLFS_FINDINGS_H

#include "plfs.h"

struct finding {
	struct finding *next;
	enum plfs_severity severity;
	const char *code;
	uint64_t at;        /* tells findings of one code and path apart */
	bool doubtful;      /* damage that another look has not found: not told */
	char *path, *text;         /* mem_alloc()ed with it */
};

/* In the order in which they were found. Zeros to begin with. */
struct findings {
	struct finding *first, **end;
	unsigned nr_damaged;
	int ret; /* -ENOMEM */
};

/* @path relative to the container, "" : the file itself. NULL without memory, which f->ret remembers. */
struct finding *findings_add(struct findings *f, enum plfs_severity severity, const char *code, const char *path,
			     uint64_t at, const char *fmt, ...) __attribute__((format(printf, 6, 7)));

void findings_release(struct findings *f);

/* Doubt what is damage in @f and was not found by the look @before: somebody was at work. Whether anything was. */
bool findings_confirm(struct findings *f, const struct findings *before);

#endif
