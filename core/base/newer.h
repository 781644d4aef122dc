/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Declarations of newer C libraries, for building with the headers of an older one (from glibc 2.28 on). A
 * function that is missing at run time is NULL in the sys table.
 */
#ifndef PLFS_NEWER_H
#define PLFS_NEWER_H

#include <linux/types.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#if __GLIBC_PREREQ(2, 32)
#include <sys/single_threaded.h>
#else
#define __libc_single_threaded 0
#endif

/* Of the headers of Linux before 5.6. */
#if __has_include(<linux/openat2.h>)
#include <linux/openat2.h>
#else
struct open_how {
	__u64 flags, mode, resolve;
};
#define RESOLVE_NO_XDEV 0x01
#define RESOLVE_NO_MAGICLINKS 0x02
#define RESOLVE_NO_SYMLINKS 0x04
#define RESOLVE_BENEATH 0x08
#define RESOLVE_IN_ROOT 0x10
#endif

/* System calls have had one number on all machines since 424. */
#ifndef SYS_io_uring_setup
#define SYS_io_uring_setup 425
#endif
#ifndef SYS_clone3
#define SYS_clone3 435
#endif
#ifndef SYS_open_tree
#define SYS_open_tree 428
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef SYS_openat2
#define SYS_openat2 437
#endif
#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif
#ifndef SYS_faccessat2
#define SYS_faccessat2 439
#endif

#ifndef OPEN_TREE_CLONE
#define OPEN_TREE_CLONE 1
#endif
#ifndef OPEN_TREE_CLOEXEC
#define OPEN_TREE_CLOEXEC O_CLOEXEC
#endif
#ifndef CLOSE_RANGE_UNSHARE
#define CLOSE_RANGE_UNSHARE 2U
#endif
#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC 4U
#endif

extern int close_range(unsigned first, unsigned last, int flags);
extern void closefrom(int first);
extern int execveat(int dirfd, const char *path, char *const argv[], char *const envp[], int flags);
extern int pidfd_getfd(int pidfd, int fd, unsigned flags);
extern int pidfd_spawn(int *pidfd, const char *path, const posix_spawn_file_actions_t *actions,
                       const posix_spawnattr_t *attr, char *const argv[], char *const envp[]);
extern int pidfd_spawnp(int *pidfd, const char *file, const posix_spawn_file_actions_t *actions,
                        const posix_spawnattr_t *attr, char *const argv[], char *const envp[]);

/* Declarations of older C libraries: glibc has none of these since 2.33. */
extern int __xstat64(int version, const char *path, struct stat64 *st);
extern int __lxstat64(int version, const char *path, struct stat64 *st);
extern int __fxstat64(int version, int fd, struct stat64 *st);
extern int __fxstatat64(int version, int dirfd, const char *path, struct stat64 *st, int flags);

#endif
