/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Small files, which stay in their stubs: when they do and when not, and what happens to who is at one while somebody
 * else claims, cuts, moves or removes it.
 */
#include "scratch.h"

#include "calls.h"

#include <criterion/criterion.h>
#include <linux/magic.h>
#include <sched.h>
#include <sys/mman.h>

#define SMALL (64 * 1024)

static void setup(void)
{
	scratch_map("");
}

#define SUITE(name) TestSuite(name, .init = setup, .fini = scratch_remove, .timeout = 300)

SUITE(bare);
SUITE(bare_others);
SUITE(bare_race);

static struct {
	volatile int started, claimed, done;
} *shared;

static void share(void)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

static void await(volatile int *flag)
{
	while (!__atomic_load_n(flag, __ATOMIC_ACQUIRE))
		sched_yield();
}

static void raise_flag(volatile int *flag)
{
	__atomic_store_n(flag, 1, __ATOMIC_RELEASE);
}

static int logs(void)
{
	return count_files("data.");
}

static off_t stub_size(const char *name)
{
	char path[PATH_MAX];
	struct stat st;

	lpath(name, path);
	return stat(path, &st) ? -1 : st.st_size;
}

/* ---- one process ---- */

Test(bare, a_small_file_is_its_stub_alone)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT);

	cr_assert_eq(lfill(&l, 0, 1000, 1), 1000);
	cr_assert_eq(stub_size("a"), 4096 + 1000);
	cr_assert_eq(lfill(&l, 500, 100, 2), 100);
	cr_assert_eq(lcheck(&l, 0, 500, 1) | lcheck(&l, 500, 100, 2) | lcheck(&l, 600, 400, 1), 0);
	cr_assert_eq(plfs_size(l.f), 1000);
	lclose(&l);
	cr_assert_eq(logs(), 0);
	cr_assert_eq(count_files(""), 2); /* and the format file */
	l = lopen("a", O_RDONLY);
	cr_assert_eq(lcheck(&l, 500, 100, 2), 0);
	lclose(&l);
	cr_assert_eq(lunlink("a"), 0);
	cr_assert_eq(count_files(""), 1);
}

Test(bare, a_write_that_goes_beyond_makes_a_log_and_what_is_there_stays)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT);

	cr_assert_eq(lfill(&l, 0, SMALL, 1), SMALL);
	cr_assert_eq(logs(), 0);
	cr_assert_eq(lfill(&l, SMALL - 10, 11, 2), 11);
	cr_assert_eq(logs(), 1);
	cr_assert_eq(lfill(&l, 100, 10, 3), 10);
	cr_assert_eq(lcheck(&l, 0, 100, 1) | lcheck(&l, 100, 10, 3) | lcheck(&l, 110, SMALL - 120, 1), 0);
	cr_assert_eq(lcheck(&l, SMALL - 10, 11, 2), 0);
	lclose(&l);
	l = lopen("a", O_RDONLY);
	cr_assert_eq(lcheck(&l, 0, 100, 1) | lcheck(&l, 100, 10, 3) | lcheck(&l, SMALL - 10, 11, 2), 0);
	cr_assert_eq(plfs_size(l.f), SMALL + 1);
	lclose(&l);
	lunlink("a");
	cr_assert_eq(count_files(""), 1);
}

Test(bare, a_large_first_write_leaves_the_stub_alone)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT);
	struct stat st;

	lfill(&l, 0, SMALL + 1, 1);
	lfill(&l, 5, 5, 1);
	fstat(l.fd, &st);
	cr_assert_eq(logs(), 1);
	cr_assert_leq(st.st_blocks, 8);
	lclose(&l);
}

Test(bare, who_is_not_alone_at_its_first_write_makes_a_log)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT), other = lopen("a", O_RDONLY);

	lfill(&l, 0, 10, 1);
	cr_assert_eq(logs(), 1);
	cr_assert_eq(lcheck(&other, 0, 10, 1), 0);
	lclose(&other);
	lclose(&l);
}

static int append_sessions(void *arg)
{
	char text[32];
	off_t end;

	(void)arg;
	be_single_threaded();
	for (int i = 0; i < 50; i++) {
		struct lfile l = lopen("a", O_WRONLY | O_CREAT | O_APPEND);

		snprintf(text, sizeof(text), "line %03d\n", i);
		if (lappend(&l, text, 9, &end) != 9 || end != 9 * (i + 1))
			return 1;
		lclose(&l);
	}
	return 0;
}

