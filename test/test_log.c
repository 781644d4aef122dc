/* SPDX-License-Identifier: BSD-3-Clause */
/* The log's grammar, that its lines are whole, and that it leaves errno and low descriptors alone. */
#include "../core/log.h"
#include "../core/sys.h"

#include <criterion/criterion.h>
#include <stdlib.h>

static char err[256];

/* What the last call of the replaced sys.write was given. */
static struct {
	int fd;
	int calls;
	int failures_left; /* with EINTR */
	size_t len;
	char text[8192];
} written;

static ssize_t catch_write(int fd, const void *buf, size_t len)
{
	written.calls++;
	if (written.failures_left) {
		written.failures_left--;
		errno = EINTR;
		return -1;
	}
	written.fd = fd;
	written.len = len;
	memcpy(written.text, buf, len);
	written.text[len] = 0;
	errno = EPIPE;
	return (ssize_t)len;
}

static void setup(void)
{
	sys_init();
	sys.write = catch_write;
}

TestSuite(log, .init = setup);

Test(log, unset_or_empty_setting_turns_all_off)
{
	int evaluated = 0;

	cr_assert_eq(log_init(NULL, err, sizeof(err)), 0);
	cr_assert_eq(log_mask, 0);
	cr_assert_eq(log_init("", err, sizeof(err)), 0);
	cr_assert_eq(log_mask, 0);
	log_debug(LOG_OPEN, "%d", ++evaluated);
	cr_assert_eq(evaluated, 0);
	cr_assert_eq(written.calls, 0);
}

Test(log, categories_add_up)
{
	cr_assert_eq(log_init("open,read", err, sizeof(err)), 0);
	cr_assert_eq(log_mask, LOG_OPEN | LOG_READ);
	cr_assert_eq(log_init("config,refuse,proc", err, sizeof(err)), 0);
	cr_assert_eq(log_mask, LOG_CONFIG | LOG_REFUSE | LOG_PROC);
	cr_assert_eq(log_init("all", err, sizeof(err)), 0);
	cr_assert_eq(log_mask, LOG_ALL);
}

Test(log, bad_settings_are_refused_with_a_sentence)
{
	static const char *const BAD[] = { "opne", "open,", ",open", "open,,read", "@/tmp/x", "ope", "opens", "open@", " " };

	cr_assert_eq(log_init("open", err, sizeof(err)), 0);
	for (size_t i = 0; i < ARRAY_SIZE(BAD); i++) {
		err[0] = 0;
		cr_assert_eq(log_init(BAD[i], err, sizeof(err)), -EINVAL, "'%s'", BAD[i]);
		cr_assert_eq(strncmp(err, "PLFS_DEBUG: ", 12), 0, "'%s': %s", BAD[i], err);
		cr_assert_eq(log_mask, LOG_OPEN, "'%s' left something behind", BAD[i]);
	}
}

Test(log, file_that_cannot_be_opened_is_named)
{
	errno = 0;
	cr_assert_eq(log_init("open@/nonexistent/log", err, sizeof(err)), -EINVAL);
	cr_assert_not_null(strstr(err, "/nonexistent/log: No such file"), "%s", err);
	cr_assert_eq(errno, 0);
}

Test(log, line_says_process_and_category)
{
	char want[128];

	log_init("open", err, sizeof(err));
	log_debug(LOG_OPEN, "ckpt.%d", 7);
	snprintf(want, sizeof(want), "libplfs: [%d] open: ckpt.7\n", getpid());
	cr_assert_str_eq(written.text, want);
	cr_assert_eq(written.fd, 2);
}

Test(log, errors_go_to_stderr_in_one_write_and_leave_errno)
{
	errno = ENOSPC;
	log_error("data.%s.%d: short", "node1", 3);
	cr_assert_eq(errno, ENOSPC);
	cr_assert_str_eq(written.text, "libplfs: data.node1.3: short\n");
	cr_assert_eq(written.fd, 2);
	cr_assert_eq(written.calls, 1);
}

Test(log, an_interrupted_line_is_written_again)
{
	written.failures_left = 3;
	log_error("x");
	cr_assert_str_eq(written.text, "libplfs: x\n");
	cr_assert_eq(written.calls, 4);
}

Test(log, long_lines_are_cut_but_end)
{
	char *text = malloc(9001);

	memset(text, 'x', 9000);
	text[9000] = 0;
	log_error("%s", text);
	cr_assert_eq(written.len, 4096);
	cr_assert_eq(written.text[4095], '\n');
	cr_assert_eq(written.text[4094], 'x');
	free(text);
}

Test(log, file_gets_the_debug_lines_and_its_descriptor_is_hidden)
{
	char setting[64], path[64], want[64];
	int low;

	snprintf(setting, sizeof(setting), "lock,open@/tmp/test_log.%%p.txt");
	snprintf(path, sizeof(path), "/tmp/test_log.%d.txt", getpid());
	low = dup(0);
	close(low);
	cr_assert_eq(log_init(setting, err, sizeof(err)), 0, "%s", err);
	cr_assert_eq(access(path, F_OK), 0);
	unlink(path);
	log_debug(LOG_LOCK, "acquired");
	snprintf(want, sizeof(want), "libplfs: [%d] lock: acquired\n", getpid());
	cr_assert_str_eq(written.text, want);
	cr_assert_gt(written.fd, low);
	cr_assert(sys_fd_is_hidden(written.fd));
	cr_assert_eq(dup(0), low, "the lowest free descriptor is taken");
	log_error("to people");
	cr_assert_eq(written.fd, 2);

	/* Another setting lets go of the file. */
	low = written.fd;
	cr_assert_eq(log_init("open", err, sizeof(err)), 0);
	log_debug(LOG_OPEN, "x");
	cr_assert_eq(written.fd, 2);
}

Test(log, die_exits_78, .exit_code = 78)
{
	log_die_config("PLFS_MAP: no such backend");
}
