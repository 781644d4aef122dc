/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What stat() says of a file that another process is writing, or was writing when it was killed; and the table
 * of writers.h, by which it knows that there is more to ask.
 */
#include "scratch.h"

#include "../core/mount.h"
#include "../core/writers.h"

#include <criterion/criterion.h>
#include <sys/mman.h>
#include <sys/resource.h>

static bool is_counted(const char *name)
{
	char path[PATH_MAX];
	struct stat st;

	lpath(name, path);
	cr_assert_eq(stat(path, &st), 0);
	return writers_may_be(st.st_dev, st.st_ino, WRITERS_UNKNOWN);
}

struct killed {
	const char *name;
	size_t len, nr;
	bool stop; /* instead of being killed it waits */
	int sig;
};

static int write_and_die(void *arg)
{
	const struct killed *k = arg;
	struct lfile l = made(k->name);

	for (size_t i = 0; i < k->nr; i++)
		if (lfill(&l, (off_t)(i * k->len), k->len, 1) != (ssize_t)k->len)
			return 1;
	signal(k->sig, SIG_DFL); /* a sanitizer has a handler of its own */
	raise(k->stop ? SIGSTOP : k->sig);
	return lclose(&l) ? 1 : 0;
}

Test(stat_of_killed, says_all_that_was_written, .init = scratch_setup, .fini = scratch_remove)
{
	static const int sigs[] = { SIGKILL, SIGTERM, SIGSEGV, SIGABRT };
	static const size_t lens[] = { 1, 511, 70000, 600000 };
	const struct rlimit none = { 0, 0 };

	setrlimit(RLIMIT_CORE, &none);
	for (unsigned i = 0; i < 4; i++) {
		struct killed k = { "a", lens[i], 3, false, sigs[i] };
		struct lfile l;

		cr_assert_eq(in_child(write_and_die, &k), 256 + sigs[i]);
		cr_assert_eq(stat_size("a"), (off_t)(3 * lens[i]));
		cr_assert_eq(stat_size("a"), (off_t)(3 * lens[i]), "and a second time");
		l = lopen("a", O_RDONLY);
		cr_assert_eq(plfs_size(l.f), (off_t)(3 * lens[i]));
		lclose(&l);
		cr_assert_eq(stat_size("a"), (off_t)(3 * lens[i]));
		cr_assert_eq(lunlink("a"), 0);
	}
}

Test(stat_of_killed, says_so_of_one_that_was_truncated_since, .init = scratch_setup, .fini = scratch_remove)
{
	struct killed k = { "a", 1000, 50, false, SIGKILL };
	struct lfile l;

	in_child(write_and_die, &k);
	l = lopen("a", O_RDWR);
	cr_assert_eq(plfs_truncate(l.f, 7000), 0);
	lclose(&l);
	cr_assert_eq(stat_size("a"), 7000);
	l = lopen("a", O_RDWR);
	cr_assert_eq(plfs_truncate(l.f, 0), 0);
	lclose(&l);
	cr_assert_eq(stat_size("a"), 0);
}

/* What programs without the library see. */
Test(stat_of_killed, says_it_to_everybody_when_somebody_has_read_who_may_write, .init = scratch_setup, .fini = scratch_remove)
{
	struct killed k = { "a", 1000, 5, false, SIGKILL };
	char path[PATH_MAX];
	struct lfile l;
	struct stat st;

	in_child(write_and_die, &k);
	l = lopen("a", O_RDWR);
	cr_assert_eq(plfs_size(l.f), 5000);
	lclose(&l);
	lpath("a", path);
	cr_assert_eq(stat(path, &st), 0);
	cr_assert_eq(st.st_size, 4096 + 5000);
}

Test(stat_of_writer, says_what_it_has_written, .init = scratch_setup, .fini = scratch_remove)
{
	struct killed k = { "a", 1000, 5, true, 0 };
	pid_t pid = start_child(write_and_die, &k);
	int status;

	cr_assert_eq(waitpid(pid, &status, WUNTRACED), pid);
	cr_assert(WIFSTOPPED(status));
	cr_assert(is_counted("a"));
	cr_assert_eq(stat_size("a"), 5000);
	kill(pid, SIGCONT);
	cr_assert_eq(wait_child(pid), 0);
	cr_assert(!is_counted("a"), "who has closed it does not count");
	cr_assert_eq(stat_size("a"), 5000);
}

Test(stat_of_writer, a_removed_file_does_not_count_whatever_became_of_its_writers, .init = scratch_setup, .fini = scratch_remove)
{
	struct killed k = { "a", 1000, 5, false, SIGKILL };
	struct lfile l;
	struct stat st;

	for (int i = 0; i < 3; i++)
		in_child(write_and_die, &k);
	cr_assert(is_counted("a"));
	l = lopen("a", O_RDWR);
	cr_assert_eq(lfill(&l, 0, 10, 2), 10);
	cr_assert_eq(sys.fstat(l.fd, &st), 0);
	cr_assert_eq(lunlink("a"), 0);
	lclose(&l);
	cr_assert(!writers_may_be(st.st_dev, st.st_ino, WRITERS_UNKNOWN));
}

static void ignore(void *arg, const struct plfs_finding *finding)
{
	(void)arg, (void)finding;
}

Test(stat_of_writer, a_repaired_file_does_not_count, .init = scratch_setup, .fini = scratch_remove)
{
	struct plfs_check check = { .repair = true, .found = ignore };
	struct killed k = { "a", 1000, 5, false, SIGKILL };
	char path[PATH_MAX];
	struct plfs_mount *m = lpath("a", path);

	for (int i = 0; i < 2; i++)
		in_child(write_and_die, &k);
	cr_assert(is_counted("a"));
	cr_assert_eq(plfs_check(m, AT_FDCWD, path, &check), 0);
	cr_assert(!is_counted("a"));
	cr_assert_eq(stat_size("a"), 5000);
}

/* Between the look at the stub and that at the table. */
Test(stat_of_writer, one_that_has_just_ended_is_noticed, .init = scratch_setup, .fini = scratch_remove)
{
	char path[PATH_MAX];
	struct plfs_name n = { AT_FDCWD, path, 0, 0 };
	struct killed k = { "a", 1000, 5, true, 0 };
	pid_t pid = start_child(write_and_die, &k);
	struct stat st;
	int status;

	lpath("a", path);
	cr_assert_eq(waitpid(pid, &status, WUNTRACED), pid);
	n.ended = plfs_before_stat();
	cr_assert_eq(stat(path, &st), 0);
	kill(pid, SIGCONT);
	cr_assert_eq(wait_child(pid), 0);
	plfs_fix_stat(&st, &n);
	cr_assert_eq(st.st_size, 5000);
}
