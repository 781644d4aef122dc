/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A file that gets its container, and its first bytes, while another process looks at its header: neither of
 * the two gets an error, nor loses anything.
 */
#include "test/lib/scratch.h"

#include "test/lib/calls.h"

#include "core/backend/stub_hosts.h"
#include "core/base/sys.h"

#include <criterion/criterion.h>

#define LEN 20000

TestSuite(open_meanwhile, .init = scratch_setup, .fini = scratch_remove, .timeout = 60);

static int ask[2], answer[2];
static bool due;

static int fill_when_asked(void *arg)
{
	struct lfile l = lopen("a", O_RDWR);
	char c;

	(void)arg;
	return read(ask[0], &c, 1) != 1 || lfill(&l, 0, LEN, 1) != LEN || lclose(&l) ||
	       write(answer[1], "d", 1) != 1;
}

static void have_it_filled(void)
{
	char c;

	due = false;
	cr_assert(write(ask[1], "f", 1) == 1 && read(answer[0], &c, 1) == 1);
}

static pid_t start_filler(void)
{
	cr_assert(!pipe(ask) && !pipe(answer));
	return start_child(fill_when_asked, NULL);
}

/* As a kernel may do it that is interrupted, and a server. */
static ssize_t read_in_two(int fd, void *buf, size_t len, off_t off)
{
	bool now = due && len == PLFS_BODY_OFF && !off;
	ssize_t n = calls_real.pread(fd, buf, now ? STUB_READ_LEN : len, off);

	if (now)
		have_it_filled();
	return n;
}

Test(open_meanwhile, a_header_that_is_written_during_a_read_is_not_lost)
{
	struct lfile l = made("a"), other;
	pid_t pid = start_filler();

	cr_assert_eq(ftruncate(l.fd, PLFS_BODY_OFF), 0); /* as an append begins */
	lclose(&l);
	calls_intercept();
	sys.pread = read_in_two;
	due = true;
	cr_assert_eq(ltry(&other, "a", O_RDONLY), 0);
	cr_assert(!due);
	cr_assert_eq(wait_child(pid), 0);
	cr_assert_eq(lcheck(&other, 0, LEN, 1), 0);
	lclose(&other);
}

/* ---- while a claim writes the header without its lock ---- */

/* The first part that says which container it is. */
static ssize_t written_before_the_rest(int fd, const void *buf, size_t len, off_t off)
{
	ssize_t n = calls_real.pwrite(fd, buf, len, off);

	if (due && !off && len >= STUB_HEADER_LEN && !memcmp(buf, STUB_MAGIC, 8))
		have_it_filled();
	return n;
}

Test(open_meanwhile, who_writes_as_soon_as_there_is_a_header_stays_entered)
{
	struct flock lk = { .l_type = F_RDLCK, .l_whence = SEEK_SET };
	struct lfile l = made("a");
	pid_t pid = start_filler();
	struct stub_hosts hosts;
	struct stub stub;
	char path[PATH_MAX];
	int holder;

	lpath("a", path);
	holder = open(path, O_RDONLY | O_CLOEXEC);
	cr_assert_eq(fcntl(holder, F_OFD_SETLK, &lk), 0);
	calls_intercept();
	sys.pwrite = written_before_the_rest;
	due = true;
	cr_assert_eq(lfill(&l, LEN, LEN, 1), LEN);
	cr_assert(!due);
	cr_assert_eq(wait_child(pid), 0);
	cr_assert_eq(stub_hosts_read(l.fd, &stub, &hosts), 0);
	cr_assert_eq(stub_hosts_nr(&hosts), 1);
	lclose(&l);
	close(holder);
}

/* ---- while the first bytes come behind the end that the kernel has set for them ---- */

static int stub_fd;

static int waits_until_they_come(const struct timespec *wait, struct timespec *left)
{
	if (due) {
		due = false;
		cr_assert_eq(stub_explain(stub_fd), 0);
	}
	return calls_real.nanosleep(wait, left);
}

Test(open_meanwhile, a_stub_that_is_longer_before_its_sentence_comes_is_not_damaged)
{
	struct lfile l = made("a"), other;

	stub_fd = l.fd;
	cr_assert_eq(ftruncate(l.fd, STUB_SENTENCE_OFF), 0);
	calls_intercept();
	sys.nanosleep = waits_until_they_come;
	due = true;
	cr_assert_eq(ltry(&other, "a", O_RDONLY), 0);
	cr_assert(!due);
	lclose(&other);
	lclose(&l);
}

static unsigned nr_constant, nr_behind;

static ssize_t counts_constants(int fd, const void *buf, size_t len, off_t off)
{
	nr_behind++;
	nr_constant += (const char *)buf >= stub_sentence &&
		       (const char *)buf < stub_sentence + stub_sentence_len;
	return calls_real.pwrite(fd, buf, len, off);
}

/* Constants may have to be read from the library's file, in the middle of the write. */
Test(open_meanwhile, the_sentence_is_in_memory_before_it_is_written)
{
	struct lfile l = made("a");

	calls_intercept();
	sys.pwrite = counts_constants;
	cr_assert_eq(stub_explain(l.fd), 0);
	cr_assert_eq(nr_behind, 1);
	cr_assert_eq(nr_constant, 0);
	lclose(&l);
}
