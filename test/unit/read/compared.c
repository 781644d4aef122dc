/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What reads compare with PLFS_VERIFY=read: each chunk once. A flipped byte is found by the first read of its
 * chunk, in whatever way it is read; later reads move no other bytes than those that are wanted.
 */
#include "test/lib/scratch.h"

#include "core/dropping/datalog.h"
#include "core/base/alloc.h"
#include "core/file/file.h"

#include <criterion/criterion.h>
#include <sys/mman.h>

static void setup(void)
{
	scratch_in_memory = true;
	scratch_setup();
	sums_verify = SUMS_ONCE;
}

TestSuite(compared, .init = setup, .fini = scratch_remove, .timeout = 300);

#define CHUNK INDEX_CHUNK_LEN

static void flip(off_t at)
{
	char path[PATH_MAX];
	uint8_t byte;
	int fd;

	cr_assert(find_file("data.", path));
	fd = open(path, O_RDWR);
	cr_assert_eq(pread(fd, &byte, 1, DATALOG_DATA_OFF + at), 1);
	byte ^= 4;
	cr_assert_eq(pwrite(fd, &byte, 1, DATALOG_DATA_OFF + at), 1);
	close(fd);
}

/* A closed file of one log. */
static void make(size_t size)
{
	struct lfile l = made("file");

	cr_assert_eq(lfill(&l, 0, size, 1), (ssize_t)size);
	lclose(&l);
}

/* ---- bytes that are read from files ---- */

static uint64_t moved;
static ssize_t (*real_pread)(int fd, void *buf, size_t len, off_t off);
static ssize_t (*real_preadv)(int fd, const struct iovec *iov, int cnt, off_t off);

static ssize_t add_pread(int fd, void *buf, size_t len, off_t off)
{
	ssize_t n = real_pread(fd, buf, len, off);

	moved += n > 0 ? (uint64_t)n : 0;
	return n;
}

static ssize_t add_preadv(int fd, const struct iovec *iov, int cnt, off_t off)
{
	ssize_t n = real_preadv(fd, iov, cnt, off);

	moved += n > 0 ? (uint64_t)n : 0;
	return n;
}

static void count(void)
{
	real_pread = sys.pread;
	real_preadv = sys.preadv;
	sys.pread = add_pread;
	sys.preadv = add_preadv;
}

static uint64_t moved_by(struct lfile *l, off_t off, size_t len)
{
	moved = 0;
	cr_assert_eq(lcheck(l, off, len, 1), 0);
	return moved;
}

/* ---- what is found ---- */

static int read_window(struct lfile *l, off_t at) { return lcheck(l, at - at % 1000, 1000, 1); }
static int read_page(struct lfile *l, off_t at) { return lcheck(l, at / 4096 * 4096, 4096, 1); }
static int read_large(struct lfile *l, off_t at) { return lcheck(l, at - 300001, 1000000, 1); }
static int read_across(struct lfile *l, off_t at) { return lcheck(l, at - 70000, 70100, 1); }

static int read_crowded(struct lfile *l, off_t at)
{
	int ret = lcheck(l, 0, 1, 1);

	if (ret)
		return ret;
	l->f->ino->v.r.logs.crowded = 256;
	return lcheck(l, at / 4096 * 4096, 4096, 1);
}

static int take_extent(struct lfile *l, off_t at)
{
	off_t fd_off;
	int fd = -1;
	ssize_t n = plfs_extent(l->f, at / 4096 * 4096, 1 << 20, &fd, &fd_off);

	if (fd >= 0)
		close(fd);
	return n < 0 ? (int)n : 0;
}

Test(compared, the_first_read_finds_a_flipped_byte_whatever_its_way)
{
	static int (*const ways[])(struct lfile *l, off_t at) = { read_window, read_page,    read_large,
								  read_across, read_crowded, take_extent };
	static const off_t PLACES[] = { 1234567, 2000000, 2097151, 2097152 };

	make(5000000);
	for (size_t i = 0; i < ARRAY_SIZE(ways) * ARRAY_SIZE(PLACES); i++) {
		off_t at = PLACES[i / ARRAY_SIZE(ways)];
		struct lfile l = lopen("file", O_RDONLY);

		cr_assert_eq(ways[i % ARRAY_SIZE(ways)](&l, at), 0, "way %zu", i % ARRAY_SIZE(ways));
		lclose(&l);
		flip(at);
		l = lopen("file", O_RDONLY);
		cr_assert_eq(ways[i % ARRAY_SIZE(ways)](&l, at), -EIO, "way %zu", i % ARRAY_SIZE(ways));
		cr_assert_eq(ways[i % ARRAY_SIZE(ways)](&l, at), -EIO, "way %zu again", i % ARRAY_SIZE(ways));
		cr_assert_eq(lcheck(&l, 3000000, 500000, 1), 0);
		lclose(&l);
		flip(at);
	}
}

