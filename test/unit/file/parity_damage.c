/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parity of logs in several backends: whatever happens to a log, to parity, or to several of them, a read
 * gives right bytes or an error.
 */
#include "test/lib/spoil.h"
#include "test/lib/three.h"
#include "test/lib/turn.h"

#include "core/dropping/sums.h"

#include <criterion/criterion.h>

static void by_process(void) { near_spread("process,parity=1"); }

TestSuite(parity_damage, .init = by_process, .fini = near_remove, .timeout = 600);

/* ---- damage ---- */

/* Each log in half of the states, each state of several logs; what was there is there again. */
Test(parity_damage, whatever_happens_to_a_log_it_is_rebuilt, .timeout = 1800)
{
	char log[PATH_MAX], kept[PATH_MAX];
	int nr;

	three_make_covered();
	snprintf(kept, sizeof(kept), "%s/kept", near_dir);
	nr = three_find("data.");
	for (int i = 0; i < nr; i++)
		for (enum spoil how = (enum spoil)(i % 2); how < NR_SPOILS; how += 2) {
			if (!turn_takes(how / 2 + i / 2))
				continue;
			three_find("data.");
			three_path(log, i);
			three_shell("cp -p '%s' '%s'", log, kept);
			spoil(log, how);
			cr_assert_eq(image_look(), 0, "%s: %s", log, SPOIL_NAMES[how]);
			cr_assert_eq(image_check("parity"), 1, "%s: %s", log, SPOIL_NAMES[how]);
			cr_assert_eq(image_repair("healed"), 0, "%s: %s", log, SPOIL_NAMES[how]);
			three_shell("cmp '%s' '%s'", log, kept);
			three_shell("test $(stat -c %%a '%s') = $(stat -c %%a '%s')", log, kept);
			cr_assert_eq(image_check(NULL), 0, "%s: %s", log, SPOIL_NAMES[how]);
		}
	cr_assert_eq(three_find("damaged."), 0);
}

Test(parity_damage, whatever_happens_to_parity_it_is_made_anew, .timeout = 1800)
{
	three_make_covered();
	for (enum spoil how = 0; how < NR_SPOILS; how++) {
		int nr = three_find("parity.");

		for (int i = 0; i < nr; i++)
			spoil(three_paths[i], how);
		cr_assert_eq(image_look(), 0, "%s", SPOIL_NAMES[how]);
		cr_assert_eq(image_check(how == SPOIL_REMOVE ? "parity-missing" : "parity-damaged"),
			     how != SPOIL_REMOVE, "%s", SPOIL_NAMES[how]);
		cr_assert_eq(image_repair("parity"), 0, "%s", SPOIL_NAMES[how]);
		cr_assert_eq(image_check(NULL), 0, "%s", SPOIL_NAMES[how]);
		cr_assert_eq(three_find("parity."), nr, "%s", SPOIL_NAMES[how]);
		three_lose(2, false);
		cr_assert_eq(image_look(), 0, "%s", SPOIL_NAMES[how]);
		three_bring_back(2);
	}
}

/* Drains look whether parity is there. */
Test(parity_damage, parity_that_was_removed_is_made_by_the_next_drain)
{
	int nr;

	three_make_covered();
	nr = three_find("parity.");
	for (int i = 0; i < nr; i++)
		unlink(three_paths[i]);
	cr_assert_eq(image_drain(), nr);
	three_lose(3, false);
	cr_assert_eq(image_look(), 0);
	three_bring_back(3);
}

/* All logs and all parity: what a group has lost twice is an error. */
Test(parity_damage, with_damage_to_several_reads_give_right_bytes_or_an_error, .timeout = 1800)
{
	char save[PATH_MAX];
	size_t step = 20300;

	three_make_covered();
	snprintf(save, sizeof(save), "%s.save", near_dir);
	three_shell("rm -rf '%s'; mkdir '%s'", save, save);
	three_shell("cp -a '%s' '%s/home'", scratch, save);
	three_shell("cp -a '%s' '%s/near'", near_dir, save);
	for (enum spoil how = 0; how < NR_SPOILS; how++)
		for (int with_parity = 0; with_parity < 2; with_parity++) {
			int nr = three_find("data."), found;

			if (!turn_takes(how + (enum spoil)with_parity))
				continue;
			for (int i = with_parity; i < nr; i += 1 + with_parity)
				spoil(three_paths[i], how);
			nr = with_parity ? three_find("parity.") : 0;
			for (int i = 0; i < nr; i++)
				spoil(three_paths[i], how);
			found = in_child(image_read, &step);
			cr_assert(how == SPOIL_REMOVE ? found == 1 : found < 2, "%s", SPOIL_NAMES[how]);
			cr_assert_lt(image_repair(NULL), 2, "%s", SPOIL_NAMES[how]);
			cr_assert_lt(in_child(image_read, &step), 2, "%s: repaired", SPOIL_NAMES[how]);
			three_shell("find '%s' '%s' -mindepth 1 -delete", scratch, near_dir);
			three_shell("cp -a '%s/home/.' '%s'", save, scratch);
			three_shell("cp -a '%s/near/.' '%s'", save, near_dir);
			cr_assert_eq(in_child(image_read, &step), 0);
		}
	three_shell("rm -rf '%s' %s", save, "");
}

