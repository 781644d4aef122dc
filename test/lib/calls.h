/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A hook before each call of the sys table that changes or reads something. Tests use it to let calls fail,
 * and to kill the process at one of them.
 */
#ifndef TEST_CALLS_H
#define TEST_CALLS_H

#include "core/base/sys.h"

#include <signal.h>

enum call {
	CALL_OPENAT, CALL_OPEN, CALL_PWRITE, CALL_PREAD, CALL_FTRUNCATE, CALL_FALLOCATE, CALL_MMAP,
	CALL_MUNMAP, CALL_FSYNC,
	CALL_FDATASYNC, CALL_UNLINKAT, CALL_RENAMEAT, CALL_MKDIRAT, CALL_FCHMODAT, CALL_FSTAT, CALL_FSTATAT,
	CALL_GETDENTS, CALL_FCNTL, CALL_FUTIMENS, CALL_CLOSE, CALL_LSEEK, NR_CALLS
};

extern const char *const CALL_NAMES[NR_CALLS];

#define CALL_SHORT (-1)

/* The hook. 0: the call goes on; an errno: it fails with it; CALL_SHORT: pread and pwrite do half of it. */
extern int (*on_call)(enum call call);

/* Replace the calls of the sys table by ones that ask the hook first. After sys_init(). */
void calls_intercept(void);

/* The table as it was before calls_intercept(). */
extern struct sys_table calls_real;

/* Two of the replaced calls, for tests that put something before them. */
int call_openat2(int dirfd, const char *path, struct open_how *how, size_t size);
int call_unlinkat(int dirfd, const char *path, int flags);

/* ---- hooks that kill or stop the process ---- */

extern long calls_left; /* set by the test, counted down by these hooks */

/* Die before the last of @calls_left calls. */
int die_at_last(enum call call);

/* Stop before it (SIGSTOP). */
int stop_at_last(enum call call);

/* Die in the middle of the last of @calls_left writes: before the write of its second half. */
int die_in_last_write(enum call call);

#endif
