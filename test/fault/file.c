/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The life of a file with the 1st, 2nd, 3rd... call of each kind failing, or being short, until it runs
 * without a fault. Whatever fails: a call that could not do its work says so, what was acknowledged is read
 * back by everybody afterwards, what was refused has left no trace, no descriptor is lost, and the file goes
 * on working.
 */
#include "test/lib/scratch.h"

#include "test/lib/calls.h"
#include "test/lib/near.h"
#include "test/lib/turn.h"

#include <criterion/criterion.h>
#include <sys/mman.h>

#define FILE_MAX (400 * 1024)
#define TIMEOUT_S 7200 /* with PLFS_FAULTS=all; who runs us has his own */
#define CALL_ALLOC NR_CALLS /* of memory: the allocator's own way (alloc.h) */

static enum call bad_call;
static int bad_errno;
static bool persistent; /* from that call on all fail, as on a full disk */

static int fired; /* faults so far */
static int op_fired; /* fired when the operation under way began */
static int op_no;
static const char *options = "{small=0}";
static bool never_noticed; /* the faults are taken up again */
static bool excused; /* persistent faults excuse later failures */

static void live_a_life(void), move_a_file(void), (*life)(void) = live_a_life;

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
	if (never_noticed || (fired == op_fired && !excused && !(persistent && fired)))
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
	if (life == move_a_file) /* a container that could not be removed then is plfs gc's */
		goto fds;
	if (count_files("data.") + count_files("live.") + count_files("index."))
		die("%d logs, %d live files, %d indexes are left behind", count_files("data."),
		    count_files("live."), count_files("index."));
	/* Where no header can be read, or no directory opened, containers stay: they are plfs gc's. */
	if (persisted && (bad_call == CALL_PREAD || bad_call == CALL_OPENAT) && plfs_gc(lpath("", path), &gc))
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
	life();
	check_afterwards(fds);
	return fired ? 10 : 0;
}

/*
 * From the 1st call on, in growing steps, of which one call has its turn (turn.h): the larger the coarser.
 * With PLFS_FAULTS=all each and every one.
 */
static void sweep(enum call call, int err, bool from_there_on, long coarse)
{
	bool all = getenv("PLFS_FAULTS") && !strcmp(getenv("PLFS_FAULTS"), "all");
	long from = 1;
	int code = 10;

#ifdef PLFS_SANITIZE
	coarse = 0; /* each run takes several times as long */
#endif
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
	cr_log_info("%s: %ld calls\n", strerrorname_np(err), from);
}

static void map_scratch(void)
{
	scratch_in_memory = true;
	scratch_map(options);
}

static void fail_each(enum call call, int err, bool from_there_on)
{
	map_scratch();
	sweep(call, err, from_there_on, 4);
	scratch_remove();
}

