/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Containers that somebody made to do harm, by hand: what needs a whole file system, and what the fuzz targets (fuzz/) have found. Each
 * is used by a child that has little memory and no time to wait for ever: it gets an error and one line, or the right bytes.
 */
#include "scratch.h"

#include "../core/bytes.h"
#include "../core/crc32c.h"
#include "../core/dropping.h"
#include "../core/globalcache.h"
#include "../core/stage_layout.h"
#include "../index/merge.h"

#include <criterion/criterion.h>
#include <sys/resource.h>

#define LEN 1000
#define ERRNO_MAX 4095

static struct store store;
static struct container c;
static char dir[PATH_MAX]; /* the container's */

static void setup(void)
{
	scratch_in_memory = true;
	scratch_setup();
}

TestSuite(hostile, .init = setup, .fini = scratch_remove, .timeout = 120);

/* The file "file" of LEN bytes, and its container in @c, @store and @dir. */
static void make_file(void)
{
	char path[PATH_MAX];
	struct lfile l = made("file");
	struct stub stub;
	int fd;

	cr_assert_eq(lfill(&l, 0, LEN, 1), LEN);
	cr_assert_eq(lclose(&l), 0);
	lpath("file", path);
	fd = open(path, O_RDONLY);
	cr_assert_eq(stub_read(fd, &stub), 0);
	close(fd);
	cr_assert_eq(store_posix_open(&store, scratch), 0);
	container_init(&c, &store, stub.id, 0644);
	snprintf(dir, sizeof(dir), "%s/%s", scratch, c.dir);
}

/* What a child finds. */
struct use {
	bool write;   /* first, behind the end, when a read has failed */
	ssize_t want; /* of a read of LEN bytes from the beginning: LEN, or -errno */
	bool or_right; /* or LEN */
};

static int use_it(void *arg)
{
	const struct use *use = arg;
	struct rlimit limit = { 3ul << 30, 3ul << 30 };
	struct lfile l;
	char buf[LEN];
	ssize_t n;

#ifndef PLFS_SANITIZE
	setrlimit(RLIMIT_AS, &limit);
#else
	(void)limit;
#endif
	alarm(60);
	n = ltry(&l, "file", O_RDWR);
	if (!n && use->write && plfs_pread(l.f, buf, LEN, 0) != -EIO)
		return 5;
	if (!n && use->write && plfs_pwrite(l.f, "x", 1, 2 * LEN) != 1)
		return 4;
	if (!n) {
		n = plfs_pread(l.f, buf, LEN, 0);
		if (n == -EIO && plfs_sync(l.f) == -ENOMEM) /* looks at the index as well */
			return 6;
		if (plfs_size(l.f) < -ERRNO_MAX)
			return 7;
		lclose(&l);
	}
	if (n == LEN && (use->want == LEN || use->or_right))
		return pattern_check(buf, LEN, 0, 1) == LEN ? 0 : 3;
	if (n != use->want)
		fprintf(stderr, "%zd (%s), not %zd\n", n, n < 0 ? strerror((int)-n) : "", use->want);
	return n == use->want ? 0 : 2;
}

static void expect(ssize_t want)
{
	struct use use = { .want = want };

	cr_assert_eq(in_child(use_it, &use), 0);
}

/* An error, or the right bytes: a log says itself what is in it, and may be asked where an index is damaged. */
static void expect_damage(void)
{
	struct use use = { .want = -EIO, .or_right = true };

	cr_assert_eq(in_child(use_it, &use), 0);
}

static char *in_container(const char *rest)
{
	static char path[PATH_MAX + 300];

	snprintf(path, sizeof(path), "%s/%s", dir, rest);
	return path;
}

/* In the place of the file of the container whose name begins with @prefix. */
static char *instead_of(const char *prefix)
{
	static char path[PATH_MAX];

	cr_assert(find_file(prefix, path));
	cr_assert_eq(unlink(path), 0);
	return path;
}

static void put(const char *path, const void *buf, size_t len, off_t size)
{
	int fd = open(path, O_RDWR | O_CREAT, 0644);

	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, buf, len), (ssize_t)len);
	if (size > (off_t)len)
		cr_assert_eq(ftruncate(fd, size), 0);
	close(fd);
}

