/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The C library's real functions. Every call that we make ourselves, and every call that a wrapper
 * passes through, goes through this one table, filled with dlsym(RTLD_NEXT). It is also where the
 * tests inject faults: replace a member, run, put it back.
 *
 * Second duty: descriptors of our own. They are moved high, close-on-exec, and remembered, so that
 * a program which closes or overwrites every descriptor it can does not hit them.
 */
#ifndef PLFS_SYS_H
#define PLFS_SYS_H

#include "base.h"
#include "newer.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
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

#include "sys_calls.h"

/* One member for each line of sys_calls.h: sys.pread, sys.openat, ... */
struct sys_table {
#define SYS_CALL(ret, name, args) ret(*name) args;
	SYS_CALLS(SYS_CALL)
#undef SYS_CALL
	int (*openat2)(int dirfd, const char *path, struct open_how *how, size_t size); /* of which the C library has none */
};

extern struct sys_table sys;

/* Fill the table. Idempotent; allocates nothing; may be called before any constructor ran. */
void sys_init(void);

/* Whether @function, of the table, is the C library's own; else another library stands in between. */
bool sys_is_libc(void *function);

/*
 * Take @fd (as just returned by an open, or -errno, which is handed through) for the library's own:
 * moves it high, sets close-on-exec, remembers it. Returns the new number, or @fd itself
 * when there is no higher one, or the -errno passed in.
 */
int sys_fd_hide(int fd);

/*
 * The same for a descriptor that is closed again before the call of the program returns. It stays where it is if there is no
 * other thread that could use its number.
 */
int sys_fd_hide_briefly(int fd);

/* A hidden duplicate of @fd, which stays as it is. -errno. */
int sys_fd_dup(int fd);

/*
 * Close one of the library's own descriptors (-1 is ignored) and set *@fd to -1. It is closed in any case; -errno if
 * bytes that were written to the file did not arrive, as some network file systems say then.
 */
int sys_fd_close(int *fd);

#define SYS_FD_HIDDEN_LIMIT 65536 /* descriptors from here on are not remembered */
extern unsigned char sys_fd_hidden[SYS_FD_HIDDEN_LIMIT];

/* Whether @fd is one of the library's own. One bounds check and one load. */
static inline bool sys_fd_is_hidden(int fd)
{
	return (unsigned)fd < SYS_FD_HIDDEN_LIMIT && __atomic_load_n(&sys_fd_hidden[fd], __ATOMIC_ACQUIRE);
}

#endif
