/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Index blocks in the logs themselves: what a log says of itself when it has been closed, is open, was cut,
 * or lies.
 */
#include "test/lib/one_log.h"

#include "test/lib/calls.h"

#include "core/base/stamp.h"
#include "core/dropping/datalog.h"
#include "core/dropping/node_index.h"
#include "core/backend/container_dirs.h"
#include "core/backend/names.h"
#include "core/backend/host.h"
#include "core/dropping/trailers.h"

TestSuite(trailers, .init = log_setup, .fini = scratch_remove, .timeout = 300);

static int h = -1;

static void open_log(void)
{
	if (h >= 0)
		store_close(&store, &h);
	h = datalog_open(&c, w.tail.log_path, false);
	cr_assert_geq(h, 0);
}

static uint64_t log_len(void)
{
	struct stat st;

	cr_assert_eq(store.ops->fstat(&store, h, &st), 0);
	return (uint64_t)st.st_size - DATALOG_DATA_OFF;
}

/* Records that no run describes: the live index is full after 512 of them. */
static void put_irregular(uint64_t nr)
{
	for (uint64_t i = 0; i < nr; i++)
		put(i * 300 + i * i % 97, 20 + i % 7);
}

static uint32_t records_of(const struct index_trailer *t)
{
	struct index_block block;
	void *buf;
	ssize_t n = trailer_block(&store, h, t, &buf);

	cr_assert_eq(index_block_parse(&block, buf, (size_t)n), n);
	mem_free(buf);
	return block.nr_records;
}

/* How many trailers a walk from the end meets; *@nr_records is that of their blocks. */
static int walk(uint64_t *nr_records)
{
	struct trailer_walk walk = { .s = &store, .h = h, .id = c.id };
	struct index_trailer t;
	int nr = 0, ret;

	*nr_records = 0;
	for (ret = trailer_last(&store, h, c.id, &t); !ret; ret = trailer_prev(&walk, &t), nr++)
		*nr_records += records_of(&t);
	trailer_walk_end(&walk);
	return ret == -ENODATA ? nr : ret;
}

static int count_trailer(void *arg, const struct index_trailer *t)
{
	uint64_t *seen = arg;

	cr_assert_gt(t->self, seen[1]);
	seen[0]++;
	seen[1] = t->self;
	seen[2] += records_of(t);
	return 0;
}

Test(trailers, a_closed_log_ends_with_one)
{
	struct trailer_walk walk = { .s = &store, .id = c.id };
	struct index_trailer t;

	put(0, 100);
	put(1000, 70001);
	writer_close(&w);
	open_log();
	walk.h = h;
	cr_assert_eq(trailer_last(&store, h, c.id, &t), 0);
	cr_assert_eq(t.self + INDEX_TRAILER_LEN, log_len());
	cr_assert(t.self % 8 == 0 && !t.prev && !t.prev_table);
	cr_assert_eq(records_of(&t), 2);
	cr_assert_eq(trailer_prev(&walk, &t), -ENODATA);
	cr_assert_eq(trailer_prev_table(&walk, &t), -ENODATA);
}

Test(trailers, a_log_without_bytes_that_truncates_has_one_too)
{
	uint64_t nr_records;

	cr_assert_eq(writer_truncate(&w, 5, stamp_next()), 0);
	writer_close(&w);
	open_log();
	cr_assert_eq(walk(&nr_records), 1);
	cr_assert_eq(nr_records, 1);
}

Test(trailers, a_log_without_writes_has_none)
{
	uint64_t nr_records;

	writer_close(&w);
	open_log();
	cr_assert_eq(walk(&nr_records), 0);
	cr_assert_eq(log_len() + DATALOG_DATA_OFF, 4096);
}

