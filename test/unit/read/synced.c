/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A host has lost power: of a chunk of 64 KiB some bytes were synced, the others are lost. The first are
 * read, though the checksum covers both; but a flipped bit among them is found.
 */
#include "test/lib/scratch.h"

#include "core/plfs_admin.h"
#include "core/base/sys.h"
#include "core/dropping/datalog.h"

#include <criterion/criterion.h>

#define SYNCED 40000
#define LEN 60000

TestSuite(synced, .init = scratch_setup, .fini = scratch_remove);

struct job {
	bool here, sync; /* by this host; of the first bytes */
	off_t from;
};

static int write_it(void *arg)
{
	const struct job *j = arg;
	struct lfile l;

	if (!j->here)
		be_host("elsewhere");
	l = lopen("f", O_RDWR | O_CREAT);
	if (lfill(&l, 0, (size_t)j->from + SYNCED, 1) != j->from + SYNCED || (j->sync && plfs_sync(l.f)) ||
	    lfill(&l, j->from + SYNCED, LEN - SYNCED, 1) != LEN - SYNCED)
		return 1;
	return lclose(&l) != 0;
}

static void written(struct job j) { cr_assert_eq(in_child(write_it, &j), 0); }

/* Zeros where the log has the bytes of the file at @off. */
static void lose(off_t off, size_t len)
{
	static unsigned char log[1 << 20];
	unsigned char bytes[64], zeros[1000] = { 0 }, *at;
	char path[PATH_MAX];
	ssize_t n;
	int fd;

	cr_assert(find_file("data.", path));
	fd = open(path, O_RDWR);
	n = pread(fd, log, sizeof(log), 0);
	pattern_fill(bytes, sizeof(bytes), (uint64_t)off, 1);
	at = memmem(log, (size_t)n, bytes, sizeof(bytes));
	cr_assert_not_null(at);
	cr_assert_eq(pwrite(fd, zeros, len, at - log), (ssize_t)len);
	close(fd);
}

static int read_at(off_t off, size_t len)
{
	struct lfile l = lopen("f", O_RDONLY);
	int ret = lcheck(&l, off, len, 1);

	lclose(&l);
	return ret;
}

Test(synced, bytes_are_read_that_share_a_chunk_with_lost_ones)
{
	written((struct job){ .sync = true });
	lose(SYNCED + 1000, 1000);
	cr_assert_eq(read_at(0, SYNCED), 0);
	cr_assert_eq(read_at(SYNCED + 1000, 1000), 1, "zeros");
}

static void lost_range(void *arg, const struct plfs_finding *f)
{
	uint64_t *lost = arg;

	if (!strcmp(f->code, "lost")) {
		lost[0]++;
		lost[1] = f->logical_off;
		lost[2] = f->len;
	}
}

Test(synced, bytes_of_such_a_chunk_are_not_reported_lost)
{
	uint64_t lost[3] = { 0 };
	struct plfs_check c = { .found = lost_range, .arg = lost };
	char path[PATH_MAX];
	struct plfs_mount *m = lpath("f", path);

	written((struct job){ .sync = true });
	lose(SYNCED + 1000, 1000);
	cr_assert_eq(plfs_check(m, AT_FDCWD, path, &c), 1);
	cr_assert_eq(lost[0], 1);
	cr_assert_eq(lost[1], SYNCED);
	cr_assert_eq(lost[2], LEN - SYNCED);
}

Test(synced, a_byte_that_is_wrong_among_them_is_found)
{
	written((struct job){ .sync = true });
	lose(1000, 1);
	cr_assert_eq(read_at(0, SYNCED), -EIO);
	cr_assert_eq(read_at(SYNCED, 100), -EIO);
}

Test(synced, a_whole_chunk_was_synced_or_is_an_error)
{
	written((struct job){ .sync = true, .from = INDEX_CHUNK_LEN });
	lose(1000, 1);
	cr_assert_eq(read_at(0, 5000), -EIO);
	cr_assert_eq(read_at(INDEX_CHUNK_LEN, SYNCED), 0);
}

Test(synced, without_a_sync_all_of_it_is_an_error)
{
	written((struct job){ .sync = false });
	lose(SYNCED + 1000, 1000);
	cr_assert_eq(read_at(0, SYNCED), -EIO);
}

static int sync_it(void *arg)
{
	struct lfile l;

	(void)arg;
	be_host("elsewhere");
	l = lopen("f", O_RDONLY);
	return plfs_sync(l.f) || lclose(&l);
}

/* Of a closed log that was synced then no byte can be lost. */
Test(synced, what_is_wrong_of_a_log_that_was_synced_after_its_close_is_found)
{
	uint64_t lost[3] = { 0 };
	struct plfs_check c = { .found = lost_range, .arg = lost };
	char path[PATH_MAX];
	struct plfs_mount *m = lpath("f", path);

	written((struct job){ .sync = false });
	cr_assert_eq(in_child(sync_it, NULL), 0);
	lose(1000, 1);
	cr_assert_eq(read_at(0, SYNCED), -EIO);
	cr_assert_eq(plfs_check(m, AT_FDCWD, path, &c), 1);
	cr_assert_eq(lost[2], LEN);
}

Test(synced, this_host_has_lost_nothing)
{
	written((struct job){ .sync = true, .here = true });
	lose(SYNCED + 1000, 1000);
	cr_assert_eq(read_at(0, SYNCED), -EIO);
}
