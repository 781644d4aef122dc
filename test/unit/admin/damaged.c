/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is on disk and should not be like that: an error that names it, and no byte but the right ones.
 */
#include "test/lib/scratch.h"

#include "test/lib/calls.h"

#include "core/dropping/datalog.h"

#include <criterion/criterion.h>

#define SUITE(name) TestSuite(name, .init = scratch_setup, .fini = scratch_remove)

SUITE(file_bad);

static void spoil(const char *prefix, off_t off, const char *bytes, size_t len)
{
	char path[PATH_MAX];
	int fd;

	cr_assert(find_file(prefix, path));
	fd = open(path, O_WRONLY);
	cr_assert_geq(fd, 0);
	cr_assert_eq(pwrite(fd, bytes, len, off), (ssize_t)len);
	close(fd);
}

static void make_closed(size_t len)
{
	struct lfile l = made("file");

	cr_assert_eq(lfill(&l, 0, len, 1), (ssize_t)len);
	lclose(&l);
}

Test(file_bad, a_garbage_stub_is_an_error_and_stays_as_it_is)
{
	char path[PATH_MAX], before[200], after[200];
	struct lfile l;
	int fd;

	make_closed(1000);
	spoil("file", 30, "garbage", 7);
	lpath("file", path);
	fd = open(path, O_RDONLY);
	cr_assert_eq(pread(fd, before, 200, 0), 200);
	cr_assert_eq(ltry(&l, "file", O_RDWR), -EIO);
	cr_assert_eq(ltry(&l, "file", O_RDWR | O_TRUNC), -EIO);
	cr_assert_eq(ltry(&l, "file", O_RDWR | O_CREAT), -EIO);
	cr_assert_eq(pread(fd, after, 200, 0), 200);
	cr_assert_arr_eq(before, after, 200);
	close(fd);
	cr_assert_eq(count_files("data."), 1);
}

Test(file_bad, a_stub_of_a_newer_version_is_refused)
{
	struct lfile l;

	make_closed(1000);
	spoil("file", 8, "\x02\0\0\0", 4);
	cr_assert_eq(ltry(&l, "file", O_RDONLY), -EPROTONOSUPPORT);
	cr_assert_eq(lunlink("file"), 0);
	cr_assert_eq(count_files("data."), 1);
}

Test(file_bad, a_missing_log_is_an_io_error)
{
	char path[PATH_MAX], buf[10];
	struct lfile l;

	make_closed(1000);
	cr_assert(find_file("data.", path));
	cr_assert_eq(unlink(path), 0);
	l = lopen("file", O_RDONLY);
	cr_assert_eq(plfs_size(l.f), 1000);
	cr_assert_eq(plfs_pread(l.f, buf, 10, 0), -EIO);
	lclose(&l);
}

Test(file_bad, a_cut_log_is_an_io_error_only_where_it_is_cut)
{
	char path[PATH_MAX], buf[10];
	struct lfile l;

	make_closed(300000);
	cr_assert(find_file("data.", path));
	cr_assert_eq(truncate(path, DATALOG_DATA_OFF + 200000), 0);
	l = lopen("file", O_RDONLY);
	cr_assert_eq(lcheck(&l, 0, 200000, 1), 0);
	cr_assert_eq(plfs_pread(l.f, buf, 10, 250000), -EIO);
	lclose(&l);
}

Test(file_bad, a_damaged_node_index_is_replaced_by_the_logs)
{
	struct lfile l;

	make_closed(1000);
	spoil("index.", 200, "garbage", 7);
	l = lopen("file", O_RDWR);
	cr_assert_eq(plfs_size(l.f), 1000);
	cr_assert_eq(lcheck(&l, 0, 1000, 1), 0);
	lclose(&l);
}

static int write_second_half(void *arg)
{
	struct lfile l = lopen("file", O_RDWR);

	(void)arg;
	return lfill(&l, 500, 500, 1) != 500 || lclose(&l);
}

