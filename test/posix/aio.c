/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Asynchronous I/O: that of POSIX, and the kernel's own, by the functions of libaio and by number.
 */
#include "posix.h"
#include <aio.h>
#include <dlfcn.h>
#include <limits.h>
#include <linux/aio_abi.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>

static const char text[] = "0123456789abcdefghijklmnopqrstuvwxyz";

static int given(const char *name)
{
	make(name, text);
	return rw(name);
}

static uint64_t random_state = 88172645463325252u;
static unsigned rnd(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state * 0x2545f4914f6cdd1dull >> 33;
}

/* Wait for it and tell how it ended. */
static void ended(const char *what, struct aiocb *cb)
{
	const struct aiocb *list[] = {cb};
	int err;

	while (aio_error(cb) == EINPROGRESS)
		aio_suspend(list, 1, NULL);
	err = aio_error(cb);
	say("%s: %s, %zd\n", what, strerrorname_np(err) ? strerrorname_np(err) : "?", aio_return(cb));
}

CASE(one_after_the_other)
{
	int fd = given("f");
	char buf[64] = "";
	struct aiocb cb = {.aio_fildes = fd, .aio_buf = buf, .aio_nbytes = 10, .aio_offset = 4};

	T(aio_read(&cb));
	ended("read", &cb);
	say("%s\n", buf);
	cb.aio_nbytes = 60;
	T(aio_read(&cb));
	ended("short", &cb);
	cb.aio_offset = 100;
	T(aio_read(&cb));
	ended("past the end", &cb);
	cb = (struct aiocb){.aio_fildes = fd, .aio_buf = "AIO", .aio_nbytes = 3, .aio_offset = 50};
	T(aio_write(&cb));
	ended("write", &cb);
	T(aio_fsync(O_SYNC, &cb));
	ended("sync", &cb);
	T(aio_fsync(O_DSYNC, &cb));
	ended("data sync", &cb);
	V(aio_cancel(fd, &cb));
	V(aio_cancel(fd, NULL));
	T(lseek(fd, 0, SEEK_CUR));
	show("f");
}

CASE(what_goes_wrong)
{
	int ro, wo, fd = given("f"), dir = open(at(""), O_RDONLY), p[2];
	char buf[64] = "";
	struct aiocb cb = {.aio_fildes = 999, .aio_buf = buf, .aio_nbytes = 10};

	ro = open(at("f"), O_RDONLY), wo = open(at("f"), O_WRONLY);
	T(aio_read(&cb));
	ended("no descriptor", &cb);
	T(aio_fsync(O_SYNC, &cb));
	V(aio_cancel(999, NULL));
	cb.aio_fildes = wo;
	T(aio_read(&cb));
	ended("write only", &cb);
	cb.aio_fildes = ro;
	T(aio_write(&cb));
	ended("read only", &cb);
	T(aio_fsync(O_SYNC, &cb));
	ended("sync of read only", &cb);
	cb.aio_fildes = wo;
	T(aio_fsync(O_RDWR, &cb));
	T(aio_fsync(O_SYNC, &cb));
	ended("sync of write only", &cb);
	cb.aio_fildes = fd;
	cb.aio_offset = -1;
	T(aio_read(&cb));
	ended("negative read", &cb);
	T(aio_write(&cb));
	ended("negative write", &cb);
	cb.aio_offset = 0;
	cb.aio_reqprio = -1;
	T(aio_read(&cb));
	V(aio_error(&cb));
	T(aio_write(&cb));
	cb.aio_reqprio = 1000;
	T(aio_fsync(O_SYNC, &cb));
	ended("sync that is urgent", &cb);
	cb.aio_reqprio = 0;
	cb.aio_fildes = dir;
	T(aio_read(&cb));
	ended("directory", &cb);
	T(pipe(p));
	T(write(p[1], "pipe", 4));
	cb.aio_fildes = p[0];
	T(aio_read(&cb));
	ended("pipe", &cb);
	show("f");
}

CASE(appended)
{
	int fd = given("f"), i;
	struct aiocb cb[10];

	close(fd);
	fd = open(at("f"), O_WRONLY | O_APPEND);
	memset(cb, 0, sizeof cb);
	for (i = 0; i < 10; i++) {
		cb[i].aio_fildes = fd, cb[i].aio_buf = (void *)&text[i], cb[i].aio_nbytes = 3,
		cb[i].aio_offset = i;
		T(aio_write(&cb[i]));
		ended("append", &cb[i]);
	}
	show("f");
}

enum { nr_requests = 300, element = 700 };

