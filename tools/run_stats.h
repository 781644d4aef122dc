/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plfs run --stats: the stats file of a job.
 */
#ifndef PLFS_RUN_STATS_H
#define PLFS_RUN_STATS_H

#include <stdbool.h>

/*
 * Put the name @file, or the default for NULL, into the environment, the same for all processes of the job.
 * False: an error was printed.
 */
bool run_stats_set(const char *file);

/*
 * The command is to run in a child, where this returns. When it has ended the stats file is completed, also
 * for ranks that were killed, and this process ends as the command did. One of several ranks leaves that to
 * others, and returns.
 */
void run_stats_and_finish(void);

#endif
