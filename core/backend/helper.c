/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Starting the helper. Between the two clones and the exec only system calls are made: the memory is the
 * program's own.
 */
#include "core/backend/helper.h"

#include "core/base/io.h"
#include "core/base/msg.h"
#include "core/base/sys.h"

#include <dlfcn.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define COMMAND "plfs"
#define STACK_LEN ((size_t)64 * 1024) /* of each of the two */
#define REPEAT_S 3600

static bool enabled;

void helper_enable(void) { enabled = true; }

/* ---- the command ---- */

static bool is_program(const char *path)
{
	struct stat st;

	return !sys.stat(path, &st) && S_ISREG(st.st_mode) && !sys.access(path, X_OK);
}

/* Beside the library, as built; in the bin directory of the installation that it lies in. */
static bool find_beside(char *out)
{
	static const char *const places[] = { "", "../bin/", "../../bin/" };
	char self[PATH_MAX];
	Dl_info info;
	char *slash;

	if (!dladdr((void *)helper_enable, &info) || !info.dli_fname || !sys.realpath(info.dli_fname, self))
		return false;
	slash = strrchr(self, '/');
	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		if (snprintf(out, PATH_MAX, "%.*s/%s" COMMAND, (int)(slash - self), self, places[i]) <
			    PATH_MAX &&
		    is_program(out))
			return true;
	return false;
}

static bool find_command(char *out)
{
	const char *dirs = getenv("PATH");

	if (find_beside(out))
		return true;
	for (; dirs && *dirs; dirs += *dirs == ':') {
		size_t len = strcspn(dirs, ":");

		if (*dirs == '/' && snprintf(out, PATH_MAX, "%.*s/" COMMAND, (int)len, dirs) < PATH_MAX &&
		    is_program(out))
			return true;
		dirs += len;
	}
	return false;
}

/* ---- the two processes ---- */

struct start {
	char command[PATH_MAX], top[PATH_MAX];
	const char *map; /* of the backend @top, for copies of its logs; NULL: it is a place */
	char rate[32], writers[32]; /* the options; empty: none */
	int lock;      /* descriptor */
	char *stack;   /* of the second */
	int error;     /* errno of what failed; 0: the helper runs */
};

/* In the helper, which has descriptors and signals of its own, and the program's memory. */
static int become_helper(void *arg)
{
	struct start *s = arg;
	/* the kernel's struct sigaction: glibc's call refuses the two signals of its own */
	static const unsigned long by_default[8];
	char *argv[] = { (char *)COMMAND, (char *)"drain", (char *)(s->map ? "--copies" : "--background"),
			 s->top, NULL, NULL, NULL, NULL, NULL };
	char *envp[] = { (char *)"PATH=/usr/local/bin:/usr/bin:/bin", (char *)"LC_ALL=C", NULL };
	sigset_t none;
	int argc = 4;
	long null;

	if (*s->rate)
		argv[argc++] = s->rate;
	if (*s->writers)
		argv[argc++] = s->writers;
	if (s->map) {
		argv[argc++] = (char *)"--map";
		argv[argc] = (char *)s->map;
	}
	sys.syscall(SYS_setsid);
	sys.syscall(SYS_dup3, s->lock, HELPER_LOCK_FD, 0);
	if (s->lock == HELPER_LOCK_FD)
		sys.syscall(SYS_fcntl, s->lock, F_SETFD, 0);
	for (int fd = 0; fd < HELPER_LOCK_FD; fd++)
		sys.syscall(SYS_close, fd);
	sys.syscall(SYS_close_range, HELPER_LOCK_FD + 1, ~0U, 0); /* an older kernel: the command does it */
	null = sys.syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR, 0);
	for (int fd = 1; null == 0 && fd < HELPER_LOCK_FD; fd++)
		sys.syscall(SYS_dup3, 0, fd, 0);
	sys.syscall(SYS_chdir, "/");
	for (int sig = 1; sig < NSIG; sig++)
		sys.syscall(SYS_rt_sigaction, sig, by_default, NULL, sizeof(unsigned long));
	sigemptyset(&none);
	sys.sigprocmask(SIG_SETMASK, &none, NULL);
	sys.syscall(SYS_execve, s->command, argv, envp);
	s->error = errno;
	return 127;
}

/* In the process between: the helper's parent ends at once, so that the program has no child. */
static int come_between(void *arg)
{
	struct start *s = arg;

	if (sys.clone(become_helper, s->stack + STACK_LEN, CLONE_VM | CLONE_VFORK, s) < 0)
		s->error = errno;
	return 0;
}

