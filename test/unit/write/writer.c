/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How writes become records, chunks and bytes of a log.
 */
#include "test/lib/one_log.h"

#include "core/base/crc32c.h"
#include "core/dropping/datalog.h"
#include "core/dropping/node_index.h"
#include "core/backend/names.h"
#include "core/backend/host.h"
#include "core/base/stamp.h"
#include "core/dropping/trailers.h"

#include <criterion/criterion.h>

TestSuite(writer, .init = log_setup, .fini = scratch_remove, .timeout = 300);

static struct index_record record(uint64_t i)
{
	struct index_record rec;

	writer_record(&w, i, &rec);
	return rec;
}

static void is_record(uint64_t i, uint64_t off, uint64_t length, uint64_t stride, uint64_t count,
		      uint64_t log_off)
{
	struct index_record rec = record(i);

	cr_expect_eq(rec.logical_off, off, "record %llu", (unsigned long long)i);
	cr_expect_eq(rec.length, length, "record %llu", (unsigned long long)i);
	cr_expect_eq(rec.count, count, "record %llu", (unsigned long long)i);
	if (count > 1)
		cr_expect_eq(rec.stride, stride, "record %llu", (unsigned long long)i);
	cr_expect_eq(rec.log_off, log_off, "record %llu", (unsigned long long)i);
}

Test(writer, contiguous_writes_are_one_record)
{
	for (int i = 0; i < 100; i++)
		put((uint64_t)i * 50, 50);
	cr_assert_eq(w.tail.live.nr_records, 1);
	is_record(0, 0, 5000, 0, 1, 0);
}

Test(writer, strided_writes_are_one_run)
{
	for (int i = 0; i < 1000; i++)
		put((uint64_t)i * 4096, 512);
	cr_assert_eq(w.tail.live.nr_records, 1);
	is_record(0, 0, 512, 4096, 1000, 0);
}

Test(writer, strided_elements_in_pieces_are_folded)
{
	for (int i = 0; i < 100; i++) {
		put((uint64_t)i * 1000, 30);
		put((uint64_t)i * 1000 + 30, 70);
	}
	writer_break(&w);
	cr_assert_leq(w.tail.live.nr_records, 3);
	is_record(0, 0, 100, 1000, record(0).count, 0);
	cr_assert_geq(record(0).count, 98);
}

Test(writer, after_a_break_nothing_grows)
{
	put(0, 100);
	writer_break(&w);
	put(100, 100);
	cr_assert_eq(w.tail.live.nr_records, 2);
	cr_assert_gt(record(1).stamp_ns, record(0).stamp_ns);
}

Test(writer, a_notice_by_another_process_breaks)
{
	char live[CONTAINER_PATH_LEN];

	put(0, 100);
	snprintf(live, sizeof(live), "%s", w.tail.live.path + strlen(c.dir) + 1);
	cr_assert_eq(live_notify(&c, live, stamp_next()), 0);
	put(100, 100);
	cr_assert_eq(w.tail.live.nr_records, 2);
	put(200, 100);
	cr_assert_eq(w.tail.live.nr_records, 2);
	cr_assert(writer_write_next(&w, "x", 1, 300, UINT64_MAX));
	cr_assert_eq(live_notify(&c, live, stamp_next()), 0);
	cr_assert(!writer_write_next(&w, "x", 1, 301, UINT64_MAX), "begun before the notice");
	cr_assert(!writer_write_next(&w, "x", 1, 301, 0), "not looked at yet");
}

Test(writer, stamps_rise_from_record_to_record)
{
	for (uint64_t i = 0; i < 300; i++) {
		put(i * i, 10 + i % 3);
		if (i % 10 == 0)
			writer_truncate(&w, i, stamp_next());
	}
	for (uint64_t i = 1; i < w.tail.live.nr_records; i++)
		cr_assert_gt(record(i).stamp_ns, record(i - 1).stamp_ns);
}