Test(trailers, lead_through_all_blocks_and_leave_writes_as_aligned_as_they_were)
{
	uint64_t nr_records, seen[3] = { 0 };
	int nr;

	put(1u << 30, 131072);
	for (uint64_t i = 0; i < 3000; i++)
		put(i * 9000 + i * i % 97, 4096);
	cr_assert_eq((w.tail.live.flushed_len + w.tail.live.staged_len) % 4096, 0);
	put_irregular(3000);
	writer_close(&w);
	open_log();
	nr = walk(&nr_records);
	cr_assert_gt(nr, 7);
	cr_assert_eq(trailer_scan(&store, h, c.id, 0, count_trailer, seen), 0);
	cr_assert_eq(seen[0], (uint64_t)nr);
	cr_assert_eq(seen[2], nr_records);
}

/* A live file tells of the last one, be it still staged. */
Test(trailers, of_an_open_log_are_in_its_live_file)
{
	char live[CONTAINER_PATH_LEN];
	uint8_t buf[INDEX_TRAILER_LEN];
	struct index_record *records;
	struct trailer_walk walk = { .s = &store, .id = c.id };
	struct live_state state;
	struct index_trailer t;

	put_irregular(1500);
	open_log();
	walk.h = h;
	name_live_of_log(w.tail.log_path, live);
	cr_assert_eq(live_load(&c, live, &state, &records), 0);
	mem_free(records);
	cr_assert_gt(state.last_trailer, 0);
	cr_assert_eq(state.last_table, 0);
	cr_assert_eq(trailer_at(&store, h, c.id, state.last_trailer, &t), -EBADMSG, "it is not flushed yet");
	cr_assert_eq(live_load_bytes(&c, live, state.last_trailer, buf, sizeof(buf)), (ssize_t)sizeof(buf));
	cr_assert_eq(index_trailer_parse(&t, c.id, state.last_trailer, buf), 0);
	cr_assert_eq(writer_commit(&w), 0);
	cr_assert_eq(trailer_at(&store, h, c.id, state.last_trailer, &t), 0);
	cr_assert_eq(records_of(&t), 512);
	cr_assert_eq(trailer_prev(&walk, &t), 0);
	writer_close(&w);
}

Test(trailers, are_found_where_the_end_is_lost)
{
	uint64_t nr_records, whole[3] = { 0 }, seen[3], end;
	char path[PATH_MAX];
	int nr;

	put_irregular(5000);
	writer_close(&w);
	open_log();
	end = log_len();
	nr = walk(&nr_records);
	cr_assert_eq(trailer_scan(&store, h, c.id, 0, count_trailer, whole), 0);
	cr_assert(find_file("data.", path));
	for (uint64_t len = end - 1; len > 0; len -= min_u64(len, len % 64 ? 1 : 4097)) {
		memset(seen, 0, sizeof(seen));
		cr_assert_eq(truncate(path, (off_t)(DATALOG_DATA_OFF + len)), 0);
		cr_assert_eq(trailer_scan(&store, h, c.id, 0, count_trailer, seen), 0);
		cr_assert_leq(seen[0], (uint64_t)nr - 1);
		cr_assert_eq(seen[0] == 0, seen[1] == 0);
		cr_assert_leq(seen[1] + INDEX_TRAILER_LEN, len + INDEX_TRAILER_LEN * !seen[0]);
	}
}

/* A walk ends, and nothing outside the log is looked for, whatever a log says. */
/* Whoever made it so, it is not read for hours. */
Test(trailers, are_found_in_a_log_that_is_mostly_holes, .timeout = 60)
{
	uint64_t whole[3] = { 0 }, seen[3] = { 0 };
	char path[PATH_MAX];

	put_irregular(2000);
	writer_close(&w);
	open_log();
	cr_assert_eq(trailer_scan(&store, h, c.id, 0, count_trailer, whole), 0);
	cr_assert_gt(whole[0], 0);
	cr_assert(find_file("data.", path));
	cr_assert_eq(truncate(path, (off_t)1 << 42), 0);
	cr_assert_eq(trailer_scan(&store, h, c.id, 0, count_trailer, seen), 0);
	cr_assert_eq(seen[0], whole[0]);
}

