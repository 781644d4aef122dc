/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Files whose containers are in the store in memory: all of core above the store works on handles that are no
 * descriptors, and without a path of the kernel's to any dropping. The stubs are files in the scratch
 * directory.
 */
#include "test/lib/scratch.h"

#include "core/backend/mount.h"
#include "core/base/event.h"
#include "core/plfs.h"
#include "core/store/memory.h"

#include <criterion/criterion.h>

#define LEN (300 * 1024)

static struct plfs_mount *m;

static void setup(void)
{
	char path[PATH_MAX];

	scratch_setup();
	m = lpath("a", path);
	cr_assert_eq(store_memory_open(&m->store), 0);
}

TestSuite(in_memory, .init = setup, .fini = scratch_remove);

static int count_name(void *arg, const char *name)
{
	(void)name;
	++*(int *)arg;
	return 0;
}

/* How many containers the store has whose id begins with the digits of the only stub's directory. */
static int nr_containers(void)
{
	char path[64];
	int nr = 0;

	for (unsigned i = 0; i < 256; i++) {
		snprintf(path, sizeof(path), PLFS_DIR_NAME "/%02x", i);
		m->store.ops->list(&m->store, path, count_name, &nr);
	}
	return nr;
}

Test(in_memory, a_file_is_written_and_read)
{
	struct lfile l = made("a");

	for (int i = 0; i < LEN / 1024; i += 2)
		cr_assert_eq(lfill(&l, i * 1024, 1024, 1), 1024);
	for (int i = 1; i < LEN / 1024; i += 2)
		cr_assert_eq(lfill(&l, i * 1024, 1024, 1), 1024);
	cr_assert_eq(lcheck(&l, 0, LEN, 1), 0);
	cr_assert_eq(lclose(&l), 0);
	cr_assert_eq(stat_size("a"), LEN);
	l = lopen("a", O_RDONLY);
	cr_assert_eq(lcheck(&l, 0, LEN, 1), 0);
	cr_assert_eq(lclose(&l), 0);
	cr_assert_eq(count_files("data."), 0, "no log is a file");
	cr_assert_eq(nr_containers(), 1);
}

Test(in_memory, two_descriptions_see_the_later_write)
{
	struct lfile a = made("a"), b = lopen("a", O_RDWR);
	off_t end;

	cr_assert_eq(lfill(&a, 0, LEN, 1), LEN);
	cr_assert_eq(lfill(&b, 1000, 5000, 2), 5000);
	cr_assert_eq(lcheck(&a, 0, 1000, 1), 0);
	cr_assert_eq(lcheck(&a, 1000, 5000, 2), 0);
	cr_assert_eq(lcheck(&a, 6000, LEN - 6000, 1), 0);
	cr_assert_eq(plfs_sync(a.f), 0);
	cr_assert_eq(lappend(&b, "end", 3, &end), 3);
	cr_assert_eq(end, LEN + 3);
	cr_assert_eq(lclose(&a), 0);
	cr_assert_eq(lclose(&b), 0);
}

Test(in_memory, a_file_is_cut_and_grows_again)
{
	struct lfile l = made("a");

	cr_assert_eq(lfill(&l, 0, LEN, 1), LEN);
	cr_assert_eq(plfs_truncate(l.f, 1000), 0);
	cr_assert_eq(plfs_truncate(l.f, 5000), 0);
	cr_assert_eq(lcheck(&l, 0, 1000, 1), 0);
	cr_assert(lzeros(&l, 1000, 4000));
	cr_assert_eq(plfs_truncate(l.f, 0), 0);
	cr_assert_eq(lfill(&l, 100, 100, 2), 100);
	cr_assert_eq(lclose(&l), 0);
	l = lopen("a", O_RDONLY);
	cr_assert(lzeros(&l, 0, 100));
	cr_assert_eq(lcheck(&l, 100, 100, 2), 0);
	cr_assert_eq(lclose(&l), 0);
}

Test(in_memory, a_container_goes_with_its_file)
{
	struct lfile l = made("a");

	cr_assert_eq(lfill(&l, 0, LEN, 1), LEN);
	cr_assert_eq(lclose(&l), 0);
	cr_assert_eq(nr_containers(), 1);
	cr_assert_eq(lunlink("a"), 0);
	cr_assert_eq(nr_containers(), 0);
}

Test(in_memory, a_file_is_made_plain)
{
	struct lfile l = made("a");
	char path[PATH_MAX], buf[4096];
	int fd;

	cr_assert_eq(lfill(&l, 0, 4096, 1), 4096);
	cr_assert_eq(lclose(&l), 0);
	lpath("a", path);
	cr_assert_eq(plfs_flatten(AT_FDCWD, path, NULL), 0);
	fd = open(path, O_RDONLY);
	cr_assert_eq(read(fd, buf, sizeof(buf)), 4096);
	close(fd);
	cr_assert_eq(nr_containers(), 0);
}

/* ---- events ---- */

static struct {
	unsigned nr[NR_EVENT_KINDS];
	uint64_t appended, records;
} seen;

static void see(struct event_listener *l, const struct event *e)
{
	(void)l;
	seen.nr[e->kind]++;
	seen.appended += e->len;
	seen.records = e->kind == EVENT_INDEX_LOADED ? e->count : seen.records;
	cr_assert_eq(e->result, 0);
	cr_assert_eq(strncmp(e->container, PLFS_DIR_NAME "/", strlen(PLFS_DIR_NAME "/")), 0);
}

Test(in_memory, the_life_of_a_file_can_be_followed_by_its_events)
{
	struct event_listener listener = { .kinds = ~0u, .fn = see };
	struct lfile l;

	event_listen(&listener);
	l = made("a");
	cr_assert_eq(lfill(&l, 0, LEN, 1), LEN);
	cr_assert_eq(lclose(&l), 0);
	cr_assert_eq(seen.nr[EVENT_LOG_MADE], 1);
	cr_assert_geq(seen.nr[EVENT_LOG_APPENDED], 1);
	cr_assert(seen.appended >= LEN && seen.appended < LEN + 65536, "%llu",
		  (unsigned long long)seen.appended);
	cr_assert_eq(seen.nr[EVENT_INDEX_LOADED], 0);
	l = lopen("a", O_RDONLY);
	cr_assert_eq(lcheck(&l, 0, LEN, 1), 0);
	cr_assert_eq(lclose(&l), 0);
	cr_assert_eq(seen.nr[EVENT_INDEX_LOADED], 1);
	cr_assert_eq(seen.records, 1);
	cr_assert_eq(seen.nr[EVENT_CONTAINER_REMOVED], 0);
	cr_assert_eq(lunlink("a"), 0);
	cr_assert_eq(seen.nr[EVENT_CONTAINER_REMOVED], 1);
	event_ignore(&listener);
}