/* ---- what is in the log and in the index ---- */

struct check {
	uint64_t nr_records, next_chunk, log_len;
	uint64_t bytes;
	size_t nr_blocks;
	int log;
};

/*
 * The blocks in the log itself are those of the node index @index, the last one first; the chain of those
 * with tables leaves out no other.
 */
static void check_trailers(const struct check *ck, const char *index)
{
	struct trailer_walk walk = { .s = &store, .h = ck->log, .id = c.id };
	uint64_t table = 0;
	struct node_index idx;
	struct index_trailer t;
	struct index_block block;
	const uint8_t *at[64];
	size_t nr = 0;
	bool first = true;
	int ret;

	cr_assert_eq(node_index_open(&idx, &c, index), 0);
	for (; nr < ARRAY_SIZE(at) &&
	       (at[nr] = (const uint8_t *)idx.buf + idx.pos, node_index_next(&idx, &block) > 0);
	     nr++)
		;
	cr_assert_eq(nr, ck->nr_blocks);
	for (ret = trailer_last(&store, ck->log, c.id, &t); !ret;
	     ret = trailer_prev(&walk, &t), first = false) {
		void *buf;
		ssize_t n = trailer_walk_block(&walk, &t, &buf);

		cr_assert_gt(nr, 0, "more trailers than blocks");
		cr_assert_eq(index_block_parse(&block, buf, (size_t)n), n);
		cr_assert_arr_eq(buf, at[--nr], (size_t)n);
		if (block.chunks_off) {
			cr_assert(first || t.self == table, "the chain of tables leaves out %llu",
				  (unsigned long long)t.self);
			table = t.prev_table;
		} else {
			cr_assert(first || t.prev_table == table);
			table = t.prev_table;
		}
		mem_free(buf);
	}
	trailer_walk_end(&walk);
	cr_assert_eq(ret, -ENODATA);
	cr_assert_eq(nr, 0, "%zu blocks without a trailer", nr);
	node_index_close(&idx);
}

/* The table that @block names: it goes on where the last one ended, and is right. */
static void check_chunks(struct check *ck, const struct index_block *block)
{
	static uint8_t buf[INDEX_CHUNK_LEN], table[INDEX_CHUNK_LEN];
	struct index_chunks chunks;
	ssize_t n = pread(ck->log, table, sizeof(table), (off_t)(DATALOG_DATA_OFF + block->chunks_off));

	cr_assert_gt(index_chunks_parse(&chunks, table, (size_t)n), 0);
	cr_assert_eq(chunks.first_chunk, ck->next_chunk);
	for (uint32_t i = 0; i < chunks.nr_chunks; i++) {
		uint64_t off = (chunks.first_chunk + i) * INDEX_CHUNK_LEN;

		n = pread(ck->log, buf, sizeof(buf), (off_t)(DATALOG_DATA_OFF + off));
		cr_assert_gt(n, 0);
		n = (ssize_t)min_u64((uint64_t)n, block->log_len - off);
		cr_assert_eq(get_le32(chunks.chunk_crc + 4 * i), crc32c(0, buf, (size_t)n), "chunk %llu",
			     (unsigned long long)(chunks.first_chunk + i));
	}
	ck->next_chunk += chunks.nr_chunks;
}

