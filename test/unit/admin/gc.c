/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What plfs gc removes and, above all, what it leaves. Names that change meanwhile are in gc_names.c, jobs
 * that go on in gc_jobs.c.
 */
#include "test/lib/gc.h"
#include "test/lib/spoil.h"

#include "core/admin/gc/gc_proc.h"

#include <sched.h>
#include <sys/mount.h>

TestSuite(gc, .init = scratch_setup, .fini = scratch_remove);

/* ---- what goes ---- */

Test(gc, removes_what_no_file_leads_to_and_nothing_else)
{
	char path[PATH_MAX], other[PATH_MAX];
	struct plfs_gc g = { .age_ns = 0, .later_ns = HOUR_NS, .dry = true, .nr_threads = 3 };

	make_dir("d");
	make_dir("d/e");
	make("a", 1);
	make("d/b", 2);
	make("d/e/c", 3);
	make("d/e/orphan", 4);
	lpath("d/b", path);
	lpath("link", other);
	cr_assert(!link(path, other) && !unlink(path));
	orphan("d/e/orphan");
	cr_assert_eq(count_files("data."), 4);
	cr_assert_eq(gc(&g), 0);
	cr_assert_eq(g.nr_left, 1);
	cr_assert_eq(last_fate, PLFS_GC_WOULD_BE);
	cr_assert_eq(count_files("data."), 4, "a dry run");
	g = gc_now();
	cr_assert(g.nr_removed == 1 && g.nr_left == 0 && g.nr_files == 3 && g.nr_containers == 4);
	cr_assert_gt(g.removed_bytes, LEN);
	cr_assert_eq(count_files("data."), 3);
	assert_whole("a", 1);
	assert_whole("link", 2);
	assert_whole("d/e/c", 3);
	g = gc_now();
	cr_assert_eq(g.nr_removed + g.nr_left, 0);
}

Test(gc, an_unused_backend_has_nothing)
{
	struct plfs_gc g = gc_now();

	cr_assert_eq(g.nr_removed + g.nr_left + g.nr_troubles, 0);
}

Test(gc, leaves_what_has_changed_within_the_age)
{
	struct plfs_gc g = { .age_ns = 24 * HOUR_NS };

	make("a", 1);
	orphan("a");
	cr_assert_eq(gc(&g), 0);
	cr_assert_eq(g.nr_left, 1);
	cr_assert(strstr(last_why, "changed 0 seconds ago"), "%s", last_why);
	g = (struct plfs_gc){ .age_ns = 24 * HOUR_NS, .later_ns = 23 * HOUR_NS };
	cr_assert_eq(gc(&g), 0);
	cr_assert_eq(g.nr_left, 1);
	cr_assert(strstr(last_why, "changed 23 hours ago"), "%s", last_why);
	cr_assert_eq(count_files("data."), 1);
	g = (struct plfs_gc){ .age_ns = 24 * HOUR_NS, .later_ns = 25 * HOUR_NS };
	cr_assert_eq(gc(&g), 0);
	cr_assert_eq(g.nr_removed, 1);
	cr_assert_eq(count_files("data."), 0);
}

Test(gc, removes_the_container_of_a_file_in_its_body_and_what_is_half_removed)
{
	char from[PATH_MAX], to[PATH_MAX + 10], dir[PATH_MAX];
	struct plfs_gc g;
	struct lfile l;

	make("a", 1);
	container_of_file("a", dir);
	snprintf(from, sizeof(from), "%s/.plfs", scratch);
	l = lopen("a", O_RDWR);
	/* As a kill before the removal leaves it. */
	snprintf(to, sizeof(to), "cp -a '%.900s' '%.900s.kept'", dir, dir);
	cr_assert_eq(system(to), 0);
	cr_assert_eq(plfs_in_body(l.f, PLFS_MAP_WRITE), 1);
	lclose(&l);
	snprintf(to, sizeof(to), "%.900s.kept", dir);
	cr_assert_eq(rename(to, dir), 0);
	make("b", 2);
	container_of_file("b", dir);
	orphan("b");
	find_file("index.", to);
	unlink(to);
	g = gc_now();
	cr_assert_eq(g.nr_removed, 2);
	assert_whole("a", 1);
}

