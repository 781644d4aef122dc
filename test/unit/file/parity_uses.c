/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parity of logs in several backends, and what is done with their file: it is removed, cut, compacted,
 * flattened.
 */
#include "test/lib/three.h"

#include "core/backend/mount.h"
#include "core/plfs_admin.h"

#include <criterion/criterion.h>

static void by_process(void) { near_spread("process,parity=1"); }
static void by_file(void) { near_spread("file,parity=1"); }

TestSuite(parity_uses, .init = by_process, .fini = near_remove, .timeout = 600);
TestSuite(parity_uses_file, .init = by_file, .fini = near_remove, .timeout = 600);

/* ---- what is done with files ---- */

Test(parity_uses, a_chmod_holds)
{
	mode_t mode = 0640;
	struct stat st;

	three_make_covered();
	cr_assert_eq(in_child(image_chmod, &mode), 0);
	for (int nr = three_find("data."), i = 0; i < nr; i++)
		cr_assert(!stat(three_paths[i], &st) && (st.st_mode & 0777) == 0640, "%s", three_paths[i]);
	three_look_without_each(false);
}

Test(parity_uses, a_removed_file_leaves_nothing_in_any_backend)
{
	three_make_covered();
	cr_assert_eq(lunlink("a"), 0);
	cr_assert_eq(three_find("data.") + three_find("parity") + three_find("spread."), 0);
}

/* Versions before the first one made them. */
Test(parity_uses, a_seal_of_an_older_version_does_no_harm)
{
	char seal[PATH_MAX];
	mode_t mode = 0640;

	three_make_covered();
	three_find("spread.1.");
	three_path(seal, 0);
	memcpy(strstr(seal, "/spread.1.") + 1, "sealed", 6);
	three_shell("echo plfs-sealed 1 00000000 > '%s' %s", seal, "");
	three_look_without_each(false);
	cr_assert_eq(image_check(NULL), 0);
	cr_assert_eq(in_child(image_chmod, &mode), 0);
	cr_assert_eq(lunlink("a"), 0);
	cr_assert_eq(three_find("sealed.") + three_find("spread."), 0);
}

Test(parity_uses_file, parity_in_a_backend_without_logs_goes_with_the_file)
{
	three_write(0, 3, 1);
	cr_assert_eq(image_drain(), 3);
	cr_assert_eq(lunlink("a"), 0);
	cr_assert_eq(three_find("data.") + three_find("parity"), 0);
}

Test(parity_uses, a_truncation_to_zero_leaves_nothing_that_is_read)
{
	struct lfile l;

	three_make_covered();
	l = lopen("a", O_RDWR | O_TRUNC);
	cr_assert_eq(lclose(&l), 0);
	image_len = 0;
	three_make();
	cr_assert_lt(image_drain(), 50);
	cr_assert_lt(three_find("parity."), three_find("data."));
	three_look_without_each(false);
}

/* A process that was killed while it removed them has left their blocks. */
Test(parity_uses, a_group_of_void_logs_that_are_gone_goes)
{
	char index[PATH_MAX], kept[PATH_MAX];
	struct lfile l;

	three_make_covered();
	three_find("index.");
	three_path(index, 0);
	three_other(kept, 2);
	strcat(kept, ".kept");
	three_shell("cp '%s' '%s'", index, kept);
	l = lopen("a", O_RDWR | O_TRUNC);
	cr_assert_eq(lclose(&l), 0);
	three_shell("mv '%s' '%s'", kept, index);
	image_len = 0;
	cr_assert_eq(three_find("data."), 0);
	cr_assert_lt(image_drain(), 50);
	cr_assert_eq(three_find("parity."), 0);
	three_make();
	cr_assert_lt(image_drain(), 50);
	three_look_without_each(false);
}

Test(parity_uses, compaction_makes_parity_of_what_is_left)
{
	three_make();
	three_write(0, 6, 2);
	three_write(0, 5, 3);
	cr_assert_lt(image_drain(), 50);
	cr_assert_eq(lcompact("a"), 0);
	cr_assert_eq(image_look(), 0);
	cr_assert_lt(image_drain(), 50);
	cr_assert_eq(image_check(NULL), 0);
	cr_assert_leq(three_find("parity."), three_find("data."));
	three_look_without_each(false);
}

static int truncate_it(void *arg)
{
	struct lfile l = lopen("a", O_RDWR);

	return plfs_truncate(l.f, *(off_t *)arg) || lclose(&l);
}

Test(parity_uses, a_file_that_was_cut_stays_cut)
{
	off_t len = THREE_LEN + 5000;

	three_make_covered();
	cr_assert_eq(in_child(truncate_it, &len), 0);
	image_len = len;
	cr_assert_eq(image_look(), 0);
	cr_assert_lt(image_drain(), 50);
	three_look_without_each(false);
}

static int flatten_it(void *arg)
{
	struct plfs_progress watch = { .why = "" };
	char path[PATH_MAX];

	(void)arg;
	lpath("a", path);
	return plfs_flatten(AT_FDCWD, path, &watch) ? 1 : 0;
}

Test(parity_uses, a_file_is_flattened_by_parity_and_has_none_then)
{
	static unsigned char buf[IMAGE_MAX];
	char path[PATH_MAX];
	int fd;

	three_make_covered();
	three_lose(2, false);
	cr_assert_eq(in_child(flatten_it, NULL), 0);
	three_bring_back(2);
	lpath("a", path);
	fd = open(path, O_RDONLY);
	cr_assert_eq(read(fd, buf, IMAGE_MAX), image_len);
	close(fd);
	cr_assert(!memcmp(buf, image, (size_t)image_len));
	cr_assert_eq(three_count(scratch, "parity"), 0);
}

