/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From a descriptor number to the open file description behind it. A slot holds a logical file, a directory
 * of a backend, or fd_hidden: the number is one of the library's own descriptors. All other slots are empty.
 *
 * The program never sees a descriptor of the library. A wrapper asks the table anyway; for a hidden number
 * fd_get() and its kind change the wrapper's own copy of the number to -1. The call then passes through, and
 * the kernel answers EBADF. Calls that use a descriptor in another way go through fd_seen(). These look: all
 * that read, write, seek, lock, map, copy, or change the file of a descriptor, dup() and its kind, fcntl(),
 * ioctl(), poll(), select(), epoll_ctl(), fdopen(), fdopendir(), the stat family, all calls with a directory
 * descriptor, and listings and links of /proc/self/fd. These do not look: calls for sockets and terminals
 * (ENOTSOCK, ENOTTY), aio_*() and io_submit(), and what the C library does inside itself.
 *
 * From fd_get() to fd_put() or fd_done() the thread is in a critical section (core/base/critical.h): signal
 * handlers wait.
 *
 * fd_get() takes no lock. Descriptions are never given back to the system (ofile.h). So fd_get() may read
 * one, raise its count if that is not zero, and then check that the slot still has it.
 */
#ifndef PLFS_FDTABLE_H
#define PLFS_FDTABLE_H

#include "ofile.h"

extern struct ofile **fdtable;
extern unsigned fdtable_len; /* 0 before start: then every lookup takes the slow road, and starts us */
/* no slot at or above it was ever used, nor marked far; fd_hidden does not count */
extern unsigned fdtable_top;
/* no number below it was ever one of the library's own for longer than a call */
extern int fd_hidden_low;
extern struct ofile fd_hidden; /* in the slots of the library's own descriptors; never referenced nor used */

/*
 * Map the table: one slot for each descriptor that there can ever be. From here on the library's own
 * descriptors are entered. 0 or -errno.
 */
int fdtable_init(void);
/* Let lookups use it. */
void fdtable_start(void);

struct ofile *fd_get_slow(int fd, bool any);

/* Whether the slot of @fd is in use, be it by fd_hidden. */
static inline bool fd_is_ours(int fd)
{
	if (unlikely((unsigned)fd >= __atomic_load_n(&fdtable_len, __ATOMIC_ACQUIRE))) {
		if (!shim_on() || (unsigned)fd >= fdtable_len)
			return false;
	}
	return unlikely(__atomic_load_n(&fdtable[fd], __ATOMIC_RELAXED) != NULL);
}

/* Whether @fd is one of the library's own descriptors. */
static inline bool fd_is_hidden(int fd)
{
	return fd_is_ours(fd) && __atomic_load_n(&fdtable[fd], __ATOMIC_RELAXED) == &fd_hidden;
}

/* @fd for a call that passes through: -1 if it is one of the library's own descriptors. */
static inline int fd_seen(int fd) { return unlikely(fd_is_hidden(fd)) ? -1 : fd; }

/*
 * The logical file open at @fd, with a reference for the caller to fd_put() or fd_done(); NULL: there is
 * none. *@fd becomes -1 if it is one of the library's own descriptors.
 */
static inline struct ofile *fd_get_ours(int *fd, bool any)
{
	struct ofile *f = fd_get_slow(*fd, any);

	if (likely(f != &fd_hidden))
		return f;
	*fd = -1;
	return NULL;
}

static inline struct ofile *fd_get(int *fd) { return fd_is_ours(*fd) ? fd_get_ours(fd, false) : NULL; }

/*
 * The same for a call that ends a thread which is to be cancelled. The calls that the library makes itself do
 * not (core/base/io.h).
 */
static inline struct ofile *fd_get_io(int *fd)
{
	if (!fd_is_ours(*fd))
		return NULL;
	pthread_testcancel();
	return fd_get_ours(fd, false);
}

/* The same, and directories of a backend too. */
static inline struct ofile *fd_get_any(int *fd) { return fd_is_ours(*fd) ? fd_get_ours(fd, true) : NULL; }

/* fd_get() for a caller that passes nothing through. */
static inline struct ofile *fd_find(int fd) { return fd_get(&fd); }

/* Drop the reference of fd_get(). Returns as ofile_unref(). */
static inline int fd_put(struct ofile *f)
{
	int r = ofile_unref(f);

	critical_leave();
	return r;
}

/* End of a call on @f: drop the reference of fd_get(), and turn -errno into errno and -1. */
static inline long fd_done(struct ofile *f, long ret)
{
	fd_put(f);
	return done(ret);
}

/* Whether a logical file is open at @fd, for a caller that needs no reference. */
static inline bool fd_is_logical(int fd)
{
	struct ofile *f = fd_find(fd);

	if (f)
		fd_put(f);
	return f != NULL;
}

/*
 * Put @f, whose reference passes to the table, into the slot of the open descriptor @fd. The description that
 * was there is dropped. Descriptors 0 to 2 also get a stream on @f. 0; -EMFILE: the table has no such slot.
 */
int fd_install(int fd, struct ofile *f);

/*
 * Called when a logical file has been put into slot 0, 1 or 2. NULL until the streams are hooked (stream.h).
 */
extern void (*fdtable_on_standard)(int fd);

/* The same with the reference of fd_get(). Its critical section ends. */
static inline int fd_install_got(int fd, struct ofile *f)
{
	int r = fd_install(fd, f);

	critical_leave();
	return r;
}

/*
 * Empty the slot of @fd. The caller gets its reference, and drops it after the kernel's descriptor is closed.
 * NULL: the slot was empty, or is the library's own.
 */
struct ofile *fd_take(int fd);

/*
 * Empty the slot of @fd, about to be closed or just replaced, and drop its reference. Returns as
 * ofile_unref().
 */
int fd_drop(int fd);

/* Give all offsets in user space to the kernel, where a child or the next image finds them. */
void fd_share_all(void);

/*
 * The same around fork(), which must find no description half changed. All stay locked until fd_thaw(), in
 * parent and child. Forks of several threads wait for each other here. A description that another thread
 * makes meanwhile is not among them: the child frees it of that thread, by fd_disown() before fd_thaw().
 */
void fd_freeze(void);
void fd_disown(void);
void fd_thaw(void);

/* Whether a logical file is open. */
bool fd_is_any_logical(void);

/* Acquire all open logical files: data that other processes released can be read. */
void fd_refresh_all(void);

/* 1: a directory neither in nor above a mount. Cleared when the number is closed or replaced. */
extern uint8_t *fdtable_far; /* one byte a descriptor */

static inline bool fd_is_far(int fd)
{
	return (unsigned)fd < fdtable_len && __atomic_load_n(&fdtable_far[fd], __ATOMIC_RELAXED);
}

static inline void fd_forget_far(int fd)
{
	if (unlikely(fd_is_far(fd)))
		__atomic_store_n(&fdtable_far[fd], 0, __ATOMIC_RELAXED);
}

void fd_set_far(int fd);

#endif
