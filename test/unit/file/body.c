/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Files that are moved into their body while they are used: by the one process, by others that have it open,
 * and by others that write, append to or truncate it at that moment.
 */
#include "test/lib/scratch.h"

#include "test/lib/calls.h"
#include "test/lib/flags.h"

#include <criterion/criterion.h>

#define SUITE(name) TestSuite(name, .init = scratch_setup, .fini = scratch_remove)

SUITE(body);
SUITE(body_others);
SUITE(body_race);

#define RECORD 100

static int move(struct lfile *l)
{
	return plfs_in_body(l->f, PLFS_MAP_WRITE);
}

/* What the kernel's descriptor has there. */
static bool body_has(struct lfile *l, off_t off, size_t len, unsigned round)
{
	char *buf = malloc(len);
	bool ok = pread(l->fd, buf, len, off + PLFS_BODY_OFF) == (ssize_t)len &&
		  pattern_check(buf, len, (uint64_t)off, round) == len;

	free(buf);
	return ok;
}

/* ---- one process ---- */

Test(body, has_the_bytes_of_the_logs_and_no_container_any_more)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT);

	lfill(&l, 0, 1000, 1);
	lfill(&l, 5000, 200000, 1);
	lfill(&l, 500, 100, 2);
	cr_assert_eq(plfs_in_body(l.f, PLFS_MAP_COPY), 0);
	cr_assert_eq(move(&l), 1);
	cr_assert_eq(plfs_size(l.f), 205000);
	cr_assert_eq(lcheck(&l, 0, 500, 1), 0);
	cr_assert_eq(lcheck(&l, 500, 100, 2), 0);
	cr_assert(lzeros(&l, 1000, 4000));
	cr_assert(body_has(&l, 5000, 200000, 1));
	cr_assert_eq(count_files("data."), 0);
	cr_assert_eq(count_files("live."), 0);
	lclose(&l);
	l = lopen("a", O_RDWR);
	cr_assert_eq(plfs_in_body(l.f, PLFS_MAP_COPY), 1);
	lfill(&l, 300000, 10, 3);
	cr_assert(body_has(&l, 300000, 10, 3));
	cr_assert_eq(lcheck(&l, 5000, 200000, 1), 0);
	cr_assert_eq(count_files("data."), 0);
	lclose(&l);
}

static ssize_t no_pwritev2(int fd, const struct iovec *iov, int cnt, off_t off, int flags)
{
	(void)fd, (void)iov, (void)cnt, (void)off, (void)flags;
	errno = EOPNOTSUPP; /* as glibc says it for a kernel before Linux 4.16 */
	return -1;
}

Test(body, is_appended_to_where_the_kernel_cannot_by_a_flag)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT);
	ssize_t (*real)(int fd, const struct iovec *iov, int cnt, off_t off, int flags) = sys.pwritev2;
	off_t end;

	lfill(&l, 0, 1000, 1);
	cr_assert_eq(move(&l), 1);
	lseek(l.fd, 77, SEEK_SET);
	sys.pwritev2 = no_pwritev2;
	cr_assert_eq(lappend(&l, "end", 3, &end), 3);
	sys.pwritev2 = real;
	cr_assert_eq(end, 1003);
	cr_assert_eq(plfs_size(l.f), 1003);
	cr_assert_eq(lseek(l.fd, 0, SEEK_CUR), 77);
	cr_assert_eq(lcheck(&l, 0, 1000, 1), 0);
	lclose(&l);
}

Test(body, of_a_new_file_never_gets_a_container)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT);
	off_t end;

	cr_assert_eq(plfs_truncate(l.f, 1000), 0);
	cr_assert_eq(move(&l), 1);
	cr_assert_eq(plfs_size(l.f), 1000);
	cr_assert_eq(lfill(&l, 10, 100, 1), 100);
	cr_assert_eq(lappend(&l, "end", 3, &end), 3);
	cr_assert_eq(end, 1003);
	cr_assert_eq(plfs_truncate(l.f, 0), 0);
	cr_assert_eq(plfs_size(l.f), 0);
	cr_assert_eq(lfill(&l, 0, 100, 2), 100);
	cr_assert(body_has(&l, 0, 100, 2));
	lclose(&l);
	cr_assert_eq(lunlink("a"), 0);
	cr_assert_eq(count_files(""), 0);
}

Test(body, what_was_truncated_is_not_there)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT);

	lfill(&l, 0, 10000, 1);
	plfs_truncate(l.f, 100);
	plfs_truncate(l.f, 20000);
	cr_assert_eq(move(&l), 1);
	cr_assert_eq(lcheck(&l, 0, 100, 1), 0);
	cr_assert(lzeros(&l, 100, 19900));
	lclose(&l);
}

