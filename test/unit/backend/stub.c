/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The stub's header: its bytes, how it is read beside its writers, and what is said of a header that is none.
 */
#include "test/lib/scratch.h"

#include "core/base/bytes.h"
#include "core/base/crc32c.h"
#include "core/backend/stub.h"
#include "core/backend/stub_lock.h"

#include <criterion/criterion.h>
#include <sys/time.h>

static char path[100];

static void setup(void)
{
	scratch_dir();
	snprintf(path, sizeof(path), "%s/stub", scratch);
	close(open(path, O_RDWR | O_CREAT | O_EXCL, 0644));
}

TestSuite(stub_codec);
TestSuite(stub, .init = setup, .fini = scratch_remove);

static int no_make(void *arg, struct stub *stub)
{
	(void)stub;
	return arg ? *(int *)arg : 0;
}

static const struct stub sample = {
	.has_container = true,
	.id = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0xff },
	.generation_ns = 0x1122334455667788,
	.created_ns = 0x99,
	.number = 0xaabbccddee,
};

Test(stub_codec, the_bytes_are_those_of_the_table)
{
	uint8_t buf[STUB_HEADER_LEN], copy[STUB_HEADER_LEN];

	stub_encode(&sample, buf);
	cr_assert_eq(memcmp(buf, "PLFSTUB1", 8), 0);
	cr_assert_eq(get_le32(buf + 8), 1);
	cr_assert_eq(get_le32(buf + 16), 0);
	cr_assert_eq(get_le32(buf + 20), 0);
	cr_assert_eq(memcmp(buf + 24, sample.id, 16), 0);
	cr_assert_eq(get_le64(buf + 40), sample.generation_ns);
	cr_assert_eq(get_le64(buf + 48), 0x99);
	cr_assert_eq(get_le64(buf + 56), 0xaabbccddee);
	for (int i = 64; i < STUB_HEADER_LEN; i++)
		cr_assert_eq(buf[i], 0);
	memcpy(copy, buf, sizeof(copy));
	put_le32(copy + 12, 0);
	cr_assert_eq(get_le32(buf + 12), crc32c(0, copy, sizeof(copy)));
}

Test(stub_codec, what_is_encoded_is_decoded)
{
	uint8_t buf[STUB_HEADER_LEN];
	struct stub stub;

	stub_encode(&sample, buf);
	cr_assert_eq(stub_decode(&stub, buf, sizeof(buf)), 0);
	cr_assert(stub.has_container);
	cr_assert_arr_eq(stub.id, sample.id, 16);
	cr_assert_eq(stub.generation_ns, sample.generation_ns);
	cr_assert_eq(stub.created_ns, sample.created_ns);
	cr_assert_eq(stub.number, sample.number);
	cr_assert(stub_is_copy(&stub, 1) && !stub_is_copy(&stub, sample.number));
}

Test(stub_codec, nothing_and_zeros_are_a_stub_without_container)
{
	uint8_t zeros[STUB_HEADER_LEN] = { 0 };
	struct stub stub;

	cr_assert_eq(stub_decode(&stub, zeros, 0), 0);
	cr_assert_not(stub.has_container);
	cr_assert_eq(stub_decode(&stub, zeros, sizeof(zeros)), 0);
	cr_assert_not(stub.has_container);
}

Test(stub_codec, a_few_foreign_bytes_are_no_stub)
{
	const char text[] = "by somebody else";
	uint8_t zeros[20] = { 0 };
	struct stub stub;

	cr_assert_eq(stub_decode(&stub, text, sizeof(text)), -EIO);
	cr_assert_eq(stub_decode(&stub, zeros, sizeof(zeros)), 0);
	cr_assert_not(stub.has_container);
}

Test(stub_codec, any_flipped_bit_is_found)
{
	uint8_t buf[STUB_HEADER_LEN];
	struct stub stub;

	for (int bit = 0; bit < 8 * STUB_HEADER_LEN; bit++) {
		stub_encode(&sample, buf);
		buf[bit / 8] ^= (uint8_t)(1 << bit % 8);
		cr_assert_lt(stub_decode(&stub, buf, sizeof(buf)), 0, "bit %d", bit);
	}
}

