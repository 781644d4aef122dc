/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Progress of a copy, as copy_out.c and flatten.c report it. plfs_copy_out() itself is in plfs.h.
 */
#ifndef PLFS_COPY_OUT_H
#define PLFS_COPY_OUT_H

#include "core/plfs.h"

/*
 * Report the first error to @watch, which may be NULL: @what could not be done, with the errno's text.
 * Returns @ret.
 */
int progress_failed(struct plfs_progress *watch, int ret, const char *what);

/* The same in whole words. */
int progress_explained(struct plfs_progress *watch, int ret, const char *why);

/* plfs_copy_out(), @alone, with all other processes locked out, which see that this one works. */
int copy_locked(struct plfs_file *f, int from, int to, uint64_t size, struct plfs_progress *watch);

/*
 * Call @sink for all bytes of the file that logs have, in order, at most 1 MiB at a time. They are compared
 * with their checksums. Nobody else in this process uses @f meanwhile. @shown: its stub, if this process has
 * locked all others out; else -1. 0; a non-zero of @sink; -errno.
 */
typedef int copy_sink(void *arg, const char *buf, size_t len, uint64_t logical_off);
int copy_logs(struct plfs_file *f, int shown, copy_sink *sink, void *arg, struct plfs_progress *watch);

#endif
