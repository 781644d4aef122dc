/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two parity files of each group (parity=2): any two of what it is made of, logs and parity files, may be
 * lost or damaged at a time.
 */
#include "test/lib/spoil.h"
#include "test/lib/three.h"

#include "core/base/gf256.h"
#include "core/backend/mount.h"
#include "core/plfs_admin.h"

#include <criterion/criterion.h>

static void of_four(void)
{
	near_last = 4;
	near_spread("process,parity=2,drain=none");
}

static void of_five(void)
{
	near_last = 5;
	near_spread("process,parity=2,drain=none");
}

static void of_one(void)
{
	near_last = 4;
	near_spread("process,parity=1,drain=none");
}

TestSuite(parity_two, .init = of_four, .fini = near_remove, .timeout = 600);
TestSuite(parity_two_of_five, .init = of_five, .fini = near_remove, .timeout = 600);
TestSuite(parity_one_then_two, .init = of_one, .fini = near_remove, .timeout = 600);

/* ---- the field ---- */

Test(gf256, each_element_but_0_has_an_inverse_and_powers_of_2_are_all_of_them)
{
	bool seen[256] = { false };

	for (unsigned n = 0; n < 255; n++) {
		uint8_t a = gf256_pow2(n);

		cr_assert(a && !seen[a], "2^%u", n);
		seen[a] = true;
		cr_assert_eq(gf256_mul(a, gf256_inverse(a)), 1);
		cr_assert_eq(gf256_double(a), gf256_mul(a, 2));
	}
}

Test(gf256, bytes_are_multiplied_as_single_ones)
{
	uint8_t from[300], to[300], twice[300];

	for (unsigned times = 0; times < 256; times += 5) {
		for (unsigned i = 0; i < sizeof(from); i++) {
			from[i] = twice[i] = (uint8_t)(i * 7);
			to[i] = (uint8_t)i;
		}
		gf256_add_times(to, from, (uint8_t)times, sizeof(to));
		gf256_double_bytes(twice, sizeof(twice));
		for (unsigned i = 0; i < sizeof(from); i++) {
			cr_assert_eq(to[i], (uint8_t)i ^ gf256_mul(from[i], (uint8_t)times));
			cr_assert_eq(twice[i], gf256_mul(from[i], 2));
		}
	}
}

/* ---- losses ---- */

static void read_without_each_two(bool empty)
{
	for (int i = 2; i <= near_last; i++)
		for (int k = i + 1; k <= near_last; k++) {
			three_lose(i, empty);
			three_lose(k, !empty);
			cr_assert_eq(image_look(), 0, "without %d and %d", i, k);
			cr_assert_lt(image_check(NULL), 2, "without %d and %d", i, k);
			three_bring_back(i);
			three_bring_back(k);
		}
}

static void whichever_two_are_lost(void)
{
	three_make_covered();
	read_without_each_two(false);
	read_without_each_two(true);
	cr_assert_eq(image_check(NULL), 0);
	cr_assert_eq(image_drain(), 0, "there is nothing to do");
}

Test(parity_two, whichever_two_backends_are_lost_the_file_is_read) { whichever_two_are_lost(); }
Test(parity_two_of_five, whichever_two_backends_are_lost_the_file_is_read) { whichever_two_are_lost(); }

Test(parity_two, three_lost_backends_are_an_error_and_nothing_is_lost_by_a_repair)
{
	three_make_covered();
	for (int i = 2; i <= 4; i++)
		three_lose(i, i == 3);
	cr_assert_eq(image_look(), 1);
	cr_assert_neq(image_repair(NULL), 0);
	cr_assert_lt(image_look(), 2);
	for (int i = 2; i <= 4; i++)
		three_bring_back(i);
	cr_assert_eq(image_look(), 0);
}

/* A backend is away, and of each log in another one that is there a byte is wrong. */
static void read_and_healed_with_damage(void)
{
	for (int i = 2; i <= near_last; i++) {
		int nr;

		three_lose(i, false);
		nr = three_logs(i == near_last ? 2 : i + 1);
		cr_assert_gt(nr, 0);
		for (int k = 0; k < nr; k++)
			spoil_bit(three_paths[k], 65536 + 20000);
		cr_assert_eq(image_look(), 0, "%d", i);
		three_bring_back(i);
		cr_assert_eq(image_look(), 0, "%d", i);
		cr_assert_eq(image_repair("healed"), 0, "%d", i);
		cr_assert_eq(image_check(NULL), 0, "%d", i);
	}
}

Test(parity_two, with_a_backend_away_a_damaged_log_is_read_and_healed)
{
	three_make_covered();
	read_and_healed_with_damage();
}

