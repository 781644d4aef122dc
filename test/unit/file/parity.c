/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parity of logs in several backends (parity=1): what is lost with one of them, or damaged, is read and made
 * anew by it; nothing that it does not cover is taken for zeros or older bytes. test/crash/parity.c kills who
 * makes it.
 */
#include "test/lib/image.h"
#include "test/lib/near.h"
#include "test/lib/spoil.h"

#include "core/backend/mount.h"
#include "core/base/sys.h"
#include "core/dropping/sums.h"
#include "core/plfs_admin.h"

#include <criterion/criterion.h>

#include <ftw.h>

#define LEN 300000
#define NR 12 /* so many processes are in all of three backends, nearly always */

static void by_process(void) { near_spread("process,parity=1"); }
static void by_host(void) { near_spread("host,parity=1"); }
static void by_file(void) { near_spread("file,parity=1"); }

TestSuite(parity, .init = by_process, .fini = near_remove, .timeout = 600);
TestSuite(parity_host, .init = by_host, .fini = near_remove, .timeout = 600);
TestSuite(parity_file, .init = by_file, .fini = near_remove, .timeout = 600);

/* ---- files ---- */

#define PATHS_MAX 64
static char paths[PATHS_MAX][PATH_MAX];
static int nr_paths;
static const char *wanted;

static int note_path(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	if (type == FTW_F && nr_paths < PATHS_MAX && !strncmp(path + ftw->base, wanted, strlen(wanted)))
		snprintf(paths[nr_paths++], PATH_MAX, "%s", path);
	return 0;
}

/* The paths of the files with this beginning of a name, at home and in the two others: how many. */
static int find_all(const char *prefix)
{
	wanted = prefix;
	nr_paths = 0;
	nftw(scratch, note_path, 16, FTW_PHYS);
	nftw(near_dir, note_path, 16, FTW_PHYS);
	return nr_paths;
}

static void copy_path(char *path, int i) { memcpy(path, paths[i], PATH_MAX); }

static int count_in(const char *top, const char *prefix)
{
	wanted = prefix;
	nr_paths = 0;
	nftw(top, note_path, 16, FTW_PHYS);
	return nr_paths;
}

static void other(char *path, int i) { snprintf(path, PATH_MAX, "%s/%d", near_dir, i); }

/* The number of logs in the backend; 1 is home. */
static int logs_in(int backend)
{
	char path[PATH_MAX];

	other(path, backend);
	return count_in(backend == 1 ? scratch : path, "data.");
}

static void shell(const char *fmt, const char *a, const char *b)
{
	char text[3 * PATH_MAX];

	snprintf(text, sizeof(text), fmt, a, b);
	cr_assert_eq(system(text), 0, "%s", text);
}

/* A backend goes: its directory as well, or that is empty, as where a disk is not mounted. */
static void lose(int i, bool empty)
{
	char path[PATH_MAX];

	other(path, i);
	shell("mv '%s' '%s.gone'", path, path);
	if (empty)
		cr_assert_eq(mkdir(path, 0755), 0);
}

static void bring_back(int i)
{
	char path[PATH_MAX];

	other(path, i);
	rmdir(path);
	shell("mv '%s.gone' '%s'", path, path);
}

/* The file is read without each of them in turn. */
static void lose_each(bool empty)
{
	for (int i = 2; i < 4; i++) {
		lose(i, empty);
		cr_assert_eq(image_look(), 0, "without %d", i);
		bring_back(i);
	}
}

/* ---- a file in three backends ---- */

static void write_pieces(int from, int to, unsigned round)
{
	for (int i = from; i < to; i++)
		image_write((off_t)i * LEN, LEN - 1000 * (i % 5), round);
}

/* Until each backend has a log. */
static void make_file(void)
{
	int nr = 0;

	while (nr < 4 || !logs_in(1) || !logs_in(2) || !logs_in(3)) {
		cr_assert_lt(nr, 25);
		write_pieces(nr, nr + 1, 1);
		nr++;
	}
}

static void make_covered(void)
{
	make_file();
	cr_assert_lt(image_drain(), 50);
}

