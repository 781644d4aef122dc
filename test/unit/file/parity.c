/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parity of logs in several backends (parity=1): what is lost with one of them is read and made anew by it;
 * nothing that it does not cover is taken for zeros or older bytes. test/crash/parity.c kills who makes it.
 */
#include "test/lib/spoil.h"
#include "test/lib/three.h"

#include "core/backend/mount.h"
#include "core/base/sys.h"
#include "core/dropping/sums.h"
#include "core/plfs_admin.h"

#include <criterion/criterion.h>

static void by_process(void) { near_spread("process,parity=1"); }
static void by_host(void) { near_spread("host,parity=1"); }
static void by_file(void) { near_spread("file,parity=1"); }

TestSuite(parity, .init = by_process, .fini = near_remove, .timeout = 600);
TestSuite(parity_host, .init = by_host, .fini = near_remove, .timeout = 600);
TestSuite(parity_file, .init = by_file, .fini = near_remove, .timeout = 600);

/* ---- making ---- */

Test(parity, drain_covers_each_closed_log_once)
{
	int nr;

	three_make();
	nr = three_find("data.");
	cr_assert_eq(three_find("parity."), 0);
	cr_assert_lt(image_drain(), 50);
	cr_assert_geq(three_find("parity."), (nr + 1) / 2);
	cr_assert_lt(three_find("parity."), nr, "some have a partner");
	cr_assert_eq(image_drain(), 0, "there is nothing to do");
	cr_assert_eq(image_check(NULL), 0);
	cr_assert_eq(image_look(), 0);
}

Test(parity, the_stub_says_that_there_is_more_as_soon_as_there_is_a_container)
{
	unsigned char compat = 0;
	char path[PATH_MAX];
	int fd;

	image_write(0, THREE_LEN, 1);
	lpath("a", path);
	fd = open(path, O_RDONLY);
	cr_assert(fd >= 0 && pread(fd, &compat, 1, 16) == 1);
	close(fd);
	cr_assert(compat & 4);
}

Test(parity, an_open_log_has_none)
{
	struct lfile l = made("a");

	cr_assert_eq(lfill(&l, 0, THREE_LEN, 1), THREE_LEN);
	image_note(0, THREE_LEN, 1);
	image_drain();
	cr_assert_eq(three_find("parity."), 0);
	cr_assert_eq(lclose(&l), 0);
	cr_assert_eq(image_drain(), 1);
	cr_assert_eq(image_check(NULL), 0);
}

static int drain_patiently(void *arg)
{
	struct plfs_drain d = { .patient = true };
	char path[PATH_MAX];
	struct plfs_mount *m = lpath("a", path);

	(void)arg;
	return plfs_drain_file(m, AT_FDCWD, path, &d) ? 100 : (int)d.nr_waiting + 10 * (int)d.nr_parity;
}

Test(parity, a_helper_waits_for_partners)
{
	image_write(0, THREE_LEN, 1);
	cr_assert_eq(in_child(drain_patiently, NULL), 1);
	cr_assert_eq(three_find("parity."), 0);
	cr_assert_eq(image_drain(), 1);
	cr_assert_eq(in_child(drain_patiently, NULL), 0);
}

Test(parity_file, a_log_without_a_partner_is_copied)
{
	three_write(0, 3, 1);
	cr_assert_eq(image_drain(), 3);
	cr_assert_eq(image_check(NULL), 0);
	three_look_without_each(false);
}

static const char *host = "elsewhere";

static int write_elsewhere(void *arg)
{
	be_host(host);
	return image_write_piece(arg);
}

/* Each host has one backend for all its logs: the partners are of other hosts. */
Test(parity_host, logs_of_several_hosts_form_groups)
{
	char names[30][16];
	int nr = 0;

	for (; nr < 3 || !three_logs(1) || !three_logs(2) || !three_logs(3); nr++) {
		struct image_piece p = { (off_t)nr * THREE_LEN, THREE_LEN, 1 };

		cr_assert_lt(nr, 25);
		snprintf(names[nr], sizeof(names[nr]), "h%d", nr);
		host = names[nr];
		cr_assert_eq(in_child(write_elsewhere, &p), 0);
		image_note(p.off, p.len, p.round);
	}
	cr_assert_lt(image_drain(), nr);
	three_look_without_each(true);
}

/* ---- a backend is gone ---- */

Test(parity, whichever_backend_is_lost_the_file_is_read)
{
	three_make_covered();
	for (int i = 2; i < 4; i++)
		for (int empty = 0; empty < 2; empty++) {
			three_lose(i, empty);
			cr_assert_eq(image_look(), 0, "%d", i);
			cr_assert_eq(image_check("parity"), 1, "%d", i);
			three_bring_back(i);
			cr_assert_eq(image_check(NULL), 0);
		}
}

