/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What stat() says of a file that another process is writing, or was writing when it was killed; and the
 * table of writer_table.h, by which it knows that there is more to ask.
 */
#include "test/lib/scratch.h"

#include "test/lib/calls.h"
#include "core/file/bare.h"

#include "core/backend/mount.h"
#include "core/backend/writer_table.h"

#include <criterion/criterion.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>

static bool is_counted(const char *name)
{
	char path[PATH_MAX];
	struct stat st;

	lpath(name, path);
	cr_assert_eq(stat(path, &st), 0);
	return writer_table_may_be(&st, WRITER_TABLE_UNKNOWN);
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

Test(stat_of_killed, has_all_that_was_written, .init = scratch_setup, .fini = scratch_remove)
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

Test(stat_of_killed, has_all_that_was_written_since_a_truncation, .init = scratch_setup,
     .fini = scratch_remove)
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
Test(stat_of_killed, is_right_for_every_user_after_a_reader_that_may_write, .init = scratch_setup,
     .fini = scratch_remove)
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

Test(stat_of_writer, has_what_it_has_written, .init = scratch_setup, .fini = scratch_remove)
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

static int write_between_two_bytes(void *arg)
{
	const int *sockets = arg;
	struct lfile l = made("a");
	char c;

	close(sockets[0]);
	if (read(sockets[1], &c, 1) != 1 || lfill(&l, 0, 5000, 1) != 5000 || write(sockets[1], &c, 1) != 1)
		return 1;
	return read(sockets[1], &c, 1) || lclose(&l);
}

static void set_up_where_it_is_quick(void)
{
	scratch_in_memory = true;
	scratch_setup();
}

/* Of a backend to which nobody had written yet. */
Test(stat_of_writer, is_right_for_a_reader_that_has_just_found_no_table, .init = set_up_where_it_is_quick,
     .fini = scratch_remove)
{
	int sockets[2];
	pid_t pid;
	char c;

	cr_assert(!socketpair(AF_UNIX, SOCK_STREAM, 0, sockets));
	pid = start_child(write_between_two_bytes, sockets);
	close(sockets[1]);
	usleep(20000); /* only so that it shows what was wrong: it has the file open, and waits */
	plfs_before_stat();
	cr_assert_eq(write(sockets[0], "w", 1), 1);
	cr_assert_eq(read(sockets[0], &c, 1), 1);
	cr_assert_eq(stat_size("a"), 5000);
	close(sockets[0]);
	cr_assert_eq(wait_child(pid), 0);
}

Test(stat_of_writer, a_removed_file_does_not_count_whatever_became_of_its_writers, .init = scratch_setup,
     .fini = scratch_remove)
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
	cr_assert(!writer_table_may_be(&st, WRITER_TABLE_UNKNOWN));
}

