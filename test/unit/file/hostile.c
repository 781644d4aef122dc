/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Containers that somebody made to do harm, by hand: what needs a whole file system, and what the fuzz
 * targets (fuzz/) have found. Each is used by a child (hostile.h), which gets an error and one line, or the
 * right bytes. Kept maps are in hostile_map.c.
 */
#include "test/lib/hostile.h"

#include "core/backend/container_dirs.h"
#include "core/base/bytes.h"
#include "core/base/crc32c.h"
#include "core/backend/names.h"
#include "core/dropping/node_index.h"
#include "core/base/hash.h"
#include "core/dropping/live_layout.h"

#include <sys/auxv.h>
#include <sys/mman.h>

TestSuite(hostile, .init = hostile_setup, .fini = scratch_remove, .timeout = 120);

/* ---- what is no file, or no directory ---- */

Test(hostile, a_fifo_is_not_waited_for)
{
	static const char *const prefixes[] = { "data.", "index." };

	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
		hostile_file();
		cr_assert_eq(mkfifo(instead_of(prefixes[i]), 0644), 0);
		expect_damage();
		lunlink("file");
	}
	hostile_file();
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
	hostile_put(secret, "secret", 6, 6);
	for (size_t i = 0; i < 2 * ARRAY_SIZE(prefixes); i++) {
		hostile_file();
		cr_assert_eq(i % 2 ? mkdir(instead_of(prefixes[i / 2]), 0755) :
				     symlink(secret, instead_of(prefixes[i / 2])),
			     0);
		expect_damage();
		lunlink("file");
	}
}

Test(hostile, a_hostdir_that_leads_elsewhere_is_an_io_error)
{
	hostile_file();
	cr_assert_eq(symlink(scratch, in_container("hostdir.7")), 0);
	expect(-EIO);
}

/* What it leads to is all right: it is the way that is not. */
Test(hostile, no_directory_on_the_way_to_a_log_may_be_a_link)
{
	char path[PATH_MAX], elsewhere[PATH_MAX];

	for (int up = 1; up <= 3; up++) { /* hostdir.K, the container, and the one of 256 that it is in */
		hostile_file();
		cr_assert(find_file("data.", path));
		for (int i = 0; i < up; i++)
			*strrchr(path, '/') = '\0';
		snprintf(elsewhere, sizeof(elsewhere), "%s/elsewhere%d", scratch, up);
		cr_assert_eq(rename(path, elsewhere), 0);
		cr_assert_eq(symlink(elsewhere, path), 0);
		expect(-EIO);
		cr_assert(unlink(path) == 0 && rename(elsewhere, path) == 0);
		expect(LEN);
		lunlink("file");
	}
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

	if (!has_openat2())
		cr_skip_test("no openat2() here");
	hostile_file();
	for (int i = 4000; i < 14000; i++) {
		snprintf(name, sizeof(name), "hostdir.%d", i);
		cr_assert_eq(mkdir(in_container(name), 0755), 0);
	}
	cr_assert_eq(mkdir(in_container("hostdir.007"), 0755), 0);
	cr_assert_eq(mkdir(in_container("hostdir."), 0755), 0);
	sys.openat2 = count_openat2;
	cr_assert_eq(container_list(&hostile_container, list_nothing, NULL), 0);
	cr_assert_gt(opened, 90); /* 4000 to 4095, and its own */
	cr_assert_lt(opened, 110);
	expect(LEN);
}

Test(hostile, a_dropping_whose_name_is_too_long_is_passed_over)
{
	char name[300];
	int n;

	hostile_file();
	n = snprintf(name, sizeof(name), "hostdir.3");
	cr_assert(!mkdir(in_container(name), 0755) || errno == EEXIST);
	n += snprintf(name + n, sizeof(name) - (size_t)n, "/index.");
	memset(name + n, 'x', 200);
	name[n + 200] = '\0';
	hostile_put(in_container(name), "", 0, 0);
	memcpy(strchr(name, '/'), "/live", 5);
	memcpy(strchr(name, '/') + 1, "live.x", 6);
	hostile_put(in_container(name), "", 0, 0);
	expect(LEN);
}

