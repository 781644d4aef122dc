/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies of stubs that were made without the library: whatever becomes of the copy, the original keeps its
 * container. What has only got another name is no copy.
 */
#include "test/lib/scratch.h"

#include "core/backend/stub.h"
#include "core/backend/stub_lock.h"

#include <criterion/criterion.h>

#define LEN 100000

TestSuite(stub_copies, .init = scratch_setup, .fini = scratch_remove);

static char original[PATH_MAX], copy[PATH_MAX];

/* /p/a, and /p/b, a copy of its stub. */
static void make_copy(void)
{
	char command[3 * PATH_MAX];
	struct lfile l = made("a");

	cr_assert_eq(lfill(&l, 0, LEN, 1), LEN);
	lclose(&l);
	lpath("a", original);
	lpath("b", copy);
	snprintf(command, sizeof(command), "cp -p '%s' '%s'", original, copy);
	cr_assert_eq(system(command), 0);
}

static void assert_original_is_whole(void)
{
	struct lfile l = lopen("a", O_RDONLY);

	cr_assert_eq(lcheck(&l, 0, LEN, 1), 0);
	lclose(&l);
	cr_assert_eq(lunlink("a"), 0);
	cr_assert_eq(count_files("data."), 0, "it goes with the original");
}

static struct stub header(const char *path)
{
	int fd = open(path, O_RDONLY);
	struct stub stub;

	cr_assert_eq(stub_read(fd, &stub), 0);
	close(fd);
	return stub;
}

Test(stub_copies, reading_a_copy_is_reading_the_original)
{
	struct lfile l;

	make_copy();
	l = lopen("b", O_RDONLY);
	cr_assert_eq(lcheck(&l, 0, LEN, 1), 0);
	lclose(&l);
	assert_original_is_whole();
}

Test(stub_copies, removing_a_copy_keeps_the_container)
{
	make_copy();
	cr_assert_eq(lunlink("b"), 0);
	assert_original_is_whole();
}

Test(stub_copies, closing_a_copy_without_a_name_keeps_the_container)
{
	struct lfile l;

	make_copy();
	l = lopen("b", O_RDONLY);
	cr_assert_eq(lunlink("b"), 0);
	lclose(&l);
	assert_original_is_whole();
}

static int open_and_exit(void *arg)
{
	struct lfile l = lopen("b", O_RDONLY);

	(void)arg;
	return !l.f || lunlink("b");
}

Test(stub_copies, exiting_with_a_copy_without_a_name_keeps_the_container)
{
	make_copy();
	cr_assert_eq(in_child(open_and_exit, NULL), 0);
	assert_original_is_whole();
}

Test(stub_copies, renaming_over_a_copy_keeps_the_container)
{
	struct lfile l;

	make_copy();
	l = made("c");
	lclose(&l);
	cr_assert_eq(lrename("c", "b"), 0);
	assert_original_is_whole();
}

Test(stub_copies, flattening_a_copy_keeps_the_container)
{
	struct stat st;

	make_copy();
	cr_assert_eq(plfs_flatten(AT_FDCWD, copy, NULL), 0);
	cr_assert(!stat(copy, &st) && st.st_size == LEN && !plfs_maybe_stub(st.st_mode));
	assert_original_is_whole();
}

Test(stub_copies, moving_a_copy_into_its_body_keeps_the_container)
{
	struct lfile l;

	make_copy();
	l = lopen("b", O_RDWR);
	cr_assert_eq(plfs_in_body(l.f, PLFS_MAP_WRITE), 1);
	cr_assert_eq(lcheck(&l, 0, LEN, 1), 0);
	lclose(&l);
	assert_original_is_whole();
}

Test(stub_copies, truncating_a_copy_to_nothing_keeps_the_logs)
{
	struct lfile l;

	make_copy();
	l = lopen("b", O_RDWR | O_TRUNC);
	cr_assert_eq(plfs_size(l.f), 0);
	lclose(&l);
	assert_original_is_whole();
}

Test(stub_copies, other_names_are_no_copies)
{
	char link_name[PATH_MAX + 5];

	make_copy();
	cr_assert_eq(unlink(copy), 0);
	cr_assert_eq(lrename("a", "c"), 0);
	lpath("c", original);
	snprintf(link_name, sizeof(link_name), "%s.too", original);
	cr_assert_eq(link(original, link_name), 0);
	cr_assert_eq(lunlink("c"), 0);
	cr_assert_eq(count_files("data."), 1);
	cr_assert_eq(lunlink("c.too"), 0);
	cr_assert_eq(count_files("data."), 0);
}

Test(stub_copies, every_header_keeps_the_number)
{
	struct lfile l;
	struct stub stub;
	struct stat st;
	int fd;

	make_copy();
	cr_assert(!stat(original, &st));
	stub = header(original);
	cr_assert_eq(stub.number, st.st_ino);
	cr_assert(!stub_is_copy(&stub, st.st_ino));
	cr_assert(!stat(copy, &st) && stub_is_copy(&stub, st.st_ino));
	l = lopen("a", O_RDWR | O_TRUNC);
	lclose(&l);
	cr_assert_neq(header(original).generation_ns, stub.generation_ns);
	cr_assert_eq(header(original).number, stub.number, "after a truncation");
	fd = open(original, O_RDWR);
	cr_assert_eq(stub_begin_move(fd, &stub, true), 0);
	close(fd); /* died */
	cr_assert(header(original).moving);
	cr_assert_eq(header(original).number, stub.number, "while it is moved");
	fd = open(original, O_RDWR);
	cr_assert_eq(stub_clear_moving(fd, &stub), 0);
	close(fd);
	cr_assert(!header(original).moving);
	cr_assert_eq(header(original).number, stub.number, "after a move that was given up");
}
