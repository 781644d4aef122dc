/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The C library's real functions. Our own calls, and those that a wrapper passes through, go through this
 * table, which is filled by dlsym(RTLD_NEXT). Tests inject faults here: they replace a member, run, and put
 * it back.
 */
#ifndef PLFS_SYS_H
#define PLFS_SYS_H

#include "core/base/base.h"
#include "core/base/newer.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>
#include <utime.h>

#include "core/base/sys_calls.h"

/* One member for each line of sys_calls.h: sys.pread, sys.openat, ... */
struct sys_table {
#define SYS_CALL(ret, name, args) ret(*name) args;
	SYS_CALLS(SYS_CALL)
#undef SYS_CALL
	/* The C library has no function for it. */
	int (*openat2)(int dirfd, const char *path, struct open_how *how, size_t size);
};

extern struct sys_table sys;

/* Fill the table. Idempotent; allocates nothing; may be called before any constructor ran. */
void sys_init(void);

/* Whether @function of the table is the C library's; false: another library's, which stands in between. */
bool sys_is_libc(void *function);

#endif
