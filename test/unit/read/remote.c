/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Several hosts on a file system that shows each of them the pages of a mapped file as it pleases: what is
 * believed of a log whose owner is on another host. Here that is a child by another host's name, and what a
 * network would do to its pages is done to its live file by hand; test/cluster has the real ones.
 */
#include "test/lib/scratch.h"

#include "test/lib/flags.h"

#include "core/base/bytes.h"
#include "core/file/file.h"
#include "core/backend/mount.h"
#include "core/dropping/live.h"

#include <criterion/criterion.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/vfs.h>

#ifndef FUSE_SUPER_MAGIC
#define FUSE_SUPER_MAGIC 0x65735546 /* the kernel headers of Debian 11 have none */
#endif

enum { RELEASED = 1000, WRITTEN = 6000, OFF_NR_RECORDS = 520 };

static pid_t owner;

/* Releases some bytes, and has more in its stage. */
static void be_owner(int ready)
{
	struct lfile l;
	char path[PATH_MAX];

	be_host("elsewhere");
	lpath("a", path)->store.remote = true;
	l = lopen("a", O_RDWR | O_CREAT);
	if (lfill(&l, 0, RELEASED, 1) != RELEASED || plfs_commit(l.f) ||
	    lfill(&l, RELEASED, WRITTEN - RELEASED, 1) < 0)
		_exit(1);
	if (write(ready, "", 1) != 1)
		_exit(1);
	pause();
	_exit(0);
}

static void with_owner(void)
{
	char path[PATH_MAX], c;
	int ready[2];

	scratch_setup();
	if (pipe(ready))
		die("pipe");
	owner = fork_child();
	if (!owner)
		be_owner(ready[1]);
	close(ready[1]);
	if (read(ready[0], &c, 1) != 1)
		die("the owner has failed");
	lpath("a", path)->store.remote = true;
}

static void kill_owner(void)
{
	kill(owner, SIGKILL);
	wait_child(owner);
	owner = 0;
}

static void without_owner(void)
{
	if (owner)
		kill_owner();
	scratch_remove();
}

TestSuite(remote, .init = with_owner, .fini = without_owner, .timeout = 300);

Test(remote, of_an_owner_that_lives_elsewhere_the_released_bytes_are_read_and_its_stage_is_not)
{
	struct lfile l = lopen("a", O_RDONLY);

	cr_assert_eq(plfs_size(l.f), RELEASED);
	cr_assert_eq(lcheck(&l, 0, RELEASED, 1), 0);
	lclose(&l);
}

/* What GlusterFS does with O_DIRECT that it hands on to ext4, as ext4 itself. */
Test(remote, reads_past_the_page_cache_need_no_alignment)
{
	char path[PATH_MAX];
	struct store *s = &lpath("a", path)->store;
	struct lfile l;

	s->uncached = O_DIRECT;
	s->uncached_works = false;
	l = lopen("a", O_RDONLY);
	cr_assert_eq(lcheck(&l, 0, RELEASED, 1), 0);
	lclose(&l);
}

Test(remote, reads_of_a_file_that_was_empty_when_it_was_opened_need_none_either)
{
	char path[PATH_MAX], buf[5];
	struct store *s = &lpath("grows", path)->store;
	int h, fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0644);

	s->uncached = O_DIRECT;
	s->uncached_works = false;
	h = store_open(s, "grows", O_RDONLY | s->uncached, 0);
	cr_assert(h >= 0 && write(fd, "0123456789", 10) == 10);
	cr_assert_eq(s->ops->pread(s, h, buf, sizeof(buf), 3), 5);
	cr_assert_arr_eq(buf, "34567", 5);
	store_close(s, &h);
	close(fd);
}

Test(remote, what_a_killed_owner_had_in_its_stage_is_read)
{
	struct lfile l = lopen("a", O_RDONLY);

	cr_assert_eq(lcheck(&l, 0, RELEASED, 1), 0);
	kill_owner();
	plfs_refresh(l.f);
	cr_assert_eq(plfs_size(l.f), WRITTEN);
	cr_assert_eq(lcheck(&l, 0, WRITTEN, 1), 0);
	lclose(&l);
}

