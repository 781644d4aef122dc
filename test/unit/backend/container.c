/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Container directories, their modes and owners, and droppings' names.
 */
#include "test/lib/scratch.h"

#include "test/lib/calls.h"

#include "core/backend/container.h"
#include "core/backend/container_remove.h"
#include "core/dropping/owner.h"
#include "core/backend/container_dirs.h"
#include "core/base/stamp.h"
#include "core/backend/names.h"
#include "core/dropping/node_index.h"
#include "core/dropping/datalog.h"
#include "core/store/posix.h"

#include <criterion/criterion.h>

static struct store store;
static struct container c;
static const uint8_t id[STUB_ID_LEN] = { 0x3f, 0xa9, 1 };

static void setup(void)
{
	scratch_dir();
	if (store_posix_open(&store, scratch) || store.ops->mkdir(&store, PLFS_DIR_NAME, 0755))
		die("store");
	container_init(&c, &store, id, 0644);
}

static void setup_made(void)
{
	setup();
	if (container_make(&c, name_hostdir(&c)))
		die("container_make");
}

TestSuite(container, .init = setup, .fini = scratch_remove);
TestSuite(dropping, .init = setup_made, .fini = scratch_remove);

static mode_t mode_of(const char *rest)
{
	char path[CONTAINER_PATH_LEN];
	struct stat st;

	container_path(&c, rest, path);
	return store.ops->stat(&store, path, &st) ? 0 : st.st_mode & 07777;
}

Test(container, is_named_by_its_id)
{
	cr_assert_str_eq(c.dir, ".plfs/3f/3fa90100000000000000000000000000");
}

Test(container, is_made_with_its_hostdir_and_removed_whole)
{
	char name[INDEX_LOG_NAME_LEN];
	int h;

	cr_assert_eq(container_make(&c, 7), 0);
	cr_assert_eq(container_make(&c, 7), 0);
	cr_assert_eq(mode_of("hostdir.7"), 0755);
	h = datalog_create(&c, 1, name);
	cr_assert_geq(h, 0);
	store_close(&store, &h);
	cr_assert_eq(container_remove(&c), 0);
	cr_assert_eq(mode_of("hostdir.7"), 0);
	cr_assert_eq(container_remove(&c), 0);
}

Test(container, is_open_to_those_who_may_read_and_write_the_file)
{
	umask(077);
	container_init(&c, &store, id, 0664);
	cr_assert_eq(container_make(&c, 1), 0);
	cr_assert_eq(mode_of("hostdir.1"), 0775);
	cr_assert_eq(container_file_mode(&c, false), 0644);
	cr_assert_eq(container_file_mode(&c, true), 0664);
	container_init(&c, &store, id, 0400);
	cr_assert_eq(container_file_mode(&c, true), 0600);
}

static unsigned nr_open; /* calls before which others could look into it */

static int nobody_is_misled(enum call call)
{
	char path[CONTAINER_PATH_LEN], dir[PATH_MAX];
	struct stat st;

	(void)call;
	snprintf(dir, sizeof(dir), "%s/%s", scratch, c.dir);
	if (calls_real.stat(dir, &st) || !(st.st_mode & 077))
		return 0;
	container_for_path(&c, path);
	snprintf(dir, sizeof(dir), "%s/%s", scratch, path);
	cr_assert_eq(calls_real.stat(dir, &st), 0);
	nr_open++;
	return 0;
}

/* By who may write the file, but is not its owner. */
Test(container, says_for_whom_it_is_before_others_can_look_into_it)
{
	const struct stat stub = { .st_uid = geteuid() + 1, .st_gid = getegid(), .st_mode = S_IFREG | 0666 };

	container_init_for(&c, &store, id, &stub);
	c.give = false; /* though it is root */
	calls_intercept();
	on_call = nobody_is_misled;
	cr_assert_eq(container_make(&c, 1), 0);
	on_call = NULL;
	cr_assert_gt(nr_open, 0);
}

