/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Making a plain file of a logical one in its place: what it keeps, whom it waits for, what others may do to
 * the name meanwhile, and that a failing call leaves a whole file.
 */
#include "test/lib/scratch.h"

#include "test/lib/calls.h"

#include <criterion/criterion.h>

#define LEN 100000

TestSuite(flatten, .init = scratch_setup, .fini = scratch_remove);

static char path[PATH_MAX];

static void make(const char *name)
{
	struct lfile l = lopen(name, O_RDWR | O_CREAT);

	if (lfill(&l, 0, LEN, 1) != LEN)
		die("write");
	lclose(&l);
	lpath("a", path);
}

static int flatten(void)
{
	return plfs_flatten(AT_FDCWD, path, NULL);
}

static bool is_plain(void)
{
	struct stat st;

	return !sys.fstatat(AT_FDCWD, path, &st, 0) && !plfs_maybe_stub(st.st_mode);
}

/* Whether /p/a, logical or plain, is what it was. */
static bool is_whole(void)
{
	struct lfile l;
	char *buf = malloc(LEN + 1);
	ssize_t n;
	bool ok;

	if (ltry(&l, "a", O_RDONLY))
		return false;
	n = l.f ? plfs_pread(l.f, buf, LEN + 1, 0) : pread(l.fd, buf, LEN + 1, 0);
	ok = n == LEN && pattern_check(buf, LEN, 0, 1) == LEN;
	free(buf);
	lclose(&l);
	return ok;
}

static void assert_nothing_left(void)
{
	cr_assert_eq(count_files("data."), 0);
	cr_assert_eq(count_files("index."), 0);
	cr_assert_eq(count_files(".plfs-flatten"), 0);
}

Test(flatten, keeps_bytes_mode_and_times)
{
	const struct timespec times[2] = { { .tv_sec = 1000 }, { .tv_sec = 2000 } };
	struct stat st;

	make("a");
	sys.fchmodat(AT_FDCWD, path, S_ISVTX | 04751, 0);
	sys.utimensat(AT_FDCWD, path, times, 0);
	cr_assert_eq(flatten(), 0);
	cr_assert(is_plain());
	sys.stat(path, &st);
	cr_assert_eq(st.st_mode & 07777, 04751);
	cr_assert_eq(st.st_mtime, 2000);
	cr_assert(is_whole());
	assert_nothing_left();
	cr_assert_eq(flatten(), 0, "twice");
}

Test(flatten, leaves_a_file_in_use_and_one_of_two_names_alone)
{
	char other[PATH_MAX + 1];
	struct lfile l;
	struct plfs_progress watch = { .why = "" };

	make("a");
	l = lopen("a", O_RDONLY);
	cr_assert_eq(plfs_flatten(AT_FDCWD, path, &watch), -EBUSY);
	cr_assert(strstr(watch.why, "open"));
	lclose(&l);
	snprintf(other, sizeof(other), "%s2", path);
	cr_assert_eq(link(path, other), 0);
	cr_assert_eq(flatten(), -EMLINK);
	cr_assert(!is_plain() && is_whole());
	unlink(other);
	cr_assert_eq(flatten(), 0);
	assert_nothing_left();
}

/*
 * Its process is killed before it has entered its host in the stub, and all that it wrote goes when its log
 * is about to be read: so nothing says that it ever was there.
 */
static int write_and_die(void *arg)
{
	struct lfile l = lopen("a", O_RDWR | O_CREAT);

	(void)arg;
	if (!plfs_truncate(l.f, LEN) && lfill(&l, 0, LEN, 1) == LEN)
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
	lpath("a", path);
	cr_assert(is_whole());
	really_open2 = sys.openat2;
	really_open = sys.openat;
	sys.openat2 = open2_of_one_that_goes;
	sys.openat = open_of_one_that_goes;
	cr_assert_eq(plfs_flatten(AT_FDCWD, path, &watch), -EIO);
	cr_assert_eq(sys.openat2, really_open2);
	cr_assert(strstr(watch.why, "has gone"), "%s", watch.why);
	cr_assert(!is_plain());
	cr_assert_eq(count_files(".plfs-flatten"), 0);
}

/* It is flattened as soon as it has been made, before its process is seen to have it open. */
static int flatten_it(void *arg)
{
	(void)arg;
	return flatten();
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

	lpath("a", path);
	really_open = sys.openat;
	sys.openat = make_and_flatten;
	cr_assert_eq(ltry(&l, "a", O_RDWR | O_CREAT | flags), 0);
	cr_assert_eq(sys.openat, really_open);
	cr_assert_null(l.f);
	cr_assert_eq(write(l.fd, "hello", 5), 5);
	lclose(&l);
	cr_assert_eq(sys.stat(path, &st), 0);
	cr_assert(is_plain());
	cr_assert_eq(st.st_size, 5);
	unlink(path);
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

	make("a");
	cr_assert(!pipe(pipes) && !pipe(pipes + 2));
	pid = start_child(keep_open, (int[]){ pipes[0], pipes[1], pipes[2], pipes[3] });
	cr_assert_eq(read(pipes[0], &c, 1), 1);
	cr_assert_eq(flatten(), -EBUSY);
	cr_assert(!is_plain());
	cr_assert_eq(write(pipes[3], "g", 1), 1);
	cr_assert_eq(wait_child(pid), 0);
	cr_assert_eq(flatten(), 0);
	cr_assert(is_whole());
}

