/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plfs run --which: shows what a job would get.
 */
#ifndef PLFS_RUN_WHICH_H
#define PLFS_RUN_WHICH_H

#include <stddef.h>

/* The library @library, and the version that is in its bytes. */
void run_which_library(const char *library);

/*
 * The mappings, after plfs_setup(); those of the @nr variables @settings that are set; and the file that
 * would be run, unless NULL.
 */
void run_which_settings(const char *const *settings, size_t nr, const char *command);

#endif