static int check_block(void *arg, const struct index_block *block)
{
	static uint8_t buf[INDEX_CHUNK_LEN], want[INDEX_CHUNK_LEN];
	struct check *ck = arg;
	struct index_cursor cur = { 0 };
	struct index_record rec;
	int ret;

	if (block->chunks_off)
		check_chunks(ck, block);
	while ((ret = index_block_record(block, &cur, &rec)) > 0) {
		ck->nr_records++;
		if (rec.type != INDEX_WRITE)
			continue;
		for (uint64_t k = 0; k < rec.count * max_u64(rec.outer_count, 1); k++)
			for (uint64_t done = 0; done < rec.length;) {
				size_t part = (size_t)min_u64(sizeof(buf), rec.length - done);
				uint64_t off = rec.logical_off + k % rec.count * rec.stride +
					       k / rec.count * rec.outer_stride + done;

				cr_assert_eq(pread(ck->log, buf, part,
						   (off_t)(DATALOG_DATA_OFF + rec.log_off + k * rec.length +
							   done)),
					     (ssize_t)part);
				pattern_fill(want, part, off, 1);
				cr_assert_arr_eq(buf, want, part);
				done += part;
				ck->bytes += part;
			}
	}
	ck->log_len = block->log_len;
	ck->nr_blocks++;
	return ret;
}

/* Close, then compare every record's bytes and every chunk's checksum with the log. */
static struct check close_and_check(uint64_t written)
{
	char path[PATH_MAX], index[CONTAINER_PATH_LEN];
	struct check ck = { 0 };
	unsigned damaged = 0;

	writer_close(&w);
	cr_assert_eq(count_files("live."), 0);
	cr_assert(find_file("data.", path));
	ck.log = open(path, O_RDONLY);
	snprintf(index, sizeof(index), "hostdir.%u/index.%s", name_hostdir(&c), host_name());
	cr_assert_eq(node_index_each(&c, index, check_block, &ck, &damaged), 0);
	cr_assert_eq(damaged, 0);
	cr_assert_eq(ck.bytes, written);
	cr_assert(ck.log_len >= written && (ck.nr_blocks > 1 || ck.log_len == written),
		  "nothing but data, tables and blocks");
	check_trailers(&ck, index);
	cr_assert_eq(ck.next_chunk, (ck.log_len + INDEX_CHUNK_LEN - 1) / INDEX_CHUNK_LEN);
	close(ck.log);
	return ck;
}

/* A block of an array of three dimensions, @pieces writes for each of its rows' elements. */
static void put_block(uint64_t at, int planes, int rows, size_t len, int pieces)
{
	for (int z = 0; z < planes; z++)
		for (int y = 0; y < rows; y++)
			for (int i = 0; i < pieces; i++)
				put(at + (uint64_t)z * 100000 + (uint64_t)y * 1000 + i * len / (size_t)pieces,
				    len / (size_t)pieces);
}

Test(writer, a_block_of_an_array_is_one_record)
{
	for (int pieces = 1; pieces <= 3; pieces++)
		put_block((uint64_t)pieces * 10000000, 7, 5, 300, pieces);
	writer_break(&w);
	cr_assert_eq(w.tail.live.nr_records, 3);
	for (uint64_t i = 0; i < 3; i++) {
		struct index_record rec = record(i);

		cr_assert_eq(rec.logical_off, (i + 1) * 10000000);
		cr_assert(rec.length == 300 && rec.stride == 1000 && rec.count == 5, "block %lu", i);
		cr_assert(rec.outer_stride == 100000 && rec.outer_count == 7, "block %lu", i);
		cr_assert_eq(rec.log_off, i * 7 * 5 * 300);
	}
	close_and_check(3 * 7 * 5 * 300);
}

Test(writer, a_block_written_column_by_column_is_one_record)
{
	for (int y = 0; y < 6; y++)
		for (int z = 0; z < 9; z++)
			put((uint64_t)z * 10000 + (uint64_t)y * 500, 200);
	writer_break(&w);
	cr_assert_eq(w.tail.live.nr_records, 1);
	close_and_check(6 * 9 * 200);
}

Test(writer, a_record_that_a_reader_has_copied_is_not_nested_any_more)
{
	put_block(0, 3, 5, 300, 1);
	w.nr_pinned = w.tail.live.nr_records;
	put_block(300000, 3, 5, 300, 1);
	writer_break(&w);
	cr_assert_geq(w.tail.live.nr_records, 3);
	close_and_check(6 * 5 * 300);
}