/* ---- node indexes ---- */

/* One more block of the log's, with one record. */
static void put_index(const struct index_record *rec)
{
	struct index_block block = {
		.pid = (uint32_t)getpid(), .log_len = LEN, .nr_records = 1, .records = rec
	};
	char path[PATH_MAX], log[PATH_MAX];
	const char *name;
	uint8_t buf[512];
	size_t len;
	int fd;

	cr_assert(find_file("index.", path));
	cr_assert(find_file("data.", log));
	name = strrchr(log, '/') + 1;
	name_log_numbers(name, &block.pid, &block.seq);
	len = index_block_encode(&block, buf);
	fd = open(path, O_WRONLY | O_APPEND);
	cr_assert_eq(write(fd, buf, len), (ssize_t)len);
	close(fd);
}

Test(hostile, positions_at_the_end_of_numbers_are_an_io_error)
{
	struct index_record rec = { .type = INDEX_WRITE,
				    .length = 100,
				    .count = 1,
				    .stamp_ns = 1ULL << 61,
				    .log_off = INT64_MAX - 200 };

	hostile_file();
	put_index(&rec);
	expect(-EIO);
}

Test(hostile, a_record_near_the_largest_size_can_be_told_and_not_read)
{
	struct index_record rec = { .type = INDEX_WRITE,
				    .logical_off = INT64_MAX - 200,
				    .length = 100,
				    .count = 1,
				    .stamp_ns = 1ULL << 61 };
	struct lfile l;
	char buf[200];

	hostile_file();
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
	struct index_record rec = { .type = INDEX_TRUNCATE,
				    .logical_off = INT64_MAX - 1,
				    .stamp_ns = 1ULL << 61 };

	hostile_file();
	put_index(&rec);
	expect(LEN);
}

Test(hostile, a_stamp_that_leaves_none_for_later_writes_is_an_io_error)
{
	struct index_record rec = { .type = INDEX_WRITE, .length = 100, .count = 1, .stamp_ns = 1ULL << 62 };

	hostile_file();
	put_index(&rec);
	expect(-EIO);
}

Test(hostile, a_node_index_of_a_terabyte_is_damage)
{
	char path[PATH_MAX];

	hostile_file();
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

	hostile_file();
	cr_assert(find_file("index.", path));
	cr_assert_eq(truncate(path, 40LL << 20), 0); /* torn, as a machine may leave it that went down */
	expect_damage();
	put_index(&rec);
	expect_damage();
}

/*
 * Each claims what is left of its file's first 4 MiB, and has a right header: without a limit a hundred
 * gigabytes would be looked at.
 */
