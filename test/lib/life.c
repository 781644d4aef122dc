/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two lives: of a file that is written, cut, read and appended to, and of one that is moved into its body.
 * Each operation is compared with a model that knows what was acknowledged, and what is unsure.
 */
#include "test/lib/life.h"

#include "core/base/msg.h"
#include "test/lib/scratch.h"
#include "test/lib/turn.h"
#include "test/lib/sanitized.h"

#include <criterion/criterion.h>
#include <sys/mman.h>

#define FILE_MAX (400 * 1024)

static enum call bad_call;
static int bad_errno;
static bool persistent; /* from that call on all fail, as on a full disk */

static int fired; /* faults so far */
static int op_fired; /* fired when the operation under way began */
static int op_no;
static bool excused; /* persistent faults excuse later failures */

struct life life = { .options = "{small=0}" };

static unsigned char *model, *unsure, *buf;
static long size;
static bool size_known = true;

static int maybe_fail(enum call call)
{
	if (call != bad_call)
		return 0;
	if (--calls_left > 0 || (calls_left < 0 && !persistent))
		return 0;
	fired++;
	return bad_errno;
}

static bool refuse_memory(void)
{
	int saved = errno;
	bool refused = on_call && maybe_fail(CALL_ALLOC);

	errno = saved;
	return refused;
}

static void begin_op(void)
{
	op_no++;
	op_fired = fired;
}

/* An operation has failed: that is only right if a call of it has. */
static void failed(const char *what, long ret)
{
	errno = (int)-ret;
	if (bad_errno > 0 && ret != -bad_errno && !(bad_call == CALL_PREAD && ret == -EIO))
		die("operation %d (%s) fails with another error than the call in it, %s,", op_no, what,
		    strerror(bad_errno));
	if (life.never_noticed || (fired == op_fired && !excused && !(persistent && fired)))
		die("operation %d (%s) fails without a fault in it", op_no, what);
}

static bool try_open(struct lfile *l, int flags)
{
	for (int tries = 0; tries < 3; tries++) {
		int ret;

		begin_op();
		ret = ltry(l, "f", flags);
		if (!ret)
			return true;
		failed("open", ret);
	}
	return false;
}

static void op_write(struct lfile *l, long off, long len)
{
	ssize_t n;

	begin_op();
	n = lfill(l, off, (size_t)len, (unsigned)op_no);
	if (n < len)
		failed("write", n < 0 ? n : -bad_errno);
	if (n <= 0)
		return;
	pattern_fill(model + off, (size_t)n, (uint64_t)off, (unsigned)op_no);
	memset(unsure + off, 0, (size_t)n);
	if (off + n > size)
		size = off + n;
}

static void op_append(struct lfile *l, long len)
{
	off_t end = 0;
	ssize_t n;

	begin_op();
	if (!size_known)
		return;
	pattern_fill(buf, (size_t)len, (uint64_t)size, (unsigned)op_no);
	n = lappend(l, buf, (size_t)len, &end);
	if (n < len) {
		failed("append", n < 0 ? n : -bad_errno);
		size_known = n >= 0;
		if (n < 0)
			memset(unsure + size, 1, (size_t)len);
	}
	if (n <= 0)
		return;
	if (end != size + n)
		die("append ended at %lld, not %ld", (long long)end, size + n);
	memcpy(model + size, buf, (size_t)n);
	size += n;
}

static void op_truncate(struct lfile *l, long to)
{
	long from = to < size ? to : size;
	int ret;

	begin_op();
	ret = plfs_truncate(l->f, to);
	if (ret) {
		failed("truncate", ret);
		memset(unsure + from, 1, (size_t)(FILE_MAX - from));
		size_known = false;
		return;
	}
	memset(model + to, 0, (size_t)(FILE_MAX - to));
	memset(unsure + to, 0, (size_t)(FILE_MAX - to));
	size = to;
	size_known = true;
}

static void op_read(struct lfile *l)
{
	ssize_t n;

	begin_op();
	n = plfs_pread(l->f, buf, FILE_MAX, 0);
	if (n < 0) {
		failed("read", n);
		return;
	}
	errno = 0;
	if (size_known && n != size)
		die("operation %d: read %zd bytes, not %ld", op_no, n, size);
	for (long i = 0; i < n; i++)
		if (buf[i] != model[i] && !unsure[i])
			die("operation %d: wrong byte at %ld of %zd", op_no, i, n);
}

static void op_sync(struct lfile *l)
{
	int ret;

	begin_op();
	ret = plfs_sync(l->f);
	if (ret)
		failed("sync", ret);
}

static void op_close(struct lfile *l)
{
	begin_op();
	lclose(l);
}

static void live_a_life(void)
{
	struct lfile l;

	if (!try_open(&l, O_RDWR | O_CREAT))
		return;
	for (int i = 0; i < 5; i++)
		op_write(&l, i * 1000, 100);
	op_write(&l, 5000, 100000);
	op_read(&l);
	op_write(&l, 4990, 30);
	op_write(&l, 5020, 30);
	op_read(&l);
	op_sync(&l);
	op_truncate(&l, 50000);
	op_write(&l, 60000, 1000);
	op_append(&l, 500);
	op_append(&l, 70000);
	op_read(&l);
	op_close(&l);
	if (!try_open(&l, O_RDWR))
		return;
	op_read(&l);
	for (int i = 0; i < 1300; i++)
		op_write(&l, i * 60 + i * i % 17, 20 + i % 3);
	op_read(&l);
	op_close(&l);
	if (!try_open(&l, O_RDWR))
		return;
	op_write(&l, 70000, 70000);
	op_truncate(&l, 0);
	op_write(&l, 100, 3000);
	op_read(&l);
	op_close(&l);
	if (!try_open(&l, O_WRONLY | O_APPEND))
		return;
	op_append(&l, 100);
	op_close(&l);
}

