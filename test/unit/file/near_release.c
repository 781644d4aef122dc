/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * release=home: what a process has released can be read on other hosts, and a close that cannot have it so
 * fails. The other host is a process of another boot for which the directory of near= is not there.
 */
#include "test/lib/calls.h"
#include "test/lib/near.h"

#include "core/backend/mount.h"

#include <criterion/criterion.h>

#define LEN 300000

static void setup_with(const char *options)
{
	char path[PATH_MAX];

	near_setup(options);
	lpath("a", path)->store.remote = true;
}

static void setup(void) { setup_with(",drain=none,release=home"); }

TestSuite(near_release, .init = setup, .fini = near_remove, .timeout = 600);

/* ---- a process that is asked ---- */

struct peer {
	pid_t pid;
	int ask[2], answer[2];
	bool elsewhere;
	struct lfile l;
};

/* What a peer does: 0; else what is wrong. */
static int carry_out(struct peer *p, char what)
{
	switch (what) {
	case '1': /* writes */
	case '2':
		return lfill(&p->l, what == '1' ? 0 : LEN / 2, LEN, (unsigned)(what - '0')) != LEN;
	case 'u': /* unlocks, locks */
		return plfs_commit(p->l.f);
	case 'l':
		return plfs_refresh(p->l.f);
	case 's':
		return plfs_sync(p->l.f);
	case 'c':
		return lclose(&p->l);
	case 'a': /* reads what was written first; and what was written second; or an error */
		return lcheck(&p->l, 0, LEN, 1);
	case 'b':
		return lcheck(&p->l, 0, LEN / 2, 1) || lcheck(&p->l, LEN / 2, LEN, 2) ||
		       plfs_size(p->l.f) != LEN + LEN / 2;
	case 'e':
		return lcheck(&p->l, 0, LEN, 1) != -EIO;
	default:
		return 1;
	}
}

static int serve(void *arg)
{
	struct peer *p = arg;
	char c;

	if (p->elsewhere)
		near_go_elsewhere();
	p->l = lopen("a", O_RDWR | O_CREAT);
	while (read(p->ask[0], &c, 1) == 1 && c != 'q') {
		c = (char)!!carry_out(p, c);
		if (write(p->answer[1], &c, 1) != 1)
			return 1;
	}
	return 0;
}

static struct peer begin(bool elsewhere)
{
	struct peer p = { .elsewhere = elsewhere };

	cr_assert(!pipe(p.ask) && !pipe(p.answer));
	p.pid = start_child(serve, &p);
	close(p.ask[0]);
	close(p.answer[1]);
	return p;
}

static bool does(struct peer *p, const char *what)
{
	bool is = true;
	char c;

	for (; *what && is; what++)
		is = write(p->ask[1], what, 1) == 1 && read(p->answer[0], &c, 1) == 1 && !c;
	return is;
}

static void end(struct peer *p)
{
	cr_assert_eq(write(p->ask[1], "q", 1), 1);
	close(p->ask[1]);
	close(p->answer[0]);
	cr_assert_eq(wait_child(p->pid), 0);
}

/* ---- what is released is read ---- */

/* A reader that has had the file open since before sees each release. */
static void follows(const char *release)
{
	struct peer w = begin(false), r = begin(true);

	cr_assert(does(&w, "1"));
	cr_assert(does(&w, release));
	cr_assert(does(&r, "la"));
	cr_assert_eq(near_count("data."), 1, "the log stays open");
	cr_assert(does(&w, "2"));
	cr_assert(does(&w, release));
	cr_assert(does(&r, "lb"));
	cr_assert(does(&w, "c"));
	cr_assert_eq(near_count("data.") + near_count("near.") + count_files("near."), 0);
	cr_assert(does(&r, "blb"));
	end(&w);
	end(&r);
}

Test(near_release, an_unlock_releases) { follows("u"); }
Test(near_release, a_sync_releases) { follows("s"); }

