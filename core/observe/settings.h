/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PLFS_STATS and PLFS_TRACE, as text: where to, and how much.
 */
#ifndef PLFS_SETTINGS_H
#define PLFS_SETTINGS_H

#include "core/base/base.h"

/*
 * The stats file; the directory of traces, and how many bytes a process may write there, into *@max. As the
 * kernel knows the path, mem_alloc()ed. NULL: not wanted; or one line has said what is wrong.
 */
char *settings_stats_file(void);
char *settings_trace_dir(uint64_t *max);

/* Whether either of the two says that nothing is wanted. */
bool settings_is_off(const char *text);

/* PLFS_STATS with its relative path made absolute, mem_alloc()ed; NULL: it is so, or no memory. */
char *settings_absolute(const char *stats);

/*
 * The default name of a stats file in the directory @dir, into @out (PATH_MAX): by the number of the job, if
 * there is one.
 */
void settings_default_file(const char *dir, char *out);

#endif
