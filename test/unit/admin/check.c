/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checking and repairing files, from inside: each bit, what others hold, and file systems without locks.
 * test/tools/damage.sh has the kinds of damage as the command tells of them.
 */
#include "test/lib/scratch.h"
#include "test/lib/sanitized.h"

#include "core/dropping/datalog.h"
#include "core/admin/scan/mend.h"
#include "core/backend/stub.h"

#include <criterion/criterion.h>
#include <sys/resource.h>

static void check_setup(void)
{
	scratch_in_memory = true;
	scratch_setup();
	msg_is_muted = true;
}

TestSuite(check, .init = check_setup, .fini = scratch_remove);
TestSuite(check_small, .init = scratch_setup_small, .fini = scratch_remove);

/* ---- what is told ---- */

static int nr_told[PLFS_FAILED + 1];
static char last_codes[400];
static uint64_t lost_bytes;

static void take(void *arg, const struct plfs_finding *f)
{
	(void)arg;
	nr_told[f->severity]++;
	lost_bytes += f->len;
	if (strlen(last_codes) + strlen(f->code) + 2 < sizeof(last_codes))
		strcat(strcat(last_codes, f->code), " ");
}

static int run_check(struct plfs_check *check)
{
	char path[PATH_MAX];
	struct plfs_mount *m = lpath("f", path);

	memset(nr_told, 0, sizeof(nr_told));
	*last_codes = '\0';
	lost_bytes = 0;
	check->found = take;
	return plfs_check(m, AT_FDCWD, path, check);
}

static int check(void)
{
	struct plfs_check c = { 0 };

	return run_check(&c);
}

static int repair(void)
{
	struct plfs_check c = { .repair = true };

	return run_check(&c);
}

static int no_sleep(const struct timespec *wait, struct timespec *left)
{
	(void)wait, (void)left;
	return 0;
}

/* ---- files ---- */

struct bytes {
	char path[PATH_MAX];
	uint8_t *p;
	size_t len;
};

static struct bytes slurp(const char *path)
{
	struct bytes b;
	struct stat st;
	int fd = open(path, O_RDONLY);

	snprintf(b.path, sizeof(b.path), "%s", path);
	if (fd < 0 || fstat(fd, &st))
		die("%s", path);
	b.len = (size_t)st.st_size;
	b.p = malloc(b.len + 1);
	if (read(fd, b.p, b.len) != (ssize_t)b.len)
		die("%s", path);
	close(fd);
	return b;
}

static struct bytes slurp_found(const char *prefix)
{
	char path[PATH_MAX];

	cr_assert(find_file(prefix, path), "%s", prefix);
	return slurp(path);
}

static bool is_same(const struct bytes *b)
{
	struct bytes now = slurp(b->path);
	bool same = now.len == b->len && !memcmp(now.p, b->p, b->len);

	free(now.p);
	return same;
}

static void put_back(const struct bytes *b)
{
	int fd = open(b->path, O_WRONLY | O_CREAT, 0644);

	if (fd < 0 || pwrite(fd, b->p, b->len, 0) != (ssize_t)b->len || ftruncate(fd, (off_t)b->len))
		die("%s", b->path);
	close(fd);
}

static void flip(const struct bytes *b, size_t at)
{
	uint8_t byte = b->p[at] ^ (uint8_t)(1 << at % 8);
	int fd = open(b->path, O_WRONLY);

	if (fd < 0 || pwrite(fd, &byte, 1, (off_t)at) != 1)
		die("%s", b->path);
	close(fd);
}

static int write_pieces(void *arg)
{
	struct lfile l = made("f");

	for (int i = 0; i < 8; i++)
		if (lfill(&l, (i * 5 % 8) * 30, 30, 1) != 30)
			return 1;
	if (arg)
		kill(getpid(), SIGKILL);
	return lclose(&l);
}

static int read_pieces(void *arg)
{
	struct lfile l;
	int ret = ltry(&l, "f", O_RDONLY);

	(void)arg;
	if (ret)
		return 1;
	ret = plfs_size(l.f) == 240 ? lcheck(&l, 0, 240, 1) : 2;
	lclose(&l);
	return ret != 0;
}

static void remove_kept(void)
{
	char path[PATH_MAX];

	while (find_file("damaged.", path))
		unlink(path);
}

/* ---- bits ---- */

/* In bytes [from, to) of @b. @mends: a repair makes the file what it was; else it leaves it as it is. */
static void flip_each(const struct bytes *b, size_t from, size_t to, bool mends)
{
	for (size_t at = from; at < to; at++) {
		flip(b, at);
		cr_assert_eq(check(), 1, "%s: byte %zu: not found", b->path, at);
		cr_assert_eq(repair(), mends ? 0 : 1, "%s: byte %zu: %s", b->path, at, last_codes);
		cr_assert_eq(is_same(b), mends, "%s: byte %zu: %s", b->path, at, last_codes);
		if (!mends)
			put_back(b);
		remove_kept();
	}
	cr_assert_eq(check(), 0);
}

