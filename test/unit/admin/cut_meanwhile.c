/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A file of a killed process that another one truncates, and writes to, when a repair has looked at it and
 * has not locked it yet: the repair goes by what the file is then.
 */
#include "test/lib/calls.h"
#include "test/lib/scratch.h"

#include <criterion/criterion.h>

#define LEN 100000

TestSuite(cut_meanwhile, .init = scratch_setup, .fini = scratch_remove, .timeout = 60);

static int ask[2], answer[2];
static bool due;

static int write_and_die(void *arg)
{
	struct lfile l = made("f");

	(void)arg;
	return lfill(&l, 0, LEN, 1) != LEN || kill(getpid(), SIGKILL);
}

static int have_it_open(void *arg)
{
	int *fds = arg;
	struct lfile l = lopen("f", O_RDONLY);
	char c;

	return lcheck(&l, 0, LEN, 1) || write(fds[1], "o", 1) != 1 || read(fds[2], &c, 1) != 1 || lclose(&l);
}

/*
 * @arg: how many bytes are written behind the truncation to nothing. A third process has the file open
 * meanwhile, so that the void log stays.
 */
static int cut_when_asked(void *arg)
{
	size_t len = *(size_t *)arg;
	struct lfile l;
	int fds[4];
	pid_t pid;
	char c;

	if (read(ask[0], &c, 1) != 1 || pipe(fds) || pipe(fds + 2))
		return 1;
	pid = start_child(have_it_open, fds);
	if (read(fds[0], &c, 1) != 1)
		return 2;
	l = lopen("f", O_RDWR);
	if (plfs_truncate(l.f, 0) || lfill(&l, 0, len, 2) != (ssize_t)len || lclose(&l))
		return 3;
	return write(fds[3], "e", 1) != 1 || wait_child(pid) || write(answer[1], "d", 1) != 1;
}

/* The first lock that says that no other has the file open. */
static int cut_before_lock(int fd, int cmd, ...)
{
	struct flock *lk;
	va_list ap;
	char c;

	va_start(ap, cmd);
	lk = va_arg(ap, struct flock *);
	va_end(ap);
	if (due && cmd == F_OFD_SETLK && lk->l_type == F_WRLCK) {
		due = false;
		cr_assert(write(ask[1], "c", 1) == 1 && read(answer[0], &c, 1) == 1);
	}
	return calls_real.fcntl(fd, cmd, lk);
}

static void ignore(void *arg, const struct plfs_finding *f) { (void)arg, (void)f; }

static void repaired_while_it_is_cut(size_t len)
{
	struct plfs_check check = { .found = ignore, .repair = true, .quick = true };
	struct plfs_mount *m;
	char path[PATH_MAX];
	struct lfile l;
	pid_t pid;

	cr_assert_eq(in_child(write_and_die, NULL), 256 + SIGKILL);
	cr_assert(!pipe(ask) && !pipe(answer));
	pid = start_child(cut_when_asked, &len);
	m = lpath("f", path);
	calls_intercept();
	sys.fcntl = cut_before_lock;
	due = true;
	cr_assert_geq(plfs_check(m, AT_FDCWD, path, &check), 0);
	cr_assert(!due);
	cr_assert_eq(wait_child(pid), 0);
	cr_assert_eq(stat_size("f"), (off_t)len);
	l = lopen("f", O_RDONLY);
	cr_assert_eq(plfs_size(l.f), (off_t)len);
	cr_assert_eq(lcheck(&l, 0, len, 2), 0);
	lclose(&l);
}

Test(cut_meanwhile, to_nothing_it_stays_empty) { repaired_while_it_is_cut(0); }

Test(cut_meanwhile, what_is_written_then_is_all_of_it) { repaired_while_it_is_cut(LEN / 2); }
