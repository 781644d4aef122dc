/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * POSIX asynchronous I/O. Requests on a logical file are done before the call returns, which POSIX allows:
 * the result is put where the C library's aio_error(), aio_return() and aio_suspend() look for it, and the
 * notification sent.
 */
#include "fdtable.h"

#include <aio.h>
#include <sys/syscall.h>

enum { OP_SYNC = 128 }; /* beside LIO_READ and LIO_WRITE */

/* ---- notification ---- */

struct call {
	void (*fn)(union sigval value);
	union sigval value;
};

static void *make_call(void *arg)
{
	struct call c = *(struct call *)arg;
	sigset_t none;

	mem_free(arg);
	sigemptyset(&none);
	pthread_sigmask(SIG_SETMASK, &none, NULL);
	c.fn(c.value);
	return NULL;
}

static void call_in_thread(const struct sigevent *event)
{
	struct call *c = mem_alloc(sizeof(*c));
	pthread_attr_t detached, *attr = event->sigev_notify_attributes;
	pthread_t thread;

	if (!c)
		return;
	c->fn = event->sigev_notify_function;
	c->value = event->sigev_value;
	pthread_attr_init(&detached);
	pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
	if (pthread_create(&thread, attr ? attr : &detached, make_call, c))
		mem_free(c);
	pthread_attr_destroy(&detached);
}

static void send_signal(const struct sigevent *event)
{
	siginfo_t info = {.si_signo = event->sigev_signo, .si_code = SI_ASYNCIO};

	info.si_pid = sys.getpid();
	info.si_uid = getuid();
	info.si_value = event->sigev_value;
	sys.syscall(SYS_rt_sigqueueinfo, info.si_pid, info.si_signo, &info);
}

static void notify(const struct sigevent *event)
{
	if (event->sigev_notify == SIGEV_THREAD)
		call_in_thread(event);
	else if (event->sigev_notify == SIGEV_SIGNAL)
		send_signal(event);
}

/* ---- requests ---- */

static ssize_t perform(const struct aiocb *cb, int op)
{
	switch (op) {
	case LIO_READ:
		return pread(cb->aio_fildes, (void *)cb->aio_buf, cb->aio_nbytes, cb->aio_offset);
	case LIO_WRITE:
		return pwrite(cb->aio_fildes, (const void *)cb->aio_buf, cb->aio_nbytes, cb->aio_offset);
	case OP_SYNC:
		return fsync(cb->aio_fildes);
	default:
		return done(-EINVAL);
	}
}

static void put_result(struct aiocb *cb, ssize_t ret, int err)
{
	cb->__return_value = ret;
	__atomic_store_n(&cb->__error_code, err, __ATOMIC_RELEASE);
}

/* 0: done, well or not, which is for aio_error() to say. -EINVAL: no request at all. */
static int request(struct aiocb *cb, int op)
{
	int saved ERRNO_KEPT = errno;
	ssize_t ret;

	if (op != OP_SYNC && (cb->aio_reqprio < 0 || cb->aio_reqprio > sysconf(_SC_AIO_PRIO_DELTA_MAX))) {
		put_result(cb, -1, EINVAL);
		return -EINVAL;
	}
	ret = perform(cb, op);
	put_result(cb, ret, ret < 0 ? errno : 0);
	notify(&cb->aio_sigevent);
	return 0;
}

EXPORT int aio_read(struct aiocb *cb)
{
	if (!fd_is_logical(cb->aio_fildes))
		return sys.aio_read(cb);
	return (int)done(request(cb, LIO_READ));
}
ALIAS64(aio_read64, aio_read);

EXPORT int aio_write(struct aiocb *cb)
{
	if (!fd_is_logical(cb->aio_fildes))
		return sys.aio_write(cb);
	return (int)done(request(cb, LIO_WRITE));
}
ALIAS64(aio_write64, aio_write);

EXPORT int aio_fsync(int op, struct aiocb *cb)
{
	if (!fd_is_logical(cb->aio_fildes) || (op != O_SYNC && op != O_DSYNC))
		return sys.aio_fsync(op, cb);
	return (int)done(request(cb, OP_SYNC));
}
ALIAS64(aio_fsync64, aio_fsync);

/* ---- lists ---- */

/*
 * Do those of @list that are ours, and leave the others in @rest. Returns how many of ours there are; *@err
 * becomes EINVAL for one that was no request, EIO for one that failed.
 */
static int request_ours(struct aiocb *const list[], int nr, struct aiocb *rest[], int *err)
{
	int i, nr_ours = 0;

	for (i = 0; i < nr; i++) {
		rest[i] = list[i];
		if (!list[i] || list[i]->aio_lio_opcode == LIO_NOP || !fd_is_logical(list[i]->aio_fildes))
			continue;
		rest[i] = NULL;
		nr_ours++;
		if (request(list[i], list[i]->aio_lio_opcode) < 0)
			*err = EINVAL;
		else if (list[i]->__error_code && !*err)
			*err = EIO;
	}
	return nr_ours;
}

/*
 * Ours are done first: when the C library has done the others, it has done the whole list, waits for it or
 * tells of it. With LIO_NOWAIT only what was no request is an error of the call, with LIO_WAIT everything is
 * one.
 */
static int list_io(int mode, struct aiocb *const list[], int nr, struct aiocb *rest[], struct sigevent *event)
{
	int r, err = 0, saved = errno;

	if (!request_ours(list, nr, rest, &err))
		return sys.lio_listio(mode, list, nr, event);
	r = sys.lio_listio(mode, rest, nr, event);
	if (r < 0 || !err || (mode == LIO_NOWAIT && err == EIO)) {
		if (r == 0)
			errno = saved;
		return r;
	}
	return (int)done(mode == LIO_WAIT ? -EIO : -err);
}

EXPORT int lio_listio(int mode, struct aiocb *const list[], int nr, struct sigevent *event)
{
	struct aiocb **rest;
	int r;

	if (!shim_on() || nr <= 0 || (mode != LIO_WAIT && mode != LIO_NOWAIT))
		return sys.lio_listio(mode, list, nr, event);
	rest = mem_alloc((size_t)nr * sizeof(struct aiocb *));
	if (!rest)
		return (int)done(-EAGAIN);
	r = list_io(mode, list, nr, rest, event);
	mem_free(rest);
	return r;
}
ALIAS64(lio_listio64, lio_listio);
