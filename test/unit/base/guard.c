/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Files that are mapped and cut under their users: no signal, no wrong byte, an error by the call that could
 * not do its work, and the file goes on.
 */
#include "test/lib/scratch.h"

#include <criterion/criterion.h>

static void setup(void)
{
	scratch_setup();
	guard_handle_faults();
}

TestSuite(guard, .init = setup, .fini = scratch_remove, .timeout = 60);

static void cut(const char *prefix, off_t len)
{
	char path[PATH_MAX];

	cr_assert(find_file(prefix, path), "no %s", prefix);
	cr_assert_eq(truncate(path, len), 0);
}

/* A write fails, once; from then on they do not. Returns how many went well before. */
static int write_until_told(struct lfile *l, size_t len, int err)
{
	int nr = 0;
	ssize_t n;

	for (; nr < 100000; nr++) {
		n = lfill(l, (off_t)(1 << 20) + (off_t)nr * (off_t)len, len, 2);
		if (n != (ssize_t)len)
			break;
	}
	cr_assert_eq(n, err, "%zd after %d writes", n, nr);
	return nr;
}

/* What is behind it in the live file has gone; what is in the log and what comes later are there. */
static void cut_live_at(off_t len)
{
	struct lfile l = made("f");

	cr_assert_eq(lfill(&l, 0, 600000, 1), 600000);
	cr_assert_eq(lfill(&l, 600000, 1000, 1), 1000);
	cut("live.", len);
	write_until_told(&l, 5000, -EIO);
	cr_assert_eq(plfs_sync(l.f), 0);
	cr_assert_eq(lfill(&l, 3 << 20, 70000, 3), 70000);
	cr_assert_eq(lfill(&l, 4 << 20, 700, 3), 700);
	cr_assert_eq(plfs_sync(l.f), 0);
	if (len > 40960) { /* the index is whole: only what was staged is lost */
		cr_assert_eq(lcheck(&l, 0, 500000, 1), 0);
		cr_assert_eq(lcheck(&l, 3 << 20, 70000, 3), 0);
		cr_assert_eq(lcheck(&l, 4 << 20, 700, 3), 0);
	}
	/* never zeros where there were bytes */
	cr_assert_eq(lcheck(&l, 600000, 1000, 1), -EIO);
	cr_assert_eq(lclose(&l), 0);
	l = lopen("f", O_RDWR);
	cr_assert_eq(lcheck(&l, 600000, 1000, 1), -EIO);
	lclose(&l);
	cr_assert_eq(lunlink("f"), 0);
}

Test(guard, live_file_cut_to_nothing_is_reported) { cut_live_at(0); }
Test(guard, live_file_cut_in_its_header_is_reported) { cut_live_at(512); }
Test(guard, live_file_cut_behind_its_header_is_reported) { cut_live_at(4096); }
Test(guard, live_file_cut_behind_its_index_is_reported) { cut_live_at(49152); }

/* Behind what is staged nothing is lost at all. */
Test(guard, live_file_cut_where_nothing_is_loses_nothing)
{
	struct lfile l = made("f");
	int nr;

	cr_assert_eq(lfill(&l, 0, 1000, 1), 1000);
	cut("live.", 49152 + 8192);
	nr = write_until_told(&l, 1000, -EIO);
	cr_assert(nr > 0);
	cr_assert_eq(lcheck(&l, 0, 1000, 1), 0);
	cr_assert_eq(lcheck(&l, 1 << 20, (size_t)nr * 1000, 2), 0);
	cr_assert_eq(plfs_size(l.f), (1 << 20) + nr * 1000);
	cr_assert_eq(lfill(&l, 0, 1000, 4), 1000);
	cr_assert_eq(lcheck(&l, 0, 1000, 4), 0);
	cr_assert_eq(lclose(&l), 0);
	l = lopen("f", O_RDONLY);
	cr_assert_eq(lcheck(&l, 0, 1000, 4), 0);
	cr_assert_eq(lcheck(&l, 1 << 20, (size_t)nr * 1000, 2), 0);
	lclose(&l);
	cr_assert_eq(lunlink("f"), 0);
	cr_assert_eq(count_files("data.") + count_files("live.") + count_files("index."), 0);
}

/* Where the kernel has mapped it. */
static char *mapped_live(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[PATH_MAX + 100];
	unsigned long start = 0;

	while (!start && fgets(line, sizeof(line), maps))
		if (strstr(line, "/live."))
			start = strtoul(line, NULL, 16);
	fclose(maps);
	cr_assert(start);
	return (char *)start;
}