Test(stat_of_writer, a_repaired_file_does_not_count, .init = scratch_setup, .fini = scratch_remove)
{
	struct killed k = { "a", 1000, 5, false, SIGKILL };

	for (int i = 0; i < 2; i++)
		in_child(write_and_die, &k);
	cr_assert(is_counted("a"));
	cr_assert_eq(lexamine("a", true), 0);
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

/* ---- a name that leads elsewhere in the middle of it ---- */

static int ask[2], answer[2], to_go;

static int remove_it(void) { return lunlink("a"); }
static int move_it(void) { return lrename("a", "c"); }
static int replace_it(void) { return lrename("b", "a"); }

static int act_when_asked(void *arg)
{
	int (*const *act)(void) = arg;
	char c;

	if (read(ask[0], &c, 1) == 1)
		c = (*act)() ? 'e' : 'd';
	return write(answer[1], &c, 1) != 1;
}

static bool have_it_done(void)
{
	char c = 'd';

	return write(ask[1], &c, 1) == 1 && read(answer[0], &c, 1) == 1 && c == 'd';
}

static int when_it_comes(enum call call)
{
	(void)call;
	if (!--to_go)
		cr_assert(have_it_done());
	return 0;
}

/*
 * While stat() of what a killed process wrote is before its @nth system call. Returns whether it made so
 * many.
 */
static bool meets(int (*act)(void), off_t afterwards, int nth)
{
	struct killed a = { "a", 1000, 5, false, SIGKILL };
	struct lfile l = made("b");
	pid_t pid;
	off_t size;
	bool met;

	cr_assert_eq(lfill(&l, 0, 40, 1), 40);
	lclose(&l);
	in_child(write_and_die, &a);
	pid = start_child(act_when_asked, &act);
	to_go = nth;
	on_call = when_it_comes;
	size = stat_size("a");
	on_call = NULL;
	met = to_go <= 0;
	cr_assert(size == 5000 || (met && size == afterwards), "at call %d: %ld", nth, (long)size);
	cr_assert(met || have_it_done());
	cr_assert_eq(wait_child(pid), 0);
	cr_assert_eq(stat_size("a"), afterwards);
	lunlink("a"), lunlink("b"), lunlink("c");
	return met;
}

static void meets_at_each_call(int (*act)(void), off_t afterwards)
{
	int nth = 1;

	cr_assert(!pipe(ask) && !pipe(answer));
	calls_intercept();
	while (meets(act, afterwards, nth))
		nth++;
	cr_assert_gt(nth, 5);
	cr_assert_eq(count_files("live."), 0, "and no container is left");
}

Test(stat_of_killed, is_of_one_that_has_or_had_the_name, .init = scratch_setup, .fini = scratch_remove)
{
	meets_at_each_call(replace_it, 40);
}
Test(stat_of_killed, says_that_it_is_not_there_when_it_has_gone, .init = scratch_setup,
     .fini = scratch_remove)
{
	meets_at_each_call(remove_it, -ENOENT);
}
Test(stat_of_killed, says_that_it_is_not_there_when_it_is_elsewhere, .init = scratch_setup,
     .fini = scratch_remove)
{
	meets_at_each_call(move_it, -ENOENT);
}

/* ---- a file that is moved into its body in the middle of it ---- */

static struct lfile theirs;

static int move_into_body(void) { return plfs_in_body(theirs.f, PLFS_MAP_WRITE) != 1; }

static int write_it(void)
{
	theirs = lopen("a", O_RDWR);
	/* from here on it has logs, also if it was small */
	if (lfill(&theirs, BARE_SHARED * CONFIG_SMALL_DEFAULT, 1, 2) != 1 || plfs_truncate(theirs.f, 100))
		return 1;
	return lfill(&theirs, 50, 100, 2) != 100;
}

static int write_and_move_when_asked(void *arg)
{
	static int (*const acts[])(void) = { write_it, move_into_body };

	(void)arg;
	return act_when_asked((void *)&acts[0]) | act_when_asked((void *)&acts[1]) | lclose(&theirs);
}

/* What our process knows when it looks: nothing; that the file has logs; and who writes them (entries.h). */
enum known { NOTHING, LOGS, WRITERS };

/* So long that the container's directories have rested, and so often that they are known. */
static void look_for_a_while(struct lfile *l)
{
	for (int i = 0; i < 15; i++) {
		usleep(3000);
		cr_assert_eq(plfs_refresh(l->f), 0);
		cr_assert_eq(plfs_size(l->f), 150);
	}
}

static bool move_meets(int nth, enum known known)
{
	pid_t pid = start_child(write_and_move_when_asked, NULL);
	struct lfile l = made("a");
	bool met;

	cr_assert_eq(lfill(&l, 0, 100, 1), 100);
	cr_assert(have_it_done());
	cr_assert(!known || !lcheck(&l, 50, 100, 2));
	if (known == WRITERS)
		look_for_a_while(&l);
	cr_assert_eq(plfs_refresh(l.f), 0); /* else a few loads say that nothing has changed */
	to_go = nth;
	on_call = when_it_comes;
	cr_assert_eq(stat_size("a"), 150, "at call %d", nth);
	on_call = NULL;
	met = to_go <= 0;
	cr_assert(met || have_it_done());
	cr_assert_eq(wait_child(pid), 0);
	lclose(&l);
	lunlink("a");
	return met;
}

static void moves_at_each_call(enum known known)
{
	int nth = 1;

	cr_assert(!pipe(ask) && !pipe(answer));
	calls_intercept();
	while (move_meets(nth, known))
		nth++;
	cr_assert_gt(nth, 3);
}

Test(stat_of_writer, says_it_of_a_file_that_moves_into_its_body, .init = scratch_setup,
     .fini = scratch_remove)
{
	moves_at_each_call(LOGS);
}

Test(stat_of_writer, says_it_of_a_file_whose_writers_it_knows, .init = scratch_setup, .fini = scratch_remove)
{
	moves_at_each_call(WRITERS);
}

Test(stat_of_writer, says_it_of_a_small_one_whose_writers_it_knows, .init = scratch_setup_small,
     .fini = scratch_remove)
{
	moves_at_each_call(WRITERS);
}

Test(stat_of_writer, says_it_of_a_small_one_that_does, .init = scratch_setup_small, .fini = scratch_remove)
{
	moves_at_each_call(LOGS);
}

Test(stat_of_writer, says_it_of_a_small_one_that_has_grown_and_does, .init = scratch_setup_small,
     .fini = scratch_remove)
{
	moves_at_each_call(NOTHING);
}
