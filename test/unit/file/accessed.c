/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sites remove what nobody has accessed for weeks. Whoever uses a file keeps all of it young.
 */
#include "core/backend/stub.h"
#include "core/base/io.h"
#include "core/base/sys.h"
#include "test/lib/near.h"
#include "test/lib/three.h"

#include <criterion/criterion.h>

#include <dirent.h>
#include <sys/stat.h>

#define LEN 20000
#define WEEK_S (7 * 86400)

static void setup_parity(void)
{
	near_last = 4;
	near_spread("process,parity=2");
}
static void setup_copies(void) { near_setup_copies(""); }

TestSuite(accessed, .init = scratch_setup, .fini = scratch_remove);
TestSuite(accessed_parity, .init = setup_parity, .fini = near_remove);
TestSuite(accessed_copies, .init = setup_copies, .fini = near_remove);

static void age(const char *path)
{
	struct timespec times[2] = { { .tv_sec = time(NULL) - WEEK_S }, { .tv_nsec = UTIME_OMIT } };

	cr_assert_eq(utimensat(AT_FDCWD, path, times, 0), 0, "%s", path);
}

static bool is_old(const char *path)
{
	struct stat st;

	cr_assert_eq(stat(path, &st), 0, "%s", path);
	return st.st_atim.tv_sec < time(NULL) - WEEK_S / 2;
}

static char last_old[PATH_MAX];

/* Age, or count those that are old, of all regular files below @dir. */
static int each(const char *dir, bool make_old)
{
	char path[PATH_MAX];
	struct dirent *e;
	DIR *d = opendir(dir);
	int nr = 0;

	cr_assert_not_null(d);
	while ((e = readdir(d))) {
		/* not needed to read: the way back from a place, what waits for a helper; made anew */
		if (*e->d_name == '.' || !strcmp(e->d_name, "home") || !strncmp(e->d_name, "queue.", 6))
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		if (e->d_type == DT_DIR)
			nr += each(path, make_old);
		else if (make_old)
			age(path);
		else if (is_old(path)) {
			nr++;
			snprintf(last_old, sizeof(last_old), "%s", path);
		}
	}
	closedir(d);
	return nr;
}

/* In other backends too. */
static int droppings(bool make_old)
{
	char dir[PATH_MAX];

	snprintf(dir, sizeof(dir), "%s/.plfs", scratch);
	return each(dir, make_old) + (*near_dir ? each(near_dir, make_old) : 0);
}

static void set_created(time_t when)
{
	uint8_t head[STUB_HEADER_LEN];
	char path[PATH_MAX];
	struct stub stub;
	int fd;

	lpath("a", path);
	fd = open(path, O_RDWR);
	cr_assert_eq(pread(fd, head, sizeof(head), 0), sizeof(head));
	cr_assert_eq(stub_decode(&stub, head, sizeof(head)), 0);
	stub.created_ns = (uint64_t)when * 1000000000;
	stub_encode(&stub, head);
	cr_assert_eq(pwrite(fd, head, sizeof(head), 0), sizeof(head));
	close(fd);
}

/* Skips the test where the file system notes no accesses. */
static void need_notes(void)
{
	char path[PATH_MAX], byte;
	bool notes;
	int fd;

	snprintf(path, sizeof(path), "%s/probe", scratch);
	fd = open(path, O_RDWR | O_CREAT, 0600);
	cr_assert_eq(write(fd, "x", 1), 1);
	age(path);
	cr_assert_eq(pread(fd, &byte, 1, 0), 1);
	notes = !is_old(path);
	close(fd);
	unlink(path);
	if (!notes)
		cr_skip_test("the file system notes no accesses");
}

static int use(void *arg)
{
	int flags = *(int *)arg;
	struct lfile l = lopen("a", flags);
	char buf[100];
	off_t end;
	ssize_t n = flags & O_APPEND ? lappend(&l, "x", 1, &end) : plfs_pread(l.f, buf, 1, 0);

	return n != 1 || lclose(&l);
}

/* A file of two processes, all of it a week old. */
static void made_old(void)
{
	static int append = O_WRONLY | O_APPEND;
	struct lfile l = made("a");

	cr_assert_eq(lfill(&l, 0, LEN, 1), LEN);
	lclose(&l);
	cr_assert_eq(in_child(use, &append), 0);
	set_created(time(NULL) - WEEK_S);
	droppings(true);
	cr_assert_geq(droppings(false), 4, "lock, index, two logs");
}