Test(body, is_not_made_for_a_reader_of_a_file_without_writers)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT), r;

	lfill(&l, 0, 10, 1);
	lclose(&l);
	r = lopen("a", O_RDONLY);
	cr_assert_eq(plfs_in_body(r.f, PLFS_MAP_COPY), 0);
	cr_assert_eq(plfs_in_body(r.f, PLFS_MAP_READ), 0);
	l = lopen("a", O_WRONLY);
	cr_assert_eq(plfs_in_body(r.f, PLFS_MAP_READ), 1);
	cr_assert_eq(lcheck(&r, 0, 10, 1), 0);
	lclose(&l);
	lclose(&r);
}

static int cannot_sync(enum call call)
{
	return call == CALL_FDATASYNC ? EIO : 0;
}

Test(body, gives_its_space_back_if_it_cannot_be_made)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT);
	struct stat st;

	lfill(&l, 1000, 1000000, 1);
	calls_intercept();
	on_call = cannot_sync;
	cr_assert_eq(move(&l), -EIO);
	on_call = NULL;
	cr_assert_eq(fstat(l.fd, &st), 0);
	cr_assert_leq(st.st_blocks, 64);
	cr_assert_eq(lcheck(&l, 1000, 1000000, 1), 0);
	cr_assert_eq(move(&l), 1);
	cr_assert_eq(lcheck(&l, 1000, 1000000, 1), 0);
	cr_assert(lzeros(&l, 0, 1000));
	lclose(&l);
}

Test(body, cannot_be_made_while_another_host_writes)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT);
	char path[PATH_MAX], other[PATH_MAX];

	lfill(&l, 0, 10, 1);
	cr_assert(find_file("live.", path));
	snprintf(other, sizeof(other), "%.*s/live.elsewhere-00000000.1.0", (int)(strrchr(path, '/') - path),
		 path);
	close(open(other, O_CREAT | O_WRONLY, 0644));
	cr_assert_eq(move(&l), -EBUSY);
	cr_assert_eq(lcheck(&l, 0, 10, 1), 0);
	cr_assert_eq(lfill(&l, 10, 10, 1), 10);
	cr_assert_eq(lcheck(&l, 0, 20, 1), 0);
	unlink(other);
	cr_assert_eq(move(&l), 1);
	cr_assert_eq(lcheck(&l, 0, 20, 1), 0);
	lclose(&l);
}

/* ---- others ---- */

static int goes_on(void *arg)
{
	struct lfile l = lopen("a", O_RDWR);

	(void)arg;
	lfill(&l, 1000, 100, 1);
	raise_flag(&shared->started);
	await(&shared->moved);
	lfill(&l, 2000, 100, 1);
	if (lcheck(&l, 0, 100, 5) || lcheck(&l, 2000, 100, 1))
		return 1;
	plfs_truncate(l.f, 2050);
	raise_flag(&shared->done);
	return lclose(&l);
}

Test(body_others, a_writer_with_a_log_goes_on_in_the_body)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT);
	pid_t pid;

	share();
	pid = start_child(goes_on, NULL);
	await(&shared->started);
	cr_assert_eq(move(&l), 1);
	cr_assert(body_has(&l, 1000, 100, 1));
	lfill(&l, 0, 100, 5);
	raise_flag(&shared->moved);
	await(&shared->done);
	cr_assert(body_has(&l, 2000, 50, 1));
	cr_assert_eq(plfs_size(l.f), 2050);
	cr_assert_eq(wait_child(pid), 0);
	cr_assert_eq(count_files("data."), 0);
	lclose(&l);
}

static int cuts_to_nothing_and_writes(void *arg)
{
	struct lfile l = lopen("a", O_RDWR);

	(void)arg;
	return plfs_truncate(l.f, 0) || lfill(&l, 0, 100, 2) != 100 || lclose(&l);
}

Test(body_others, what_another_has_truncated_to_nothing_does_not_come_back)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT);

	lfill(&l, 0, 10000, 1);
	cr_assert_eq(wait_child(start_child(cuts_to_nothing_and_writes, NULL)), 0);
	cr_assert_eq(move(&l), 1);
	cr_assert_eq(plfs_size(l.f), 100);
	cr_assert_eq(plfs_truncate(l.f, 10000), 0);
	cr_assert_eq(lcheck(&l, 0, 100, 2), 0);
	cr_assert(lzeros(&l, 100, 9900));
	lclose(&l);
}

