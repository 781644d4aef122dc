/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Files whose logs are in several backends (spread= of a mapping): what lies where by which rule, other
 * mappings of the same files, backends that are gone. The calls of programs on such files are compared with a
 * plain directory by the variant "spread" of test/posix/run; kills are test/crash/spread.c's.
 */
#include "test/lib/calls.h"
#include "test/lib/near.h"

#include "core/backend/mount.h"
#include "core/base/sys.h"
#include "core/plfs_admin.h"

#include <criterion/criterion.h>

#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#define LEN 300000
#define NR 40 /* so many processes or files leave none of three backends out, but once in a million runs */

static void by_process(void) { near_spread("process"); }
static void by_host(void) { near_spread("host"); }
static void by_file(void) { near_spread("file"); }

TestSuite(spread, .init = by_process, .fini = near_remove);
TestSuite(spread_host, .init = by_host, .fini = near_remove);
TestSuite(spread_file, .init = by_file, .fini = near_remove);

static const char *name = "a";

static int write_it(void *arg)
{
	struct lfile l = made(name);
	long i = (long)arg;

	return lfill(&l, i * LEN, LEN, 1) != LEN || lclose(&l);
}

static int read_it(void *arg)
{
	struct lfile l = lopen(name, O_RDONLY);
	long nr = (long)arg;

	return lcheck(&l, 0, (size_t)nr * LEN, 1) || lclose(&l);
}

/* In another backend than home: until the rule picks one of them. */
static void write_there(void)
{
	for (int i = 0; !near_count("data."); i++) {
		cr_assert_lt(i, 100);
		if (i)
			cr_assert_eq(lunlink(name), 0);
		cr_assert_eq(in_child(write_it, (void *)0), 0);
	}
}

/* The number of directories that have a log, and of logs that have one to themselves. */
static int nr_dirs, nr_own;
static char last_dir[PATH_MAX];

static int see_dir(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	char dir[PATH_MAX];

	(void)st;
	if (type != FTW_F || strncmp(path + ftw->base, "data.", 5))
		return 0;
	snprintf(dir, sizeof(dir), "%.*s", ftw->base - 1, path);
	nr_dirs += strcmp(dir, last_dir) != 0;
	nr_own += strstr(strrchr(dir, '/'), "/own.") == strrchr(dir, '/');
	strcpy(last_dir, dir);
	return 0;
}

static void see_dirs(const char *top)
{
	nr_dirs = nr_own = 0;
	*last_dir = '\0';
	nftw(top, see_dir, 16, FTW_PHYS);
}

static int count_in(const char *backend)
{
	char path[100];

	snprintf(path, sizeof(path), "%s/%s", near_dir, backend);
	see_dirs(path);
	return nr_dirs;
}

/* ---- the rules ---- */

Test(spread, each_process_has_a_directory_of_its_own_and_all_backends_have_some)
{
	for (long i = 0; i < NR; i++)
		cr_assert_eq(in_child(write_it, (void *)i), 0);
	cr_assert_gt(count_files("data."), 0);
	cr_assert_gt(count_in("2"), 0);
	cr_assert_gt(count_in("3"), 0);
	cr_assert_eq(count_files("data.") + near_count("data."), NR);
	see_dirs(near_dir);
	cr_assert_eq(nr_own, near_count("data."));
	cr_assert_eq(nr_dirs, nr_own, "no two logs share one");
	cr_assert_eq(in_child(read_it, (void *)NR), 0);
}

Test(spread_host, all_processes_of_a_host_use_one_backend_and_a_directory)
{
	for (long i = 0; i < NR; i++)
		cr_assert_eq(in_child(write_it, (void *)i), 0);
	cr_assert(count_files("data.") == NR || near_count("data.") == NR);
	see_dirs(near_dir);
	cr_assert(nr_dirs <= 1 && nr_own == near_count("data."));
	cr_assert_eq(in_child(read_it, (void *)NR), 0);
}

