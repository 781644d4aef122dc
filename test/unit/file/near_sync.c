/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Syncs that leave logs near (sync=near): what is synced, and what is left after a restart, or in a place
 * that is lost. test/unit/write/power_near.c has power failures.
 */
#include "test/lib/near.h"

#include "core/backend/mount.h"

#include <criterion/criterion.h>

#define LEN 300000

static void setup(void) { near_setup(",drain=none,sync=near"); }

TestSuite(near_sync, .init = setup, .fini = near_remove, .timeout = 600);

static int write_synced(void *arg)
{
	struct lfile l = made("a");

	(void)arg;
	if (lfill(&l, 0, LEN, 1) != LEN || plfs_sync(l.f) || lfill(&l, LEN, LEN, 1) != LEN)
		return 1;
	return lclose(&l);
}

/* 1: all is right; 2: nothing can be read. */
static int look(void *arg)
{
	struct lfile l = lopen("a", O_RDONLY);
	int ret = lcheck(&l, 0, LEN, 1), rest = lcheck(&l, LEN, LEN, 1);

	(void)arg;
	if (plfs_size(l.f) != 2 * LEN)
		return 0;
	return lclose(&l) ? 0 : !ret && !rest ? 1 : ret == -EIO && rest == -EIO ? 2 : 3;
}

Test(near_sync, nothing_is_copied_home)
{
	cr_assert_eq(in_child(write_synced, NULL), 0);
	cr_assert_eq(near_count("data."), 1);
	cr_assert_eq(count_files("data."), 0);
	cr_assert_eq(count_files("index."), 1);
	cr_assert_eq(in_child(look, NULL), 1);
}

Test(near_sync, in_a_lost_place_it_is_an_error)
{
	cr_assert_eq(in_child(write_synced, NULL), 0);
	near_lose();
	cr_assert_eq(in_child(look, NULL), 2);
}

Test(near_sync, after_a_restart_it_is_read)
{
	cr_assert_eq(in_child(write_synced, NULL), 0);
	cr_assert_eq(after_reboot(look), 1);
}

/* ---- what is synced ---- */

#define SYNCED_MAX 100

static ino_t synced[SYNCED_MAX];
static unsigned nr_synced;

static int note_sync(int fd)
{
	struct stat st;

	if (nr_synced < SYNCED_MAX && !fstat(fd, &st))
		synced[nr_synced++] = st.st_ino;
	return 0;
}

static bool is_synced(const char *path)
{
	struct stat st;

	if (stat(path, &st))
		return false;
	for (unsigned i = 0; i < nr_synced; i++)
		if (synced[i] == st.st_ino)
			return true;
	return false;
}

/* The log's path, and each directory above it to that of near=. */
static unsigned nr_unsynced(void)
{
	char path[PATH_MAX];
	unsigned nr = 0;

	near_find("near.", path);
	nr += !is_synced(path);
	near_find("data.", path);
	while (strlen(path) >= strlen(near_dir)) {
		nr += !is_synced(path);
		*strrchr(path, '/') = '\0';
	}
	cr_assert(find_file("near.", path));
	return nr + !is_synced(path);
}

Test(near_sync, what_leads_to_the_log_is_synced_too)
{
	struct lfile l = made("a");

	sys.fsync = sys.fdatasync = note_sync;
	cr_assert_eq(lfill(&l, 0, LEN, 1), LEN);
	cr_assert_gt(nr_unsynced(), 8);
	cr_assert_eq(plfs_sync(l.f), 0);
	cr_assert_eq(nr_unsynced(), 0);
	cr_assert_eq(lclose(&l), 0);
}

static int write_unsynced(void *arg)
{
	struct lfile l = made("a");

	(void)arg;
	return lfill(&l, 0, LEN, 1) != LEN || lclose(&l);
}

Test(near_sync, what_others_wrote_is_synced_too)
{
	struct lfile l;

	cr_assert_eq(in_child(write_unsynced, NULL), 0);
	sys.fsync = sys.fdatasync = note_sync;
	l = lopen("a", O_RDWR);
	cr_assert_eq(plfs_sync(l.f), 0);
	cr_assert_eq(nr_unsynced(), 0);
	cr_assert_eq(count_files("data."), 0);
	cr_assert_eq(lclose(&l), 0);
}

static int sync_home(void *arg)
{
	struct lfile l = lopen("a", O_RDWR);

	(void)arg;
	mount_at(0)->near.sync = SYNC_HOME;
	return plfs_sync(l.f) || lclose(&l);
}

Test(near_sync, a_later_sync_home_copies_it)
{
	cr_assert_eq(in_child(write_synced, NULL), 0);
	cr_assert_eq(in_child(sync_home, NULL), 0);
	cr_assert_eq(count_files("data."), 1);
	near_lose();
	cr_assert_eq(in_child(look, NULL), 1);
}

/* A sync of what is lost is an error, once and again. */
Test(near_sync, a_sync_of_a_lost_log_fails)
{
	struct lfile l = made("a");

	cr_assert_eq(lfill(&l, 0, LEN, 1), LEN);
	near_lose();
	cr_assert_eq(plfs_sync(l.f), -EIO);
	cr_assert_eq(plfs_sync(l.f), -EIO);
	plfs_close(l.f);
	close(l.fd);
}