Test(check, each_flipped_bit_is_found_and_set_right_unless_it_is_one_of_the_data, .timeout = 60)
{
	struct bytes stub, log, index;
	char path[PATH_MAX];

	sys.nanosleep = no_sleep;
	cr_assert_eq(in_child(write_pieces, NULL), 0);
	cr_assert_eq(check(), 0);
	lpath("f", path);
	stub = slurp(path);
	log = slurp_found("data.");
	index = slurp_found("index.");
	flip_each(&stub, 0, STUB_HEADER_LEN, true);
	flip_each(&log, 0, DATALOG_HEADER_LEN, true);
	flip_each(&log, DATALOG_DATA_OFF, DATALOG_DATA_OFF + 240, false);
	flip_each(&log, DATALOG_DATA_OFF + 240, log.len, true);
	flip_each(&index, 0, index.len, true);
	cr_assert_eq(in_child(read_pieces, NULL), 0);
	free(stub.p), free(log.p), free(index.p);
}

Test(check, the_lost_bytes_are_those_of_the_damaged_chunk)
{
	struct bytes log;

	sys.nanosleep = no_sleep;
	cr_assert_eq(in_child(write_pieces, NULL), 0);
	log = slurp_found("data.");
	flip(&log, DATALOG_DATA_OFF + 100);
	cr_assert_eq(check(), 1);
	cr_assert_eq(lost_bytes, 240);
	free(log.p);
}

Test(check, a_flipped_bit_in_what_a_killed_process_left_is_set_right_where_it_has_a_checksum, .timeout = 60)
{
	struct bytes live, log;

	sys.nanosleep = no_sleep;
	cr_assert_eq(in_child(write_pieces, ""), 256 + SIGKILL);
	cr_assert_eq(check(), 0);
	live = slurp_found("live.");
	log = slurp_found("data.");
	for (size_t at = 0; at < 4096 + 3 * INDEX_RECORD_LEN; at = at == 255 ? 4096 : at + 1) {
		char index[PATH_MAX];

		flip(&live, at);
		cr_assert_eq(check(), 1, "byte %zu: not found", at);
		cr_assert_eq(repair(), 0, "byte %zu: %s", at, last_codes);
		cr_assert_eq(count_files("live."), 0);
		cr_assert(at % 8 || !in_child(read_pieces, NULL), "byte %zu", at);
		cr_assert(find_file("index.", index));
		unlink(index);
		put_back(&live);
		put_back(&log);
	}
	free(live.p), free(log.p);
}

Test(mend, one_bit_is_found_and_two_are_not)
{
	uint8_t record[INDEX_RECORD_LEN], copy[INDEX_RECORD_LEN];
	struct index_record rec = { .type = INDEX_WRITE, .length = 100, .count = 1, .stamp_ns = 1234567 };
	size_t at;

	index_record_encode(&rec, record);
	memcpy(copy, record, sizeof(copy));
	cr_assert_not(mend_find(copy, sizeof(copy), 4, &at));
	for (size_t bit = 0; bit < 8 * sizeof(record); bit++) {
		copy[bit / 8] ^= (uint8_t)(1 << bit % 8);
		cr_assert(mend_find(copy, sizeof(copy), 4, &at));
		cr_assert_eq(at, bit / 8);
		cr_assert_arr_eq(copy, record, sizeof(record));
	}
	for (size_t bit = 0; bit + 9 < 8 * sizeof(record); bit++) {
		memcpy(copy, record, sizeof(copy));
		copy[bit / 8] ^= (uint8_t)(1 << bit % 8);
		copy[(bit + 9) / 8] ^= (uint8_t)(1 << (bit + 9) % 8);
		cr_assert_not(mend_find(copy, sizeof(copy), 4, &at));
	}
}

/* ---- others ---- */

Test(check, what_a_killed_process_left_stays_while_the_file_is_open)
{
	struct lfile l;

	cr_assert_eq(in_child(write_pieces, ""), 256 + SIGKILL);
	l = lopen("f", O_RDONLY);
	cr_assert_eq(repair(), 0);
	cr_assert_eq(count_files("live."), 1);
	cr_assert_eq(nr_told[PLFS_REPAIRED], 0);
	cr_assert(strstr(last_codes, "in-use"));
	lclose(&l);
	cr_assert_eq(repair(), 0);
	cr_assert_eq(count_files("live."), 0);
	cr_assert_eq(in_child(read_pieces, NULL), 0);
}

