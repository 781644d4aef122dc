/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process that opens, reads, writes and closes a file again and again: it keeps the maps in between, and
 * whatever another process does to the file meanwhile makes them stale.
 */
#include "core/base/event.h"
#include "core/file/file.h"
#include "test/lib/scratch.h"

#include <criterion/criterion.h>

#include <sys/stat.h>

TestSuite(parked, .init = scratch_setup, .fini = scratch_remove, .timeout = 300);

#define PART 100
#define NR 20

static unsigned nr_loads;

static void count(struct event_listener *l, const struct event *e)
{
	(void)l, (void)e;
	nr_loads++;
}

static struct event_listener listener = { .kinds = 1u << EVENT_INDEX_LOADED, .fn = count };

/* One of many lives: what is there is read, and a piece is written. */
static void live(int i)
{
	struct lfile l = made("f");

	cr_assert_eq(lcheck(&l, 0, (size_t)i * PART, 1), 0);
	cr_assert_eq(lfill(&l, i * PART, PART, 1), PART);
	cr_assert_eq(lclose(&l), 0);
}

/* As fopen() for appending does, and fclose(). */
static void append(const char *text, off_t want_end)
{
	struct lfile l = lopen("f", O_RDWR | O_CREAT | O_APPEND);
	off_t end;

	cr_assert_eq(plfs_size(l.f), want_end - (off_t)strlen(text));
	cr_assert_eq(lappend(&l, text, strlen(text), &end), (ssize_t)strlen(text));
	cr_assert_eq(end, want_end);
	cr_assert_eq(lclose(&l), 0);
}

static void contains(const char *want)
{
	struct lfile l = lopen("f", O_RDONLY);
	char buf[4096];
	ssize_t n = plfs_pread(l.f, buf, sizeof(buf), 0);

	cr_assert_eq(n, (ssize_t)strlen(want), "%zd bytes for %zu", n, strlen(want));
	cr_assert_arr_eq(buf, want, (size_t)n);
	cr_assert_eq(plfs_size(l.f), (off_t)n);
	cr_assert_eq(lclose(&l), 0);
}

/* ---- how often the index is read ---- */

Test(parked, the_index_is_read_once_by_who_reads_and_writes)
{
	live(0);
	live(1);
	event_listen(&listener);
	for (int i = 2; i < 200; i++)
		live(i);
	event_ignore(&listener);
	cr_assert_leq(nr_loads, 1);
}

Test(parked, the_index_is_read_once_by_who_appends)
{
	append("0123456789", 10);
	append("0123456789", 20);
	event_listen(&listener);
	for (int i = 2; i < 200; i++)
		append("0123456789", i * 10 + 10);
	event_ignore(&listener);
	cr_assert_leq(nr_loads, 1);
}

/* Some lives only write, so they load no maps: those that are parked get what they have written. */
Test(parked, the_index_is_read_once_by_who_appends_and_then_reads)
{
	struct lfile l;
	off_t end;

	live(0);
	live(1);
	event_listen(&listener);
	for (int i = 2; i < 200; i++) {
		l = lopen("f", O_WRONLY | O_APPEND);
		cr_assert_eq(lappend(&l, "x", 1, &end), 1);
		cr_assert_eq(end, 2 * PART + i - 1);
		cr_assert_eq(lclose(&l), 0);
		l = lopen("f", O_RDONLY);
		cr_assert_eq(lcheck(&l, 0, 2 * PART, 1), 0);
		cr_assert_eq(plfs_size(l.f), end);
		cr_assert_eq(lclose(&l), 0);
	}
	event_ignore(&listener);
	cr_assert_leq(nr_loads, 1);
}

/* open(2), ftruncate(2), close(2), as truncate(2) does it. @syncs: with an fsync(2) before the close. */
static void cut_to(off_t size, bool syncs)
{
	struct lfile l = lopen("f", O_WRONLY);

	cr_assert_eq(plfs_truncate(l.f, size), 0);
	cr_assert(!syncs || !plfs_sync(l.f));
	cr_assert_eq(lclose(&l), 0);
}

static void append_and_cut(int i, bool syncs)
{
	append("0123456789", i * 3 + 10);
	cut_to(i * 3 + 3, syncs);
}

Test(parked, the_index_is_read_once_by_who_appends_and_truncates)
{
	append_and_cut(0, false);
	append_and_cut(1, false);
	event_listen(&listener);
	for (int i = 2; i < 200; i++)
		append_and_cut(i, false);
	event_ignore(&listener);
	cr_assert_leq(nr_loads, 1);
}

Test(parked, the_index_is_read_once_by_who_truncates_and_syncs)
{
	append_and_cut(0, true);
	append_and_cut(1, true);
	event_listen(&listener);
	for (int i = 2; i < 200; i++)
		append_and_cut(i, true);
	event_ignore(&listener);
	cr_assert_leq(nr_loads, 1);
}