/* What is read from a stub whose word "cut" is set. */
static void encode_with_cut(uint8_t *page, uint64_t size, uint64_t stamp_ns)
{
	memset(page, 0, STUB_READ_LEN);
	stub_encode(&sample, page);
	put_le64(page + 480, size);
	put_le64(page + 488, stamp_ns);
	put_le32(page + 496, crc32c(0, page + 480, 32));
}

Test(stub_codec, a_truncation_under_way_is_in_the_word)
{
	uint8_t page[STUB_READ_LEN];
	struct stub stub;

	encode_with_cut(page, 5000, 77);
	cr_assert_eq(stub_decode(&stub, page, sizeof(page)), 0);
	cr_assert(stub.cut_size == 5000 && stub.cut_ns == 77 && !stub_is_emptied(&stub));
	cr_assert_eq(stub_decode(&stub, page, STUB_HEADER_LEN), 0);
	cr_assert_eq(stub.cut_ns, 0);
	encode_with_cut(page, 0, sample.generation_ns);
	cr_assert_eq(stub_decode(&stub, page, sizeof(page)), 0);
	cr_assert(stub_is_emptied(&stub));
	encode_with_cut(page, 0, sample.generation_ns + 1);
	cr_assert_eq(stub_decode(&stub, page, sizeof(page)), 0);
	cr_assert(stub.cut_ns && !stub_is_emptied(&stub));
}

/* Nothing had followed it when it was torn, or it was being cleared. */
Test(stub_codec, a_word_that_is_not_whole_is_none)
{
	uint8_t page[STUB_READ_LEN];
	struct stub stub;

	for (int bit = 0; bit < 8 * 32; bit++) {
		encode_with_cut(page, 5000, 77);
		page[480 + bit / 8] ^= (uint8_t)(1 << bit % 8);
		cr_assert_eq(stub_decode(&stub, page, sizeof(page)), 0);
		cr_assert_eq(stub.cut_ns, 0, "bit %d", bit);
	}
	for (size_t len = 1; len < 20; len++) {
		encode_with_cut(page, 5000, 77);
		memset(page + 480 + len, 0, 32 - len);
		cr_assert_eq(stub_decode(&stub, page, sizeof(page)), 0);
		cr_assert_eq(stub.cut_ns, 0, "%zu bytes", len);
	}
}

Test(stub, a_truncation_is_announced_and_forgotten)
{
	struct stub stub, again = { 0 };
	int fd = open(path, O_RDWR);

	cr_assert_eq(stub_claim(fd, &stub, 5, 6, no_make, NULL), 0);
	cr_assert_eq(stub_set_cut(fd, &stub, 5000, 77), 0);
	cr_assert_eq(stub_set_clocks(fd, &again), 0);
	cr_assert(again.cut_size == 5000 && again.cut_ns == 77 && stub.cut_ns == 77);
	cr_assert_eq(stub_set_cut(fd, &stub, 0, 0), 0);
	cr_assert_eq(stub_read(fd, &again), 0);
	cr_assert(!again.cut_ns && !stub.cut_ns && again.clocks);
	close(fd);
}

Test(stub_codec, later_versions_and_unknown_features_are_refused)
{
	uint8_t buf[STUB_HEADER_LEN];
	struct stub stub;

	stub_encode(&sample, buf);
	put_le32(buf + 8, STUB_VERSION + 1);
	cr_assert_eq(stub_decode(&stub, buf, sizeof(buf)), -EPROTONOSUPPORT);
	stub_encode(&sample, buf);
	put_le32(buf + 20, 1u << 31);
	cr_assert_eq(stub_decode(&stub, buf, sizeof(buf)), -EPROTONOSUPPORT);
}

