/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A repair is killed at its system calls (turn.h), and in the middle of each write. After every kill
 * the file must be as readable as before the repair, or better, and another repair must bring it to its end.
 */
#include "test/lib/scratch.h"

#include "test/lib/calls.h"
#include "test/lib/turn.h"

#include <criterion/criterion.h>

#define SIZE 700000

static bool torn; /* in the middle of a write */

static void ignore(void *arg, const struct plfs_finding *finding)
{
	(void)arg;
	if (getenv("PLFS_TEST_SHOW"))
		fprintf(stderr, "%d %s %s %s\n", finding->severity, finding->code, finding->path,
			finding->text);
}

static int repair_it(void *arg)
{
	struct plfs_check check = { .repair = true, .found = ignore };
	char path[PATH_MAX];
	struct plfs_mount *m = lpath("f", path);

	(void)arg;
	msg_is_muted = true;
	return plfs_check(m, AT_FDCWD, path, &check) & 0xff;
}

static int repair_and_die(void *arg)
{
	calls_intercept();
	on_call = torn ? die_in_last_write : die_at_last;
	return repair_it(arg);
}

/* 0: all is right; 1: it cannot be read; 2: wrong bytes; 3: stat() says another size. */
static int read_it(void *arg)
{
	struct lfile l;
	off_t size, told;
	int ret;

	(void)arg;
	msg_is_muted = true;
	told = stat_size("f");
	if (ltry(&l, "f", O_RDONLY))
		return 1;
	size = plfs_size(l.f);
	ret = size < 0 ? -1 : size != SIZE ? 2 : lcheck(&l, 0, SIZE, 1);
	lclose(&l);
	return ret < 0 ? 1 : ret ? 2 : told != SIZE ? 3 : 0;
}

/* Every third piece, out of order, so that there are records enough to fill a live index more than once. */
static int write_some(void *arg)
{
	int no = *(int *)arg, nr = (SIZE / 100 - no + 2) / 3;
	struct lfile l = made("f");

	for (int i = 0; i < nr; i++)
		if (lfill(&l, (i * 1237 % nr * 3 + no) * 100, 100, 1) != 100)
			return 1;
	if (no == 0) /* it has the end of the file */
		kill(getpid(), SIGKILL);
	return lclose(&l);
}

static off_t index_len(void)
{
	char path[PATH_MAX];
	struct stat st;

	cr_assert(find_file("index.", path) && !stat(path, &st));
	return st.st_size;
}

/*
 * @before: what read_it() says of the damaged file, 0 or 1: of an index that is lost or damaged the logs say
 * what was in it.
 */
static void kill_at_each(const char *damage, int before, int stride)
{
	struct turn turn = turn_begin(stride);
	char saved[80];
	off_t len = 0;
	long nr;
	int code, got;

	scratch_in_memory = true;
	scratch_map("{small=0}");
	snprintf(saved, sizeof(saved), "%s.saved", scratch);
	for (int no = 2; no >= 0; no--)
		cr_assert_eq(in_child(write_some, &no), no == 0 ? 256 + SIGKILL : 0);
	if (*damage)
		shell("cd %s && %s", scratch, damage);
	got = in_child(read_it, NULL);
	cr_assert_eq(got, before, "%d", got);
	shell("cp -a %s %s", scratch, saved);
	for (nr = turn.nr;; nr += turn.step) {
		/* The stub stays the same inode, by which it is known who was writing. */
		shell("rm -rf %s/.plfs && cp -a %s/.plfs %s && cp %s/f %s/f", scratch, saved, scratch, saved,
		      scratch);
		calls_left = nr;
		code = in_child(repair_and_die, NULL);
		cr_assert(code == 0 || code == 256 + SIGKILL, "call %ld: %d", nr, code);
		got = in_child(read_it, NULL);
		cr_assert_leq(got, code ? before : 0, "killed at call %ld: it was %d, and is %d", nr, before,
			      got);
		got = in_child(repair_it, NULL);
		cr_assert_eq(got, 0, "killed at call %ld: the next repair says %d", nr, got);
		cr_assert_eq(in_child(read_it, NULL), 0, "killed at call %ld, and repaired", nr);
		len = len ? len : index_len();
		cr_assert(torn || index_len() == len,
			  "killed at call %ld: the index says something twice, or not", nr);
		if (!code)
			break;
	}
	cr_assert_gt(nr, torn ? 2 : 50);
	cr_log_info("%ld calls\n", nr);
	shell("rm -rf %s", saved);
	scratch_remove();
}

Test(crash_repair, what_a_killed_process_left_stays_readable_whichever_call_was_the_last, .timeout = 120)
{
	kill_at_each("", 0, 7);
}

Test(crash_repair, what_a_killed_process_left_stays_readable_whichever_write_was_torn, .timeout = 120)
{
	torn = true;
	kill_at_each("", 0, 1);
}

Test(crash_repair, an_index_that_is_lost_can_be_made_after_any_kill, .timeout = 120)
{
	kill_at_each("rm .plfs/*/*/hostdir.*/index.*", 0, 11);
}

Test(crash_repair, a_damaged_index_is_replaced_or_there_whichever_write_was_torn, .timeout = 120)
{
	torn = true;
	kill_at_each(
		"printf damage | dd of=$(ls .plfs/*/*/hostdir.*/index.*) bs=1 seek=30 conv=notrunc status=none",
		0, 1);
}
