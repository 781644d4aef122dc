/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Small files, which stay in their stubs: when they do and when not.
 */
#include "test/lib/scratch.h"

#include "test/lib/calls.h"
#include "test/lib/flags.h"
#include "core/file/bare.h"

#include <criterion/criterion.h>
#include <linux/magic.h>

#define SMALL (64 * 1024)
#define BEYOND (BARE_SHARED * SMALL)

TestSuite(bare, .init = scratch_setup_small, .fini = scratch_remove, .timeout = 300);

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

Test(bare, a_few_writes_go_further_then_a_log_is_made_and_what_is_there_stays)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT);

	cr_assert_eq(lfill(&l, 0, SMALL, 1), SMALL);
	for (int i = 0; i < BARE_FEW; i++)
		cr_assert_eq(lfill(&l, SMALL - 10 + i, 11, 2), 11);
	cr_assert_eq(logs(), 0);
	cr_assert_eq(lfill(&l, SMALL + BARE_FEW, 11, 2), 11);
	cr_assert_eq(logs(), 1);
	cr_assert_eq(lfill(&l, 100, 10, 3), 10);
	cr_assert_eq(lcheck(&l, 0, 100, 1) | lcheck(&l, 100, 10, 3) | lcheck(&l, 110, SMALL - 120, 1), 0);
	cr_assert_eq(lcheck(&l, SMALL - 10, 25, 2), 0);
	lclose(&l);
	l = lopen("a", O_RDONLY);
	cr_assert_eq(lcheck(&l, 0, 100, 1) | lcheck(&l, 100, 10, 3) | lcheck(&l, SMALL - 10, 25, 2), 0);
	cr_assert_eq(plfs_size(l.f), SMALL + 15);
	lclose(&l);
	lunlink("a");
	cr_assert_eq(count_files(""), 2); /* the format file, and who writes (writer_table.h) */
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

/* As many small writes as fit, but no more bytes than a small file has. */
Test(bare, the_few_writes_have_a_limit_together_and_one_to_their_offset)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT);

	lfill(&l, SMALL, SMALL / 2, 1);
	lfill(&l, 2 * SMALL, SMALL / 2, 1);
	cr_assert_eq(logs(), 0);
	lfill(&l, 3 * SMALL, 1, 1);
	cr_assert_eq(logs(), 1);
	lclose(&l);
	l = lopen("b", O_RDWR | O_CREAT);
	lfill(&l, BARE_SHARED * SMALL - 1, 1, 1);
	cr_assert_eq(logs(), 1);
	lfill(&l, BARE_SHARED * SMALL, 1, 1);
	cr_assert_eq(logs(), 2);
	lclose(&l);
}

static int writes_its_piece(void *arg)
{
	struct lfile l = lopen("a", O_WRONLY);
	int me = *(int *)arg;

	lfill(&l, 47001 * me, 47001, 1);
	raise_flag(&shared->started);
	await(&shared->done);
	return lclose(&l);
}

Test(bare, ranks_that_write_a_piece_each_make_no_log)
{
	static int who[] = { 0, 1, 2, 3, 4, 5, 6, 7 };
	struct lfile l = lopen("a", O_RDWR | O_CREAT);
	pid_t pids[8];

	share();
	for (int i = 0; i < 8; i++) {
		pids[i] = start_child(writes_its_piece, &who[i]);
		await(&shared->started);
		shared->started = 0;
		cr_assert_eq(lcheck(&l, 47001 * i, 47001, 1), 0);
	}
	raise_flag(&shared->done);
	for (int i = 0; i < 8; i++)
		cr_assert_eq(wait_child(pids[i]), 0);
	cr_assert_eq(plfs_size(l.f), 8 * 47001);
	cr_assert_eq(lcheck(&l, 0, 8 * 47001, 1), 0);
	cr_assert_eq(count_files(""), 2); /* and the format file */
	lclose(&l);
}

