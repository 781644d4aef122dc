/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Files whose logs are near (near= of a mapping): what lies where, what a place is refused for, full places,
 * places that are lost. The calls of programs on such files are compared with a plain directory by the
 * variant "near" of test/posix/run, and plfs drain is test/crash/drain.c's.
 */
#include "test/lib/near.h"

#include "core/backend/mount.h"
#include "core/base/sys.h"
#include "core/plfs_admin.h"

#include <criterion/criterion.h>

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define LEN 300000

static char user[100];

static void setup(void)
{
	near_setup("");
	snprintf(user, sizeof(user), "%s/plfs.%u", near_dir, (unsigned)geteuid());
}

TestSuite(near, .init = setup, .fini = near_remove);

static int write_a(void *arg)
{
	struct lfile l = made("a");

	(void)arg;
	return lfill(&l, 0, LEN, 1) != LEN || lclose(&l);
}

static int read_a(void *arg)
{
	struct lfile l = lopen("a", O_RDONLY);

	(void)arg;
	return lcheck(&l, 0, LEN, 1) || lclose(&l);
}

Test(near, logs_and_live_files_are_near_and_the_rest_is_at_home)
{
	struct lfile l = made("a");

	cr_assert_eq(lfill(&l, 0, LEN, 1), LEN);
	cr_assert_eq(near_count("data."), 1);
	cr_assert_eq(near_count("live."), 1);
	cr_assert_eq(near_count("near."), 1);
	cr_assert_eq(count_files("data."), 0);
	cr_assert_eq(count_files("live."), 0);
	cr_assert_eq(count_files("near."), 1);
	cr_assert_eq(count_files("notice."), 1);
	cr_assert_eq(lcheck(&l, 0, LEN, 1), 0);
	cr_assert_eq(lclose(&l), 0);
	cr_assert_eq(near_count("live."), 0);
	cr_assert_eq(count_files("index."), 1);
	cr_assert_eq(in_child(read_a, NULL), 0);
}

/* Not even now and then for the size, as with a log at home: the backend may hang. */
Test(near, writes_do_nothing_in_the_backend)
{
	struct lfile l = made("a");
	char path[PATH_MAX];
	struct stat before, after;

	lpath("a", path);
	cr_assert_eq(lfill(&l, 0, LEN, 1), LEN);
	cr_assert_eq(stat(path, &before), 0);
	for (int i = 1; i < 4; i++) {
		usleep(60000);
		cr_assert_eq(lfill(&l, i * LEN, LEN, 1), LEN);
		cr_assert_eq(lfill(&l, i * LEN, 100, 1), 100);
		cr_assert_eq(lcheck(&l, 0, (size_t)(i + 1) * LEN, 1), 0);
	}
	cr_assert_eq(stat(path, &after), 0);
	cr_assert_eq(after.st_size, before.st_size);
	cr_assert_eq(after.st_ctim.tv_nsec, before.st_ctim.tv_nsec);
	cr_assert_eq(stat_size("a"), 4 * LEN);
	cr_assert_eq(lclose(&l), 0);
	cr_assert_eq(stat(path, &after), 0);
	cr_assert_gt(after.st_size, 4 * LEN);
}

Test(near, the_stub_says_so_to_older_libraries)
{
	unsigned char incompat = 0;
	char path[PATH_MAX];
	int fd;

	cr_assert_eq(in_child(write_a, NULL), 0);
	lpath("a", path);
	fd = open(path, O_RDONLY);
	cr_assert(fd >= 0 && pread(fd, &incompat, 1, 20) == 1);
	close(fd);
	cr_assert_eq(incompat, 4);
}

Test(near, processes_see_each_other_as_ever)
{
	struct lfile l = made("a");

	cr_assert_eq(lfill(&l, 0, LEN, 1), LEN); /* and not closed */
	cr_assert_eq(in_child(read_a, NULL), 0);
	cr_assert_eq(lfill(&l, 1000, 10, 1), 10);
	cr_assert_eq(in_child(read_a, NULL), 0);
	cr_assert_eq(stat_size("a"), LEN);
	cr_assert_eq(lclose(&l), 0);
}

