/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Files whose readers hold shared locks on all of the stub, for ever: nobody who writes waits for them, gets
 * an error, or loses a byte. What several users do to each other so is in test/tools/held.
 */
#include "test/lib/scratch.h"

#include "test/lib/calls.h"

#include "core/backend/stub_lock.h"
#include "core/base/sys.h"

#include <criterion/criterion.h>

#define LEN 20000

TestSuite(held, .timeout = 120);

/* What any process can have that may read the file. */
static int hold(const char *name)
{
	struct flock lk = { .l_type = F_RDLCK, .l_whence = SEEK_SET };
	char path[PATH_MAX];
	int fd;

	lpath(name, path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	cr_assert_geq(fd, 0);
	while (fcntl(fd, F_OFD_SETLK, &lk))
		cr_assert_eq(errno, EAGAIN);
	return fd;
}

static struct stub header_of(const char *name)
{
	char path[PATH_MAX];
	struct stub stub;
	int fd;

	lpath(name, path);
	fd = open(path, O_RDONLY);
	cr_assert_eq(stub_read(fd, &stub), 0);
	close(fd);
	return stub;
}

static void begin_to_write(void)
{
	struct lfile l = made("a");
	int holder = hold("a");

	cr_assert_eq(lfill(&l, 0, LEN, 1), LEN);
	cr_assert_eq(lclose(&l), 0);
	cr_assert_eq(stat_size("a"), LEN);
	close(holder);
	l = lopen("a", O_RDWR);
	cr_assert_eq(lcheck(&l, 0, LEN, 1), 0);
	cr_assert_eq(lfill(&l, LEN, LEN, 1), LEN);
	cr_assert_eq(lcheck(&l, 0, 2 * LEN, 1), 0);
	lclose(&l);
	cr_assert_eq(lunlink("a"), 0);
	cr_assert_eq(count_files("data."), 0);
}

Test(held, a_first_write_gives_the_file_a_container, .init = scratch_setup, .fini = scratch_remove)
{
	begin_to_write();
}
Test(held, a_small_file_is_written, .init = scratch_setup_small, .fini = scratch_remove)
{
	begin_to_write();
}

static void change(void);

/* Of one thread: else nothing is appended to a small file under the lock. */
static int change_in_child(void *arg)
{
	(void)arg;
	be_single_threaded();
	change();
	return 0;
}

static void must(bool right, int line)
{
	if (!right)
		_exit(line);
}
#define MUST(right) must(right, __LINE__ % 250)

static void change(void)
{
	struct lfile l = made("a");
	int holder;
	off_t end;

	MUST(lfill(&l, 0, 1000, 1) == 1000);
	lclose(&l);
	holder = hold("a");
	l = lopen("a", O_RDWR | O_APPEND);
	MUST(lappend(&l, "tail", 4, &end) == 4 && end == 1004);
	MUST(!plfs_truncate(l.f, 500) && plfs_size(l.f) == 500);
	MUST(!lcheck(&l, 0, 500, 1));
	MUST(!plfs_sync(l.f));
	MUST(!plfs_truncate(l.f, 0));
	MUST(lappend(&l, "new", 3, &end) == 3 && end == 3);
	lclose(&l);
	l = lopen("a", O_RDWR);
	MUST(lfill(&l, 0, LEN, 2) == LEN);
	MUST(plfs_in_body(l.f, PLFS_MAP_WRITE) == 1);
	MUST(!lcheck(&l, 0, LEN, 2));
	lclose(&l);
	MUST(stat_size("a") == LEN);
	MUST(header_of("a").in_body);
	close(holder);
}

Test(held, all_changes_are_made, .init = scratch_setup, .fini = scratch_remove)
{
	cr_assert_eq(in_child(change_in_child, NULL), 0);
}
Test(held, all_changes_of_a_small_file_are_made, .init = scratch_setup_small, .fini = scratch_remove)
{
	cr_assert_eq(in_child(change_in_child, NULL), 0);
}

Test(held, a_small_file_enters_its_body, .init = scratch_setup_small, .fini = scratch_remove)
{
	struct lfile l = made("a");
	int holder;

	cr_assert_eq(lfill(&l, 0, 1000, 1), 1000);
	holder = hold("a");
	cr_assert_eq(plfs_in_body(l.f, PLFS_MAP_WRITE), 1);
	cr_assert_eq(lcheck(&l, 0, 1000, 1), 0);
	cr_assert(header_of("a").in_body);
	lclose(&l);
	close(holder);
}

/* A process that was killed when it had set the word, and one that comes later and can lock the header. */
Test(held, a_decision_is_carried_out_by_whoever_comes_next, .init = scratch_setup, .fini = scratch_remove)
{
	struct lfile l = made("a");
	uint64_t decided = 0;
	uint8_t id[STUB_ID_LEN];
	struct stat st;

	cr_assert_eq(stub_propose(l.fd, 0x1234, &decided), 0);
	cr_assert_eq(decided, 0x1234);
	cr_assert_eq(stub_propose(l.fd, 0x5678, &decided), 0);
	cr_assert_eq(decided, 0x1234);
	cr_assert_eq(lfill(&l, 0, LEN, 1), LEN);
	cr_assert_eq(sys.fstat(l.fd, &st), 0);
	stub_claimed_id(decided, st.st_ino, id);
	cr_assert(!memcmp(header_of("a").id, id, sizeof(id)));
	cr_assert_eq(lcheck(&l, 0, LEN, 1), 0);
	lclose(&l);
}

static int holder_of_a = -1, ask[2], answer[2];

static int fill_when_asked(void *arg)
{
	struct lfile l = lopen("a", O_RDWR);
	char c;

	(void)arg;
	close(holder_of_a); /* the description that it has inherited */
	return write(answer[1], "r", 1) != 1 || read(ask[0], &c, 1) != 1 || lfill(&l, 0, LEN, 1) != LEN ||
	       write(answer[1], "d", 1) != 1 || lclose(&l);
}

/* Before the word is set the lock comes free, and another process makes the file's container with it. */
static int another_is_faster(enum call call)
{
	char c;

	if (call != CALL_MMAP || holder_of_a < 0)
		return 0;
	close(holder_of_a);
	holder_of_a = -1;
	cr_assert(write(ask[1], "f", 1) == 1 && read(answer[0], &c, 1) == 1);
	return 0;
}

Test(held, a_container_that_was_made_in_vain_goes, .init = scratch_setup, .fini = scratch_remove)
{
	struct lfile l = made("a");
	pid_t pid;
	char c;

	cr_assert(!pipe(ask) && !pipe(answer));
	holder_of_a = hold("a");
	pid = start_child(fill_when_asked, NULL);
	cr_assert_eq(read(answer[0], &c, 1), 1);
	calls_intercept();
	on_call = another_is_faster;
	cr_assert_eq(lfill(&l, LEN, LEN, 1), LEN);
	cr_assert_eq(holder_of_a, -1);
	cr_assert_eq(wait_child(pid), 0);
	cr_assert_eq(lcheck(&l, 0, 2 * LEN, 1), 0);
	cr_assert_eq(count_files("lock"), 1);
	lclose(&l);
}

/* ---- many, while the lock comes and goes ---- */

#define WRITERS 6

static int come_and_go(void *arg)
{
	for (;;) {
		close(hold(arg));
		sched_yield();
	}
	return 0;
}

/* Of a child: 0, or 1, and a line for what went wrong. */
static int say_unless(bool right, const char *what, ssize_t ret)
{
	if (!right)
		fprintf(stderr, "%s: %zd (%s)\n", what, ret, ret < 0 ? strerror((int)-ret) : "");
	return !right;
}

static int end_part(struct lfile *l)
{
	int ret = lclose(l);

	return say_unless(!ret, "close", ret);
}

static int fill_part(void *arg)
{
	unsigned no = *(unsigned *)arg;
	struct lfile l = lopen("a", O_RDWR);
	ssize_t n = lfill(&l, no * 100, 100, 1);

	return say_unless(n == 100, "write", n) || end_part(&l);
}

static int append_lines(void *arg)
{
	struct lfile l;
	ssize_t n = 10;
	off_t end;

	(void)arg;
	be_single_threaded();
	l = lopen("b", O_RDWR | O_APPEND);
	for (int i = 0; i < 20 && n == 10; i++)
		n = lappend(&l, "0123456789", 10, &end);
	return say_unless(n == 10, "append", n) || end_part(&l);
}

static void race(void)
{
	pid_t holders[2], writers[WRITERS];
	char line[10];
	struct lfile l;

	for (int round = 0; round < 60; round++) {
		l = made("a");
		lclose(&l);
		l = made("b");
		lclose(&l);
		holders[0] = start_child(come_and_go, "a");
		holders[1] = start_child(come_and_go, "b");
		for (unsigned i = 0; i < WRITERS; i++)
			writers[i] = start_child(i % 2 ? append_lines : fill_part, &i);
		for (unsigned i = 0; i < WRITERS; i++)
			cr_assert_eq(wait_child(writers[i]), 0);
		kill(holders[0], SIGKILL), kill(holders[1], SIGKILL);
		wait_child(holders[0]), wait_child(holders[1]);
		l = lopen("a", O_RDONLY);
		for (unsigned i = 0; i < WRITERS; i += 2)
			cr_assert_eq(lcheck(&l, i * 100, 100, 1), 0);
		lclose(&l);
		cr_assert_eq(stat_size("b"), WRITERS / 2 * 200);
		l = lopen("b", O_RDONLY);
		for (off_t at = 0; at < WRITERS / 2 * 200; at += 10) {
			cr_assert_eq(plfs_pread(l.f, line, 10, at), 10);
			cr_assert(!memcmp(line, "0123456789", 10));
		}
		lclose(&l);
		cr_assert(!lunlink("a") && !lunlink("b"));
	}
}

static void set_up(void)
{
	scratch_in_memory = true;
	scratch_setup();
}

static void set_up_small(void)
{
	scratch_in_memory = true;
	scratch_setup_small();
}

Test(held, no_writer_loses_a_byte_while_locks_come_and_go, .init = set_up, .fini = scratch_remove) { race(); }
Test(held, nor_does_one_of_a_small_file, .init = set_up_small, .fini = scratch_remove) { race(); }