Test(compared, bytes_beside_a_flipped_one_in_its_chunk_are_an_error_too)
{
	struct lfile l;

	make(1000000);
	flip(CHUNK + 5);
	l = lopen("file", O_RDONLY);
	cr_assert_eq(lcheck(&l, CHUNK + 40000, 100, 1), -EIO);
	cr_assert_eq(lcheck(&l, 0, CHUNK, 1), 0);
	cr_assert_eq(lcheck(&l, 2 * CHUNK, 500000, 1), 0);
	lclose(&l);
}

/* What is read ahead is no reason for an error. The pieces have another order in the log than in the file. */
Test(compared, no_bytes_of_other_chunks_are_an_error)
{
	enum { PIECE = 700, NR = 1009, BAD = 3 };
	struct lfile l = made("file");

	for (int i = 0; i < NR; i++)
		cr_assert_eq(lfill(&l, (off_t)(i * 331 % NR) * PIECE, PIECE, 1), PIECE);
	lclose(&l);
	flip(BAD * CHUNK + 5);
	for (int step = 1; step < NR; step += 97) {
		l = lopen("file", O_RDONLY);
		for (int i = 0; i < NR; i++) {
			int nr = i * step % NR;
			off_t at = (off_t)nr * PIECE, off = (off_t)(nr * 331 % NR) * PIECE;
			bool bad = at + PIECE > BAD * CHUNK && at < (BAD + 1) * CHUNK;

			cr_assert_eq(lcheck(&l, off, PIECE, 1) != 0, bad, "step %d, piece %d", step, nr);
		}
		lclose(&l);
	}
}

/* ---- how often ---- */

Test(compared, a_chunk_is_compared_once)
{
	struct lfile l;

	make(4000000);
	l = lopen("file", O_RDONLY);
	count();
	cr_assert_geq(moved_by(&l, 20 * CHUNK + 8192, 4096), CHUNK);
	moved_by(&l, 40 * CHUNK, 4096); /* the window is elsewhere now */
	cr_assert_eq(moved_by(&l, 20 * CHUNK + 32768, 4096), 4096);
	cr_assert_eq(moved_by(&l, 20 * CHUNK, CHUNK), CHUNK);
	cr_assert_leq(moved_by(&l, 1000000, 1500000), 1500000 + 2 * CHUNK + 20000);
	cr_assert_eq(moved_by(&l, 1000001, 1400000), 1400000);
	lclose(&l);
}

Test(compared, reads_in_order_move_each_byte_once)
{
	size_t size = 47001 * 100;
	uint64_t all = 0;
	struct lfile l;

	make(size);
	l = lopen("file", O_RDONLY);
	lcheck(&l, 0, 1, 1);
	count();
	for (int i = 0; i < 100; i++)
		all += moved_by(&l, i * 47001, 47001);
	cr_assert_leq(all, size + size / 20 + 30000);
	lclose(&l);
}

Test(compared, the_end_of_a_log_that_is_no_whole_chunk_is_compared_once)
{
	struct lfile l;

	make(3 * CHUNK + 20000);
	l = lopen("file", O_RDONLY);
	cr_assert_eq(lcheck(&l, 3 * CHUNK + 8192, 4096, 1), 0);
	cr_assert_eq(lcheck(&l, 0, 4096, 1), 0);
	count();
	cr_assert_eq(moved_by(&l, 3 * CHUNK + 12288, 4096), 4096);
	lclose(&l);
}

Test(compared, what_has_lost_its_checksums_is_read_as_if_it_had_been_compared)
{
	struct lfile l;

	make(1000000);
	flip(1000000 + 30); /* its table */
	l = lopen("file", O_RDONLY);
	cr_assert_eq(lcheck(&l, 0, 100, 1), 0);
	cr_assert_eq(lcheck(&l, 500000, 4096, 1), 0);
	count();
	moved_by(&l, 4 * CHUNK, 4096);
	moved_by(&l, 12 * CHUNK, 4096);
	cr_assert_eq(moved_by(&l, 4 * CHUNK + 16384, 4096), 4096);
	lclose(&l);
}