/* ---- what is no file, or no directory ---- */

Test(hostile, a_fifo_is_not_waited_for)
{
	static const char *const prefixes[] = { "data.", "index." };

	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
		make_file();
		cr_assert_eq(mkfifo(instead_of(prefixes[i]), 0644), 0);
		expect_damage();
		lunlink("file");
	}
	make_file();
	cr_assert_eq(mkfifo(in_container("index.global"), 0644), 0);
	cr_assert_eq(mkfifo(in_container("notice.x"), 0644), 0);
	expect(LEN);
	cr_assert_eq(mkfifo(in_container("hostdir.7"), 0644), 0);
	expect(-EIO);
}

Test(hostile, a_directory_or_a_link_in_the_place_of_a_file_is_not_followed)
{
	static const char *const prefixes[] = { "data.", "index." };
	char secret[PATH_MAX];

	snprintf(secret, sizeof(secret), "%s/secret", scratch);
	put(secret, "secret", 6, 6);
	for (size_t i = 0; i < 2 * ARRAY_SIZE(prefixes); i++) {
		make_file();
		cr_assert_eq(i % 2 ? mkdir(instead_of(prefixes[i / 2]), 0755) : symlink(secret, instead_of(prefixes[i / 2])), 0);
		expect_damage();
		lunlink("file");
	}
}

Test(hostile, a_hostdir_that_leads_elsewhere_is_an_io_error)
{
	make_file();
	cr_assert_eq(symlink(scratch, in_container("hostdir.7")), 0);
	expect(-EIO);
}

/* ---- names ---- */

static size_t opened;

static int count_openat2(int dirfd, const char *path, struct open_how *how, size_t len)
{
	opened++;
	return (int)syscall(SYS_openat2, dirfd, path, how, len);
}

static int list_nothing(void *arg, const char *path, const char *name, enum dropping_kind kind)
{
	(void)arg;
	(void)path;
	(void)name;
	(void)kind;
	return 0;
}

Test(hostile, only_so_many_hostdirs_are_looked_into)
{
	char name[40];

	make_file();
	for (int i = 4000; i < 14000; i++) {
		snprintf(name, sizeof(name), "hostdir.%d", i);
		cr_assert_eq(mkdir(in_container(name), 0755), 0);
	}
	cr_assert_eq(mkdir(in_container("hostdir.007"), 0755), 0);
	cr_assert_eq(mkdir(in_container("hostdir."), 0755), 0);
	sys.openat2 = count_openat2;
	cr_assert_eq(container_list(&c, list_nothing, NULL), 0);
	cr_assert_gt(opened, 90); /* 4000 to 4095, and its own */
	cr_assert_lt(opened, 110);
	expect(LEN);
}

Test(hostile, a_dropping_whose_name_is_too_long_is_passed_over)
{
	char name[300];
	int n;

	make_file();
	n = snprintf(name, sizeof(name), "hostdir.3");
	cr_assert(!mkdir(in_container(name), 0755) || errno == EEXIST);
	n += snprintf(name + n, sizeof(name) - (size_t)n, "/index.");
	memset(name + n, 'x', 200);
	name[n + 200] = '\0';
	put(in_container(name), "", 0, 0);
	memcpy(strchr(name, '/'), "/live", 5);
	memcpy(strchr(name, '/') + 1, "live.x", 6);
	put(in_container(name), "", 0, 0);
	expect(LEN);
}

/* ---- node indexes ---- */

/* One more block of the log's, with one record. */
static void put_index(const struct index_record *rec)
{
	struct index_block block = { .pid = (uint32_t)getpid(), .log_len = LEN, .nr_records = 1, .records = rec };
	char path[PATH_MAX], log[PATH_MAX];
	const char *name;
	uint8_t buf[512];
	size_t len;
	int fd;

	cr_assert(find_file("index.", path));
	cr_assert(find_file("data.", log));
	name = strrchr(log, '/') + 1;
	dropping_log_numbers(name, &block.pid, &block.seq);
	len = index_block_encode(&block, buf);
	fd = open(path, O_WRONLY | O_APPEND);
	cr_assert_eq(write(fd, buf, len), (ssize_t)len);
	close(fd);
}