static int drain_it(void *arg)
{
	struct plfs_drain d = { 0 };
	char path[PATH_MAX];
	struct plfs_mount *m = lpath("a", path);

	(void)arg;
	return plfs_drain_file(m, AT_FDCWD, path, &d) ? 100 : (int)d.nr_logs;
}

static int (*real_openat2)(int dirfd, const char *path, struct open_how *how, size_t size);

static int stop_before_live(int dirfd, const char *path, struct open_how *how, size_t size)
{
	if (strstr(path, "live.") && how->flags & O_CREAT)
		raise(SIGSTOP);
	return real_openat2(dirfd, path, how, size);
}

static int write_and_stop(void *arg)
{
	real_openat2 = sys.openat2;
	sys.openat2 = stop_before_live;
	return write_a(arg);
}

/* A log without a live file has been closed, or has just been made. */
Test(near, a_log_that_has_no_live_file_yet_is_not_moved, .timeout = 60)
{
	pid_t pid;
	int status;

	if (!has_openat2())
		cr_skip_test("no openat2() here");
	pid = start_child(write_and_stop, NULL);
	cr_assert_eq(waitpid(pid, &status, WUNTRACED), pid);
	cr_assert(WIFSTOPPED(status));
	cr_assert_eq(near_count("data."), 1);
	cr_assert_eq(in_child(drain_it, NULL), 0);
	kill(pid, SIGCONT);
	cr_assert_eq(wait_child(pid), 0);
	cr_assert_eq(in_child(read_a, NULL), 0);
	cr_assert_eq(in_child(drain_it, NULL), 1, "now it is moved");
	cr_assert_eq(in_child(read_a, NULL), 0);
}

Test(near, a_removed_file_leaves_nothing)
{
	cr_assert_eq(in_child(write_a, NULL), 0);
	cr_assert_eq(lunlink("a"), 0);
	cr_assert_eq(near_count("data.") + near_count("near."), 0);
	cr_assert_eq(count_files("data.") + count_files("near."), 0);
}

Test(near, a_truncation_to_0_removes_what_is_near)
{
	struct lfile l;

	cr_assert_eq(in_child(write_a, NULL), 0);
	l = lopen("a", O_RDWR | O_TRUNC);
	cr_assert_eq(lclose(&l), 0);
	cr_assert_eq(near_count("data."), 0);
}

Test(near, a_place_that_others_may_write_is_refused)
{
	cr_assert_eq(mkdir(user, 0755), 0);
	cr_assert_eq(chmod(user, 0777), 0);
	cr_assert_eq(in_child(write_a, NULL), 0);
	cr_assert_eq(near_count("data."), 0);
	cr_assert_eq(count_files("data."), 1);
	cr_assert_eq(in_child(read_a, NULL), 0);
}

Test(near, a_place_that_is_no_directory_is_refused)
{
	int fd = open(user, O_WRONLY | O_CREAT, 0644);

	close(fd);
	cr_assert_eq(in_child(write_a, NULL), 0);
	cr_assert_eq(count_files("data."), 1);
	cr_assert_eq(in_child(read_a, NULL), 0);
}

Test(near, a_place_that_is_a_link_is_refused)
{
	char elsewhere[64];

	new_dir(elsewhere, sizeof(elsewhere));
	cr_assert_eq(symlink(elsewhere, user), 0);
	cr_assert_eq(in_child(write_a, NULL), 0);
	cr_assert_eq(count_files("data."), 1);
	cr_assert_eq(rmdir(elsewhere), 0, "something is in it");
}

/* ---- a place that is lost ---- */

static int write_and_sync(void *arg)
{
	struct lfile l = made("a");

	(void)arg;
	if (lfill(&l, 0, LEN, 1) != LEN || plfs_sync(l.f) || lfill(&l, LEN, LEN, 1) != LEN)
		return 1;
	return lclose(&l);
}