Test(gc, old_temporary_files_go_and_young_ones_stay)
{
	char dir[PATH_MAX], line[200];
	struct plfs_gc g = { .age_ns = 2 * HOUR_NS };

	make("a", 1);
	container_of_file("a", dir);
	touch_below("%s/index.global.tmp.12345678", dir);
	touch_below("%s/.plfs-flatten.0123456789abcdef", dir);
	touch_below("%s/.plfs/format.tmp.12345678", scratch);
	/* with its mark */
	snprintf(line, sizeof(line), "cd %s/.plfs && cp -p format format.tmp.12345679", scratch);
	cr_assert_eq(system(line), 0);
	touch_below("%s/.plfs/.plfs-flatten.0123456789abcdef", scratch);
	touch_below("%s/.plfs/something", scratch);
	cr_assert_eq(gc(&g), 0);
	cr_assert_eq(g.nr_removed + g.nr_left, 0);
	g = (struct plfs_gc){ .age_ns = 2 * HOUR_NS, .later_ns = 3 * HOUR_NS };
	cr_assert_eq(gc(&g), 0);
	cr_assert(g.nr_removed == 5 && g.nr_left == 0);
	cr_assert_eq(count_files("index.global.tmp"), 0);
	cr_assert_eq(count_files(".plfs-flatten"), 0);
	cr_assert_eq(count_files("format"), 1);
	cr_assert_eq(count_files("something"), 1, "nothing that we do not know");
	assert_whole("a", 1);
}

Test(gc, a_temporary_file_among_the_files_is_reported)
{
	struct plfs_gc g;

	make("a", 1);
	touch_below("%s/.plfs-flatten.0123456789abcdef", scratch);
	g = gc_now();
	cr_assert(g.nr_removed == 0 && g.nr_left == 1);
	cr_assert_eq(count_files(".plfs-flatten"), 1);
}

Test(gc, directories_and_strangers_in_the_container_directory_stay)
{
	char path[PATH_MAX];
	struct plfs_gc g;

	make("a", 1);
	orphan("a");
	snprintf(path, sizeof(path), "%s/.plfs/zz", scratch);
	mkdir(path, 0755);
	snprintf(path, sizeof(path), "%s/.plfs/ab", scratch);
	mkdir(path, 0755);
	strcat(path, "/cd000000000000000000000000000000"); /* not where it would belong */
	mkdir(path, 0755);
	g = gc_now();
	cr_assert_eq(g.nr_removed, 1);
	cr_assert_eq(access(path, F_OK), 0);
}

/* ---- what is not seen ---- */

Test(gc, a_damaged_stub_keeps_all_containers_of_its_owner)
{
	char path[PATH_MAX];
	struct plfs_gc g;

	make("a", 1);
	make("b", 2);
	orphan("b");
	lpath("a", path);
	spoil_bit(path, 30);
	g = gc_now();
	cr_assert(g.nr_removed == 0 && g.nr_troubles == 1 && g.nr_unknown == 2);
	cr_assert_str_eq(last_trouble, "a");
	cr_assert_eq(count_files("data."), 2);
	if (geteuid())
		cr_skip_test("only root can be several users");
	cr_assert_eq(chown(path, 41001, 41001), 0);
	g = gc_now();
	cr_assert(g.nr_removed == 0 && g.nr_troubles == 1 && g.nr_unknown == 2, "perhaps it was root's");
	for (unsigned i = 0; i < 2; i++) {
		cr_assert(find_file("data.", path));
		for (int k = 0; k < 2; k++)
			*strrchr(path, '/') = '\0';
		cr_assert_eq(chown(path, 41001 + i, 41001), 0);
		g = gc_now();
		cr_assert(g.nr_removed == i && g.nr_troubles == 1 && g.nr_unknown == 2 - i);
	}
}

