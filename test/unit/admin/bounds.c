/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Containers that somebody has made to cost whoever looks at them: what a check says, and what it takes,
 * stays within bounds.
 */
#include "test/lib/scratch.h"
#include "test/lib/sanitized.h"

#include "core/backend/names.h"
#include "index/record/block.h"

#include <criterion/criterion.h>
#include <sys/resource.h>

static void bounds_setup(void)
{
	scratch_in_memory = true;
	scratch_setup();
	msg_is_muted = true;
}

TestSuite(bounds, .init = bounds_setup, .fini = scratch_remove, .timeout = 120);

static uint64_t nr_told, nr_lost, lost_bytes;
static char last_code[32], last_text[200];

static void take(void *arg, const struct plfs_finding *f)
{
	(void)arg;
	nr_told++;
	nr_lost += f->len > 0;
	lost_bytes += f->len;
	if (strncmp(f->code, "global", 6))
		snprintf(last_code, sizeof(last_code), "%s", f->code);
	if (!strcmp(f->code, "lost-more") || !strcmp(f->code, "more"))
		snprintf(last_text, sizeof(last_text), "%s", f->text);
	if (nr_told > 3000)
		cr_assert_fail("more findings than anybody reads");
}

static int check(struct plfs_check *c)
{
	char path[PATH_MAX];
	struct plfs_mount *m = lpath("f", path);

	nr_told = nr_lost = lost_bytes = 0;
	*last_code = *last_text = '\0';
	c->found = take;
	return plfs_check(m, AT_FDCWD, path, c);
}

/* Each second piece of 10 bytes; the log holds the first @kept of them. */
static void make_strided(int nr, int kept)
{
	struct lfile l = made("f");
	char path[PATH_MAX];

	for (int i = 0; i < nr; i++)
		cr_assert_eq(lfill(&l, i * 20, 10, 1), 10);
	lclose(&l);
	cr_assert(find_file("data.", path));
	cr_assert_eq(truncate(path, 4096 + kept * 10), 0);
}

Test(bounds, a_hundred_lost_ranges_are_listed_and_all_are_counted)
{
	struct plfs_check c = { 0 };

	make_strided(300, 4);
	cr_assert_eq(check(&c), 1);
	cr_assert_eq(nr_lost, 100);
	cr_assert_str_eq(last_text, "lost: and 200 more ranges; in all 3000 bytes in 300 ranges");
	cr_assert_str_eq(last_code, "lost-more");
	c.lost_max = 1000;
	cr_assert_eq(check(&c), 1);
	cr_assert_eq(nr_lost, 300);
	cr_assert_eq(lost_bytes, 3000);
	cr_assert_str_eq(last_code, "lost");
}