Test(spread_file, all_logs_of_a_file_are_in_one_backend_and_other_files_in_others)
{
	char names[NR][8];

	for (long i = 0; i < NR; i++) {
		int home = count_files("data."), there = near_count("data.");

		snprintf(names[i], sizeof(names[i]), "f%ld", i);
		name = names[i];
		for (long k = 0; k < 3; k++)
			cr_assert_eq(in_child(write_it, (void *)k), 0);
		cr_assert(count_files("data.") == home + 3 || near_count("data.") == there + 3);
		cr_assert_eq(in_child(read_it, (void *)3), 0);
	}
	cr_assert_gt(count_files("data."), 0);
	cr_assert_gt(count_in("2"), 0);
	cr_assert_gt(count_in("3"), 0);
	cr_assert_eq(nr_own, 0);
}

Test(spread, live_files_are_beside_the_logs_and_the_rest_is_at_home)
{
	struct lfile l = made("a");

	cr_assert_eq(lfill(&l, 0, LEN, 1), LEN);
	cr_assert_eq(near_count("live."), near_count("data."));
	cr_assert_eq(near_count("live.") + count_files("live."), 1);
	cr_assert_eq(count_files("notice."), 1);
	cr_assert_eq(lclose(&l), 0);
	cr_assert_eq(near_count("live.") + count_files("live."), 0);
	cr_assert_eq(count_files("index."), 1);
}

static int nr_synced_first;

static int note_sync(enum call call)
{
	nr_synced_first += call == CALL_FSYNC && !count_files("spread.");
	return 0;
}

/* plfs.UID, the backend's, two of the container and its hostdir. */
static int write_watched(void *arg)
{
	calls_intercept();
	on_call = note_sync;
	return write_it(arg) || (near_count("data.") && nr_synced_first < 5);
}

/* Else a power failure can leave what leads there alone, and the backend would seem to be gone. */
Test(spread, directories_are_on_stable_storage_before_home_leads_there)
{
	for (int i = 0; !near_count("data."); i++) {
		cr_assert_lt(i, 100);
		if (i)
			cr_assert_eq(lunlink(name), 0);
		cr_assert_eq(in_child(write_watched, (void *)0), 0);
	}
}

Test(spread, the_stub_says_so_to_older_libraries)
{
	unsigned char incompat = 0;
	char path[PATH_MAX];
	int fd;

	cr_assert_eq(in_child(write_it, NULL), 0);
	lpath("a", path);
	fd = open(path, O_RDONLY);
	cr_assert(fd >= 0 && pread(fd, &incompat, 1, 20) == 1);
	close(fd);
	cr_assert_eq(incompat, 8);
}

static int write_and_wait(void *arg)
{
	struct lfile l = made("a");

	(void)arg;
	if (lfill(&l, 0, LEN, 1) != LEN)
		return 1;
	raise(SIGSTOP);
	return lfill(&l, 1000, 10, 1) != 10 || lclose(&l);
}

Test(spread, processes_see_each_other_as_ever)
{
	pid_t pids[NR];
	int status;

	for (int i = 0; i < NR; i++) {
		pids[i] = start_child(write_and_wait, NULL);
		cr_assert_eq(waitpid(pids[i], &status, WUNTRACED), pids[i]);
	}
	cr_assert_gt(near_count("live."), 0);
	cr_assert_eq(in_child(read_it, (void *)1), 0);
	cr_assert_eq(stat_size("a"), LEN);
	for (int i = 0; i < NR; i++) {
		kill(pids[i], i % 2 ? SIGCONT : SIGKILL);
		wait_child(pids[i]);
	}
	cr_assert_eq(in_child(read_it, (void *)1), 0);
}

Test(spread, a_log_is_continued_where_it_is)
{
	struct lfile l;

	for (int i = 0; i < 20; i++) {
		l = made("a");
		cr_assert_eq(lfill(&l, i * LEN, LEN, 1), LEN);
		cr_assert_eq(near_count("live."), near_count("data."));
		cr_assert_eq(lclose(&l), 0);
	}
	cr_assert_eq(near_count("data.") + count_files("data."), 1);
	cr_assert_eq(in_child(read_it, (void *)20), 0);
}

/* ---- what is done with files ---- */

