/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Node indexes: appended to by many processes, damaged, collected.
 */
#include "test/lib/scratch.h"

#include "core/backend/container.h"
#include "core/backend/container_dirs.h"
#include "core/backend/container_remove.h"
#include "core/file/collect.h"
#include "core/backend/host.h"
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
	if (container_make(&c, name_hostdir(&c)))
		die("container_make");
}

TestSuite(dropping_index, .init = setup, .fini = scratch_remove);

static void make_log(char *name)
{
	int h = datalog_create(&c, 1, name);

	cr_assert_geq(h, 0);
	store_close(&store, &h);
}

#define STAMP_NS 1700000000000000000ull

static struct index_record record(uint64_t n)
{
	return (struct index_record){
		.type = INDEX_WRITE,
		.logical_off = n * 100,
		.length = 10,
		.count = 1,
		.log_off = n * 10,
		.stamp_ns = STAMP_NS + n,
	};
}

static int tail_block(struct index_block *block, uint64_t first, uint32_t nr)
{
	struct index_record records[64];
	uint8_t buf[8192];

	for (uint32_t i = 0; i < nr; i++)
		records[i] = record(first + i);
	block->nr_records = nr;
	block->records = records;
	cr_assert_leq(index_block_max_len(block), sizeof(buf));
	return node_index_append(&c, buf, index_block_encode(block, buf));
}

static int append(uint32_t pid, uint64_t first, uint32_t nr)
{
	struct index_block block = { .pid = pid };

	return tail_block(&block, first, nr);
}

/* To the log called @name. */
static int append_to(const char *name, uint64_t first, uint32_t nr)
{
	struct index_block block = { 0 };

	name_log_numbers(name, &block.pid, &block.seq);
	return tail_block(&block, first, nr);
}

struct found {
	int nr_blocks, nr_records, per_log[16];
};

static int find(void *arg, const struct index_block *block)
{
	struct found *f = arg;
	struct index_cursor cur = { 0 };
	struct index_record rec;
	int ret;

	f->nr_blocks++;
	while ((ret = index_block_record(block, &cur, &rec)) > 0) {
		cr_assert_eq(rec.logical_off, (rec.stamp_ns - STAMP_NS) * 100);
		if (block->pid < 16)
			f->per_log[block->pid]++;
		f->nr_records++;
	}
	return ret;
}

static char *index_path(char *path)
{
	snprintf(path, CONTAINER_PATH_LEN, "hostdir.%u/index.%s", name_hostdir(&c), host_name());
	return path;
}

static int read_all_blocks(struct found *f, unsigned *damaged)
{
	char path[CONTAINER_PATH_LEN];

	memset(f, 0, sizeof(*f));
	*damaged = 0;
	return node_index_each(&c, index_path(path), find, f, damaged);
}

static int append_many(void *arg)
{
	uint32_t no = *(uint32_t *)arg;

	for (uint64_t i = 0; i < 50; i++)
		if (append(no, i * 20, 1 + (uint32_t)i % 20))
			return 1;
	return 0;
}

Test(dropping_index, no_block_of_many_processes_is_lost)
{
	pid_t pid[8];
	struct found f;
	unsigned damaged;

	for (int i = 0; i < 8; i++)
		pid[i] = start_child(append_many, &i);
	for (int i = 0; i < 8; i++)
		cr_assert_eq(wait_child(pid[i]), 0);
	cr_assert_eq(read_all_blocks(&f, &damaged), 0);
	cr_assert_eq(damaged, 0);
	cr_assert_eq(f.nr_blocks, 8 * 50);
	for (int i = 0; i < 8; i++)
		cr_assert_eq(f.per_log[i], 475);
}

static off_t index_size(void)
{
	char path[CONTAINER_PATH_LEN], rest[CONTAINER_PATH_LEN];
	struct stat st;

	container_path(&c, index_path(rest), path);
	cr_assert_eq(store.ops->stat(&store, path, &st), 0);
	return st.st_size;
}

static void cut(off_t by)
{
	char path[CONTAINER_PATH_LEN], rest[CONTAINER_PATH_LEN];
	int h;

	container_path(&c, index_path(rest), path);
	h = store_open(&store, path, O_RDWR, 0);
	cr_assert_eq(store.ops->truncate(&store, h, (uint64_t)(index_size() - by)), 0);
	store_close(&store, &h);
}