static int make(void *arg)
{
	int ret = 0;

	for (unsigned i = 0; i < 32 && !ret; i++)
		ret = container_make(&c, (i + *(unsigned *)arg) % 32);
	return ret ? 1 : 0;
}

Test(container, is_made_by_many_at_once)
{
	for (int round = 0; round < 10; round++) {
		pid_t pid[6];

		for (unsigned i = 0; i < 6; i++)
			pid[i] = start_child(make, &i);
		for (int i = 0; i < 6; i++)
			cr_assert_eq(wait_child(pid[i]), 0);
		cr_assert_eq(container_remove(&c), 0);
	}
}

static int count_kind(void *arg, const char *path, const char *name, enum dropping_kind kind)
{
	int *counts = arg;

	cr_expect(!strncmp(path, "hostdir.", 8) && !strcmp(strchr(path, '/') + 1, name));
	counts[kind]++;
	return 0;
}

static void touch(const char *rest)
{
	char path[CONTAINER_PATH_LEN];
	int h;

	container_path(&c, rest, path);
	h = store_open(&store, path, O_RDWR | O_CREAT | O_EXCL, 0600);
	cr_assert_geq(h, 0);
	store_close(&store, &h);
}

static void put(const char *rest, const char *text)
{
	char path[CONTAINER_PATH_LEN];
	int h;

	touch(rest);
	container_path(&c, rest, path);
	h = store_open(&store, path, O_RDWR, 0);
	cr_assert_eq(store.ops->pwrite(&store, h, text, strlen(text), 0), (ssize_t)strlen(text));
	store_close(&store, &h);
}

static int stop(void *arg, const char *path, const char *name, enum dropping_kind kind)
{
	(void)path, (void)name, (void)kind;
	return ++*(int *)arg == 2 ? 42 : 0;
}

Test(container, lists_its_droppings_by_kind)
{
	int counts[4] = { 0 }, seen = 0;

	cr_assert_eq(container_list(&c, count_kind, counts), -ENOENT);
	cr_assert_eq(container_make(&c, 3), 0);
	cr_assert_eq(container_make(&c, 4), 0);
	touch("hostdir.3/data.h.1.0");
	touch("hostdir.3/live.h.1.0");
	touch("hostdir.3/index.h");
	touch("hostdir.3/index.h.tmp.12345678");
	touch("hostdir.4/data.h.1.1");
	touch("index.global");
	cr_assert_eq(container_list(&c, count_kind, counts), 0);
	cr_assert_eq(counts[DROPPING_DATA], 2);
	cr_assert_eq(counts[DROPPING_LIVE], 1);
	cr_assert_eq(counts[DROPPING_INDEX], 1);
	cr_assert_eq(counts[DROPPING_OTHER], 1);
	cr_assert_eq(container_list(&c, stop, &seen), 42);
	cr_assert_eq(seen, 2);
}

Test(container, follows_a_chmod)
{
	char name[INDEX_LOG_NAME_LEN], path[CONTAINER_PATH_LEN];
	int h;

	cr_assert_eq(container_make(&c, name_hostdir(&c)), 0);
	h = datalog_create(&c, 1, name);
	store_close(&store, &h);
	name_here(&c, name, path);
	cr_assert_eq(container_make(&c, 3), 0);
	put("hostdir.3/index.h", INDEX_BLOCK_MAGIC);
	cr_assert_eq(container_chmod(&c, 0660), 0);
	cr_assert_eq(mode_of("lock"), 0660);
	cr_assert_eq(mode_of("hostdir.3"), 0770);
	cr_assert_eq(mode_of(path), 0640);
	cr_assert_eq(mode_of("hostdir.3/index.h"), 0660);
	cr_assert_eq(container_chmod(&c, 0400), 0);
	cr_assert_eq(mode_of("hostdir.3"), 0700);
	cr_assert_eq(container_chown(&c, getuid(), getgid()), 0);
	container_remove(&c);
	cr_assert_eq(container_chmod(&c, 0644), 0);
}

