/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The words of one process's trace, as calls. Byte by byte they are in plfs-stats(5).
 */
#ifndef PLFS_REPORT_WORDS_H
#define PLFS_REPORT_WORDS_H

#include "core/base/base.h"

#define TRACE_TEXT 64
#define TRACE_NO_FILE 65535

enum trace_kind {
	TRACE_OPEN = 1, TRACE_CLOSE, TRACE_READ, TRACE_WRITE,
	TRACE_APPEND, TRACE_SYNC, TRACE_TRUNCATE, TRACE_OTHER,
};

struct trace_head {
	uint64_t start_ns, left_out, left_out_bytes;
	uint32_t tick_ns, pid, rank, ranks;
	bool ended;
	char host[TRACE_TEXT + 1], job[TRACE_TEXT + 1], program[TRACE_TEXT + 1];
};

/* One call, or a run of them. */
struct trace_call {
	enum trace_kind kind;
	bool failed;
	bool in_logs;  /* the file is stored in logs */
	unsigned file; /* its number in this trace, or TRACE_NO_FILE */
	uint64_t off, len, count;
	int64_t stride;
	uint64_t begin_ns, span_ns; /* since 1970; from the begin of the first to the end of the last */
	uint64_t call_ns, slowest_ns; /* in these calls; the longest that is known */
};

struct trace_sink {
	/* The name of file number @file; each is said before its first call, and once. */
	void (*name)(void *arg, unsigned file, const char *path);
	void (*call)(void *arg, const struct trace_call *call);
	void *arg;
};

/* 0; -EBADMSG: no trace; -EPROTONOSUPPORT: a newer one. */
int trace_head_decode(struct trace_head *head, const uint8_t *buf, size_t len);

/* Give all calls of a trace to @sink. 0; > 0: damaged at this byte, where it ends; -ENOMEM. */
ssize_t trace_each(const struct trace_head *head, const uint8_t *buf, size_t len,
		   const struct trace_sink *sink);

#endif
