/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Making a plain file of a logical one in its place: what it keeps, whom it waits for, and that a failing
 * call leaves a whole file.
 */
#include "test/lib/scratch.h"

#include "test/lib/calls.h"
#include "test/lib/flattened.h"

#include <criterion/criterion.h>

TestSuite(flatten, .init = scratch_setup, .fini = scratch_remove);

Test(flatten, keeps_bytes_mode_and_times)
{
	const struct timespec times[2] = { { .tv_sec = 1000 }, { .tv_sec = 2000 } };
	struct stat st;

	make_a();
	sys.fchmodat(AT_FDCWD, path_of_a, S_ISVTX | 04751, 0);
	sys.utimensat(AT_FDCWD, path_of_a, times, 0);
	cr_assert_eq(flatten_a(), 0);
	cr_assert(a_is_plain());
	sys.stat(path_of_a, &st);
	cr_assert_eq(st.st_mode & 07777, 04751);
	cr_assert_eq(st.st_mtime, 2000);
	cr_assert(a_is_whole());
	cr_assert(a_left_nothing());
	cr_assert_eq(flatten_a(), 0, "twice");
}

Test(flatten, leaves_a_file_in_use_and_one_of_two_names_alone)
{
	char other[PATH_MAX + 1];
	struct lfile l;
	struct plfs_progress watch = { .why = "" };

	make_a();
	l = lopen("a", O_RDONLY);
	cr_assert_eq(plfs_flatten(AT_FDCWD, path_of_a, &watch), -EBUSY);
	cr_assert(strstr(watch.why, "open"));
	lclose(&l);
	snprintf(other, sizeof(other), "%s2", path_of_a);
	cr_assert_eq(link(path_of_a, other), 0);
	cr_assert_eq(flatten_a(), -EMLINK);
	cr_assert(!a_is_plain() && a_is_whole());
	unlink(other);
	cr_assert_eq(flatten_a(), 0);
	cr_assert(a_left_nothing());
}

/*
 * Its process is killed before it has entered its host in the stub, and all that it wrote goes when its log
 * is about to be read: so nothing says that it ever was there.
 */
static int write_and_die(void *arg)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT);

	(void)arg;
	if (!plfs_truncate(l.f, LEN_OF_A) && lfill(&l, 0, LEN_OF_A, 1) == LEN_OF_A)
		raise(SIGKILL);
	return 1;
}

static int (*really_open2)(int dirfd, const char *name, struct open_how *how, size_t size);
static int (*really_open)(int dirfd, const char *name, int flags, ...);

static void lose_the_log(const char *name)
{
	const char *base = strrchr(name, '/');

	if (strncmp(base ? base + 1 : name, "data.", 5))
		return;
	sys.openat2 = really_open2;
	sys.openat = really_open;
	shell("rm %s/.plfs/[0-9a-f]*/*/hostdir.*/*", scratch);
}

static int open2_of_one_that_goes(int dirfd, const char *name, struct open_how *how, size_t size)
{
	lose_the_log(name);
	return really_open2(dirfd, name, how, size);
}

/* Where there is no openat2(). */
static int open_of_one_that_goes(int dirfd, const char *name, int flags, ...)
{
	lose_the_log(name);
	return really_open(dirfd, name, flags, 0600);
}

Test(flatten, a_log_that_goes_meanwhile_does_not_become_zeros)
{
	struct plfs_progress watch = { .why = "" };

	in_child(write_and_die, NULL);
	lpath("a", path_of_a);
	cr_assert(a_is_whole());
	really_open2 = sys.openat2;
	really_open = sys.openat;
	sys.openat2 = open2_of_one_that_goes;
	sys.openat = open_of_one_that_goes;
	cr_assert_eq(plfs_flatten(AT_FDCWD, path_of_a, &watch), -EIO);
	cr_assert_eq(sys.openat2, really_open2);
	cr_assert(strstr(watch.why, "has gone"), "%s", watch.why);
	cr_assert(!a_is_plain());
	cr_assert_eq(count_files(".plfs-flatten"), 0);
}

/* It is flattened as soon as it has been made, before its process is seen to have it open. */
static int flatten_it(void *arg)
{
	(void)arg;
	return flatten_a();
}