Test(gc, a_stub_that_has_lost_its_mark_keeps_its_container)
{
	char path[PATH_MAX];
	struct plfs_gc g;

	make("a", 1);
	lpath("a", path);
	cr_assert_eq(chmod(path, 0644), 0);
	g = gc_now();
	cr_assert_eq(g.nr_removed, 0);
	cr_assert_eq(chmod(path, 01644), 0);
	assert_whole("a", 1);
}

static int gc_as_nobody(void *arg)
{
	struct plfs_gc g = { .later_ns = HOUR_NS };

	(void)arg;
	if (setegid(65534) || seteuid(65534))
		return 2;
	return gc(&g) || g.nr_removed || g.nr_left || g.nr_troubles != 1 || strcmp(last_trouble, "closed");
}

Test(gc, a_directory_that_may_not_be_listed_keeps_all_containers)
{
	char command[PATH_MAX];

	if (geteuid())
		cr_skip_test("only root can become somebody else");
	make_dir("closed");
	make("closed/a", 1);
	make("b", 2);
	orphan("b");
	snprintf(command, sizeof(command),
		 "chown -R 65534:65534 %s; chown 0:0 %s/closed; chmod 700 %s/closed", scratch, scratch,
		 scratch);
	cr_assert_eq(system(command), 0);
	cr_assert_eq(in_child(gc_as_nobody, NULL), 0);
	cr_assert_eq(count_files("data."), 2);
}

static bool may_mount;

static void mounted_setup(void)
{
	may_mount = !unshare(CLONE_NEWNS) && !mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL);
	scratch_setup();
}

TestSuite(gc_mounted, .init = mounted_setup, .fini = scratch_remove);

/* Something is mounted over the directory "m" with the file "a" in it; "b" has lost its name. */
static void make_mounted(char *path)
{
	if (!may_mount)
		cr_skip_test("needs a mount namespace of its own");
	make_dir("m");
	make("m/a", 1);
	make("b", 2);
	orphan("b");
	lpath("m", path);
	cr_assert_eq(mount("none", path, "tmpfs", 0, NULL), 0);
}

