/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reading into the program's memory: pieces of several logs in one call each, windows beside them, and what
 * is neither.
 */
#include "test/lib/scratch.h"

#include "test/lib/calls.h"

#include "core/file/file.h"
#include "core/read/scatter.h"

#include <criterion/criterion.h>
#include <sys/mman.h>

TestSuite(scatter, .init = scratch_setup, .fini = scratch_remove, .timeout = 300);

#define NR_LOGS 4

/* Each child writes its blocks of "a" in a log of its own; every @hole-th block of all is left out. */
struct part {
	int no, nr_blocks, hole;
	size_t len;
	unsigned round;
};

static int write_part(void *arg)
{
	const struct part *p = arg;
	struct lfile l = lopen("a", O_RDWR | O_CREAT);

	for (int k = 0; k < p->nr_blocks; k++) {
		int at = k * NR_LOGS + p->no;

		if (p->hole && at % p->hole == 0)
			continue;
		if (lfill(&l, (off_t)at * (off_t)p->len, p->len, p->round) != (ssize_t)p->len)
			return 1;
	}
	lclose(&l);
	return 0;
}

static void write_parts(size_t len, int nr_blocks, int hole, unsigned round)
{
	for (int i = 0; i < NR_LOGS; i++)
		cr_assert_eq(in_child(write_part, &(struct part){ i, nr_blocks, hole, len, round }), 0);
}

/* Read [off, off + len) and check it block by block: zeros in holes. */
static void check_blocks(struct lfile *l, char *buf, off_t off, size_t len, size_t block_len, int hole,
			 unsigned round)
{
	memset(buf, 0xa5, len);
	cr_assert_eq(plfs_pread(l->f, buf, len, off), (ssize_t)len);
	for (size_t done = 0; done < len;) {
		size_t at = ((size_t)off + done) / block_len, end = (at + 1) * block_len - (size_t)off;
		size_t part = (end < len ? end : len) - done;

		if (hole && at % (size_t)hole == 0) {
			for (size_t i = 0; i < part; i++)
				cr_assert_eq(buf[done + i], 0, "byte %zu of block %zu", i, at);
		} else {
			cr_assert_eq(pattern_check(buf + done, part, (uint64_t)off + done, round), part,
				     "block %zu of %zu bytes, read at %lld", at, block_len, (long long)off);
		}
		done += part;
	}
}

static void check_everywhere(size_t block_len, int nr_blocks, int hole)
{
	size_t size = block_len * (size_t)nr_blocks * NR_LOGS;
	static const size_t LENS[] = { 1, 100, 1000, 4096, 5000, 8192, 47001, 1 << 20 };
	struct lfile l = lopen("a", O_RDONLY);
	char *buf = malloc(size);

	for (size_t i = 0; i < ARRAY_SIZE(LENS); i++)
		for (off_t off = 0, n = 0; (size_t)off + LENS[i] <= size && n < 300;
		     n++, off += (off_t)LENS[i] * 3 / 2 + n % 7)
			check_blocks(&l, buf, off, LENS[i], block_len, hole, 1);
	for (off_t off = (off_t)size - 5000; off > 0; off -= 5003) /* backwards */
		check_blocks(&l, buf, off, 5000, block_len, hole, 1);
	check_blocks(&l, buf, 0, size, block_len, hole, 1);
	cr_assert_eq(plfs_pread(l.f, buf, size, (off_t)size - 10), 10);
	free(buf);
	lclose(&l);
}

Test(scatter, any_request_over_blocks_of_several_logs_is_right)
{
	static const size_t LENS[] = { 1, 64, 1000, 1024, 3000, 4096, 47001, 200000 };

	for (size_t i = 0; i < ARRAY_SIZE(LENS); i++) {
		write_parts(LENS[i], LENS[i] < 4096 ? 500 : 20, 0, 1);
		check_everywhere(LENS[i], LENS[i] < 4096 ? 500 : 20, 0);
		lunlink("a");
	}
}

