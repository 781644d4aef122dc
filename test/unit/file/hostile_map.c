/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Kept maps (index.global) that somebody made to do harm: they lead nowhere but into logs of their container,
 * and what was checked is not read again.
 */
#include "test/lib/hostile.h"

#include "core/base/bytes.h"
#include "core/base/crc32c.h"
#include "core/gather/kept_map.h"
#include "index/map/merge.h"

TestSuite(hostile_map, .init = hostile_setup, .fini = scratch_remove, .timeout = 120);

/*
 * A confirmed map of one extent, at @log_off of log @log_no, and of the @nr names in @logs, which says that
 * the file ends at @end.
 */
static void put_map(char *const *logs, uint32_t nr, uint32_t log_no, uint64_t log_off, uint64_t end,
		    off_t size)
{
	struct index_record rec = { .type = INDEX_WRITE, .length = LEN, .count = 1, .stamp_ns = 5 };
	struct index_inputs none = { 0 };
	struct kept_map_parts parts = { .inputs = &none, .logs = logs, .nr_logs = nr };
	struct index_merge m;
	struct stat st;
	uint8_t *image;
	void *made_image;
	int h;

	index_merge_init(&m);
	cr_assert_eq(index_merge_add(&m, log_no, &rec), 0);
	cr_assert_eq(index_merge_build(&m, &made_image, &parts.image_len), 0);
	index_merge_release(&m);
	image = made_image;
	put_le64(image + 32, end);
	put_le64(image + get_le64(image + 88) + 8, log_off); /* of its only entry */
	put_le32(image + 20, crc32c(0, image + 200, parts.image_len - 200));
	put_le32(image + 16, 0);
	put_le32(image + 16, crc32c(0, image, 200));
	parts.image = image;
	h = kept_map_create(&hostile_container, &parts);
	cr_assert_geq(h, 0);
	if (size)
		cr_assert_eq(hostile_store.ops->truncate(&hostile_store, h, (uint64_t)size), 0);
	kept_map_confirm(&hostile_container, h);
	cr_assert_eq(hostile_store.ops->fstat(&hostile_store, h, &st), 0);
	store_close(&hostile_store, &h);
	mem_free(made_image);
}

static void put_global(char *const *logs, uint32_t nr, uint32_t log_no, uint64_t log_off, off_t size)
{
	put_map(logs, nr, log_no, log_off, LEN, size);
}

Test(hostile_map, a_kept_map_that_names_what_is_elsewhere_is_ignored)
{
	char long_name[300], *bad[] = { (char *)"../../etc/passwd",
					(char *)"/etc/passwd",
					(char *)"",
					(char *)"hostdir.1/../../x",
					(char *)"hostdir.1/data.x/../../y",
					(char *)"hostdir../data.x",
					(char *)"hostdir.1/live.x",
					(char *)"hostdir.4096/data.x",
					long_name };

	memset(long_name, 'x', sizeof(long_name));
	memcpy(long_name, "hostdir.1/data.", 15);
	long_name[sizeof(long_name) - 1] = '\0';
	hostile_file();
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		put_global(&bad[i], 1, 0, 0, 0);
		expect(LEN);
	}
}

/* A position whose end is beyond 2^64 seemed to be in the window: bytes of the process's memory, or none. */
Test(hostile_map, a_kept_map_with_positions_at_the_end_of_numbers_is_an_io_error)
{
	char path[PATH_MAX], *log;

	hostile_file();
	cr_assert(find_file("data.", path));
	log = path + strlen(hostile_dir) + 1;
	put_global(&log, 1, 0, UINT64_MAX - LEN + 1, 0);
	expect(-EIO);
	put_global(&log, 1, 0, INT64_MAX - LEN, 0);
	expect(-EIO);
}

/* As the size it would be a negative number. */
Test(hostile_map, a_kept_map_of_a_file_beyond_the_largest_size_is_ignored)
{
	static const uint64_t ends[] = { INT64_MAX, 1ull << 63, UINT64_MAX - 8000 };
	char path[PATH_MAX], *log;

	hostile_file();
	cr_assert(find_file("data.", path));
	log = path + strlen(hostile_dir) + 1;
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		put_map(&log, 1, 0, 0, ends[i], 0);
		expect(LEN);
	}
}