Test(spread, a_removed_file_leaves_nothing)
{
	for (long i = 0; i < NR; i++)
		cr_assert_eq(in_child(write_it, (void *)i), 0);
	cr_assert_eq(lunlink("a"), 0);
	cr_assert_eq(near_count("data.") + near_count("spread."), 0);
	cr_assert_eq(count_files("data.") + count_files("spread."), 0);
}

Test(spread, a_truncation_to_0_frees_all_backends)
{
	struct lfile l;

	for (long i = 0; i < NR; i++)
		cr_assert_eq(in_child(write_it, (void *)i), 0);
	l = lopen("a", O_RDWR | O_TRUNC);
	cr_assert_eq(lclose(&l), 0);
	cr_assert_eq(near_count("data.") + count_files("data."), 0);
}

static int compact_it(void *arg)
{
	(void)arg;
	return lcompact("a");
}

Test(spread, compacting_frees_what_was_overwritten_in_all_backends)
{
	for (long i = 0; i < NR; i++)
		cr_assert_eq(in_child(write_it, (void *)0), 0);
	cr_assert_gt(near_count("data."), 1);
	cr_assert_eq(in_child(compact_it, NULL), 0);
	cr_assert_eq(near_count("data.") + count_files("data."), 1);
	cr_assert_eq(in_child(read_it, (void *)1), 0);
}

Test(spread, flattening_frees_all_backends)
{
	char path[PATH_MAX];

	for (long i = 0; i < NR; i++)
		cr_assert_eq(in_child(write_it, (void *)i), 0);
	lpath("a", path);
	cr_assert_eq(plfs_flatten(AT_FDCWD, path, NULL), 0);
	cr_assert_eq(near_count("data.") + count_files("data."), 0);
}

static int modes_of(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	if (type == FTW_F && !strncmp(path + ftw->base, "data.", 5))
		nr_own |= (int)(st->st_mode & 0777);
	return 0;
}

Test(spread, logs_have_the_mode_of_the_file)
{
	char path[PATH_MAX];

	write_there();
	nr_own = 0;
	nftw(near_dir, modes_of, 16, FTW_PHYS);
	cr_assert_eq(nr_own, 0644);
	lpath("a", path);
	cr_assert_eq(plfs_chmod(AT_FDCWD, path, 0600, 0), 0);
	nr_own = 0;
	nftw(near_dir, modes_of, 16, FTW_PHYS);
	cr_assert_eq(nr_own, 0600);
}

/* ---- other mappings ---- */

/* In a process that maps only the backends of @arg, after the scratch directory, with these options. */
static int remapped(int (*fn)(void *arg), void *arg, const char *rest)
{
	pid_t pid = fork_child();

	if (!pid)
		_exit(near_map_q(rest) ? 100 : fn(arg));
	return wait_child(pid);
}

static int read_in_q(void *arg)
{
	struct lfile l;

	return near_open_q(&l, O_RDONLY) || lcheck(&l, 0, (size_t)(long)arg * LEN, 1) || lclose(&l);
}

static int write_in_q(void *arg)
{
	struct lfile l;

	return near_open_q(&l, O_RDWR) || lfill(&l, (long)arg * LEN, LEN, 1) != LEN || lclose(&l);
}

Test(spread, what_is_on_disk_says_where_logs_are_and_not_the_mapping)
{
	char turned[200], two[200], host[200];

	snprintf(turned, sizeof(turned), ",%s/3,%s/2{small=0,spread=process}", near_dir, near_dir);
	snprintf(two, sizeof(two), ",%s/3{small=0,spread=file}", near_dir);
	snprintf(host, sizeof(host), ",%s/3,%s/2{small=0,spread=host}", near_dir, near_dir);
	for (long i = 0; i < 12; i++)
		cr_assert_eq(in_child(write_it, (void *)i), 0);
	cr_assert_eq(remapped(read_in_q, (void *)12, ""), 0);
	cr_assert_eq(remapped(read_in_q, (void *)12, turned), 0);
	for (long i = 12; i < 36; i++)
		cr_assert_eq(remapped(write_in_q, (void *)i, i % 4 == 0 ? turned : i % 4 == 1 ? two : i % 4 == 2 ? host : ""),
			     0);
	cr_assert_eq(in_child(read_it, (void *)36), 0);
	cr_assert_eq(remapped(read_in_q, (void *)36, ""), 0);
	cr_assert_eq(near_count("data.") + count_files("data."), 36);
	cr_assert_eq(lunlink("a"), 0);
	cr_assert_eq(near_count("data.") + count_files("data."), 0);
}