/* Until one more log is in the backend @i: they are of @len bytes at 0, which others have. */
static void write_into(int i, unsigned round, int (*fn)(void *arg))
{
	int before = logs_in(i);

	for (int tries = 0; logs_in(i) == before; tries++) {
		struct image_piece p = { 0, LEN, round };
		int ret = in_child(fn, &p);

		cr_assert(tries < 60 && (!ret || ret == 256 + SIGKILL));
	}
	image_note(0, LEN, round);
}

/* ---- making ---- */

Test(parity, drain_covers_each_closed_log_once)
{
	int nr;

	make_file();
	nr = find_all("data.");
	cr_assert_eq(find_all("parity."), 0);
	cr_assert_lt(image_drain(), 50);
	cr_assert_geq(find_all("parity."), (nr + 1) / 2);
	cr_assert_lt(find_all("parity."), nr, "some have a partner");
	cr_assert_eq(find_all("sealed."), 2);
	cr_assert_eq(image_drain(), 0, "there is nothing to do");
	cr_assert_eq(image_check(NULL), 0);
	cr_assert_eq(image_look(), 0);
	cr_assert_eq(find_all("sealed."), 2, "reading opens no seal");
}

Test(parity, the_stub_says_that_there_is_more_as_soon_as_there_is_a_container)
{
	unsigned char compat = 0;
	char path[PATH_MAX];
	int fd;

	image_write(0, LEN, 1);
	lpath("a", path);
	fd = open(path, O_RDONLY);
	cr_assert(fd >= 0 && pread(fd, &compat, 1, 16) == 1);
	close(fd);
	cr_assert(compat & 4);
}

Test(parity, an_open_log_has_none)
{
	struct lfile l = made("a");

	cr_assert_eq(lfill(&l, 0, LEN, 1), LEN);
	image_note(0, LEN, 1);
	image_drain();
	cr_assert_eq(find_all("parity."), 0);
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
	image_write(0, LEN, 1);
	cr_assert_eq(in_child(drain_patiently, NULL), 1);
	cr_assert_eq(find_all("parity."), 0);
	cr_assert_eq(image_drain(), 1);
	cr_assert_eq(in_child(drain_patiently, NULL), 0);
}

Test(parity_file, a_log_without_a_partner_is_copied)
{
	write_pieces(0, 3, 1);
	cr_assert_eq(image_drain(), 3);
	cr_assert_eq(image_check(NULL), 0);
	lose_each(false);
}

static const char *host = "elsewhere";

static int name_elsewhere(char *name, size_t len)
{
	snprintf(name, len, "%s", host);
	return 0;
}

static int write_elsewhere(void *arg)
{
	sys.gethostname = name_elsewhere;
	return image_write_piece(arg);
}

/* Each host has one backend for all its logs: the partners are of other hosts. */
Test(parity_host, logs_of_several_hosts_form_groups)
{
	char names[30][8];
	int nr = 0;

	for (; nr < 3 || !logs_in(1) || !logs_in(2) || !logs_in(3); nr++) {
		struct image_piece p = { (off_t)nr * LEN, LEN, 1 };

		cr_assert_lt(nr, 25);
		snprintf(names[nr], sizeof(names[nr]), "h%d", nr);
		host = names[nr];
		cr_assert_eq(in_child(write_elsewhere, &p), 0);
		image_note(p.off, p.len, p.round);
	}
	cr_assert_lt(image_drain(), nr);
	lose_each(true);
}

/* ---- a backend is gone ---- */