CASE(many_at_random_places)
{
	static char out[nr_requests][element], in[nr_requests][element];
	static struct aiocb cb[nr_requests];
	int fd = rw("f"), place[nr_requests], i, j, t, bad = 0;

	for (i = 0; i < nr_requests; i++)
		place[i] = i;
	for (i = nr_requests - 1; i > 0; i--)
		j = rnd() % (i + 1), t = place[i], place[i] = place[j], place[j] = t;
	for (i = 0; i < nr_requests; i++) {
		for (j = 0; j < element; j++)
			out[i][j] = 'a' + (place[i] + j) % 26;
		cb[i] = (struct aiocb){ .aio_fildes = fd,
					.aio_buf = out[i],
					.aio_nbytes = element,
					.aio_offset = (off_t)place[i] * element };
		bad += aio_write(&cb[i]) != 0;
	}
	for (i = 0; i < nr_requests; i++) {
		const struct aiocb *list[] = {&cb[i]};

		while (aio_error(&cb[i]) == EINPROGRESS)
			aio_suspend(list, 1, NULL);
		bad += aio_return(&cb[i]) != element;
	}
	for (i = 0; i < nr_requests; i++) {
		cb[i].aio_buf = in[i];
		bad += aio_read(&cb[i]) != 0;
	}
	for (i = 0; i < nr_requests; i++) {
		const struct aiocb *list[] = {&cb[i]};

		while (aio_error(&cb[i]) == EINPROGRESS)
			aio_suspend(list, 1, NULL);
		bad += aio_return(&cb[i]) != element || memcmp(in[i], out[i], element);
	}
	say("%d wrong\n", bad);
}

static volatile sig_atomic_t nr_signals, sum_of_values, last_code;
static void on_signal(int sig, siginfo_t *info, void *context)
{
	(void)sig, (void)context;
	nr_signals++;
	sum_of_values += info->si_value.sival_int;
	last_code = info->si_code == SI_ASYNCIO && info->si_pid == getpid() && info->si_uid == getuid();
}

static void expect_signals(void)
{
	struct sigaction sa = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};

	sigaction(SIGRTMIN, &sa, NULL);
}

static void wait_for_signals(int nr)
{
	struct timespec ms = {0, 1000000};

	for (int i = 0; nr_signals < nr && i < 5000; i++)
		nanosleep(&ms, NULL);
	say("%d signals, values %d, %s\n", (int)nr_signals, (int)sum_of_values,
	    last_code ? "of this process's aio" : "?");
}

CASE(a_signal_tells)
{
	static struct aiocb cb[20];
	static char buf[20];
	int fd = given("f"), i;

	expect_signals();
	for (i = 0; i < 20; i++) {
		cb[i] = (struct aiocb){
			.aio_fildes = fd, .aio_buf = buf + i, .aio_nbytes = 1, .aio_offset = i
		};
		cb[i].aio_sigevent.sigev_notify = SIGEV_SIGNAL;
		cb[i].aio_sigevent.sigev_signo = SIGRTMIN;
		cb[i].aio_sigevent.sigev_value.sival_int = i;
		if (i % 5 == 4 ? aio_fsync(O_SYNC, &cb[i]) : aio_read(&cb[i]))
			say("%d: %s\n", i, strerrorname_np(errno));
	}
	wait_for_signals(20);
	for (i = 0; i < 20; i++)
		say("%d ", aio_error(&cb[i]));
	say("%.4s\n", buf);
}

static sem_t posted;
static struct aiocb *told;
static int value_told;
static void on_thread(union sigval v)
{
	told = v.sival_ptr;
	value_told = aio_error(told);
	sem_post(&posted);
}

CASE(a_thread_tells)
{
	static struct aiocb cb;
	static char buf[20];
	int fd = given("f");
	pthread_attr_t attr;

	sem_init(&posted, 0, 0);
	cb = (struct aiocb){.aio_fildes = fd, .aio_buf = buf, .aio_nbytes = 5, .aio_offset = 7};
	cb.aio_sigevent.sigev_notify = SIGEV_THREAD;
	cb.aio_sigevent.sigev_notify_function = on_thread;
	cb.aio_sigevent.sigev_value.sival_ptr = &cb;
	T(aio_read(&cb));
	sem_wait(&posted);
	V(told == &cb);
	V(value_told);
	ended(buf, &cb);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 1 << 18);
	cb.aio_sigevent.sigev_notify_attributes = &attr;
	cb.aio_offset = -1;
	T(aio_write(&cb));
	sem_wait(&posted);
	V(value_told);
	ended("with attributes", &cb);
}