Test(compared, a_byte_that_flips_afterwards_is_for_the_next_to_find)
{
	struct lfile l;

	make(1000000);
	l = lopen("file", O_RDONLY);
	cr_assert_eq(lcheck(&l, 0, 1000000, 1), 0);
	flip(500000);
	cr_assert_eq(lcheck(&l, 400000, 200000, 1), 1);
	lclose(&l);
	l = lopen("file", O_RDONLY);
	cr_assert_eq(lcheck(&l, 400000, 200000, 1), -EIO);
	lclose(&l);
}

Test(compared, always_compares_each_read)
{
	struct lfile l;

	sums_verify = SUMS_ALWAYS;
	make(1000000);
	l = lopen("file", O_RDONLY);
	cr_assert_eq(lcheck(&l, 0, 1000000, 1), 0);
	flip(500000);
	cr_assert_eq(lcheck(&l, 400000, 200000, 1), -EIO);
	lclose(&l);
}

static int read_in_child(void *arg)
{
	struct lfile *l = arg;
	uint64_t n;

	count();
	n = moved_by(l, 500000, 200000);
	return n == 200000 ? 0 : 1;
}

Test(compared, the_child_of_a_fork_goes_on_from_there)
{
	struct lfile l;

	make(1000000);
	l = lopen("file", O_RDONLY);
	cr_assert_eq(lcheck(&l, 0, 1000000, 1), 0);
	cr_assert_eq(in_child(read_in_child, &l), 0);
	lclose(&l);
}

/* ---- logs that grow ---- */

/* What is read between appends is right, and is compared when its chunk is whole. */
Test(compared, of_a_log_that_grows_what_is_whole)
{
	struct lfile l = made("file");
	off_t at = 0;

	for (int i = 0; i < 200; i++) {
		size_t len = (size_t)(i * 7919 % 90000) + 1;

		cr_assert_eq(lfill(&l, at, len, 1), (ssize_t)len);
		at += (off_t)len;
		cr_assert_eq(lcheck(&l, at - (off_t)len, len, 1), 0);
		cr_assert_eq(lcheck(&l, at / 2, (size_t)(at - at / 2), 1), 0);
		if (i % 17 == 0)
			cr_assert_eq(plfs_commit(l.f), 0);
	}
	cr_assert_eq(plfs_commit(l.f), 0);
	lclose(&l);
	l = lopen("file", O_RDONLY);
	cr_assert_eq(lcheck(&l, 0, (size_t)at, 1), 0);
	lclose(&l);
}

static int append_and_stay(void *arg)
{
	const int *ends = arg;
	struct lfile l = made("file");
	char c;

	for (off_t at = 0; at < 10 * CHUNK; at += CHUNK) {
		if (at == 3 * CHUNK && (write(ends[1], "1", 1) != 1 || read(ends[2], &c, 1) != 1))
			return 1;
		if (lfill(&l, at, CHUNK, 1) != CHUNK)
			return 1;
	}
	if (write(ends[1], "2", 1) != 1 || read(ends[2], &c, 1) != 1)
		return 1;
	lclose(&l);
	return 0;
}

Test(compared, chunks_that_another_process_adds_are_compared_too)
{
	int there[2], back[2];
	struct lfile l;
	pid_t pid;
	char c;

	cr_assert(!pipe(there) && !pipe(back));
	pid = start_child(append_and_stay, (int[]){ there[0], there[1], back[0] });
	cr_assert_eq(read(there[0], &c, 1), 1);
	l = lopen("file", O_RDONLY);
	cr_assert_eq(lcheck(&l, 0, 3 * CHUNK, 1), 0);
	cr_assert_eq(write(back[1], "1", 1), 1);
	cr_assert_eq(read(there[0], &c, 1), 1);
	flip(7 * CHUNK + 100);
	cr_assert_eq(lcheck(&l, 0, 7 * CHUNK, 1), 0);
	cr_assert_eq(lcheck(&l, 7 * CHUNK + 4096, 4096, 1), -EIO);
	cr_assert_eq(write(back[1], "2", 1), 1);
	cr_assert_eq(wait_child(pid), 0);
	cr_assert_eq(lcheck(&l, 7 * CHUNK + 4096, 4096, 1), -EIO);
	cr_assert_eq(lcheck(&l, 8 * CHUNK, 2 * CHUNK, 1), 0);
	lclose(&l);
}