Test(scatter, holes_between_the_pieces_are_zeros)
{
	static const size_t LENS[] = { 64, 3000, 4096, 20000 };

	for (size_t i = 0; i < ARRAY_SIZE(LENS); i++) {
		write_parts(LENS[i], 50, 7, 1);
		check_everywhere(LENS[i], 50, 7);
		lunlink("a");
	}
}

Test(scatter, what_was_overwritten_here_and_is_still_staged_wins)
{
	const size_t size = 4096 * NR_LOGS * 100;
	struct lfile l;
	char *buf = malloc(size);

	write_parts(4096, 100, 0, 1);
	l = lopen("a", O_RDWR);
	for (int i = 0; i < 60; i++) {
		off_t at = i * 20011;

		cr_assert_eq(lfill(&l, at, 3000, 2), 3000);
		if (i == 30)
			/* these are in the log, the later ones in the stage */
			cr_assert_eq(plfs_commit(l.f), 0);
	}
	cr_assert_eq(plfs_pread(l.f, buf, size, 0), (ssize_t)size);
	for (size_t at = 0; at < size; at++) {
		bool mine = at / 20011 < 60 && at % 20011 < 3000;

		cr_assert_eq((unsigned char)buf[at], pattern_byte(at, mine ? 2 : 1), "byte %zu", at);
	}
	free(buf);
	lclose(&l);
}

/* What a window holds does not hide what is appended behind it. */
Test(scatter, a_log_that_grows_is_read_on)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT), other = lopen("a", O_RDONLY);

	for (int i = 0; i < 200; i++) {
		cr_assert_eq(lfill(&l, i * 700, 700, 1), 700);
		if (i % 3 == 0)
			cr_assert_eq(plfs_commit(l.f), 0);
		cr_assert_eq(lcheck(&other, i * 700, 700, 1), 0);
		cr_assert_eq(lcheck(&other, i > 5 ? i * 700 - 3000 : 0, 700, 1), 0);
	}
	cr_assert_eq(lcheck(&other, 0, 200 * 700, 1), 0);
	lclose(&other);
	lclose(&l);
}

/* A writer of another process that goes on: its bytes are in its stage, in its log, or half and half. */
static int go_on_writing(void *arg)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT);
	volatile unsigned *done = arg;

	for (unsigned i = 0; i < 400; i++) {
		if (lfill(&l, (off_t)i * 9000, 9000, 1) != 9000)
			return 1;
		__atomic_store_n(done, i + 1, __ATOMIC_RELEASE);
	}
	pause();
	return 0;
}

Test(scatter, what_another_process_has_not_flushed_yet_is_read_from_its_stage)
{
	unsigned *done = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct lfile l = lopen("a", O_RDWR | O_CREAT);
	pid_t pid = start_child(go_on_writing, done);
	unsigned have = 0;

	while (have < 400) {
		have = __atomic_load_n(done, __ATOMIC_ACQUIRE);
		if (have) {
			cr_assert_eq(lcheck(&l, (off_t)(have - 1) * 9000, 9000, 1), 0);
			cr_assert_eq(lcheck(&l, have > 30 ? (off_t)(have - 30) * 9000 : 0,
					    (have > 30 ? 30 : have) * 9000, 1),
				     0);
		}
	}
	cr_assert_eq(lcheck(&l, 0, 400 * 9000, 1), 0);
	kill(pid, SIGKILL);
	wait_child(pid);
	lclose(&l);
}

/* Two of them take turns; the reader gathers no more than SCATTER_PIECES at a time. */
enum { TURN_LEN = 1100, NR_TURNS = 700 };

static int write_turns(void *arg)
{
	unsigned *done = arg;
	struct lfile l = lopen("a", O_RDWR | O_CREAT);
	int no = (int)__atomic_fetch_add(&done[0], 1, __ATOMIC_RELAXED);

	for (int i = no; i < NR_TURNS; i += 2)
		if (lfill(&l, (off_t)i * TURN_LEN, TURN_LEN, 1) != TURN_LEN)
			return 1;
	__atomic_fetch_add(&done[1], 1, __ATOMIC_RELEASE);
	pause();
	return 0;
}

