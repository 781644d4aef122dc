/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies of logs in another backend (mirror=): when they are made and go, what they are read for, what they
 * are never taken for, and what heals what. test/crash/copies.c kills who makes and restores them.
 */
#include "test/lib/image.h"
#include "test/lib/near.h"
#include "test/lib/spoil.h"
#include "test/lib/turn.h"

#include "core/backend/mount.h"
#include "core/base/sys.h"
#include "core/dropping/sums.h"
#include "core/plfs_admin.h"

#include <criterion/criterion.h>

#define LEN 300000

static void setup(void) { near_setup_copies(""); }

TestSuite(mirror, .init = setup, .fini = near_remove, .timeout = 300);

static void find_both(char *log, char *copy)
{
	cr_assert(find_file("data.", log));
	cr_assert(near_find("data.", copy));
}

static bool same_files(const char *a, const char *b)
{
	char text[3 * PATH_MAX];

	snprintf(text, sizeof(text), "cmp '%s' '%s'", a, b);
	return !system(text);
}

static void make_both(char *log, char *copy)
{
	image_write(0, LEN, 1);
	cr_assert_eq(image_drain(), 1);
	find_both(log, copy);
}

/* ---- making ---- */

Test(mirror, drain_copies_each_closed_log_once)
{
	char log[PATH_MAX], copy[PATH_MAX];

	image_write(0, LEN, 1);
	cr_assert_eq(near_count("data."), 0);
	cr_assert_eq(image_drain(), 1);
	find_both(log, copy);
	cr_assert(same_files(log, copy));
	cr_assert_eq(near_count(""), near_count("data.") + near_count("home"));
	cr_assert_eq(count_files("copies."), 1);
	cr_assert_eq(image_drain(), 0, "there is nothing to do");
	cr_assert_eq(image_check(NULL), 0);
	cr_assert_eq(image_look(), 0);
}

Test(mirror, the_stub_says_that_there_are_copies_as_soon_as_there_is_a_container)
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

static void setup_close(void) { near_setup_copies(",drain=close"); }

TestSuite(mirror_close, .init = setup_close, .fini = near_remove);

Test(mirror_close, a_close_copies)
{
	image_write(0, LEN, 1);
	cr_assert_eq(near_count("data."), 1);
	cr_assert_eq(image_drain(), 0);
}

Test(mirror, an_open_log_has_no_copy)
{
	struct lfile l = made("a");

	cr_assert_eq(lfill(&l, 0, LEN, 1), LEN);
	image_note(0, LEN, 1);
	cr_assert_eq(image_drain(), 50);
	cr_assert_eq(near_count("data."), 0);
	cr_assert_eq(lclose(&l), 0);
	cr_assert_eq(image_drain(), 1);
}

static int write_and_die(void *arg)
{
	struct lfile l = made("a");

	(void)arg;
	if (lfill(&l, 0, LEN, 1) != LEN)
		return 1;
	return kill(getpid(), SIGKILL);
}

Test(mirror, the_log_of_a_killed_process_is_closed_and_copied)
{
	cr_assert_eq(in_child(write_and_die, NULL), 256 + SIGKILL);
	image_note(0, LEN, 1);
	cr_assert_eq(image_drain(), 1);
	cr_assert_eq(image_look(), 0);
}

Test(mirror, a_backend_that_is_gone_stops_no_program_and_drain_says_what_is_left)
{
	near_lose();
	rmdir(near_dir);
	image_write(0, LEN, 1);
	cr_assert_eq(image_look(), 0);
	cr_assert_eq(image_drain(), 100);
	cr_assert_eq(count_files("copies."), 0);
	cr_assert_eq(mkdir(near_dir, 0755), 0);
	cr_assert_eq(image_drain(), 1);
}

/* ---- reading ---- */