/* Another user has moved it there. */
Test(container, what_is_not_its_own_keeps_its_mode)
{
	msg_is_muted = true;
	cr_assert_eq(container_make(&c, 3), 0);
	put("hostdir.3/data.h.1.0", "secret");
	cr_assert_eq(container_chmod(&c, 0666), -EIO);
	cr_assert_eq(mode_of("hostdir.3/data.h.1.0"), 0600);
	cr_assert_eq(container_chmod(&c, 0660), -EIO);
	cr_assert_eq(mode_of("hostdir.3/data.h.1.0"), 0600);
	touch("hostdir.3/README");
	container_chmod(&c, 0600);
	cr_assert_eq(mode_of("hostdir.3"), 0770, "a directory with something else in it");
}

/* ---- another process gives it away too, and is late ---- */

static char late_path[2 * CONTAINER_PATH_LEN];
static uint64_t late_at_ns;

/* Its chown comes in between, and 100 ms later what it sees of the stub makes it take that back. */
static int be_late(enum call call)
{
	if (call != CALL_FSTAT)
		return 0;
	if (!late_at_ns) {
		late_at_ns = stamp_fine_ns() + 100000000;
		cr_assert_eq(chown(late_path, 41002, 41002), 0);
	} else if (stamp_fine_ns() >= late_at_ns) {
		on_call = NULL;
		cr_assert_eq(chown(late_path, 0, 0), 0);
	}
	return 0;
}

static void give_beside_one_who_is_late_at(const char *rest)
{
	char path[CONTAINER_PATH_LEN];
	struct stat st;

	if (geteuid())
		cr_skip_test("only root can give a file away");
	cr_assert_eq(stat(scratch, &st), 0); /* root's, as the stub is */
	st.st_mode = S_IFREG | 0644;
	container_init_for(&c, &store, id, &st);
	cr_assert_eq(container_make(&c, 3), 0);
	put("hostdir.3/index.h", INDEX_BLOCK_MAGIC);
	container_path(&c, rest, path);
	snprintf(late_path, sizeof(late_path), "%s/%s", scratch, path);
	calls_intercept();
	on_call = be_late;
	cr_assert_eq(container_chown(&c, 41001, 41001), 0);
	cr_assert_eq(store.ops->stat(&store, path, &st), 0);
	cr_assert_eq(st.st_uid, 41001);
}

Test(container, is_given_beside_one_who_is_late_at_its_index)
{
	give_beside_one_who_is_late_at("hostdir.3/index.h");
}

Test(container, is_given_beside_one_who_is_late_at_its_directory)
{
	give_beside_one_who_is_late_at("");
}

/* Who makes a file knows the owner of before: another process of root gave all to 41001, and goes on. */
Test(container, a_file_that_is_made_late_goes_with_the_next_owner)
{
	char path[CONTAINER_PATH_LEN];
	struct container late;
	struct stat st;
	int h;

	if (geteuid())
		cr_skip_test("only root can give a file away");
	cr_assert_eq(stat(scratch, &st), 0);
	st.st_mode = S_IFREG | 0644;
	st.st_uid = st.st_gid = 41002;
	container_init_for(&late, &store, id, &st);
	cr_assert_eq(container_make(&late, 3), 0);
	cr_assert_eq(container_check(&late, CONTAINER_CHANGE), 0);
	cr_assert_eq(container_chown(&late, 41001, 41001), 0);
	container_path(&late, "hostdir.3/index.h", path);
	h = container_open(&late, path, O_RDWR | O_CREAT, 0644);
	cr_assert(h >= 0 && pwrite(h, INDEX_BLOCK_MAGIC, 8, 0) == 8);
	store_close(&store, &h);
	st.st_uid = st.st_gid = 41001;
	container_init_for(&c, &store, id, &st);
	cr_assert_eq(container_chown(&c, 0, 0), 0);
	cr_assert_eq(store.ops->stat(&store, path, &st), 0);
	cr_assert_eq(st.st_uid, 0);
}