Test(stub_codec, a_compatible_feature_is_ignored)
{
	uint8_t buf[STUB_HEADER_LEN];
	struct stub stub;

	stub_encode(&sample, buf);
	put_le32(buf + 16, 1);
	put_le32(buf + 12, 0);
	put_le32(buf + 12, crc32c(0, buf, sizeof(buf)));
	cr_assert_eq(stub_decode(&stub, buf, sizeof(buf)), 0);
}

static int fallocate_errno;

static int failing_fallocate(int fd, int mode, off_t off, off_t len)
{
	(void)fd, (void)mode, (void)off, (void)len;
	errno = fallocate_errno;
	return -1;
}

Test(stub, a_body_is_extended_behind_its_bytes_with_fallocate_and_without)
{
	static const int errnos[] = { 0, EOPNOTSUPP, ENOSYS, ENOSPC };
	int (*fallocate_now)(int, int, off_t, off_t) = sys.fallocate;
	char buf[11];

	for (size_t i = 0; i < ARRAY_SIZE(errnos); i++) {
		int fd = open(path, O_RDWR | O_TRUNC);

		cr_assert_eq(pwrite(fd, "body", 4, PLFS_BODY_OFF), 4);
		fallocate_errno = errnos[i];
		sys.fallocate = errnos[i] ? failing_fallocate : fallocate_now;
		cr_assert_eq(stub_extend(fd, 10), 0);
		sys.fallocate = fallocate_now;
		cr_assert_eq(pread(fd, buf, sizeof(buf), PLFS_BODY_OFF), 10, "errno %d", errnos[i]);
		cr_assert_arr_eq(buf, "body\0\0\0\0\0\0", 10);
		close(fd);
	}
}

static int grown_before_failing(int fd, int mode, off_t off, off_t len)
{
	int other = open(path, O_RDWR);

	cr_assert_eq(pwrite(other, "e", 1, PLFS_BODY_OFF + 99), 1);
	close(other);
	return failing_fallocate(fd, mode, off, len);
}

/* While this one's fallocate() fails. */
static void extended_beside(int flags, int error)
{
	int (*fallocate_now)(int, int, off_t, off_t) = sys.fallocate;
	int fd = open(path, O_RDWR | O_TRUNC | flags);
	struct stat st;

	fallocate_errno = error;
	sys.fallocate = grown_before_failing;
	cr_assert_eq(stub_extend(fd, 10), 0);
	sys.fallocate = fallocate_now;
	cr_assert(!fstat(fd, &st) && st.st_size == PLFS_BODY_OFF + 100, "%ld", (long)st.st_size);
	close(fd);
}

Test(stub, a_body_that_another_process_extends_just_now_does_not_get_shorter)
{
	extended_beside(0, ENOSPC);
	extended_beside(0, EOPNOTSUPP);
	extended_beside(O_APPEND, EOPNOTSUPP);
}

/* On a busy machine, or on another host, the writer of a header can take long between two halves of it. */
static void read_half_written(int fd, bool locked)
{
	struct flock lk = { .l_type = F_WRLCK, .l_start = STUB_LOCK_HEADER, .l_len = 1 };
	uint8_t buf[STUB_HEADER_LEN];
	struct stub now;
	int ends[2];
	pid_t pid;
	char c;

	stub_encode(&sample, buf);
	cr_assert_eq(pipe(ends), 0);
	pid = fork_child();
	if (!pid) {
		if ((locked && fcntl(fd, F_SETLK, &lk)) || pwrite(fd, buf, 40, 0) != 40 ||
		    write(ends[1], "", 1) != 1)
			_exit(1);
		usleep(50000);
		_exit(pwrite(fd, buf, sizeof(buf), 0) != sizeof(buf));
	}
	cr_assert_eq(read(ends[0], &c, 1), 1);
	cr_assert_eq(stub_read(fd, &now), 0);
	cr_assert_eq(memcmp(now.id, sample.id, STUB_ID_LEN), 0);
	cr_assert_eq(wait_child(pid), 0);
	cr_assert_eq(pwrite(fd, buf, 64, 64), 64);
	cr_assert_eq(stub_read(fd, &now), -EIO, "with no writer it is damaged");
	close(fd);
}

