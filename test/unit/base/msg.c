/* SPDX-License-Identifier: BSD-3-Clause */
/* The log's grammar, that its lines are whole, and that it leaves errno and low descriptors alone. */
#include "core/base/msg.h"
#include "core/base/io.h"
#include "core/base/event.h"
#include "core/base/sys.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <sys/stat.h>

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

TestSuite(msg, .init = setup);

Test(msg, unset_or_empty_setting_turns_all_off)
{
	int evaluated = 0;

	cr_assert_eq(msg_init(NULL, err, sizeof(err)), 0);
	cr_assert_eq(msg_mask, 0);
	cr_assert_eq(msg_init("", err, sizeof(err)), 0);
	cr_assert_eq(msg_mask, 0);
	msg_debug(MSG_OPEN, "%d", ++evaluated);
	cr_assert_eq(evaluated, 0);
	cr_assert_eq(written.calls, 0);
}

Test(msg, categories_add_up)
{
	cr_assert_eq(msg_init("open,read", err, sizeof(err)), 0);
	cr_assert_eq(msg_mask, MSG_OPEN | MSG_READ);
	cr_assert_eq(msg_init("config,refuse,proc", err, sizeof(err)), 0);
	cr_assert_eq(msg_mask, MSG_CONFIG | MSG_REFUSE | MSG_PROC);
	cr_assert_eq(msg_init("all", err, sizeof(err)), 0);
	cr_assert_eq(msg_mask, MSG_ALL);
}

Test(msg, bad_settings_are_refused_with_a_sentence)
{
	static const char *const BAD[] = { "opne", "open,", ",open", "open,,read", "@/tmp/x",
					   "ope",  "opens", "open@", " " };

	cr_assert_eq(msg_init("open", err, sizeof(err)), 0);
	for (size_t i = 0; i < ARRAY_SIZE(BAD); i++) {
		err[0] = 0;
		cr_assert_eq(msg_init(BAD[i], err, sizeof(err)), -EINVAL, "'%s'", BAD[i]);
		cr_assert_eq(strncmp(err, "PLFS_DEBUG: ", 12), 0, "'%s': %s", BAD[i], err);
		cr_assert_eq(msg_mask, MSG_OPEN, "'%s' left something behind", BAD[i]);
	}
}

Test(msg, file_that_cannot_be_opened_is_named)
{
	errno = 0;
	cr_assert_eq(msg_init("open@/nonexistent/log", err, sizeof(err)), -EINVAL);
	cr_assert_not_null(strstr(err, "/nonexistent/log: No such file"), "%s", err);
	cr_assert_eq(errno, 0);
}

Test(msg, line_says_process_and_category)
{
	char want[128];

	msg_init("open", err, sizeof(err));
	msg_debug(MSG_OPEN, "ckpt.%d", 7);
	snprintf(want, sizeof(want), "libplfs: [%d] open: ckpt.7\n", getpid());
	cr_assert_str_eq(written.text, want);
	cr_assert_eq(written.fd, 2);
}

Test(msg, errors_go_to_stderr_in_one_write_and_leave_errno)
{
	errno = ENOSPC;
	msg_error("data.%s.%d: short", "node1", 3);
	cr_assert_eq(errno, ENOSPC);
	cr_assert_str_eq(written.text, "libplfs: data.node1.3: short\n");
	cr_assert_eq(written.fd, 2);
	cr_assert_eq(written.calls, 1);
}

Test(msg, an_interrupted_line_is_written_again)
{
	written.failures_left = 3;
	msg_error("x");
	cr_assert_str_eq(written.text, "libplfs: x\n");
	cr_assert_eq(written.calls, 4);
}

Test(msg, what_could_forge_a_line_or_move_the_cursor_is_escaped)
{
	char want[128];

	msg_error("a\nlibplfs: forged\r\x1b[2J\x7f %s", "\xc2\x9b" "1m \xff\xc3\xa4\xe2\x82\xac \xe2\x82");
	cr_assert_str_eq(written.text, "libplfs: a\\nlibplfs: forged\\r\\x1b[2J\\x7f \\xc2\\x9b1m "
				       "\\xff\xc3\xa4\xe2\x82\xac \\xe2\\x82\n");
	cr_assert_eq(written.calls, 1);
	msg_init("open", err, sizeof(err));
	msg_debug(MSG_OPEN, "b\nc");
	snprintf(want, sizeof(want), "libplfs: [%d] open: b\\nc\n", getpid());
	cr_assert_str_eq(written.text, want);
}