Test(bare, append_sessions_leave_nothing_behind)
{
	cr_assert_eq(in_child(append_sessions, NULL), 0);
	cr_assert_eq(count_files(""), 2);
	cr_assert_eq(stub_size("a"), 4096 + 450);
}

static int fills_the_stub(void *arg)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT | O_APPEND);
	static char buf[1000], got[1000];
	off_t end;

	(void)arg;
	be_single_threaded();
	for (int i = 0; i < 80; i++) {
		memset(buf, i, sizeof(buf));
		if (lappend(&l, buf, sizeof(buf), &end) != 1000 || end != 1000 * (i + 1) || logs() != (end > SMALL))
			return 1;
	}
	for (int i = 0; i < 80; i++) {
		memset(buf, i, sizeof(buf));
		if (plfs_pread(l.f, got, sizeof(got), i * 1000) != 1000 || memcmp(buf, got, sizeof(buf)))
			return 2;
	}
	return lclose(&l);
}

Test(bare, appends_go_on_in_logs_where_the_stub_is_full)
{
	cr_assert_eq(in_child(fills_the_stub, NULL), 0);
}

Test(bare, is_cut_and_grows_without_a_log)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT);

	lfill(&l, 0, 10000, 1);
	cr_assert_eq(plfs_truncate(l.f, 100), 0);
	cr_assert_eq(plfs_size(l.f), 100);
	cr_assert_eq(plfs_truncate(l.f, 300), 0);
	cr_assert(lzeros(&l, 100, 200));
	cr_assert_eq(lcheck(&l, 0, 100, 1), 0);
	cr_assert_eq(plfs_truncate(l.f, 0), 0);
	cr_assert_eq(plfs_size(l.f), 0);
	cr_assert_eq(plfs_fallocate(l.f, 0, 50, 50), 0);
	cr_assert(lzeros(&l, 0, 100));
	lfill(&l, 0, 100, 2);
	cr_assert_eq(plfs_fallocate(l.f, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 10, 20), 0);
	cr_assert(lzeros(&l, 10, 20));
	cr_assert_eq(plfs_fallocate(l.f, FALLOC_FL_ZERO_RANGE, 90, 20), 0);
	cr_assert(lzeros(&l, 90, 20));
	cr_assert_eq(plfs_size(l.f), 110);
	cr_assert_eq(lcheck(&l, 30, 60, 2), 0);
	lclose(&l);
	cr_assert_eq(logs(), 0);
	l = lopen("a", O_RDWR | O_TRUNC);
	cr_assert_eq(plfs_size(l.f), 0);
	lclose(&l);
}

/* A preallocated checkpoint is to be written to logs: the stub gets no space for it. */
Test(bare, a_large_allocation_takes_no_space)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT);
	struct stat st;

	cr_assert_eq(plfs_fallocate(l.f, 0, 0, 1 << 20), 0);
	fstat(l.fd, &st);
	cr_assert_leq(st.st_blocks, 16);
	cr_assert_eq(plfs_size(l.f), 1 << 20);
	lclose(&l);
}

static int count_pieces(void *arg, uint64_t logical_off, uint64_t len, const char *log, uint64_t log_off)
{
	uint64_t *sums = arg;

	(void)logical_off;
	(void)log_off;
	sums[!log ? 0 : log == plfs_in_stub ? 1 : 2] += len;
	return 0;
}

Test(bare, its_map_tells_what_is_in_the_stub)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT);
	uint64_t sums[3] = { 0 };

	lfill(&l, 0, 4096, 1);
	lfill(&l, 8192, 4096, 1);
	cr_assert_eq(plfs_get_map(l.f, count_pieces, sums), 0);
	cr_assert_eq(sums[0] + sums[1], 3 * 4096);
	cr_assert_geq(sums[1], 2 * 4096);
	lfill(&l, SMALL, 100, 1);
	sums[0] = sums[1] = 0;
	cr_assert_eq(plfs_get_map(l.f, count_pieces, sums), 0);
	cr_assert_eq(sums[2], 100);
	cr_assert_geq(sums[1], 2 * 4096);
	lclose(&l);
}

