/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which paths are ours, where they lead and what they are called, and the settings that stop a process at its
 * start.
 */
#include "test/lib/scratch.h"

#include "core/backend/mount.h"
#include "core/backend/origin.h"
#include "core/plfs_admin.h"

#include <criterion/criterion.h>

static char dir_a[100], dir_b[100], dir_c[100];

/* /p -> a, /p/deep -> b, c in place. */
static void setup(void)
{
	char map[512];

	scratch_dir();
	snprintf(dir_a, sizeof(dir_a), "%s/a", scratch);
	snprintf(dir_b, sizeof(dir_b), "%s/b", scratch);
	snprintf(dir_c, sizeof(dir_c), "%s/c", scratch);
	mkdir(dir_a, 0755);
	mkdir(dir_b, 0755);
	mkdir(dir_c, 0755);
	snprintf(map, sizeof(map), "/p=%s:/p/deep=%s:%s", dir_a, dir_b, dir_c);
	if (plfs_setup(map) != 3)
		die("plfs_setup");
}

TestSuite(path_map, .init = setup, .fini = scratch_remove);
TestSuite(path_unmap, .init = setup, .fini = scratch_remove);
TestSuite(cwd_class, .init = setup, .fini = scratch_remove);
TestSuite(mount_options, .init = scratch_dir, .fini = scratch_remove);
TestSuite(mount_setup, .init = scratch_dir, .fini = scratch_remove);

static void leads_to(const char *path, const char *dir, const char *rest)
{
	char out[PATH_MAX] = "", want[PATH_MAX];
	struct plfs_mount *m = NULL;

	snprintf(want, sizeof(want), "%s%s", dir, rest);
	cr_expect_eq(plfs_path_map(path, out, &m), 1, "%s", path);
	cr_expect_str_eq(out, want, "%s leads to %s", path, out);
	cr_expect(m && !strcmp(m->backend, dir), "%s", path);
}

static void is_not_ours(const char *path)
{
	char out[PATH_MAX] = "untouched";
	struct plfs_mount *m;

	cr_expect_eq(plfs_path_map(path, out, &m), 0, "%s", path);
	cr_expect_str_eq(out, "untouched", "%s", path);
}

Test(path_map, leads_below_the_backend)
{
	leads_to("/p", dir_a, "");
	leads_to("/p/", dir_a, "/");
	leads_to("/p/x", dir_a, "/x");
	leads_to("/p/x/y.z", dir_a, "/x/y.z");
	leads_to("/p/x/../y", dir_a, "/x/../y");
	leads_to("/p/.hidden", dir_a, "/.hidden");
	leads_to("/p/.plfsx", dir_a, "/.plfsx");
	leads_to("/p/x/.plfs", dir_a, "/x/.plfs");
}

Test(path_map, the_longest_prefix_wins)
{
	leads_to("/p/deep", dir_b, "");
	leads_to("/p/deep/x", dir_b, "/x");
	leads_to("/p/deeper", dir_a, "/deeper");
	leads_to("/p/dee", dir_a, "/dee");
}

Test(path_map, a_prefix_ends_at_a_slash)
{
	is_not_ours("/pp");
	is_not_ours("/p.txt");
	is_not_ours("/");
	is_not_ours("");
	is_not_ours("p/x");
	is_not_ours("/etc/passwd");
}

Test(path_map, untidy_spellings_lead_to_the_same_place)
{
	leads_to("//p/x", dir_a, "/x");
	leads_to("/./p/x", dir_a, "/x");
	leads_to("/etc/../p/x", dir_a, "/x");
	leads_to("/p//x", dir_a, "//x");
	leads_to("/p/./x", dir_a, "/./x");
	leads_to("/p/../p/x", dir_a, "/x");
	leads_to("/p/deep/../x", dir_a, "/x");
	leads_to("/p/../p/deep/x", dir_b, "/x");
	is_not_ours("/p/..");
	is_not_ours("/p/../etc/passwd");
	is_not_ours("/p/x/../../etc");
	is_not_ours("//etc//passwd");
	is_not_ours("/..");
}