/* The log in each state, with a whole copy. */
Test(mirror, whatever_happens_to_a_log_its_copy_is_read_and_heals_it)
{
	char log[PATH_MAX], copy[PATH_MAX];

	make_both(log, copy);
	for (enum spoil how = 0; how < NR_SPOILS; how++) {
		spoil(log, how);
		cr_assert_eq(image_look(), 0, "%s", SPOIL_NAMES[how]);
		cr_assert_eq(image_check("copied"), 1, "%s", SPOIL_NAMES[how]);
		cr_assert_eq(image_repair("healed"), 0, "%s", SPOIL_NAMES[how]);
		cr_assert(same_files(log, copy), "%s", SPOIL_NAMES[how]);
		cr_assert_eq(image_check(NULL), 0, "%s", SPOIL_NAMES[how]);
		cr_assert_eq(image_look(), 0, "%s", SPOIL_NAMES[how]);
	}
	cr_assert_eq(count_files("damaged."), 0);
}

Test(mirror, whatever_happens_to_a_copy_the_log_is_read_and_heals_it)
{
	char log[PATH_MAX], copy[PATH_MAX];

	make_both(log, copy);
	for (enum spoil how = 0; how < NR_SPOILS; how++) {
		spoil(copy, how);
		cr_assert_eq(image_look(), 0, "%s", SPOIL_NAMES[how]);
		cr_assert_eq(image_check(how == SPOIL_REMOVE ? "copy-missing" : "copy-damaged"), how != SPOIL_REMOVE, "%s",
			     SPOIL_NAMES[how]);
		cr_assert_eq(image_repair("copied"), 0, "%s", SPOIL_NAMES[how]);
		cr_assert(same_files(log, copy), "%s", SPOIL_NAMES[how]);
		cr_assert_eq(image_check(NULL), 0, "%s", SPOIL_NAMES[how]);
	}
}

/* Each state of the log with each of the copy: what both have lost is an error. Nothing else is. */
Test(mirror, with_damage_to_both_reads_give_right_bytes_or_an_error, .timeout = 900)
{
	char log[PATH_MAX], copy[PATH_MAX], text[4 * PATH_MAX], kept[64];

	make_both(log, copy);
	new_dir(kept, sizeof(kept));
	snprintf(text, sizeof(text), "cp '%s' '%s/kept'", log, kept);
	cr_assert_eq(system(text), 0);
	for (enum spoil a = 0; a < NR_SPOILS; a++)
		for (enum spoil b = 0; b < NR_SPOILS; b++) {
			int found;

			if (!turn_takes(a + b))
				continue;
			spoil(log, a);
			spoil(copy, b);
			found = image_look();
			cr_assert_lt(found, 2, "%s, %s", SPOIL_NAMES[a], SPOIL_NAMES[b]);
			found = image_repair(NULL);
			cr_assert_lt(found, 2, "%s, %s", SPOIL_NAMES[a], SPOIL_NAMES[b]);
			cr_assert_lt(image_look(), 2, "%s, %s: repaired", SPOIL_NAMES[a], SPOIL_NAMES[b]);
			snprintf(text, sizeof(text), "cp '%s/kept' '%s' && cp '%s/kept' '%s'", kept, log,
				 kept, copy);
			cr_assert_eq(system(text), 0);
			cr_assert_eq(image_look(), 0);
		}
	snprintf(text, sizeof(text), "rm -r '%s'", kept);
	cr_assert_eq(system(text), 0);
}

Test(mirror, a_log_and_a_copy_that_are_damaged_in_different_chunks_are_read_and_heal_each_other)
{
	char log[PATH_MAX], copy[PATH_MAX];

	make_both(log, copy);
	spoil_bit(log, 200000);
	spoil_bit(copy, 100000);
	cr_assert_eq(image_look(), 0);
	cr_assert_eq(image_check("copied"), 1);
	cr_assert_eq(image_repair("healed"), 0);
	cr_assert(same_files(log, copy));
	cr_assert_eq(image_check(NULL), 0);
}

static int read_unverified(void *arg)
{
	size_t step = 10000;

	(void)arg;
	sums_verify = SUMS_OFF;
	return image_read(&step);
}

Test(mirror, a_log_that_is_missing_is_read_from_its_copy_without_verification_too)
{
	char log[PATH_MAX], copy[PATH_MAX];

	make_both(log, copy);
	unlink(log);
	cr_assert_eq(in_child(read_unverified, NULL), 0);
}

