/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plfs report --json of a directory of traces (PLFS_TRACE, plfs-stats(5)).
 */
#ifndef PLFS_REPORT_TRACE_H
#define PLFS_REPORT_TRACE_H

#include "tool.h"

/* Whether there are traces in the directory @path. */
bool report_is_traces(const char *path);

/* Print the facts of the files that the job wrote. An exit code. */
int report_trace(const char *dir);

#endif