Test(scatter, a_large_read_of_what_others_still_stage_is_not_short)
{
	unsigned *done = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pids[2] = { start_child(write_turns, done), start_child(write_turns, done) };
	struct lfile l;

	while (__atomic_load_n(&done[1], __ATOMIC_ACQUIRE) < 2)
		usleep(1000);
	l = lopen("a", O_RDONLY);
	cr_assert_eq(lcheck(&l, 0, (size_t)NR_TURNS * TURN_LEN, 1), 0);
	for (int i = 0; i < 2; i++) {
		kill(pids[i], SIGKILL);
		wait_child(pids[i]);
	}
	lclose(&l);
}

Test(scatter, a_cut_log_is_an_error_for_requests_that_need_what_it_lacks)
{
	char path[PATH_MAX], *buf = malloc(4096 * NR_LOGS * 100);
	struct lfile l;

	write_parts(4096, 100, 0, 1);
	cr_assert(find_file("data.", path));
	cr_assert_eq(truncate(path, 65536 + 50 * 4096 + 100), 0);
	l = lopen("a", O_RDONLY);
	cr_assert_eq(lcheck(&l, 0, 4096 * NR_LOGS * 50, 1), 0);
	cr_assert_eq(plfs_pread(l.f, buf, 1 << 20, 4096 * NR_LOGS * 45), -EIO);
	cr_assert_eq(plfs_pread(l.f, buf, 1 << 20, 0), -EIO);
	cr_assert_eq(lcheck(&l, 4096 * NR_LOGS * 20, 4096 * NR_LOGS * 30, 1), 0);
	free(buf);
	lclose(&l);
}

/* ---- handles ---- */

static int nr_calls;
static ssize_t (*real_preadv)(int fd, const struct iovec *iov, int cnt, off_t off);

static ssize_t count_preadv(int fd, const struct iovec *iov, int cnt, off_t off)
{
	nr_calls++;
	return real_preadv(fd, iov, cnt, off);
}

Test(scatter, as_many_calls_are_made_as_there_are_logs)
{
	struct lfile l;

	write_parts(4096, 100, 0, 1);
	l = lopen("a", O_RDONLY);
	cr_assert_eq(lcheck(&l, 0, 4096 * NR_LOGS * 100, 1), 0); /* and compared */
	real_preadv = sys.preadv;
	sys.preadv = count_preadv;
	cr_assert_eq(lcheck(&l, 4096, 1 << 20, 1), 0);
	sys.preadv = real_preadv;
	cr_assert_eq(nr_calls, NR_LOGS);
	lclose(&l);
}

static int (*real_fstat)(int fd, struct stat *st);
static ssize_t (*real_pread)(int fd, void *buf, size_t len, off_t off);

static int fstat_far(int fd, struct stat *st)
{
	int ret = real_fstat(fd, st);

	st->st_blksize = 4 << 20;
	return ret;
}

static ssize_t count_pread(int fd, void *buf, size_t len, off_t off)
{
	nr_calls++;
	return real_pread(fd, buf, len, off);
}

/* Read all of a file block by block; returns how many calls that took. */
static int calls_for_all(size_t block_len, int nr_blocks)
{
	struct lfile l = lopen("a", O_RDONLY);

	cr_assert_eq(lcheck(&l, 0, block_len * (size_t)nr_blocks, 1), 0); /* and compared */
	nr_calls = 0;
	real_pread = sys.pread;
	sys.pread = count_pread;
	for (int i = 0; i < nr_blocks; i++)
		cr_assert_eq(lcheck(&l, (off_t)block_len * i, block_len, 1), 0);
	sys.pread = real_pread;
	lclose(&l);
	return nr_calls;
}

Test(scatter, a_file_system_across_a_network_is_asked_seldom)
{
	int near, far;

	write_parts(8192, 200, 0, 1);
	near = calls_for_all(8192, 200 * NR_LOGS);
	real_fstat = sys.fstat;
	sys.fstat = fstat_far;
	far = calls_for_all(8192, 200 * NR_LOGS);
	sys.fstat = real_fstat;
	cr_assert_gt(near, 200 * NR_LOGS / 2);
	cr_assert_lt(far, 100);
}

