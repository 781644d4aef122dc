/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plfs report --json: what is known of a file from its index, in bins, as JSON. tools/report/ draws it.
 */
#ifndef PLFS_REPORT_FACTS_H
#define PLFS_REPORT_FACTS_H

#include "tool.h"

/* Print the facts of the file @name. An exit code. */
int report_facts(const char *name);

#endif