/* The page with the number is here already, that with the record is not. */
Test(remote, a_record_whose_page_is_late_is_no_damage)
{
	char live[PATH_MAX];
	struct lfile l;
	uint8_t nr[8];
	int fd;

	cr_assert(find_file("live.elsewhere", live));
	fd = open(live, O_RDWR);
	cr_assert_eq(pread(fd, nr, sizeof(nr), OFF_NR_RECORDS), 8);
	put_le64(nr, live_word(live_number(get_le64(nr)) + 3));
	cr_assert_eq(pwrite(fd, nr, sizeof(nr), OFF_NR_RECORDS), 8);
	close(fd);
	l = lopen("a", O_RDONLY);
	cr_assert_eq(lcheck(&l, 0, RELEASED, 1), 0);
	lclose(&l);
}

/* The end is the released one: what the other has in its stage is ordered by its next release. */
Test(remote, this_host_writes_beside_an_owner_elsewhere)
{
	struct lfile l = lopen("a", O_RDWR);

	cr_assert_eq(lfill(&l, 100, 200, 2), 200);
	cr_assert_eq(plfs_commit(l.f), 0);
	cr_assert_eq(lcheck(&l, 0, 100, 1), 0);
	cr_assert_eq(lcheck(&l, 100, 200, 2), 0);
	cr_assert_eq(lcheck(&l, 300, RELEASED - 300, 1), 0);
	lclose(&l);
	l = lopen("a", O_RDONLY);
	cr_assert_eq(lcheck(&l, 100, 200, 2), 0);
	cr_assert_eq(lcheck(&l, 300, RELEASED - 300, 1), 0);
	lclose(&l);
}

/*
 * An acquire of its owner's ends a record, so that it has its checksum: what changes at the release is only
 * where its bytes are.
 */
Test(remote, what_was_not_in_the_log_at_the_first_look_is_read_after_its_release)
{
	struct lfile l;
	int ready[2], go[2];
	pid_t writer;
	char c;

	cr_assert_eq(pipe(ready), 0);
	cr_assert_eq(pipe(go), 0);
	writer = fork_child();
	if (!writer) {
		be_host("elsewhere");
		l = lopen("b", O_RDWR | O_CREAT);
		if (lfill(&l, 0, 5000, 1) != 5000)
			_exit(1);
		plfs_refresh(l.f);
		_exit(write(ready[1], "", 1) != 1 || read(go[0], &c, 1) != 1 || plfs_commit(l.f) ||
		      write(ready[1], "", 1) != 1 || read(go[0], &c, 1) != 1);
	}
	cr_assert_eq(read(ready[0], &c, 1), 1);
	l = lopen("b", O_RDONLY);
	cr_assert_eq(plfs_size(l.f), 0);
	cr_assert_eq(write(go[1], "", 1), 1);
	cr_assert_eq(read(ready[0], &c, 1), 1);
	plfs_refresh(l.f);
	cr_assert_eq(plfs_size(l.f), 5000);
	cr_assert_eq(lcheck(&l, 0, 5000, 1), 0);
	cr_assert_eq(write(go[1], "", 1), 1);
	wait_child(writer);
	lclose(&l);
}

/*
 * What is written past the stage comes by a call, the live file's header, which is mapped, when the other
 * host's kernel pleases.
 */
Test(remote, a_log_whose_live_file_has_not_come_yet_is_not_lost)
{
	enum { LEN = 300000, HEADER = 4096 };
	char path[PATH_MAX], header[HEADER], nothing[HEADER] = "", c;
	struct stat st;
	struct lfile l;
	int ready[2], fd;

	kill_owner();
	cr_assert_eq(pipe(ready), 0);
	owner = fork_child();
	if (!owner) {
		be_host("faraway");
		l = lopen("b", O_RDWR | O_CREAT);
		if (lfill(&l, 0, LEN, 1) != LEN || write(ready[1], "", 1) != 1)
			_exit(1);
		pause();
	}
	cr_assert_eq(read(ready[0], &c, 1), 1);
	cr_assert(find_file("data.faraway", path));
	cr_assert(!stat(path, &st) && st.st_size > LEN / 2, "nothing has gone past the stage");
	cr_assert(find_file("live.faraway", path));
	fd = open(path, O_RDWR);
	cr_assert_eq(pread(fd, header, HEADER, 0), HEADER);
	cr_assert_eq(pwrite(fd, nothing, HEADER, 0), HEADER);
	l = lopen("b", O_RDONLY);
	cr_assert_eq(plfs_pread(l.f, &c, 1, 0), 0);
	cr_assert_eq(pwrite(fd, header, HEADER, 0), HEADER);
	close(fd);
	kill_owner();
	plfs_refresh(l.f);
	cr_assert_eq(plfs_size(l.f), LEN);
	cr_assert_eq(lcheck(&l, 0, LEN, 1), 0);
	lclose(&l);
}

