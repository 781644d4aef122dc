/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a file's logs hold, for plfs stat, du and compact: each byte counts once, however often an index says
 * where it belongs.
 */
#include "test/lib/scratch.h"

#include "core/file/file.h"

#include <criterion/criterion.h>

#define LEN 100000

TestSuite(info, .init = scratch_setup, .fini = scratch_remove);

struct turn {
	int go[2], done[2];
};

/* Writes, closes when it is told to. */
static int write_and_wait(void *arg)
{
	struct turn *t = arg;
	struct lfile l = lopen("f", O_RDWR | O_CREAT);
	char c = 'w';

	for (off_t off = 0; off < LEN; off += 1000)
		if (lfill(&l, off, 1000, 1) != 1000)
			return 1;
	if (write(t->done[1], &c, 1) != 1 || read(t->go[0], &c, 1) != 1)
		return 1;
	for (off_t off = LEN; off < 2 * LEN; off += 1000)
		if (lfill(&l, off, 1000, 1) != 1000)
			return 1;
	return lclose(&l) != 0;
}

static uint64_t reclaimable(struct plfs_info *info)
{
	struct lfile l = lopen("f", O_RDONLY);
	uint64_t bytes;

	cr_assert_eq(plfs_get_info(l.f, info), 0);
	cr_assert_eq(plfs_get_reclaimable(l.f, info, &bytes), 0);
	lclose(&l);
	return bytes;
}

/* The one that syncs puts into the index what the other has in its live file; that one does it again. */
Test(info, counts_once_what_another_process_has_synced)
{
	struct plfs_compact k = { .dry = false };
	struct plfs_progress watch = { .arg = NULL };
	struct plfs_info info;
	char path[PATH_MAX], c;
	struct lfile l;
	struct turn t;
	pid_t pid;

	cr_assert(!pipe(t.go) && !pipe(t.done));
	pid = start_child(write_and_wait, &t);
	cr_assert_eq(read(t.done[0], &c, 1), 1);
	l = lopen("f", O_RDWR);
	cr_assert_eq(plfs_sync(l.f), 0);
	cr_assert_eq(reclaimable(&info), 0, "while it is open");
	cr_assert_eq(info.written_bytes, LEN);
	cr_assert_eq(write(t.go[1], "g", 1), 1);
	cr_assert_eq(wait_child(pid), 0);
	lclose(&l);
	cr_assert_eq(reclaimable(&info), 0);
	cr_assert_eq(info.written_bytes, 2 * LEN);
	lpath("f", path);
	cr_assert_eq(plfs_compact(path, &k, &watch), 1, "it has nothing to give back");
}

Test(info, counts_what_was_overwritten)
{
	struct plfs_info info;

	for (unsigned round = 1; round <= 3; round++) {
		struct lfile l = lopen("f", O_RDWR | O_CREAT);

		cr_assert_eq(lfill(&l, 0, LEN, round), LEN);
		cr_assert_eq(lfill(&l, 5000, 1000, round), 1000);
		lclose(&l);
	}
	cr_assert_eq(reclaimable(&info), 2 * LEN + 3 * 1000);
	cr_assert_eq(info.written_bytes, 3 * (LEN + 1000));
}

/* The size by plfs_get_info(), which is that of the map. */
static uint64_t size_told(bool *has_map)
{
	struct lfile l = lopen("f", O_RDONLY);
	struct plfs_info info;

	cr_assert_eq(plfs_get_info(l.f, &info), 0);
	*has_map = l.f->ino->v.r.loaded;
	cr_assert_eq((off_t)info.size, plfs_size(l.f));
	lclose(&l);
	return info.size;
}

Test(info, tells_the_size_of_a_closed_file_without_a_map)
{
	struct lfile l = lopen("f", O_RDWR | O_CREAT);
	bool has_map;

	cr_assert_eq(lfill(&l, LEN, LEN, 1), LEN);
	lclose(&l);
	cr_assert_eq(size_told(&has_map), 2 * LEN);
	cr_assert(!has_map);
	l = lopen("f", O_RDWR);
	cr_assert_eq(lfill(&l, 0, 1000, 1), 1000);
	lclose(&l);
	cr_assert_eq(size_told(&has_map), 2 * LEN);
	cr_assert(!has_map);
	l = lopen("f", O_RDWR | O_TRUNC);
	cr_assert_eq(lfill(&l, 0, 1000, 2), 1000);
	lclose(&l);
	cr_assert_eq(size_told(&has_map), 1000);
}

Test(info, tells_the_size_that_the_map_has)
{
	char path[PATH_MAX], c;
	struct lfile l = lopen("f", O_RDWR | O_CREAT);
	struct turn t;
	bool has_map;
	pid_t pid;

	cr_assert_eq(lfill(&l, 0, LEN, 1), LEN);
	cr_assert_eq(plfs_truncate(l.f, 3 * LEN), 0);
	lclose(&l);
	cr_assert_eq(size_told(&has_map), 3 * LEN);
	l = lopen("f", O_RDWR);
	cr_assert_eq(plfs_truncate(l.f, LEN / 2), 0);
	lclose(&l);
	cr_assert_eq(size_told(&has_map), LEN / 2);
	l = lopen("f", O_RDWR);
	cr_assert_eq(lfill(&l, LEN / 2, 1000, 1), 1000);
	cr_assert_eq(plfs_truncate(l.f, 2 * LEN), 0);
	lclose(&l);
	cr_assert_eq(size_told(&has_map), 2 * LEN);
	cr_assert(!pipe(t.go) && !pipe(t.done));
	pid = start_child(write_and_wait, &t);
	cr_assert_eq(read(t.done[0], &c, 1), 1);
	cr_assert_eq(kill(pid, SIGKILL), 0); /* its live file is left */
	wait_child(pid);
	cr_assert_eq(size_told(&has_map), 2 * LEN);
	lpath("f", path);
	cr_assert_eq(unlink(path), 0);
}

/* A power failure may take the stub's length back. */
Test(info, tells_the_size_by_the_records_where_the_stub_is_shorter)
{
	struct lfile l = lopen("f", O_RDWR | O_CREAT);
	char path[PATH_MAX];
	bool has_map;

	cr_assert_eq(lfill(&l, 0, LEN, 1), LEN);
	lclose(&l);
	lpath("f", path);
	cr_assert_eq(truncate(path, 4096 + 5000), 0);
	cr_assert_eq(size_told(&has_map), LEN);
	cr_assert(!has_map);
}