/* Append a block with these records of the only log to its node index. */
static void forge(const struct index_record *records, uint32_t nr)
{
	struct index_block b = { .nr_records = nr, .records = records, .log_len = 10 };
	char path[PATH_MAX];
	struct stat st;
	size_t len;
	void *buf;
	int fd;

	cr_assert(find_file("data.", path));
	name_log_numbers(strrchr(path, '/') + 1, &b.pid, &b.seq);
	cr_assert(find_file("index.", path));
	fd = open(path, O_WRONLY);
	cr_assert_eq(fstat(fd, &st), 0);
	buf = malloc(index_block_max_len(&b));
	len = index_block_encode(&b, buf);
	cr_assert_eq(pwrite(fd, buf, len, (st.st_size + 7) / 8 * 8), (ssize_t)len);
	free(buf);
	close(fd);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void make_small(void)
{
	struct lfile l = made("f");

	cr_assert_eq(lfill(&l, 0, 10, 1), 10);
	lclose(&l);
}

Test(bounds, a_record_of_more_elements_than_the_log_has_bytes)
{
	struct index_record rec = { .type = INDEX_WRITE, .length = 1, .stride = 2, .count = 1ULL << 42,
		.stamp_ns = now_ns() };
	struct plfs_check c = { 0 };

	make_small();
	forge(&rec, 1);
	cr_assert_eq(check(&c), 1);
	cr_assert_eq(nr_lost, 100);
	cr_assert(strstr(last_text, "at least"), "%s", last_text);
	c.repair = true;
	cr_assert_neq(check(&c), 0);
}

/* Which is not copied element by element, nor what was copied taken back so. */
Test(bounds, a_map_of_a_file_with_such_a_record, .timeout = 20)
{
	struct index_record rec = { .type = INDEX_WRITE, .logical_off = 1000, .length = 1, .stride = 2,
		.count = 1ULL << 42, .stamp_ns = now_ns() };
	struct lfile l;

	make_small();
	forge(&rec, 1);
	l = lopen("f", O_RDWR);
	cr_assert_eq(plfs_in_body(l.f, PLFS_MAP_WRITE), -EIO);
	cr_assert_eq(lcheck(&l, 0, 10, 1), 0);
	lclose(&l);
}

Test(bounds, a_container_full_of_what_does_not_belong_there)
{
	struct plfs_check c = { 0 };
	char path[PATH_MAX], link[PATH_MAX + 16];

	make_small();
	cr_assert(find_file("data.", path));
	*strrchr(path, '/') = '\0';
	for (int i = 0; i < 5000; i++) {
		snprintf(link, sizeof(link), "%s/x%d", path, i);
		cr_assert_eq(symlink("nowhere", link), 0);
	}
	cr_assert_eq(check(&c), 1);
	cr_assert_leq(nr_told, 1002);
	cr_assert_eq(strncmp(last_text, "and 40", 6), 0, "%s", last_text);
}

/* Memory that this process has taken at most, in KiB. */
static long peak(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_maxrss;
}

/* Three bytes in the index each: a byte of the log, behind a gap in the file. */
static void make_gaps(uint32_t nr_blocks, uint64_t stamp_ns)
{
	const uint32_t nr = 100000;
	struct index_record *records = calloc(nr, sizeof(*records));
	uint64_t off = 0;

	make_small();
	for (uint32_t k = 0; k < nr_blocks; k++) {
		for (uint32_t i = 0; i < nr; i++, off += 2 + i % 2)
			records[i] = (struct index_record){ .type = INDEX_WRITE, .logical_off = off,
				.length = 1, .count = 1, .log_off = i, .stamp_ns = stamp_ns };
		forge(records, nr);
	}
	free(records);
}

Test(bounds, more_records_than_the_logs_have_bytes)
{
	struct plfs_check c = { 0 };
	struct lfile l;
	char buf[10];
	long before;

	make_gaps(20, now_ns()); /* 2 million */
	before = peak();
	l = lopen("f", O_RDONLY);
	cr_assert_eq(plfs_pread(l.f, buf, 10, 0), -EIO);
	lclose(&l);
	cr_assert_eq(check(&c), 1);
	c.repair = true;
	check(&c);
	if (!is_sanitized()) /* the sanitizer keeps what is freed */
		cr_assert_lt(peak() - before, 60000, "%ld KiB", peak() - before);
}

/* As after the loss of a log's end. */
Test(bounds, somewhat_more_records_than_bytes_are_read)
{
	struct lfile l;
	char buf[10];

	make_gaps(2, now_ns());
	l = lopen("f", O_RDONLY);
	cr_assert_eq(plfs_pread(l.f, buf, 1, 0), 1);
	lclose(&l);
}

static int write_gaps(void *arg)
{
	struct lfile l = lopen("f", O_RDWR | O_CREAT);
	off_t at = 1000;

	(void)arg;
	for (int i = 0; i < 300000; i++, at += 2 + i % 2)
		if (plfs_pwrite(l.f, "x", 1, at) != 1)
			return 1;
	return lclose(&l);
}

/* It costs its own bytes, whatever their number of records. */
Test(bounds, a_log_that_has_gone)
{
	struct plfs_check c = { 0 };
	char path[PATH_MAX], buf[10];
	struct lfile l;

	cr_assert_eq(in_child(write_gaps, NULL), 0);
	cr_assert(find_file("data.", path));
	l = lopen("f", O_RDWR);
	cr_assert_eq(lfill(&l, 0, 10, 1), 10);
	lclose(&l);
	cr_assert_eq(unlink(path), 0);
	l = lopen("f", O_RDONLY);
	cr_assert_eq(lcheck(&l, 0, 10, 1), 0);
	cr_assert_eq(plfs_pread(l.f, buf, 1, 1000), -EIO);
	cr_assert_eq(plfs_pread(l.f, buf, 1, 1001), 1, "a gap");
	lclose(&l);
	cr_assert_eq(check(&c), 1);
	cr_assert_leq(nr_lost, 100);
}

/* A truncation to nothing made them void, and their logs may be gone. */
Test(bounds, any_number_of_void_records_is_read)
{
	struct lfile l = made("f");
	char buf[20];

	cr_assert_eq(lfill(&l, 0, 5, 1), 5);
	cr_assert_eq(plfs_truncate(l.f, 0), 0);
	lclose(&l);
	make_gaps(5, 1);
	l = lopen("f", O_RDONLY);
	cr_assert_eq(plfs_pread(l.f, buf, sizeof(buf), 0), 10);
	lclose(&l);
}