/* A file system that had no space for a page, and has some when it is asked why: the file itself is whole. */
Test(guard, page_without_space_is_reported_as_that)
{
	struct lfile l = made("f");

	cr_assert_eq(lfill(&l, 0, 100000, 1), 100000);
	cr_assert_eq(lfill(&l, 100000, 5000, 1), 5000);
	cr_assert(guard_fault(mapped_live() + 49152 + 8192));
	cr_assert_eq(write_until_told(&l, 1000, -ENOSPC), 0);
	cr_assert_eq(lcheck(&l, 0, 105000, 1), 0);
	cr_assert_eq(lfill(&l, 1 << 20, 70000, 3), 70000);
	cr_assert_eq(lclose(&l), 0);
	l = lopen("f", O_RDONLY);
	cr_assert_eq(lcheck(&l, 0, 105000, 1), 0);
	cr_assert_eq(lcheck(&l, 1 << 20, 70000, 3), 0);
	lclose(&l);
}

/*
 * Of the live file only the page that was touched last can be written, as on a file system that writes
 * everything out in each fault; whoever needs two at once would never come on.
 */
static struct {
	char *start;
	unsigned long nr;
} one_page;
static const size_t one_page_len = 49152 + 512 * 1024;

static void give_that_page(int sig, siginfo_t *info, void *context)
{
	char *page = (char *)((uintptr_t)info->si_addr & ~(uintptr_t)4095);

	(void)context;
	one_page.nr++;
	if ((size_t)(page - one_page.start) >= one_page_len || one_page.nr > 1000000)
		signal(sig, SIG_DFL);
	mprotect(one_page.start, one_page_len, PROT_READ);
	mprotect(page, 4096, PROT_READ | PROT_WRITE);
}

Test(guard, no_store_needs_two_pages_at_once)
{
	static const size_t lens[] = { 100, 3001, 777, 47001, 515, 2048, 5000, 130 };
	struct sigaction act = { .sa_sigaction = give_that_page, .sa_flags = SA_SIGINFO };
	struct lfile l = made("f");

	cr_assert_eq(lfill(&l, 0, 70001, 1), 70001);
	cr_assert_eq(lfill(&l, 70001, 10, 1), 10);
	one_page.start = mapped_live();
	sigaction(SIGSEGV, &act, NULL);
	mprotect(one_page.start, one_page_len, PROT_READ);
	for (int i = 0; i < 2000; i++) /* in no order: a record each */
		cr_assert_eq(lfill(&l, (off_t)(i * 7919 % 2000) * 50000, lens[i % 8], 2),
			     (ssize_t)lens[i % 8]);
	for (int i = 0; i < 1000; i++) /* in order: chunks */
		cr_assert_eq(lfill(&l, (1 << 28) + i * 3001, 3001, 3), 3001);
	mprotect(one_page.start, one_page_len, PROT_READ | PROT_WRITE);
	signal(SIGSEGV, SIG_DFL);
	cr_assert(one_page.nr > 3000, "%lu faults", one_page.nr);
	cr_assert_eq(lcheck(&l, 1 << 28, 3001000, 3), 0);
	cr_assert_eq(lcheck(&l, 0, 100, 2), 0);
	cr_assert_eq(lclose(&l), 0);
}

static ssize_t append(struct lfile *l, char c, size_t len)
{
	static char buf[30000];
	struct iovec iov = { .iov_base = memset(buf, c, sizeof(buf)), .iov_len = len };
	off_t end;

	return plfs_appendv(l->f, &iov, 1, &end);
}

static void refuse_page(int sig, siginfo_t *info, void *context)
{
	(void)context;
	if (!guard_fault(info->si_addr))
		signal(sig, SIG_DFL);
}

/*
 * Whichever page it is that gets no space: who is told of an error, or of less, appends where he expects to.
 */
