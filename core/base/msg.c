/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lines for people. Each leaves in one write, so that the lines of many processes on one terminal or in one
 * file (opened for append) do not tear.
 */
#include "core/base/msg.h"

#include "core/base/alloc.h"
#include "core/base/event.h"
#include "core/base/io.h"
#include "core/base/printable.h"
#include "core/base/sys.h"

#include <stdio.h>

#define LINE_LEN 4096 /* as PIPE_BUF: what a pipe takes in one piece; longer lines are cut */
#define EXIT_CONFIG 78 /* EX_CONFIG of sysexits.h */

unsigned msg_mask;
bool msg_is_muted;
bool (*msg_subject)(const char *line, char *name, size_t len, size_t *skip);

static int log_fd = STDERR_FILENO;

static __thread struct {
	char *buf;
	size_t len;
} caught __attribute__((tls_model("initial-exec")));

static const char *const CATEGORIES[] = {
	"config", "open", "write", "read", "index", "path", "lock", "proc", "refuse", "version",
};
static_assert(MSG_ALL == (1 << ARRAY_SIZE(CATEGORIES)) - 1, "one name for each category");

static unsigned category_by_name(const char *name, size_t name_len)
{
	if (name_len == 3 && !memcmp(name, "all", 3))
		return MSG_ALL;
	for (size_t i = 0; i < ARRAY_SIZE(CATEGORIES); i++)
		if (strlen(CATEGORIES[i]) == name_len && !memcmp(CATEGORIES[i], name, name_len))
			return 1u << i;
	return 0;
}

static const char *category_name(enum msg_category category)
{
	return category & MSG_ALL ? CATEGORIES[__builtin_ctz(category)] : "debug";
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

/*
 * The name may be one that others can foresee, in a directory that they can write to: their link is not
 * followed, and their file is not written to. A device is root's to make. -EEXIST: it is theirs.
 */
static int open_own(const char *path)
{
	const int flags = O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW | O_NONBLOCK;
	int fd = io_open(path, flags | O_CREAT | O_EXCL, 0666);
	struct stat st;

	if (fd < 0 && errno == EEXIST) {
		fd = io_open(path, flags);
		if (fd < 0)
			return errno == ELOOP || errno == ENXIO || errno == EACCES ? -EEXIST : -errno;
		if (sys.fstat(fd, &st) || !(S_ISCHR(st.st_mode) ||
		    (S_ISREG(st.st_mode) && st.st_uid == geteuid() && st.st_nlink == 1))) {
			io_close(fd);
			return -EEXIST;
		}
	}
	return fd < 0 ? -errno : fd;
}

static int open_log_file(const char *pattern, char *err, size_t err_len)
{
	int saved ERRNO_KEPT = errno;
	char path[PATH_MAX];
	int fd;

	if (!expand_path(pattern, path, sizeof(path))) {
		snprintf(err, err_len, "PLFS_DEBUG: the file name after '@' is empty or too long");
		return -EINVAL;
	}
	fd = open_own(path);
	if (fd == -EEXIST) {
		msg_error("PLFS_DEBUG: %s is not a file of this user: the lines go to standard error", path);
		return STDERR_FILENO;
	}
	if (fd < 0) {
		snprintf(err, err_len, "PLFS_DEBUG: cannot open %s: %s", path, strerror(-fd));
		return -EINVAL;
	}
	return sys_fd_hide(fd);
}

static void line_of_event(struct event_listener *l, const struct event *e)
{
	const char *error = strerror(-e->result);
	unsigned long long count = e->count, logs = e->logs;

	(void)l;
	switch (e->kind) {
	case EVENT_CONTAINER_REMOVED:
		msg_line(MSG_PATH, "removed container %s: %s", e->container, error);
		break;
	case EVENT_LOG_MADE: msg_line(MSG_WRITE, "log %s/%s", e->container, e->name); break;
	case EVENT_INDEX_LOADED:
		msg_line(MSG_INDEX, "%s: merged %llu records of %llu logs: %s", e->container, count, logs,
			 error);
		break;
	case EVENT_MAP_KEPT:
		msg_line(MSG_INDEX, "%s: kept the map of %llu logs: %s", e->container, logs, error);
		break;
	default: break; /* no line */
	}
}

/* The events of which the categories that are on have a line. */
static void listen_for(unsigned mask)
{
	static struct event_listener lines = { .fn = line_of_event };

	event_ignore(&lines);
	lines.kinds = (mask & MSG_PATH ? 1u << EVENT_CONTAINER_REMOVED : 0) |
		      (mask & MSG_WRITE ? 1u << EVENT_LOG_MADE : 0) |
		      (mask & MSG_INDEX ? 1u << EVENT_INDEX_LOADED | 1u << EVENT_MAP_KEPT : 0);
	if (lines.kinds)
		event_listen(&lines);
}

int msg_init(const char *setting, char *err, size_t err_len)
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
				snprintf(err, err_len, "PLFS_DEBUG: unknown category '%.*s'", (int)name_len,
					 name);
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
	sys_fd_own(&log_fd);
	msg_mask = mask;
	listen_for(mask);
	return 0;
}

/*
 * A line while it is made, of @cap bytes, and as many more. They are not on the stack, of which a thread may
 * have 16 KiB in all. Without memory the line is cut.
 */
struct room {
	char *line, *more;
	size_t cap;
};