static int (*open_log)(int dirfd, const char *path, struct open_how *how, size_t size);
static bool past_cache;

static int see_open(int dirfd, const char *path, struct open_how *how, size_t size)
{
	struct open_how plain = *how; /* without alignment, as with FUSE */

	past_cache |= strstr(path, "data.") && how->flags & O_DIRECT;
	plain.flags &= ~(uint64_t)O_DIRECT;
	return open_log(dirfd, path, &plain, size);
}

static int read_watched(void *arg)
{
	char path[PATH_MAX];
	struct lfile l;
	int ret;

	(void)arg;
	near_go_elsewhere();
	lpath("a", path)->store.uncached = O_DIRECT;
	open_log = sys.openat2;
	sys.openat2 = see_open;
	l = lopen("a", O_RDONLY);
	ret = lcheck(&l, 0, LEN, 1);
	return ret || lclose(&l) || past_cache;
}

/* More follows it with each release: a page that the kernel has kept of it would hide that. */
Test(near_release, a_part_is_read_past_the_cache_of_the_kernel_and_the_whole_is_not)
{
	struct peer w;

	if (!has_openat2())
		cr_skip_test("no openat2() here");
	w = begin(false);
	cr_assert(does(&w, "1u"));
	past_cache = false;
	cr_assert_eq(in_child(read_watched, NULL), 1);
	cr_assert(does(&w, "c"));
	cr_assert_eq(in_child(read_watched, NULL), 0);
	end(&w);
}

Test(near_release, a_close_releases)
{
	struct peer w = begin(false), r = begin(true);

	cr_assert(does(&w, "12c"));
	cr_assert_eq(near_count("data.") + near_count("near."), 0);
	cr_assert(does(&r, "lb"));
	end(&w);
	end(&r);
}

static int write_and_fork(void *arg)
{
	struct lfile l = made("a");
	pid_t pid;

	(void)arg;
	if (lfill(&l, 0, LEN, 1) != LEN)
		return 1;
	plfs_fork_prepare();
	pid = fork();
	if (!pid)
		_exit(0);
	plfs_fork_parent();
	if (wait_child(pid))
		return 2;
	raise(SIGKILL);
	return 3;
}

static int read_elsewhere(void *arg)
{
	struct lfile l;

	(void)arg;
	near_go_elsewhere();
	l = lopen("a", O_RDONLY);
	return lcheck(&l, 0, LEN, 1) || lclose(&l);
}

Test(near_release, a_fork_releases)
{
	cr_assert_eq(in_child(write_and_fork, NULL), 256 + SIGKILL);
	cr_assert_eq(in_child(read_elsewhere, NULL), 0);
}

Test(near_release, before_a_release_a_read_is_an_error)
{
	struct peer w, r;

	mount_at(0)->near.release = RELEASE_NEAR;
	w = begin(false);
	r = begin(true);
	cr_assert(does(&w, "1u"));
	cr_assert(does(&r, "le"));
	end(&w);
	end(&r);
}

/* The child of a fork writes a log of its own. */
static int write_in_both(void *arg)
{
	struct lfile l = made("a");
	pid_t pid;

	(void)arg;
	if (lfill(&l, 0, LEN / 2, 1) != LEN / 2)
		return 1;
	plfs_fork_prepare();
	pid = fork();
	if (!pid) {
		plfs_fork_child();
		_exit(lfill(&l, LEN / 2, LEN / 4, 1) != LEN / 4 || lclose(&l));
	}
	plfs_fork_parent();
	return lfill(&l, LEN / 2 + LEN / 4, LEN / 4, 1) != LEN / 4 || wait_child(pid) || lclose(&l);
}

Test(near_release, parent_and_child_close_logs_of_their_own)
{
	cr_assert_eq(in_child(write_in_both, NULL), 0);
	cr_assert_eq(near_count("data.") + near_count("near."), 0);
	cr_assert_eq(in_child(read_elsewhere, NULL), 0);
}