/* @arg: so many. */
static int append_sessions(void *arg)
{
	char text[32];
	off_t end;

	be_single_threaded();
	for (int i = 0; i < *(int *)arg; i++) {
		struct lfile l = lopen("a", O_WRONLY | O_CREAT | O_APPEND);

		snprintf(text, sizeof(text), "line %03d\n", i % 1000);
		if (lappend(&l, text, 9, &end) != 9 || end != 9 * (i + 1))
			return 1;
		lclose(&l);
	}
	return 0;
}

Test(bare, append_sessions_leave_nothing_behind)
{
	int nr = 50;

	cr_assert_eq(in_child(append_sessions, &nr), 0);
	cr_assert_eq(count_files(""), 2);
	cr_assert_eq(stub_size("a"), 4096 + 450);
}

/* Each session has its few writes, as those at an offset have. */
Test(bare, nor_do_they_in_a_file_that_is_not_small)
{
	int nr = SMALL / 9 + 100;

	cr_assert_eq(in_child(append_sessions, &nr), 0);
	cr_assert_eq(count_files(""), 2);
	cr_assert_eq(stub_size("a"), 4096 + 9 * nr);
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
		if (lappend(&l, buf, sizeof(buf), &end) != 1000 || end != 1000 * (i + 1) ||
		    logs() != (end > SMALL + BARE_FEW * 1000))
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

Test(bare, its_map_shows_what_is_in_the_stub)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT);
	uint64_t sums[3] = { 0 };

	lfill(&l, 0, 4096, 1);
	lfill(&l, 8192, 4096, 1);
	cr_assert_eq(plfs_get_map(l.f, count_pieces, sums), 0);
	cr_assert_eq(sums[0] + sums[1], 3 * 4096);
	cr_assert_geq(sums[1], 2 * 4096);
	lfill(&l, BEYOND, 100, 1);
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

static int disk_is_full(enum call call)
{
	return call == CALL_PWRITE ? ENOSPC : 0;
}

Test(bare, a_full_disk_is_reported_at_once)
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

static void map_on_nfs(const char *options)
{
	sys_init();
	real_statfs = sys.statfs;
	sys.statfs = as_nfs;
	scratch_map(options);
}

static void writes_a_little_on_nfs(const char *options, int nr_logs)
{
	struct lfile l;

	map_on_nfs(options);
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

Test(bare_remote, is_none_unless_its_first_writer_is_alone, .fini = scratch_remove)
{
	struct lfile l, other;

	map_on_nfs("{small=64K}");
	l = lopen("a", O_RDWR | O_CREAT);
	other = lopen("a", O_RDONLY);
	lfill(&l, 0, 10, 1);
	cr_assert_eq(logs(), 1);
	cr_assert_eq(lcheck(&other, 0, 10, 1), 0);
	lclose(&other);
	lclose(&l);
}

static int no_locks(enum call call)
{
	return call == CALL_FCNTL ? ENOLCK : 0;
}

Test(bare_remote, is_none_where_locks_do_not_work, .fini = scratch_remove)
{
	struct lfile l;

	map_on_nfs("{small=64K}");
	l = lopen("a", O_RDWR | O_CREAT);
	calls_intercept();
	on_call = no_locks;
	lfill(&l, 0, 100, 1);
	on_call = NULL;
	lclose(&l);
	cr_assert_eq(logs(), 1);
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

static int appends_alone(void *arg)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT);
	off_t end;

	(void)arg;
	be_single_threaded();
	if (lappend(&l, "x", 1, &end) != 1 || end != 1)
		return 1;
	return lclose(&l);
}

/* Another host's kernel may not know the end that this one has made. */
Test(bare_remote, appends_go_to_logs, .fini = scratch_remove)
{
	map_on_nfs("{small=64K}");
	cr_assert_eq(in_child(appends_alone, NULL), 0);
	cr_assert_eq(logs(), 1);
}

Test(bare, where_locks_do_not_work_appends_go_to_logs)
{
	calls_intercept();
	cr_assert_eq(in_child(appends_without_locks, NULL), 0);
	cr_assert_eq(logs(), 1);
}