#define FAILING(call_name, call) \
	Test(fault_file, call_name##_failing_once_loses_nothing, .timeout = TIMEOUT_S) \
	{ \
		fail_each(call, \
			  call == CALL_OPENAT || call == CALL_OPEN || call == CALL_FCNTL ? EMFILE : \
			  call == CALL_MMAP || call == CALL_ALLOC			 ? ENOMEM : \
											   EIO, \
			  false); \
	}

FAILING(openat, CALL_OPENAT)
FAILING(open, CALL_OPEN)
FAILING(pwrite, CALL_PWRITE)
FAILING(pread, CALL_PREAD)
FAILING(ftruncate, CALL_FTRUNCATE)
FAILING(fallocate, CALL_FALLOCATE)
FAILING(mmap, CALL_MMAP)
FAILING(fsync, CALL_FSYNC)
FAILING(fdatasync, CALL_FDATASYNC)
FAILING(unlinkat, CALL_UNLINKAT)
FAILING(renameat, CALL_RENAMEAT)
FAILING(mkdirat, CALL_MKDIRAT)
FAILING(fchmodat, CALL_FCHMODAT)
FAILING(fstat, CALL_FSTAT)
FAILING(fstatat, CALL_FSTATAT)
FAILING(getdents64, CALL_GETDENTS)
FAILING(fcntl, CALL_FCNTL)
FAILING(futimens, CALL_FUTIMENS)
FAILING(allocation, CALL_ALLOC)

Test(fault_file, openat_without_space_for_a_name_loses_nothing, .timeout = TIMEOUT_S)
{
	fail_each(CALL_OPENAT, ENOSPC, false);
}

Test(fault_file, pwrite_on_a_full_disk_loses_nothing, .timeout = TIMEOUT_S)
{
	fail_each(CALL_PWRITE, ENOSPC, true);
}

Test(fault_file, a_disk_that_is_full_for_a_moment_loses_nothing, .timeout = TIMEOUT_S)
{
	fail_each(CALL_PWRITE, ENOSPC, false);
}

Test(fault_file, fallocate_on_a_full_disk_loses_nothing, .timeout = TIMEOUT_S)
{
	fail_each(CALL_FALLOCATE, ENOSPC, true);
}

Test(fault_file, a_file_system_without_fallocate_loses_nothing, .timeout = TIMEOUT_S)
{
	fail_each(CALL_FALLOCATE, EOPNOTSUPP, true);
}

Test(fault_file, a_file_system_without_shared_mappings_loses_nothing, .timeout = TIMEOUT_S)
{
	fail_each(CALL_MMAP, ENODEV, true);
}

Test(fault_file, short_writes_lose_nothing, .timeout = TIMEOUT_S)
{
	fail_each(CALL_PWRITE, CALL_SHORT, true);
}

Test(fault_file, a_short_write_loses_nothing, .timeout = TIMEOUT_S)
{
	fail_each(CALL_PWRITE, CALL_SHORT, false);
}

Test(fault_file, short_reads_lose_nothing, .timeout = TIMEOUT_S)
{
	fail_each(CALL_PREAD, CALL_SHORT, true);
}

/* Those that are taken up again must not even be noticed. */
Test(fault_file, interrupted_writes_lose_nothing, .timeout = TIMEOUT_S)
{
	never_noticed = true;
	fail_each(CALL_PWRITE, EINTR, false);
}

Test(fault_file, interrupted_reads_lose_nothing, .timeout = TIMEOUT_S)
{
	never_noticed = true;
	fail_each(CALL_PREAD, EINTR, false);
}

Test(fault_file, an_interrupted_fallocate_loses_nothing, .timeout = TIMEOUT_S)
{
	never_noticed = true;
	fail_each(CALL_FALLOCATE, EINTR, false);
}

Test(fault_file, a_process_without_descriptors_loses_nothing, .timeout = TIMEOUT_S)
{
	fail_each(CALL_OPENAT, EMFILE, true);
}

Test(fault_file, a_quota_that_is_used_up_loses_nothing, .timeout = TIMEOUT_S)
{
	fail_each(CALL_PWRITE, EDQUOT, true);
}

/* What other errors there are, once and from there on, where they can come from. */
static void fail_all(int err, const enum call *calls, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		sweep(calls[i], err, false, 1);
		sweep(calls[i], err, true, 1);
	}
}

#define FAIL_ALL(err, ...) \
	fail_all(err, (const enum call[]){ __VA_ARGS__ }, sizeof((int[]){ __VA_ARGS__ }) / sizeof(int))

TestSuite(fault_kinds, .init = map_scratch, .fini = scratch_remove, .timeout = TIMEOUT_S);

Test(fault_kinds, files_that_went_stale_lose_nothing)
{
	FAIL_ALL(ESTALE, CALL_OPENAT, CALL_PWRITE, CALL_PREAD, CALL_FTRUNCATE, CALL_FALLOCATE, CALL_FSYNC,
		 CALL_FDATASYNC, CALL_UNLINKAT, CALL_RENAMEAT, CALL_MKDIRAT, CALL_FSTAT, CALL_FSTATAT,
		 CALL_GETDENTS, CALL_FCNTL);
}

Test(fault_kinds, a_file_system_that_goes_read_only_loses_nothing)
{
	FAIL_ALL(EROFS, CALL_OPENAT, CALL_PWRITE, CALL_FTRUNCATE, CALL_FALLOCATE, CALL_FSYNC, CALL_FDATASYNC,
		 CALL_UNLINKAT, CALL_RENAMEAT, CALL_MKDIRAT, CALL_FCHMODAT, CALL_FUTIMENS);
}

Test(fault_kinds, a_quota_that_is_used_up_anywhere_loses_nothing)
{
	FAIL_ALL(EDQUOT, CALL_OPENAT, CALL_PWRITE, CALL_FTRUNCATE, CALL_FALLOCATE, CALL_FSYNC, CALL_FDATASYNC,
		 CALL_RENAMEAT, CALL_MKDIRAT, CALL_FUTIMENS);
}