static void op_move(struct lfile *l)
{
	int ret;

	begin_op();
	ret = plfs_in_body(l->f, PLFS_MAP_WRITE);
	if (ret < 0)
		failed("move", ret);
}

/* Moved into its body with bytes in several logs, staged and not, and used there. */
static void move_a_file(void)
{
	struct lfile l, reader;

	for (int i = 0; i < 2; i++) {
		if (!try_open(&l, O_RDWR | O_CREAT))
			return;
		op_write(&l, i * 30000, 40000);
		op_write(&l, 100000 + i * 70000, 70000);
		op_close(&l);
	}
	if (!try_open(&l, O_RDWR))
		return;
	op_write(&l, 300000, 3000);
	op_write(&l, 10000, 100);
	op_move(&l);
	op_read(&l);
	op_write(&l, 20000, 200);
	op_append(&l, 300);
	op_truncate(&l, 250000);
	op_read(&l);
	op_move(&l);
	op_write(&l, 240000, 20000);
	op_sync(&l);
	if (try_open(&reader, O_RDONLY)) {
		op_read(&reader);
		op_close(&reader);
	}
	op_close(&l);
}

static int read_in_child(void *arg)
{
	struct lfile l = lopen("f", O_RDONLY);

	(void)arg;
	op_read(&l);
	lclose(&l);
	return 0;
}

/* Faults are off: what was acknowledged is there, here and for others, and the file works. */
static void check_afterwards(int fds)
{
	struct plfs_gc gc = { .age_ns = 0, .nr_threads = 1, .later_ns = 3600000000000u };
	bool persisted = persistent;
	struct lfile l;
	char path[PATH_MAX];

	on_call = NULL;
	excused = persistent = false;
	if (count_fds() != fds)
		die("%d descriptors, %d before", count_fds(), fds);
	if (ltry(&l, "f", O_RDWR)) /* it was never made */
		return;
	op_read(&l);
	if (plfs_size(l.f) != size && size_known)
		die("size %lld, not %ld", (long long)plfs_size(l.f), size);
	op_write(&l, 10, 10);
	op_close(&l);
	if (in_child(read_in_child, NULL))
		die("another process sees something else");
	if (lrename("f", "g") || lrename("g", "f"))
		die("rename");
	if (lunlink("f"))
		die("unlink");
	if (life.moved) /* a container that could not be removed then is plfs gc's */
		goto fds;
	if (count_files("data.") + count_files("live.") + count_files("index."))
		die("%d logs, %d live files, %d indexes are left behind", count_files("data."),
		    count_files("live."), count_files("index."));
	/* Where no header can be read, no directory opened or looked at, a container stays: it is gc's. */
	if (persisted && (bad_call == CALL_PREAD || bad_call == CALL_OPENAT || bad_call == CALL_FSTAT) &&
	    plfs_gc(lpath("", path), &gc))
		die("gc");
	if (find_file("hostdir.", path))
		die("%s is left behind", path);
fds:
	if (count_fds() != fds)
		die("%d descriptors, %d before, after the check", count_fds(), fds);
}

static int one_run(void *arg)
{
	int fds = count_fds();

	(void)arg;
	model = calloc(1, FILE_MAX);
	unsure = calloc(1, FILE_MAX);
	buf = calloc(1, FILE_MAX);
	be_single_threaded();
	calls_intercept();
	on_call = maybe_fail;
	mem_refuses = refuse_memory;
	if (life.moved)
		move_a_file();
	else
		live_a_life();
	check_afterwards(fds);
	return fired ? 10 : 0;
}

void life_sweep(enum call call, int err, bool from_there_on, long coarse)
{
	bool all = getenv("PLFS_FAULTS") && !strcmp(getenv("PLFS_FAULTS"), "all");
	long from = 1;
	int code = 10;

	if (is_sanitized())
		coarse = 0; /* each run takes several times as long */
	bad_call = call;
	bad_errno = err;
	persistent = from_there_on;
	while (code == 10) {
		long nr = turn_coarse(&from, coarse, all);

		calls_left = nr;
		code = in_child(one_run, NULL);
		cr_expect(code == 0 || code == 10, "%s number %ld failing with %s%s: exit code %d",
			  call == CALL_ALLOC ? "allocation" : CALL_NAMES[call], nr,
			  err > 0 ? strerror(err) : "half a transfer", from_there_on ? " from there on" : "",
			  code);
		scratch_clear();
	}
	cr_log_info("%s: %ld calls\n", msg_errno_name(err), from);
}

void life_map(void)
{
	scratch_in_memory = true;
	scratch_map(life.options);
}

void life_fail_each(enum call call, int err, bool from_there_on)
{
	life_map();
	life_sweep(call, err, from_there_on, 4);
	scratch_remove();
}