Test(writer, sizes_around_the_direct_limit_and_the_chunk_are_kept)
{
	static const int D[] = { -4097, -4096, -4095, -2, -1, 0, 1, 2, 4095, 4096, 4097 };
	uint64_t off = 0, total = 0;

	for (int unit = 1; unit < 6; unit++)
		for (size_t i = 0; i < ARRAY_SIZE(D); i++) {
			size_t len = (size_t)(unit * 65536 + D[i]);

			put(off, len);
			put(off + len + 10, 1 + i);
			total += len + 1 + i;
			off += len + 1000;
		}
	close_and_check(total);
}

Test(writer, records_beyond_the_live_index_spill)
{
	uint64_t total = 0;

	for (uint64_t i = 0; i < 5000; i++) {
		put(i * 300 + i * i % 97, 20 + i % 7);
		total += 20 + i % 7;
	}
	cr_assert_eq(count_files("index."), 1);
	cr_assert_lt(w.tail.live.nr_records, LIVE_RECORDS_CAP + 1);
	close_and_check(total);
}

Test(writer, chunks_beyond_the_live_index_spill)
{
	static char buf[8 << 20];
	uint64_t total = 0;

	pattern_fill(buf, sizeof(buf), 0, 1);
	for (int i = 0; i < 18; i++) { /* 144 MiB: 2304 chunks; all at the same place */
		cr_assert_eq(writer_write(&w, buf, sizeof(buf), 0), (ssize_t)sizeof(buf));
		total += sizeof(buf);
	}
	put(100, 5);
	cr_assert_eq(close_and_check(total + 5).log_len, total + 5 + INDEX_CHUNK_LEN, "one table on the way");
}

Test(writer, chunks_of_small_writes_that_go_on_and_on_spill)
{
	static char buf[4096];
	uint64_t off = 0, total = 0;

	/* 156 MiB: 2500 chunks, in runs that writer_write_next() makes grow */
	for (int i = 0; i < 40000; i++) {
		size_t len = i % 5000 < 100 ? 100 + (size_t)i % 2900 : 4096;

		off += i % 5000 < 100 ? 4100 : 8192;
		pattern_fill(buf, len, off, 1);
		if (!writer_write_next(&w, buf, len, off, 0))
			cr_assert_eq(writer_write(&w, buf, len, off), (ssize_t)len);
		total += len;
	}
	cr_assert_eq(count_files("index."), 1);
	close_and_check(total);
}

static bool goes_on(uint64_t off, size_t len)
{
	char buf[300];

	pattern_fill(buf, len, off, 1);
	return writer_write_next(&w, buf, len, off, 0);
}

Test(writer, what_goes_on_is_only_what_the_last_write_has_expected)
{
	cr_assert(!goes_on(0, 100));
	put(0, 100);
	cr_assert(!goes_on(200, 100));
	cr_assert(goes_on(100, 50));
	cr_assert(goes_on(150, 150));
	is_record(0, 0, 300, 0, 1, 0);
	put(1000, 300);
	is_record(0, 0, 300, 1000, 2, 0);
	cr_assert(!goes_on(2000, 100));
	cr_assert(!goes_on(1300, 300));
	cr_assert(goes_on(2000, 300));
	is_record(0, 0, 300, 1000, 3, 0);
	writer_break(&w);
	cr_assert(!goes_on(3000, 300));
	close_and_check(900);
}

Test(writer, one_write_larger_than_all_chunks_fit_is_cut_into_parts)
{
	size_t len = (size_t)150 << 20;
	char *buf = malloc(len);

	put(7, 3);
	pattern_fill(buf, len, 1000, 1);
	cr_assert_eq(writer_write(&w, buf, len, 1000), (ssize_t)len);
	free(buf);
	close_and_check(len + 3);
}