Test(bare, becomes_a_plain_file_with_its_bytes)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT);
	char path[PATH_MAX], buf[5000];
	struct stat st;

	lfill(&l, 0, 5000, 1);
	lclose(&l);
	lpath("a", path);
	cr_assert_eq(plfs_flatten(AT_FDCWD, path, NULL), 0);
	cr_assert_eq(stat(path, &st), 0);
	cr_assert_eq(st.st_size, 5000);
	cr_assert_eq(st.st_mode & S_ISVTX, 0);
	l.fd = open(path, O_RDONLY);
	cr_assert_eq(pread(l.fd, buf, 5000, 0), 5000);
	cr_assert_eq(pattern_check(buf, 5000, 0, 1), 5000);
	cr_assert_eq(count_files(".plfs-flatten"), 0);
}

Test(bare, is_in_its_body_when_it_is_mapped)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT), r;

	lfill(&l, 0, 100, 1);
	r = lopen("a", O_RDONLY);
	cr_assert_eq(plfs_in_body(l.f, PLFS_MAP_WRITE), 1);
	lfill(&l, SMALL, 100, 1);
	cr_assert_eq(lcheck(&r, 0, 100, 1) | lcheck(&r, SMALL, 100, 1), 0);
	cr_assert_eq(logs(), 0);
	lclose(&r);
	lclose(&l);
}

static int no_locks(enum call call)
{
	return call == CALL_FCNTL ? ENOLCK : 0;
}

static int appends_without_locks(void *arg)
{
	struct lfile l = lopen("b", O_RDWR | O_CREAT);
	off_t end;

	(void)arg;
	be_single_threaded();
	on_call = no_locks;
	if (lappend(&l, "x", 1, &end) != 1)
		return 1;
	on_call = NULL;
	return lclose(&l);
}

Test(bare, where_locks_do_not_work_everything_goes_to_logs)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT);

	calls_intercept();
	on_call = no_locks;
	cr_assert_eq(lfill(&l, 0, 100, 1), 100);
	on_call = NULL;
	lclose(&l);
	cr_assert_eq(logs(), 1);
	cr_assert_eq(in_child(appends_without_locks, NULL), 0);
	cr_assert_eq(logs(), 2);
}

static int disk_is_full(enum call call)
{
	return call == CALL_PWRITE ? ENOSPC : 0;
}

Test(bare, a_full_disk_is_told_at_once)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT);
	off_t end;

	lfill(&l, 0, 100, 1);
	calls_intercept();
	on_call = disk_is_full;
	cr_assert_eq(lfill(&l, 100, 100, 1), -ENOSPC);
	on_call = NULL;
	cr_assert_eq(plfs_size(l.f), 100);
	cr_assert_eq(lcheck(&l, 0, 100, 1), 0);
	cr_assert_eq(lappend(&l, "end", 3, &end), 3);
	cr_assert_eq(end, 103);
	lclose(&l);
}

static int (*real_statfs)(const char *path, struct statfs *fs);

static int as_nfs(const char *path, struct statfs *fs)
{
	int ret = real_statfs(path, fs);

	fs->f_type = NFS_SUPER_MAGIC;
	return ret;
}

static void writes_a_little_on_nfs(const char *options, int nr_logs)
{
	struct lfile l;

	sys_init();
	real_statfs = sys.statfs;
	sys.statfs = as_nfs;
	scratch_map(options);
	l = lopen("a", O_RDWR | O_CREAT);
	lfill(&l, 0, 100, 1);
	cr_assert_eq(lcheck(&l, 0, 100, 1), 0);
	lclose(&l);
	cr_assert_eq(logs(), nr_logs);
}

Test(bare_remote, is_none_unless_asked_for, .fini = scratch_remove)
{
	writes_a_little_on_nfs("", 1);
}

Test(bare_remote, is_there_if_asked_for, .fini = scratch_remove)
{
	writes_a_little_on_nfs("{small=64K}", 0);
}

/* ---- others ---- */

static int writes_large(void *arg)
{
	struct lfile l = lopen("a", O_RDWR);

	(void)arg;
	if (lfill(&l, 50, 100, 2) != 100 || lfill(&l, SMALL, 100, 2) != 100)
		return 1;
	raise_flag(&shared->claimed);
	await(&shared->done);
	return lclose(&l);
}

