/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Logs near, while home has no room for the records of them: what fails then has not been done, and what has
 * been done is known to other hosts.
 */
#include "test/lib/near.h"

#include "core/backend/mount.h"
#include "core/base/sys.h"

#include <criterion/criterion.h>

#include <signal.h>
#include <sys/uio.h>
#include <unistd.h>

#define LEN 300000
#define PART 100000

static void setup(void) { near_setup(",drain=none"); }

TestSuite(near_full, .init = setup, .fini = near_remove, .timeout = 120);

static bool is_full;
static ssize_t (*real_pwritev2)(int fd, const struct iovec *iov, int cnt, off_t off, int flags);

static ssize_t no_room_in_index(int fd, const struct iovec *iov, int cnt, off_t off, int flags)
{
	char link[64], path[PATH_MAX] = "";

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (!is_full || readlink(link, path, sizeof(path) - 1) < 0 || !strstr(path, "/index."))
		return real_pwritev2(fd, iov, cnt, off, flags);
	errno = ENOSPC;
	return -1;
}

/* From here on home is full for this process. */
static void fill_home(void)
{
	if (!real_pwritev2) {
		real_pwritev2 = sys.pwritev2;
		sys.pwritev2 = no_room_in_index;
	}
	is_full = true;
}

static void share(bool shared)
{
	char path[PATH_MAX];

	lpath("a", path)->store.remote = shared;
}

/* ---- truncation ---- */

static int read_whole(void *arg)
{
	struct lfile l = lopen("a", O_RDONLY);

	(void)arg;
	return plfs_size(l.f) != LEN || lcheck(&l, 0, LEN, 1) || lclose(&l);
}

static int cut_without_room(void *arg)
{
	struct lfile l = made("a");
	int ret;

	(void)arg;
	if (lfill(&l, 0, LEN, 1) != LEN || plfs_sync(l.f))
		return 1;
	fill_home();
	ret = plfs_truncate(l.f, PART);
	if (!ret) /* the test does not apply */
		return 2;
	if (ret != -ENOSPC || lcheck(&l, 0, LEN, 1))
		return 3;
	if (in_child(read_whole, NULL))
		return 4;
	is_full = false;
	return lclose(&l) ? 5 : 0;
}

Test(near_full, a_truncation_that_fails_has_not_been_done)
{
	for (int shared = 0; shared < 2; shared++) {
		share(shared);
		cr_assert_eq(in_child(cut_without_room, NULL), 0);
		cr_assert_eq(in_child(read_whole, NULL), 0);
		cr_assert_eq(lunlink("a"), 0);
	}
}

/* ---- appending ---- */

static ssize_t append(struct lfile *l, off_t off, off_t *end)
{
	static char buf[PART];
	const struct iovec iov = { buf, sizeof(buf) };

	pattern_fill(buf, sizeof(buf), off, 1);
	return plfs_appendv(l->f, &iov, 1, end);
}

static int append_without_room(void *arg)
{
	struct lfile l = lopen("a", O_WRONLY | O_CREAT | O_APPEND);
	off_t end;

	(void)arg;
	fill_home();
	if (append(&l, 0, &end) != PART || end != PART)
		return 1;
	return lclose(&l) ? 2 : 0;
}

static int append_elsewhere(void *arg)
{
	struct lfile l;
	off_t end;

	(void)arg;
	be_host("other");
	near_go_elsewhere();
	l = lopen("a", O_WRONLY | O_APPEND);
	if (append(&l, PART, &end) != PART)
		return 1;
	return end != 2 * PART ? 2 : lclose(&l);
}

static int read_both(void *arg)
{
	struct lfile l = lopen("a", O_RDONLY);

	(void)arg;
	return plfs_size(l.f) != 2 * PART || lcheck(&l, 0, 2 * PART, 1) || lclose(&l);
}

Test(near_full, who_appends_on_another_host_appends_behind_it)
{
	share(true);
	cr_assert_eq(in_child(append_without_room, NULL), 0);
	cr_assert_eq(in_child(append_elsewhere, NULL), 0);
	cr_assert_eq(in_child(read_both, NULL), 0);
}

/* ---- unlocking ---- */

/* An unlock that fails leaves the lock where it is, and others wait for it. */
static int unlock_without_room(void *arg)
{
	struct lfile l = made("a");

	(void)arg;
	fill_home();
	if (lfill(&l, 0, LEN, 1) != LEN || plfs_commit(l.f))
		return 1;
	if (in_child(read_whole, NULL))
		return 2;
	is_full = false;
	if (plfs_commit(l.f))
		return 3;
	return raise(SIGKILL);
}

static int size_at_home(void *arg)
{
	struct lfile l;

	(void)arg;
	be_host("other");
	near_go_elsewhere();
	l = lopen("a", O_RDONLY);
	return plfs_size(l.f) != LEN || lclose(&l);
}

Test(near_full, an_unlock_does_not_fail_and_the_next_makes_it_good)
{
	for (int shared = 0; shared < 2; shared++) {
		share(shared);
		cr_assert_eq(in_child(unlock_without_room, NULL), 256 + SIGKILL);
		share(true);
		cr_assert_eq(in_child(size_at_home, NULL), 0);
		cr_assert_eq(in_child(read_whole, NULL), 0);
		cr_assert_eq(lunlink("a"), 0);
	}
}
