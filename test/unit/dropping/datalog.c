/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The contract of data logs: what is written at a position is read there. Nothing here says where that is in
 * the file, so a log with a codec passes as well.
 */
#include "test/lib/one_log.h"

#include "core/backend/names.h"
#include "core/base/crc32c.h"
#include "core/base/stamp.h"
#include "core/dropping/datalog.h"

#include <fcntl.h>

TestSuite(datalog, .init = log_setup, .fini = scratch_remove, .timeout = 100);

#define LEN 200000

static char name[INDEX_LOG_NAME_LEN], path[CONTAINER_PATH_LEN];
static uint8_t want[LEN], got[LEN];

static int make_log(void)
{
	int h = datalog_create(&c, stamp_next(), name);

	cr_assert_geq(h, 0);
	name_here(&c, name, path);
	for (size_t i = 0; i < LEN; i++)
		want[i] = (uint8_t)(i * 7 + i / 256);
	return h;
}

static uint64_t length(int h)
{
	struct stat st;

	cr_assert_eq(store.ops->fstat(&store, h, &st), 0);
	return datalog_len(&st);
}

Test(datalog, begins_without_bytes)
{
	int h = make_log();

	cr_assert_eq(length(h), 0);
	cr_assert_eq(datalog_pread(&store, h, got, 100, 0), 0);
	store_close(&store, &h);
	h = datalog_open(&c, path, false);
	cr_assert_geq(h, 0);
	cr_assert_eq(length(h), 0);
	store_close(&store, &h);
}

Test(datalog, has_what_was_written_at_each_position)
{
	int h = make_log();

	cr_assert_eq(datalog_pwrite2(&store, h, want, 1000, want + 1000, 99000, 0), 100000);
	cr_assert_eq(datalog_pwrite(&store, h, want + 100000, 100000, 100000), 100000);
	cr_assert_eq(length(h), LEN);
	store_close(&store, &h);
	h = datalog_open(&c, path, false); /* its header is as it was */
	cr_assert_geq(h, 0);
	for (size_t at = 0; at < LEN; at += 33331) {
		size_t len = min_size(50000, LEN - at);

		memset(got, 0, sizeof(got));
		cr_assert_eq(datalog_pread(&store, h, got, 50000, at), (ssize_t)len);
		cr_assert_arr_eq(got, want + at, len);
	}
	cr_assert_eq(datalog_pread(&store, h, got, 100, LEN), 0);
	store_close(&store, &h);
}

Test(datalog, is_read_into_several_places)
{
	struct iovec iov[] = { { got, 10 }, { got + 5000, 70000 }, { got + 100, 500 } };
	int h = make_log();

	cr_assert_eq(datalog_pwrite(&store, h, want, LEN, 0), LEN);
	cr_assert_eq(datalog_preadv(&store, h, iov, 3, 1234), 70510);
	cr_assert_arr_eq(got, want + 1234, 10);
	cr_assert_arr_eq(got + 5000, want + 1244, 70000);
	cr_assert_arr_eq(got + 100, want + 71244, 500);
	store_close(&store, &h);
}

Test(datalog, is_written_over_while_nothing_speaks_of_it)
{
	int h = make_log();

	cr_assert_eq(datalog_pwrite(&store, h, want, 1000, 0), 1000);
	cr_assert_eq(datalog_pwrite2(&store, h, want + 5, 200, NULL, 0, 300), 200);
	cr_assert_eq(length(h), 1000);
	cr_assert_eq(datalog_pread(&store, h, got, 1000, 0), 1000);
	cr_assert_arr_eq(got, want, 300);
	cr_assert_arr_eq(got + 300, want + 5, 200);
	cr_assert_arr_eq(got + 500, want + 500, 500);
	store_close(&store, &h);
}

Test(datalog, is_cut_and_reaches_further_in_zeros)
{
	int h = make_log();

	cr_assert_eq(datalog_pwrite(&store, h, want, 1000, 0), 1000);
	cr_assert_eq(datalog_truncate(&store, h, 400), 0);
	cr_assert_eq(length(h), 400);
	cr_assert_eq(datalog_truncate(&store, h, 600), 0);
	cr_assert_eq(length(h), 600);
	cr_assert_eq(datalog_pread(&store, h, got, 1000, 0), 600);
	cr_assert_arr_eq(got, want, 400);
	for (size_t i = 400; i < 600; i++)
		cr_assert_eq(got[i], 0);
	store_close(&store, &h);
}

Test(datalog, that_is_cut_in_front_of_its_bytes_has_none)
{
	struct stat st = { .st_size = 0 };

	cr_assert_eq(datalog_len(&st), 0);
	st.st_size = DATALOG_HEADER_LEN;
	cr_assert_eq(datalog_len(&st), 0);
}