/* ---- what others do just before the name is taken ---- */

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

	make("a");
	real_renameat2 = sys.renameat2;
	sys.renameat2 = rename_hook;
	meanwhile = fn;
	meanwhile_waits = fn == write_to_it;
	ret = flatten();
	sys.renameat2 = real_renameat2;
	cr_assert_gt(child, 0);
	cr_assert_eq(wait_child(child), 0);
	return ret;
}

static char *command(const char *format)
{
	static char text[4 * PATH_MAX];

	snprintf(text, sizeof(text), format, path);
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

Test(flatten, does_not_bring_a_removed_name_back)
{
	cr_assert_eq(flatten_while(remove_it), -ENOENT);
	cr_assert(access(path, F_OK));
	assert_nothing_left();
}

Test(flatten, does_not_replace_what_has_replaced_it)
{
	char text[10] = "";
	int fd;

	cr_assert_eq(flatten_while(replace_it), 0);
	fd = open(path, O_RDONLY);
	cr_assert_eq(read(fd, text, sizeof(text)), 6);
	cr_assert_str_eq(text, "other\n");
	close(fd);
	assert_nothing_left();
}

Test(flatten, keeps_a_mode_that_changes_meanwhile)
{
	struct stat st;

	cr_assert_eq(flatten_while(change_mode), 0);
	cr_assert(is_plain() && is_whole());
	sys.stat(path, &st);
	cr_assert_eq(st.st_mode & 07777, 0600);
	assert_nothing_left();
}

Test(flatten, a_process_that_opens_it_meanwhile_writes_to_the_plain_file)
{
	char *buf = malloc(LEN + 1);
	int fd;

	cr_assert_eq(flatten_while(write_to_it), 0);
	cr_assert(is_plain());
	fd = open(path, O_RDONLY);
	cr_assert_eq(read(fd, buf, LEN + 1), LEN);
	cr_assert(!memcmp(buf, "0123456789", 10));
	cr_assert_eq(pattern_check(buf + 10, LEN - 10, 10, 1), LEN - 10);
	close(fd);
	free(buf);
	assert_nothing_left();
}

static int flatten_too(void *arg)
{
	(void)arg;
	return flatten() || !is_plain() || !is_whole();
}

Test(flatten, many_at_once_all_get_the_plain_file)
{
	pid_t pids[10];

	make("a");
	for (size_t i = 0; i < ARRAY_SIZE(pids); i++)
		pids[i] = start_child(flatten_too, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(pids); i++)
		cr_assert_eq(wait_child(pids[i]), 0);
	assert_nothing_left();
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

	make("a");
	is_whole();
	fds = count_fds();
	calls_intercept();
	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
		fired = 1;
		for (int n = 1; fired; n++) {
			int ret;

			on_call = NULL;
			lunlink("a");
			make("a");
			bad_call = kinds[k];
			calls_left = n;
			fired = 0;
			on_call = fail_one;
			ret = flatten();
			on_call = NULL;
			cr_assert(is_whole(), "%s %d", CALL_NAMES[bad_call], n);
			cr_assert(fired || !ret);
			cr_assert(ret || is_plain());
			cr_assert_eq(count_fds(), fds, "%s %d", CALL_NAMES[bad_call], n);
			cr_assert(bad_call == CALL_UNLINKAT || !count_files(".plfs-flatten"));
		}
	}
}

static int flatten_and_die(void *arg)
{
	(void)arg;
	on_call = die_at_last;
	return flatten();
}

static int look_and_flatten(void *arg)
{
	(void)arg;
	return !is_whole() || flatten() || !is_plain() || !is_whole() || lunlink("a");
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

		make("a");
		if (in_body)
			cr_assert_eq(in_child(move_into_body, NULL), 0);
		calls_left = n;
		code = in_child(flatten_and_die, NULL);
		cr_assert(!code || code == 256 + SIGKILL, "call %d: exit code %d", n, code);
		plain = is_plain();
		cr_assert_eq(in_child(look_and_flatten, NULL), 0, "killed at call %d", n);
		if (!plain && !in_body)
			assert_nothing_left();
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
static bool mapped_it;

/* A map needs no open file; that of a description which appends keeps no lock either. */
static int map_and_close(void *arg)
{
	struct lfile l = lopen("a", O_RDWR | O_APPEND);
	char *map, c = 0;

	(void)arg;
	if (!l.f || plfs_in_body(l.f, PLFS_MAP_WRITE) != 1)
		return 1;
	map = mmap(NULL, PLFS_BODY_OFF + LEN, PROT_READ | PROT_WRITE, MAP_SHARED, l.fd, 0);
	lclose(&l);
	if (map == MAP_FAILED || write(map_pipes[1], "m", 1) != 1 || read(map_pipes[2], &c, 1) != 1)
		return 2;
	memset(map + PLFS_BODY_OFF, 'm', 10);
	return munmap(map, PLFS_BODY_OFF + LEN) != 0;
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
	cr_assert_eq(flatten(), -EBUSY);
	cr_assert(mapped_it && !is_plain());
	cr_assert_eq(write(map_pipes[3], "g", 1), 1);
	cr_assert_eq(wait_child(child), 0);
	cr_assert_eq(flatten(), 0);
	fd = open(path, O_RDONLY);
	cr_assert_eq(read(fd, text, sizeof(text)), 10);
	cr_assert(!memcmp(text, "mmmmmmmmmm", 10));
	close(fd);
	assert_nothing_left();
}

Test(flatten, a_file_in_its_body_that_was_mapped_just_before_stays)
{
	make("a");
	cr_assert_eq(in_child(move_into_body, NULL), 0);
	map_it_in_the_gap();
}

Test(flatten, a_file_that_was_mapped_just_before_stays)
{
	make("a");
	map_it_in_the_gap();
}