static void append_without_page(size_t page, size_t len)
{
	struct sigaction act = { .sa_sigaction = refuse_page, .sa_flags = SA_SIGINFO };
	struct lfile l = made("f");
	char *map, buf[30000];
	off_t end = 0;
	ssize_t n;

	for (int i = 0; i < 3; i++)
		end += append(&l, 'a', 7000 + (size_t)i);
	map = mapped_live();
	sigaction(SIGSEGV, &act, NULL);
	mprotect(map + page * 4096, 4096, PROT_READ);
	n = append(&l, 'b', len);
	signal(SIGSEGV, SIG_DFL);
	if (!guard_nr_broken && n == (ssize_t)len)
		mprotect(map + page * 4096, 4096, PROT_READ | PROT_WRITE);
	cr_assert(n == -ENOSPC || n > 0, "page %zu: %zd", page, n);
	end += n > 0 ? n : 0;
	cr_assert_eq(plfs_size(l.f), end, "page %zu: %zd, %lld, not %lld", page, n, (long long)plfs_size(l.f),
		     (long long)end);
	cr_assert_eq(append(&l, 'c', 3000), 3000);
	cr_assert_eq(plfs_pread(l.f, buf, sizeof(buf), end), 3000);
	cr_assert(buf[0] == 'c' && buf[2999] == 'c');
	if (n > 0) {
		cr_assert_eq(plfs_pread(l.f, buf, (size_t)n, end - n), n);
		cr_assert(buf[0] == 'b' && buf[n - 1] == 'b');
	}
	cr_assert_eq(lclose(&l), 0);
	l = lopen("f", O_RDONLY);
	cr_assert_eq(plfs_size(l.f), end + 3000);
	lclose(&l);
	cr_assert_eq(lunlink("f"), 0);
}

/* The stub is told the size by whoever asks for it: what was written is there, whatever comes of that. */
Test(guard, no_space_to_publish_a_write_fails_no_other_write)
{
	struct sigaction act = { .sa_sigaction = refuse_page, .sa_flags = SA_SIGINFO };
	struct lfile l = made("f");
	struct stat st;

	cr_assert_eq(append(&l, 'a', 7000), 7000);
	cr_assert_eq(lfill(&l, 9000, 1000, 1), 1000);
	sigaction(SIGSEGV, &act, NULL);
	mprotect(mapped_live(), 4096, PROT_READ);
	cr_assert_eq(fstat(l.fd, &st), 0);
	plfs_fix_stat(&st, NULL);
	signal(SIGSEGV, SIG_DFL);
	cr_assert_eq(st.st_size, 10000);
	cr_assert_eq(append(&l, 'c', 3000), 3000);
	cr_assert_eq(plfs_size(l.f), 13000);
	cr_assert_eq(lcheck(&l, 9000, 1000, 1), 0);
	cr_assert_eq(lclose(&l), 0);
	l = lopen("f", O_RDONLY);
	cr_assert_eq(plfs_size(l.f), 13000);
	cr_assert_eq(lcheck(&l, 9000, 1000, 1), 0);
	lclose(&l);
}

Test(guard, an_append_that_fails_leaves_nothing_behind)
{
	for (size_t page = 0; page < 24; page++)
		append_without_page(page, 20000);
	for (size_t page = 0; page < 12; page++)
		append_without_page(page, 10);
}

/* A read, a close, a truncation that meets it. */
Test(guard, calls_that_only_look_do_not_fail_for_a_stage_that_was_not_needed)
{
	struct lfile l = made("f");

	cr_assert_eq(lfill(&l, 0, 100000, 1), 100000);
	cr_assert_eq(plfs_commit(l.f), 0);
	cut("live.", 49152);
	cr_assert_eq(lcheck(&l, 0, 100000, 1), 0);
	cr_assert_eq(plfs_size(l.f), 100000);
	cr_assert_eq(lclose(&l), 0);
	l = lopen("f", O_RDWR);
	cr_assert_eq(lcheck(&l, 0, 100000, 1), 0);
	lclose(&l);
}

Test(guard, truncation_that_meets_a_cut_live_file_fails)
{
	struct lfile l = made("f");

	cr_assert_eq(lfill(&l, 0, 100000, 1), 100000);
	cut("live.", 0);
	cr_assert_eq(plfs_truncate(l.f, 50000), -EIO);
	lclose(&l);
	cr_assert_eq(lunlink("f"), 0);
	l = made("f");
	cr_assert_eq(lfill(&l, 0, 100, 2), 100);
	cr_assert_eq(lcheck(&l, 0, 100, 2), 0);
	lclose(&l);
}