/* The log that a list of its directory names last. */
static void last_log(char *path)
{
	struct dirent *e;
	char *end;
	DIR *d;

	cr_assert(find_file("data.", path));
	end = strrchr(path, '/') + 1;
	*end = '\0';
	d = opendir(path);
	while ((e = readdir(d)))
		if (!strncmp(e->d_name, "data.", 5))
			strcpy(end, e->d_name);
	closedir(d);
}

static unsigned nr_lists;
static ssize_t (*real_getdents64)(int fd, void *buf, size_t len);

static ssize_t count_lists(int fd, void *buf, size_t len)
{
	nr_lists++;
	return real_getdents64(fd, buf, len);
}

/* The first is missed, and then it is the second that cannot be asked. */
Test(file_bad, without_an_index_a_log_that_holds_none_is_soon_an_io_error)
{
	char path[PATH_MAX], buf[10];
	struct stat st;
	struct lfile l;

	make_closed(500);
	cr_assert_eq(in_child(write_second_half, NULL), 0);
	cr_assert_eq(count_files("data."), 2);
	cr_assert(find_file("index.", path));
	cr_assert_eq(unlink(path), 0);
	last_log(path);
	cr_assert_eq(stat(path, &st), 0);
	cr_assert_eq(truncate(path, st.st_size - 8), 0);
	real_getdents64 = sys.getdents64;
	sys.getdents64 = count_lists;
	l = lopen("file", O_RDONLY);
	cr_assert_eq(plfs_pread(l.f, buf, 10, 0), -EIO);
	cr_assert_lt(nr_lists, 100);
	lclose(&l);
}

/*
 * The container, its hostdir and the node index are opened at the same time: as numbers 0, 1 and 2, if these
 * are free.
 */
static int truncate_without_streams(void *arg)
{
	struct lfile l = lopen("file", O_RDWR);

	(void)arg;
	be_single_threaded();
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		close(fd);
	return plfs_truncate(l.f, 0) || lclose(&l);
}

Test(file_bad, an_index_is_not_where_messages_go_when_there_is_no_standard_error)
{
	char path[PATH_MAX], magic[8];
	int fd;

	make_closed(1000);
	spoil("index.", 7, "9", 1);
	cr_assert_eq(in_child(truncate_without_streams, NULL), 0);
	cr_assert(find_file("index.", path));
	fd = open(path, O_RDONLY);
	cr_assert_eq(read(fd, magic, 8), 8);
	cr_assert_arr_eq(magic, "PLFSIDX9", 8);
	close(fd);
}

Test(file_bad, a_log_of_another_container_is_an_io_error)
{
	char buf[10];
	struct lfile l;

	make_closed(1000);
	spoil("data.", 20, "garbage", 7);
	l = lopen("file", O_RDONLY);
	cr_assert_eq(plfs_pread(l.f, buf, 10, 0), -EIO);
	lclose(&l);
}

Test(file_bad, a_backend_of_a_newer_format_is_refused_and_nothing_written)
{
	struct lfile l;
	char path[PATH_MAX];

	make_closed(1000);
	spoil("format", 12, "9", 1);
	l = made("new");
	cr_assert_eq(lfill(&l, 0, 10, 1), -EPROTONOSUPPORT);
	lclose(&l);
	lpath("new", path);
	cr_assert_eq(count_files("data."), 1);
}

Test(file_bad, a_plain_file_stays_one)
{
	char path[PATH_MAX];
	struct lfile l;
	FILE *f;

	lpath("plain", path);
	f = fopen(path, "w");
	fputs("hello", f);
	fclose(f);
	l = lopen("plain", O_RDWR | O_TRUNC);
	cr_assert_null(l.f);
	lclose(&l);
	l = lopen("", O_RDONLY | O_DIRECTORY);
	cr_assert_null(l.f);
	lclose(&l);
	cr_assert_eq(lunlink("plain"), 0);
}

