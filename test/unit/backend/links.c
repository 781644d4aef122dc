/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names in .plfs that lead to a file which has another name as well, somebody else's: nothing is written to
 * it. test/tools/users has several users, and all other kinds of files.
 */
#include "test/lib/scratch.h"

#include "core/store/posix.h"

#include <criterion/criterion.h>

TestSuite(links, .init = scratch_setup, .fini = scratch_remove);

static char canary[128], before[100000], after[sizeof(before)];
static size_t len;

static size_t read_canary(char *buf)
{
	FILE *f = fopen(canary, "r");
	size_t n = f ? fread(buf, 1, sizeof(before), f) : 0;

	if (f)
		fclose(f);
	return n;
}

/* The file at @path is somebody's canary, which has got a name there. */
static void replace(const char *path)
{
	snprintf(canary, sizeof(canary), "%s/canary", scratch);
	cr_assert_eq(link(path, canary), 0);
	len = read_canary(before);
	cr_assert_gt(len, 0);
}

static bool is_untouched(void)
{
	return read_canary(after) == len && !memcmp(before, after, len);
}

static int write_some(void *arg)
{
	struct lfile l = made("f");
	bool ok = lfill(&l, 0, 5000, 1) == 5000;

	(void)arg;
	return lclose(&l) || !ok;
}

static int write_and_die(void *arg)
{
	struct lfile l = made("f");

	(void)arg;
	lfill(&l, 0, 5000, 1);
	kill(getpid(), SIGKILL);
	return 2;
}

static int read_it(void *arg)
{
	struct lfile l = lopen("f", O_RDONLY);

	(void)arg;
	return lcheck(&l, 0, 5000, 1) ? 1 : lclose(&l);
}

/* Twice with one log, the second time a process goes on with the first. */
static int write_again(void *arg)
{
	char path[PATH_MAX];

	(void)arg;
	write_some(NULL);
	if (!find_file("data.", path))
		return 3;
	replace(path);
	write_some(NULL);
	return is_untouched() ? 0 : 1;
}

static void replace_one(const char *prefix)
{
	char path[PATH_MAX];

	cr_assert(find_file(prefix, path), "%s", prefix);
	replace(path);
}

Test(links, a_block_is_not_appended_to_one)
{
	cr_assert_eq(in_child(write_some, NULL), 0);
	replace_one("index.");
	cr_assert_eq(in_child(write_some, NULL), 0, "the live file keeps what the block would say");
	cr_assert(is_untouched());
	cr_assert_eq(count_files("live."), 1);
}

Test(links, a_kept_map_is_not_revoked_there)
{
	char path[PATH_MAX];
	FILE *f;

	cr_assert_eq(in_child(write_some, NULL), 0);
	cr_assert(find_file("hostdir.", path));
	strcpy(strrchr(path, '/'), "/index.global");
	f = fopen(path, "w");
	for (int i = 0; i < 1000; i++)
		fputs("secret", f);
	fclose(f);
	replace(path);
	cr_assert_eq(in_child(write_some, NULL), 0);
	cr_assert(is_untouched());
	cr_assert_neq(access(path, F_OK), 0, "the name goes");
	cr_assert_eq(in_child(read_it, NULL), 0);
}

Test(links, no_process_is_counted_in_one)
{
	cr_assert_eq(in_child(write_some, NULL), 0);
	replace_one("writers.");
	cr_assert_eq(in_child(write_some, NULL), 0);
	cr_assert_eq(in_child(write_and_die, NULL), 256 + SIGKILL);
	cr_assert(is_untouched());
	cr_assert_eq(in_child(read_it, NULL), 0);
}

Test(links, no_log_is_gone_on_with)
{
	cr_assert_eq(in_child(write_again, NULL), 0);
	cr_assert_eq(count_files("data."), 2);
}

static int sync_it(void *arg)
{
	struct lfile l = made("f");
	int ret = lfill(&l, 9000, 10, 1) != 10 || plfs_sync(l.f) != -EIO;

	(void)arg;
	lclose(&l);
	return ret;
}

/* A sync writes what others have staged into their logs. */
Test(links, a_sync_writes_nothing_staged_to_one)
{
	cr_assert_eq(in_child(write_and_die, NULL), 256 + SIGKILL);
	replace_one("data.");
	cr_assert_eq(in_child(sync_it, NULL), 0);
	cr_assert(is_untouched());
}

static void take(void *arg, const struct plfs_finding *f)
{
	(void)arg, (void)f;
}

Test(links, a_repair_appends_no_block_to_one)
{
	struct plfs_check check = { .repair = true, .found = take };
	char path[PATH_MAX];
	struct plfs_mount *m = lpath("f", path);

	cr_assert_eq(in_child(write_some, NULL), 0);
	cr_assert_eq(in_child(write_and_die, NULL), 256 + SIGKILL);
	replace_one("index.");
	msg_is_muted = true;
	cr_assert_neq(plfs_check(m, AT_FDCWD, path, &check), 0);
	cr_assert(is_untouched());
	cr_assert_eq(count_files("live."), 1);
	cr_assert_eq(in_child(read_it, NULL), 0);
}

static ssize_t known_random(void *buf, size_t buf_len, unsigned flags)
{
	(void)flags;
	memset(buf, 0x42, buf_len);
	return (ssize_t)buf_len;
}

/* Names of temporary files are random; and who knows one, and has put a link there, gains nothing. */
Test(links, a_temporary_file_is_never_one_that_is_there)
{
	static const char name[] = ".plfs-flatten.4242424242424242";
	ssize_t (*true_random)(void *, size_t, unsigned) = sys.getrandom;
	char in_container[PATH_MAX], beside[PATH_MAX], replaced[PATH_MAX], path[PATH_MAX];
	struct store store;
	FILE *f;

	cr_assert_eq(in_child(write_some, NULL), 0);
	snprintf(canary, sizeof(canary), "%s/canary", scratch);
	f = fopen(canary, "w");
	fputs("secret", f);
	fclose(f);
	len = read_canary(before);
	cr_assert(find_file("hostdir.", in_container));
	strcpy(strrchr(in_container, '/') + 1, name);
	snprintf(beside, sizeof(beside), "%s/%s", scratch, name);
	snprintf(replaced, sizeof(replaced), "%s/x.tmp.4242424242424242", scratch);
	lpath("f", path);
	cr_assert_eq(store_posix_open(&store, scratch), 0);
	sys.getrandom = known_random;
	for (int i = 0; i < 2; i++) {
		int (*make)(const char *, const char *) = i ? symlink : link;

		cr_assert(!make(canary, in_container) && !make(canary, beside) && !make(canary, replaced));
		cr_assert_eq(plfs_flatten(AT_FDCWD, path, NULL), -EEXIST);
		cr_assert_eq(store_write_file(&store, "x", 0644, "abc", 3, NULL, 0), -EEXIST);
		cr_assert(is_untouched());
		unlink(in_container);
		unlink(beside);
		unlink(replaced);
	}
	cr_assert_eq(store_write_file(&store, "x", 0644, "abc", 3, NULL, 0), 0);
	sys.getrandom = true_random;
	cr_assert_eq(in_child(read_it, NULL), 0);
}