static int syncs_and_goes_on(void *arg)
{
	struct lfile l = lopen("a", O_RDWR);

	(void)arg;
	lfill(&l, 1000, 100, 1);
	raise_flag(&shared->started);
	await(&shared->moved);
	if (plfs_sync(l.f) || plfs_commit(l.f) || lfill(&l, 1000, 100, 2) != 100)
		return 1;
	return lclose(&l);
}

Test(body_others, a_writer_that_syncs_first_goes_on_in_the_body_as_well)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT);
	pid_t pid;

	share();
	pid = start_child(syncs_and_goes_on, NULL);
	await(&shared->started);
	cr_assert_eq(move(&l), 1);
	raise_flag(&shared->moved);
	cr_assert_eq(wait_child(pid), 0);
	cr_assert(body_has(&l, 1000, 100, 2));
	lclose(&l);
}

static int appends_after(void *arg)
{
	struct lfile l = lopen("a", O_RDWR);
	off_t end = 0;

	(void)arg;
	lfill(&l, 0, 100, 1);
	raise_flag(&shared->started);
	await(&shared->moved);
	if (lappend(&l, "end", 3, &end) != 3 || end != 103)
		return 1;
	return lclose(&l);
}

Test(body_others, a_writer_that_has_only_written_can_append_in_the_body)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT);
	pid_t pid;

	share();
	pid = start_child(appends_after, NULL);
	await(&shared->started);
	cr_assert_eq(move(&l), 1);
	raise_flag(&shared->moved);
	cr_assert_eq(wait_child(pid), 0);
	cr_assert_eq(plfs_size(l.f), 103);
	lclose(&l);
	cr_assert_eq(
		count_files("data.") + count_files("live.") + count_files("index.") + count_files("lock"), 0);
}

static int writes_first_then(void *arg)
{
	struct lfile l = lopen("a", O_RDWR);

	(void)arg;
	raise_flag(&shared->started);
	await(&shared->moved);
	if (lfill(&l, 100, 100, 1) != 100 || lcheck(&l, 0, 200, 1))
		return 1;
	return lclose(&l);
}

Test(body_others, a_process_without_a_log_makes_none)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT);
	pid_t pid;

	share();
	pid = start_child(writes_first_then, NULL);
	await(&shared->started);
	lfill(&l, 0, 100, 1);
	cr_assert_eq(move(&l), 1);
	raise_flag(&shared->moved);
	cr_assert_eq(wait_child(pid), 0);
	cr_assert(body_has(&l, 100, 100, 1));
	lclose(&l);
	cr_assert_eq(lunlink("a"), 0);
	cr_assert_eq(count_files("data.") + count_files("live."), 0);
}

/* ---- others that are in the middle of a call ---- */

static int unlinks_left;

static int stop_at_unlink(enum call call)
{
	if (call == CALL_UNLINKAT && !--unlinks_left) {
		raise_flag(&shared->moved);
		await(&shared->done);
	}
	return 0;
}

static int cannot_map(enum call call)
{
	return call == CALL_MMAP ? ENODEV : 0;
}

static int reads_meanwhile(void *arg)
{
	struct lfile l = lopen("a", O_RDONLY);
	int ret;

	(void)arg;
	on_call = cannot_map; /* not even the word that says that something has changed */
	raise_flag(&shared->started);
	await(&shared->moved);
	ret = lcheck(&l, 0, 2000, 1);
	raise_flag(&shared->done);
	return ret || lclose(&l);
}

static int writes_and_is_killed(void *arg)
{
	struct lfile l = lopen("a", O_RDWR);

	lfill(&l, 1000, 1000, 1);
	return *(int *)arg;
}

static int writes_unmapped(void *arg)
{
	struct lfile l;

	(void)arg;
	calls_intercept();
	on_call = cannot_map;
	l = lopen("a", O_RDWR);
	lfill(&l, 1000, 100, 1);
	raise_flag(&shared->started);
	await(&shared->moved);
	lfill(&l, 2000, 100, 1);
	return lclose(&l);
}

Test(body_others, a_file_is_not_moved_from_a_writer_that_cannot_be_notified)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT);
	pid_t pid;

	share();
	lfill(&l, 0, 1000, 1);
	pid = start_child(writes_unmapped, NULL);
	await(&shared->started);
	cr_assert_eq(move(&l), -EBUSY);
	raise_flag(&shared->moved);
	cr_assert_eq(wait_child(pid), 0);
	cr_assert_eq(move(&l), 1);
	cr_assert_eq(lcheck(&l, 0, 1100, 1), 0);
	cr_assert_eq(lcheck(&l, 2000, 100, 1), 0);
	lclose(&l);
}