Test(msg, long_lines_are_cut_behind_a_whole_escape)
{
	char name[5000];

	memset(name, 1, sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	msg_error("%s", name);
	cr_assert_leq(written.len, 4096);
	cr_assert_str_eq(written.text + written.len - 5, "\\x01\n");
}

/* ---- the file of the setting, where others may write ---- */

static char debug_dir[] = "/tmp/plfs-msg.XXXXXX", debug_setting[128], debug_path[64];

static void debug_file(int no) /* a line that was just said is not said again */
{
	snprintf(debug_path, sizeof(debug_path), "%s/log%d", debug_dir, no);
	snprintf(debug_setting, sizeof(debug_setting), "open@%s", debug_path);
}

static void debug_begin(void)
{
	cr_assert_not_null(mkdtemp(debug_dir));
	debug_file(0);
}

/* Whether a line goes to standard error, and one says why. */
static bool refuses(void)
{
	bool told;

	written.calls = 0;
	cr_assert_eq(msg_init(debug_setting, err, sizeof(err)), 0);
	told = written.calls == 1 && strstr(written.text, "is not a file of this user");
	msg_debug(MSG_OPEN, "x");
	return told && written.fd == 2;
}

Test(msg, file_that_another_user_could_have_put_there_is_not_written)
{
	char other[64];
	int fd;

	debug_begin();
	snprintf(other, sizeof(other), "%s/other", debug_dir);
	fd = open(other, O_CREAT | O_WRONLY, 0600);
	close(fd);
	cr_assert_eq(symlink(other, debug_path), 0);
	cr_assert(refuses(), "a link");
	unlink(debug_path);
	debug_file(1);
	cr_assert_eq(link(other, debug_path), 0);
	cr_assert(refuses(), "a second name");
	unlink(debug_path);
	debug_file(2);
	cr_assert_eq(mkfifo(debug_path, 0666), 0);
	cr_assert(refuses(), "a fifo");
	unlink(debug_path);
	debug_file(3);
	if (!geteuid()) {
		cr_assert_eq(rename(other, debug_path), 0);
		cr_assert_eq(chown(debug_path, 41003, 41003), 0);
		cr_assert(refuses(), "another user's");
	}
	unlink(debug_path);
	unlink(other);
	rmdir(debug_dir);
}

Test(msg, file_of_the_user_is_made_and_goes_on)
{
	debug_begin();
	for (int i = 0; i < 2; i++) {
		written.calls = 0;
		cr_assert_eq(msg_init(debug_setting, err, sizeof(err)), 0);
		cr_assert_eq(written.calls, 0);
		msg_debug(MSG_OPEN, "x");
		cr_assert_gt(written.fd, 2);
	}
	cr_assert_eq(msg_init("open@/dev/null", err, sizeof(err)), 0);
	cr_assert_eq(written.calls, 1);
	unlink(debug_path);
	rmdir(debug_dir);
}

Test(msg, long_lines_are_cut_but_end)
{
	char *text = malloc(9001);

	memset(text, 'x', 9000);
	text[9000] = 0;
	msg_error("%s", text);
	cr_assert_eq(written.len, 4096);
	cr_assert_eq(written.text[4095], '\n');
	cr_assert_eq(written.text[4094], 'x');
	free(text);
}

Test(msg, file_gets_the_debug_lines_and_its_descriptor_is_hidden)
{
	char setting[64], path[64], want[64];
	int low;

	snprintf(setting, sizeof(setting), "lock,open@/tmp/test_log.%%p.txt");
	snprintf(path, sizeof(path), "/tmp/test_log.%d.txt", getpid());
	low = dup(0);
	close(low);
	cr_assert_eq(msg_init(setting, err, sizeof(err)), 0, "%s", err);
	cr_assert_eq(access(path, F_OK), 0);
	unlink(path);
	msg_debug(MSG_LOCK, "acquired");
	snprintf(want, sizeof(want), "libplfs: [%d] lock: acquired\n", getpid());
	cr_assert_str_eq(written.text, want);
	cr_assert_gt(written.fd, low);
	cr_assert(sys_fd_is_hidden(written.fd));
	cr_assert_eq(dup(0), low, "the lowest free descriptor is taken");
	msg_error("to people");
	cr_assert_eq(written.fd, 2);

	/* Another setting lets go of the file. */
	low = written.fd;
	cr_assert_eq(msg_init("open", err, sizeof(err)), 0);
	msg_debug(MSG_OPEN, "x");
	cr_assert_eq(written.fd, 2);
}

Test(msg, die_exits_78, .exit_code = 78)
{
	msg_die_config("PLFS_MAP: no such backend");
}

Test(msg, an_event_has_a_line_in_its_category)
{
	cr_assert_eq(msg_init("path", err, sizeof(err)), 0);
	event(EVENT_LOG_MADE, .container = ".plfs/3f/3fa9", .name = "hostdir.1/data.a");
	cr_assert_eq(written.calls, 0);
	event(EVENT_CONTAINER_REMOVED, .container = ".plfs/3f/3fa9", .result = -EACCES);
	cr_assert_not_null(
		strstr(written.text, "] path: removed container .plfs/3f/3fa9: Permission denied\n"), "%s",
		written.text);
	cr_assert_eq(msg_init("", err, sizeof(err)), 0);
	event(EVENT_CONTAINER_REMOVED, .container = ".plfs/3f/3fa9");
	cr_assert_eq(written.calls, 1);
}