Test(hostile, positions_at_the_end_of_numbers_are_an_io_error)
{
	struct index_record rec = { .type = INDEX_WRITE, .length = 100, .count = 1, .stamp_ns = 1ULL << 61, .log_off = INT64_MAX - 200 };

	make_file();
	put_index(&rec);
	expect(-EIO);
}

Test(hostile, a_record_near_the_largest_size_can_be_told_and_not_read)
{
	struct index_record rec = { .type = INDEX_WRITE, .logical_off = INT64_MAX - 200, .length = 100, .count = 1, .stamp_ns = 1ULL << 61 };
	struct lfile l;
	char buf[200];

	make_file();
	put_index(&rec);
	l = lopen("file", O_RDWR);
	cr_assert_eq(plfs_size(l.f), INT64_MAX - 100);
	cr_assert_eq(lcheck(&l, 0, LEN, 1), 0);
	cr_assert_lt(plfs_pwrite(l.f, buf, 200, INT64_MAX - 150), 0);
	cr_assert_eq(plfs_pread(l.f, buf, 100, 1LL << 61), 100);
	lclose(&l);
}

Test(hostile, a_truncation_to_the_largest_size_cuts_nothing)
{
	struct index_record rec = { .type = INDEX_TRUNCATE, .logical_off = INT64_MAX - 1, .stamp_ns = 1ULL << 61 };

	make_file();
	put_index(&rec);
	expect(LEN);
}

Test(hostile, a_stamp_that_leaves_none_for_later_writes_is_an_io_error)
{
	struct index_record rec = { .type = INDEX_WRITE, .length = 100, .count = 1, .stamp_ns = 1ULL << 62 };

	make_file();
	put_index(&rec);
	expect(-EIO);
}

Test(hostile, a_node_index_of_a_terabyte_is_damage)
{
	char path[PATH_MAX];

	make_file();
	cr_assert(find_file("index.", path));
	cr_assert_eq(truncate(path, 1LL << 40), 0);
	expect_damage();
	cr_assert_eq(truncate(path, 12LL << 30), 0);
	expect_damage();
}

Test(hostile, a_hole_in_a_node_index_takes_no_memory)
{
	struct index_record rec = { .type = INDEX_WRITE, .length = 100, .count = 1, .stamp_ns = 5 };
	char path[PATH_MAX];

	make_file();
	cr_assert(find_file("index.", path));
	cr_assert_eq(truncate(path, 40LL << 20), 0); /* torn, as a machine may leave it that went down */
	expect_damage();
	put_index(&rec);
	expect_damage();
}

/* Each claims what is left of its file's first 4 MiB, and has a right header: without a limit a hundred gigabytes would be looked at. */
Test(hostile, blocks_that_claim_the_rest_of_the_file_are_given_up)
{
	size_t len = 4 << 20, step = INDEX_BLOCK_HEADER_LEN;
	uint8_t *buf = calloc(1, len);
	struct index_block block;
	struct node_index idx;
	char path[PATH_MAX];

	make_file();
	for (size_t at = 0; at + step <= len; at += step) {
		uint8_t *p = buf + at;

		memcpy(p, INDEX_BLOCK_MAGIC, 8);
		put_le16(p + 12, INDEX_BLOCK_HEADER_LEN);
		put_le32(p + 20, (uint32_t)(len - at) / 8 * 8);
		put_le32(p + 8, crc32c(0, p, INDEX_BLOCK_HEADER_LEN));
	}
	cr_assert(find_file("index.", path));
	put(path, buf, len, (off_t)len);
	cr_assert_eq(node_index_open(&idx, &c, path + strlen(dir) + 1), 0);
	cr_assert_eq(node_index_next(&idx, &block), 0);
	cr_assert_gt(idx.damaged, 0);
	cr_assert_lt(idx.in_vain, 20 * len);
	node_index_close(&idx);
	expect_damage();
	free(buf);
}