Test(guard, close_that_meets_a_cut_live_file_keeps_what_is_there)
{
	struct lfile l = made("f");

	cr_assert_eq(lfill(&l, 0, 600000, 1), 600000);
	cr_assert_eq(lfill(&l, 600000, 1000, 1), 1000);
	cut("live.", 49152);
	cr_assert_eq(lclose(&l), -EIO);
	l = lopen("f", O_RDWR);
	cr_assert_eq(lcheck(&l, 0, 500000, 1), 0);
	cr_assert_eq(lcheck(&l, 600000, 1000, 1), -EIO);
	lclose(&l);
}

/* ---- who watches ---- */

static int pipe_to_child[2], pipe_to_parent[2];

static void say(const int *fds)
{
	if (write(fds[1], "", 1) != 1)
		die("pipe");
}

static void await(const int *fds)
{
	char c;

	if (read(fds[0], &c, 1) != 1)
		die("pipe");
}

/* Writes, is cut, finds out, writes again. */
static int write_and_be_cut(void *arg)
{
	struct lfile l = lopen("f", O_RDWR);
	int err;

	(void)arg;
	lfill(&l, 0, 1000, 1);
	lfill(&l, 1000, 100000, 1);
	say(pipe_to_parent);
	await(pipe_to_child);
	for (err = 0; !err; err = lfill(&l, 200000, 3000, 2) == 3000 ? 0 : 1)
		;
	lfill(&l, 1000, 10000, 3);
	say(pipe_to_parent);
	await(pipe_to_child);
	lclose(&l);
	return 0;
}

static void watch_who_is_cut(const char *prefix, off_t len, bool all)
{
	struct lfile l = made("f");
	pid_t pid;
	char byte;
	int ret;

	cr_assert(!pipe(pipe_to_child) && !pipe(pipe_to_parent));
	pid = start_child(write_and_be_cut, NULL);
	await(pipe_to_parent);
	cr_assert_eq(lcheck(&l, 0, 50000, 1), 0);
	cut(prefix, len);
	ret = lcheck(&l, 20000, 50000, 1);
	cr_assert(ret == (all ? 0 : -EIO), "%d", ret);
	cut("live.", 49152 - 4096);
	say(pipe_to_child);
	await(pipe_to_parent);
	for (int i = 0; i < 10; i++) {
		ret = lcheck(&l, 1000, 10000, 3);
		cr_expect(!all || !ret, "%d", ret);
		cr_expect_neq(ret, 1);
	}
	(void)!plfs_pread(l.f, &byte, 1, 0);
	say(pipe_to_child);
	cr_assert_eq(wait_child(pid), 0);
	lclose(&l);
}

Test(guard, reader_sees_a_live_file_cut_to_nothing) { watch_who_is_cut("live.", 0, false); }
Test(guard, reader_sees_a_live_file_cut_in_its_records) { watch_who_is_cut("live.", 4096, false); }
Test(guard, reader_does_without_a_notice_that_was_cut) { watch_who_is_cut("notice.", 0, true); }

/* ---- index.global ---- */

static int write_a_log(void *arg)
{
	struct lfile l = made("f");

	for (int i = *(int *)arg; i < 3000; i += 8)
		if (lfill(&l, (i * 7919 % 3000) * 100, 100, 1) != 100)
			return 1;
	return lclose(&l);
}

static void cut_global_at(off_t len)
{
	struct lfile l;

	for (int log = 0; log < 8; log++)
		cr_assert_eq(in_child(write_a_log, &log), 0);
	l = lopen("f", O_RDONLY);
	cr_assert_eq(lcheck(&l, 0, 300000, 1), 0);
	lclose(&l);
	l = lopen("f", O_RDONLY);
	cr_assert_eq(lcheck(&l, 0, 1000, 1), 0);
	cr_assert(count_files("index.global"), "no map was kept");
	cut("index.global", len);
	cr_assert_eq(lcheck(&l, 100000, 200000, 1), 0);
	cr_assert_eq(lcheck(&l, 0, 300000, 1), 0);
	for (int i = 0; i < 300; i++)
		cr_assert_eq(lcheck(&l, i * 1000, 1000, 1), 0);
	cr_assert_eq(plfs_size(l.f), 300000);
	lclose(&l);
	l = lopen("f", O_RDONLY);
	cr_assert_eq(lcheck(&l, 0, 300000, 1), 0);
	lclose(&l);
}

Test(guard, kept_map_cut_to_nothing_is_not_needed) { cut_global_at(0); }
Test(guard, kept_map_cut_after_a_page_is_not_needed) { cut_global_at(4096); }