Test(bare_others, who_has_written_before_the_claim_goes_on_in_a_log)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT);
	pid_t pid;

	share();
	lfill(&l, 0, 200, 1);
	pid = start_child(writes_large, NULL);
	await(&shared->claimed);
	cr_assert_eq(lcheck(&l, 0, 50, 1) | lcheck(&l, 50, 100, 2) | lcheck(&l, 150, 50, 1), 0);
	cr_assert_eq(lcheck(&l, SMALL, 100, 2), 0);
	lfill(&l, 100, 10, 3);
	cr_assert_eq(logs(), 2);
	cr_assert_eq(lcheck(&l, 50, 50, 2) | lcheck(&l, 100, 10, 3), 0);
	raise_flag(&shared->done);
	cr_assert_eq(wait_child(pid), 0);
	cr_assert_eq(lcheck(&l, 50, 50, 2) | lcheck(&l, 100, 10, 3) | lcheck(&l, 110, 40, 2), 0);
	lclose(&l);
}

Test(bare_others, who_reads_sees_each_write_whether_in_the_stub_or_a_log)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT), r = { 0 };
	pid_t pid;

	share();
	lfill(&l, 0, 200, 1);
	r = lopen("a", O_RDONLY);
	cr_assert_eq(lcheck(&r, 0, 200, 1), 0);
	lfill(&l, 0, 200, 4);
	cr_assert_eq(lcheck(&r, 0, 200, 4), 0);
	pid = start_child(writes_large, NULL);
	await(&shared->claimed);
	cr_assert_eq(lcheck(&r, 50, 100, 2), 0);
	lfill(&l, 60, 10, 5);
	cr_assert_eq(lcheck(&r, 60, 10, 5), 0);
	raise_flag(&shared->done);
	cr_assert_eq(wait_child(pid), 0);
	lclose(&r);
	lclose(&l);
}

static int maps_to_read(void *arg)
{
	struct stat before, after;
	struct lfile l;

	lclose(arg); /* the one who writes is another process */
	l = lopen("a", O_RDONLY);
	if (fstat(l.fd, &before) || plfs_in_body(l.f, PLFS_MAP_READ) != 1 || fstat(l.fd, &after))
		return 1;
	return before.st_mtim.tv_sec != after.st_mtim.tv_sec || before.st_mtim.tv_nsec != after.st_mtim.tv_nsec || lclose(&l);
}

Test(bare_others, a_map_to_read_shows_what_who_has_it_open_writes_beyond_the_limit)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT);
	char byte = 0;

	lfill(&l, 0, 1000, 1);
	cr_assert_eq(in_child(maps_to_read, &l), 0);
	cr_assert_eq(plfs_pwrite(l.f, "new", 3, 0), 3);
	lfill(&l, 1000, SMALL, 2);
	cr_assert_eq(logs(), 0);
	cr_assert_eq(pread(l.fd, &byte, 1, PLFS_BODY_OFF), 1);
	cr_assert_eq(byte, 'n');
	lclose(&l);
}

/* Between the header that names a container and the first log in it. */
static int stop_before_the_log(enum call call)
{
	static int stage;

	if (call == CALL_PWRITE && !stage)
		stage = 1;
	else if (call == CALL_OPENAT && stage == 1) {
		stage = 2;
		raise_flag(&shared->started);
		await(&shared->claimed);
	}
	return 0;
}

static int claims_slowly(void *arg)
{
	struct lfile l = lopen("a", O_RDWR);
	int ret;

	(void)arg;
	calls_intercept();
	on_call = stop_before_the_log;
	ret = lfill(&l, 0, 100, 2) != 100; /* not alone */
	on_call = NULL;
	raise_flag(&shared->done);
	pause();
	return ret;
}