Test(dropping_index, a_torn_tail_is_passed_over)
{
	struct found f;
	unsigned damaged;

	off_t one;

	cr_assert_eq(append(1, 0, 10), 0);
	one = index_size();
	for (off_t by = 1; by < one; by++) {
		cr_assert_eq(append(2, 100, 10), 0);
		cut(by);
		cr_assert_eq(read_all_blocks(&f, &damaged), 0);
		cr_assert_eq(damaged, 0, "cut by %lld", (long long)by);
		cr_assert_eq(f.per_log[1], 10);
		/* and what comes behind it is found */
		cr_assert_eq(append(3, 200, 5), 0);
		cr_assert_eq(read_all_blocks(&f, &damaged), 0, "appended behind a cut by %lld",
			     (long long)by);
		cr_assert_eq(damaged, 0, "appended behind a cut by %lld", (long long)by);
		cr_assert_eq(f.per_log[1], 10);
		cr_assert_eq(f.per_log[3], 5);
		container_remove(&c);
		cr_assert_eq(container_make(&c, name_hostdir(&c)), 0);
		cr_assert_eq(append(1, 0, 10), 0);
	}
}

Test(dropping_index, a_damaged_block_is_counted_and_those_behind_it_are_read)
{
	char path[CONTAINER_PATH_LEN], rest[CONTAINER_PATH_LEN];
	struct found f;
	unsigned damaged;
	int h;

	cr_assert_eq(append(1, 0, 10), 0);
	cr_assert_eq(append(2, 100, 10), 0);
	container_path(&c, index_path(rest), path);
	h = store_open(&store, path, O_RDWR, 0);
	cr_assert_eq(store.ops->pwrite(&store, h, "x", 1, 30), 1);
	store_close(&store, &h);
	cr_assert_eq(read_all_blocks(&f, &damaged), 0);
	cr_assert_eq(damaged, 1);
	cr_assert_eq(f.per_log[2], 10);
}

Test(dropping_index, a_block_of_another_version_is_refused)
{
	char path[CONTAINER_PATH_LEN], rest[CONTAINER_PATH_LEN];
	struct found f;
	unsigned damaged;
	int h;

	cr_assert_eq(append(1, 0, 10), 0);
	container_path(&c, index_path(rest), path);
	h = store_open(&store, path, O_RDWR, 0);
	cr_assert_eq(store.ops->pwrite(&store, h, "PLFSIDX1", 8, 0), 8);
	store_close(&store, &h);
	cr_assert_eq(read_all_blocks(&f, &damaged), -EPROTONOSUPPORT);
	cr_assert_eq(f.nr_blocks, 0);
}

Test(dropping_index, names_of_logs_become_numbers_and_names_again)
{
	struct index_block block = { 0 };
	char name[INDEX_LOG_NAME_LEN], path[CONTAINER_PATH_LEN], want[CONTAINER_PATH_LEN],
		index[CONTAINER_PATH_LEN];

	for (int i = 0; i < 3; i++) {
		make_log(name);
		name_log_numbers(name, &block.pid, &block.seq);
		cr_assert_eq(block.pid, (uint32_t)getpid());
		name_log_of_block(index_path(index), &block, path);
		snprintf(want, sizeof(want), "hostdir.%u/%s", name_hostdir(&c), name);
		cr_assert_str_eq(path, want);
	}
}

static ssize_t full_disk(int fd, const struct iovec *iov, int cnt, off_t off, int flags)
{
	static int calls;

	(void)cnt, (void)off, (void)flags;
	if (calls++) {
		errno = ENOSPC;
		return -1;
	}
	sys.lseek(fd, 0, SEEK_END);
	return sys.write(fd, iov->iov_base, iov->iov_len / 2);
}

Test(dropping_index, an_append_that_fails_half_way_leaves_nothing)
{
	char path[CONTAINER_PATH_LEN], rest[CONTAINER_PATH_LEN];
	struct stat before, after;
	ssize_t (*real)(int fd, const struct iovec *iov, int cnt, off_t off, int flags);

	cr_assert_eq(append(1, 0, 10), 0);
	container_path(&c, index_path(rest), path);
	cr_assert_eq(store.ops->stat(&store, path, &before), 0);
	real = sys.pwritev2;
	sys.pwritev2 = full_disk;
	cr_assert_eq(append(2, 100, 10), -ENOSPC);
	sys.pwritev2 = real;
	cr_assert_eq(store.ops->stat(&store, path, &after), 0);
	cr_assert_eq(before.st_size, after.st_size);
}

