/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The calls of the sys table that are cancellation points, for the library's own use. A cancelled thread must
 * not end in one of them, with our locks held; it ends in the program's next call that is a cancellation
 * point.
 *
 * Also here: descriptors of our own. They are moved high, are close-on-exec, and are remembered, so that a
 * program that closes or overwrites all its descriptors does not hit them.
 */
#ifndef PLFS_IO_H
#define PLFS_IO_H

#include "core/base/sys.h"

#include <pthread.h>

#define OWN(call)                                                                  \
	({                                                                         \
		int own_state;                                                     \
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &own_state);        \
		__typeof__(call) own_ret = call;                                   \
		pthread_setcancelstate(own_state, NULL);                           \
		own_ret;                                                           \
	})

#define io_open(...) OWN(sys.open(__VA_ARGS__))
#define io_openat(...) OWN(sys.openat(__VA_ARGS__))
#define io_openat2(...) OWN(sys.openat2(__VA_ARGS__))
#define io_close(...) OWN(sys.close(__VA_ARGS__))
#define io_read(...) OWN(sys.read(__VA_ARGS__))
#define io_write(...) OWN(sys.write(__VA_ARGS__))
#define io_writev(...) OWN(sys.writev(__VA_ARGS__))
#define io_pread(...) OWN(sys.pread(__VA_ARGS__))
#define io_preadv(...) OWN(sys.preadv(__VA_ARGS__))
#define io_pwrite(...) OWN(sys.pwrite(__VA_ARGS__))
#define io_pwritev(...) OWN(sys.pwritev(__VA_ARGS__))
#define io_pwritev2(...) OWN(sys.pwritev2(__VA_ARGS__))
#define io_fcntl(...) OWN(sys.fcntl(__VA_ARGS__)) /* F_SETLKW */
#define io_fsync(...) OWN(sys.fsync(__VA_ARGS__))
#define io_fdatasync(...) OWN(sys.fdatasync(__VA_ARGS__))
#define io_fallocate(...) OWN(sys.fallocate(__VA_ARGS__))
#define io_nanosleep(...) OWN(sys.nanosleep(__VA_ARGS__))

/* These go on after a signal or a short transfer. Read: @len bytes; fewer: the end of the file; -errno. */
ssize_t io_pread_all(int fd, void *buf, size_t len, uint64_t off);

/* The same into several pieces; @iov is used up. */
ssize_t io_preadv_all(int fd, struct iovec *iov, int cnt, uint64_t off);

/* Write: @len bytes; fewer: an error came after these; -errno. */
ssize_t io_pwrite_all(int fd, const void *buf, size_t len, uint64_t off);

/*
 * Whether @err, a positive errno, says that storage, or the way to it, does not work: nothing about the file
 * that was asked for.
 */
bool io_is_fault(int err);

/* chmod of what @fd is a path to (O_PATH). 0; -errno. */
int io_chmod_path(int fd, mode_t mode);

/*
 * Hide @fd, as just returned by an open: move it high, set close-on-exec, remember it. Returns its new
 * number; @fd: there is no higher one; -errno: what was passed as @fd.
 */
int sys_fd_hide(int fd);

/*
 * The same for a descriptor that is closed before the program's call returns. It keeps its number if the
 * process has no other thread that could use it.
 */
int sys_fd_hide_briefly(int fd);

/* A hidden duplicate of @fd, which stays as it is. -errno. */
int sys_fd_dup(int fd);

/*
 * Name the place where the owner of *@fd, one of the library's own, keeps its number: sys_fd_move_away()
 * changes it there. The place stays valid until sys_fd_close(@fd).
 */
void sys_fd_own(int *fd);

/*
 * Give one of the library's own descriptors another number, so that the program can have @fd, which stays
 * open until the caller replaces or closes it. Only while no other thread runs and no other call of the
 * library is under way. 0; -EBUSY: its owner has named no place; -EMFILE: no number is free.
 */
int sys_fd_move_away(int fd);

/*
 * Close a hidden descriptor (-1 is ignored) and set *@fd to -1. It is closed in any case. 0; -errno: bytes
 * written to the file did not arrive, as some network file systems report only then.
 */
int sys_fd_close(int *fd);

#define SYS_FD_HIDDEN_LIMIT 65536 /* descriptors from here on are not remembered */
extern unsigned char sys_fd_hidden[SYS_FD_HIDDEN_LIMIT];

/*
 * Called when @fd has become one of the library's own (@hidden), and before it ceases to be one. NULL: not
 * wanted. Descriptors that are hidden briefly are reported only where there are other threads.
 */
extern void (*sys_fd_noted)(int fd, bool hidden);

/* Whether @fd is hidden. One bounds check and one load. */
static inline bool sys_fd_is_hidden(int fd)
{
	return (unsigned)fd < SYS_FD_HIDDEN_LIMIT && __atomic_load_n(&sys_fd_hidden[fd], __ATOMIC_ACQUIRE);
}

#endif