Test(datalog, has_no_bytes_where_no_file_can)
{
	cr_assert(datalog_may_have(0, 0));
	cr_assert(datalog_may_have(1ULL << 62, 1ULL << 61));
	cr_assert(!datalog_may_have(INT64_MAX, 1));
	cr_assert(!datalog_may_have(1, INT64_MAX));
	cr_assert(!datalog_may_have(0, UINT64_MAX));
	cr_assert(!datalog_may_have(UINT64_MAX, 0));
	cr_assert(!datalog_may_have(UINT64_MAX, UINT64_MAX));
	cr_assert(!datalog_may_have((uint64_t)INT64_MAX + 1, 1));
}

Test(datalog, says_where_its_bytes_are_in_the_file_or_that_they_are_nowhere)
{
	uint64_t off;
	int h = make_log();

	cr_assert_eq(datalog_pwrite(&store, h, want, LEN, 0), LEN);
	if (datalog_fd_off(5000, &off) != -EOPNOTSUPP) {
		cr_assert_eq(store.ops->pread(&store, h, got, 100000, off), 100000);
		cr_assert_arr_eq(got, want + 5000, 100000);
	}
	store_close(&store, &h);
}

Test(datalog, skips_its_holes)
{
	int h = make_log();
	uint64_t at;

	cr_assert_eq(datalog_pwrite(&store, h, want, 1000, 1 << 20), 1000);
	at = datalog_next_data(&store, h, 0);
	cr_assert_leq(at, 1u << 20); /* no byte that was written is passed over */
	cr_assert_eq(datalog_next_data(&store, h, (1 << 20) + 100), (1u << 20) + 100);
	cr_assert_eq(datalog_next_data(&store, h, (1 << 20) + 1000), UINT64_MAX);
	store_close(&store, &h);
}

Test(datalog, looks_the_same_with_space_ahead)
{
	int h = make_log(), ret;

	cr_assert_eq(datalog_pwrite(&store, h, want, 1000, 0), 1000);
	ret = datalog_allocate_ahead(&store, h, 1000, 1 << 20);
	cr_assert(!ret || ret == -EOPNOTSUPP || ret == -ENOSPC, "%d", ret);
	cr_assert_eq(length(h), 1000);
	cr_assert_eq(datalog_pread(&store, h, got, LEN, 0), 1000);
	cr_assert_arr_eq(got, want, 1000);
	store_close(&store, &h);
}

Test(datalog, keeps_its_positions_apart_as_the_file_system_sees_them)
{
	for (uint64_t at = 0; at < 1 << 20; at += 4099)
		cr_assert_eq(datalog_place(at + 1000) - datalog_place(at), 1000);
	cr_assert_eq(datalog_place(0) % 4096, 0);
}

/* What opening says of a log whose byte @at was changed: to @byte, with a right checksum, if @fix. */
static int open_changed(size_t at, uint8_t byte, bool fix)
{
	uint8_t head[DATALOG_HEADER_LEN], was[DATALOG_HEADER_LEN];
	char full[CONTAINER_PATH_LEN];
	int h, ret;

	container_path(&c, path, full);
	h = store_open(&store, full, O_RDWR, 0);
	cr_assert_eq(store.ops->pread(&store, h, was, sizeof(was), 0), sizeof(was));
	memcpy(head, was, sizeof(head));
	head[at] = fix ? byte : (uint8_t)~head[at];
	if (fix) {
		put_le32(head + 12, 0);
		put_le32(head + 12, crc32c(0, head, sizeof(head)));
	}
	cr_assert_eq(store.ops->pwrite(&store, h, head, sizeof(head), 0), sizeof(head));
	ret = datalog_open(&c, path, false);
	if (ret >= 0)
		ret = store_close(&store, &ret);
	cr_assert_eq(store.ops->pwrite(&store, h, was, sizeof(was), 0), sizeof(was));
	store_close(&store, &h);
	return ret;
}

Test(datalog, of_another_version_container_or_name_is_refused)
{
	int h = make_log();

	store_close(&store, &h);
	for (size_t at = 0; at < DATALOG_HEADER_LEN; at++)
		cr_assert_eq(open_changed(at, 0, false), -EIO, "byte %zu", at);
	cr_assert_eq(open_changed(8, DATALOG_VERSION + 1, true), -EPROTONOSUPPORT);
	cr_assert_eq(open_changed(8, DATALOG_VERSION - 1, true), -EPROTONOSUPPORT);
	cr_assert_eq(open_changed(60, 1, true), -EPROTONOSUPPORT);
	cr_assert_eq(open_changed(63, 0x80, true), -EPROTONOSUPPORT);
	cr_assert_eq(open_changed(56, 0xff, true), 0);
	cr_assert_eq(open_changed(16, (uint8_t)~c.id[0], true), -EIO);
	cr_assert_eq(open_changed(40, (uint8_t)~getpid(), true), -EIO);
	cr_assert_eq(open_changed(64, 0, true), -EIO);
}