Test(trailers, of_a_lying_log_lead_nowhere)
{
	static const struct {
		uint64_t prev, prev_table;
		uint32_t block_len;
	} LIES[] = {
		{ 0, 0, 0 },
		{ 0, 0, 64 },
		{ 0, 0, 73 },
		{ 0, 0, 1008 },
		{ 0, 0, UINT32_MAX - 7 },
		{ 0, 0, (1u << 20) + 8 },
		{ 1000, 0, 72 },
		{ 936, 0, 72 },
		{ 872, 0, 72 },
		{ 801, 0, 72 },
		{ 64, 0, 72 },
		{ UINT64_MAX - 7, 0, 72 },
		{ 0, 800, 72 },
		{ 400, 480, 72 },
		{ 1ull << 62, 1ull << 62, 72 },
	};
	uint8_t buf[INDEX_TRAILER_LEN];
	struct index_trailer t;

	for (size_t i = 0; i < ARRAY_SIZE(LIES); i++) {
		t = (struct index_trailer){ .self = 1000,
					    .prev = LIES[i].prev,
					    .prev_table = LIES[i].prev_table,
					    .block_len = LIES[i].block_len };
		index_trailer_encode(&t, c.id, buf);
		cr_assert_eq(index_trailer_parse(&t, c.id, 1000, buf), -EBADMSG, "lie %zu", i);
	}
	t = (struct index_trailer){ .self = 1000, .prev = 800, .prev_table = 400, .block_len = 136 };
	index_trailer_encode(&t, c.id, buf);
	cr_assert_eq(index_trailer_parse(&t, c.id, 1000, buf), 0);
	cr_assert_eq(index_trailer_parse(&t, c.id, 1008, buf), -EBADMSG, "of another place");
	cr_assert_eq(index_trailer_parse(&t, (const uint8_t *)"another id of 16", 1000, buf), -EBADMSG,
		     "of another container");
	for (size_t bit = 0; bit < 8 * sizeof(buf); bit++) {
		buf[bit / 8] ^= (uint8_t)(1 << bit % 8);
		cr_assert_eq(index_trailer_parse(&t, c.id, 1000, buf), -EBADMSG, "bit %zu", bit);
		buf[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	open_log();
	cr_assert_eq(trailer_at(&store, h, c.id, UINT64_MAX - 7, &t), -EBADMSG);
	cr_assert_eq(trailer_at(&store, h, c.id, INT64_MAX - 7, &t), -EBADMSG);
	writer_close(&w);
}

/* ---- between the log and the node index ---- */

static int result;

static int at_a_write(enum call call)
{
	if (call != CALL_PWRITE || --calls_left)
		return 0;
	if (result < 0)
		kill(getpid(), SIGKILL);
	return result;
}

static void at_write(long nr, int then)
{
	calls_left = nr;
	result = then;
	calls_intercept();
	on_call = at_a_write;
}

static void check_all_is_there(uint64_t nr_records, bool in_live)
{
	char live[CONTAINER_PATH_LEN], index[CONTAINER_PATH_LEN];
	struct index_record *records = NULL;
	struct live_state state = { 0 };
	struct node_index idx;
	struct index_block block;
	int ret;

	name_live_of_log(w.tail.log_path, live);
	snprintf(index, sizeof(index), "hostdir.%u/index.%s", name_hostdir(&c), host_name());
	ret = live_load(&c, live, &state, &records);
	cr_assert_eq(ret, in_live ? 0 : -ENOENT);
	mem_free(records);
	if (!node_index_open(&idx, &c, index)) {
		while (node_index_next(&idx, &block) > 0)
			state.nr_records += block.nr_records;
		cr_assert_eq(idx.damaged, 0);
		node_index_close(&idx);
	}
	cr_assert_eq(state.nr_records, nr_records);
}

/* The writes of a close are the log's and the node index's, in this order. */
Test(trailers, a_kill_between_log_and_node_index_loses_nothing)
{
	for (long nr = 1; nr <= 2; nr++) {
		uint64_t nr_records;
		pid_t pid;

		put_irregular(100);
		pid = fork_child();
		if (!pid) {
			at_write(nr, -1);
			writer_close(&w);
			_exit(1);
		}
		cr_assert_eq(wait_child(pid), 256 + SIGKILL);
		check_all_is_there(100, true);
		open_log();
		cr_assert_eq(walk(&nr_records), nr == 1 ? 0 : 1);
		cr_assert_eq(nr_records, nr == 1 ? 0 : 100);
		writer_abandon(&w);
		store_remove_tree(&store, c.dir, container_has);
		log_begin();
	}
}

/* And those of a spill, which takes back what it staged: the log does not grow by a block at each try. */
Test(trailers, a_node_index_that_cannot_be_written_costs_no_more_than_an_error)
{
	uint64_t len, nr_records;

	put_irregular(512);
	len = w.tail.live.staged_len;
	for (int i = 0; i < 100; i++) {
		at_write(1, ENOSPC);
		cr_assert_eq(writer_write(&w, "x", 1, 1000000), -ENOSPC);
		sys = calls_real;
		cr_assert_eq(w.tail.live.staged_len, len);
		check_all_is_there(512, true);
	}
	cr_assert_eq(writer_write(&w, "x", 1, 1000000), 1);
	check_all_is_there(513, true);
	writer_close(&w);
	check_all_is_there(513, false);
	open_log();
	cr_assert_eq(walk(&nr_records), 2);
	cr_assert_eq(nr_records, 513);
}

Test(trailers, a_log_that_cannot_be_written_is_still_in_its_live_file)
{
	for (long nr = 1; nr <= 2; nr++) {
		put_irregular(100);
		at_write(nr, ENOSPC);
		writer_close(&w);
		sys = calls_real;
		check_all_is_there(100, true);
		store_remove_tree(&store, c.dir, container_has);
		log_begin();
	}
}

/* ---- many trailers near each other ---- */

#define NR_MANY 1000
#define CUT (-1) /* the log ends in front of the window */

static int nr_preads, nr_windows, window_err;
static size_t nr_bytes;

static ssize_t counted_pread(int fd, void *buf, size_t len, off_t off)
{
	nr_preads++;
	nr_bytes += len;
	nr_windows += len > INDEX_TRAILER_LEN;
	if (len > INDEX_TRAILER_LEN && window_err) {
		errno = window_err;
		return window_err == CUT ? 0 : -1;
	}
	return calls_real.pread(fd, buf, len, off);
}

static void count_reads(void)
{
	calls_intercept();
	sys.pread = counted_pread;
}

/* A log of @nr closes of a writer, with @len and @other bytes in turn. */
static void close_often(int nr, size_t len, size_t other)
{
	for (int i = 0; i < nr; i++) {
		if (i)
			cr_assert_eq(writer_open(&w, &c), 0);
		put((uint64_t)i << 20, i % 2 ? other : len);
		writer_close(&w);
	}
	cr_assert_eq(count_files("data."), 1);
	open_log();
}

/*
 * A walk from table to table meets the same as one that reads each trailer alone, and stops where that does,
 * with the same result.
 */
static int walk_as_alone(void)
{
	struct trailer_walk walk = { .s = &store, .h = h, .id = c.id };
	struct index_trailer t, alone;
	int ret = trailer_last(&store, h, c.id, &t), ret_alone = ret;

	alone = t;
	while (!ret) {
		cr_assert(t.self == alone.self && t.prev == alone.prev && t.prev_table == alone.prev_table &&
			  t.block_len == alone.block_len);
		ret_alone = t.prev_table ? trailer_at(&store, h, c.id, t.prev_table, &alone) : -ENODATA;
		ret = trailer_prev_table(&walk, &t);
		cr_assert_eq(ret, ret_alone);
	}
	trailer_walk_end(&walk);
	cr_assert_eq(walk.window, NULL);
	return ret;
}

Test(trailers, that_are_near_each_other_are_read_at_once)
{
	struct trailer_walk walk = { .s = &store, .id = c.id };
	struct index_trailer t;
	int nr = 1;

	close_often(NR_MANY, 100, 100);
	walk.h = h;
	count_reads();
	cr_assert_eq(trailer_last(&store, h, c.id, &t), 0);
	for (; !trailer_prev(&walk, &t); nr++) {
		void *mine, *alone;
		ssize_t n = trailer_walk_block(&walk, &t, &mine);
		int nr_mine = nr_preads;

		cr_assert_eq(trailer_block(&store, h, &t, &alone), n);
		nr_preads = nr_mine; /* the walk's alone */
		cr_assert_arr_eq(mine, alone, (size_t)n);
		mem_free(mine);
		mem_free(alone);
	}
	trailer_walk_end(&walk);
	cr_assert_eq(nr, NR_MANY);
	cr_assert_leq(nr_preads, 30, "%d reads", nr_preads);
	cr_assert_eq(walk_as_alone(), -ENODATA);
}

/* Each is read alone, and nothing else is. */
static void check_alone(int nr, size_t len, size_t other)
{
	struct trailer_walk walk = { .s = &store, .id = c.id };
	struct index_trailer t;

	close_often(nr, len, other);
	walk.h = h;
	count_reads();
	cr_assert_eq(trailer_last(&store, h, c.id, &t), 0);
	while (!trailer_prev(&walk, &t))
		cr_assert_eq(walk.window, NULL);
	cr_assert_eq(nr_preads, nr);
	cr_assert_eq(nr_bytes, (size_t)nr * INDEX_TRAILER_LEN);
}

Test(trailers, that_are_few_are_read_alone) { check_alone(3, 100, 100); }

Test(trailers, that_are_far_from_each_other_are_read_alone) { check_alone(50, 20000, 20000); }

Test(trailers, in_pairs_that_are_far_from_each_other_are_read_alone) { check_alone(50, 100, 20000); }

static bool no_memory(void) { return true; }

Test(trailers, are_read_alone_where_no_window_can_be_read)
{
	static const int ERRS[] = { EIO, CUT };

	close_often(NR_MANY / 10, 100, 100);
	count_reads();
	for (size_t i = 0; i < ARRAY_SIZE(ERRS); i++) {
		window_err = ERRS[i];
		nr_windows = 0;
		cr_assert_eq(walk_as_alone(), -ENODATA);
		cr_assert_eq(nr_windows, 1, "it is tried once");
	}
	nr_windows = 0;
	mem_refuses = no_memory;
	cr_assert_eq(walk_as_alone(), -ENODATA);
	mem_refuses = NULL;
	cr_assert_eq(nr_windows, 0);
}

static void set_bytes(uint64_t at, const void *buf, size_t len)
{
	char path[PATH_MAX];
	int fd;

	cr_assert(find_file("data.", path));
	fd = open(path, O_WRONLY);
	cr_assert_eq(pwrite(fd, buf, len, (off_t)(DATALOG_DATA_OFF + at)), (ssize_t)len);
	close(fd);
}

/* Any of the first, of those at the ends of a window, and of those amid. */
Test(trailers, that_are_damaged_end_a_walk_with_windows_as_one_without)
{
	uint8_t buf[INDEX_TRAILER_LEN], bad[INDEX_TRAILER_LEN];
	uint64_t *at = mem_alloc(NR_MANY * sizeof(*at));
	struct index_trailer t;
	int nr = 0, ret;

	close_often(NR_MANY, 100, 100);
	for (ret = trailer_last(&store, h, c.id, &t); !ret; ret = trailer_at(&store, h, c.id, t.prev, &t)) {
		at[nr++] = t.self;
		if (!t.prev)
			break;
	}
	cr_assert_eq(nr, NR_MANY);
	for (int i = 1; i < nr; i += i < 8 ? 1 : 7) {
		cr_assert_eq(datalog_pread(&store, h, buf, sizeof(buf), at[i]), (ssize_t)sizeof(buf));
		memcpy(bad, buf, sizeof(bad));
		bad[i % INDEX_TRAILER_LEN] ^= 0x10;
		set_bytes(at[i], bad, sizeof(bad));
		cr_assert_eq(walk_as_alone(), -EBADMSG, "trailer %d", i);
		set_bytes(at[i], buf, sizeof(buf));
	}
	mem_free(at);
	cr_assert_eq(walk_as_alone(), -ENODATA);
}