/* However it is spelled: no program sees what is behind the files. */
Test(path_map, the_container_directory_does_not_exist)
{
	static const char *const SPELLINGS[] = {
		"/p/.plfs",	 "/p/.plfs/",		"/p/.plfs/format",	   "/p//.plfs/x",
		"/p/./.plfs",	 "//p/.plfs",		"/p/deep/.plfs/x",	   "/etc/../p/.plfs",
		"/p/x/../.plfs", "/p/.plfs/../.plfs/x", "/p/x/./..//.plfs/format",
	};
	char out[PATH_MAX], path[PATH_MAX];
	struct plfs_mount *m;

	for (size_t i = 0; i < ARRAY_SIZE(SPELLINGS); i++)
		cr_expect_eq(plfs_path_map(SPELLINGS[i], out, &m), -ENOENT, "%s", SPELLINGS[i]);
	snprintf(path, sizeof(path), "%s/.plfs/format", dir_a);
	cr_expect_eq(plfs_path_map(path, out, &m), -ENOENT);
	snprintf(path, sizeof(path), "%s/.plfs", dir_c);
	cr_expect_eq(plfs_path_map(path, out, &m), -ENOENT);
}

Test(path_map, the_backends_own_name_leads_there_too)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/x", dir_a);
	leads_to(path, dir_a, "/x");
	snprintf(path, sizeof(path), "%s/x", dir_c);
	leads_to(path, dir_c, "/x");
	snprintf(path, sizeof(path), "%s/a/../c/x", scratch);
	leads_to(path, dir_c, "/x");
	snprintf(path, sizeof(path), "%s/other", scratch);
	is_not_ours(path);
}

Test(path_map, too_long_is_an_error)
{
	static char path[2 * PATH_MAX];
	char out[PATH_MAX];
	struct plfs_mount *m;

	memset(path, 'x', sizeof(path) - 1);
	memcpy(path, "/p/", 3);
	path[PATH_MAX - 1] = '\0';
	cr_assert_eq(plfs_path_map(path, out, &m), -ENAMETOOLONG);
}

static void is_called(const char *dir, const char *rest, const char *want)
{
	char out[PATH_MAX] = "", path[PATH_MAX];

	snprintf(path, sizeof(path), "%s%s", dir, rest);
	cr_expect_eq(plfs_path_unmap(path, out), 1, "%s", path);
	cr_expect_str_eq(out, want, "%s is called %s", path, out);
}

Test(path_unmap, gives_the_name_below_the_prefix)
{
	char out[PATH_MAX], path[PATH_MAX];

	is_called(dir_a, "", "/p");
	is_called(dir_a, "/x/y", "/p/x/y");
	is_called(dir_b, "/x", "/p/deep/x");
	snprintf(path, sizeof(path), "%sx", dir_a);
	cr_assert_eq(plfs_path_unmap(path, out), 0);
	cr_assert_eq(plfs_path_unmap(scratch, out), 0);
	cr_assert_eq(plfs_path_unmap("(unreachable)/x", out), 0);
	cr_assert_eq(plfs_path_unmap("", out), 0);
	cr_assert_eq(plfs_path_unmap(dir_c, out), 0); /* in place: it is called so already */
}

Test(cwd_class, tells_inside_above_and_elsewhere)
{
	char path[PATH_MAX];
	struct plfs_mount *m;

	cr_assert_eq(plfs_cwd_class(dir_a, &m), 1);
	cr_assert_str_eq(m->backend, dir_a);
	snprintf(path, sizeof(path), "%s/x/y", dir_c);
	cr_assert_eq(plfs_cwd_class(path, &m), 1);
	cr_assert_str_eq(m->backend, dir_c);
	cr_assert_eq(plfs_cwd_class("/", &m), 2);
	cr_assert_eq(plfs_cwd_class("/tmp", &m), 2);
	cr_assert_eq(plfs_cwd_class(scratch, &m), 2);
	cr_assert_eq(plfs_cwd_class("/etc", &m), 0);
	snprintf(path, sizeof(path), "%s/a.d", scratch);
	cr_assert_eq(plfs_cwd_class(path, &m), 0);
}

static struct plfs_mount *mapped_with(const char *options)
{
	char map[300], out[PATH_MAX];
	struct plfs_mount *m;

	snprintf(map, sizeof(map), "/p=%s%s", scratch, options);
	cr_assert_eq(plfs_setup(map), 1);
	cr_assert_eq(plfs_path_map("/p", out, &m), 1);
	return m;
}

Test(mount_options, globs_choose_the_files)
{
	struct plfs_mount *m = mapped_with("{match=*.h5,match=run*/ck*,exclude=*tmp*}");
	char path[PATH_MAX];

	cr_assert(mount_wants_log(m, "x.h5"));
	cr_assert(mount_wants_log(m, "d/x.h5"));
	cr_assert(mount_wants_log(m, "run7/ck.1"));
	cr_assert_not(mount_wants_log(m, "other/ck.1"));
	cr_assert_not(mount_wants_log(m, "x.txt"));
	cr_assert_not(mount_wants_log(m, "tmp.h5"));
	snprintf(path, sizeof(path), "%s/d/x.h5", scratch);
	cr_assert(mount_wants_log(m, path));
	snprintf(path, sizeof(path), "%s/run1/ck2", scratch);
	cr_assert(mount_wants_log(m, path));
}