Test(body_others, what_is_left_of_a_container_that_is_being_removed_is_no_file)
{
	int zero = 0;

	share();
	calls_intercept();
	for (int nr = 1; nr < 8; nr++) {
		struct lfile l = lopen("a", O_RDWR | O_CREAT);
		pid_t pid;

		lfill(&l, 0, 1000, 1);
		lclose(&l);
		cr_assert_eq(in_child(writes_and_is_killed, &zero), 0);
		pid = start_child(reads_meanwhile, NULL);
		await(&shared->started);
		l = lopen("a", O_RDWR);
		unlinks_left = nr;
		on_call = stop_at_unlink;
		cr_assert_eq(move(&l), 1);
		on_call = NULL;
		raise_flag(&shared->moved);
		cr_assert_eq(wait_child(pid), 0, "at removal %d", nr);
		lclose(&l);
		cr_assert_eq(lunlink("a"), 0);
		memset((void *)shared, 0, sizeof(*shared));
	}
}

/* Before the first such call, let the other move the file. */
static int stop_once(void)
{
	static bool stopped;

	if (stopped)
		return 0;
	stopped = true;
	raise_flag(&shared->started);
	await(&shared->moved);
	return 0;
}

static int stop_at_open(enum call call)
{
	static int nr_opens;

	nr_opens += call == CALL_OPENAT;
	return nr_opens == shared->done ? stop_once() : 0;
}

static int makes_a_log_meanwhile(void *arg)
{
	struct lfile l = lopen("a", O_RDWR);

	(void)arg;
	calls_intercept();
	on_call = stop_at_open;
	if (lfill(&l, 500, 100, 2) != 100)
		return 1;
	raise_flag(&shared->started); /* if it did not open so many */
	return lclose(&l);
}

Test(body_others, a_writer_that_makes_a_log_in_a_container_that_goes_writes_to_the_body)
{
	share();
	for (int nr = 1; nr < 8; nr++) {
		struct lfile l = lopen("a", O_RDWR | O_CREAT);
		pid_t pid;

		lfill(&l, 0, 1000, 1);
		lclose(&l);
		shared->done = nr;
		pid = start_child(makes_a_log_meanwhile, NULL);
		await(&shared->started);
		l = lopen("a", O_RDWR);
		cr_assert_eq(move(&l), 1);
		raise_flag(&shared->moved);
		cr_assert_eq(wait_child(pid), 0, "before open %d", nr);
		cr_assert_eq(lcheck(&l, 0, 500, 1), 0);
		cr_assert_eq(lcheck(&l, 500, 100, 2), 0);
		cr_assert_eq(lcheck(&l, 600, 400, 1), 0);
		lclose(&l);
		cr_assert_eq(lunlink("a"), 0);
		memset((void *)shared, 0, sizeof(*shared));
	}
}

/* What tells the stub the size, after the log was flushed, takes long. The other waits with its move. */
static int stand_still_at_growth(enum call call)
{
	if (call == CALL_FALLOCATE && !shared->started) {
		raise_flag(&shared->started);
		usleep(1200000);
		raise_flag(&shared->done);
	}
	return 0;
}

static int grows_it_late(void *arg)
{
	struct lfile l = lopen("a", O_RDWR);

	(void)arg;
	if (lfill(&l, 0, 1000, 1) != 1000)
		return 1;
	calls_intercept();
	on_call = stand_still_at_growth;
	return plfs_commit(l.f) || lclose(&l);
}

Test(body_others, a_size_published_late_overwrites_nothing)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT);
	pid_t pid;

	share();
	lfill(&l, 0, 10, 1);
	plfs_commit(l.f);
	pid = start_child(grows_it_late, NULL);
	await(&shared->started);
	cr_assert_eq(move(&l), 1);
	cr_assert(shared->done);
	lfill(&l, 500, 500, 2);
	cr_assert_eq(wait_child(pid), 0);
	cr_assert_eq(lcheck(&l, 0, 500, 1), 0);
	cr_assert_eq(lcheck(&l, 500, 500, 2), 0);
	lclose(&l);
}

/* ---- races ---- */

static int move_at_once(void *arg)
{
	struct lfile l = lopen("a", O_RDWR);

	(void)arg;
	await(&shared->started);
	usleep((unsigned)rand() % 3000);
	if (move(&l) != 1)
		return 1;
	return lclose(&l);
}

