/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The numbers of a report as JSON: what is the same whether they come from an index or from a trace.
 */
#ifndef PLFS_REPORT_PRINT_H
#define PLFS_REPORT_PRINT_H

#include "report_bins.h"
#include "tool.h"

/* A member of an object that has one already. */
void report_put_text(const char *name, const char *value);
void report_put_number(const char *name, uint64_t value);

/* Members: sums, and all that is drawn. */
void report_put_bins(const struct report_logs *l, const struct report_bins *b);

/* A line for each process that wrote, then for each that only read. */
void report_put_processes(const struct report_logs *l);

/* The number of a writer; -1 for nobody. */
long long report_shown(uint32_t writer);

#endif