Test(mount_options, without_globs_all_files_are_chosen)
{
	cr_assert(mount_wants_log(mapped_with(""), "x"));
}

Test(mount_options, flat_means_none)
{
	struct lfile l;

	cr_assert_not(mount_wants_log(mapped_with("{mode=flat}"), "x"));
	l = lopen("x", O_RDWR | O_CREAT);
	cr_assert_null(l.f);
	lclose(&l);
}

Test(mount_setup, another_spelling_of_the_backend_is_known)
{
	char link_path[100], map[300], path[300], out[PATH_MAX];
	struct plfs_mount *m;

	snprintf(dir_a, sizeof(dir_a), "%s/a", scratch);
	snprintf(link_path, sizeof(link_path), "%s/link", scratch);
	cr_assert_eq(mkdir(dir_a, 0755), 0);
	cr_assert_eq(symlink(dir_a, link_path), 0);
	snprintf(map, sizeof(map), "/p=%s", link_path);
	cr_assert_eq(plfs_setup(map), 1);
	snprintf(path, sizeof(path), "%s/x", link_path);
	cr_assert_eq(plfs_path_map(path, out, &m), 1);
	cr_assert_str_eq(m->backend, dir_a);
	snprintf(path, sizeof(path), "%s/x", dir_a);
	cr_assert_eq(plfs_path_map(path, out, &m), 1);
}

static char *bad_map;

static int set_up_badly(void *arg)
{
	(void)arg;
	if (freopen("/dev/null", "w", stderr))
		plfs_setup(bad_map);
	return 0;
}

Test(mount_setup, bad_settings_end_the_process_with_78_before_anything_is_written)
{
	char file[100], inside[100], map[400];

	snprintf(file, sizeof(file), "%s/file", scratch);
	cr_assert_eq(close(creat(file, 0644)), 0);
	snprintf(inside, sizeof(inside), "%s/.plfs", scratch);
	bad_map = map;

	snprintf(map, sizeof(map), "/p=%s/missing", scratch);
	cr_expect_eq(in_child(set_up_badly, NULL), 78);
	snprintf(map, sizeof(map), "/p=%s", file);
	cr_expect_eq(in_child(set_up_badly, NULL), 78);
	snprintf(map, sizeof(map), "nonsense");
	cr_expect_eq(in_child(set_up_badly, NULL), 78);
	snprintf(map, sizeof(map), "%s=%s/x", scratch, scratch);
	cr_expect_eq(in_child(set_up_badly, NULL), 78);
	cr_assert_eq(mkdir(inside, 0755), 0);
	snprintf(map, sizeof(map), "/p=%s", inside);
	cr_expect_eq(in_child(set_up_badly, NULL), 78);
	snprintf(map, sizeof(map), "/p/.plfs/x=%s", scratch);
	cr_expect_eq(in_child(set_up_badly, NULL), 78);
	cr_assert_eq(rmdir(inside), 0);
	snprintf(map, sizeof(map), "/p=%s,%s{spread=host}", scratch, scratch);
	cr_expect_eq(in_child(set_up_badly, NULL), 78);
	snprintf(map, sizeof(map), "/p=%s,%s/missing{spread=host}", dir_a, scratch);
	cr_expect_eq(in_child(set_up_badly, NULL), 78);
	snprintf(map, sizeof(map), "/p=%s,%s,%s{spread=host}", dir_a, dir_b, dir_b);
	cr_expect_eq(in_child(set_up_badly, NULL), 78);
	snprintf(map, sizeof(map), "/p=%s,%s{spread=host}", scratch, file);
	cr_expect_eq(in_child(set_up_badly, NULL), 78);
	cr_assert_eq(count_files(""), 1);
}

/* Processes that use a backend for the first time at once. */
static int prepare(void *arg)
{
	char out[PATH_MAX];
	struct plfs_mount *m;

	(void)arg;
	if (plfs_path_map("/p", out, &m) != 1 || mount_prepare(m))
		return 1;
	return mount_prepare(m) ? 2 : 0;
}