static void used(int flags, bool stub_is_old)
{
	char path[PATH_MAX];

	need_notes();
	made_old();
	lpath("a", path);
	if (stub_is_old)
		age(path);
	cr_assert_eq(in_child(use, &flags), 0);
	cr_assert_eq(droppings(false), 0, "%s", last_old);
}

Test(accessed, is_all_of_a_file_that_is_read) { used(O_RDONLY, true); }
Test(accessed, also_if_its_stub_was_looked_at_since) { used(O_RDONLY, false); }
Test(accessed, is_all_of_a_file_that_is_appended_to) { used(O_WRONLY | O_APPEND, true); }
Test(accessed, also_by_who_appends_often) { used(O_WRONLY | O_APPEND, false); }

/* What was made within a day cannot be purged: it costs nothing. */
Test(accessed, is_nothing_of_a_young_file)
{
	int flags = O_WRONLY | O_APPEND, nr;

	need_notes();
	made_old();
	set_created(time(NULL));
	nr = droppings(false);
	cr_assert_eq(in_child(use, &flags), 0);
	cr_assert_geq(droppings(false), nr - 3, "but the index, which the append may read, and two that it maps");
}

/* ---- in several backends ---- */

static int look(void *arg)
{
	(void)arg;
	return image_look();
}

static void used_in_all(void)
{
	char path[PATH_MAX];

	need_notes();
	set_created(time(NULL) - WEEK_S);
	lpath("a", path);
	age(path);
	droppings(true);
	cr_assert_eq(in_child(look, NULL), 0);
	cr_assert_eq(droppings(false), 0, "%s", last_old);
}

Test(accessed_parity, are_logs_in_all_backends_and_their_parity)
{
	three_make_covered();
	used_in_all();
}

Test(accessed_copies, are_copies)
{
	image_write(0, LEN, 1);
	image_write(LEN, LEN, 1);
	cr_assert_geq(image_drain(), 1);
	used_in_all();
}

/* ---- by who has it open for long ---- */

static int (*true_clock)(clockid_t clock, struct timespec *ts);
static time_t later_s;

static int clock_later(clockid_t clock, struct timespec *ts)
{
	int ret = true_clock(clock, ts);

	if (clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_COARSE)
		ts->tv_sec += later_s; /* that of the day stays the file system's */
	return ret;
}

static const struct flock far_byte = {
	.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 1LL << 40, .l_len = 1
};

static int is_locked(void *arg)
{
	struct flock lk = far_byte;
	char path[PATH_MAX];

	(void)arg;
	lpath("a", path);
	return fcntl(open(path, O_RDWR), F_GETLK, &lk) || lk.l_type != F_WRLCK;
}

static void written_for_long(bool grows, int flags)
{
	struct flock lk = far_byte;
	struct lfile l;
	char path[PATH_MAX];

	need_notes();
	made_old();
	true_clock = sys.clock_gettime;
	sys.clock_gettime = clock_later;
	l = lopen("a", flags);
	cr_assert_eq(fcntl(l.fd, F_SETLK, &lk), 0);
	cr_assert_eq(lfill(&l, grows ? LEN : 0, 1000, 2), 1000);
	later_s = 10;
	cr_assert_eq(lfill(&l, grows ? LEN + 1000 : 1000, 1000, 2), 1000);
	lpath("a", path);
	age(path);
	droppings(true);
	later_s = 3600;
	cr_assert_eq(lfill(&l, grows ? LEN + 2000 : 2000, 1000, 2), 1000);
	cr_assert_gt(droppings(false), 4, "once a day is enough");
	later_s = 2 * 86400;
	cr_assert_eq(lfill(&l, grows ? LEN + 3000 : 3000, 1000, 2), 1000);
	sys.clock_gettime = true_clock;
	cr_assert_eq(droppings(false), 0, "%s", last_old);
	cr_assert_eq(in_child(is_locked, NULL), 0, "locks of the program on the stub stay");
	cr_assert_eq(lclose(&l), 0);
}

Test(accessed, is_all_of_a_file_that_is_overwritten_for_long) { written_for_long(false, O_RDWR); }
Test(accessed, is_all_of_a_file_that_grows_for_long) { written_for_long(true, O_WRONLY); }