#define NR_WRITERS 8

static int write_part(void *arg)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT);
	int part = *(int *)arg;

	return lfill(&l, part * (LEN / NR_WRITERS), LEN / NR_WRITERS, 1) != LEN / NR_WRITERS || lclose(&l);
}

Test(near_release, processes_that_close_at_once_all_release)
{
	pid_t pid[NR_WRITERS];

	for (int round = 0; round < 20; round++) {
		for (int i = 0; i < NR_WRITERS; i++)
			pid[i] = start_child(write_part, &i);
		for (int i = 0; i < NR_WRITERS; i++)
			cr_assert_eq(wait_child(pid[i]), 0);
		cr_assert_eq(near_count("data."), 0);
		cr_assert_eq(in_child(read_elsewhere, NULL), 0);
	}
}

/* Two descriptions, and a close of the first. */
static int write_by_two(void *arg)
{
	struct lfile l = made("a"), l2 = lopen("a", O_RDWR);

	(void)arg;
	if (lfill(&l, 0, LEN, 1) != LEN || lclose(&l) || in_child(read_elsewhere, NULL))
		return 1;
	return lclose(&l2);
}

Test(near_release, a_close_that_is_not_the_last_releases)
{
	cr_assert_eq(in_child(write_by_two, NULL), 0);
	cr_assert_eq(near_count("data."), 0);
}

/* ---- where it cannot be ---- */

static int fails_with;
static long fails_for; /* so many calls; -1: all from here on */

static bool is_home(int fd)
{
	char link[64], path[PATH_MAX] = "";

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	return readlink(link, path, sizeof(path) - 1) > 0 && !strncmp(path, scratch, strlen(scratch)) &&
	       strstr(path, "/data.");
}

static ssize_t (*real_pwrite)(int fd, const void *buf, size_t len, off_t off);

static ssize_t no_room_home(int fd, const void *buf, size_t len, off_t off)
{
	if (!fails_for || !is_home(fd))
		return real_pwrite(fd, buf, len, off);
	fails_for -= fails_for > 0;
	errno = fails_with;
	return -1;
}

static int write_without_room(void *arg)
{
	struct lfile l = made("a");

	(void)arg;
	real_pwrite = sys.pwrite;
	sys.pwrite = no_room_home;
	return lfill(&l, 0, LEN, 1) != LEN ? 1 : -lclose(&l);
}

static int read_here(void *arg)
{
	struct lfile l = lopen("a", O_RDONLY);

	(void)arg;
	return lcheck(&l, 0, LEN, 1) || lclose(&l);
}

static int drain_it(void *arg)
{
	struct plfs_drain d = { 0 };
	char path[PATH_MAX];
	struct plfs_mount *m = lpath("a", path);

	(void)arg;
	return plfs_drain_file(m, AT_FDCWD, path, &d) ? 100 : (int)d.nr_logs;
}

static void a_close_fails(int err)
{
	fails_with = err;
	fails_for = -1;
	cr_assert_eq(in_child(write_without_room, NULL), err);
	cr_assert_eq(near_count("data."), 1);
	cr_assert_eq(in_child(read_here, NULL), 0, "nothing is lost");
	cr_assert_eq(in_child(drain_it, NULL), 1);
	cr_assert_eq(in_child(read_elsewhere, NULL), 0);
}

Test(near_release, a_close_without_room_at_home_is_enospc) { a_close_fails(ENOSPC); }
Test(near_release, a_close_that_home_fails_is_eio) { a_close_fails(EIO); }

Test(near_release, a_close_tries_twice)
{
	fails_with = ENOSPC;
	fails_for = 1;
	cr_assert_eq(in_child(write_without_room, NULL), 0);
	cr_assert_eq(in_child(read_elsewhere, NULL), 0);
}