Test(hostile, blocks_that_claim_the_rest_of_the_file_are_given_up)
{
	size_t len = 4 << 20, step = INDEX_BLOCK_HEADER_LEN;
	uint8_t *buf = calloc(1, len);
	struct index_block block;
	struct node_index idx;
	char path[PATH_MAX];

	hostile_file();
	for (size_t at = 0; at + step <= len; at += step) {
		uint8_t *p = buf + at;

		memcpy(p, INDEX_BLOCK_MAGIC, 8);
		put_le16(p + 12, INDEX_BLOCK_HEADER_LEN);
		put_le32(p + 20, (uint32_t)(len - at) / 8 * 8);
		put_le32(p + 8, crc32c(0, p, INDEX_BLOCK_HEADER_LEN));
	}
	cr_assert(find_file("index.", path));
	hostile_put(path, buf, len, (off_t)len);
	cr_assert_eq(node_index_open(&idx, &hostile_container, path + strlen(hostile_dir) + 1), 0);
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

	hostile_file();
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

/* ---- names that meet in a bucket ---- */

#define NR_BUCKETS 1024

struct meeting {
	uint32_t nr, names[2000];
};

static unsigned bucket_of(uint32_t name)
{
	char path[64];
	int len = snprintf(path, sizeof(path), "hostdir.1/data.host.%u.0", name);

	return hash_bytes(path, (size_t)len) % NR_BUCKETS;
}

/* Who has seen how this process hashes chooses names by that. */
static int choose_names(void *arg)
{
	struct meeting *m = arg;

	for (uint32_t i = 0; i < 200000 && m->nr < ARRAY_SIZE(m->names); i++)
		if (!bucket_of(i))
			m->names[m->nr++] = i;
	return m->nr < 100;
}

/* As if it was another program: the kernel gave it other random bytes. */
static int use_names(void *arg)
{
	const struct meeting *m = arg;
	unsigned counts[NR_BUCKETS] = { 0 }, most = 0;

	memset((void *)getauxval(AT_RANDOM), 7, 16);
	for (uint32_t i = 0; i < m->nr; i++) {
		unsigned *count = &counts[bucket_of(m->names[i])];

		++*count;
		most = *count > most ? *count : most;
	}
	return most > 10;
}

Test(hostile, names_that_meet_in_a_bucket_of_one_process_do_not_in_another)
{
	struct meeting *m = mmap(NULL, sizeof(*m), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	cr_assert_eq(in_child(choose_names, m), 0);
	cr_assert_eq(in_child(use_names, m), 0);
}

/* ---- live files ---- */

static void put_live(uint64_t records_off, uint64_t cap, uint64_t nr, off_t size)
{
	uint8_t *buf = calloc(1, LIVE_FILE_LEN);
	char path[PATH_MAX], live[PATH_MAX];
	const char *name;

	cr_assert(find_file("data.", path));
	name = strrchr(path, '/') + 1;
	memcpy(buf, LIVE_MAGIC, 8);
	put_le32(buf + LIVE_OFF_VERSION, LIVE_VERSION);
	memcpy(buf + LIVE_OFF_ID, hostile_container.id, STUB_ID_LEN);
	put_le64(buf + LIVE_OFF_RECORDS_OFF, records_off);
	put_le64(buf + LIVE_OFF_RECORDS_CAP, cap);
	put_le64(buf + LIVE_OFF_STAGE_OFF, LIVE_STAGE_OFF);
	put_le64(buf + LIVE_OFF_STAGE_CAP, LIVE_CAP);
	snprintf((char *)buf + LIVE_OFF_LOG_NAME, INDEX_LOG_NAME_LEN, "%s", name);
	put_le32(buf + LIVE_OFF_CRC, crc32c(0, buf, LIVE_FIXED_LEN));
	for (size_t i = 0; i < ARRAY_SIZE(LIVE_WORDS); i++)
		put_le64(buf + LIVE_WORDS[i], live_word(0));
	put_le64(buf + LIVE_OFF_NR_RECORDS, live_word(nr));
	snprintf(live, sizeof(live), "%.*slive.%s", (int)(name - path), path, name + 5);
	hostile_put(live, buf, LIVE_FILE_LEN, size);
	free(buf);
}

Test(hostile, a_live_file_with_room_for_too_much_is_an_io_error)
{
	hostile_file();
	put_live(LIVE_RECORDS_OFF, LIVE_RECORDS_CAP, 0, 0);
	expect(LEN);
	put_live(LIVE_RECORDS_OFF, 1 << 20, 0, 1LL << 40);
	expect(-EIO);
	put_live(UINT64_MAX - 100, 512, 1, 0);
	expect(-EIO);
	put_live(1ULL << 40, 65536, 65536, 1LL << 41);
	expect(-EIO);
	put_live(LIVE_RECORDS_OFF, 65536, 65536, 0); /* the file is not so long */
	expect(-EIO);
}

/* ---- stubs ---- */

Test(hostile, a_stub_of_any_length_is_a_file_or_an_io_error)
{
	static const off_t lens[] = { 1, 127, 128, 4095, 4096, 1LL << 40 };
	char path[PATH_MAX], header[4096];
	int fd;

	hostile_file();
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

	hostile_file();
	lpath("file", path);
	fd = open(path, O_RDWR);
	cr_assert_eq(stub_read(fd, &stub), 0);
	stub.generation_ns = UINT64_MAX;
	stub_encode(&stub, header);
	cr_assert_eq(pwrite(fd, header, sizeof(header), 0), (ssize_t)sizeof(header));
	close(fd);
	expect(-EIO);
}