/* As a log of events that are not to be lost. */
Test(parked, the_index_is_read_once_by_who_appends_and_syncs)
{
	struct lfile l;
	off_t end;

	event_listen(&listener);
	for (int i = 0; i < 200; i++) {
		if (i == 2)
			nr_loads = 0;
		l = lopen("f", O_RDWR | O_CREAT | O_APPEND);
		cr_assert_eq(plfs_size(l.f), i);
		cr_assert_eq(lappend(&l, "x", 1, &end), 1);
		for (int k = 0; k <= i % 3; k++)
			cr_assert_eq(plfs_sync(l.f), 0);
		cr_assert_eq(lclose(&l), 0);
	}
	event_ignore(&listener);
	cr_assert_leq(nr_loads, 1);
}

/* A life that only writes, and syncs @nr times meanwhile; then one that reads. */
static void write_and_sync(int i, int nr)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz";
	char want[24] = "", buf[24];
	struct lfile l = lopen("f", O_WRONLY | O_CREAT);

	for (int k = 0; k < nr; k++) {
		const char *text = &letters[(i + k) % 16];

		memcpy(want + k, text, 4); /* over three bytes of the last one */
		cr_assert_eq(plfs_pwrite(l.f, text, 4, k), 4);
		cr_assert(i % 2 && k == nr - 1 ? 1 : !plfs_sync(l.f));
	}
	cr_assert_eq(lclose(&l), 0);
	l = lopen("f", O_RDONLY);
	cr_assert_eq(plfs_pread(l.f, buf, (size_t)nr + 3, 0), nr + 3);
	cr_assert_arr_eq(buf, want, (size_t)nr + 3, "%.*s for %s", nr + 3, buf, want);
	cr_assert_eq(lclose(&l), 0);
}

Test(parked, the_index_is_read_once_by_who_writes_and_syncs_and_then_reads)
{
	write_and_sync(0, 5);
	write_and_sync(1, 5);
	write_and_sync(2, 5);
	event_listen(&listener);
	for (int i = 3; i < 100; i++)
		write_and_sync(i, i % 8 + 1);
	event_ignore(&listener);
	cr_assert_leq(nr_loads, 1);
}

static int make_many(void *arg)
{
	(void)arg;
	for (int i = 0; i < 4200; i++) {
		struct lfile l = lopen("f", O_WRONLY | O_CREAT);

		if (plfs_pwrite(l.f, "abc", 3, (i * 17 + i % 3) % 70000) != 3 || lclose(&l))
			return 1;
	}
	return 0;
}

/* Its first map is a kept one, which each write of its own revokes. */
Test(parked, also_of_a_file_with_much_before)
{
	struct lfile l;

	cr_assert_eq(in_child(make_many, NULL), 0);
	event_listen(&listener);
	for (int i = 0; i < 50; i++) {
		l = lopen("f", O_WRONLY);
		cr_assert_eq(lfill(&l, 100000 + i, 1, 1), 1);
		cr_assert_eq(lclose(&l), 0);
		l = lopen("f", O_RDONLY);
		cr_assert_eq(lcheck(&l, 100000, (size_t)i + 1, 1), 0);
		cr_assert_eq(lclose(&l), 0);
	}
	event_ignore(&listener);
	cr_assert_leq(nr_loads, 3);
}

/* A kept map would be made by each open, and revoked by each write. */
Test(parked, nor_is_a_kept_map_made_of_many)
{
	for (int i = 0; i < 4200; i++)
		append(i % 3 ? "ab" : "abc", (i + 1) * 2 + (i + 3) / 3);
	cr_assert_eq(count_files("index.global"), 0);
	event_listen(&listener);
	append("x", 4200 * 2 + 1400 + 1);
	event_ignore(&listener);
	cr_assert_eq(nr_loads, 0);
}

Test(parked, of_more_files_than_are_remembered_each_is_whole)
{
	char name[20];

	for (int round = 0; round < 4; round++)
		for (int i = 0; i < 12; i++) {
			snprintf(name, sizeof(name), "f%d", i);
			struct lfile l = made(name);

			cr_assert_eq(lcheck(&l, 0, (size_t)round * PART, (unsigned)i), 0);
			cr_assert_eq(lfill(&l, round * PART, PART, (unsigned)i), PART);
			cr_assert_eq(lclose(&l), 0);
		}
}

/* ---- what makes the maps stale ---- */

/* This process has written "aabbccdd" in four lives, and read it. Another process does what @other does. */
static void parked_then(int (*other)(void *arg))
{
	append("aa", 2);
	append("bb", 4);
	append("cc", 6);
	append("dd", 8);
	contains("aabbccdd");
	cr_assert_eq(in_child(other, NULL), 0);
}