static int no_locks(int fd, int cmd, ...)
{
	va_list args;
	void *arg;

	va_start(args, cmd);
	arg = va_arg(args, void *);
	va_end(args);
	if (cmd == F_OFD_SETLK || cmd == F_OFD_SETLKW || cmd == F_OFD_GETLK || cmd == F_SETLK ||
	    cmd == F_SETLKW) {
		errno = ENOLCK;
		return -1;
	}
	return fcntl(fd, cmd, arg);
}

Test(check, no_process_is_taken_for_dead_without_locks)
{
	cr_assert_eq(in_child(write_pieces, ""), 256 + SIGKILL);
	sys.fcntl = no_locks;
	cr_assert_eq(check(), 0);
	cr_assert_eq(repair(), 0);
	cr_assert_eq(count_files("live."), 1);
	cr_assert_eq(in_child(read_pieces, NULL), 0);
}

/* The process goes on writing while its index is made anew. */
Test(check, an_index_is_made_anew_while_its_log_is_being_written)
{
	struct bytes index;
	struct lfile l;

	cr_assert_eq(in_child(write_pieces, NULL), 0);
	index = slurp_found("index.");
	l = lopen("f", O_RDWR);
	cr_assert_eq(lfill(&l, 240, 60, 1), 60);
	flip(&index, 80);
	cr_assert_eq(repair(), 0, "%s", last_codes);
	cr_assert_eq(lfill(&l, 300, 60, 1), 60);
	cr_assert_eq(lclose(&l), 0);
	cr_assert_eq(check(), 0, "%s", last_codes);
	l = lopen("f", O_RDONLY);
	cr_assert_eq(lcheck(&l, 0, 360, 1), 0);
	lclose(&l);
	free(index.p);
}

/* Who made it may want a check of the whole backend to fill the memory, or to last for weeks. */
Test(check, an_index_that_is_a_hole_or_nothing_but_beginnings_is_reported_at_once, .timeout = 60)
{
	struct rlimit old, limit = { .rlim_cur = 1 << 30 };
	char path[PATH_MAX];
	FILE *f;

	cr_assert_eq(in_child(write_pieces, NULL), 0);
	cr_assert(find_file("index.", path));
	cr_assert_eq(truncate(path, 15LL << 30), 0);
	getrlimit(RLIMIT_AS, &old);
	limit.rlim_max = old.rlim_max;
	if (is_sanitized()) /* it reserves terabytes */
		limit.rlim_cur = old.rlim_cur;
	setrlimit(RLIMIT_AS, &limit);
	cr_assert_eq(check(), 1, "%s", last_codes);
	cr_assert(strstr(last_codes, "index-unreadable"));
	cr_assert_eq(repair(), 1, "%s", last_codes);
	setrlimit(RLIMIT_AS, &old);
	f = fopen(path, "w");
	for (uint32_t i = 0; i < 500000; i++) { /* a header's worth of each claims 4 MiB */
		const uint8_t head[24] = "PLFSIDX2\0\0\0\0\x48\0\0\0\0\0\0\0\0\0\x40";

		fwrite(head, 1, sizeof(head), f);
	}
	fclose(f);
	cr_assert_eq(check(), 1, "%s", last_codes);
	cr_assert_leq(nr_told[PLFS_DAMAGED], 101);
}

Test(check, a_file_that_cannot_be_written_is_reported_and_not_repaired)
{
	struct plfs_check c = { .repair = true };
	struct bytes index;
	char path[PATH_MAX];

	cr_assert_eq(in_child(write_pieces, NULL), 0);
	index = slurp_found("index.");
	flip(&index, 80);
	lpath("f", path);
	chmod(path, S_ISVTX | 0444);
	if (access(path, W_OK)) {
		cr_assert_eq(run_check(&c), -EACCES);
		cr_assert_eq(nr_told[PLFS_FAILED], 1);
	} else { /* root */
		cr_assert_eq(run_check(&c), 0);
	}
	free(index.p);
}

Test(check, what_a_torn_append_left_in_a_killed_log_is_cut_off)
{
	char path[PATH_MAX], *junk = malloc(1 << 20);
	int fd;

	cr_assert_eq(in_child(write_pieces, "killed"), 256 + SIGKILL);
	cr_assert(find_file("data.", path));
	memset(junk, 'j', 1 << 20);
	fd = open(path, O_WRONLY | O_APPEND);
	cr_assert_eq(write(fd, junk, 1 << 20), 1 << 20);
	close(fd);
	cr_assert_eq(repair(), 0);
	cr_assert_eq(count_files("live."), 0);
	cr_assert_eq(check(), 0, "%s", last_codes);
	cr_assert_eq(in_child(read_pieces, NULL), 0);
	free(junk);
}