Test(writer, the_stage_is_flushed_when_it_is_full_and_at_every_release)
{
	uint64_t total = 0;

	for (uint64_t i = 0; i < 3000; i++) {
		put(i * 2000, 1000);
		total += 1000;
		if (i % 701 == 0) {
			cr_assert_eq(writer_commit(&w), 0);
			cr_assert_eq(w.tail.live.staged_len, 0);
		}
		cr_assert_leq(w.tail.live.staged_len, (uint64_t)LIVE_CAP);
	}
	close_and_check(total);
}

Test(writer, a_closed_log_keeps_no_space_beyond_its_end)
{
	char path[PATH_MAX];
	struct stat st;

	for (uint64_t i = 0; i < 12; i++)
		put(i << 20, 1 << 20);
	snprintf(path, sizeof(path), "%s/%s/%s", scratch, c.dir, w.tail.log_path);
	close_and_check((uint64_t)12 << 20);
	cr_assert_eq(stat(path, &st), 0);
	cr_assert_leq(st.st_blocks * 512, st.st_size + 65536);
}

static ssize_t (*real_pwrite)(int fd, const void *buf, size_t len, off_t off);
static ssize_t (*real_pwritev)(int fd, const struct iovec *iov, int cnt, off_t off);
static int writes_left;

static ssize_t full_disk(int fd, const void *buf, size_t len, off_t off)
{
	if (writes_left-- > 0)
		return real_pwrite(fd, buf, len > 1000 ? len / 3 : len, off);
	errno = ENOSPC;
	return -1;
}

static ssize_t full_disk2(int fd, const struct iovec *iov, int cnt, off_t off)
{
	(void)cnt;
	return full_disk(fd, iov->iov_base, iov->iov_len, off);
}

Test(writer, a_disk_that_fills_up_takes_a_part_and_the_checksums_stay_right)
{
	static char buf[900000];
	uint64_t total = 0;

	real_pwrite = sys.pwrite;
	real_pwritev = sys.pwritev;
	put(0, 10);
	total = 10;
	for (int i = 0; i < 12; i++) {
		ssize_t n;

		sys.pwrite = full_disk;
		sys.pwritev = full_disk2;
		writes_left = i;
		pattern_fill(buf, sizeof(buf), total, 1);
		n = writer_write(&w, buf, sizeof(buf), total);
		sys.pwrite = real_pwrite;
		sys.pwritev = real_pwritev;
		cr_assert(n > 0 || n == -ENOSPC);
		total += n > 0 ? (uint64_t)n : 0;
		put(total, 3);
		total += 3;
	}
	close_and_check(total);
}

Test(writer, where_the_index_cannot_be_written_the_live_file_stays)
{
	char live[CONTAINER_PATH_LEN];
	struct live_state state;
	struct index_record *records;

	snprintf(live, sizeof(live), "%s", w.tail.live.path + strlen(c.dir) + 1);
	put(0, 100);
	real_pwrite = sys.pwrite;
	sys.pwrite = full_disk;
	sys.pwritev = full_disk2;
	writes_left = 0;
	writer_close(&w);
	sys.pwrite = real_pwrite;
	cr_assert_eq(count_files("live."), 1);
	cr_assert_eq(live_load(&c, live, &state, &records), 0);
	cr_assert_eq(state.nr_records, 1);
	cr_assert_eq(state.staged_len, 100);
	cr_assert_eq(records[0].length, 100);
	mem_free(records);
}

Test(writer, a_failed_open_leaves_nothing)
{
	struct writer v;
	int fds = count_fds();

	real_pwrite = sys.pwrite;
	sys.pwrite = full_disk;
	writes_left = 0;
	cr_assert_eq(writer_open(&v, &c), -ENOSPC);
	sys.pwrite = real_pwrite;
	cr_assert_eq(count_files("data."), 1);
	cr_assert_eq(count_files("live."), 1);
	cr_assert_eq(count_fds(), fds);
}