static int write_at(off_t off, const char *text)
{
	struct lfile l = made("f");
	ssize_t n = plfs_pwrite(l.f, text, strlen(text), off);

	return n != (ssize_t)strlen(text) || lclose(&l);
}

static int write_over(void *arg) { return (void)arg, write_at(2, "XYZ"); }

Test(parked, a_write_over_it)
{
	parked_then(write_over);
	contains("aaXYZcdd");
	append("ee", 10);
	contains("aaXYZcddee");
	cr_assert_eq(write_at(3, "y"), 0); /* later than what it is over */
	contains("aaXyZcddee");
	cr_assert_eq(in_child(write_over, NULL), 0);
	contains("aaXYZcddee");
}

static int sync_over(void *arg)
{
	struct lfile l = lopen("f", O_WRONLY);

	(void)arg;
	return plfs_pwrite(l.f, "XYZ", 3, 2) != 3 || plfs_sync(l.f) || lclose(&l);
}

/* What this process has put into the node index since its open is not taken for all that came there. */
Test(parked, a_write_over_it_amid_a_life_that_syncs)
{
	struct lfile l;

	parked_then(sync_over);
	l = lopen("f", O_WRONLY);
	cr_assert_eq(plfs_pwrite(l.f, "123", 3, 1), 3);
	cr_assert_eq(plfs_sync(l.f), 0);
	cr_assert_eq(in_child(sync_over, NULL), 0);
	cr_assert_eq(plfs_pwrite(l.f, "45", 2, 4), 2);
	cr_assert_eq(plfs_sync(l.f), 0);
	cr_assert_eq(in_child(write_over, NULL), 0);
	cr_assert_eq(plfs_pwrite(l.f, "67", 2, 0), 2);
	cr_assert_eq(lclose(&l), 0);
	contains("67XYZ5dd");
	cr_assert_eq(in_child(sync_over, NULL), 0);
	cut_to(3, true);
	contains("67X");
	append("ee", 5);
	contains("67Xee");
}

/* More records than are kept for the maps, in the end in other maps as well. */
Test(parked, a_life_that_syncs_very_often)
{
	char want[3001] = "", c;
	struct lfile l;

	append("ab", 2);
	append("cd", 4);
	memset(want, 'z', sizeof(want) - 1);
	for (int round = 0; round < 3; round++) {
		l = lopen("f", O_RDWR);
		for (int i = 0; i < 1500; i++) {
			c = (char)('a' + (i + round) % 26);
			want[2 * i] = c;
			cr_assert_eq(plfs_pwrite(l.f, &c, 1, 2 * i), 1);
			if (i % 4 == 3 - round)
				cr_assert_eq(plfs_sync(l.f), 0);
			if (i == 700 * round)
				cr_assert_eq(plfs_pread(l.f, &c, 1, 2 * i), 1);
		}
		cr_assert_eq(plfs_pwrite(l.f, "z", 1, 2999), 1);
		cr_assert_eq(lclose(&l), 0);
		l = lopen("f", O_RDONLY);
		for (int i = 0; i < 3000; i += 2) {
			cr_assert_eq(plfs_pread(l.f, &c, 1, i), 1);
			cr_assert_eq(c, want[i]);
		}
		cr_assert_eq(lclose(&l), 0);
	}
}

static int append_one(void *arg)
{
	struct lfile l = lopen("f", O_RDWR | O_APPEND);
	off_t end;

	(void)arg;
	return lappend(&l, "!", 1, &end) != 1 || lclose(&l);
}

Test(parked, an_append)
{
	parked_then(append_one);
	append("ee", 11);
	contains("aabbccdd!ee");
}

static int cut(void *arg)
{
	struct lfile l = lopen("f", O_RDWR);

	(void)arg;
	return plfs_truncate(l.f, 3) || lclose(&l);
}

Test(parked, a_truncation)
{
	parked_then(cut);
	append("ee", 5);
	contains("aabee");
	cr_assert_eq(in_child(cut, NULL), 0);
	contains("aab");
}

static int cut_and_extend(void *arg)
{
	struct lfile l = lopen("f", O_RDWR);

	(void)arg;
	return plfs_truncate(l.f, 3) || plfs_truncate(l.f, 8) || lclose(&l);
}

Test(parked, a_truncation_that_the_size_does_not_show)
{
	struct lfile l;

	parked_then(cut_and_extend);
	l = lopen("f", O_RDONLY);
	cr_assert(lzeros(&l, 3, 5));
	cr_assert_eq(lclose(&l), 0);
}

static int empty(void *arg)
{
	struct lfile l = lopen("f", O_RDWR | O_CREAT | O_TRUNC);

	(void)arg;
	return plfs_pwrite(l.f, "12345678", 8, 0) != 8 || lclose(&l);
}