/* ---- a container that somebody removes ---- */

static void remove_containers(void)
{
	char cmd[300];

	snprintf(cmd, sizeof(cmd), "rm -rf %s/.plfs", scratch);
	if (system(cmd))
		die("rm");
}

Test(guard, sync_and_close_say_that_the_log_was_removed)
{
	struct lfile l = made("f");

	cr_assert_eq(lfill(&l, 0, 1000, 1), 1000);
	remove_containers();
	cr_assert_eq(plfs_sync(l.f), -EIO);
	cr_assert_eq(lclose(&l), -EIO);
	l = lopen("f", O_RDONLY);
	cr_assert_eq(lcheck(&l, 0, 1000, 1), -EIO);
	lclose(&l);
	cr_assert_eq(lunlink("f"), 0);
}

Test(guard, close_of_a_file_without_a_name_is_no_failure)
{
	struct lfile l = made("f");

	cr_assert_eq(lfill(&l, 0, 1000, 1), 1000);
	cr_assert_eq(lunlink("f"), 0);
	cr_assert_eq(plfs_sync(l.f), 0);
	cr_assert_eq(lclose(&l), 0);
	cr_assert_eq(count_files("data."), 0);
}

/* ---- the host's table of writers ---- */

Test(guard, table_of_writers_that_was_cut_is_done_without)
{
	struct lfile l = made("f"), other;
	struct stat st;
	char path[PATH_MAX];
	struct plfs_name name = { .dirfd = AT_FDCWD, .path = path };

	cr_assert_eq(lfill(&l, 0, 1000, 1), 1000);
	lpath("f", path);
	name.ended = plfs_before_stat();
	cr_assert_eq(stat(path, &st), 0);
	plfs_fix_stat(&st, &name);
	cut("writers.", 0);
	cr_assert_eq(lfill(&l, 1000, 100000, 1), 100000);
	name.ended = plfs_before_stat();
	cr_assert_eq(stat(path, &st), 0);
	plfs_fix_stat(&st, &name);
	cr_assert_eq(st.st_size, 101000);
	other = made("g");
	cr_assert_eq(lfill(&other, 0, 1000, 2), 1000);
	cr_assert_eq(lclose(&other), 0);
	cr_assert_eq(lclose(&l), 0);
	cr_assert_eq(guard_nr_broken, 0);
	l = lopen("f", O_RDONLY);
	cr_assert_eq(lcheck(&l, 0, 101000, 1), 0);
	lclose(&l);
}

/* The kernel takes the bytes from the mapping, and says EFAULT where we would get a signal. */
Test(guard, sync_of_a_stage_that_was_cut_fails)
{
	struct lfile l = made("f");

	cr_assert_eq(lfill(&l, 0, 30000, 1), 30000);
	cut("live.", 49152);
	cr_assert_eq(plfs_sync(l.f), -EIO);
	cr_assert_eq(lcheck(&l, 0, 30000, 1), -EIO);
	cr_assert_eq(lfill(&l, 0, 30000, 2), 30000);
	cr_assert_eq(plfs_sync(l.f), 0);
	cr_assert_eq(lcheck(&l, 0, 30000, 2), 0);
	lclose(&l);
}

Test(guard, large_write_behind_a_stage_that_was_cut_fails)
{
	struct lfile l = made("f");

	cr_assert_eq(lfill(&l, 0, 30000, 1), 30000);
	cut("live.", 49152);
	cr_assert_eq(lfill(&l, 30000, 200000, 1), -EIO);
	cr_assert_eq(lfill(&l, 0, 300000, 2), 300000);
	cr_assert_eq(lcheck(&l, 0, 300000, 2), 0);
	lclose(&l);
}

Test(guard, close_with_a_stage_that_was_cut_fails)
{
	struct lfile l = made("f");

	cr_assert_eq(lfill(&l, 0, 30000, 1), 30000);
	cut("live.", 49152);
	cr_assert_eq(lclose(&l), -EIO);
}

Test(guard, sync_of_an_index_that_was_cut_fails)
{
	struct lfile l = made("f");

	cr_assert_eq(lfill(&l, 0, 1000, 1), 1000);
	cr_assert_eq(plfs_sync(l.f), 0);
	cut("live.", 4096);
	cr_assert_eq(plfs_sync(l.f), -EIO);
	lclose(&l);
}