Test(parity, whichever_backend_is_lost_the_file_is_read)
{
	make_covered();
	for (int i = 2; i < 4; i++)
		for (int empty = 0; empty < 2; empty++) {
			lose(i, empty);
			cr_assert_eq(image_look(), 0, "%d", i);
			cr_assert_eq(image_check("parity"), 1, "%d", i);
			bring_back(i);
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

	make_file();
	lose(2, false);
	cr_assert_eq(in_child(sync_it, &only), EIO);
	bring_back(2);
	cr_assert_lt(image_drain(), 50);
	lose(2, false);
	cr_assert_eq(in_child(sync_it, &only), 0);
	only = false;
	cr_assert_eq(in_child(sync_it, &only), 0);
	bring_back(2);
}

Test(parity, programs_start_while_a_backend_is_gone)
{
	make_covered();
	lose(2, false);
	cr_assert_eq(in_new_mapping(), 0);
	bring_back(2);
}

Test(parity, a_repair_makes_what_was_lost_at_home_and_what_comes_back_does_no_harm)
{
	make_covered();
	lose(2, true);
	cr_assert_eq(image_repair("healed"), 0);
	cr_assert_eq(image_look(), 0);
	cr_assert_eq(image_check(NULL), 0);
	bring_back(2);
	cr_assert_eq(image_look(), 0);
	cr_assert_eq(image_check(NULL), 0);
	cr_assert_lt(image_drain(), 50);
	lose(3, true);
	cr_assert_eq(image_look(), 0);
	bring_back(3);
	cr_assert_eq(lunlink("a"), 0);
	cr_assert_eq(find_all("data.") + find_all("parity.") + find_all("sealed."), 0);
}

/* A new disk is in the place of the old one. */
Test(parity, after_a_repair_and_a_drain_another_backend_may_be_lost)
{
	char path[PATH_MAX];

	make_covered();
	lose(2, true);
	cr_assert_eq(image_repair("healed"), 0);
	other(path, 2);
	shell("rm -r '%s.gone' %s", path, "");
	image_drain();
	cr_assert_eq(image_look(), 0);
	lose(3, true);
	cr_assert_eq(image_look(), 0);
	cr_assert_eq(image_repair("healed"), 0);
	cr_assert_eq(image_look(), 0);
	bring_back(3);
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

	make_covered();
	lose(2, false);
	cr_assert_eq(in_child(read_unverified, &step), 0);
	find_all("parity.");
	for (int i = 0, nr = nr_paths; i < nr; i++)
		spoil_bit(paths[i], 4096 + 65536 + 100000);
	cr_assert_eq(in_child(read_unverified, &step), 1);
	bring_back(2);
}

static int read_elsewhere(void *arg)
{
	host = "elsewhere";
	sys.gethostname = name_elsewhere;
	return image_read(arg);
}

Test(parity, another_host_reads_by_parity)
{
	size_t step = 50000;

	make_covered();
	lose(3, false);
	cr_assert_eq(in_child(read_elsewhere, &step), 0);
	bring_back(3);
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
	make_covered();
	write_into(2, 2, image_write_piece);
	cr_assert_eq(image_look(), 0);
	lose(2, false);
	cr_assert_eq(image_look(), 1);
	cr_assert_neq(image_repair(NULL), 0);
	cr_assert_eq(image_look(), 1);
	bring_back(2);
	cr_assert_eq(image_look(), 0);
	cr_assert_lt(image_drain(), 50);
	lose(2, false);
	cr_assert_eq(image_look(), 0);
	bring_back(2);
}

Test(parity, what_a_killed_process_wrote_since_is_an_error_and_never_older_bytes)
{
	make_covered();
	write_into(2, 2, write_and_die);
	lose(2, true);
	cr_assert_eq(image_look(), 1);
	bring_back(2);
	cr_assert_eq(image_look(), 0);
	cr_assert_lt(image_drain(), 50);
	lose(2, true);
	cr_assert_eq(image_look(), 0);
	bring_back(2);
}

/* The log is covered when it is continued, by a process that had it open before. */
static int go_on(void *arg)
{
	struct lfile l = made("a");
	const struct image_piece *p = arg;

	if (lfill(&l, 0, LEN, p->round) != LEN || lclose(&l))
		return 1;
	if (image_drain() >= 50)
		return 2;
	l = made("a");
	return lfill(&l, 5000, 7000, p->round + 1) != 7000 || lclose(&l) ? 3 : 0;
}

Test(parity, a_log_that_is_continued_is_not_read_as_it_was)
{
	char log[PATH_MAX];

	make_file();
	write_into(2, 2, go_on);
	image_note(5000, 7000, 3);
	cr_assert_eq(image_look(), 0);
	lose(2, false);
	cr_assert_eq(image_look(), 1);
	bring_back(2);
	cr_assert_lt(image_drain(), 50);
	lose(2, false);
	cr_assert_eq(image_look(), 0);
	bring_back(2);
	for (int nr = find_all("data."), i = 0; i < nr; i++) {
		find_all("data.");
		copy_path(log, i);
		shell("mv '%s' '%s/aside'", log, near_dir);
		cr_assert_eq(image_look(), 0, "%s", log);
		shell("mv '%s/aside' '%s'", near_dir, log);
	}
}

/* ---- damage ---- */

/* Each log in half of the states, each state of several logs; what was there is there again. */
Test(parity, whatever_happens_to_a_log_it_is_rebuilt, .timeout = 1800)
{
	char log[PATH_MAX], kept[PATH_MAX];
	int nr;

	make_covered();
	snprintf(kept, sizeof(kept), "%s/kept", near_dir);
	nr = find_all("data.");
	for (int i = 0; i < nr; i++)
		for (enum spoil how = (enum spoil)(i % 2); how < NR_SPOILS; how += 2) {
			find_all("data.");
			copy_path(log, i);
			shell("cp -p '%s' '%s'", log, kept);
			spoil(log, how);
			cr_assert_eq(image_look(), 0, "%s: %s", log, SPOIL_NAMES[how]);
			cr_assert_eq(image_check("parity"), 1, "%s: %s", log, SPOIL_NAMES[how]);
			cr_assert_eq(image_repair("healed"), 0, "%s: %s", log, SPOIL_NAMES[how]);
			shell("cmp '%s' '%s'", log, kept);
			shell("test $(stat -c %%a '%s') = $(stat -c %%a '%s')", log, kept);
			cr_assert_eq(image_check(NULL), 0, "%s: %s", log, SPOIL_NAMES[how]);
		}
	cr_assert_eq(find_all("damaged."), 0);
}

Test(parity, whatever_happens_to_parity_it_is_made_anew, .timeout = 1800)
{
	make_covered();
	for (enum spoil how = 0; how < NR_SPOILS; how++) {
		int nr = find_all("parity.");

		for (int i = 0; i < nr; i++)
			spoil(paths[i], how);
		cr_assert_eq(image_look(), 0, "%s", SPOIL_NAMES[how]);
		cr_assert_eq(image_check(how == SPOIL_REMOVE ? "parity-missing" : "parity-damaged"),
			     how != SPOIL_REMOVE, "%s", SPOIL_NAMES[how]);
		cr_assert_eq(image_repair("parity"), 0, "%s", SPOIL_NAMES[how]);
		cr_assert_eq(image_check(NULL), 0, "%s", SPOIL_NAMES[how]);
		cr_assert_eq(find_all("parity."), nr, "%s", SPOIL_NAMES[how]);
		lose(2, false);
		cr_assert_eq(image_look(), 0, "%s", SPOIL_NAMES[how]);
		bring_back(2);
	}
}

/* Drains look whether parity is there. */
Test(parity, parity_that_was_removed_is_made_by_the_next_drain)
{
	int nr;

	make_covered();
	nr = find_all("parity.");
	for (int i = 0; i < nr; i++)
		unlink(paths[i]);
	cr_assert_eq(image_drain(), nr);
	lose(3, false);
	cr_assert_eq(image_look(), 0);
	bring_back(3);
}

/* All logs and all parity: what a group has lost twice is an error. */
Test(parity, with_damage_to_several_reads_give_right_bytes_or_an_error, .timeout = 1800)
{
	char save[PATH_MAX];
	size_t step = 20300;

	make_covered();
	snprintf(save, sizeof(save), "%s.save", near_dir);
	shell("rm -rf '%s'; mkdir '%s'", save, save);
	shell("cp -a '%s' '%s/home'", scratch, save);
	shell("cp -a '%s' '%s/near'", near_dir, save);
	for (enum spoil how = 0; how < NR_SPOILS; how++)
		for (int with_parity = 0; with_parity < 2; with_parity++) {
			int nr = find_all("data."), found;

			for (int i = with_parity; i < nr; i += 1 + with_parity)
				spoil(paths[i], how);
			nr = with_parity ? find_all("parity.") : 0;
			for (int i = 0; i < nr; i++)
				spoil(paths[i], how);
			found = in_child(image_read, &step);
			cr_assert(how == SPOIL_REMOVE ? found == 1 : found < 2, "%s", SPOIL_NAMES[how]);
			cr_assert_lt(image_repair(NULL), 2, "%s", SPOIL_NAMES[how]);
			cr_assert_lt(in_child(image_read, &step), 2, "%s: repaired", SPOIL_NAMES[how]);
			shell("find '%s' '%s' -mindepth 1 -delete", scratch, near_dir);
			shell("cp -a '%s/home/.' '%s'", save, scratch);
			shell("cp -a '%s/near/.' '%s'", save, near_dir);
			cr_assert_eq(in_child(image_read, &step), 0);
		}
	shell("rm -rf '%s' %s", save, "");
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
	static unsigned char buf[LEN];
	struct lfile l = lopen("a", O_RDONLY);
	int nr = 0;

	(void)arg;
	for (off_t off = 0; off < image_len; off += LEN) {
		ssize_t n = plfs_pread(l.f, buf, LEN, off);

		nr += n > 0 && memcmp(buf, image + off, (size_t)n);
	}
	return lclose(&l) ? 200 : nr;
}

/* Without their checksums the bytes of those logs are read as they are, with a line; not those of others. */
Test(parity, a_log_that_lost_its_bytes_and_checksums_rebuilds_no_other)
{
	int nr;

	make_covered();
	nr = logs_in(2);
	for (int k = 0; k < nr; k++)
		wipe(paths[k]);
	lose(3, false);
	cr_assert_leq(in_child(count_wrong, NULL), nr);
	image_repair(NULL);
	cr_assert_leq(in_child(count_wrong, NULL), nr);
	bring_back(3);
	cr_assert_eq(image_look(), 0);
	image_repair(NULL);
	cr_assert_eq(image_look(), 0);
}

Test(parity, damage_in_different_chunks_of_a_group_is_read_and_healed)
{
	int nr;

	make_covered();
	nr = find_all("data.");
	for (int i = 0; i < nr; i++)
		spoil_bit(paths[i], 65536 + 30000 + 65536 * (i % 4));
	cr_assert_lt(image_look(), 2);
	cr_assert_lt(image_repair(NULL), 2);
	cr_assert_lt(image_look(), 2);
}

Test(parity, two_backends_that_are_gone_are_an_error_and_nothing_is_lost_by_a_repair)
{
	make_covered();
	lose(2, false);
	lose(3, true);
	cr_assert_eq(image_look(), 1);
	cr_assert_neq(image_repair(NULL), 0);
	cr_assert_lt(image_look(), 2);
	bring_back(2);
	bring_back(3);
	cr_assert_eq(image_look(), 0);
}

Test(parity, a_damaged_record_leads_nowhere_and_is_made_anew)
{
	char record[PATH_MAX];
	off_t len;

	make_covered();
	find_all("parity");
	copy_path(record, 0);
	for (int i = 0; i < nr_paths; i++)
		if (!strcmp(strrchr(paths[i], '/'), "/parity"))
			copy_path(record, i);
	len = 0;
	for (struct stat st; !stat(record, &st) && len < st.st_size; len += 100)
		spoil_bit(record, len);
	cr_assert_eq(image_look(), 0);
	lose(2, false);
	cr_assert_eq(image_look(), 1);
	bring_back(2);
	cr_assert_lt(image_drain(), 50);
	lose(2, false);
	cr_assert_eq(image_look(), 0);
	bring_back(2);
}

Test(parity, a_damaged_seal_loses_nothing)
{
	make_covered();
	for (int nr = find_all("sealed."), i = 0; i < nr; i++)
		spoil_bit(paths[i], 40);
	cr_assert_eq(image_look(), 0);
	if (find_all("index.global")) /* a kept map says that nothing was written since */
		unlink(paths[0]);
	lose(2, false);
	cr_assert_eq(image_look(), 0, "by the notes of live files"); /* backend/spread_open.h */
	bring_back(2);
	cr_assert_lt(image_drain(), 50);
	lose(2, false);
	cr_assert_eq(image_look(), 0);
	bring_back(2);
}

/* ---- what is done with files ---- */

Test(parity, a_chmod_holds)
{
	mode_t mode = 0640;
	struct stat st;

	make_covered();
	cr_assert_eq(in_child(image_chmod, &mode), 0);
	for (int nr = find_all("data."), i = 0; i < nr; i++)
		cr_assert(!stat(paths[i], &st) && (st.st_mode & 0777) == 0640, "%s", paths[i]);
	lose_each(false);
}

Test(parity, a_removed_file_leaves_nothing_in_any_backend)
{
	make_covered();
	cr_assert_eq(lunlink("a"), 0);
	cr_assert_eq(find_all("data.") + find_all("parity") + find_all("sealed.") + find_all("spread."), 0);
}

Test(parity_file, parity_in_a_backend_without_logs_goes_with_the_file)
{
	write_pieces(0, 3, 1);
	cr_assert_eq(image_drain(), 3);
	cr_assert_eq(lunlink("a"), 0);
	cr_assert_eq(find_all("data.") + find_all("parity"), 0);
}

Test(parity, a_truncation_to_zero_leaves_nothing_that_is_read)
{
	struct lfile l;

	make_covered();
	l = lopen("a", O_RDWR | O_TRUNC);
	cr_assert_eq(lclose(&l), 0);
	image_len = 0;
	make_file();
	cr_assert_lt(image_drain(), 50);
	cr_assert_lt(find_all("parity."), find_all("data."));
	lose_each(false);
}

Test(parity, compaction_makes_parity_of_what_is_left)
{
	make_file();
	write_pieces(0, 6, 2);
	write_pieces(0, 5, 3);
	cr_assert_lt(image_drain(), 50);
	cr_assert_eq(lcompact("a"), 0);
	cr_assert_eq(image_look(), 0);
	cr_assert_lt(image_drain(), 50);
	cr_assert_eq(image_check(NULL), 0);
	cr_assert_leq(find_all("parity."), find_all("data."));
	lose_each(false);
}

static int truncate_it(void *arg)
{
	struct lfile l = lopen("a", O_RDWR);

	return plfs_truncate(l.f, *(off_t *)arg) || lclose(&l);
}

Test(parity, a_file_that_was_cut_stays_cut)
{
	off_t len = LEN + 5000;

	make_covered();
	cr_assert_eq(in_child(truncate_it, &len), 0);
	image_len = len;
	cr_assert_eq(image_look(), 0);
	cr_assert_lt(image_drain(), 50);
	lose_each(false);
}

static int flatten_it(void *arg)
{
	struct plfs_progress watch = { .why = "" };
	char path[PATH_MAX];

	(void)arg;
	lpath("a", path);
	return plfs_flatten(AT_FDCWD, path, &watch) ? 1 : 0;
}

Test(parity, a_file_is_flattened_by_parity_and_has_none_then)
{
	static unsigned char buf[IMAGE_MAX];
	char path[PATH_MAX];
	int fd;

	make_covered();
	lose(2, false);
	cr_assert_eq(in_child(flatten_it, NULL), 0);
	bring_back(2);
	lpath("a", path);
	fd = open(path, O_RDONLY);
	cr_assert_eq(read(fd, buf, IMAGE_MAX), image_len);
	close(fd);
	cr_assert(!memcmp(buf, image, (size_t)image_len));
	cr_assert_eq(count_in(scratch, "parity"), 0);
}

static int remove_orphans(void *arg, const char *top, const char *home)
{
	(void)home;
	return plfs_drain_place(plfs_mount_at(0), top, true, arg);
}

Test(parity_file, parity_that_no_file_has_is_found)
{
	struct plfs_drain d = { 0 };
	char path[PATH_MAX];

	write_pieces(0, 3, 1);
	cr_assert_eq(image_drain(), 3);
	for (int i = 2; i < 4; i++) {
		other(path, i);
		cr_assert_eq(plfs_places_in(path, remove_orphans, &d), 0);
	}
	cr_assert_eq(d.nr_orphans, 0);
	lpath("a", path);
	unlink(path);
	shell("rm -r %s/.plfs/??%s", scratch, "");
	for (int i = 2; i < 4; i++) {
		other(path, i);
		cr_assert_eq(plfs_places_in(path, remove_orphans, &d), 0);
	}
	cr_assert_gt(d.nr_orphans, 0);
	cr_assert_eq(find_all("data.") + find_all("parity."), 0);
}