/* Half of them on our file, half on another, some on none. */
static void make_list(struct aiocb *cb, struct aiocb **list, int nr, int fd, int other, char *buf)
{
	for (int i = 0; i < nr; i++) {
		cb[i] = (struct aiocb){ .aio_fildes = i % 2 ? fd : other,
					.aio_buf = buf + 3 * i,
					.aio_nbytes = 3,
					.aio_offset = 3 * i };
		cb[i].aio_lio_opcode = i % 5 == 4 ? LIO_NOP : i % 3 ? LIO_READ : LIO_WRITE;
		list[i] = i % 7 == 6 ? NULL : &cb[i];
	}
}

static void say_list(struct aiocb *cb, struct aiocb **list, int nr)
{
	for (int i = 0; i < nr; i++) {
		while (list[i] && aio_error(&cb[i]) == EINPROGRESS)
			usleep(1000);
		say("%d: %s %d %zd\n", i, list[i] ? "" : "none", aio_error(&cb[i]), aio_return(&cb[i]));
	}
}

CASE(lists)
{
	struct sigevent ev = { .sigev_notify = SIGEV_SIGNAL,
			       .sigev_signo = SIGRTMIN,
			       .sigev_value.sival_int = 42 };
	int fd = given("f"), other = open("/tmp", O_TMPFILE | O_RDWR, 0600);
	struct aiocb cb[12], *list[12];
	char buf[37];

	memcpy(buf, text, sizeof buf);
	T(write(other, text, 36));
	expect_signals();
	make_list(cb, list, 12, fd, other, buf);
	T(lio_listio(LIO_WAIT, list, 12, NULL));
	say_list(cb, list, 12);
	say("%s\n", buf);

	make_list(cb, list, 12, fd, other, buf);
	T(lio_listio(LIO_NOWAIT, list, 12, &ev));
	wait_for_signals(1);
	say_list(cb, list, 12);

	make_list(cb, list, 12, fd, fd, buf);
	T(lio_listio(LIO_NOWAIT, list, 12, &ev));
	wait_for_signals(2);
	say_list(cb, list, 12);
	T(lio_listio(LIO_NOWAIT, list, 12, NULL));
	say_list(cb, list, 12);
	T(lio_listio(77, list, 12, NULL));
	show("f");
}

CASE(lists_with_errors)
{
	int fd = given("f"), other = open("/tmp", O_TMPFILE | O_RDWR, 0600);
	struct aiocb cb[6], *list[6];
	char buf[37];

	memcpy(buf, text, sizeof buf);
	make_list(cb, list, 6, fd, other, buf);
	cb[1].aio_offset = -1;
	T(lio_listio(LIO_WAIT, list, 6, NULL));
	say_list(cb, list, 6);
	T(lio_listio(LIO_NOWAIT, list, 6, NULL));
	say_list(cb, list, 6);
	cb[1].aio_offset = 0, cb[0].aio_offset = -1;
	T(lio_listio(LIO_WAIT, list, 6, NULL));
	say_list(cb, list, 6);
	cb[0].aio_offset = 0, cb[3].aio_reqprio = -1;
	T(lio_listio(LIO_WAIT, list, 6, NULL));
	say_list(cb, list, 6);
	T(lio_listio(LIO_NOWAIT, list, 6, NULL));
	say_list(cb, list, 6);
	cb[3].aio_reqprio = 0, cb[1].aio_lio_opcode = 99;
	T(lio_listio(LIO_WAIT, list, 6, NULL));
	say_list(cb, list, 6);
}

/* ---- the kernel's own ---- */

/* A function of a library that the program is taken to be linked with: the first of that name, as for it. */
static void *function_of(const char *lib, const char *name)
{
	void *fn = NULL;
	char t64[64];

	snprintf(t64, sizeof(t64), "%st64", lib); /* as in Debian 13 */
	if (dlopen(lib, RTLD_NOW | RTLD_GLOBAL) || dlopen(t64, RTLD_NOW | RTLD_GLOBAL))
		fn = dlsym(RTLD_DEFAULT, name);

	if (!fn)
		say("process %d has no %s in %s\n", getpid(), name, lib); /* differs, and so fails */
	return fn;
}