/* Of an index a power failure may leave zeros, or the beginning of a block, where the last append was. */
static void repair_behind(const char *tail, size_t len)
{
	char path[PATH_MAX];
	int fd;

	cr_assert_eq(in_child(write_pieces, NULL), 0);
	cr_assert_eq(in_child(write_pieces, "killed"), 256 + SIGKILL);
	cr_assert(find_file("index.", path));
	fd = open(path, O_WRONLY | O_APPEND);
	cr_assert_eq(write(fd, tail, len), (ssize_t)len);
	close(fd);
	cr_assert_eq(check(), 0, "%s", last_codes);
	cr_assert_eq(repair(), 0, "%s", last_codes);
	cr_assert_eq(count_files("live."), 0);
	cr_assert_eq(check(), 0, "%s", last_codes);
	cr_assert_eq(in_child(read_pieces, NULL), 0);
}

static const char zeros[200];

Test(check, zeros_at_the_end_of_an_index_are_no_damage_behind_a_repair) { repair_behind(zeros, 72); }
Test(check, many_zeros_at_the_end_of_an_index_are_none_either) { repair_behind(zeros, 200); }
Test(check, nor_is_the_beginning_of_a_block) { repair_behind("PLFSIDX2\0\0\0\0\0\0\0\0", 16); }

/* ---- what is lost for good ---- */

/* So many records that some of them, and some bytes, are in the log, and some in the live file. */
static int write_many(void *arg)
{
	struct lfile l = made("f");

	for (int i = 0; i < 20000; i++)
		if (lfill(&l, (i * 7919L % 20000) * 50, 50, 1) != 50)
			return 1;
	(void)arg;
	kill(getpid(), SIGKILL);
	return 0;
}

Test(check, a_log_whose_end_is_lost_is_read_again_only_if_that_is_asked_for)
{
	struct plfs_check c = { .repair = true, .partial = true };
	char path[PATH_MAX], buf[50];
	struct lfile l;

	cr_assert_eq(in_child(write_many, NULL), 256 + SIGKILL);
	cr_assert(find_file("live.", path) && !unlink(path));
	cr_assert(find_file("index.", path) && !unlink(path));
	cr_assert_eq(check(), 1);
	cr_assert_eq(repair(), 1);
	cr_assert_eq(count_files("index."), 0);
	l = lopen("f", O_RDONLY);
	cr_assert_eq(plfs_pread(l.f, buf, 50, 0), -EIO);
	lclose(&l);
	cr_assert_eq(run_check(&c), 1);
	cr_assert(strstr(last_codes, "no-end"));
	l = lopen("f", O_RDONLY);
	cr_assert_eq(lcheck(&l, 0, 50, 1), 0);
	lclose(&l);
}

/* Zeros would be made of what is gone, and its checksums would say that they are right. */
Test(check, a_killed_log_that_was_cut_is_not_filled_up)
{
	char path[PATH_MAX], buf[50];
	struct lfile l;
	struct stat st;

	cr_assert_eq(in_child(write_many, NULL), 256 + SIGKILL);
	cr_assert(find_file("data.", path) && !stat(path, &st));
	cr_assert_gt(st.st_size, DATALOG_DATA_OFF + 300000);
	cr_assert_eq(truncate(path, DATALOG_DATA_OFF + 100000), 0);
	cr_assert_eq(repair(), 1);
	cr_assert(strstr(last_codes, "lost"));
	cr_assert_eq(check(), 1);
	cr_assert(strstr(last_codes, "lost"));
	cr_assert(!stat(path, &st) && st.st_size == DATALOG_DATA_OFF + 100000);
	l = lopen("f", O_RDONLY);
	cr_assert_eq(lcheck(&l, 0, 50, 1), 0);
	cr_assert_eq(plfs_pread(l.f, buf, 50, 4000 * 7919L % 20000 * 50), -EIO);
	lclose(&l);
}

/* ---- files that have nothing to check ---- */

Test(check_small, a_small_file_and_a_plain_one_are_sound)
{
	struct plfs_check c = { 0 };
	struct lfile l = made("f");
	char path[PATH_MAX];

	cr_assert_eq(lfill(&l, 0, 100, 1), 100);
	lclose(&l);
	cr_assert_eq(run_check(&c), 0);
	cr_assert_eq(c.nr_files, 1);
	lpath("f", path);
	chmod(path, 0644);
	cr_assert_eq(run_check(&c), 0);
	cr_assert_eq(c.nr_files, 2, "without its mark it is known by its header");
	cr_assert_eq(c.nr_plain, 0);
	chmod(path, 01644);
	cr_assert_eq(truncate(path, 0), 0);
	cr_assert_eq(truncate(path, 5), 0);
	chmod(path, 0644);
	cr_assert_eq(run_check(&c), 0);
	cr_assert_eq(c.nr_plain, 1);
}