/* All who may read the file can have such a lock, and keep it. */
Test(dropping_index, a_lock_of_a_reader_keeps_no_append_waiting, .timeout = 20)
{
	char path[CONTAINER_PATH_LEN], rest[CONTAINER_PATH_LEN];
	struct flock lk = { .l_type = F_RDLCK, .l_whence = SEEK_SET };
	struct stat st;
	int reader, h;

	cr_assert_eq(append(1, 0, 10), 0);
	container_path(&c, index_path(rest), path);
	reader = store_open(&store, path, O_RDONLY, 0);
	cr_assert_eq(sys.fcntl(store_fd(&store, reader), F_OFD_SETLK, &lk), 0);
	cr_assert_eq(append(2, 100, 10), 0);
	h = node_index_lock(&c);
	cr_assert_geq(h, 0);
	node_index_unlock(&c, h);
	cr_assert_eq(node_index_lock_of(&c, index_path(rest), &st), -EBUSY);
	cr_assert_eq(collect_void(&c, UINT64_MAX, -1), 0);
	cr_assert_eq(store.ops->stat(&store, path, &st), 0, "it is collected the next time");
	store_close(&store, &reader);
	h = node_index_lock_of(&c, index_path(rest), &st);
	cr_assert_geq(h, 0);
	node_index_unlock(&c, h);
}

static bool is_there(const char *rest)
{
	char path[CONTAINER_PATH_LEN];
	struct stat st;

	container_path(&c, rest, path);
	return !store.ops->stat(&store, path, &st);
}

static bool exists(const char *name)
{
	char rest[CONTAINER_PATH_LEN];

	snprintf(rest, sizeof(rest), "hostdir.%u/%s", name_hostdir(&c), name);
	return is_there(rest);
}

Test(dropping_index, is_collected_with_its_logs_when_all_is_void)
{
	char name[2][INDEX_LOG_NAME_LEN], rest[CONTAINER_PATH_LEN];

	make_log(name[0]);
	make_log(name[1]);
	cr_assert_eq(append_to(name[0], 0, 10), 0);
	collect_void(&c, STAMP_NS + 8, -1); /* the last stamp is one more */
	cr_assert(exists(name[0]));
	collect_void(&c, STAMP_NS + 9, -1);
	cr_assert_not(exists(name[0]));
	cr_assert(exists(name[1])); /* no index names it yet */
	cr_assert_not(is_there(index_path(rest)));
}

Test(dropping_index, is_kept_while_one_of_its_logs_is_written_to)
{
	char name[INDEX_LOG_NAME_LEN], live[CONTAINER_PATH_LEN], rest[CONTAINER_PATH_LEN];
	char path[CONTAINER_PATH_LEN];
	int h;

	make_log(name);
	snprintf(live, sizeof(live), "hostdir.%u/live.%s", name_hostdir(&c), name + 5);
	container_path(&c, live, path);
	h = store_open(&store, path, O_RDWR | O_CREAT | O_EXCL, 0600);
	cr_assert_geq(h, 0);
	store_close(&store, &h);
	cr_assert_eq(append_to(name, 0, 10), 0);
	collect_void(&c, STAMP_NS + 100, -1);
	cr_assert(exists(name));
	cr_assert(is_there(index_path(rest)));
}

static int append_slowly(void *arg)
{
	(void)arg;
	for (uint64_t i = 0; i < 300; i++)
		if (append(5, 1000 + i, 1))
			return 1;
	return 0;
}

/* A collector at the same time takes nothing that is later than its generation. */
Test(dropping_index, appending_and_collecting_at_once_loses_nothing)
{
	struct found f;
	unsigned damaged;
	pid_t pid;

	cr_assert_eq(append(4, 0, 1), 0);
	pid = start_child(append_slowly, NULL);
	for (int i = 0; i < 200; i++) {
		collect_void(&c, STAMP_NS + 500, -1);
		if (i % 10 == 0)
			append(4, 0, 1);
	}
	cr_assert_eq(wait_child(pid), 0);
	cr_assert_eq(read_all_blocks(&f, &damaged), 0);
	cr_assert_eq(f.per_log[5], 300);
}
