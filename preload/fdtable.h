/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From a descriptor number to the open file description behind it, for the descriptors that
 * are ours: logical files, and directories below a backend. Everything else has an empty slot.
 *
 * From fd_get() to fd_put() or fd_done() the thread is in a critical section (core/critical.h): signal handlers wait.
 *
 * fd_get() takes no lock: descriptions are never given back to the system (ofile.h), so one may be looked at,
 * counted up if its count is not zero, and then checked to be still the one in the slot.
 */
#ifndef PLFS_FDTABLE_H
#define PLFS_FDTABLE_H

#include "ofile.h"

extern struct ofile **fdtable;
extern unsigned fdtable_len; /* 0 before start: then every lookup takes the slow road, and starts us */
extern unsigned fdtable_top; /* no slot at or above it was ever used, nor marked far */

/* Map the table: one slot for each descriptor that there can ever be. 0 or -errno. */
int fdtable_init(void);

struct ofile *fd_get_slow(int fd, bool any);

/* Whether the slot of @fd is in use. */
static inline bool fd_is_ours(int fd)
{
	if (unlikely((unsigned)fd >= __atomic_load_n(&fdtable_len, __ATOMIC_ACQUIRE))) {
		if (!shim_on() || (unsigned)fd >= fdtable_len)
			return false;
	}
	return unlikely(__atomic_load_n(&fdtable[fd], __ATOMIC_RELAXED) != NULL);
}

/*
 * The logical file open at @fd, with a reference for the caller to fd_put() or fd_done(); NULL: not ours,
 * pass through.
 */
static inline struct ofile *fd_get(int fd) { return fd_is_ours(fd) ? fd_get_slow(fd, false) : NULL; }

/* The same for a call that ends a thread which is to be cancelled. The calls that we make for it do not (core/own.h). */
static inline struct ofile *fd_get_io(int fd)
{
	if (!fd_is_ours(fd))
		return NULL;
	pthread_testcancel();
	return fd_get_slow(fd, false);
}

/* The same, and directories below a backend too. */
static inline struct ofile *fd_get_any(int fd) { return fd_is_ours(fd) ? fd_get_slow(fd, true) : NULL; }

/* Drop the reference of fd_get(). Returns what plfs_close() said, if it was the last. */
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

/* Whether a logical file is open at @fd, for who does not need it. */
static inline bool fd_is_logical(int fd)
{
	struct ofile *f = fd_get(fd);

	if (f)
		fd_put(f);
	return f != NULL;
}

/*
 * Put @f, whose reference passes to the table, into the slot of the open descriptor @fd; what was
 * there is dropped. Descriptors 0 to 2 also get a stream that goes through us. -EMFILE: no such slot.
 */
int fd_install(int fd, struct ofile *f);

/* The same with the reference of fd_get(), whose section ends. */
static inline int fd_install_got(int fd, struct ofile *f)
{
	int r = fd_install(fd, f);

	critical_leave();
	return r;
}

/*
 * Empty the slot of @fd and hand its reference to the caller, to be put when the kernel's descriptor is
 * closed. NULL: there was none.
 */
struct ofile *fd_take(int fd);

/*
 * Empty the slot of @fd, which is about to be closed or has just been replaced. Returns what plfs_close()
 * said, if it was the last.
 */
int fd_drop(int fd);

/* Give every offset that is still in user space to the kernel, where a child or the next image finds it. */
void fd_share_all(void);

/*
 * The same around fork(), which must find no description half changed: all stay locked until fd_thaw(), in
 * parent and child. Forks of several threads wait for each other here.
 */
void fd_freeze(void);
void fd_thaw(void);

/* Acquire, for all open logical files: what other processes released is to be seen. */
void fd_refresh_all(void);

/* Directories known to be neither in nor above a mount. Forgotten when the number is closed or replaced. */
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

/* Find the logical files and directories among the descriptors that this process was born with. */
void fd_adopt_inherited(void);

/* Take in @fd, received from elsewhere, if it is one of ours. */
void fd_adopt(int fd);

#endif