#define SHORT_LEN 512

static void write_line(int fd, char *line, size_t len)
{
	line[len++] = '\n';
	while (io_write(fd, line, len) < 0 && errno == EINTR)
		;
}

/* The line in r->line, of @len bytes: the newline is over the terminating 0. Names in it are a stranger's. */
static void put_text(struct room *r, int fd, size_t len)
{
	if (likely(is_printable(r->line, len)))
		write_line(fd, r->line, len);
	else
		write_line(fd, r->more, printable_copy(r->more, r->cap - 1, r->line, len));
}

/* What was just said is not said again: a file that is damaged is read piece by piece. */
#define SAID_NS 10000000000

static bool is_said(const char *text)
{
	static struct said {
		uint64_t hash, when_ns;
	} recent[8];
	uint64_t hash = 0xcbf29ce484222325, now_ns;
	struct timespec now;
	struct said *s;

	if (sys.clock_gettime(CLOCK_MONOTONIC_COARSE, &now))
		return false;
	now_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	for (const char *p = text; *p; p++)
		hash = (hash ^ (unsigned char)*p) * 0x100000001b3;
	s = &recent[hash % ARRAY_SIZE(recent)];
	if (__atomic_load_n(&s->hash, __ATOMIC_RELAXED) == hash &&
	    now_ns - __atomic_load_n(&s->when_ns, __ATOMIC_RELAXED) < SAID_NS)
		return true;
	__atomic_store_n(&s->hash, hash, __ATOMIC_RELAXED);
	__atomic_store_n(&s->when_ns, now_ns, __ATOMIC_RELAXED);
	return false;
}

__attribute__((format(printf, 2, 0)))
static void put_error(struct room *r, const char *fmt, va_list args)
{
	char *line = r->line, *text = r->more;
	size_t len, skip = 0;

	*text = '\0';
	vsnprintf(text, r->cap, fmt, args);
	if (is_said(text))
		return;
	len = (size_t)snprintf(line, r->cap, "libplfs: ");
	if (msg_subject && msg_subject(text, line + len, r->cap - len, &skip)) {
		len += strlen(line + len);
		len += (size_t)snprintf(line + len, r->cap - len, "%s", skip ? "" : ": ");
	}
	len = min_size(len, r->cap - 1);
	snprintf(line + len, r->cap - len, "%s", text + skip);
	put_text(r, STDERR_FILENO, strlen(line));
}

__attribute__((format(printf, 3, 0)))
static void put_debug(struct room *r, enum msg_category category, const char *fmt, va_list args)
{
	int n = snprintf(r->line, r->cap, "libplfs: [%d] %s: ", (int)sys.getpid(), category_name(category));
	size_t len = n > 0 ? (size_t)n : 0;

	n = vsnprintf(r->line + len, r->cap - len, fmt, args);
	if (n > 0)
		len += min_size((size_t)n, r->cap - len - 1);
	put_text(r, log_fd, len);
}

/* @category 0: an error. */
__attribute__((format(printf, 3, 0)))
static void put(struct room *r, enum msg_category category, const char *fmt, va_list args)
{
	if (category)
		put_debug(r, category, fmt, args);
	else
		put_error(r, fmt, args);
}

__attribute__((format(printf, 2, 0), noinline))
static void put_short(enum msg_category category, const char *fmt, va_list args)
{
	char line[SHORT_LEN], more[SHORT_LEN];
	struct room r = { .line = line, .more = more, .cap = SHORT_LEN };

	put(&r, category, fmt, args);
}

__attribute__((format(printf, 2, 0)))
static void say(enum msg_category category, const char *fmt, va_list args)
{
	struct lines {
		char line[LINE_LEN], more[LINE_LEN];
	} *lines;

	sys_init();
	lines = mem_alloc(sizeof(*lines));
	if (lines)
		put(&(struct room){ lines->line, lines->more, LINE_LEN }, category, fmt, args);
	else
		put_short(category, fmt, args);
	mem_free(lines);
}

void msg_catch(char *buf, size_t len)
{
	caught.buf = buf;
	caught.len = len;
	if (buf)
		*buf = '\0';
}

static unsigned nr_errors;

unsigned msg_nr_errors(void) { return __atomic_load_n(&nr_errors, __ATOMIC_RELAXED); }

void msg_error(const char *fmt, ...)
{
	int saved_errno = errno;
	va_list args;

	__atomic_fetch_add(&nr_errors, 1, __ATOMIC_RELAXED);
	if (msg_is_muted && !caught.buf)
		return;
	va_start(args, fmt);
	if (caught.buf)
		vsnprintf(caught.buf, caught.len, fmt, args);
	else
		say(0, fmt, args);
	va_end(args);
	errno = saved_errno;
}

void msg_die_config(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	say(0, fmt, args);
	va_end(args);
	for (;;)
		sys._exit(EXIT_CONFIG);
}

void msg_line(enum msg_category category, const char *fmt, ...)
{
	int saved_errno = errno;
	va_list args;

	va_start(args, fmt);
	say(category, fmt, args);
	va_end(args);
	errno = saved_errno;
}

extern const char *strerrorname_np(int err) __attribute__((weak));

const char *msg_errno_name(int err)
{
	const char *name = strerrorname_np ? strerrorname_np(err) : NULL;

	return name ? name : strerror(err);
}