/* The same of one that nobody holds: whoever wrote it has ended, and it should have come then. */
Test(remote, a_log_whose_live_file_is_empty_and_without_an_owner_is_lost)
{
	char path[PATH_MAX], nothing[4096] = "", c;
	struct lfile l;
	int fd;

	kill_owner();
	cr_assert(find_file("live.elsewhere", path));
	fd = open(path, O_RDWR);
	cr_assert_eq(pwrite(fd, nothing, sizeof(nothing), 0), sizeof(nothing));
	close(fd);
	l = lopen("a", O_RDONLY);
	cr_assert_eq(plfs_pread(l.f, &c, 1, 0), -EIO);
	lclose(&l);
}

/* ---- through FUSE ---- */

static int (*real_statfs)(const char *path, struct statfs *fs);
static int nr_refused, nr_waits;

static int as_fuse(const char *path, struct statfs *fs)
{
	int ret = real_statfs(path, fs);

	fs->f_type = FUSE_SUPER_MAGIC;
	return ret;
}

/* Somebody has each lock when it is first asked for. */
static int busy_locks(int fd, int cmd, ...)
{
	static bool refused;
	va_list args;
	void *arg;

	va_start(args, cmd);
	arg = va_arg(args, void *);
	va_end(args);
	nr_waits += cmd == F_SETLKW || cmd == F_OFD_SETLKW;
	if ((cmd == F_SETLK || cmd == F_OFD_SETLK) && ((struct flock *)arg)->l_type != F_UNLCK) {
		refused = !refused;
		nr_refused += refused;
		errno = refused ? EAGAIN : 0;
		if (refused)
			return -1;
	}
	return fcntl(fd, cmd, arg);
}

/*
 * Who is killed while ceph-fuse lets him wait for a lock may leave it behind: then no file is removed with
 * its logs, or all others wait.
 */
Test(remote_fuse, no_process_waits_for_a_lock_in_the_kernel, .fini = scratch_remove, .timeout = 300)
{
	off_t end;
	struct lfile l;

	sys_init();
	real_statfs = sys.statfs;
	sys.statfs = as_fuse;
	scratch_map("{small=0}");
	sys.fcntl = busy_locks;
	l = lopen("f", O_RDWR | O_CREAT);
	cr_assert_eq(lfill(&l, 0, 5000, 1), 5000);
	cr_assert_eq(lappend(&l, "end", 3, &end), 3);
	cr_assert_eq(end, 5003);
	cr_assert_eq(lcheck(&l, 0, 5000, 1), 0);
	cr_assert_eq(lclose(&l), 0);
	cr_assert_geq(nr_refused, 3); /* in use, the header, the end */
	cr_assert_eq(nr_waits, 0);
}

/* A lock of all bytes would keep the process itself from the header, and others from opening the file. */
Test(remote_fuse, flock_locks_no_byte_that_the_library_needs, .fini = scratch_remove)
{
	struct lfile l, other;
	struct flock header = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };

	sys_init();
	real_statfs = sys.statfs;
	sys.statfs = as_fuse;
	scratch_map("{small=0}");
	l = lopen("f", O_RDWR | O_CREAT);
	cr_assert(plfs_has_own_flock(l.f));
	cr_assert_eq(plfs_flock(l.fd, LOCK_EX | LOCK_NB), 0);
	cr_assert(!fcntl(l.fd, F_GETLK, &header) && header.l_type == F_UNLCK);
	other = lopen("f", O_RDWR);
	cr_assert_eq(plfs_flock(other.fd, LOCK_SH | LOCK_NB), -EWOULDBLOCK);
	cr_assert_eq(lfill(&other, 0, 100, 1), 100);
	cr_assert_eq(plfs_flock(l.fd, LOCK_SH), 0);
	cr_assert_eq(plfs_flock(other.fd, LOCK_SH | LOCK_NB), 0);
	cr_assert_eq(plfs_flock(l.fd, LOCK_UN), 0);
	cr_assert_eq(plfs_flock(other.fd, LOCK_EX | LOCK_NB), 0);
	cr_assert_eq(plfs_flock(l.fd, 99), -EINVAL);
	lclose(&other);
	cr_assert_eq(plfs_flock(l.fd, LOCK_EX | LOCK_NB), 0);
	lclose(&l);
}