Test(parked, an_emptied_file)
{
	parked_then(empty);
	contains("12345678");
	append("ee", 10);
	contains("12345678ee");
}

static int another(void *arg) { return lunlink("f") ? 1 : empty(arg); }

Test(parked, another_file_of_the_name)
{
	parked_then(another);
	contains("12345678");
	append("ee", 10);
	contains("12345678ee");
}

static int compact(void *arg) { return (void)arg, write_at(0, "A") || lcompact("f"); }

Test(parked, a_compaction)
{
	parked_then(compact);
	contains("Aabbccdd");
	append("ee", 10);
	contains("Aabbccddee");
}

static int into_the_body(void *arg)
{
	struct lfile l = lopen("f", O_RDWR);

	(void)arg;
	return plfs_in_body(l.f, PLFS_MAP_WRITE) < 0 || plfs_pwrite(l.f, "X", 1, 0) != 1 || lclose(&l);
}

Test(parked, a_move_into_the_body)
{
	parked_then(into_the_body);
	contains("Xabbccdd");
	append("ee", 10);
	contains("Xabbccddee");
}

static int die_writing(void *arg)
{
	struct lfile l = made("f");

	(void)arg;
	if (plfs_pwrite(l.f, "XYZ", 3, 2) != 3)
		return 1;
	raise(SIGKILL);
	return 0;
}

/* Its records are in a live file, for ever. */
Test(parked, the_write_of_a_killed_process)
{
	append("aabbccdd", 8);
	contains("aabbccdd");
	append("ee", 10);
	cr_assert_eq(in_child(die_writing, NULL), 256 + SIGKILL);
	contains("aaXYZcddee");
	append("ff", 12);
	contains("aaXYZcddeeff");
}

static int write_and_wait(void *arg)
{
	int *done = arg;
	struct lfile l = made("f");
	char c;

	for (int i = 0; i < 3; i++) {
		if (plfs_pwrite(l.f, &"XYZ"[i], 1, 2 + i) != 1 || write(done[1], "", 1) != 1 ||
		    read(done[2], &c, 1) != 1)
			return 1;
	}
	return lclose(&l);
}

Test(parked, the_writes_of_one_that_has_the_file_open_all_the_time)
{
	static const char *const want[] = { "aaXbccdd", "aaXYccdde", "aaXYZcddee" };
	int done[4];
	pid_t pid;
	char c;

	append("aabb", 4);
	append("ccdd", 8);
	cr_assert(!pipe(done) && !pipe(done + 2));
	pid = start_child(write_and_wait, done);
	for (int i = 0; i < 3; i++) {
		cr_assert_eq(read(done[0], &c, 1), 1);
		contains(want[i]);
		append("e", 9 + i);
		cr_assert_eq(write(done[3], "", 1), 1);
	}
	cr_assert_eq(wait_child(pid), 0);
	contains("aaXYZcddeee");
}

/* The child of a fork has its parent's maps, and each goes on for itself. */
Test(parked, what_the_child_of_a_fork_writes)
{
	append("aa", 2);
	append("bb", 4);
	cr_assert_eq(in_child(append_one, NULL), 0);
	append("cc", 7);
	cr_assert_eq(in_child(append_one, NULL), 0);
	contains("aabb!cc!");
}

/* An inode that is over goes when the last call that uses it ends. Its maps are parked then. */
Test(parked, maps_parked_in_the_middle_of_a_later_life)
{
	struct lfile l = made("f");
	struct inode *old;
	struct stat st;
	char buf[5] = "";

	cr_assert_eq(plfs_pwrite(l.f, "aaaa", 4, 0), 4);
	cr_assert_eq(lclose(&l), 0);
	l = made("f");
	cr_assert_eq(plfs_pread(l.f, buf, 4, 0), 4);
	cr_assert_eq(fstat(l.fd, &st), 0);
	old = inode_find(st.st_dev, st.st_ino); /* as plfs_sync_all() and a fork in another thread do */
	cr_assert_eq(lclose(&l), 0);
	l = made("f");
	cr_assert_eq(plfs_pread(l.f, buf, 4, 0), 4);
	inode_put(old, NULL); /* parks */
	cr_assert_eq(plfs_pwrite(l.f, "bb", 2, 0), 2);
	cr_assert_eq(plfs_pread(l.f, buf, 4, 0), 4); /* the record is in the maps, and counted */
	cr_assert_str_eq(buf, "bbaa");
	reader_release(&l.f->ino->v.r); /* as without memory */
	cr_assert_eq(plfs_pread(l.f, buf, 4, 0), 4);
	cr_assert_str_eq(buf, "bbaa", "%s", buf);
	cr_assert_eq(lclose(&l), 0);
}