Test(mount_setup, a_backend_is_prepared_by_many_at_once)
{
	pid_t pid[8];

	mapped_with("");
	for (int i = 0; i < 8; i++)
		pid[i] = start_child(prepare, NULL);
	for (int i = 0; i < 8; i++)
		cr_assert_eq(wait_child(pid[i]), 0);
	cr_assert_eq(count_files("format"), 1);
	cr_assert_eq(count_files(""), 1);
}

static struct store_ops meanwhile;

/*
 * The mount of the scratch backend, whose store does what @meanwhile says, which is as ever until a test
 * changes it.
 */
static struct plfs_mount *mounted_with_own_ops(void)
{
	char out[PATH_MAX];
	struct plfs_mount *m;

	mapped_with("");
	cr_assert_eq(plfs_path_map("/p", out, &m), 1);
	meanwhile = *m->store.ops;
	m->store.ops = &meanwhile;
	return m;
}

static unsigned nr_calls;
static ssize_t (*posix_pread_of)(struct store *s, int h, void *buf, size_t len, uint64_t off);

static ssize_t stale_pread(struct store *s, int h, void *buf, size_t len, uint64_t off)
{
	return nr_calls++ < 2 ? -ESTALE : posix_pread_of(s, h, buf, len, off);
}

/* What GlusterFS says of a file that another host has replaced. */
Test(mount_setup, a_format_file_that_went_stale_was_replaced)
{
	struct plfs_mount *m = mounted_with_own_ops();

	posix_pread_of = meanwhile.pread;
	cr_assert_eq(mount_prepare(m), 0);
	meanwhile.pread = stale_pread;
	nr_calls = 0;
	cr_assert_eq(mount_prepare(m), 0);
}

static int (*posix_sync_of)(struct store *s, int h, bool dir);
static uint64_t identity_of_first;

static int prepare_first(void *arg)
{
	meanwhile.sync = posix_sync_of;
	return prepare(arg);
}

/* Another process is through with it before this one's file has a name. */
static int sync_after_another(struct store *s, int h, bool dir)
{
	if (!identity_of_first) {
		cr_assert_eq(in_child(prepare_first, NULL), 0);
		identity_of_first = origin_identity(s);
		cr_assert_neq(identity_of_first, 0);
	}
	return posix_sync_of(s, h, dir);
}

static int no_renameat2(int fromfd, const char *from, int tofd, const char *to, unsigned flags)
{
	(void)fromfd, (void)from, (void)tofd, (void)to, (void)flags;
	errno = EINVAL;
	return -1;
}

static int no_linkat(int fromfd, const char *from, int tofd, const char *to, int flags)
{
	(void)fromfd, (void)from, (void)tofd, (void)to, (void)flags;
	errno = EPERM;
	return -1;
}

/* Places have written down whose they are: the file that says it stays. */
static void second_maker_keeps_the_file_of_the_first(void)
{
	struct plfs_mount *m = mounted_with_own_ops();

	posix_sync_of = meanwhile.sync;
	meanwhile.sync = sync_after_another;
	cr_assert_eq(mount_prepare(m), 0);
	cr_expect_eq(origin_identity(&m->store), identity_of_first);
	cr_expect_eq(count_files("format"), 1);
	cr_expect_eq(count_files(""), 1); /* nothing temporary is left */
}

Test(mount_setup, who_makes_a_backend_second_keeps_the_file_of_the_first)
{
	second_maker_keeps_the_file_of_the_first();
}

Test(mount_setup, who_makes_a_backend_second_keeps_it_on_nfs)
{
	sys_init();
	sys.renameat2 = no_renameat2;
	second_maker_keeps_the_file_of_the_first();
}

Test(mount_setup, who_makes_a_backend_second_keeps_it_without_links)
{
	sys_init();
	sys.renameat2 = no_renameat2;
	sys.linkat = no_linkat;
	second_maker_keeps_the_file_of_the_first();
}

Test(mount_setup, a_backend_is_made_without_links)
{
	struct plfs_mount *m = mounted_with_own_ops();

	sys.renameat2 = no_renameat2;
	sys.linkat = no_linkat;
	cr_assert_eq(mount_prepare(m), 0);
	cr_expect_eq(count_files("format"), 1);
	cr_expect_eq(count_files(""), 1);
}

/* plfs init of a backend in use. */
Test(mount_setup, init_keeps_the_file_that_places_know)
{
	struct plfs_mount *m = mapped_with("");
	mode_t mode = (mode_t)-1;
	uint64_t identity;

	cr_assert_eq(mount_prepare(m), 0);
	identity = origin_identity(&m->store);
	cr_assert_eq(plfs_init_backend(scratch, &mode), 0);
	cr_expect_eq(origin_identity(&m->store), identity);
}