Test(near, what_was_synced_survives_the_place_and_the_rest_is_an_error)
{
	struct lfile l;

	cr_assert_eq(in_child(write_and_sync, NULL), 0);
	near_lose();
	l = lopen("a", O_RDONLY);
	cr_assert_eq(plfs_size(l.f), 2 * LEN);
	cr_assert_eq(lcheck(&l, 0, LEN, 1), 0);
	cr_assert_eq(lcheck(&l, LEN, LEN, 1), -EIO);
	cr_assert_eq(lcheck(&l, 2 * LEN - 1, 1, 1), -EIO);
	cr_assert_eq(lclose(&l), 0);
}

static int sync_a(void *arg)
{
	struct lfile l = lopen("a", O_RDWR);

	(void)arg;
	return plfs_sync(l.f) || lclose(&l);
}

Test(near, a_sync_by_another_process_counts_for_all)
{
	struct lfile l = made("a");

	cr_assert_eq(lfill(&l, 0, LEN, 1), LEN);
	cr_assert_eq(in_child(sync_a, NULL), 0);
	near_lose();
	cr_assert_eq(in_child(read_a, NULL), 0);
	plfs_close(l.f); /* its log has gone */
	close(l.fd);
}

Test(near, an_overwritten_byte_that_is_lost_does_not_come_back)
{
	struct lfile l = made("a");

	cr_assert_eq(lfill(&l, 0, LEN, 1), LEN);
	cr_assert_eq(plfs_sync(l.f), 0);
	cr_assert_eq(lclose(&l), 0);
	l = lopen("a", O_RDWR);
	cr_assert_eq(lfill(&l, 1000, 1000, 2), 1000);
	cr_assert_eq(lclose(&l), 0);
	near_lose();
	l = lopen("a", O_RDONLY);
	cr_assert_eq(lcheck(&l, 0, 1000, 1), 0);
	cr_assert_eq(lcheck(&l, 1000, 1000, 1), -EIO);
	cr_assert_eq(lcheck(&l, 2000, LEN - 2000, 1), 0);
	cr_assert_eq(lclose(&l), 0);
}

static void note_lost(void *arg, const struct plfs_finding *f)
{
	unsigned *seen = arg;

	*seen |= !strcmp(f->code, "elsewhere") && strstr(f->text, near_dir) ? 1 : 0;
	*seen |= !strcmp(f->code, "lost") && f->logical_off == LEN && f->len == LEN ? 2 : 0;
	*seen |= !strcmp(f->code, "lost") && f->logical_off != LEN ? 4 : 0;
}

static int check_a(void *arg)
{
	unsigned seen = 0;
	struct plfs_check c = { .found = note_lost, .arg = &seen };
	char path[PATH_MAX];
	struct plfs_mount *m = lpath("a", path);

	(void)arg;
	return plfs_check(m, AT_FDCWD, path, &c) != 1 ? 100 : (int)seen;
}

Test(near, check_names_the_place_and_what_is_lost)
{
	cr_assert_eq(in_child(write_and_sync, NULL), 0);
	near_lose();
	cr_assert_eq(in_child(check_a, NULL), 3);
}

static int write_and_die(void *arg)
{
	struct lfile l = made("a");

	(void)arg;
	lfill(&l, 0, LEN, 1);
	return kill(getpid(), SIGKILL);
}

static void note_elsewhere(void *arg, const struct plfs_finding *f)
{
	*(int *)arg += f->severity == PLFS_NOTED && !strcmp(f->code, "place-elsewhere") &&
		       strstr(f->text, near_dir);
}

static int check_notes(void *arg)
{
	int nr = 0;
	struct plfs_check c = { .found = note_elsewhere, .arg = &nr };
	char path[PATH_MAX];
	struct plfs_mount *m = lpath("a", path);

	(void)arg;
	return plfs_check(m, AT_FDCWD, path, &c) ? 100 : nr;
}

/* No record of it is at home: what it would be is not known. */
Test(near, check_notes_that_killed_processes_may_have_written_in_a_lost_place)
{
	cr_assert_eq(in_child(write_and_die, NULL), 256 + SIGKILL);
	cr_assert_eq(in_child(check_notes, NULL), 0);
	near_lose();
	cr_assert_eq(in_child(check_notes, NULL), 1);
}