/* In one index: 100 bytes for each name. */
Test(hostile, two_hundred_thousand_logs_are_numbered_and_read_past)
{
	struct index_record rec = { .type = INDEX_TRUNCATE, .logical_off = INT64_MAX - 1, .stamp_ns = 7 };
	size_t nr = 200000, len = 0;
	uint8_t *buf = malloc(nr * 128);
	char path[PATH_MAX];
	FILE *f;

	make_file();
	for (uint32_t i = 0; i < nr; i++) {
		struct index_block block = { .pid = 7000000 + i, .nr_records = 1, .records = &rec };

		len += index_block_encode(&block, buf + len);
	}
	cr_assert(find_file("index.", path));
	f = fopen(path, "a");
	cr_assert_eq(fwrite(buf, 1, len, f), len);
	fclose(f);
	expect(LEN);
	free(buf);
}

/* ---- live files ---- */

static void put_live(uint64_t records_off, uint64_t cap, uint64_t nr, off_t size)
{
	uint8_t *buf = calloc(1, FILE_LEN);
	char path[PATH_MAX], live[PATH_MAX];
	const char *name;

	cr_assert(find_file("data.", path));
	name = strrchr(path, '/') + 1;
	memcpy(buf, STAGE_MAGIC, 8);
	put_le32(buf + 8, STAGE_VERSION);
	memcpy(buf + 16, c.id, STUB_ID_LEN);
	put_le64(buf + 32, records_off);
	put_le64(buf + 40, cap);
	put_le64(buf + 64, STAGE_OFF);
	put_le64(buf + 72, STAGE_CAP);
	snprintf((char *)buf + 80, 128, "%s", name);
	put_le32(buf + 12, crc32c(0, buf, STATIC_LEN));
	for (size_t i = 0; i < ARRAY_SIZE(STAGE_WORDS); i++)
		put_le64(buf + STAGE_WORDS[i], stage_word(0));
	put_le64(buf + OFF_NR_RECORDS, stage_word(nr));
	snprintf(live, sizeof(live), "%.*slive.%s", (int)(name - path), path, name + 5);
	put(live, buf, FILE_LEN, size);
	free(buf);
}

Test(hostile, a_live_file_with_room_for_too_much_is_an_io_error)
{
	make_file();
	put_live(RECORDS_OFF, STAGE_RECORDS_CAP, 0, 0);
	expect(LEN);
	put_live(RECORDS_OFF, 1 << 20, 0, 1LL << 40);
	expect(-EIO);
	put_live(UINT64_MAX - 100, 512, 1, 0);
	expect(-EIO);
	put_live(1ULL << 40, 65536, 65536, 1LL << 41);
	expect(-EIO);
	put_live(RECORDS_OFF, 65536, 65536, 0); /* the file is not so long */
	expect(-EIO);
}

/* ---- the kept map ---- */

/* A confirmed map of one extent, at @log_off of log @log_no, and of the @nr names in @logs, which says that the file ends at @end. */
static void put_map(char *const *logs, uint32_t nr, uint32_t log_no, uint64_t log_off, uint64_t end, off_t size)
{
	struct index_record rec = { .type = INDEX_WRITE, .length = LEN, .count = 1, .stamp_ns = 5 };
	struct index_inputs none = { 0 };
	struct global_parts parts = { .inputs = &none, .logs = logs, .nr_logs = nr };
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
	h = global_create(&c, &parts);
	cr_assert_geq(h, 0);
	if (size)
		cr_assert_eq(store.ops->truncate(&store, h, (uint64_t)size), 0);
	global_confirm(&c, h);
	cr_assert_eq(store.ops->fstat(&store, h, &st), 0);
	store_close(&store, &h);
	mem_free(made_image);
}

static void put_global(char *const *logs, uint32_t nr, uint32_t log_no, uint64_t log_off, off_t size)
{
	put_map(logs, nr, log_no, log_off, LEN, size);
}