Test(scatter, a_handle_that_is_being_read_from_survives_its_set)
{
	struct log_handle *handle = NULL;
	struct logset *set;
	struct lfile l;
	char byte;

	sums_verify = SUMS_OFF; /* else so few bytes are compared in a window */
	write_parts(20000, 2, 0, 1);
	l = lopen("a", O_RDONLY);
	cr_assert_eq(lcheck(&l, 0, 100, 1), 0);
	set = &l.f->ino->v.r.logs;
	cr_assert_eq(logset_take(set, 1, 0, 20000, 1, &handle), 1);
	logset_clear(set);
	cr_assert_eq(pread(handle->h, &byte, 1, 0), 1);
	cr_assert_not_null(set->let_go);
	cr_assert(log_handle_put(handle));
	logset_bury(set);
	cr_assert_null(set->let_go);
	l.f->ino->v.r.loaded = false;
	cr_assert_eq(lcheck(&l, 0, 160000, 1), 0);
	lclose(&l);
}

/* ---- grouping ---- */

Test(scatter_groups, pieces_that_lie_together_in_a_log_are_one_group)
{
	static struct scatter s;
	char buf[300];

	scatter_init(&s, 64);
	for (int i = 0; i < 30; i++)
		cr_assert(scatter_add(&s, (uint32_t)i % 3, (uint64_t)(i / 3) * 10, buf + 10 * i, 10));
	cr_assert_eq(s.nr_groups, 3);
	cr_assert_eq(s.nr_pieces, 30);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(s.groups[i].len, 100);
	cr_assert(scatter_add(&s, 1, 1000, buf, 10));
	cr_assert_eq(s.nr_groups, 4);
}

Test(scatter_groups, pieces_that_lie_together_in_memory_as_well_are_one_piece)
{
	static struct scatter s;
	char buf[300];

	scatter_init(&s, 64);
	for (int i = 0; i < 30; i++)
		cr_assert(scatter_add(&s, 7, (uint64_t)i * 10, buf + 10 * i, 10));
	cr_assert_eq(s.nr_groups, 1);
	cr_assert_eq(s.nr_pieces, 1);
	cr_assert_eq(s.pieces[0].len, 300);
}

Test(scatter_groups, what_finds_no_room_is_refused)
{
	static struct scatter s;
	char buf[10];

	scatter_init(&s, 2);
	cr_assert(scatter_add(&s, 0, 0, buf, 10));
	cr_assert(scatter_add(&s, 1, 0, buf, 10));
	cr_assert_not(scatter_add(&s, 2, 0, buf, 10));
	cr_assert(scatter_add(&s, 0, 10, buf, 10));
	scatter_init(&s, 64);
	for (int i = 0; i < SCATTER_PIECES; i++)
		cr_assert(scatter_add(&s, (uint32_t)i % 2, (uint64_t)(i / 2) * 10, buf, 10));
	cr_assert_not(scatter_add(&s, 0, SCATTER_PIECES / 2 * 10, buf, 10));
}

/* Until one is given back. */
static int no_descriptor(enum call call)
{
	static bool given_back;

	given_back |= call == CALL_CLOSE;
	return (call == CALL_OPENAT || call == CALL_OPEN) && !given_back ? EMFILE : 0;
}

Test(scatter, logs_give_their_descriptors_to_a_merge)
{
	struct part p = { .nr_blocks = 4, .len = 65536, .round = 1 };
	struct lfile l;

	for (p.no = 0; p.no < NR_LOGS; p.no++)
		cr_assert_eq(in_child(write_part, &p), 0);
	l = lopen("a", O_RDONLY);
	cr_assert_eq(lcheck(&l, 0, NR_LOGS * 4 * p.len, 1), 0);
	p.no = 0;
	p.round = 2;
	cr_assert_eq(in_child(write_part, &p), 0);
	plfs_refresh(l.f);
	calls_intercept();
	on_call = no_descriptor;
	cr_assert_eq(lcheck(&l, 0, p.len, 2), 0);
	on_call = NULL;
	lclose(&l);
}