static int write_a_little_and_die(void *syncs)
{
	struct lfile l = made("a");

	if (lfill(&l, 0, 1000, 1) != 1000 || (syncs && plfs_sync(l.f)))
		return 1;
	return kill(getpid(), SIGKILL);
}

/* Their last bytes are staged, and not in the logs. */
Test(near, check_takes_no_open_log_at_home_for_one_in_a_lost_place)
{
	struct lfile l;

	cr_assert_eq(in_child(write_a_little_and_die, "syncs"), 256 + SIGKILL);
	near_lose();
	cr_assert_eq(in_child(write_a_little_and_die, NULL), 256 + SIGKILL);
	cr_assert_eq(in_child(check_notes, NULL), 1);
	l = lopen("a", O_RDWR);
	cr_assert_eq(lfill(&l, 1000, 1000, 1), 1000);
	cr_assert_eq(in_child(check_notes, NULL), 1);
	cr_assert_eq(lclose(&l), 0);
}

Test(near, after_a_loss_new_logs_are_at_home)
{
	struct lfile l;

	cr_assert_eq(in_child(write_and_sync, NULL), 0);
	near_lose();
	l = lopen("a", O_RDWR);
	cr_assert_eq(lfill(&l, 0, 2 * LEN, 5), 2 * LEN);
	cr_assert_eq(lclose(&l), 0);
	cr_assert_eq(near_count("data."), 0);
	l = lopen("a", O_RDONLY);
	cr_assert_eq(lcheck(&l, 0, 2 * LEN, 5), 0);
	cr_assert_eq(lclose(&l), 0);
}

static int forget_a(void *arg)
{
	char path[PATH_MAX], host[64];
	struct plfs_mount *m = lpath("a", path);
	unsigned nr = 0;

	gethostname(host, sizeof(host));
	(void)arg;
	return plfs_places_forget(m, AT_FDCWD, path, host, &nr) == -EBUSY ? 10 : (int)nr;
}

Test(near, a_place_can_be_given_up_once_it_is_lost)
{
	struct lfile l;

	cr_assert_eq(in_child(write_and_sync, NULL), 0);
	cr_assert_eq(in_child(forget_a, NULL), 10);
	near_lose();
	cr_assert_eq(in_child(forget_a, NULL), 1);
	cr_assert_eq(count_files("near."), 0);
	l = lopen("a", O_RDONLY);
	cr_assert_eq(lcheck(&l, 0, LEN, 1), 0);
	cr_assert_eq(lcheck(&l, LEN, LEN, 1), -EIO);
	cr_assert_eq(lclose(&l), 0);
}

/* The directory is there again, after a restart, say, and somebody has made one of the same name. */
Test(near, another_place_of_the_same_name_is_not_taken_for_it)
{
	struct lfile l;

	cr_assert_eq(in_child(write_and_sync, NULL), 0);
	near_lose();
	l = made("b");
	cr_assert_eq(lfill(&l, 0, LEN, 2), LEN);
	cr_assert_eq(lclose(&l), 0);
	l = lopen("a", O_RDONLY);
	cr_assert_eq(lcheck(&l, LEN, LEN, 1), -EIO);
	cr_assert_eq(lclose(&l), 0);
}

/* ---- other hosts ---- */

/* A release leaves the records at home, where other hosts find them. */
Test(near, where_hosts_share_the_backend_a_release_writes_the_index_home)
{
	char path[PATH_MAX];
	struct lfile l;

	lpath("a", path)->store.remote = true;
	l = made("a");
	cr_assert_eq(lfill(&l, 0, LEN, 1), LEN);
	cr_assert_eq(count_files("index."), 0);
	plfs_commit(l.f);
	cr_assert_eq(count_files("index."), 1);
	cr_assert_eq(rename(user, strcat(strcpy(path, user), ".aside")), 0);
	cr_assert_eq(in_child(check_a, NULL) & ~4, 1, "it is seen, and where it is");
	cr_assert_eq(rename(path, user), 0);
	cr_assert_eq(in_child(read_a, NULL), 0);
	cr_assert_eq(lclose(&l), 0);
}