/* The chunk in which a closed log ended is whole later, with the table of the first end in it. */
Test(compared, a_log_that_is_gone_on_with_is_right_behind_its_first_end)
{
	struct lfile l = made("file"), w;

	cr_assert_eq(lfill(&l, 0, 100000, 1), 100000);
	lclose(&l);
	l = lopen("file", O_RDONLY);
	cr_assert_eq(lcheck(&l, 0, 100000, 1), 0);
	w = lopen("file", O_RDWR);
	cr_assert_eq(lfill(&w, 100000, 400000, 1), 400000);
	cr_assert_eq(lcheck(&l, 0, 500000, 1), 0);
	cr_assert_eq(lcheck(&l, 90000, 30000, 1), 0);
	lclose(&w);
	cr_assert_eq(count_files("data."), 1);
	cr_assert_eq(lcheck(&l, 0, 500000, 1), 0);
	lclose(&l);
}

/* ---- moving into the body ---- */

Test(compared, a_damaged_file_is_not_moved_into_its_body)
{
	struct lfile l;

	make(3000000);
	flip(2000000);
	l = lopen("file", O_RDWR);
	cr_assert_eq(plfs_in_body(l.f, PLFS_MAP_WRITE), -EIO);
	cr_assert_eq(plfs_in_body(l.f, PLFS_MAP_COPY), 0);
	cr_assert_eq(count_files("data."), 1);
	cr_assert_eq(lcheck(&l, 0, 1900000, 1), 0);
	cr_assert_eq(lcheck(&l, 1990000, 20000, 1), -EIO);
	flip(2000000);
	cr_assert_eq(lcheck(&l, 0, 3000000, 1), 0);
	cr_assert_eq(plfs_in_body(l.f, PLFS_MAP_WRITE), 1);
	cr_assert_eq(lcheck(&l, 0, 3000000, 1), 0);
	lclose(&l);
}

Test(compared, a_move_compares_what_a_read_has_compared_before)
{
	struct lfile l;

	make(3000000);
	l = lopen("file", O_RDWR);
	cr_assert_eq(lcheck(&l, 0, 3000000, 1), 0);
	flip(2000000);
	cr_assert_eq(plfs_in_body(l.f, PLFS_MAP_WRITE), -EIO);
	lclose(&l);
}

Test(compared, off_moves_and_reads_the_bytes_as_they_are)
{
	struct lfile l;

	sums_verify = SUMS_OFF;
	make(3000000);
	flip(2000000);
	l = lopen("file", O_RDWR);
	cr_assert_eq(lcheck(&l, 1990000, 20000, 1), 1);
	cr_assert_eq(plfs_in_body(l.f, PLFS_MAP_WRITE), 1);
	cr_assert_eq(lcheck(&l, 1990000, 20000, 1), 1);
	lclose(&l);
}

/* ---- memory ---- */

/* One chunk in 4 MiB of a log of 1 TiB, and more. */
Test(compared, the_memory_is_bounded_however_long_a_log_is)
{
	struct compared set = { .how = SUMS_ONCE };
	struct compared_log log = { 0 };
	struct compared_source src = { .no = 3 };
	const struct sums_chunk whole = { .len = CHUNK };
	uint64_t end = 1ULL << 40, step = 4ULL << 20, last = 0;

	for (uint64_t at = 0; at < end; at += step, last = at - step) {
		compared_add(&set, &log, 3, at, CHUNK, &whole);
		cr_assert(compared_is_done(&set, &log, &src, at, CHUNK));
	}
	cr_assert_leq(set.cap, 1u << 17);
	cr_assert(compared_is_done(&set, &log, &src, last, CHUNK));
	src.no = 4;
	cr_assert_not(compared_is_done(&set, &log, &src, last, CHUNK));
	compared_release(&set);
}

static bool refuse(void) { return true; }

Test(compared, without_memory_nothing_is_remembered)
{
	struct compared set = { .how = SUMS_ONCE };
	struct compared_log log = { 0 };
	struct compared_source src = { .no = 0 };
	const struct sums_chunk whole = { .len = CHUNK };

	mem_refuses = refuse;
	compared_add(&set, &log, 0, 0, CHUNK, &whole);
	mem_refuses = NULL;
	cr_assert_not(compared_is_done(&set, &log, &src, 0, CHUNK));
	compared_add(&set, &log, 0, 0, CHUNK, &whole);
	cr_assert(compared_is_done(&set, &log, &src, 0, CHUNK));
	compared_release(&set);
}