Test(bare_others, who_reads_while_a_container_is_still_empty_sees_what_comes)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT);
	pid_t pid;

	share();
	lfill(&l, 0, 200, 1);
	lclose(&l);
	l = lopen("a", O_RDONLY);
	cr_assert_eq(lcheck(&l, 0, 200, 1), 0);
	pid = start_child(claims_slowly, NULL);
	await(&shared->started);
	cr_assert_eq(lcheck(&l, 0, 200, 1), 0);
	raise_flag(&shared->claimed);
	await(&shared->done);
	cr_assert_eq(lcheck(&l, 0, 100, 2), 0);
	cr_assert_eq(lcheck(&l, 100, 100, 1), 0);
	kill(pid, SIGKILL);
	wait_child(pid);
	lclose(&l);
}

/* Nobody may go by a container of which he has not heard. */
static int claims_and_unlinks(void *arg)
{
	struct lfile l = lopen("a", O_RDWR);

	(void)arg;
	lfill(&l, SMALL, 100, 2);
	lunlink("a");
	return lclose(&l);
}

Test(bare_others, the_last_to_close_removes_a_container_that_it_has_not_known)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT);

	lfill(&l, 0, 100, 1);
	cr_assert_eq(in_child(claims_and_unlinks, NULL), 0);
	cr_assert_eq(logs(), 1);
	lclose(&l);
	cr_assert_eq(logs(), 0);
	cr_assert_eq(count_files(""), 1);
}

static int unlinked_at;

static int claims_meanwhile(enum call call)
{
	if (call == CALL_UNLINKAT && !unlinked_at++) {
		struct lfile l = lopen("a", O_RDWR);

		lfill(&l, 0, SMALL + 1, 1);
		lclose(&l);
	}
	return 0;
}

Test(bare_others, a_container_made_just_before_the_name_goes_is_removed)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT);

	lfill(&l, 0, 100, 1);
	lclose(&l);
	calls_intercept();
	on_call = claims_meanwhile;
	cr_assert_eq(lunlink("a"), 0);
	on_call = NULL;
	cr_assert_eq(logs(), 0);
}

/* ---- in the middle of a call ---- */

static int stop_nr;
static enum call stop_call;

/* Before that call, and after the one before it, let the other go on. */
static int stop_once(enum call call)
{
	if (call != stop_call || !stop_nr || --stop_nr)
		return 0;
	raise_flag(&shared->started);
	await(&shared->claimed);
	return 0;
}

static int writes_small(void *arg)
{
	struct lfile l = lopen("a", O_RDWR);
	int ret;

	(void)arg;
	lfill(&l, 0, 10, 1); /* alone: from here on the stub is written */
	raise_flag(&shared->done);
	calls_intercept();
	on_call = stop_once;
	ret = lfill(&l, 1000, 100, 7) != 100;
	on_call = NULL;
	raise_flag(&shared->started);
	return ret | lclose(&l);
}

/*
 * Call 1 of pread is the look before the write, call 2 that after it. What the other does in between has returned before
 * this write returns, but not before it began: it may be before or after, but the same for all.
 */
static void claim_in_between(enum call call, int nr, int what)
{
	struct lfile l;
	char buf[100], again[100];
	unsigned of;
	pid_t pid;

	share();
	stop_call = call;
	stop_nr = nr;
	l = lopen("a", O_RDWR | O_CREAT);
	lclose(&l);
	pid = start_child(writes_small, NULL);
	await(&shared->done);
	l = lopen("a", O_RDWR);
	await(&shared->started);
	switch (what) {
	case 0:
		cr_assert_eq(lfill(&l, 1000, 100, 8), 100);
		break;
	case 1:
		cr_assert_eq(lfill(&l, 1000, SMALL, 8), SMALL);
		cr_assert_eq(plfs_truncate(l.f, 500), 0);
		break;
	case 2:
		cr_assert_eq(lfill(&l, 1000, SMALL, 8), SMALL);
		cr_assert_eq(plfs_truncate(l.f, 0), 0);
		break;
	case 3:
		cr_assert_eq(lfill(&l, 0, SMALL + 1, 8), SMALL + 1);
		cr_assert_eq(plfs_in_body(l.f, PLFS_MAP_WRITE), 1);
		break;
	}
	raise_flag(&shared->claimed);
	cr_assert_eq(wait_child(pid), 0);
	/* This write returned last, and began before the other had returned: here it is always the later one. */
	of = lcheck(&l, 1000, 100, 7) ? 8 : 7;
	cr_assert_eq(of, 7, "call %d, number %d, %d", call, nr, what);
	if (what == 1)
		cr_assert(plfs_size(l.f) == 1100 && lzeros(&l, 500, 500));
	if (what == 2)
		cr_assert(plfs_size(l.f) == 1100 && lzeros(&l, 0, 1000));
	plfs_pread(l.f, buf, sizeof(buf), 1000);
	lclose(&l);
	l = lopen("a", O_RDONLY);
	plfs_pread(l.f, again, sizeof(again), 1000);
	cr_assert_arr_eq(buf, again, sizeof(buf));
	lclose(&l);
	cr_assert_eq(lunlink("a"), 0);
	cr_assert_eq(logs(), 0);
}