Test(fault_kinds, a_disk_that_is_full_anywhere_loses_nothing)
{
	FAIL_ALL(ENOSPC, CALL_OPENAT, CALL_FTRUNCATE, CALL_FALLOCATE, CALL_FSYNC, CALL_FDATASYNC,
		 CALL_RENAMEAT, CALL_MKDIRAT, CALL_FUTIMENS, CALL_UNLINKAT);
}

Test(fault_kinds, devices_that_fail_for_good_lose_nothing)
{
	FAIL_ALL(EIO, CALL_OPENAT, CALL_PWRITE, CALL_PREAD, CALL_FTRUNCATE, CALL_FALLOCATE, CALL_FSYNC,
		 CALL_FDATASYNC, CALL_UNLINKAT, CALL_RENAMEAT, CALL_MKDIRAT, CALL_FCHMODAT, CALL_FSTAT,
		 CALL_FSTATAT, CALL_GETDENTS, CALL_FCNTL, CALL_FUTIMENS);
}

Test(fault_kinds, rights_that_are_taken_away_lose_nothing)
{
	FAIL_ALL(EACCES, CALL_OPENAT, CALL_UNLINKAT, CALL_RENAMEAT, CALL_MKDIRAT, CALL_FSTATAT, CALL_MMAP,
		 CALL_FUTIMENS);
}

Test(fault_kinds, memory_that_the_kernel_refuses_loses_nothing)
{
	FAIL_ALL(ENOMEM, CALL_OPENAT, CALL_PWRITE, CALL_PREAD, CALL_MMAP, CALL_FSTAT, CALL_FSTATAT,
		 CALL_GETDENTS, CALL_UNLINKAT, CALL_RENAMEAT, CALL_MKDIRAT);
}

Test(fault_kinds, memory_that_the_allocator_refuses_loses_nothing)
{
	FAIL_ALL(ENOMEM, CALL_ALLOC);
}

Test(fault_kinds, a_system_without_descriptors_loses_nothing)
{
	FAIL_ALL(ENFILE, CALL_OPENAT, CALL_FCNTL);
	FAIL_ALL(EMFILE, CALL_OPENAT, CALL_FCNTL);
}

Test(fault_kinds, a_file_system_without_locks_loses_nothing)
{
	FAIL_ALL(ENOLCK, CALL_FCNTL);
}

/*
 * A program gets those that it would get of a plain file: of an open, a truncation, a sync, a wait for a
 * lock.
 */
Test(fault_kinds, signals_lose_nothing)
{
	static const enum call calls[] = { CALL_OPENAT, CALL_FTRUNCATE, CALL_FSYNC, CALL_FDATASYNC,
					   CALL_FCNTL };

	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		sweep(calls[i], EINTR, false, 1);
}

/* The same for a file that is moved into its body. */
#define FAILING_MOVE(name, ...) \
	Test(fault_move, name, .timeout = TIMEOUT_S) \
	{ \
		static const enum call calls[] = { __VA_ARGS__ }; \
		life = move_a_file; \
		for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) { \
			sweep(calls[i], MOVE_ERROR, false, 2); \
			sweep(calls[i], MOVE_ERROR, true, 2); \
		} \
	}

TestSuite(fault_move, .init = map_scratch, .fini = scratch_remove);

#define MOVE_ERROR ENOSPC
FAILING_MOVE(a_full_disk_loses_nothing, CALL_PWRITE, CALL_FALLOCATE, CALL_FTRUNCATE, CALL_OPENAT,
	     CALL_FDATASYNC, CALL_FSYNC)
#undef MOVE_ERROR
#define MOVE_ERROR EIO
FAILING_MOVE(a_device_that_fails_loses_nothing, CALL_PWRITE, CALL_PREAD, CALL_FALLOCATE, CALL_FTRUNCATE,
	     CALL_OPENAT, CALL_FDATASYNC, CALL_FSYNC, CALL_FSTAT, CALL_FSTATAT, CALL_GETDENTS, CALL_UNLINKAT)
#undef MOVE_ERROR
#define MOVE_ERROR ENOMEM
FAILING_MOVE(memory_that_is_refused_loses_nothing, CALL_ALLOC, CALL_MMAP)
#undef MOVE_ERROR
#define MOVE_ERROR EMFILE
FAILING_MOVE(a_process_without_descriptors_loses_nothing, CALL_OPENAT, CALL_OPEN, CALL_FCNTL)