/* All data of a log is zeros, with the table of its checksums. */
static void wipe(const char *path)
{
	struct stat st;

	cr_assert(!stat(path, &st) && !truncate(path, 65536) && !truncate(path, st.st_size));
}

/* For in_child(): how many pieces are wrong, without an error. */
static int count_wrong(void *arg)
{
	static unsigned char buf[THREE_LEN];
	struct lfile l = lopen("a", O_RDONLY);
	int nr = 0;

	(void)arg;
	for (off_t off = 0; off < image_len; off += THREE_LEN) {
		ssize_t n = plfs_pread(l.f, buf, THREE_LEN, off);

		nr += n > 0 && memcmp(buf, image + off, (size_t)n);
	}
	return lclose(&l) ? 200 : nr;
}

/* Without their checksums the bytes of those logs are read as they are, with a line; not those of others. */
Test(parity_damage, a_log_that_lost_its_bytes_and_checksums_rebuilds_no_other)
{
	int nr;

	three_make_covered();
	nr = three_logs(2);
	for (int k = 0; k < nr; k++)
		wipe(three_paths[k]);
	three_lose(3, false);
	cr_assert_leq(in_child(count_wrong, NULL), nr);
	image_repair(NULL);
	cr_assert_leq(in_child(count_wrong, NULL), nr);
	three_bring_back(3);
	cr_assert_eq(image_look(), 0);
	image_repair(NULL);
	cr_assert_eq(image_look(), 0);
}

Test(parity_damage, damage_in_different_chunks_of_a_group_is_read_and_healed)
{
	int nr;

	three_make_covered();
	nr = three_find("data.");
	for (int i = 0; i < nr; i++)
		spoil_bit(three_paths[i], 65536 + 30000 + 65536 * (i % 4));
	cr_assert_lt(image_look(), 2);
	cr_assert_lt(image_repair(NULL), 2);
	cr_assert_lt(image_look(), 2);
}

Test(parity_damage, two_backends_that_are_gone_are_an_error_and_nothing_is_lost_by_a_repair)
{
	three_make_covered();
	three_lose(2, false);
	three_lose(3, true);
	cr_assert_eq(image_look(), 1);
	cr_assert_neq(image_repair(NULL), 0);
	cr_assert_lt(image_look(), 2);
	three_bring_back(2);
	three_bring_back(3);
	cr_assert_eq(image_look(), 0);
}

Test(parity_damage, a_damaged_record_leads_nowhere_and_is_made_anew)
{
	char record[PATH_MAX];
	off_t len;

	three_make_covered();
	three_find("parity");
	three_path(record, 0);
	for (int i = 0; i < three_nr_paths; i++)
		if (!strcmp(strrchr(three_paths[i], '/'), "/parity"))
			three_path(record, i);
	len = 0;
	for (struct stat st; !stat(record, &st) && len < st.st_size; len += 100)
		spoil_bit(record, len);
	cr_assert_eq(image_look(), 0);
	three_lose(2, false);
	cr_assert_eq(image_look(), 1);
	three_bring_back(2);
	cr_assert_lt(image_drain(), 50);
	three_lose(2, false);
	cr_assert_eq(image_look(), 0);
	three_bring_back(2);
}

/* The logs of a backend that is not there are those that the index names. */
Test(parity_damage, with_a_damaged_index_and_without_a_backend_nothing_is_read_or_repaired)
{
	char index[PATH_MAX];

	three_make_covered();
	if (three_find("index.global"))
		unlink(three_paths[0]);
	cr_assert_eq(three_find("index."), 1);
	three_path(index, 0);
	spoil_bit(index, 200);
	three_lose(2, false);
	cr_assert_eq(image_look(), 1);
	cr_assert_neq(image_repair(NULL), 0);
	cr_assert_eq(image_look(), 1);
	three_bring_back(2);
	cr_assert_eq(image_look(), 0);
	cr_assert_eq(image_repair(NULL), 0);
	three_look_without_each(false);
}