static int upgrades(void *arg)
{
	struct lfile l = lopen("f", O_RDWR);

	if (plfs_flock(l.fd, LOCK_SH))
		return 1;
	raise_flag(arg ? &shared->started : &shared->claimed);
	await(arg ? &shared->claimed : &shared->started);
	if (plfs_flock(l.fd, LOCK_EX) || plfs_flock(l.fd, LOCK_UN))
		return 1;
	return lclose(&l);
}

Test(remote_fuse, two_that_upgrade_an_flock_do_not_wait_for_each_other, .fini = scratch_remove, .timeout = 60)
{
	struct lfile l;
	pid_t one, two;

	sys_init();
	real_statfs = sys.statfs;
	sys.statfs = as_fuse;
	scratch_map("{small=0}");
	l = lopen("f", O_RDWR | O_CREAT);
	lclose(&l);
	share();
	one = start_child(upgrades, &l);
	two = start_child(upgrades, NULL);
	cr_assert_eq(wait_child(one), 0);
	cr_assert_eq(wait_child(two), 0);
}

/* ---- on GlusterFS ---- */

static int grown = -1, nr_settled;

static ssize_t gluster_names(const char *path, const char *name, void *value, size_t len)
{
	(void)path, (void)value, (void)len;
	if (!strcmp(name, "glusterfs.gfid"))
		return 16;
	errno = EOPNOTSUPP;
	return -1;
}

/* Only what is mapped to be stored into has to have its size. */
static void note_grown(int fd)
{
	char link[32], path[PATH_MAX] = "";

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	cr_assert_gt(readlink(link, path, sizeof(path) - 1), 0);
	if (strstr(path, "/live.") || strstr(path, "/notice."))
		grown = fd;
}

static int growing_fallocate(int fd, int mode, off_t off, off_t len)
{
	note_grown(fd);
	return fallocate(fd, mode, off, len);
}

static int growing_ftruncate(int fd, off_t len)
{
	note_grown(fd);
	return ftruncate(fd, len);
}

static int settling_fdatasync(int fd)
{
	nr_settled += fd == grown;
	grown = fd == grown ? -1 : grown;
	return 0;
}

/* The kernel may be told the size of before by the listing that follows. */
static ssize_t listing_getdents64(int fd, void *buf, size_t len)
{
	cr_expect_eq(grown, -1);
	return getdents64(fd, buf, len);
}

Test(remote_fuse, what_has_grown_is_synced_before_a_listing, .fini = scratch_remove, .timeout = 300)
{
	struct lfile l;

	sys_init();
	real_statfs = sys.statfs;
	sys.statfs = as_fuse;
	sys.getxattr = gluster_names;
	sys.fallocate = growing_fallocate;
	sys.ftruncate = growing_ftruncate;
	sys.fdatasync = settling_fdatasync;
	sys.getdents64 = listing_getdents64;
	scratch_map("{small=0}");
	l = lopen("f", O_RDWR | O_CREAT);
	for (int i = 0; i < 100; i++) {
		cr_assert_eq(lfill(&l, i * 5000, 5000, 1), 5000);
		cr_assert_eq(grown, -1);
	}
	cr_assert_eq(plfs_commit(l.f), 0);
	cr_assert_eq(lcheck(&l, 0, 500000, 1), 0);
	cr_assert_eq(lclose(&l), 0);
	cr_assert_geq(nr_settled, 3); /* the live file: its index, its stage, more of that */
}