static int make_and_flatten(int dirfd, const char *name, int flags, ...)
{
	int fd = really_open(dirfd, name, flags, 01644);

	if (fd >= 0 && flags & O_CREAT) {
		sys.openat = really_open;
		usleep(10000); /* so that its time of change is another one */
		cr_assert_eq(in_child(flatten_it, NULL), 0);
	}
	return fd;
}

static void is_flattened_when_made(int flags)
{
	struct lfile l;
	struct stat st;

	lpath("a", path_of_a);
	really_open = sys.openat;
	sys.openat = make_and_flatten;
	cr_assert_eq(ltry(&l, "a", O_RDWR | O_CREAT | flags), 0);
	cr_assert_eq(sys.openat, really_open);
	cr_assert_null(l.f);
	cr_assert_eq(write(l.fd, "hello", 5), 5);
	lclose(&l);
	cr_assert_eq(sys.stat(path_of_a, &st), 0);
	cr_assert(a_is_plain());
	cr_assert_eq(st.st_size, 5);
	unlink(path_of_a);
}

Test(flatten, an_empty_file_that_has_just_been_made_keeps_its_name)
{
	is_flattened_when_made(0);
	is_flattened_when_made(O_EXCL);
	is_flattened_when_made(O_TRUNC);
}

static int keep_open(void *arg)
{
	struct lfile l = lopen("a", O_RDWR);
	int *pipes = arg;
	char c = 0;

	if (write(pipes[1], "o", 1) != 1 || read(pipes[2], &c, 1) != 1)
		return 1;
	return lclose(&l);
}

Test(flatten, leaves_what_another_process_has_open_alone)
{
	int pipes[4];
	pid_t pid;
	char c;

	make_a();
	cr_assert(!pipe(pipes) && !pipe(pipes + 2));
	pid = start_child(keep_open, (int[]){ pipes[0], pipes[1], pipes[2], pipes[3] });
	cr_assert_eq(read(pipes[0], &c, 1), 1);
	cr_assert_eq(flatten_a(), -EBUSY);
	cr_assert(!a_is_plain());
	cr_assert_eq(write(pipes[3], "g", 1), 1);
	cr_assert_eq(wait_child(pid), 0);
	cr_assert_eq(flatten_a(), 0);
	cr_assert(a_is_whole());
}

static int flatten_too(void *arg)
{
	(void)arg;
	return flatten_a() || !a_is_plain() || !a_is_whole();
}

Test(flatten, many_at_once_all_get_the_plain_file)
{
	pid_t pids[10];

	make_a();
	for (size_t i = 0; i < ARRAY_SIZE(pids); i++)
		pids[i] = start_child(flatten_too, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(pids); i++)
		cr_assert_eq(wait_child(pids[i]), 0);
	cr_assert(a_left_nothing());
}

/* ---- faults ---- */

static enum call bad_call;
static int fired;

static int fail_one(enum call call)
{
	if (call != bad_call || --calls_left)
		return 0;
	fired++;
	return EIO;
}

Test(flatten, any_single_failing_call_leaves_a_whole_file, .timeout = 300)
{
	static const enum call kinds[] = { CALL_OPENAT,	   CALL_OPEN,  CALL_PWRITE,   CALL_PREAD,
					   CALL_FTRUNCATE, CALL_FSYNC, CALL_UNLINKAT, CALL_FSTAT,
					   CALL_FSTATAT,   CALL_FCNTL, CALL_FUTIMENS, CALL_LSEEK };
	int fds;

	make_a();
	a_is_whole();
	fds = count_fds();
	calls_intercept();
	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
		fired = 1;
		for (int n = 1; fired; n++) {
			int ret;

			on_call = NULL;
			lunlink("a");
			make_a();
			bad_call = kinds[k];
			calls_left = n;
			fired = 0;
			on_call = fail_one;
			ret = flatten_a();
			on_call = NULL;
			cr_assert(a_is_whole(), "%s %d", CALL_NAMES[bad_call], n);
			cr_assert(fired || !ret);
			cr_assert(ret || a_is_plain());
			cr_assert_eq(count_fds(), fds, "%s %d", CALL_NAMES[bad_call], n);
			cr_assert(bad_call == CALL_UNLINKAT || !count_files(".plfs-flatten"));
		}
	}
}

static int flatten_and_die(void *arg)
{
	(void)arg;
	on_call = die_at_last;
	return flatten_a();
}

static int look_and_flatten(void *arg)
{
	(void)arg;
	return !a_is_whole() || flatten_a() || !a_is_plain() || !a_is_whole() || lunlink("a");
}