static int read_error(int fd)
{
	char name[PATH_MAX], link[64];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, name, sizeof(name) - 1);
	name[n < 0 ? 0 : n] = '\0';
	return strstr(name, "/data.") && !strncmp(name, scratch, strlen(scratch));
}

static ssize_t (*real_pread)(int fd, void *buf, size_t len, off_t off);
static ssize_t (*real_preadv)(int fd, const struct iovec *iov, int cnt, off_t off);

static ssize_t bad_pread(int fd, void *buf, size_t len, off_t off)
{
	if (off >= 65536 && read_error(fd)) {
		errno = EIO;
		return -1;
	}
	return real_pread(fd, buf, len, off);
}

static ssize_t bad_preadv(int fd, const struct iovec *iov, int cnt, off_t off)
{
	if (off >= 65536 && read_error(fd)) {
		errno = EIO;
		return -1;
	}
	return real_preadv(fd, iov, cnt, off);
}

static int read_from_bad_disk(void *arg)
{
	real_pread = sys.pread;
	real_preadv = sys.preadv;
	sys.pread = bad_pread;
	sys.preadv = bad_preadv;
	return image_read(arg);
}

Test(mirror, a_log_whose_disk_gives_errors_is_read_from_its_copy)
{
	char log[PATH_MAX], copy[PATH_MAX];

	make_both(log, copy);
	for (size_t step = 700; step <= 2 * LEN; step *= 29)
		cr_assert_eq(in_child(read_from_bad_disk, &step), 0);
}

/* ---- who reads ---- */

static int read_elsewhere(void *arg)
{
	be_host("elsewhere");
	return image_read(arg);
}

Test(mirror, another_host_reads_the_copy)
{
	char log[PATH_MAX], copy[PATH_MAX];
	size_t step = 50000;

	make_both(log, copy);
	unlink(log);
	cr_assert_eq(in_child(read_elsewhere, &step), 0);
}

static int write_elsewhere(void *arg)
{
	be_host("elsewhere");
	return image_write_piece(arg);
}

/* Two hosts, two copies.HOST; either host makes the copies of both. */
Test(mirror, copies_of_several_hosts_are_found)
{
	struct image_piece p = { 100000, 150000, 2 };
	char log[PATH_MAX];

	image_write(0, LEN, 1);
	cr_assert_eq(in_child(write_elsewhere, &p), 0);
	image_note(p.off, p.len, p.round);
	cr_assert_eq(image_drain(), 2);
	cr_assert_eq(count_files("copies."), 2);
	while (find_file("data.", log))
		unlink(log);
	cr_assert_eq(image_look(), 0);
	cr_assert_eq(image_repair("healed"), 0);
	cr_assert_eq(count_files("data."), 2);
	cr_assert_eq(image_look(), 0);
}

/* ---- what a copy is not taken for ---- */

static int go_on(void *arg)
{
	struct lfile l = made("a");
	int ret;

	(void)arg;
	if (lfill(&l, 0, LEN, 1) != LEN || lclose(&l))
		return 1;
	ret = image_drain();
	if (ret != 1)
		return 2;
	l = made("a"); /* the log goes on */
	return lfill(&l, LEN, 1000, 2) != 1000 || lfill(&l, 5000, 7000, 3) != 7000 || lclose(&l) ? 3 : 0;
}

Test(mirror, a_copy_of_before_the_log_was_continued_is_read_as_far_as_it_goes)
{
	char log[PATH_MAX], copy[PATH_MAX];

	cr_assert_eq(in_child(go_on, NULL), 0);
	image_note(0, LEN, 1);
	image_note(LEN, 1000, 2);
	image_note(5000, 7000, 3);
	cr_assert_eq(count_files("data."), 1);
	find_both(log, copy);
	cr_assert_eq(image_check("copy-old"), 0);
	spoil(log, SPOIL_REMOVE);
	cr_assert_eq(image_look(), 1, "what it lacks is an error, and never older bytes");
	cr_assert_eq(image_repair(NULL), 1);
	cr_assert_eq(count_files("data."), 0, "a part of a log is not put in its place");
}

