/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kernel's own asynchronous I/O, which it would do on stubs. libaio's, by function or by number, is
 * served. io_uring is not: its requests never come by here, so there are no rings while there is a mount
 * (ENOSYS, as on a kernel without), and programs do without.
 */
#include "bynumber.h"
#include "fdtable.h"

#include <dlfcn.h>
#include <linux/aio_abi.h>
#include <sys/syscall.h>

/* ---- libaio ---- */

#define COMMAND_POLL 5 /* IOCB_CMD_POLL, which headers before Linux 4.19 do not have */

static bool is_served(struct iocb *const *at)
{
	const struct iocb *cb = user_has_bytes(at, sizeof(*at)) ? *at : NULL;
	struct ofile *f =
		cb && user_readable(cb, sizeof(*cb)) == sizeof(*cb) ? fd_find((int)cb->aio_fildes) : NULL;

	if (!f)
		return false;
	fd_put(f);
	/* The kernel polls the stub as well as any file, and refuses what it does not know. */
	return cb->aio_lio_opcode != COMMAND_POLL && !cb->aio_reserved2;
}

/*
 * Whether @cb appends. The ring may have no room when it is done, and the program would submit it again: of
 * all requests an append must not be done twice.
 */
static bool appends(const struct iocb *cb)
{
	bool writes = cb->aio_lio_opcode == IOCB_CMD_PWRITE || cb->aio_lio_opcode == IOCB_CMD_PWRITEV;

	return writes &&
	       ((cb->aio_rw_flags & RWF_APPEND) || (fcntl((int)cb->aio_fildes, F_GETFL) & O_APPEND));
}

/* Do what @cb asks for. Bytes, or -errno. */
static ssize_t perform(const struct iocb *cb)
{
	int fd = (int)cb->aio_fildes;
	struct iovec one = {(void *)(uintptr_t)cb->aio_buf, cb->aio_nbytes};
	const struct iovec *iov = &one;
	ssize_t ret;
	int cnt = 1;

	if (cb->aio_lio_opcode == IOCB_CMD_PREADV || cb->aio_lio_opcode == IOCB_CMD_PWRITEV) {
		iov = one.iov_base;
		cnt = (int)min_size(one.iov_len, INT_MAX);
	}
	if (cb->aio_offset < 0 || (ssize_t)cb->aio_nbytes < 0)
		return -EINVAL;
	if (appends(cb))
		return refused("io_submit of an append", EINVAL);
	switch (cb->aio_lio_opcode) {
	case IOCB_CMD_PREAD:
	case IOCB_CMD_PREADV:
		ret = preadv2(fd, iov, cnt, cb->aio_offset, cb->aio_rw_flags);
		break;
	case IOCB_CMD_PWRITE:
	case IOCB_CMD_PWRITEV:
		ret = pwritev2(fd, iov, cnt, cb->aio_offset, cb->aio_rw_flags);
		break;
	case IOCB_CMD_FSYNC:
	case IOCB_CMD_FDSYNC:
		if (cb->aio_buf || cb->aio_offset || cb->aio_nbytes || cb->aio_rw_flags)
			return -EINVAL;
		ret = fsync(fd);
		break;
	default:
		return -EINVAL;
	}
	return ret < 0 ? -errno : ret;
}

/*
 * It is done at once; for the event, with its result, the kernel gets the same block with a write of as many
 * bytes to /dev/null, which looks at none of them. The block is put back as it was before anybody waits for
 * it. Only an error has no such file: it is told by the submission. (Where the ring has no room, the request
 * is done once more by the next try.)
 */
static long submit_ours(aio_context_t ctx, struct iocb *cb)
{
	struct iocb saved = *cb;
	long ret = perform(cb);
	int null;

	if (ret < 0)
		return ret;
	null = sys.open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (null < 0)
		return -errno;
	cb->aio_lio_opcode = IOCB_CMD_PWRITE;
	cb->aio_fildes = (uint32_t)null;
	cb->aio_buf = 4096; /* any that is an address, with as many behind it */
	cb->aio_nbytes = (uint64_t)ret;
	cb->aio_offset = 0;
	cb->aio_rw_flags = 0;
	ret = sys.syscall(SYS_io_submit, ctx, 1L, &cb);
	ret = ret < 0 ? -errno : ret;
	saved.aio_key = cb->aio_key; /* the kernel's */
	*cb = saved;
	sys.close(null);
	return ret;
}

/* How many were submitted, or the first one's -errno. */
static long submit(aio_context_t ctx, long nr, struct iocb **list)
{
	int saved ERRNO_KEPT = errno;
	long i, ret = 0;

	for (i = 0; shim_on() && i < nr && user_has_bytes(list + i, sizeof(*list)) && !is_served(list + i);
	     i++)
		;
	if (!shim_active || i >= nr || !user_has_bytes(list + i, sizeof(*list))) {
		ret = sys.syscall(SYS_io_submit, ctx, nr, list);
		return ret < 0 ? -errno : ret;
	}
	for (i = 0; i < nr && ret >= 0; i++) {
		if (is_served(list + i)) {
			ret = submit_ours(ctx, list[i]);
		} else {
			ret = sys.syscall(SYS_io_submit, ctx, 1L, list + i);
			ret = ret < 0 ? -errno : ret;
		}
		if (ret < 0)
			break;
	}
	return i ? i : ret;
}

long bynumber_io_submit(unsigned long ctx, long nr, void *list) { return done(submit(ctx, nr, list)); }

/* libaio's: it returns -errno. What is libaio's own in it is this system call and nothing else. */
extern int io_submit(aio_context_t ctx, long nr, struct iocb **list);

EXPORT int io_submit(aio_context_t ctx, long nr, struct iocb **list) { return (int)submit(ctx, nr, list); }

/* ---- liburing's ways to a ring; all return -errno ---- */

struct io_uring;
struct io_uring_params;

/* liburing's own function, which may be loaded where we are not looking; NULL: there is none. */
static void *real(const char *name)
{
	static const char *const libs[] = {"liburing.so.2", "liburing.so.1"};
	void *fn = dlsym(RTLD_NEXT, name), *lib;
	unsigned i;

	for (i = 0; !fn && i < ARRAY_SIZE(libs); i++) {
		lib = dlopen(libs[i], RTLD_LAZY | RTLD_NOLOAD);
		fn = lib ? dlsym(lib, name) : NULL;
	}
	if (!fn)
		dlerror(); /* the program must not find our message */
	return fn;
}

static int no_ring(void) { return (int)refused("io_uring", ENOSYS); }

#define RING_FUNCTION(name, params, args) \
	extern int name params; \
	EXPORT int name params \
	{ \
		int(*fn) params; \
\
		*(void **)&fn = shim_on() ? NULL : real(#name); \
		return fn ? fn args : no_ring(); \
	}

RING_FUNCTION(io_uring_setup, (unsigned entries, struct io_uring_params *p), (entries, p))
RING_FUNCTION(io_uring_queue_init, (unsigned entries, struct io_uring *ring, unsigned flags),
	      (entries, ring, flags))
RING_FUNCTION(io_uring_queue_init_params,
	      (unsigned entries, struct io_uring *ring, struct io_uring_params *p), (entries, ring, p))
RING_FUNCTION(io_uring_queue_init_mem,
              (unsigned entries, struct io_uring *ring, struct io_uring_params *p, void *buf, size_t size),
              (entries, ring, p, buf, size))
RING_FUNCTION(io_uring_queue_init_try_nosqarr,
              (unsigned entries, struct io_uring *ring, struct io_uring_params *p, void *buf, size_t size),
              (entries, ring, p, buf, size))