/* The same for a file that begins in its stub. */
#define FAILING_SMALL(call_name, call, err, from_there_on) \
	Test(fault_small, call_name##_loses_nothing, .timeout = TIMEOUT_S) \
	{ \
		options = ""; \
		fail_each(call, err, from_there_on); \
	}

FAILING_SMALL(failing_pread, CALL_PREAD, EIO, false)
FAILING_SMALL(failing_pwrite, CALL_PWRITE, EIO, false)
FAILING_SMALL(failing_ftruncate, CALL_FTRUNCATE, EIO, false)
FAILING_SMALL(failing_fcntl, CALL_FCNTL, EMFILE, false)
FAILING_SMALL(failing_fstat, CALL_FSTAT, EIO, false)
FAILING_SMALL(a_full_disk, CALL_PWRITE, ENOSPC, true)
FAILING_SMALL(short_writes, CALL_PWRITE, CALL_SHORT, true)
FAILING_SMALL(short_reads, CALL_PREAD, CALL_SHORT, true)
FAILING_SMALL(an_interrupted_write, CALL_PWRITE, EINTR, false)

/* The same for a file whose logs are near (near=). */
static const char *near_options = "{small=0,near=$PLFS_TEST_NEAR}";

static void near_each(enum call call, int err, bool from_there_on)
{
	char near[64], command[100];

	scratch_in_memory = true;
	new_dir(near, sizeof(near));
	setenv("PLFS_TEST_NEAR", near, 1);
	options = near_options;
	fail_each(call, err, from_there_on);
	snprintf(command, sizeof(command), "rm -rf %s", near);
	cr_assert_eq(system(command), 0);
}

#define FAILING_NEAR(call_name, call, err, from_there_on) \
	Test(fault_near, call_name##_loses_nothing, .timeout = TIMEOUT_S) \
	{ \
		near_each(call, err, from_there_on); \
	}

FAILING_NEAR(failing_openat, CALL_OPENAT, EMFILE, false)
FAILING_NEAR(failing_open, CALL_OPEN, EMFILE, false)
FAILING_NEAR(failing_pwrite, CALL_PWRITE, EIO, false)
FAILING_NEAR(failing_pread, CALL_PREAD, EIO, false)
FAILING_NEAR(failing_fallocate, CALL_FALLOCATE, EIO, false)
FAILING_NEAR(failing_ftruncate, CALL_FTRUNCATE, EIO, false)
FAILING_NEAR(failing_fdatasync, CALL_FDATASYNC, EIO, false)
FAILING_NEAR(failing_fsync, CALL_FSYNC, EIO, false)
FAILING_NEAR(failing_unlinkat, CALL_UNLINKAT, EIO, false)
FAILING_NEAR(failing_renameat, CALL_RENAMEAT, EIO, false)
FAILING_NEAR(failing_mkdirat, CALL_MKDIRAT, EIO, false)
FAILING_NEAR(failing_fstat, CALL_FSTAT, EIO, false)
FAILING_NEAR(failing_fstatat, CALL_FSTATAT, EIO, false)
FAILING_NEAR(failing_getdents, CALL_GETDENTS, EIO, false)
FAILING_NEAR(failing_fcntl, CALL_FCNTL, EMFILE, false)
FAILING_NEAR(a_refused_allocation, CALL_ALLOC, ENOMEM, false)
FAILING_NEAR(a_full_disk, CALL_PWRITE, ENOSPC, true)
FAILING_NEAR(a_full_place, CALL_FALLOCATE, ENOSPC, true)
FAILING_NEAR(a_process_without_descriptors, CALL_OPENAT, EMFILE, true)
FAILING_NEAR(a_file_system_without_fallocate, CALL_FALLOCATE, EOPNOTSUPP, true)
FAILING_NEAR(short_writes, CALL_PWRITE, CALL_SHORT, true)
FAILING_NEAR(short_reads, CALL_PREAD, CALL_SHORT, true)

/* And where they are synced there. */
#define FAILING_SYNC_NEAR(call_name, call, err, from_there_on) \
	Test(fault_near, call_name##_of_a_sync_near_loses_nothing, .timeout = TIMEOUT_S) \
	{ \
		near_options = "{small=0,near=$PLFS_TEST_NEAR,sync=near}"; \
		near_each(call, err, from_there_on); \
	}

FAILING_SYNC_NEAR(failing_openat, CALL_OPENAT, EMFILE, false)
FAILING_SYNC_NEAR(failing_open, CALL_OPEN, EIO, false)
FAILING_SYNC_NEAR(failing_pread, CALL_PREAD, EIO, false)
FAILING_SYNC_NEAR(failing_fsync, CALL_FSYNC, EIO, false)
FAILING_SYNC_NEAR(failing_fdatasync, CALL_FDATASYNC, EIO, false)
FAILING_SYNC_NEAR(a_process_without_descriptors, CALL_OPENAT, EMFILE, true)

/* And where a release brings them home. */
#define FAILING_RELEASE(call_name, call, err, from_there_on) \
	Test(fault_near, call_name##_of_a_release_home_loses_nothing, .timeout = TIMEOUT_S) \
	{ \
		near_options = "{small=0,near=$PLFS_TEST_NEAR,release=home}"; \
		near_each(call, err, from_there_on); \
	}

FAILING_RELEASE(failing_openat, CALL_OPENAT, EMFILE, false)
FAILING_RELEASE(failing_pread, CALL_PREAD, EIO, false)
FAILING_RELEASE(failing_pwrite, CALL_PWRITE, EIO, false)
FAILING_RELEASE(failing_fsync, CALL_FSYNC, EIO, false)
FAILING_RELEASE(failing_fdatasync, CALL_FDATASYNC, EIO, false)
FAILING_RELEASE(failing_renameat, CALL_RENAMEAT, EIO, false)
FAILING_RELEASE(failing_unlinkat, CALL_UNLINKAT, EIO, false)
FAILING_RELEASE(a_refused_allocation, CALL_ALLOC, ENOMEM, false)
FAILING_RELEASE(a_full_disk, CALL_PWRITE, ENOSPC, true)
FAILING_RELEASE(a_process_without_descriptors, CALL_OPENAT, EMFILE, true)

/* The same for a file whose logs are in two backends (spread=). */
static void spread_each(enum call call, int err, bool from_there_on)
{
	char spread[100];

	scratch_in_memory = true;
	near_backends("process", spread, sizeof(spread));
	options = spread;
	fail_each(call, err, from_there_on);
	near_lose();
}

#define FAILING_SPREAD(call_name, call, err, from_there_on) \
	Test(fault_spread, call_name##_loses_nothing, .timeout = TIMEOUT_S) \
	{ \
		spread_each(call, err, from_there_on); \
	}

FAILING_SPREAD(failing_openat, CALL_OPENAT, EMFILE, false)
FAILING_SPREAD(failing_open, CALL_OPEN, EIO, false)
FAILING_SPREAD(failing_pwrite, CALL_PWRITE, EIO, false)
FAILING_SPREAD(failing_pread, CALL_PREAD, EIO, false)
FAILING_SPREAD(failing_fallocate, CALL_FALLOCATE, EIO, false)
FAILING_SPREAD(failing_ftruncate, CALL_FTRUNCATE, EIO, false)
FAILING_SPREAD(failing_fdatasync, CALL_FDATASYNC, EIO, false)
FAILING_SPREAD(failing_fsync, CALL_FSYNC, EIO, false)
FAILING_SPREAD(failing_unlinkat, CALL_UNLINKAT, EIO, false)
FAILING_SPREAD(failing_renameat, CALL_RENAMEAT, EIO, false)
FAILING_SPREAD(failing_mkdirat, CALL_MKDIRAT, EIO, false)
FAILING_SPREAD(failing_fstat, CALL_FSTAT, EIO, false)
FAILING_SPREAD(failing_fstatat, CALL_FSTATAT, EIO, false)
FAILING_SPREAD(failing_getdents, CALL_GETDENTS, EIO, false)
FAILING_SPREAD(failing_fcntl, CALL_FCNTL, EMFILE, false)
FAILING_SPREAD(a_refused_allocation, CALL_ALLOC, ENOMEM, false)
FAILING_SPREAD(a_full_disk, CALL_PWRITE, ENOSPC, true)
FAILING_SPREAD(a_full_disk_that_allocates, CALL_FALLOCATE, ENOSPC, true)
FAILING_SPREAD(a_process_without_descriptors, CALL_OPENAT, EMFILE, true)
FAILING_SPREAD(short_writes, CALL_PWRITE, CALL_SHORT, true)
FAILING_SPREAD(short_reads, CALL_PREAD, CALL_SHORT, true)
