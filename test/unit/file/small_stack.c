/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads with the smallest stack that there is, 16 KiB, in which an error line is made, or a file is read
 * for the first time: it takes half of that at most. The stack is painted before.
 */
#include "test/lib/hostile.h"
#include "test/lib/sanitized.h"

#include "core/backend/subject.h"
#include "core/base/msg.h"
#include "core/file/logged.h"

#include <pthread.h>
#include <sys/mman.h>

TestSuite(small_stack, .init = hostile_setup, .fini = scratch_remove, .timeout = 120);

#define ROOM (256 << 10) /* so that what takes too much is measured */
#define MOST 8192
#define PAINT 0x5a

static int lines;
static struct lfile l;

static ssize_t take_line(int fd, const void *buf, size_t len)
{
	(void)fd, (void)buf;
	lines++;
	return (ssize_t)len;
}

struct task {
	void (*fn)(void);
	const uint8_t *stack;
	size_t used, had;
};

static void *run(void *arg)
{
	struct task *t = arg;
	const uint8_t *at = t->stack, *here = __builtin_frame_address(0);

	t->had = (size_t)(here - at);
	t->fn();
	while (*at == PAINT)
		at++;
	t->used = (size_t)(here - at);
	return NULL;
}

/* @fn in a thread that has @len bytes of stack. */
static struct task in_thread(void (*fn)(void), size_t len)
{
	uint8_t *stack = mmap(NULL, len + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct task t = { .fn = fn, .stack = stack + 4096 };
	ssize_t (*write_before)(int fd, const void *buf, size_t n) = sys.write;
	pthread_attr_t attr;
	pthread_t thread;

	memset(stack, PAINT, len + 4096);
	cr_assert_eq(mprotect(stack, 4096, PROT_NONE), 0);
	pthread_attr_init(&attr);
	cr_assert_eq(pthread_attr_setstack(&attr, stack + 4096, len), 0);
	lines = 0;
	sys.write = take_line;
	cr_assert_eq(pthread_create(&thread, &attr, run, &t), 0);
	pthread_join(thread, NULL);
	sys.write = write_before;
	return t;
}

/* Bytes of the stack that @fn takes. */
static size_t used_by(void (*fn)(void), size_t len) { return in_thread(fn, len).used; }

/* The same; one line must come of it. */
static size_t stack_of(void (*fn)(void), size_t len)
{
	size_t used = used_by(fn, len);

	cr_assert_gt(lines, 0, "no line was made");
	return used;
}

/* Which is about a file of the backend, and holds what a terminal must not see. */
static void say_of_a_path(void)
{
	static char long_name[5000];
	char path[200];

	memset(long_name, '\n', sizeof(long_name) - 1);
	snprintf(path, sizeof(path), "%s/file", scratch);
	msg_error("%s: %s", path, long_name);
}

static void say_of_a_container(void) { msg_error("%s: of a container", hostile_container.dir); }

static void do_nothing(void) {}

static ssize_t result;

static void read_a_damaged_header(void)
{
	struct stub stub;

	result = stub_read(l.fd, &stub);
}

static void read_a_damaged_log(void)
{
	char buf[100];

	result = plfs_pread(l.f, buf, sizeof(buf), 0);
}

static void open_it(void)
{
	if (is_sanitized())
		cr_skip_test("a sanitizer has frames of its own");
	hostile_file();
	msg_subject = subject_find;
	l = lopen("file", O_RDWR);
}

Test(small_stack, has_room_for_a_line_about_a_file)
{
	open_it();
	cr_assert_lt(stack_of(say_of_a_path, ROOM), MOST);
}

Test(small_stack, has_room_for_a_line_about_a_container)
{
	open_it();
	cr_assert_lt(stack_of(say_of_a_container, ROOM), MOST);
}

Test(small_stack, has_room_for_one_about_a_damaged_header)
{
	open_it();
	cr_assert_eq(pwrite(l.fd, "damage", 6, 30), 6);
	cr_assert_lt(stack_of(read_a_damaged_header, ROOM), MOST);
	cr_assert_eq(result, -EIO);
}

static void damage_the_log(void)
{
	char path[PATH_MAX];
	int fd;

	open_it();
	cr_assert(find_file("data.", path));
	fd = open(path, O_WRONLY);
	cr_assert_eq(pwrite(fd, "damage", 6, 16), 6);
	close(fd);
}

/* The first read lists the container, makes the map, and opens the log. */
Test(small_stack, has_room_for_the_first_read_of_a_damaged_log)
{
	damage_the_log();
	cr_assert_lt(stack_of(read_a_damaged_log, ROOM), MOST);
	cr_assert_eq(result, -EIO);
}

Test(small_stack, ends_no_program_where_a_damaged_log_is_read_in_the_smallest)
{
#if !__GLIBC_PREREQ(2, 34)
	cr_skip_test("PTHREAD_STACK_MIN of glibc before 2.34 has no room for what the C library itself puts there");
#endif
	damage_the_log();
	/* jemalloc 5.2 keeps 6 KiB of each thread there, 5.3 has 2.6 KiB */
	if (in_thread(do_nothing, PTHREAD_STACK_MIN).had < MOST)
		cr_skip_test("of PTHREAD_STACK_MIN, the C library and jemalloc leave less than the 8 KiB that it may take");
	stack_of(read_a_damaged_log, PTHREAD_STACK_MIN);
	cr_assert_eq(result, -EIO);
}

Test(small_stack, ends_no_program_where_a_line_is_made_in_the_smallest)
{
#if !__GLIBC_PREREQ(2, 34)
	cr_skip_test("PTHREAD_STACK_MIN of glibc before 2.34 has no room for what the C library itself puts there");
#endif
	open_it();
	stack_of(say_of_a_path, PTHREAD_STACK_MIN);
	stack_of(say_of_a_container, PTHREAD_STACK_MIN);
	cr_assert_eq(pwrite(l.fd, "damage", 6, 30), 6);
	stack_of(read_a_damaged_header, PTHREAD_STACK_MIN);
	cr_assert_eq(result, -EIO);
}

/* ---- calls on names, whose wrappers have the paths on the stack as well ---- */

static struct plfs_mount *m;
static char from[PATH_MAX], to[PATH_MAX];

static void open_from(void)
{
	result = plfs_open(m, AT_FDCWD, from, O_RDWR | O_CREAT, 0644, &l.f);
	l.fd = (int)result;
}

static void rename_it(void) { result = plfs_rename(m, AT_FDCWD, from, AT_FDCWD, to, 0); }
static void chmod_it(void) { result = plfs_chmod(AT_FDCWD, to, 0600, 0); }

static void name_them(void)
{
	char dir[PATH_MAX];

	open_it();
	lclose(&l);
	m = lpath("file", from);
	snprintf(dir, sizeof(dir), "%s/dir", scratch);
	cr_assert_eq(mkdir(dir, 0755), 0);
	snprintf(to, sizeof(to), "%s/dir/file", scratch);
}

Test(small_stack, has_room_for_an_open)
{
	name_them();
	cr_assert_lt(used_by(open_from, ROOM), MOST);
	cr_assert_geq(result, 0);
	lclose(&l);
}

static void write_it(void) { result = plfs_pwrite(l.f, "12345", 5, 0); }

/*
 * Which makes the container, a log and a live file; an access control list takes 4 KiB of it. Without
 * openat2() the way there is opened step by step.
 */
Test(small_stack, has_room_for_the_first_write_of_a_file)
{
	size_t more = has_openat2() ? 1024 : 2048;

	open_it();
	lclose(&l);
	l = made("new");
	cr_assert_lt(used_by(write_it, ROOM), MOST + more);
	cr_assert_eq(result, 5);
	lclose(&l);
}

/* The header is looked at, for chmod has taken the mark away. */
Test(small_stack, has_room_for_an_open_of_a_stub_without_its_mark)
{
	name_them();
	cr_assert_eq(chmod(from, 0644), 0);
	cr_assert_lt(used_by(open_from, ROOM), MOST);
	cr_assert(result >= 0 && l.f);
	lclose(&l);
}

/* It is asked whether a backend lies between. */
Test(small_stack, has_room_for_a_rename_to_another_directory)
{
	name_them();
	cr_assert_lt(used_by(rename_it, ROOM), MOST);
	cr_assert_eq(result, 0);
	cr_assert_lt(used_by(chmod_it, ROOM), MOST);
	cr_assert_eq(result, 0);
}

static void close_it(void) { result = lclose(&l); }

/* It removes what other runs have written, with the rest of what a close does. */
Test(small_stack, has_room_for_a_close_that_sweeps)
{
	int most = 0;

	open_it();
	lclose(&l);
	logged_least_len = 1000;
	for (unsigned round = 1; round < 6; round++) {
		l = made("swept");
		cr_assert_eq(lfill(&l, 0, 300000, round), 300000);
		cr_assert_lt(used_by(close_it, ROOM), MOST);
		cr_assert_eq(result, 0);
		most = count_logs() > most ? count_logs() : most;
	}
	cr_assert_lt(most, 6, "nothing was swept");
}