static int unlock_without_room(void *arg)
{
	struct lfile l = made("a");

	(void)arg;
	real_pwrite = sys.pwrite;
	sys.pwrite = no_room_home;
	if (lfill(&l, 0, LEN, 1) != LEN || plfs_commit(l.f))
		return 1;
	fails_for = 0;
	return lclose(&l);
}

Test(near_release, an_unlock_without_room_is_made_good_by_the_close)
{
	fails_with = ENOSPC;
	fails_for = -1;
	cr_assert_eq(in_child(unlock_without_room, NULL), 0);
	cr_assert_eq(in_child(read_elsewhere, NULL), 0);
}

static int write_and_lose(void *arg)
{
	struct lfile l = made("a");

	(void)arg;
	if (lfill(&l, 0, LEN, 1) != LEN)
		return 1;
	near_lose();
	return -lclose(&l);
}

Test(near_release, a_close_without_the_place_is_eio)
{
	cr_assert_eq(in_child(write_and_lose, NULL), EIO);
}

static int write_and_empty(void *arg)
{
	struct lfile l = made("a");

	(void)arg;
	if (lfill(&l, 0, LEN, 1) != LEN || plfs_truncate(l.f, 0))
		return 1;
	return -lclose(&l);
}

Test(near_release, of_a_file_that_was_emptied_nothing_is_missed)
{
	cr_assert_eq(in_child(write_and_empty, NULL), 0);
	cr_assert_eq(stat_size("a"), 0);
}

static int write_and_remove(void *arg)
{
	struct lfile l = made("a");

	(void)arg;
	if (lfill(&l, 0, LEN, 1) != LEN || lunlink("a"))
		return 1;
	return -lclose(&l);
}

Test(near_release, of_a_file_that_was_removed_nothing_is_missed)
{
	cr_assert_eq(in_child(write_and_remove, NULL), 0);
	cr_assert_eq(near_count("data.") + count_files("data."), 0);
}

static int write_beside_a_reader(void *arg)
{
	struct flock lk = { .l_type = F_RDLCK, .l_whence = SEEK_SET };
	struct lfile l = made("a");
	char path[PATH_MAX];
	int fd;

	(void)arg;
	if (lfill(&l, 0, LEN, 1) != LEN || plfs_sync(l.f) || lfill(&l, 0, LEN, 1) != LEN ||
	    !find_file("index.", path))
		return 1;
	fd = open(path, O_RDONLY);
	if (fd < 0 || fcntl(fd, F_OFD_SETLK, &lk))
		return 2;
	return -lclose(&l);
}

/* Who may read the index can hold a lock on it for ever: then the log is copied, and moved later. */
Test(near_release, a_close_beside_a_reader_that_locks_the_index)
{
	cr_assert_eq(in_child(write_beside_a_reader, NULL), 0);
	cr_assert_eq(in_child(read_elsewhere, NULL), 0);
	cr_assert_eq(in_child(drain_it, NULL), 1);
	cr_assert_eq(in_child(read_elsewhere, NULL), 0);
}

/* ---- a kill ---- */

static int write_and_die(void *arg)
{
	struct lfile l = made("a");

	if (lfill(&l, 0, LEN, 1) != LEN)
		return 1;
	calls_intercept();
	calls_left = *(long *)arg;
	on_call = die_at_last;
	return lclose(&l);
}

Test(near_release, a_kill_during_the_close_loses_nothing)
{
	int code = -1;

	for (long nr = 1; code; nr += 3) {
		code = in_child(write_and_die, &nr);
		cr_assert(!code || code == 256 + SIGKILL, "call %ld: %d", nr, code);
		cr_assert_eq(in_child(read_here, NULL), 0, "call %ld", nr);
		cr_assert_neq(in_child(drain_it, NULL), 100);
		cr_assert_eq(near_count("data."), 0, "call %ld", nr);
		cr_assert_eq(in_child(read_elsewhere, NULL), 0, "call %ld", nr);
		cr_assert_eq(lunlink("a"), 0);
	}
}