static int read_in_new_mapping(void *arg)
{
	char path[PATH_MAX], map[4 * PATH_MAX];
	struct plfs_mount *m = NULL;
	static unsigned char buf[IMAGE_MAX];
	struct lfile l;
	ssize_t n;

	(void)arg;
	snprintf(map, sizeof(map), "/q=%s,%s/2,%s/3{small=0,spread=process,parity=1}", scratch, near_dir,
		 near_dir);
	if (plfs_setup(map) < 1 || plfs_path_map("/q/a", path, &m) != 1)
		return 100;
	l.fd = plfs_open(m, AT_FDCWD, path, O_RDWR, 0644, &l.f);
	n = l.fd < 0 ? l.fd : plfs_pread(l.f, buf, IMAGE_MAX, 0);
	if (n != image_len || memcmp(buf, image, (size_t)n))
		return 1;
	return lfill(&l, 0, 1000, 1) != 1000 || lclose(&l) ? 2 : 0;
}

static int in_new_mapping(void)
{
	pid_t pid = fork_child();

	if (!pid)
		_exit(read_in_new_mapping(NULL));
	return wait_child(pid);
}

static int sync_it(void *arg)
{
	struct lfile l = lopen("a", O_RDWR);
	int ret = plfs_sync(l.f);

	if (!ret && !*(bool *)arg)
		ret = plfs_pwrite(l.f, "x", 1, 0) == 1 ? plfs_sync(l.f) : -EPROTO;
	plfs_close(l.f);
	return -ret;
}

Test(parity, a_sync_needs_no_backend_whose_logs_are_closed_and_covered)
{
	bool only = true;

	three_make();
	three_lose(2, false);
	cr_assert_eq(in_child(sync_it, &only), EIO);
	three_bring_back(2);
	cr_assert_lt(image_drain(), 50);
	three_lose(2, false);
	cr_assert_eq(in_child(sync_it, &only), 0);
	only = false;
	cr_assert_eq(in_child(sync_it, &only), 0);
	three_bring_back(2);
}

Test(parity, programs_start_while_a_backend_is_gone)
{
	three_make_covered();
	three_lose(2, false);
	cr_assert_eq(in_new_mapping(), 0);
	three_bring_back(2);
}

Test(parity, a_repair_makes_what_was_lost_at_home_and_what_comes_back_does_no_harm)
{
	three_make_covered();
	three_lose(2, true);
	cr_assert_eq(image_repair("healed"), 0);
	cr_assert_eq(image_look(), 0);
	cr_assert_eq(image_check(NULL), 0);
	three_bring_back(2);
	cr_assert_eq(image_look(), 0);
	cr_assert_eq(image_check(NULL), 0);
	cr_assert_lt(image_drain(), 50);
	three_lose(3, true);
	cr_assert_eq(image_look(), 0);
	three_bring_back(3);
	cr_assert_eq(lunlink("a"), 0);
	cr_assert_eq(three_find("data.") + three_find("parity."), 0);
}

/* A new disk is in the place of the old one. */
Test(parity, after_a_repair_and_a_drain_another_backend_may_be_lost)
{
	char path[PATH_MAX];

	three_make_covered();
	three_lose(2, true);
	cr_assert_eq(image_repair("healed"), 0);
	three_other(path, 2);
	three_shell("rm -r '%s.gone' %s", path, "");
	image_drain();
	cr_assert_eq(image_look(), 0);
	three_lose(3, true);
	cr_assert_eq(image_look(), 0);
	cr_assert_eq(image_repair("healed"), 0);
	cr_assert_eq(image_look(), 0);
	three_bring_back(3);
	cr_assert_eq(image_look(), 0);
}

static int read_unverified(void *arg)
{
	sums_verify = SUMS_OFF;
	return image_read(arg);
}

Test(parity, what_is_made_of_parity_is_compared_without_verification_too)
{
	size_t step = 50000;

	three_make_covered();
	three_lose(2, false);
	cr_assert_eq(in_child(read_unverified, &step), 0);
	three_find("parity.");
	for (int i = 0, nr = three_nr_paths; i < nr; i++)
		spoil_bit(three_paths[i], 4096 + 65536 + 100000);
	cr_assert_eq(in_child(read_unverified, &step), 1);
	three_bring_back(2);
}

static int read_elsewhere(void *arg)
{
	be_host("elsewhere");
	return image_read(arg);
}

Test(parity, another_host_reads_by_parity)
{
	size_t step = 50000;

	three_make_covered();
	three_lose(3, false);
	cr_assert_eq(in_child(read_elsewhere, &step), 0);
	three_bring_back(3);
}

