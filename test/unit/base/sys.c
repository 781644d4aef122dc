/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of real functions and the hidden descriptors. The .c file is included to reach the
 * substitutes that only old C libraries need.
 */
#include "core/base/sys.c"
#include "core/base/io.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>

static void setup(void)
{
	sys_init();
}

TestSuite(sys_fd, .init = setup);
TestSuite(sys, .init = setup);

static void limit_descriptors(rlim_t soft)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = soft;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

Test(sys_init, fills_every_member_that_this_libc_has)
{
	errno = ENOTTY;
	sys_init();
	cr_assert_eq(errno, ENOTTY);
	for (size_t i = 0; i < ARRAY_SIZE(SYMBOLS); i++)
		if (dlsym(RTLD_DEFAULT, SYMBOLS[i].name))
			cr_assert_not_null(*(void **)((char *)&sys + SYMBOLS[i].member), "%s",
					   SYMBOLS[i].name);
	cr_assert_eq(sys.getpid(), getpid());
}

Test(sys_init, a_second_call_keeps_injected_faults)
{
	sys_init();
	sys.fsync = NULL;
	sys_init();
	cr_assert_null(sys.fsync);
}

Test(sys_init, leaves_no_dlerror_message)
{
	sys_init();
	cr_assert_null(dlerror());
}

static void *init_and_ask(void *ok)
{
	sys_init();
	*(bool *)ok = sys.getpid && sys.getpid() == getpid() && sys.getrandom;
	return NULL;
}

Test(sys_init, may_be_called_by_many_threads_at_once)
{
	pthread_t thread[8];
	bool ok[8];

	for (int i = 0; i < 8; i++)
		pthread_create(&thread[i], NULL, init_and_ask, &ok[i]);
	for (int i = 0; i < 8; i++) {
		pthread_join(thread[i], NULL);
		cr_assert(ok[i]);
	}
}

Test(sys, substitutes_for_old_libcs_answer_as_stat_does)
{
	struct sys_table old = sys;
	struct stat want, st;

	if (!dlsym(RTLD_NEXT, "__xstat") || !dlsym(RTLD_NEXT, "__xmknodat"))
		cr_skip_test("this C library does not have them any more");
	use_old_libc(&old);
	cr_assert_eq(stat("/proc/self/exe", &want), 0);
	cr_assert_eq(old.stat("/proc/self/exe", &st), 0);
	cr_assert_eq(st.st_ino, want.st_ino);
	cr_assert_eq(st.st_size, want.st_size);
	cr_assert_eq(old.fstatat(AT_FDCWD, "/proc/self/exe", &st, 0), 0);
	cr_assert_eq(st.st_ino, want.st_ino);
	cr_assert_eq(old.lstat("/proc/self/exe", &st), 0);
	cr_assert(S_ISLNK(st.st_mode));
	cr_assert_eq(fstat(0, &want), 0);
	cr_assert_eq(old.fstat(0, &st), 0);
	cr_assert_eq(st.st_ino, want.st_ino);
	cr_assert_eq(old.mknod("/nonexistent/fifo", S_IFIFO | 0600, 0), -1);
	cr_assert_eq(errno, ENOENT);
	cr_assert_eq(old.mknodat(AT_FDCWD, "/nonexistent/fifo", S_IFIFO | 0600, 0), -1);
	cr_assert_eq(errno, ENOENT);
}

Test(sys_fd, hidden_ones_are_high_and_close_on_exec_and_free_the_low_number)
{
	int low = dup(0), fd;

	limit_descriptors(1024);
	errno = ENOTTY;
	fd = sys_fd_hide(low);
	cr_assert_eq(errno, ENOTTY);
	cr_assert_geq(fd, 768);
	cr_assert_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
	cr_assert(sys_fd_is_hidden(fd));
	cr_assert_not(sys_fd_is_hidden(low));
	cr_assert_eq(dup(0), low);
}

Test(sys_fd, an_error_is_handed_through)
{
	cr_assert_eq(sys_fd_hide(-ENOENT), -ENOENT);
	cr_assert_not(sys_fd_is_hidden(-ENOENT));
	cr_assert_not(sys_fd_is_hidden(-1));
	cr_assert_not(sys_fd_is_hidden(INT_MAX));
	cr_assert_not(sys_fd_is_hidden(INT_MIN));
}

Test(sys_fd, tries_lower_when_the_top_is_full)
{
	int top[4], fd;

	limit_descriptors(64);
	for (fd = 48; fd < 64; fd++)
		cr_assert_eq(dup2(0, fd), fd);
	for (int i = 0; i < 4; i++) {
		top[i] = sys_fd_hide(dup(0));
		cr_assert_geq(top[i], 24);
		cr_assert_lt(top[i], 48);
		cr_assert(sys_fd_is_hidden(top[i]));
	}
}

Test(sys_fd, stays_where_it_is_when_nothing_higher_is_free)
{
	int fd, hidden;

	limit_descriptors(64);
	fd = dup(0);
	while (dup(0) >= 0)
		;
	hidden = sys_fd_hide(fd);
	cr_assert_eq(hidden, fd);
	cr_assert(sys_fd_is_hidden(fd));
	cr_assert_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
}

Test(sys_fd, is_never_moved_down)
{
	int fd;

	limit_descriptors(1024);
	fd = fcntl(0, F_DUPFD, 1000);
	cr_assert_eq(sys_fd_hide(fd), fd);
	cr_assert(sys_fd_is_hidden(fd));
}

Test(sys_fd, close_forgets_and_clears_the_variable)
{
	int fd = sys_fd_hide(dup(0)), number = fd, none = -1;

	errno = ENOTTY;
	sys_fd_close(&fd);
	cr_assert_eq(errno, ENOTTY);
	cr_assert_eq(fd, -1);
	cr_assert_not(sys_fd_is_hidden(number));
	cr_assert_eq(fcntl(number, F_GETFD), -1);
	sys_fd_close(&none);
	cr_assert_eq(none, -1);
}

Test(sys_fd, a_number_is_given_away_if_its_owner_is_known)
{
	int fd, number, other;

	limit_descriptors(1024);
	fd = number = sys_fd_hide(dup(0));
	cr_assert_eq(sys_fd_move_away(number), -EBUSY);
	cr_assert_eq(fd, number);
	sys_fd_own(&fd);
	cr_assert_eq(sys_fd_move_away(number), 0);
	cr_assert_neq(fd, number);
	cr_assert_geq(fd, 768);
	cr_assert(sys_fd_is_hidden(fd));
	cr_assert_not(sys_fd_is_hidden(number));
	cr_assert_eq(fcntl(number, F_GETFD), FD_CLOEXEC); /* the caller's now */
	cr_assert_eq(sys_fd_move_away(number), -EBUSY);
	other = fd;
	cr_assert_eq(sys_fd_move_away(other), 0); /* once more */
	cr_assert_neq(fd, other);
	other = fd;
	sys_fd_close(&fd);
	cr_assert_eq(sys_fd_move_away(other), -EBUSY);
}