/* By libaio's function or by number: the result or -errno. */
static long io_submit_by(bool lib, aio_context_t ctx, long nr, struct iocb **list)
{
	static int (*fn)(aio_context_t, long, struct iocb **);
	long ret;

	if (lib && !fn)
		fn = (int (*)(aio_context_t, long, struct iocb **))function_of("libaio.so.1", "io_submit");
	if (lib && !fn)
		return 0;
	errno = 0;
	ret = lib ? fn(ctx, nr, list) : syscall(SYS_io_submit, ctx, nr, list);
	if (!lib && ret < 0)
		ret = -errno;
	else if (errno)
		say("errno became %d\n", errno);
	return ret;
}

static int by_data(const void *a, const void *b)
{
	const struct io_event *x = a, *y = b;

	return x->data < y->data ? -1 : x->data > y->data;
}

static void collect(aio_context_t ctx, int nr, struct iocb *cb)
{
	struct io_event ev[32];
	int got = 0, n;

	while (got < nr && (n = syscall(SYS_io_getevents, ctx, 1L, 32L, ev + got, NULL)) > 0)
		got += n;
	qsort(ev, got, sizeof *ev, by_data);
	for (int i = 0; i < got; i++)
		say("%ld: of %ld, %ld %ld\n", (long)ev[i].data,
		    (long)((struct iocb *)(uintptr_t)ev[i].obj - cb), (long)ev[i].res, (long)ev[i].res2);
}

static void kernel_aio(bool lib)
{
	int fd = given("f"), other = open("/tmp", O_TMPFILE | O_RDWR, 0600), ro = open(at("f"), O_RDONLY),
	    event = eventfd(0, 0);
	char in[3][40] = {"", "", ""};
	struct iovec iov[2] = {{in[1], 4}, {in[2], 5}}, out[2] = {{"vec", 3}, {"tors", 4}};
	struct iocb cb[8], saved[8], *list[8];
	aio_context_t ctx = 0;
	uint64_t told_by_event = 0;

	T(syscall(SYS_io_setup, 32, &ctx));
	memset(cb, 0, sizeof cb);
	for (int i = 0; i < 8; i++) {
		list[i] = &cb[i];
		cb[i].aio_data = 10 + i;
		cb[i].aio_fildes = fd;
	}
#define CB(nr, op, buf, len, off) \
	(cb[nr].aio_lio_opcode = op, cb[nr].aio_buf = (uintptr_t)(buf), cb[nr].aio_nbytes = len, \
	 cb[nr].aio_offset = off)
	CB(0, IOCB_CMD_PREAD, in[0], 6, 3);
	CB(1, IOCB_CMD_PWRITE, "PLAIN", 5, 2), cb[1].aio_fildes = other;
	CB(2, IOCB_CMD_PREADV, iov, 2, 10);
	CB(3, IOCB_CMD_PREAD, in[0] + 10, 20, 30);
	CB(4, IOCB_CMD_PREAD, in[0] + 10, 20, 300), cb[4].aio_flags = IOCB_FLAG_RESFD,
						    cb[4].aio_resfd = event;
	CB(5, IOCB_CMD_FSYNC, NULL, 0, 0);
	CB(6, IOCB_CMD_FDSYNC, NULL, 0, 0);
	memcpy(saved, cb, sizeof cb);
	V(io_submit_by(lib, ctx, 7, list));
	collect(ctx, 7, cb);
	for (int i = 0; i < 7; i++)
		saved[i].aio_key = cb[i].aio_key;
	V(memcmp(cb, saved, sizeof cb));
	say("%s %s %s %s\n", in[0], in[0] + 10, in[1], in[2]);
	T(read(event, &told_by_event, 8));
	CB(0, IOCB_CMD_PWRITE, "WRITTEN", 7, 40);
	CB(1, IOCB_CMD_PWRITEV, out, 2, 60), cb[1].aio_fildes = fd;
	CB(2, IOCB_CMD_PWRITE, "S", 1, 0), cb[2].aio_rw_flags = RWF_DSYNC;
	V(io_submit_by(lib, ctx, 3, list));
	collect(ctx, 3, cb);
	cb[2].aio_rw_flags = 0;

	/* What is wrong at once stops the submission there. */
	CB(1, IOCB_CMD_PWRITE, "no", 2, 0), cb[1].aio_fildes = ro;
	V(io_submit_by(lib, ctx, 2, list));
	collect(ctx, 1, cb);
	V(io_submit_by(lib, ctx, 1, list + 1));
	cb[1].aio_fildes = 999;
	V(io_submit_by(lib, ctx, 1, list + 1));
	CB(1, 77, "no", 2, 0), cb[1].aio_fildes = fd;
	V(io_submit_by(lib, ctx, 1, list + 1));
	CB(1, IOCB_CMD_PWRITE, "no", 2, 0), cb[1].aio_reserved2 = 1;
	V(io_submit_by(lib, ctx, 1, list + 1));
	cb[1].aio_reserved2 = 0;
	CB(1, IOCB_CMD_PWRITE, "no", 2, -5), cb[1].aio_flags = IOCB_FLAG_RESFD, cb[1].aio_resfd = fd;
	V(io_submit_by(lib, ctx, 1, list + 1));
	cb[1].aio_flags = 0;
	V(io_submit_by(lib, ctx, 0, list));
	V(io_submit_by(lib, ctx, -1, list));
	V(io_submit_by(lib, 12345, 1, list));
	V(io_submit_by(lib, ctx, 1, NULL));
	T(syscall(SYS_io_destroy, ctx));
	show("f");
}