Test(stub, a_header_that_is_half_written_is_waited_for) { read_half_written(open(path, O_RDWR), true); }

/* As a reader of the file has the header locked: whoever set the word finishes it without the lock. */
Test(stub, a_claim_that_is_half_written_is_waited_for)
{
	int fd = open(path, O_RDWR);
	uint64_t claim = 1;

	cr_assert_eq(ftruncate(fd, PLFS_BODY_OFF), 0);
	cr_assert_eq(pwrite(fd, &claim, sizeof(claim), STUB_CLAIM_OFF), sizeof(claim));
	read_half_written(fd, false);
}

static int nr_reads;
static ssize_t (*real_pread)(int fd, void *buf, size_t len, off_t off);

/* Of six reads each finds another writer in the middle of it, who has gone when the lock is looked at. */
static ssize_t pread_of_the_busy(int fd, void *buf, size_t len, off_t off)
{
	ssize_t n = real_pread(fd, buf, len, off);

	if (n > 100 && nr_reads++ < 6)
		((uint8_t *)buf)[100 + nr_reads] ^= 1;
	return n;
}

Test(stub, a_header_that_is_seen_between_others_each_time_is_read_again)
{
	int fd = open(path, O_RDWR);
	uint8_t buf[STUB_HEADER_LEN];
	struct stub now;

	stub_encode(&sample, buf);
	cr_assert_eq(pwrite(fd, buf, sizeof(buf), 0), (ssize_t)sizeof(buf));
	real_pread = sys.pread;
	sys.pread = pread_of_the_busy;
	cr_assert_eq(stub_read(fd, &now), 0);
	sys.pread = real_pread;
	cr_assert_eq(memcmp(now.id, sample.id, STUB_ID_LEN), 0);
	close(fd);
}

static int late_fd;
static uint8_t late_header[STUB_HEADER_LEN];

static void header_arrives(int signo)
{
	(void)signo;
	if (pwrite(late_fd, late_header, sizeof(late_header), 0) != sizeof(late_header))
		_exit(1);
}

/* Another host's file system shows an older header for 30 ms. */
static void header_comes_late(int fd, const struct stub *older, const struct stub *newer)
{
	const struct itimerval soon = { .it_value = { .tv_usec = 30000 } };
	uint8_t buf[STUB_HEADER_LEN] = { 0 };

	if (older)
		stub_encode(older, buf);
	cr_assert_eq(pwrite(fd, buf, sizeof(buf), 0), sizeof(buf));
	late_fd = fd;
	stub_encode(newer, late_header);
	signal(SIGALRM, header_arrives);
	cr_assert_eq(setitimer(ITIMER_REAL, &soon, NULL), 0);
}

Test(stub, an_older_header_than_the_known_one_is_not_believed_at_once)
{
	struct stub now, older = sample, newer = sample;
	int fd = open(path, O_RDWR);

	header_comes_late(fd, NULL, &sample);
	cr_assert_eq(stub_read_known(fd, &sample, &now), 0);
	cr_assert(now.has_container);
	older.generation_ns--;
	header_comes_late(fd, &older, &sample);
	cr_assert_eq(stub_read_known(fd, &sample, &now), 0);
	cr_assert_eq(now.generation_ns, sample.generation_ns);
	/* a truncation goes into the header that others have made */
	header_comes_late(fd, NULL, &sample);
	cr_assert_eq(stub_set_generation(fd, &newer, sample.generation_ns + 5), 0);
	cr_assert_eq(stub_read(fd, &now), 0);
	cr_assert(now.has_container && now.generation_ns == sample.generation_ns + 5);
	close(fd);
}

Test(stub, a_header_that_has_been_taken_away_is_believed)
{
	struct stub known = sample, now;
	int fd = open(path, O_RDWR);

	cr_assert_eq(stub_read_known(fd, &known, &known), 0);
	cr_assert(!known.has_container);
	cr_assert_eq(stub_read_known(fd, &known, &now), 0);
	close(fd);
}