/* Each is made with a hostdir in it, before its stub names it. */
Test(file_bad, an_emptied_container_is_an_io_error)
{
	char path[PATH_MAX], cmd[PATH_MAX + 20], buf[10];
	struct lfile l;

	make_closed(1000);
	cr_assert(find_file("hostdir.", path));
	*strrchr(path, '/') = '\0';
	snprintf(cmd, sizeof(cmd), "rm -r '%s'/*", path);
	cr_assert_eq(system(cmd), 0);
	l = lopen("file", O_RDONLY);
	cr_assert_eq(plfs_pread(l.f, buf, 10, 0), -EIO);
	lclose(&l);
}

/* The stub came back from a backup, its container did not: no bytes are made up, and nobody crashes. */
Test(file_bad, a_stub_without_its_container_is_an_io_error)
{
	char path[PATH_MAX], cmd[PATH_MAX + 20], buf[10];
	struct lfile l;

	make_closed(1000);
	cr_assert(find_file("hostdir.", path));
	*strrchr(path, '/') = '\0';
	snprintf(cmd, sizeof(cmd), "rm -r '%s'", path);
	cr_assert_eq(system(cmd), 0);
	l = lopen("file", O_RDONLY);
	cr_assert_eq(plfs_pread(l.f, buf, 10, 0), -EIO);
	lclose(&l);
}

/* A write would make it anew, and what is lost would be zeros. What empties the file makes it whole. */
Test(file_bad, a_stub_without_its_container_cannot_be_written)
{
	char path[PATH_MAX], cmd[PATH_MAX + 20], buf[10];
	struct lfile l;

	make_closed(1000);
	cr_assert(find_file("hostdir.", path));
	*strrchr(path, '/') = '\0';
	snprintf(cmd, sizeof(cmd), "rm -r '%s'", path);
	cr_assert_eq(system(cmd), 0);
	l = lopen("file", O_RDWR);
	cr_assert_eq(plfs_pwrite(l.f, "x", 1, 500), -EIO);
	cr_assert_eq(plfs_pread(l.f, buf, 10, 0), -EIO);
	lclose(&l);
	l = lopen("file", O_RDWR | O_TRUNC);
	cr_assert_eq(lfill(&l, 0, 100, 2), 100);
	lclose(&l);
	l = lopen("file", O_RDONLY);
	cr_assert_eq(lcheck(&l, 0, 100, 2), 0);
	lclose(&l);
}

static char away[PATH_MAX], home[PATH_MAX];

/* A container that is closed to some who may write the file comes to where there was none. */
static int appear(enum call call)
{
	if (call == CALL_OPENAT && !rename(away, home))
		chmod(home, 0700);
	return 0;
}

static struct lfile open_before_it_appears(void)
{
	char path[PATH_MAX];
	struct lfile l;

	make_closed(1000);
	lpath("file", path);
	cr_assert_eq(chmod(path, 01666), 0);
	cr_assert(find_file("hostdir.", home));
	*strrchr(home, '/') = '\0';
	snprintf(away, sizeof(away), "%.*s.away", PATH_MAX - 10, home);
	cr_assert_eq(rename(home, away), 0);
	l = lopen("file", O_RDWR);
	calls_intercept();
	on_call = appear;
	return l;
}

Test(file_bad, a_container_that_appears_when_it_is_read_is_looked_at)
{
	struct lfile l = open_before_it_appears();
	char buf[10];

	cr_assert_eq(plfs_pread(l.f, buf, 10, 0), -EIO);
	cr_assert_eq(access(home, F_OK), 0);
	lclose(&l);
}

Test(file_bad, a_container_that_appears_when_it_is_written_is_looked_at)
{
	struct lfile l = open_before_it_appears();

	on_call = NULL;
	cr_assert_eq(ftruncate(l.fd, PLFS_BODY_OFF), 0); /* an empty file may lose it */
	on_call = appear;
	cr_assert_eq(plfs_pwrite(l.f, "x", 1, 0), -EIO);
	cr_assert_eq(access(home, F_OK), 0);
	lclose(&l);
}
