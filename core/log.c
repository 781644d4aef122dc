/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lines for people. Each is built on the stack and leaves in one write, so that the lines of many
 * processes on one terminal or in one file (opened for append) do not tear. Nothing is allocated.
 */
#include "log.h"

#include "own.h"
#include "sys.h"

#include <stdio.h>

#define LINE_LEN 4096 /* as PIPE_BUF: what a pipe takes in one piece; longer lines are cut */
#define EXIT_CONFIG 78 /* EX_CONFIG of sysexits.h */

unsigned log_mask;
bool log_is_muted;

static int log_fd = STDERR_FILENO;

static const char *const CATEGORIES[] = {
	"config", "open", "write", "read", "index", "path", "lock", "proc", "refuse",
};
static_assert(LOG_ALL == (1 << ARRAY_SIZE(CATEGORIES)) - 1, "one name for each category");

static unsigned category_by_name(const char *name, size_t name_len)
{
	if (name_len == 3 && !memcmp(name, "all", 3))
		return LOG_ALL;
	for (size_t i = 0; i < ARRAY_SIZE(CATEGORIES); i++)
		if (strlen(CATEGORIES[i]) == name_len && !memcmp(CATEGORIES[i], name, name_len))
			return 1u << i;
	return 0;
}

static const char *category_name(enum log_category category)
{
	return category & LOG_ALL ? CATEGORIES[__builtin_ctz(category)] : "debug";
}

/* @pattern to @path, "%p" as the process id; false if it does not fit. */
static bool expand_path(const char *pattern, char *path, size_t path_len)
{
	size_t len = 0;

	while (*pattern) {
		int n;

		if (pattern[0] == '%' && pattern[1] == 'p') {
			n = snprintf(path + len, path_len - len, "%d", (int)sys.getpid());
			pattern += 2;
		} else {
			n = snprintf(path + len, path_len - len, "%c", *pattern++);
		}
		if (n < 0 || (size_t)n >= path_len - len)
			return false;
		len += (size_t)n;
	}
	return len > 0;
}

static int open_log_file(const char *pattern, char *err, size_t err_len)
{
	char path[PATH_MAX];
	int saved_errno = errno;
	int fd;

	if (!expand_path(pattern, path, sizeof(path))) {
		snprintf(err, err_len, "PLFS_DEBUG: the file name after '@' is empty or too long");
		return -EINVAL;
	}
	fd = own_open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0666);
	if (fd < 0) {
		snprintf(err, err_len, "PLFS_DEBUG: cannot open %s: %m", path);
		errno = saved_errno;
		return -EINVAL;
	}
	return sys_fd_hide(fd);
}

int log_init(const char *setting, char *err, size_t err_len)
{
	const char *at = setting ? strchr(setting, '@') : NULL;
	unsigned mask = 0;
	int fd = STDERR_FILENO;

	if (setting && *setting) {
		const char *end = at ? at : setting + strlen(setting);

		for (const char *name = setting;; name++) {
			size_t name_len = strcspn(name, ",@");
			unsigned category = category_by_name(name, name_len);

			if (!category) {
				snprintf(err, err_len, "PLFS_DEBUG: unknown category '%.*s'", (int)name_len, name);
				return -EINVAL;
			}
			mask |= category;
			name += name_len;
			if (name == end)
				break;
		}
	}
	if (at) {
		fd = open_log_file(at + 1, err, err_len);
		if (fd < 0)
			return fd;
	}
	if (log_fd != STDERR_FILENO)
		sys_fd_close(&log_fd);
	log_fd = fd;
	log_mask = mask;
	return 0;
}

/* @line holds @len bytes already. Adds the message and a newline and writes the whole to @fd. */
__attribute__((format(printf, 4, 0)))
static void put_line(int fd, char *line, size_t len, const char *fmt, va_list args)
{
	int n = vsnprintf(line + len, LINE_LEN - len, fmt, args);

	if (n > 0)
		len += min_size((size_t)n, LINE_LEN - len - 1);
	line[len++] = '\n'; /* over the terminating 0 */
	while (own_write(fd, line, len) < 0 && errno == EINTR)
		;
}

/* What was just said is not said again: a file that is damaged is read piece by piece. */
#define SAID_NS 10000000000

static bool is_said(const char *fmt, va_list args)
{
	static struct said {
		uint64_t hash, when_ns;
	} recent[8];
	uint64_t hash = 0xcbf29ce484222325, now_ns;
	char line[LINE_LEN] = "";
	struct timespec now;
	struct said *s;

	if (sys.clock_gettime(CLOCK_MONOTONIC_COARSE, &now))
		return false;
	now_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	vsnprintf(line, sizeof(line), fmt, args);
	for (const char *p = line; *p; p++)
		hash = (hash ^ (unsigned char)*p) * 0x100000001b3;
	s = &recent[hash % ARRAY_SIZE(recent)];
	if (__atomic_load_n(&s->hash, __ATOMIC_RELAXED) == hash &&
	    now_ns - __atomic_load_n(&s->when_ns, __ATOMIC_RELAXED) < SAID_NS)
		return true;
	__atomic_store_n(&s->hash, hash, __ATOMIC_RELAXED);
	__atomic_store_n(&s->when_ns, now_ns, __ATOMIC_RELAXED);
	return false;
}

static void put_error(const char *fmt, va_list args)
{
	char line[LINE_LEN] = "libplfs: ";
	va_list same;
	bool said;

	sys_init();
	va_copy(same, args);
	said = is_said(fmt, same);
	va_end(same);
	if (said)
		return;
	put_line(STDERR_FILENO, line, strlen(line), fmt, args);
}

void log_error(const char *fmt, ...)
{
	int saved_errno = errno;
	va_list args;

	if (log_is_muted)
		return;
	va_start(args, fmt);
	put_error(fmt, args);
	va_end(args);
	errno = saved_errno;
}

void log_die_config(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	put_error(fmt, args);
	va_end(args);
	for (;;)
		sys._exit(EXIT_CONFIG);
}

void log_line(enum log_category category, const char *fmt, ...)
{
	char line[LINE_LEN];
	int saved_errno = errno;
	va_list args;
	int n;

	sys_init();
	n = snprintf(line, sizeof(line), "libplfs: [%d] %s: ", (int)sys.getpid(), category_name(category));
	va_start(args, fmt);
	put_line(log_fd, line, n > 0 ? (size_t)n : 0, fmt, args);
	va_end(args);
	errno = saved_errno;
}

extern const char *strerrorname_np(int err) __attribute__((weak));

const char *log_errno_name(int err)
{
	const char *name = strerrorname_np ? strerrorname_np(err) : NULL;

	return name ? name : strerror(err);
}