Test(mirror, a_copy_of_before_the_log_was_continued_is_made_anew)
{
	char log[PATH_MAX], copy[PATH_MAX];

	cr_assert_eq(in_child(go_on, NULL), 0);
	image_note(0, LEN, 1);
	image_note(LEN, 1000, 2);
	image_note(5000, 7000, 3);
	cr_assert_eq(image_drain(), 1);
	find_both(log, copy);
	cr_assert(same_files(log, copy));
	unlink(log);
	cr_assert_eq(image_look(), 0);
}

Test(mirror, what_was_overwritten_by_others_is_never_read_from_a_copy)
{
	char log[PATH_MAX];

	image_write(0, LEN, 1);
	cr_assert_eq(image_drain(), 1);
	image_write(50000, 200000, 2); /* another log, and no copy of it */
	while (find_file("data.", log))
		unlink(log);
	cr_assert_eq(image_look(), 1);
}

Test(mirror, a_copy_of_another_file_is_none)
{
	char log[PATH_MAX], copy[PATH_MAX], text[3 * PATH_MAX];
	struct lfile l = made("b");

	cr_assert_eq(lfill(&l, 0, LEN, 5), LEN);
	cr_assert_eq(lclose(&l), 0);
	cr_assert(find_file("data.", log));
	snprintf(text, sizeof(text), "cp '%s' '%s/other'", log, near_dir);
	cr_assert_eq(system(text), 0);
	cr_assert_eq(lunlink("b"), 0);
	make_both(log, copy);
	snprintf(text, sizeof(text), "cp '%s/other' '%s'", near_dir, copy);
	cr_assert_eq(system(text), 0);
	unlink(log);
	cr_assert_eq(image_look(), 1);
	cr_assert_eq(image_repair(NULL), 1);
	cr_assert_eq(count_files("data."), 0);
}

Test(mirror, a_damaged_record_of_copies_leads_nowhere_and_is_made_anew)
{
	char log[PATH_MAX], copy[PATH_MAX], record[PATH_MAX];

	make_both(log, copy);
	cr_assert(find_file("copies.", record));
	spoil_bit(record, 30);
	cr_assert_eq(image_look(), 0);
	unlink(copy);
	cr_assert_eq(image_drain(), 1);
	unlink(log);
	cr_assert_eq(image_look(), 0);
}

/* ---- space ---- */

Test(mirror, a_removed_file_leaves_nothing_in_any_backend)
{
	char log[PATH_MAX], copy[PATH_MAX];

	make_both(log, copy);
	cr_assert_eq(lunlink("a"), 0);
	cr_assert_eq(count_files("data."), 0);
	cr_assert_eq(near_count("data."), 0);
	cr_assert_eq(near_count(""), near_count("home"));
}

static mode_t mode_of(const char *path)
{
	struct stat st;

	return stat(path, &st) ? 0 : st.st_mode & 07777;
}

Test(mirror, a_chmod_holds_and_a_copy_is_its_owners_alone)
{
	char log[PATH_MAX], copy[PATH_MAX];
	mode_t mode = 0640;

	make_both(log, copy);
	cr_assert_eq(mode_of(copy), 0600);
	cr_assert_eq(in_child(image_chmod, &mode), 0);
	cr_assert_eq(mode_of(log), 0640);
	cr_assert_eq(unlink(log), 0);
	cr_assert_eq(image_repair(NULL), 0);
	cr_assert_eq(mode_of(log), 0640);
	cr_assert_eq(mode_of(copy), 0600);
	cr_assert_eq(image_look(), 0);
}

/* Whoever replaces it is in the middle of that. */
static void begin_to_replace(const char *kind, char *tmp, size_t len)
{
	char path[PATH_MAX], text[3 * PATH_MAX];

	cr_assert(find_file(kind, path));
	snprintf(tmp, len, "%s.tmp.0123456789abcdef", path);
	snprintf(text, sizeof(text), "cp -p '%s' '%s'", path, tmp);
	cr_assert_eq(system(text), 0);
}