/* ---- a backend is given up ---- */

static int forget_it(void *arg)
{
	char path[PATH_MAX];
	unsigned nr = 0;
	struct plfs_mount *m = lpath("a", path);
	int ret = plfs_places_forget(m, AT_FDCWD, path, arg, &nr);

	return ret ? -ret : nr ? 0 : 1;
}

static void give_up(int i, bool empty)
{
	char path[PATH_MAX];

	three_other(path, i);
	cr_assert_eq(in_child(forget_it, path), EBUSY, "it is there");
	three_lose(i, empty);
	cr_assert_eq(in_child(forget_it, path), 0);
	cr_assert_eq(in_child(forget_it, path), 1, "nothing leads there any more");
}

Test(parity_uses, after_a_backend_was_given_up_parity_gives_its_bytes_and_a_repair_its_logs)
{
	for (int i = 2; i < 4; i++) {
		int nr;

		three_make_covered();
		nr = three_find("data.");
		give_up(i, i == 2);
		cr_assert_eq(image_look(), 0, "without %d", i);
		cr_assert_eq(image_check("parity"), 1);
		cr_assert_eq(image_repair("healed"), 0);
		cr_assert_eq(three_logs(1) + three_logs(5 - i), nr, "each is in a backend that is there");
		cr_assert_eq(image_check(NULL), 0);
		cr_assert_eq(image_look(), 0);
		three_lose(5 - i, true);
		cr_assert_lt(image_look(), 2, "bytes of two lost backends are never wrong");
		three_bring_back(5 - i);
		image_drain();
		three_lose(5 - i, false);
		cr_assert_eq(image_look(), 0, "after a drain another backend may be lost");
		three_bring_back(5 - i);
		three_bring_back(i);
		cr_assert_eq(lunlink("a"), 0);
		image_len = 0;
	}
}

/* What it has is older than what was written since. */
Test(parity_uses, a_backend_that_was_given_up_and_comes_back_does_no_harm)
{
	three_make_covered();
	give_up(2, false);
	cr_assert_eq(image_repair("healed"), 0);
	three_write(0, 2, 2);
	three_bring_back(2);
	cr_assert_eq(image_look(), 0);
	cr_assert_eq(image_check(NULL), 0);
	three_write_into(2, 3, image_write_piece);
	cr_assert_eq(image_look(), 0, "it leads there again");
	cr_assert_lt(image_drain(), 50);
	cr_assert_eq(image_check(NULL), 0);
	three_look_without_each(false);
	cr_assert_eq(lcompact("a"), 0);
	cr_assert_eq(image_look(), 0);
	cr_assert_eq(lunlink("a"), 0);
	cr_assert_eq(three_find("data.") + three_find("parity") + three_find("spread."), 0);
}

/* By drain --to home: no group has two logs of one backend then. */
Test(parity_uses, logs_that_came_home_get_other_parity)
{
	int nr;

	three_make_covered();
	cr_assert_eq(in_child(near_bring, NULL), 0);
	nr = three_logs(1);
	cr_assert_eq(three_find("data."), nr);
	cr_assert_eq(image_look(), 0);
	cr_assert_eq(image_check(NULL), 0);
	cr_assert_eq(image_drain(), 0, "nothing is to do");
	three_look_without_each(true);
	for (int i = 0; i < nr; i++) {
		char log[PATH_MAX];

		three_logs(1);
		three_path(log, i);
		three_shell("mv '%s' '%s/aside'", log, near_dir);
		cr_assert_eq(image_look(), 0, "%s", log);
		three_shell("mv '%s/aside' '%s'", near_dir, log);
	}
	cr_assert_eq(lunlink("a"), 0);
	cr_assert_eq(three_find("data.") + three_find("parity"), 0);
}

static int remove_orphans(void *arg, const char *top, const char *home)
{
	(void)home;
	return plfs_drain_place(plfs_mount_at(0), top, true, arg);
}

Test(parity_uses_file, parity_that_no_file_has_is_found)
{
	struct plfs_drain d = { 0 };
	char path[PATH_MAX];

	three_write(0, 3, 1);
	cr_assert_eq(image_drain(), 3);
	for (int i = 2; i < 4; i++) {
		three_other(path, i);
		cr_assert_eq(plfs_places_in(path, remove_orphans, &d), 0);
	}
	cr_assert_eq(d.nr_orphans, 0);
	lpath("a", path);
	unlink(path);
	three_shell("rm -r %s/.plfs/??%s", scratch, "");
	for (int i = 2; i < 4; i++) {
		three_other(path, i);
		cr_assert_eq(plfs_places_in(path, remove_orphans, &d), 0);
	}
	cr_assert_gt(d.nr_orphans, 0);
	cr_assert_eq(three_find("data.") + three_find("parity."), 0);
}

/* ---- a backend whose server does not answer ---- */

/* Any open of it gives @arg. */
static int read_unanswered(void *arg)
{
	size_t len = 60000;

	near_errno = (int)(long)arg;
	strcat(near_dir, "/2");
	near_go_elsewhere();
	return image_read(&len);
}

Test(parity_uses, without_an_answer_of_a_backend_reads_go_by_parity)
{
	static const int errors[] = { ENOTCONN, ETIMEDOUT, EHOSTDOWN, EHOSTUNREACH, EIO, ESTALE };

	three_make_covered();
	for (size_t i = 0; i < ARRAY_SIZE(errors); i++)
		cr_assert_eq(in_child(read_unanswered, (void *)(long)errors[i]), 0, "errno %d", errors[i]);
}