/* Writes records until a little after it was told that the file has moved, then checks all of them. */
static int writes_all_the_time(void *arg)
{
	int me = *(int *)arg, nr = 0, after = 0;
	struct lfile l = lopen("a", O_RDWR);

	raise_flag(&shared->started);
	for (; after < 200 && nr < 100000; nr++) {
		off_t off = ((off_t)nr * 2 + me) * RECORD;

		if (lfill(&l, off, RECORD, 1) != RECORD)
			return 1;
		after += shared->moved;
	}
	lclose(&l);
	l = lopen("a", O_RDONLY);
	for (int i = 0; i < nr; i++)
		if (lcheck(&l, ((off_t)i * 2 + me) * RECORD, RECORD, 1))
			return 2;
	return lclose(&l);
}

Test(body_race, no_write_of_another_process_is_lost)
{
	for (int round = 0; round < 25; round++) {
		struct lfile l = lopen("a", O_RDWR | O_CREAT);
		int zero = 0, one = 1;
		pid_t a, b, c;

		share();
		srand((unsigned)round);
		a = start_child(writes_all_the_time, &zero);
		b = start_child(writes_all_the_time, &one);
		c = start_child(move_at_once, NULL);
		await(&shared->started);
		usleep((unsigned)rand() % 3000);
		cr_assert_eq(move(&l), 1);
		raise_flag(&shared->moved);
		cr_assert_eq(wait_child(a), 0, "round %d", round);
		cr_assert_eq(wait_child(b), 0, "round %d", round);
		cr_assert_eq(wait_child(c), 0, "round %d", round);
		lclose(&l);
		lunlink("a");
		cr_assert_eq(count_files("data.") + count_files("live."), 0);
	}
}

static int appends_all_the_time(void *arg)
{
	struct lfile l = lopen("a", O_RDWR | O_APPEND);
	char line[21];
	off_t end;

	for (int i = 0; i < 500; i++) {
		snprintf(line, sizeof(line), "%d says %011d\n", *(int *)arg, i);
		if (lappend(&l, line, 20, &end) != 20 || end % 20)
			return 1;
		raise_flag(&shared->started);
	}
	return lclose(&l);
}

Test(body_race, no_append_of_another_process_is_lost)
{
	for (int round = 0; round < 8; round++) {
		struct lfile l = lopen("a", O_RDWR | O_CREAT);
		int zero = 0, one = 1, next[2] = { 0, 0 };
		char line[21] = "";
		pid_t a, b;

		share();
		a = start_child(appends_all_the_time, &zero);
		b = start_child(appends_all_the_time, &one);
		await(&shared->started);
		usleep((unsigned)(round * 700));
		cr_assert_eq(move(&l), 1);
		cr_assert_eq(wait_child(a), 0, "round %d", round);
		cr_assert_eq(wait_child(b), 0, "round %d", round);
		cr_assert_eq(plfs_size(l.f), 20000);
		for (off_t off = 0; off < 20000; off += 20) {
			int who, i;

			plfs_pread(l.f, line, 20, off);
			cr_assert_eq(sscanf(line, "%d says %d", &who, &i), 2, "at %ld: %s", (long)off, line);
			cr_assert_eq(i, next[who]++);
		}
		lclose(&l);
		lunlink("a");
	}
}

static int truncates_all_the_time(void *arg)
{
	struct lfile l = lopen("a", O_RDWR);

	(void)arg;
	for (int i = 0; i < 300; i++) {
		if (lfill(&l, 1000, 200, 1) != 200 || plfs_truncate(l.f, 1100) || plfs_truncate(l.f, 1200) ||
		    plfs_size(l.f) != 1200 || !lzeros(&l, 1100, 100) || lcheck(&l, 1000, 100, 1))
			return 1;
		raise_flag(&shared->started);
		if (i % 10 == 5 && (plfs_truncate(l.f, 0) || plfs_size(l.f) || lfill(&l, 10, 10, 1) != 10 ||
				    !lzeros(&l, 0, 10)))
			return 2;
	}
	return lclose(&l);
}

Test(body_race, truncations_are_in_order)
{
	for (int round = 0; round < 8; round++) {
		struct lfile l = lopen("a", O_RDWR | O_CREAT);
		pid_t a;

		share();
		a = start_child(truncates_all_the_time, NULL);
		await(&shared->started);
		usleep((unsigned)(round * 700));
		cr_assert_eq(move(&l), 1);
		cr_assert_eq(wait_child(a), 0, "round %d", round);
		lclose(&l);
		lunlink("a");
		cr_assert_eq(count_files("data.") + count_files("live."), 0);
	}
}