static int move_into_body(void *arg)
{
	struct lfile l = lopen("a", O_RDWR);

	(void)arg;
	return plfs_in_body(l.f, PLFS_MAP_WRITE) != 1 || lclose(&l);
}

/*
 * The last kills come when the file is a plain one already, and what there was besides has no name any more.
 */
static void kill_at_each(bool in_body)
{
	int code = 256 + SIGKILL, n;

	calls_intercept();
	for (n = 1; code; n++) {
		char left[PATH_MAX];
		bool plain;

		make_a();
		if (in_body)
			cr_assert_eq(in_child(move_into_body, NULL), 0);
		calls_left = n;
		code = in_child(flatten_and_die, NULL);
		cr_assert(!code || code == 256 + SIGKILL, "call %d: exit code %d", n, code);
		plain = a_is_plain();
		cr_assert_eq(in_child(look_and_flatten, NULL), 0, "killed at call %d", n);
		if (!plain && !in_body)
			cr_assert(a_left_nothing());
		cr_assert(!find_file(".plfs-flatten", left) || strstr(left, "/.plfs/"),
			  "killed at call %d: %s", n, left);
	}
	cr_assert_gt(n, 30);
}

Test(flatten, a_kill_at_any_call_leaves_a_whole_file, .timeout = 300)
{
	kill_at_each(false);
}

Test(flatten, a_kill_at_any_call_leaves_a_whole_file_that_was_in_its_body, .timeout = 300)
{
	kill_at_each(true);
}

/* ---- who maps it in the moment before everybody is locked out ---- */

static int (*real_fcntl)(int fd, int cmd, ...);
static int map_pipes[4];
static pid_t child;
static bool mapped_it;

/* A map needs no open file; that of a description which appends keeps no lock either. */
static int map_and_close(void *arg)
{
	struct lfile l = lopen("a", O_RDWR | O_APPEND);
	char *map, c = 0;

	(void)arg;
	if (!l.f || plfs_in_body(l.f, PLFS_MAP_WRITE) != 1)
		return 1;
	map = mmap(NULL, PLFS_BODY_OFF + LEN_OF_A, PROT_READ | PROT_WRITE, MAP_SHARED, l.fd, 0);
	lclose(&l);
	if (map == MAP_FAILED || write(map_pipes[1], "m", 1) != 1 || read(map_pipes[2], &c, 1) != 1)
		return 2;
	memset(map + PLFS_BODY_OFF, 'm', 10);
	return munmap(map, PLFS_BODY_OFF + LEN_OF_A) != 0;
}

static int fcntl_hook(int fd, int cmd, ...)
{
	va_list args;
	void *arg;
	char c;

	va_start(args, cmd);
	arg = va_arg(args, void *);
	va_end(args);
	if (cmd == F_OFD_SETLK && ((struct flock *)arg)->l_type == F_WRLCK && !mapped_it) {
		mapped_it = true;
		child = fork_child();
		if (!child)
			_exit(map_and_close(NULL));
		if (read(map_pipes[0], &c, 1) != 1)
			die("the child does not map it");
	}
	return real_fcntl(fd, cmd, arg);
}

static void map_it_in_the_gap(void)
{
	char text[10];
	int fd;

	cr_assert(!pipe(map_pipes) && !pipe(map_pipes + 2));
	real_fcntl = sys.fcntl;
	sys.fcntl = fcntl_hook;
	cr_assert_eq(flatten_a(), -EBUSY);
	cr_assert(mapped_it && !a_is_plain());
	cr_assert_eq(write(map_pipes[3], "g", 1), 1);
	cr_assert_eq(wait_child(child), 0);
	cr_assert_eq(flatten_a(), 0);
	fd = open(path_of_a, O_RDONLY);
	cr_assert_eq(read(fd, text, sizeof(text)), 10);
	cr_assert(!memcmp(text, "mmmmmmmmmm", 10));
	close(fd);
	cr_assert(a_left_nothing());
}

Test(flatten, a_file_in_its_body_that_was_mapped_just_before_stays)
{
	make_a();
	cr_assert_eq(in_child(move_into_body, NULL), 0);
	map_it_in_the_gap();
}

Test(flatten, a_file_that_was_mapped_just_before_stays)
{
	make_a();
	map_it_in_the_gap();
}