/* ---- one that appears after it was found missing ---- */

static char away[CONTAINER_PATH_LEN + 100], home[CONTAINER_PATH_LEN + 90];

/* The container of another user's file comes to where there was none. */
static int appear(enum call call)
{
	if (call == CALL_OPENAT && !rename(away, home))
		chmod(home, 0700);
	return 0;
}

static void make_another_users(void)
{
	struct stat st;

	cr_assert_eq(container_make(&c, 7), 0);
	snprintf(home, sizeof(home), "%s/%s", scratch, c.dir);
	snprintf(away, sizeof(away), "%s.away", home);
	cr_assert_eq(rename(home, away), 0);
	cr_assert_eq(stat(away, &st), 0);
	st.st_uid++; /* the stub's owner */
	container_init_for(&c, &store, id, &st);
	calls_intercept();
	on_call = appear;
}

Test(container, of_another_user_that_appears_is_not_removed)
{
	make_another_users();
	cr_assert_eq(container_remove(&c), 0);
	rename(away, home);
	cr_assert_eq(mode_of("hostdir.7"), 0755);
	on_call = NULL;
	cr_assert_eq(container_remove(&c), -EIO);
	cr_assert_eq(mode_of("hostdir.7"), 0755);
}

/* ---- one that is found between being made and being opened to others ---- */

static long slept_ms;

static int opened_while_waited_for(const struct timespec *pause, struct timespec *left)
{
	(void)left;
	slept_ms += pause->tv_nsec / 1000000;
	if (slept_ms > 100)
		chmod(home, 0775);
	return 0;
}

Test(container, of_a_slow_server_is_waited_for)
{
	struct stat st;

	cr_assert_eq(stat(scratch, &st), 0);
	st.st_mode = S_IFREG | 0664;
	container_init_for(&c, &store, id, &st);
	cr_assert_eq(container_make(&c, 7), 0);
	container_init_for(&c, &store, id, &st);
	snprintf(home, sizeof(home), "%s/%s", scratch, c.dir);
	cr_assert_eq(chmod(home, 0700), 0);
	sys.nanosleep = opened_while_waited_for;
	cr_assert_eq(container_check(&c, CONTAINER_CHANGE), 0);
	cr_assert_gt(slept_ms, 100);
}

/* ---- logs ---- */

Test(dropping, a_log_has_a_header_and_a_name_of_its_own)
{
	char name[2][INDEX_LOG_NAME_LEN], path[CONTAINER_PATH_LEN];
	struct container other;
	uint8_t other_id[STUB_ID_LEN] = { 9 };
	int h = datalog_create(&c, 1, name[0]), k = datalog_create(&c, 1, name[1]);
	struct stat st;

	cr_assert_geq(h, 0);
	cr_assert_geq(k, 0);
	cr_assert_str_neq(name[0], name[1]);
	cr_assert_eq(store.ops->fstat(&store, h, &st), 0);
	cr_assert_leq(st.st_size, DATALOG_DATA_OFF);
	store_close(&store, &h);
	store_close(&store, &k);
	snprintf(path, sizeof(path), "hostdir.%u/%s", name_hostdir(&c), name[0]);
	h = datalog_open(&c, path, false);
	cr_assert_geq(h, 0);
	store_close(&store, &h);
	container_init(&other, &store, other_id, 0644);
	memcpy(other.dir, c.dir, sizeof(c.dir));
	cr_assert_eq(datalog_open(&other, path, false), -EIO);
	cr_assert_eq(datalog_open(&c, "hostdir.0/data.x", false), -ENOENT);
}
