/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What others do to the name of a file, and to the file that has it by then, just before a flattening takes
 * the name, and just after.
 */
#include "test/lib/flattened.h"

#include <criterion/criterion.h>

TestSuite(flatten_names, .init = scratch_setup, .fini = scratch_remove);

/* ---- just before ---- */

static int (*real_renameat2)(int fromfd, const char *from, int tofd, const char *to, unsigned flags);
static int (*meanwhile)(void *arg);
static bool meanwhile_waits; /* perhaps for us: it need not be through before us */
static pid_t child;

static int rename_hook(int fromfd, const char *from, int tofd, const char *to, unsigned flags)
{
	int (*fn)(void *arg) = meanwhile;

	meanwhile = NULL;
	if (fn)
		child = fork_child();
	if (fn && !child)
		_exit(fn(NULL)); /* with nothing of its parent's: as a stranger */
	if (fn && meanwhile_waits)
		usleep(20000);
	else if (fn)
		waitid(P_PID, (id_t)child, &(siginfo_t){ 0 }, WEXITED | WNOWAIT);
	return real_renameat2(fromfd, from, tofd, to, flags);
}

static int write_to_it(void *arg);

static int flatten_while(int (*fn)(void *arg))
{
	int ret;

	make_a();
	real_renameat2 = sys.renameat2;
	sys.renameat2 = rename_hook;
	meanwhile = fn;
	meanwhile_waits = fn == write_to_it;
	ret = flatten_a();
	sys.renameat2 = real_renameat2;
	cr_assert_gt(child, 0);
	cr_assert_eq(wait_child(child), 0);
	return ret;
}

static char *command(const char *format)
{
	static char text[4 * PATH_MAX];

	snprintf(text, sizeof(text), format, path_of_a);
	return text;
}

static int remove_it(void *arg)
{
	(void)arg;
	return system(command("exec rm %1$s")) != 0;
}

static int replace_it(void *arg)
{
	(void)arg;
	return system(command("echo other >%1$s.new && mv %1$s.new %1$s")) != 0;
}

static int change_mode(void *arg)
{
	(void)arg;
	return system(command("chmod 1600 %1$s")) != 0;
}

/* Opens it as any process does; the descriptors that it has of the flattening are those of a fork. */
static int write_to_it(void *arg)
{
	struct lfile l;
	int ret;

	(void)arg;
	l = lopen("a", O_WRONLY);
	ret = l.f ? lfill(&l, 0, 10, 2) != 10 : pwrite(l.fd, "0123456789", 10, 0) != 10;
	if (l.f)
		fprintf(stderr, "the writer found a logical file\n");
	lclose(&l);
	return ret || l.f;
}

Test(flatten_names, does_not_bring_a_removed_name_back)
{
	cr_assert_eq(flatten_while(remove_it), -ENOENT);
	cr_assert(access(path_of_a, F_OK));
	cr_assert(a_left_nothing());
}

Test(flatten_names, does_not_replace_what_has_replaced_it)
{
	char text[10] = "";
	int fd;

	cr_assert_eq(flatten_while(replace_it), 0);
	fd = open(path_of_a, O_RDONLY);
	cr_assert_eq(read(fd, text, sizeof(text)), 6);
	cr_assert_str_eq(text, "other\n");
	close(fd);
	cr_assert(a_left_nothing());
}

Test(flatten_names, keeps_a_mode_that_changes_meanwhile)
{
	struct stat st;

	cr_assert_eq(flatten_while(change_mode), 0);
	cr_assert(a_is_plain() && a_is_whole());
	sys.stat(path_of_a, &st);
	cr_assert_eq(st.st_mode & 07777, 0600);
	cr_assert(a_left_nothing());
}

Test(flatten_names, a_process_that_opens_it_meanwhile_writes_to_the_plain_file)
{
	char *buf = malloc(LEN_OF_A + 1);
	int fd;

	cr_assert_eq(flatten_while(write_to_it), 0);
	cr_assert(a_is_plain());
	fd = open(path_of_a, O_RDONLY);
	cr_assert_eq(read(fd, buf, LEN_OF_A + 1), LEN_OF_A);
	cr_assert(!memcmp(buf, "0123456789", 10));
	cr_assert_eq(pattern_check(buf + 10, LEN_OF_A - 10, 10, 1), LEN_OF_A - 10);
	close(fd);
	free(buf);
	cr_assert(a_left_nothing());
}

/* ---- just after ---- */

static void (*afterwards)(void);
static bool mode_changes; /* just before */

static int rename_then(int fromfd, const char *from, int tofd, const char *to, unsigned flags)
{
	void (*fn)(void) = afterwards;
	int ret;

	if (mode_changes && fn)
		cr_assert_eq(change_mode(NULL), 0);
	ret = real_renameat2(fromfd, from, tofd, to, flags);
	afterwards = NULL;
	if (fn && !ret)
		fn();
	return ret;
}

/* With the name as the kernel has it: the file is a plain one, whoever asks. */
static void flatten_and_then(void (*fn)(void))
{
	make_a();
	real_renameat2 = sys.renameat2;
	sys.renameat2 = rename_then;
	afterwards = fn;
	cr_assert_eq(flatten_a(), 0);
	sys.renameat2 = real_renameat2;
	cr_assert_null(afterwards);
	cr_assert(a_left_nothing());
}

static size_t size_of(const char *path)
{
	struct stat st;

	cr_assert_eq(sys.fstatat(AT_FDCWD, path, &st, 0), 0, "%s", path);
	cr_assert(!plfs_maybe_stub(st.st_mode));
	return (size_t)st.st_size;
}

static void empty(void) { cr_assert_eq(truncate(path_of_a, 0), 0); }

static void append(void)
{
	int fd = open(path_of_a, O_WRONLY | O_APPEND);

	cr_assert_eq(write(fd, "0123456789", 10), 10);
	close(fd);
}

static void replace(void) { cr_assert_eq(replace_it(NULL), 0); }

static void move_away(void) { cr_assert_eq(rename(path_of_a, command("%1$s.away")), 0); }

static void unlink_it(void) { cr_assert_eq(unlink(path_of_a), 0); }

Test(flatten_names, what_is_emptied_then_is_empty)
{
	flatten_and_then(empty);
	cr_assert_eq(size_of(path_of_a), 0);
}

Test(flatten_names, what_is_appended_then_is_there)
{
	flatten_and_then(append);
	cr_assert_eq(size_of(path_of_a), LEN_OF_A + 10);
}

Test(flatten_names, what_is_appended_then_is_there_though_its_mode_was_changed_before)
{
	mode_changes = true;
	flatten_and_then(append);
	cr_assert_eq(size_of(path_of_a), LEN_OF_A + 10);
}

Test(flatten_names, what_replaces_it_then_stays)
{
	flatten_and_then(replace);
	cr_assert_eq(size_of(path_of_a), strlen("other\n"));
}

Test(flatten_names, what_is_moved_away_then_is_whole)
{
	flatten_and_then(move_away);
	cr_assert(access(path_of_a, F_OK));
	cr_assert_eq(size_of(command("%1$s.away")), LEN_OF_A);
}

Test(flatten_names, what_is_removed_then_is_gone)
{
	flatten_and_then(unlink_it);
	cr_assert(access(path_of_a, F_OK));
}