/* ---- what is not covered ---- */

static int write_and_die(void *arg)
{
	const struct image_piece *p = arg;
	struct lfile l = made("a");

	if (lfill(&l, p->off, p->len, p->round) == (ssize_t)p->len)
		raise(SIGKILL);
	return 1;
}

Test(parity, what_was_written_since_is_an_error_and_never_older_bytes)
{
	three_make_covered();
	three_write_into(2, 2, image_write_piece);
	cr_assert_eq(image_look(), 0);
	three_lose(2, false);
	cr_assert_eq(image_look(), 1);
	cr_assert_neq(image_repair(NULL), 0);
	cr_assert_eq(image_look(), 1);
	three_bring_back(2);
	cr_assert_eq(image_look(), 0);
	cr_assert_lt(image_drain(), 50);
	three_lose(2, false);
	cr_assert_eq(image_look(), 0);
	three_bring_back(2);
}

Test(parity, what_a_killed_process_wrote_since_is_an_error_and_never_older_bytes)
{
	three_make_covered();
	three_write_into(2, 2, write_and_die);
	three_lose(2, true);
	cr_assert_eq(image_look(), 1);
	three_bring_back(2);
	cr_assert_eq(image_look(), 0);
	cr_assert_lt(image_drain(), 50);
	three_lose(2, true);
	cr_assert_eq(image_look(), 0);
	three_bring_back(2);
}

/* The log is covered when it is continued, by a process that had it open before. */
static int go_on(void *arg)
{
	struct lfile l = made("a");
	const struct image_piece *p = arg;

	if (lfill(&l, 0, THREE_LEN, p->round) != THREE_LEN || lclose(&l))
		return 1;
	if (image_drain() >= 50)
		return 2;
	l = made("a");
	return lfill(&l, 5000, 7000, p->round + 1) != 7000 || lclose(&l) ? 3 : 0;
}

Test(parity, a_log_that_is_continued_is_not_read_as_it_was)
{
	char log[PATH_MAX];

	three_make();
	three_write_into(2, 2, go_on);
	image_note(5000, 7000, 3);
	cr_assert_eq(image_look(), 0);
	three_lose(2, false);
	cr_assert_eq(image_look(), 1);
	cr_assert_geq(image_drain(), 50, "it has no parity");
	cr_assert_neq(image_repair(NULL), 0);
	three_bring_back(2);
	cr_assert_lt(image_drain(), 50);
	three_lose(2, false);
	cr_assert_eq(image_look(), 0);
	three_bring_back(2);
	for (int nr = three_find("data."), i = 0; i < nr; i++) {
		three_find("data.");
		three_path(log, i);
		three_shell("mv '%s' '%s/aside'", log, near_dir);
		cr_assert_eq(image_look(), 0, "%s", log);
		three_shell("mv '%s/aside' '%s'", near_dir, log);
	}
}

/* ---- what a check lists ---- */

enum { STEP = 500 };
static bool listed[IMAGE_MAX / STEP + 1];

static void note_lost(void *arg, const struct plfs_finding *f)
{
	(void)arg;
	for (uint64_t at = f->logical_off; !strcmp(f->code, "lost") && at < f->logical_off + f->len; at++)
		listed[at / STEP] = true;
}

/* 0: a check lists what cannot be read, which is something, and nothing else. */
static int compare_with_check(void *arg)
{
	struct plfs_check check = { .found = note_lost };
	char path[PATH_MAX], buf[STEP];
	struct plfs_mount *m = lpath("a", path);
	struct lfile l = lopen("a", O_RDONLY);
	int nr_lost = 0, nr_wrong = 0;

	(void)arg;
	if (plfs_check(m, AT_FDCWD, path, &check) != 1)
		return 100;
	for (off_t at = 0; at < image_len; at += STEP) {
		bool fails = plfs_pread(l.f, buf, STEP, at) < 0;

		nr_lost += fails;
		nr_wrong += fails != listed[at / STEP];
	}
	lclose(&l);
	return nr_wrong ? nr_wrong : !nr_lost;
}

static int go_on_a_little(void *arg)
{
	struct lfile l = made("a");

	(void)arg;
	if (lfill(&l, 0, 2000, 2) != 2000 || lclose(&l) || image_drain() >= 50)
		return 1;
	l = lopen("a", O_RDWR);
	return lfill(&l, 3000, 2000, 2) != 2000 || lclose(&l) ? 2 : 0;
}

Test(parity, of_a_log_that_is_continued_a_check_lists_just_what_was_written_since)
{
	three_write_into(2, 2, go_on_a_little);
	image_len = 5000;
	three_lose(2, false);
	cr_assert_eq(in_child(compare_with_check, NULL), 0);
	three_bring_back(2);
}