Test(bare_race, a_write_during_which_the_file_is_claimed_is_not_lost)
{
	for (int what = 0; what < 4; what++) {
		claim_in_between(CALL_PREAD, 1, what);
		claim_in_between(CALL_PWRITE, 1, what);
		claim_in_between(CALL_PREAD, 2, what);
	}
}

static int cuts_small(void *arg)
{
	struct lfile l = lopen("a", O_RDWR);
	int ret;

	(void)arg;
	lfill(&l, 0, 1000, 1);
	raise_flag(&shared->done);
	calls_intercept();
	on_call = stop_once;
	ret = plfs_truncate(l.f, 100);
	on_call = NULL;
	raise_flag(&shared->started);
	return ret | lclose(&l);
}

Test(bare_race, a_file_that_is_claimed_while_it_is_cut_is_cut)
{
	static const enum call calls[] = { CALL_PREAD, CALL_FTRUNCATE, CALL_PREAD };

	for (int i = 0; i < 3; i++) {
		struct lfile l = lopen("a", O_RDWR | O_CREAT);
		pid_t pid;

		lclose(&l);
		share();
		stop_call = calls[i];
		stop_nr = 1 + i / 2;
		pid = start_child(cuts_small, NULL);
		await(&shared->started);
		l = lopen("a", O_RDWR);
		lfill(&l, 500, SMALL, 2);
		raise_flag(&shared->claimed);
		cr_assert_eq(wait_child(pid), 0);
		cr_assert_eq(plfs_size(l.f), 100, "call %d: %lld", i, (long long)plfs_size(l.f));
		cr_assert_eq(lcheck(&l, 0, 100, 1), 0);
		lfill(&l, 2000, 10, 2);
		cr_assert(lzeros(&l, 100, 1900));
		lclose(&l);
		lunlink("a");
	}
}

#define NR_WRITERS 3
#define RECORD 100

/* Small writes all over, each checked at once; @arg says whose. */
static int writes_all_the_time(void *arg)
{
	int me = *(int *)arg;
	struct lfile l;

	await(&shared->started);
	l = lopen("a", O_RDWR);
	for (int i = 0; i < 200; i++) {
		off_t off = ((off_t)i * NR_WRITERS + me) * RECORD;

		if (lfill(&l, off, RECORD, 1) != RECORD || lcheck(&l, off, RECORD, 1))
			return 1;
		if (i % 20 == 19) { /* alone again, perhaps */
			lclose(&l);
			l = lopen("a", O_RDWR);
		}
	}
	for (int i = 0; i < 200; i++)
		if (lcheck(&l, ((off_t)i * NR_WRITERS + me) * RECORD, RECORD, 1))
			return 2;
	return lclose(&l);
}

Test(bare_race, no_write_is_lost)
{
	static int who[NR_WRITERS] = { 0, 1, 2 };

	for (int round = 0; round < 20; round++) {
		struct lfile l = lopen("a", O_RDWR | O_CREAT);
		pid_t pids[NR_WRITERS];

		lclose(&l);
		share();
		for (int i = 0; i < NR_WRITERS; i++)
			pids[i] = start_child(writes_all_the_time, &who[i]);
		raise_flag(&shared->started);
		for (int i = 0; i < NR_WRITERS; i++)
			cr_assert_eq(wait_child(pids[i]), 0, "round %d", round);
		l = lopen("a", O_RDONLY);
		cr_assert_eq(lcheck(&l, 0, 200 * NR_WRITERS * RECORD, 1), 0);
		lclose(&l);
		lunlink("a");
		cr_assert_eq(count_files(""), 1);
	}
}