Test(gc_mounted, what_is_mounted_below_the_backend_hides_no_file)
{
	char path[PATH_MAX];
	struct plfs_gc g;
	int fd;

	make_mounted(path);
	fd = (int)syscall(SYS_open_tree, AT_FDCWD, "/", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (fd < 0)
		cr_skip_test("the kernel lets nobody look beneath a mount");
	close(fd);
	g = gc_now();
	cr_assert(g.nr_removed == 1 && g.nr_troubles == 0);
	cr_assert_eq(umount(path), 0);
	g = gc_now();
	cr_assert_eq(g.nr_removed, 0);
	assert_whole("m/a", 1);
}

/* Below a mount from the same file system there are stubs, which only its users see. */
Test(gc_mounted, what_is_mounted_from_the_same_file_system_keeps_all)
{
	char path[PATH_MAX], other[64];
	struct plfs_gc g;

	if (!may_mount)
		cr_skip_test("needs a mount namespace of its own");
	new_dir(other, sizeof(other));
	make_dir("m \\");
	lpath("m \\", path);
	cr_assert_eq(mount(other, path, NULL, MS_BIND, NULL), 0);
	make("m \\/a", 1);
	make("b", 2);
	orphan("b");
	g = gc_now();
	cr_assert_eq(g.nr_removed, 0);
	cr_assert_eq(g.nr_troubles, 1);
	assert_whole("m \\/a", 1);
	cr_assert_eq(lunlink("m \\/a"), 0);
	cr_assert_eq(umount(path), 0);
	cr_assert_eq(rmdir(other), 0);
}

static int gc_beside_mount(void *arg)
{
	struct plfs_gc g = { .later_ns = HOUR_NS };

	(void)arg;
	if (setegid(65534) || seteuid(65534))
		return 2;
	return gc(&g) || g.nr_removed || g.nr_left || g.nr_troubles != 1 || strcmp(last_trouble, "m");
}

Test(gc_mounted, who_may_not_look_beneath_removes_nothing)
{
	char path[PATH_MAX], command[PATH_MAX + 40];

	make_mounted(path);
	snprintf(command, sizeof(command), "chown -R 65534:65534 %s", scratch);
	cr_assert_eq(system(command), 0);
	cr_assert_eq(in_child(gc_beside_mount, NULL), 0);
	cr_assert_eq(umount(path), 0);
	cr_assert_eq(count_files("data."), 2);
}

/* ---- links ---- */

/* The first two digits of a container's identity that none begins with yet: identities are random. */
static unsigned absent_parent(void)
{
	char path[PATH_MAX];
	unsigned parent = 0x77;

	for (;; parent++) {
		snprintf(path, sizeof(path), "%s/.plfs/%02x", scratch, parent);
		if (access(path, F_OK))
			return parent;
	}
}

Test(gc, no_symbolic_link_in_the_container_directory_leads_out)
{
	char precious[sizeof(scratch) + 20], link_name[PATH_MAX], dir[PATH_MAX];
	struct plfs_gc g;
	unsigned parent;
	size_t length;

	make("a", 1);
	container_of_file("a", dir);
	orphan("a");
	snprintf(precious, sizeof(precious), "%s/precious", scratch);
	mkdir(precious, 0755);
	touch_below("%s/file", precious);
	touch_below("%s/x.tmp.x", precious);
	snprintf(link_name, sizeof(link_name), "%.1000s/hostdir.99", dir); /* in a container that goes */
	cr_assert_eq(symlink(precious, link_name), 0);
	parent = absent_parent(); /* in place of a directory */
	snprintf(link_name, sizeof(link_name), "%s/.plfs/%02x", scratch, parent);
	cr_assert_eq(symlink(precious, link_name), 0);
	snprintf(dir, sizeof(dir), "%s/%02x000000000000000000000000000000", precious, parent);
	mkdir(dir, 0755);
	parent = absent_parent();
	snprintf(link_name, sizeof(link_name), "%s/.plfs/%02x", scratch, parent);
	mkdir(link_name, 0755);
	length = strlen(link_name); /* in place of a container */
	snprintf(link_name + length, sizeof(link_name) - length, "/%02x000000000000000000000000000000",
		 parent);
	cr_assert_eq(symlink(precious, link_name), 0);
	g = gc_now();
	cr_assert_eq(g.nr_removed, 1);
	cr_assert_eq(access(dir, F_OK), 0);
	cr_assert_eq(count_files("file"), 1);
	cr_assert_eq(count_files("x.tmp.x"), 1);
}

/* ---- files in use ---- */

static int pipes[4];

/* Has the file open, tells, and looks at it when it is told to. */
static int hold_open(void *arg)
{
	struct lfile l = lopen(arg, O_RDWR);
	char c;
	int ret;

	if (write(pipes[1], "o", 1) != 1 || read(pipes[2], &c, 1) != 1)
		return 2;
	ret = lcheck(&l, 0, LEN, 1);
	if (!ret && lfill(&l, LEN, LEN, 1) != LEN)
		ret = 3;
	if (!ret)
		ret = lcheck(&l, 0, 2 * LEN, 1);
	return lclose(&l) ? 4 : ret;
}

static pid_t start_holder(const char *name)
{
	pid_t pid;
	char c;

	cr_assert(!pipe(pipes) && !pipe(pipes + 2));
	pid = start_child(hold_open, (void *)name);
	cr_assert_eq(read(pipes[0], &c, 1), 1);
	return pid;
}

static int end_holder(pid_t pid)
{
	cr_assert_eq(write(pipes[3], "g", 1), 1);
	return wait_child(pid);
}

Test(gc, a_file_that_is_open_without_a_name_keeps_its_container)
{
	struct plfs_gc g;
	pid_t pid;

	make("a", 1);
	pid = start_holder("a");
	orphan("a");
	g = gc_now();
	cr_assert_eq(g.nr_removed, 0);
	cr_assert_eq(end_holder(pid), 0);
	cr_assert_eq(count_files("data."), 0, "he removes it");
}

/* Where what others have open may not be looked at, a live file tells of its owner. */
Test(gc, a_process_is_known_by_what_it_maps)
{
	struct lfile l = made("a");
	char path[PATH_MAX];

	cr_assert_eq(lfill(&l, 0, 100, 1), 100);
	cr_assert(find_file("live.", path));
	cr_assert(gc_process_has((unsigned long)getpid(), strrchr(path, '/') + 1));
	cr_assert(!gc_process_has((unsigned long)getpid(), "live.nowhere.1.1"));
	cr_assert(!gc_process_has((unsigned long)getppid(), strrchr(path, '/') + 1));
	lclose(&l);
}

static int (*real_mkdirat)(int dirfd, const char *path, mode_t mode);
static struct plfs_gc in_claim;

static int gc_after_mkdir(int dirfd, const char *path, mode_t mode)
{
	int ret = real_mkdirat(dirfd, path, mode);

	if (!ret && strstr(path, "hostdir.")) {
		sys.mkdirat = real_mkdirat;
		in_claim = gc_now();
	}
	return ret;
}

Test(gc, a_container_that_goes_while_it_is_claimed_is_made_anew)
{
	struct lfile l = made("a");

	real_mkdirat = sys.mkdirat;
	sys.mkdirat = gc_after_mkdir;
	cr_assert_eq(lfill(&l, 0, LEN, 1), LEN);
	lclose(&l);
	cr_assert_eq(in_claim.nr_removed, 1, "with the age 0, and an hour later");
	assert_whole("a", 1);
}

static int (*real_unlinkat)(int dirfd, const char *path, int flags);
static char hostdir[PATH_MAX];

static int write_before_rmdir(int dirfd, const char *path, int flags)
{
	if (flags & AT_REMOVEDIR && *hostdir) {
		touch_below("%s/data.just.1.1", hostdir);
		*hostdir = '\0';
	}
	return real_unlinkat(dirfd, path, flags);
}

Test(gc, an_empty_container_that_gets_a_log_meanwhile_stays)
{
	struct plfs_gc g;

	make("a", 1);
	cr_assert_eq(lunlink("a"), 0);
	snprintf(hostdir, sizeof(hostdir), "%s/.plfs/ab", scratch);
	mkdir(hostdir, 0755);
	strcat(hostdir, "/ab000000000000000000000000000000");
	mkdir(hostdir, 0755);
	strcat(hostdir, "/hostdir.1");
	mkdir(hostdir, 0755);
	real_unlinkat = sys.unlinkat;
	sys.unlinkat = write_before_rmdir;
	g = gc_now();
	sys.unlinkat = real_unlinkat;
	cr_assert(g.nr_removed == 0 && g.nr_failed == 0 && g.nr_left == 1, "%s", last_why);
	cr_assert_eq(count_files("data.just"), 1);
}

Test(gc, the_stub_of_another_that_an_exchange_left_in_a_container_keeps_both)
{
	char path[PATH_MAX], dir[PATH_MAX], to[PATH_MAX + 50];
	struct plfs_gc g;

	make("a", 1);
	make("b", 2);
	container_of_file("a", dir);
	lpath("b", path);
	snprintf(to, sizeof(to), "%s/.plfs-flatten.0123456789abcdef", dir);
	cr_assert_eq(rename(path, to), 0);
	orphan("a");
	g = gc_now();
	cr_assert(g.nr_removed == 0 && g.nr_left == 1 && strstr(last_why, "stub"));
	cr_assert_eq(rename(to, path), 0);
	assert_whole("b", 2);
	g = gc_now();
	cr_assert_eq(g.nr_removed, 1);
	assert_whole("b", 2);
}