Test(parity_two_of_five, with_a_backend_away_a_damaged_log_is_read_and_healed)
{
	three_make_covered();
	read_and_healed_with_damage();
}

Test(parity_two, a_repair_makes_the_logs_of_two_backends_at_home)
{
	three_make_covered();
	three_lose(2, false);
	three_lose(4, true);
	cr_assert_eq(image_repair("healed"), 0);
	cr_assert_eq(image_look(), 0);
	three_lose(3, false);
	cr_assert_lt(image_look(), 2);
	for (int i = 2; i <= 4; i++)
		three_bring_back(i);
	cr_assert_eq(image_look(), 0);
	cr_assert_lt(image_drain(), 50);
	cr_assert_eq(image_check(NULL), 0);
	read_without_each_two(false);
	cr_assert_eq(lunlink("a"), 0);
	cr_assert_eq(three_find("data.") + three_find("parity."), 0);
}

/* All parity in one backend. */
static int spoil_parity(enum spoil how)
{
	char path[PATH_MAX];
	int i = 1, nr = 0;

	while (!nr && i < near_last) {
		three_other(path, ++i);
		nr = three_count(path, "parity.");
	}
	for (int k = 0; k < nr; k++)
		spoil(three_paths[k], how);
	cr_assert_gt(nr, 0);
	return i;
}

Test(parity_two, parity_that_is_damaged_or_gone_is_made_anew_and_each_by_itself)
{
	three_make_covered();
	for (enum spoil how = 0; how < NR_SPOILS; how += 2) {
		int nr = three_find("parity."), other = spoil_parity(how) == 3 ? 4 : 3;

		three_lose(other, false);
		cr_assert_eq(image_look(), 0, "%s", SPOIL_NAMES[how]);
		three_bring_back(other);
		cr_assert_eq(image_repair("parity"), 0, "%s", SPOIL_NAMES[how]);
		cr_assert_eq(three_find("parity."), nr, "%s", SPOIL_NAMES[how]);
		read_without_each_two(false);
	}
}

Test(parity_two, parity_that_was_removed_is_made_by_the_next_drain)
{
	int nr;

	three_make_covered();
	nr = three_find("parity.");
	for (int i = 0; i < nr; i += 2)
		unlink(three_paths[i]);
	cr_assert_geq(image_drain(), nr / 2);
	cr_assert_eq(image_check(NULL), 0);
	read_without_each_two(false);
}

/* With less backends there than that each log has both: the next drain makes what lacks. */
Test(parity_two, what_lacks_while_backends_are_away_the_next_drain_makes)
{
	three_make();
	three_lose(2, false);
	three_lose(3, false);
	cr_assert_geq(image_drain(), 50, "not all has both");
	three_bring_back(2);
	three_bring_back(3);
	cr_assert_lt(image_drain(), 50);
	cr_assert_eq(image_check(NULL), 0);
	read_without_each_two(true);
	cr_assert_eq(image_drain(), 0);
}

Test(parity_two, a_log_that_is_continued_has_both_again_after_a_drain)
{
	three_make_covered();
	three_write_into(2, 2, image_write_piece);
	three_write_into(4, 3, image_write_piece);
	cr_assert_lt(image_drain(), 50);
	read_without_each_two(false);
	cr_assert_eq(lcompact("a"), 0);
	cr_assert_lt(image_drain(), 50);
	cr_assert_eq(image_look(), 0);
	read_without_each_two(false);
	cr_assert_eq(image_check(NULL), 0);
}

/* ---- another mapping ---- */

static int drain_with(void *arg)
{
	struct plfs_drain d = { 0 };
	struct plfs_mount *m = NULL;
	char map[8 * PATH_MAX], path[PATH_MAX];

	snprintf(map, sizeof(map), "/q=%s,%s/2,%s/3,%s/4{small=0,spread=process,parity=%d,drain=none}",
		 scratch, near_dir, near_dir, near_dir, *(int *)arg);
	if (plfs_setup(map) < 1 || plfs_path_map("/q/a", path, &m) != 1)
		return 100;
	return plfs_drain_file(m, AT_FDCWD, path, &d) || d.nr_left || d.nr_lost ? 101 : (int)d.nr_parity;
}

static int drain_as(int parity)
{
	pid_t pid = fork_child();

	if (!pid)
		_exit(drain_with(&parity));
	return wait_child(pid);
}

Test(parity_one_then_two, a_mapping_that_wants_more_has_it_made_and_one_that_wants_less_keeps_it)
{
	int nr;

	three_make_covered();
	nr = three_find("parity.");
	cr_assert_gt(drain_as(2), nr, "smaller groups, and two of each");
	nr = three_find("parity.");
	cr_assert_eq(image_drain(), 0);
	cr_assert_eq(three_find("parity."), nr);
	read_without_each_two(false);
}
