/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A file whose owner or mode changes while another user's process makes its container, and stands still for
 * so long that nobody waits for it. Its owner must be able to use it afterwards.
 */
#include "test/lib/scratch.h"

#include "test/lib/calls.h"

#include "core/plfs_admin.h"

#include <criterion/criterion.h>

#define LEN 20000

enum { OWNER = 41001, WRITER, NEXT };

static bool due;
static char path[PATH_MAX];
static mode_t mode_after;
static uid_t owner_after;

static void setup(void)
{
	mode_t mode = 01777;
	char map[256];

	scratch_dir();
	cr_assert(!chmod(scratch, 01777) && !plfs_init_backend(scratch, &mode));
	snprintf(map, sizeof(map), "/p=%s{small=0}", scratch);
	cr_assert_eq(plfs_setup(map), 1);
}

TestSuite(claim_changed, .init = setup, .fini = scratch_remove, .timeout = 60);

/* As chown and chmod do it when they have waited. */
static int change_amid(enum call call)
{
	if (call != CALL_MKDIRAT || !due)
		return 0;
	due = false;
	if (seteuid(0) || chown(path, owner_after, OWNER) || chmod(path, mode_after) || seteuid(WRITER))
		_exit(2);
	return 0;
}

static int write_and_have_it_changed(void *arg)
{
	struct lfile l;

	(void)arg;
	if (setegid(WRITER) || seteuid(WRITER))
		return 3;
	l = lopen("a", O_RDWR);
	calls_intercept();
	on_call = change_amid;
	due = true;
	if (lfill(&l, 0, LEN, 1) != LEN || due)
		return 4;
	return lclose(&l) ? 5 : 0;
}

static int go_on(void *arg)
{
	struct lfile l;

	if (setegid(OWNER) || seteuid(*(uid_t *)arg) || ltry(&l, "a", O_RDWR))
		return 6;
	if (lcheck(&l, 0, LEN, 1) || lfill(&l, LEN, LEN, 1) != LEN || lcheck(&l, 0, 2 * LEN, 1))
		return 7;
	return lclose(&l) ? 8 : 0;
}

static void changed_amid_a_claim(uid_t owner, mode_t mode)
{
	struct lfile l;

	if (geteuid())
		cr_skip_test("only root can become another user");
	umask(0);
	l = made("a");
	lclose(&l);
	lpath("a", path);
	cr_assert(!chown(path, OWNER, OWNER) && !chmod(path, 0666 | S_ISVTX));
	owner_after = owner;
	mode_after = mode | S_ISVTX;
	cr_assert_eq(in_child(write_and_have_it_changed, NULL), 0);
	cr_assert_eq(in_child(go_on, &owner), 0);
	cr_assert_eq(lunlink("a"), 0);
}

Test(claim_changed, an_owner_who_closes_it_is_not_kept_out) { changed_amid_a_claim(OWNER, 0600); }
Test(claim_changed, nor_is_the_one_to_whom_it_is_given) { changed_amid_a_claim(NEXT, 0600); }
Test(claim_changed, nor_an_owner_who_closes_it_in_part) { changed_amid_a_claim(OWNER, 0644); }
