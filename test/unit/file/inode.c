/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of inodes: calls that go through all files, and references beside descriptions.
 */
#include "test/lib/scratch.h"

#include "test/lib/calls.h"
#include "test/lib/flags.h"

#include "core/file/file.h"

#include <criterion/criterion.h>
#include <pthread.h>

TestSuite(inode, .init = scratch_setup, .fini = scratch_remove, .timeout = 60);

static int wait_in_fsync(enum call call)
{
	if (call == CALL_FSYNC || call == CALL_FDATASYNC) {
		raise_flag(&shared->claimed);
		await(&shared->done);
	}
	return 0;
}

static void *sync_all(void *arg)
{
	plfs_sync_all();
	return arg;
}

/* A sync of a large file takes seconds. */
Test(inode, a_sync_of_all_files_does_not_keep_others_from_being_opened_and_closed)
{
	struct lfile l = made("a"), old = made("old"), other;
	char path[PATH_MAX];
	pthread_t thread;

	cr_assert_eq(lfill(&l, 0, 1000, 1), 1000);
	cr_assert_eq(lfill(&old, 0, 1000, 2), 1000);
	share();
	calls_intercept();
	on_call = wait_in_fsync;
	cr_assert_eq(pthread_create(&thread, NULL, sync_all, NULL), 0);
	await(&shared->claimed);
	other = made("b");
	cr_assert_eq(lfill(&other, 0, 1000, 3), 1000);
	cr_assert_eq(lcheck(&other, 0, 1000, 3), 0);
	lclose(&other);
	cr_assert_eq(lcheck(&old, 0, 1000, 2), 0);
	lclose(&old); /* the next that would be synced */
	cr_assert_eq(plfs_unlink(lpath("b", path), AT_FDCWD, path), 0);
	raise_flag(&shared->done);
	pthread_join(thread, NULL);
	cr_assert_eq(lcheck(&l, 0, 1000, 1), 0);
	lclose(&l);
}

static struct inode *reference(const struct lfile *l)
{
	struct stat st;

	cr_assert_eq(fstat(l->fd, &st), 0);
	return inode_find(st.st_dev, st.st_ino);
}

Test(inode, the_container_goes_with_the_last_description_though_a_call_still_has_a_reference)
{
	struct lfile l = made("a"), again;
	struct inode *ino;
	char path[PATH_MAX];

	cr_assert_eq(lfill(&l, 0, 1000, 1), 1000);
	again = lopen("a", O_RDWR);
	ino = reference(&l);
	cr_assert_eq(plfs_unlink(lpath("a", path), AT_FDCWD, path), 0);
	lclose(&l);
	cr_assert_eq(lcheck(&again, 0, 1000, 1), 0);
	cr_assert_eq(count_files("data."), 1);
	lclose(&again);
	cr_assert_eq(count_files("data."), 0);
	inode_put(ino, NULL);
}

/* The name may lead to it again in between. */
Test(inode, that_is_opened_again_while_a_call_has_a_reference_goes_on_in_the_same_log)
{
	struct lfile l = made("a");
	struct inode *ino = reference(&l);

	cr_assert_eq(lfill(&l, 0, 1000, 1), 1000);
	lclose(&l);
	l = lopen("a", O_RDWR);
	cr_assert_neq(l.f->ino, ino);
	inode_put(ino, NULL);
	cr_assert_eq(lfill(&l, 500, 1000, 2), 1000);
	cr_assert_eq(lcheck(&l, 0, 500, 1) | lcheck(&l, 500, 1000, 2), 0);
	lclose(&l);
	cr_assert_eq(count_files("live."), 0);
}

/* A file that has the number of a removed one, which file systems give to the next. */
static struct lfile made_with_number(ino_t number)
{
	char name[16];
	struct stat st;

	for (int i = 0; i < 100; i++) {
		struct lfile l;

		snprintf(name, sizeof(name), "new%d", i);
		l = made(name);
		cr_assert_eq(fstat(l.fd, &st), 0);
		if (st.st_ino == number)
			return l;
		lclose(&l);
	}
	return (struct lfile){ .fd = -1 };
}

static int has_bytes_of_two(void *arg)
{
	struct lfile l;
	char name[16];

	(void)arg;
	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "new%d", i);
		if (ltry(&l, name, O_RDONLY))
			break;
		if (plfs_size(l.f) == 1000)
			return lcheck(&l, 0, 1000, 2);
		lclose(&l);
	}
	return 2;
}

Test(inode, of_a_removed_file_is_not_that_of_the_next_with_its_number)
{
	struct lfile l = made("a");
	struct inode *ino = reference(&l);
	ino_t number = ino->key.ino;

	cr_assert_eq(lfill(&l, 0, 3000, 1), 3000);
	lclose(&l);
	cr_assert_eq(lunlink("a"), 0);
	cr_assert_eq(count_files("data."), 0);
	l = made_with_number(number);
	if (l.fd < 0)
		cr_skip_test("numbers are not given again here");
	cr_assert_eq(plfs_size(l.f), 0);
	cr_assert_eq(lfill(&l, 0, 1000, 2), 1000);
	cr_assert_eq(plfs_size(l.f), 1000);
	cr_assert_eq(lcheck(&l, 0, 1000, 2), 0);
	cr_assert_eq(lclose(&l), 0);
	inode_put(ino, NULL);
	cr_assert_eq(in_child(has_bytes_of_two, NULL), 0);
}

static int has_no_inode_after_close(void *arg)
{
	struct lfile *l = arg;
	struct stat st;

	if (fstat(l->fd, &st) || lclose(l))
		return 1;
	return inode_find(st.st_dev, st.st_ino) != NULL;
}

Test(inode, a_child_has_no_references_of_its_parents_threads)
{
	struct lfile l = made("a");
	struct inode *ino = reference(&l);

	cr_assert_eq(lfill(&l, 0, 1000, 1), 1000);
	cr_assert_eq(in_child(has_no_inode_after_close, &l), 0);
	inode_put(ino, NULL);
	lclose(&l);
}