static int appends_all_the_time(void *arg)
{
	char line[21];
	off_t end;

	be_single_threaded();
	await(&shared->started);
	for (int i = 0; i < 20; i++) {
		struct lfile l = lopen("a", O_RDWR | O_APPEND);

		for (int k = 0; k < 10; k++) {
			snprintf(line, sizeof(line), "%d says %011d\n", *(int *)arg, i * 10 + k);
			if (lappend(&l, line, 20, &end) != 20 || end % 20)
				return 1;
		}
		if (lclose(&l))
			return 2;
	}
	return 0;
}

/* Makes a log of it in the middle of it all; what it writes is where nobody appends yet, and cut off again. */
static int claims_after_a_while(void *arg)
{
	struct lfile l = lopen("a", O_RDWR);
	char byte;

	await(&shared->started);
	usleep((unsigned)*(int *)arg * 300);
	if (plfs_pread(l.f, &byte, 1, 0) == 1 && plfs_pwrite(l.f, &byte, 1, 0) != 1)
		return 1;
	return lclose(&l);
}

Test(bare_race, no_append_is_lost)
{
	static int who[NR_WRITERS] = { 0, 1, 2 };

	for (int round = 0; round < 20; round++) {
		struct lfile l = lopen("a", O_RDWR | O_CREAT);
		int next[NR_WRITERS] = { 0 };
		pid_t pids[NR_WRITERS + 1];
		char line[21] = "";

		lclose(&l);
		share();
		for (int i = 0; i < NR_WRITERS; i++)
			pids[i] = start_child(appends_all_the_time, &who[i]);
		pids[NR_WRITERS] = start_child(claims_after_a_while, &round);
		raise_flag(&shared->started);
		for (int i = 0; i <= NR_WRITERS; i++)
			cr_assert_eq(wait_child(pids[i]), 0, "round %d", round);
		l = lopen("a", O_RDONLY);
		cr_assert_eq(plfs_size(l.f), NR_WRITERS * 200 * 20);
		for (off_t off = 0; off < NR_WRITERS * 200 * 20; off += 20) {
			int by, i;

			plfs_pread(l.f, line, 20, off);
			cr_assert_eq(sscanf(line, "%d says %d", &by, &i), 2, "at %ld: %s", (long)off, line);
			cr_assert_eq(i, next[by]++);
		}
		lclose(&l);
		lunlink("a");
	}
}

/* Between its look at the header and its write: the other gets so far as it can, or some time. */
static int wait_at_fstat(enum call call)
{
	if (call == CALL_FSTAT && !shared->started) {
		raise_flag(&shared->started);
		for (int i = 0; i < 100 && !shared->claimed; i++)
			usleep(1000);
	}
	return 0;
}

static int appends_slowly(void *arg)
{
	struct lfile l = lopen("a", O_RDWR | O_APPEND);
	off_t end;
	int ret;

	(void)arg;
	be_single_threaded();
	calls_intercept();
	on_call = wait_at_fstat;
	ret = lappend(&l, "small", 5, &end) != 5;
	on_call = NULL;
	raise_flag(&shared->done);
	return ret | lclose(&l);
}

/* Between its look at the end and its telling of the new one. */
static int wait_at_growth(enum call call)
{
	if (call == CALL_FALLOCATE) {
		raise_flag(&shared->claimed);
		await(&shared->done);
	}
	return 0;
}

Test(bare_race, an_append_to_the_stub_and_one_to_a_log_never_overlap)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT);
	char buf[11] = "";
	off_t end;
	pid_t pid;

	share();
	lclose(&l);
	pid = start_child(appends_slowly, NULL);
	await(&shared->started);
	l = lopen("a", O_RDWR | O_APPEND);
	calls_intercept();
	on_call = wait_at_growth;
	cr_assert_eq(lappend(&l, "large", 5, &end), 5); /* this process has threads */
	on_call = NULL;
	cr_assert_eq(wait_child(pid), 0);
	cr_assert_eq(plfs_size(l.f), 10);
	cr_assert_eq(plfs_pread(l.f, buf, 10, 0), 10);
	cr_assert(!strcmp(buf, "smalllarge") || !strcmp(buf, "largesmall"), "%s", buf);
	lclose(&l);
}