static int drain_in_q(void *arg)
{
	struct plfs_drain d = { 0 };
	struct plfs_mount *m = NULL;
	char path[PATH_MAX];

	(void)arg;
	if (plfs_path_map("/q/a", path, &m) != 1)
		return 100;
	return plfs_drain_file(m, AT_FDCWD, path, &d) ? 100 : (int)d.nr_logs;
}

/* One job has had near=, another spread=. A drain moves what is near, and nothing else. */
Test(spread, some_logs_of_a_file_may_be_near_and_others_in_other_backends)
{
	char near[100];
	int there;

	snprintf(near, sizeof(near), "{small=0,near=%s,drain=none}", near_dir);
	for (long i = 0; i < 12; i++)
		cr_assert_eq(in_child(write_it, (void *)i), 0);
	there = near_count("data.");
	cr_assert_gt(there, 0);
	for (long i = 12; i < 15; i++)
		cr_assert_eq(remapped(write_in_q, (void *)i, near), 0);
	cr_assert_eq(near_count("data."), there + 3);
	cr_assert_eq(in_child(read_it, (void *)15), 0);
	cr_assert_eq(remapped(drain_in_q, NULL, ""), 3);
	cr_assert_eq(near_count("data."), there);
	cr_assert_eq(in_child(read_it, (void *)15), 0);
	cr_assert_eq(remapped(read_in_q, (void *)15, ""), 0);
	cr_assert_eq(lunlink("a"), 0);
	cr_assert_eq(near_count("data.") + count_files("data."), 0);
}

/* ---- backends that are gone ---- */

static void move_away(bool back)
{
	char is[100], aside[100];

	for (int i = 2; i < 4; i++) {
		snprintf(is, sizeof(is), "%s/%d", near_dir, i);
		snprintf(aside, sizeof(aside), "%s/aside.%d", near_dir, i);
		cr_assert_eq(back ? rename(aside, is) : rename(is, aside), 0);
	}
}

static int read_part(void *arg)
{
	struct lfile l = lopen("a", O_RDONLY);
	long i = (long)arg;
	int ret = lcheck(&l, i * LEN, LEN, 1);

	lclose(&l);
	return ret == -EIO ? 5 : ret ? 1 : 0;
}

static void note(void *arg, const struct plfs_finding *f)
{
	unsigned *seen = arg;

	*seen |= !strcmp(f->code, "backend-gone") && strstr(f->text, near_dir) ? 1 : 0;
	*seen |= !strcmp(f->code, "elsewhere") && strstr(f->text, near_dir) ? 2 : 0;
	*seen |= !strcmp(f->code, "lost") && f->logical_off == 0 && f->len == LEN ? 4 : 0;
	*seen |= !strcmp(f->code, "lost") && f->logical_off == LEN ? 8 : 0;
}

static int check_it(void *arg)
{
	unsigned seen = 0;
	struct plfs_check c = { .found = note, .arg = &seen, .repair = arg, .partial = arg };
	char path[PATH_MAX];
	struct plfs_mount *m = lpath("a", path);

	return plfs_check(m, AT_FDCWD, path, &c) != 1 ? 100 : (int)seen;
}

static int sound(void *arg)
{
	unsigned seen = 0;
	struct plfs_check c = { .found = note, .arg = &seen, .repair = arg };
	char path[PATH_MAX];
	struct plfs_mount *m = lpath("a", path);

	return plfs_check(m, AT_FDCWD, path, &c);
}