/* 0; an errno. Clones without a signal at their end: no SIGCHLD, and wait() does not see them. */
static int run(struct start *s)
{
	char *stacks = sys.mmap(NULL, 2 * STACK_LEN, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	sigset_t all, old;
	long pid;

	if (stacks == MAP_FAILED)
		return errno;
	s->stack = stacks + STACK_LEN;
	sigfillset(&all);
	sys.sigprocmask(SIG_SETMASK, &all, &old); /* no handler of the program's runs in them */
	pid = sys.clone(come_between, stacks + STACK_LEN, CLONE_VM | CLONE_VFORK, s);
	if (pid < 0)
		s->error = errno;
	else
		while (sys.syscall(SYS_wait4, pid, NULL, __WCLONE, NULL) < 0 && errno == EINTR)
			;
	sys.sigprocmask(SIG_SETMASK, &old, NULL);
	sys.munmap(stacks, 2 * STACK_LEN);
	return s->error;
}

/* ---- the lock ---- */

/* The file, locked; -EAGAIN: a helper runs; -errno. */
static int take_lock(const struct place_settings *ps)
{
	struct flock lk = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };
	char path[64];
	struct stat st;
	int dir = place_open_user(ps), fd, ret;

	if (dir < 0)
		return dir;
	snprintf(path, sizeof(path), "%s/" HELPER_FILE, ps->backend_id);
	fd = io_openat(dir, path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
	fd = sys_fd_hide(fd < 0 ? -errno : fd);
	sys_fd_close(&dir);
	if (fd < 0)
		return fd;
	ret = sys.fstat(fd, &st) ? -errno : !S_ISREG(st.st_mode) || st.st_nlink != 1 ? -EPERM : 0;
	if (!ret && sys.fcntl(fd, F_OFD_SETLK, &lk))
		ret = -errno;
	if (!ret)
		return fd;
	sys_fd_close(&fd);
	return ret;
}

/* One line: not from each of the host's processes, and not at each log. The lock is held. */
static void tell_none(const struct place_settings *ps, int fd, const char *why)
{
	char text[256], was[sizeof(text)] = "";
	struct stat st;
	struct timespec now;
	int len = snprintf(text, sizeof(text), "no helper can be started: %s\n", why);

	sys.clock_gettime(CLOCK_REALTIME, &now);
	if (io_pread_all(fd, was, sizeof(was) - 1, 0) == len && !strcmp(text, was) && !sys.fstat(fd, &st) &&
	    now.tv_sec - st.st_mtim.tv_sec < REPEAT_S)
		return;
	sys.ftruncate(fd, 0);
	io_pwrite_all(fd, text, (size_t)len, 0);
	msg_error("%s/plfs.%u: no helper can be started (%s): the logs there wait for plfs drain",
		  ps->near, (unsigned)geteuid(), why);
}

/* Have the command go on with the lock. NULL, or why not. */
static const char *start(struct start *s, const struct place_settings *ps)
{
	if (ps->rate)
		snprintf(s->rate, sizeof(s->rate), "--rate=%llu", (unsigned long long)ps->rate);
	if (ps->writers)
		snprintf(s->writers, sizeof(s->writers), "--writers=%u", ps->writers);
	if (sys.getpid() == 1)
		return "this is the first process of a container, which would be its parent";
	if (geteuid() != getuid())
		return "the process acts for another user";
	if (!find_command(s->command))
		return "no " COMMAND " beside the library, and none in PATH";
	return run(s) ? strerror(s->error) : NULL;
}

void helper_copy(struct store *home, int h, const struct place_settings *ps, const char *map)
{
	struct flock lk = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };
	int saved ERRNO_KEPT = errno;
	struct start s = { .error = 0, .map = map, .lock = store_fd(home, h) };
	static bool told;
	const char *why;

	if (!enabled || s.lock < 0 || sys.fcntl(s.lock, F_OFD_SETLK, &lk))
		return;
	snprintf(s.top, sizeof(s.top), "%s", ps->home);
	why = start(&s, ps);
	if (!why)
		return;
	lk.l_type = F_UNLCK;
	sys.fcntl(s.lock, F_OFD_SETLK, &lk);
	if (!__atomic_exchange_n(&told, true, __ATOMIC_RELAXED))
		msg_error("%s: no helper can be started (%s): logs get their copies by plfs drain",
			  ps->home, why);
}

bool helper_start(const struct place_settings *ps)
{
	int saved ERRNO_KEPT = errno;
	struct start s = { .error = 0 };
	const char *why;

	if (!enabled || ps->drain != DRAIN_HELPER)
		return false;
	s.lock = take_lock(ps);
	if (s.lock < 0) {
		if (s.lock != -EAGAIN && s.lock != -EACCES)
			msg_debug(MSG_WRITE, "no helper: %s", strerror(-s.lock));
		return s.lock == -EAGAIN || s.lock == -EACCES;
	}
	snprintf(s.top, sizeof(s.top), "%s/plfs.%u/%s", ps->near, (unsigned)geteuid(), ps->backend_id);
	why = start(&s, ps);
	if (why)
		tell_none(ps, s.lock, why);
	sys_fd_close(&s.lock);
	return !why;
}
