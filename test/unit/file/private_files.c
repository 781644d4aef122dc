/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Private files of this user under the names of what processes share, as one who may write the logical file
 * could move them there: they keep their bytes and their mode. What is left unfinished by a killed process is
 * no such file. test/hostile moves at random, and as other users.
 */
#include "test/lib/hostile.h"

#include "core/dropping/owner.h"

TestSuite(private_files, .init = hostile_setup, .fini = scratch_remove, .timeout = 120);

static struct content {
	const char *what;
	uint8_t first;
	size_t len;
} contents[] = {
	{ "nothing", 0, 0 },
	{ "eight bytes like a stamp", 1, 8 },
	{ "a page of zeros but for a stamp", 7, 4096 },
	{ "zeros", 0, 4096 },
	{ "zeros, as long as a notice", 0, 20480 },
	{ "zeros, as long as a table of writers", 0, 65536 },
};

static char path[PATH_MAX];
static uint8_t was[65536], is[65536 + 1];

static void put_private(const struct content *content)
{
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);

	memset(was, 0, sizeof(was));
	was[0] = content->first;
	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, was, content->len), (ssize_t)content->len);
	close(fd);
}

static void expect_private(const struct content *content, const char *after)
{
	struct stat st;
	int fd = open(path, O_RDONLY);

	cr_assert(!fstat(fd, &st));
	cr_assert_eq(st.st_mode & 07777, 0600, "%s of %s: mode %o", after, content->what, st.st_mode);
	cr_assert_eq(read(fd, is, sizeof(is)), (ssize_t)content->len, "%s of %s: its length", after,
		     content->what);
	cr_assert_eq(memcmp(was, is, content->len), 0, "%s of %s: its bytes", after, content->what);
	close(fd);
}

static int use(void *arg)
{
	struct lfile l;
	off_t end;

	(void)arg;
	msg_is_muted = true;
	if (ltry(&l, "file", O_RDWR))
		return 1;
	lfill(&l, 2000, 10, 2);
	plfs_sync(l.f);
	lappend(&l, "x", 1, &end);
	lcheck(&l, 0, 10, 1);
	plfs_truncate(l.f, 1500);
	lclose(&l);
	return 0;
}

/* As those of its stub, which all may write from then on; or its owner alone. */
static int change_modes(void *arg)
{
	char file[PATH_MAX];
	struct container c;
	struct stat st;

	msg_is_muted = true;
	lpath("file", file);
	if (stat(file, &st))
		return 1;
	container_init_for(&c, &hostile_store, hostile_container.id, &st);
	c.mode = 0644;
	container_chmod(&c, *(mode_t *)arg);
	return 0;
}

static mode_t open_to_all = 0666, closed = 0600;

/* @at: its path in the container; or @prefix: of the file that it stands for. */
static void are_left_alone(const char *prefix, const char *at)
{
	for (size_t i = 0; i < ARRAY_SIZE(contents); i++) {
		hostile_file();
		if (prefix)
			strcpy(path, instead_of(prefix));
		else
			strcpy(path, in_container(at));
		unlink(path);
		put_private(&contents[i]);
		cr_assert_eq(in_child(use, NULL), 0);
		expect_private(&contents[i], "a use");
		cr_assert_eq(in_child(change_modes, &open_to_all), 0);
		expect_private(&contents[i], "a chmod");
		cr_assert_eq(in_child(change_modes, &closed), 0);
		unlink(path);
		lunlink("file");
	}
}

Test(private_files, under_the_name_of_a_notice_are_left_alone) { are_left_alone("notice.", NULL); }
Test(private_files, under_the_name_of_a_node_index_are_left_alone) { are_left_alone("index.", NULL); }
Test(private_files, under_the_name_of_a_log_are_left_alone) { are_left_alone("data.", NULL); }
Test(private_files, under_the_name_of_the_lock_are_left_alone) { are_left_alone(NULL, "lock"); }
Test(private_files, under_the_name_of_a_kept_map_are_left_alone_or_lose_their_name)
{
	struct content *content = &contents[3];

	hostile_file();
	strcpy(path, in_container("index.global"));
	put_private(content);
	cr_assert_eq(in_child(change_modes, &open_to_all), 0);
	expect_private(content, "a chmod");
	cr_assert_eq(in_child(use, NULL), 0);
	cr_assert_neq(access(path, F_OK), 0, "what cannot be revoked goes");
}

static int make_it(void *arg)
{
	struct lfile l = made("file");
	int ret = lfill(&l, 0, LEN, 1) != LEN;

	(void)arg;
	return lclose(&l) || ret;
}

/* A process has it mapped for good: so this one never has. */
Test(private_files, under_the_name_of_a_table_of_writers_are_left_alone)
{
	for (size_t i = 0; i < ARRAY_SIZE(contents); i++) {
		struct stat st;

		cr_assert_eq(in_child(make_it, NULL), 0);
		cr_assert(find_file("writers.", path));
		unlink(path);
		put_private(&contents[i]);
		cr_assert_eq(in_child(use, NULL), 0);
		expect_private(&contents[i], "a use");
		lpath("file", path);
		cr_assert(!stat(path, &st));
		cr_assert_gt(st.st_size, PLFS_BODY_OFF + 1000, "the write itself is all right");
		cr_assert(find_file("writers.", path));
		unlink(path);
		lunlink("file");
	}
}

/* ---- what is ours, and not finished ---- */

static int write_more(void *arg)
{
	struct lfile l = lopen("file", O_RDWR);
	int ret = lfill(&l, 2000, 10, 1) != 10 || lcheck(&l, 2000, 10, 1);

	(void)arg;
	return lclose(&l) || ret;
}

static void are_taken_over(const char *prefix, mode_t mode)
{
	char name[PATH_MAX];
	struct stat st;
	int fd;

	cr_assert_eq(in_child(make_it, NULL), 0);
	cr_assert(find_file(prefix, name));
	cr_assert(!stat(name, &st));
	cr_assert_eq(st.st_mode & 07777, mode, "%o", st.st_mode);
	cr_assert_eq(unlink(name), 0);
	fd = open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
	cr_assert_eq(fchmod(fd, mode), 0);
	close(fd);
	cr_assert_eq(in_child(write_more, NULL), 0);
	cr_assert(!stat(name, &st));
	cr_assert_gt(st.st_size, 0);
	expect(LEN);
}

Test(private_files, are_told_from_a_notice_of_which_nothing_was_written) { are_taken_over("notice.", 02644); }
Test(private_files, are_told_from_a_node_index_of_which_nothing_was_written)
{
	are_taken_over("index.", 02644);
}
Test(private_files, are_told_from_a_table_of_which_nothing_was_written)
{
	are_taken_over("writers.", 02644);
}