/*
 * The log that it names comes to be this process's own, whose stage has nothing there; with that the kept map
 * is not believed any more.
 */
Test(hostile_map, a_kept_map_that_names_a_log_that_there_is_not_is_an_io_error)
{
	struct use use = { .want = -EIO, .or_right = true, .write = true };
	char path[PATH_MAX], *log;

	hostile_file();
	cr_assert(find_file("data.", path));
	log = path + strlen(hostile_dir) + 1;
	put_global(&log, 1, 1, 1 << 30, 0);
	expect(-EIO);
	put_global(&log, 1, 7, 0, 0);
	expect(-EIO);
	put_global(&log, 1, 1, 1 << 30, 0);
	cr_assert_eq(in_child(use_it, &use), 0);
}

Test(hostile_map, a_kept_map_of_a_terabyte_is_ignored)
{
	char path[PATH_MAX], *log;

	hostile_file();
	cr_assert(find_file("data.", path));
	log = path + strlen(hostile_dir) + 1;
	put_global(&log, 1, 0, 500, 1LL << 40);
	expect(LEN);
}

/* In memory, a hole takes space where it is read. */
Test(hostile_map, a_kept_map_that_is_a_hole_is_not_read)
{
	const uint64_t lists = 1ull << 30;
	char path[PATH_MAX], *log;
	uint8_t head[128];
	struct stat st;
	int fd;

	hostile_file();
	cr_assert(find_file("data.", path));
	log = path + strlen(hostile_dir) + 1;
	put_global(&log, 1, 0, 0, 0);
	fd = open(in_container("index.global"), O_RDWR);
	cr_assert_eq(pread(fd, head, sizeof(head), 0), sizeof(head));
	put_le64(head + 40, lists); /* inputs_len, names_len, map_off, map_len, nr_logs */
	put_le64(head + 48, 8);
	put_le64(head + 56, 144 + lists + 8);
	put_le64(head + 64, 8);
	put_le32(head + 72, 1);
	put_le32(head + 12, 0);
	put_le32(head + 12, crc32c(0, head, sizeof(head)));
	cr_assert_eq(pwrite(fd, head, sizeof(head), 0), sizeof(head));
	cr_assert_eq(ftruncate(fd, (off_t)(144 + lists + 16)), 0);
	expect(LEN);
	cr_assert_eq(fstat(fd, &st), 0);
	cr_assert_lt(st.st_blocks, 2048, "%lld blocks", (long long)st.st_blocks);
	close(fd);
}

/* Between the look at a number and its use anybody may write to the file, which is mapped. */
Test(hostile_map, a_header_that_changes_after_it_was_checked_is_not_read_again)
{
	struct index_inputs none = { 0 };
	struct kept_map gi;
	struct index_map map;
	char path[PATH_MAX], *log, **logs;
	uint8_t lies[36];
	uint64_t digest;
	uint32_t nr;
	int fd;

	hostile_file();
	cr_assert(find_file("data.", path));
	log = path + strlen(hostile_dir) + 1;
	put_global(&log, 1, 0, 0, 0);
	cr_assert_eq(kept_map_open(&gi, &hostile_container, 0), 0);
	digest = kept_map_logs_digest(&gi);
	memset(lies, 0x7f, sizeof(lies));
	fd = open(in_container("index.global"), O_WRONLY);
	/* all lengths, where the map begins, how many logs */
	cr_assert_eq(pwrite(fd, lies, sizeof(lies), 40), (ssize_t)sizeof(lies));
	close(fd);
	cr_assert_eq(gi.base[40], 0x7f);
	cr_assert_eq(kept_map_logs_digest(&gi), digest);
	cr_assert(kept_map_made_from(&gi, &none));
	cr_assert_eq(kept_map_take(&gi, &map, &logs, &nr), 0);
	cr_assert(nr == 1 && !strcmp(logs[0], log));
	cr_assert_eq(map.end, LEN);
	kept_map_close(&gi, &hostile_container);
}