CASE(kernel_aio_by_number) { kernel_aio(false); }

CASE(kernel_aio_by_name) { kernel_aio(true); }

/* A list, or a request in it, that is not there: what comes before it is done. */
CASE(bad_addresses_of_kernel_aio)
{
	long page = sysconf(_SC_PAGESIZE);
	char *map = mmap(NULL, (size_t)page * 2, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct iocb cb = { .aio_fildes = (uint32_t)given("f"),
			   .aio_lio_opcode = IOCB_CMD_PWRITE,
			   .aio_buf = (uintptr_t) "some",
			   .aio_nbytes = 4 };
	struct iocb **last = (struct iocb **)(void *)(map + page) - 1,
		    *list[2] = { &cb, (struct iocb *)(map + page) };
	aio_context_t ctx = 0;

	mprotect(map + page, (size_t)page, PROT_NONE); /* kept: a hole may be taken by the next map */
	*last = &cb;
	T((int)syscall(SYS_io_setup, 32, &ctx));
	for (int named = 0; named < 2; named++) {
		say("%ld\n", io_submit_by(named, ctx, 1, (struct iocb **)(void *)(map + page)));
		say("%ld\n", io_submit_by(named, ctx, 2, last));
		say("%ld\n", io_submit_by(named, ctx, 2, list));
		say("%ld\n", io_submit_by(named, ctx, 1, list + 1));
	}
	show("f");
}

/* Appending may be refused, and is not done then. */
CASE(an_appending_descriptor_of_kernel_aio)
{
	int fd = given("f"), app = open(at("f"), O_WRONLY | O_APPEND);
	struct iocb cb = { .aio_fildes = app,
			   .aio_lio_opcode = IOCB_CMD_PWRITE,
			   .aio_buf = (uintptr_t) "more",
			   .aio_nbytes = 4 },
		    *list[] = { &cb };
	struct io_event ev = {.res = 0};
	aio_context_t ctx = 0;
	long ret;

	T(syscall(SYS_io_setup, 32, &ctx));
	for (int i = 0; i < 2; i++) {
		ret = io_submit_by(false, ctx, 1, list);
		if (ret == 1)
			ret = syscall(SYS_io_getevents, ctx, 1L, 1L, &ev, NULL);
		if (ret == 1 ? ev.res != 4 : ret != -EINVAL)
			say("%ld, %ld\n", ret, (long)ev.res);
		if (ret != 1)
			write(app, "more", 4);
		cb.aio_fildes = i ? app : fd, cb.aio_rw_flags = i ? 0 : RWF_APPEND;
	}
	show("f");
}

/* Under the library there are none, and the errno says so. */
static void outcome(const char *what, long ret)
{
	bool right = getenv("PLFS_MAP") ? ret == -ENOSYS : ret >= 0 || ret == -ENOSYS || ret == -EPERM;

	say("%s: %s %ld\n", what, right ? "a ring, or the errno for none" : "unexpected", right ? 0 : ret);
}

CASE(rings)
{
	static char ring[4096], params[4096];
	/* Debian 11 has version 1 */
	const char *lib = dlopen("liburing.so.1", RTLD_NOW | RTLD_GLOBAL) ? "liburing.so.1" : "liburing.so.2";
	int (*init)(unsigned, void *, unsigned) =
		(int (*)(unsigned, void *, unsigned))function_of(lib, "io_uring_queue_init");
	int (*init_params)(unsigned, void *, void *) =
		(int (*)(unsigned, void *, void *))function_of(lib, "io_uring_queue_init_params");
	int r = syscall(SYS_io_uring_setup, 4, params);

	outcome("by number", r < 0 ? -errno : r);
	memset(params, 0, sizeof params);
	if (init && init_params) {
		outcome("queue_init", init(4, ring, 0));
		outcome("queue_init_params", init_params(4, ring, params));
	}
}