Test(hostile, a_kept_map_that_names_what_is_elsewhere_is_ignored)
{
	char long_name[300], *bad[] = { (char *)"../../etc/passwd", (char *)"/etc/passwd", (char *)"", (char *)"hostdir.1/../../x",
					(char *)"hostdir.1/data.x/../../y", (char *)"hostdir../data.x", (char *)"hostdir.1/live.x",
					(char *)"hostdir.4096/data.x", long_name };

	memset(long_name, 'x', sizeof(long_name));
	memcpy(long_name, "hostdir.1/data.", 15);
	long_name[sizeof(long_name) - 1] = '\0';
	make_file();
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		put_global(&bad[i], 1, 0, 0, 0);
		expect(LEN);
	}
}

/* A position whose end is beyond 2^64 seemed to be in the window: bytes of the process's memory, or none. */
Test(hostile, a_kept_map_with_positions_at_the_end_of_numbers_is_an_io_error)
{
	char path[PATH_MAX], *log;

	make_file();
	cr_assert(find_file("data.", path));
	log = path + strlen(dir) + 1;
	put_global(&log, 1, 0, UINT64_MAX - LEN + 1, 0);
	expect(-EIO);
	put_global(&log, 1, 0, INT64_MAX - LEN, 0);
	expect(-EIO);
}

/* As the size it would be a negative number. */
Test(hostile, a_kept_map_of_a_file_beyond_the_largest_size_is_ignored)
{
	static const uint64_t ends[] = { INT64_MAX, 1ull << 63, UINT64_MAX - 8000 };
	char path[PATH_MAX], *log;

	make_file();
	cr_assert(find_file("data.", path));
	log = path + strlen(dir) + 1;
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		put_map(&log, 1, 0, 0, ends[i], 0);
		expect(LEN);
	}
}

/* The log that it names comes to be this process's own, whose stage has nothing there. */
Test(hostile, a_kept_map_that_names_a_log_that_there_is_not_is_an_io_error)
{
	struct use use = { .want = -EIO, .write = true };
	char path[PATH_MAX], *log;

	make_file();
	cr_assert(find_file("data.", path));
	log = path + strlen(dir) + 1;
	put_global(&log, 1, 1, 1 << 30, 0);
	expect(-EIO);
	put_global(&log, 1, 7, 0, 0);
	expect(-EIO);
	put_global(&log, 1, 1, 1 << 30, 0);
	cr_assert_eq(in_child(use_it, &use), 0);
}

Test(hostile, a_kept_map_of_a_terabyte_is_ignored)
{
	char path[PATH_MAX], *log;

	make_file();
	cr_assert(find_file("data.", path));
	log = path + strlen(dir) + 1;
	put_global(&log, 1, 0, 500, 1LL << 40);
	expect(LEN);
}

/* ---- stubs ---- */

Test(hostile, a_stub_of_any_length_is_a_file_or_an_io_error)
{
	static const off_t lens[] = { 1, 127, 128, 4095, 4096, 1LL << 40 };
	char path[PATH_MAX], header[4096];
	int fd;

	make_file();
	lpath("file", path);
	fd = open(path, O_RDWR);
	cr_assert_eq(pread(fd, header, sizeof(header), 0), 4096);
	for (size_t i = 0; i < ARRAY_SIZE(lens); i++) {
		cr_assert_eq(ftruncate(fd, 0), 0);
		cr_assert_eq(pwrite(fd, header, sizeof(header), 0), 4096);
		cr_assert_eq(ftruncate(fd, lens[i]), 0);
		expect(lens[i] < 128 ? -EIO : LEN);
	}
	close(fd);
}

Test(hostile, a_generation_that_leaves_no_stamps_is_an_io_error)
{
	char path[PATH_MAX];
	struct stub stub;
	uint8_t header[STUB_HEADER_LEN];
	int fd;

	make_file();
	lpath("file", path);
	fd = open(path, O_RDWR);
	cr_assert_eq(stub_read(fd, &stub), 0);
	stub.generation_ns = UINT64_MAX;
	stub_encode(&stub, header);
	cr_assert_eq(pwrite(fd, header, sizeof(header), 0), (ssize_t)sizeof(header));
	close(fd);
	expect(-EIO);
}