Test(mirror, a_chmod_takes_what_replaces_a_file_of_the_container_for_what_it_will_be)
{
	char log[PATH_MAX], copy[PATH_MAX], copies[PATH_MAX + 32], index[PATH_MAX + 32];
	mode_t mode = 0640;

	make_both(log, copy);
	begin_to_replace("copies.", copies, sizeof(copies));
	begin_to_replace("index.", index, sizeof(index));
	cr_assert_eq(in_child(image_chmod, &mode), 0);
	cr_assert_eq(mode_of(copies) & 0777, 0640);
	cr_assert_eq(mode_of(index) & 0777, 0640);
	cr_assert_eq(mode_of(log), 0640);
}

Test(mirror, a_truncation_to_zero_frees_the_copies)
{
	char log[PATH_MAX], copy[PATH_MAX];
	struct lfile l;

	make_both(log, copy);
	l = lopen("a", O_RDWR | O_TRUNC);
	cr_assert_eq(lclose(&l), 0);
	cr_assert_eq(count_logs(), 0);
	cr_assert_eq(near_count("data."), 0);
	image_len = 0;
	image_write(0, LEN, 3);
	cr_assert_eq(image_drain(), 1);
	cr_assert_eq(image_look(), 0);
}

Test(mirror, compaction_frees_the_copies_of_the_logs_that_go)
{
	char log[PATH_MAX], copy[PATH_MAX];

	for (unsigned i = 1; i < 5; i++)
		image_write(0, LEN, i);
	cr_assert_eq(image_drain(), 4);
	cr_assert_eq(near_count("data."), 4);
	cr_assert_eq(lcompact("a"), 0);
	cr_assert_eq(image_look(), 0);
	cr_assert_leq(near_count("data."), count_logs());
	image_drain();
	cr_assert_eq(near_count("data."), count_logs());
	cr_assert_eq(count_logs(), 1);
	find_both(log, copy);
	unlink(log);
	cr_assert_eq(image_look(), 0);
}

static int flatten_it(void *arg)
{
	struct plfs_progress watch = { .why = "" };
	char path[PATH_MAX];

	(void)arg;
	lpath("a", path);
	return plfs_flatten(AT_FDCWD, path, &watch) ? 1 : 0;
}

Test(mirror, a_flattened_file_has_no_copies)
{
	char log[PATH_MAX], copy[PATH_MAX];

	make_both(log, copy);
	cr_assert_eq(in_child(flatten_it, NULL), 0);
	cr_assert_eq(count_files("data."), 0);
	cr_assert_eq(near_count("data."), 0);
}

static int remove_orphans(void *arg, const char *top, const char *home)
{
	(void)home;
	return plfs_drain_place(plfs_mount_at(0), top, true, arg);
}

static int drain_as_a_place(void *arg, const char *top, const char *home)
{
	(void)home;
	return plfs_drain_place(plfs_mount_at(0), top, false, arg);
}

Test(mirror, copies_that_no_file_has_are_found_and_others_stay)
{
	struct plfs_drain d = { 0 };
	char log[PATH_MAX], copy[PATH_MAX], text[6 * PATH_MAX], path[PATH_MAX];

	make_both(log, copy);
	cr_assert_eq(plfs_places_in(near_dir, remove_orphans, &d), 0);
	cr_assert_eq(d.nr_orphans, 0);
	cr_assert_eq(plfs_places_in(near_dir, drain_as_a_place, &d), 0);
	cr_assert_eq(d.nr_logs, 0, "a copy is not moved");
	cr_assert_eq(near_count("data."), 1);
	cr_assert_eq(count_files("near."), 0);
	snprintf(text, sizeof(text), "cp '%s' '%s.tmp.01'; cp '%s' '%s.tmp.02'; touch -d '2 days ago' '%s.tmp.02'", copy,
		 copy, copy, copy, copy);
	cr_assert_eq(system(text), 0);
	cr_assert_eq(plfs_places_in(near_dir, remove_orphans, &d), 0);
	cr_assert_eq(d.nr_orphans, 1);
	cr_assert_eq(near_count("data."), 2, "who makes the other may be at it");
	lpath("a", path);
	unlink(path);
	snprintf(text, sizeof(text), "rm -r %s/.plfs/??", scratch);
	cr_assert_eq(system(text), 0);
	cr_assert_eq(plfs_places_in(near_dir, remove_orphans, &d), 0);
	cr_assert_eq(d.nr_orphans, 2);
	cr_assert_eq(near_count("data."), 0);
}