Test(spread, a_backend_that_is_gone_is_an_error_and_nothing_is_repaired_away)
{
	write_there();
	cr_assert_eq(remapped(write_in_q, (void *)1, ""), 0); /* at home */
	move_away(false);
	cr_assert_eq(in_child(read_part, (void *)0), 5);
	cr_assert_eq(in_child(check_it, NULL), 7);
	cr_assert_eq(in_child(check_it, "repair"), 7);
	cr_assert_eq(in_child(read_part, (void *)0), 5);
	move_away(true);
	cr_assert_eq(in_child(read_it, (void *)2), 0);
	cr_assert_eq(in_child(sound, NULL), 0);
}

static int write_and_die(void *arg)
{
	struct lfile l = made("a");

	(void)arg;
	if (lfill(&l, 0, LEN, 1) == LEN)
		raise(SIGKILL);
	return 0;
}

/* Only the directory there knows of the log of a killed process. */
Test(spread, the_bytes_of_a_killed_process_in_a_backend_that_is_gone_are_not_older_ones)
{
	for (int i = 0; !near_count("data."); i++) {
		struct lfile l;

		cr_assert_lt(i, 100);
		lunlink("a");
		l = made("a");
		cr_assert_eq(lclose(&l), 0);
		cr_assert_eq(remapped(write_in_q, (void *)0, ""), 0);
		cr_assert_eq(in_child(write_and_die, NULL), 256 + SIGKILL);
	}
	cr_assert_eq(in_child(read_part, (void *)0), 0);
	move_away(false);
	cr_assert_eq(in_child(read_part, (void *)0), 5);
	cr_assert_eq(in_child(check_it, "repair") & 1, 1);
	move_away(true);
	cr_assert_eq(in_child(read_part, (void *)0), 0);
	cr_assert_eq(in_child(sound, "repair"), 0);
	cr_assert_eq(near_count("live."), 0);
	cr_assert_eq(in_child(read_part, (void *)0), 0);
}

Test(spread, where_a_backend_is_gone_new_logs_are_in_the_others)
{
	cr_assert_eq(in_child(write_it, (void *)0), 0);
	move_away(false);
	for (long i = 0; i < NR; i++) {
		name = "b";
		cr_assert_eq(in_child(write_it, (void *)i), 0);
	}
	cr_assert_eq(in_child(read_it, (void *)NR), 0);
	move_away(true);
	cr_assert_eq(in_child(read_it, (void *)NR), 0);
	name = "a";
	cr_assert_eq(in_child(read_it, (void *)1), 0);
}

Test(spread, a_backend_that_others_may_write_is_refused)
{
	char user[100];

	for (int i = 2; i < 4; i++) {
		snprintf(user, sizeof(user), "%s/%d/plfs.%u", near_dir, i, (unsigned)geteuid());
		cr_assert_eq(mkdir(user, 0755), 0);
		cr_assert_eq(chmod(user, 0777), 0);
	}
	for (long i = 0; i < 12; i++)
		cr_assert_eq(in_child(write_it, (void *)i), 0);
	cr_assert_eq(near_count("data."), 0);
	cr_assert_eq(in_child(read_it, (void *)12), 0);
}

Test(spread, a_damaged_way_to_a_backend_is_an_error)
{
	char path[PATH_MAX];
	int fd;

	write_there();
	cr_assert(find_file("spread.", path));
	fd = open(path, O_WRONLY);
	cr_assert_eq(pwrite(fd, "x", 1, 200), 1);
	close(fd);
	cr_assert_eq(in_child(read_part, (void *)0), 5);
}

/* Its maker was killed before it had written the bytes, and so before it made a log there. */
Test(spread, an_empty_way_to_a_backend_leads_nowhere)
{
	char path[PATH_MAX], *dir;

	write_there();
	cr_assert(find_file("index.", path));
	dir = strrchr(path, '/');
	strcpy(dir, "/spread.6.elsewhere-12345678");
	close(open(path, O_CREAT | O_EXCL | O_WRONLY, 0644));
	cr_assert_eq(in_child(read_it, (void *)1), 0);
	cr_assert_eq(in_child(write_it, (void *)1), 0);
	cr_assert_eq(in_child(read_it, (void *)2), 0);
}
