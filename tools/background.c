/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The helper: leaving the program that started it, the lock, and when to look, to wait and to end.
 */
#include "background.h"

#include "places.h"
#include "tool.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

#define LOCK_FD 3
#define FILE_NAME "helper" /* core/backend/helper.h */
#define TEXT_MAX 65536     /* of that file */
#define NICE 10            /* as much as that a rank that polls on the same core leaves a tenth of it */
#define LOOK_MS 200
#define IDLE_MS 1000       /* so long nothing to do: the end */
#define BACK_OFF_MS 500    /* after a failure, twice that after the next */
#define YIELD_S 10         /* it waits so long for ranks that write */

struct background {
	const char *top;
	struct plfs_mount *m;
	int lock;         /* descriptor */
	char why[512];    /* the last trouble */
	uint64_t nr_dead; /* logs of killed processes that were tried */
	unsigned patience_ms;
	uint64_t rate;    /* bytes a second; 0: no limit */
	unsigned writers; /* processes that copy at a time; 0: as the mapping says */
	struct plfs_yield yield;
};

/* ---- the process ---- */

static void open_null(int fd)
{
	int null = open("/dev/null", O_RDWR);

	if (null >= 0 && null != fd) {
		dup2(null, fd);
		close(null);
	}
}

/* Nothing of who started it: descriptors, terminal, directory, limits, core. */
void background_detach(void)
{
	struct rlimit lim;
	cpu_set_t all;

	for (int fd = 0; fd < LOCK_FD; fd++)
		open_null(fd);
	if (syscall(SYS_close_range, LOCK_FD + 1, ~0U, 0))
		for (int fd = LOCK_FD + 1; fd < 65536; fd++)
			close(fd);
	setsid();
	if (chdir("/"))
		_exit(DRAIN_LEFT);
	signal(SIGXFSZ, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	if (!getrlimit(RLIMIT_FSIZE, &lim)) {
		lim.rlim_cur = lim.rlim_max;
		setrlimit(RLIMIT_FSIZE, &lim);
	}
	/* The kernel takes those that the batch system allows; the scheduler finds the free one. */
	memset(&all, 0xff, sizeof(all));
	sched_setaffinity(0, sizeof(all), &all);
	setpriority(PRIO_PROCESS, 0, NICE);
	syscall(SYS_ioprio_set, 1 /* IOPRIO_WHO_PROCESS */, 0, 2 << 13 | 7); /* best effort, the last of it */
}

void background_sleep(unsigned ms)
{
	struct timespec ts = { .tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000 };

	while (nanosleep(&ts, &ts) && errno == EINTR)
		;
}

/* ---- the lock ---- */

static bool set_lock(const struct background *b, short type)
{
	struct flock lk = { .l_type = type, .l_whence = SEEK_SET, .l_len = 1 };

	return !fcntl(b->lock, F_OFD_SETLK, &lk);
}

/* Who starts a helper has the lock already, and leaves it to this process with the descriptor. */
static bool open_lock(struct background *b)
{
	char path[PATH_MAX + sizeof(FILE_NAME) + 1];
	struct stat st, given;

	snprintf(path, sizeof(path), "%s/" FILE_NAME, b->top);
	if (lstat(path, &st) || !S_ISREG(st.st_mode) || fstat(LOCK_FD, &given) || st.st_ino != given.st_ino ||
	    st.st_dev != given.st_dev) {
		int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0600);

		if (fd < 0)
			return false;
		if (fd != LOCK_FD) {
			dup2(fd, LOCK_FD);
			close(fd);
		}
	}
	fcntl(LOCK_FD, F_SETFD, FD_CLOEXEC);
	b->lock = LOCK_FD;
	return set_lock(b, F_WRLCK);
}

/* A line to the file, which is emptied before it gets long. */
static void note_end(const struct background *b, const char *text)
{
	struct stat st;
	time_t now = time(NULL);
	char when[32] = "", line[600];
	struct tm tm;
	int n;

	if (localtime_r(&now, &tm))
		strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%S", &tm);
	n = snprintf(line, sizeof(line), "%s %s\n", when, text);
	if (fstat(b->lock, &st) || (st.st_size > TEXT_MAX && ftruncate(b->lock, 0)))
		return;
	n = n < (int)sizeof(line) ? n : (int)sizeof(line) - 1;
	if (pwrite(b->lock, line, (size_t)n, st.st_size > TEXT_MAX ? 0 : st.st_size) < 0)
		return; /* the place is full: the next drain says why */
}

/* ---- looking ---- */

static void trouble(void *arg, const char *path, const char *why)
{
	struct background *b = arg;

	snprintf(b->why, sizeof(b->why), "%s: %s", path, why);
}

/* One pass. Logs of processes that were killed need the whole backend: once, for each number of them. */
static int look(struct background *b, struct plfs_drain *d)
{
	uint64_t nr_dead;
	int ret;

	*d = (struct plfs_drain){ .closed_only = true, .trouble = trouble, .arg = b,
				  .rate = b->rate, .writers = b->writers, .yield = &b->yield };
	ret = plfs_drain_place(b->m, b->top, false, d);
	nr_dead = d->nr_dead;
	if (ret || d->nr_logs || nr_dead <= b->nr_dead) {
		b->nr_dead = min_u64(b->nr_dead, nr_dead);
		return ret;
	}
	b->nr_dead = nr_dead;
	d->closed_only = false;
	d->nr_left = 0;
	ret = plfs_drain_place(b->m, b->top, false, d);
	d->nr_left = 0; /* logs that others write are not this process's */
	return ret;
}

/* Whether somebody has removed the place: there is nothing to do, and nothing to note. */
static bool is_gone(const struct background *b)
{
	struct stat st;

	return fstat(b->lock, &st) || !st.st_nlink;
}

/* Until nothing was there for a while: true; or nothing moves: false. */
static bool work(struct background *b)
{
	unsigned idle_ms = 0, failed_ms = 0, wait_ms = BACK_OFF_MS;
	struct plfs_drain d;

	while (idle_ms < IDLE_MS && failed_ms < b->patience_ms) {
		int ret = look(b, &d);

		if (is_gone(b))
			return true;
		if (d.nr_logs) {
			idle_ms = failed_ms = 0;
			wait_ms = BACK_OFF_MS;
		} else if (d.nr_lost) {
			return false; /* it would be read again and again */
		} else if (ret || d.nr_left) {
			if (!*b->why)
				snprintf(b->why, sizeof(b->why), "%s: %s", plfs_backend(b->m),
					 strerror(-ret));
			background_sleep(wait_ms);
			failed_ms += wait_ms;
			wait_ms *= 2;
		} else {
			*b->why = '\0';
			background_sleep(LOOK_MS);
			idle_ms += LOOK_MS;
			failed_ms = 0;
		}
	}
	return idle_ms >= IDLE_MS;
}

static int drain(struct background *b)
{
	struct plfs_drain d;

	if (!ftruncate(b->lock, 0)) /* what an earlier one had to say */
		*b->why = '\0';
	while (work(b)) {
		/* Who closed a log while the lock was held relies on this look. */
		set_lock(b, F_UNLCK);
		d = (struct plfs_drain){ .closed_only = true, .rate = b->rate, .writers = b->writers,
					 .yield = &b->yield };
		plfs_drain_place(b->m, b->top, false, &d);
		if (!d.nr_logs && !d.nr_left)
			return TOOL_OK;
		if (!set_lock(b, F_WRLCK)) /* another has begun meanwhile */
			return TOOL_OK;
	}
	note_end(b, b->why);
	return DRAIN_LEFT;
}

/* ---- finding the backend ---- */

static int take_top(void *arg, struct top *top, struct plfs_mount *m)
{
	struct background *b = arg;

	if (!strcmp(top->path, b->top) && !plfs_place_is_shared(top->path))
		b->m = m;
	return 0;
}

static int no_file(void *arg, const char *name, const char *path, struct plfs_mount *m)
{
	(void)arg, (void)name, (void)path, (void)m;
	return -EINVAL;
}

int background_drain(const char *top, unsigned patience_s, const struct plfs_drain *limits)
{
	struct background b = { .top = top, .patience_ms = patience_s * 1000,
				.rate = limits->rate, .writers = limits->writers,
				.yield = { .most_ns = YIELD_S * 1000000000ULL } };
	char near[PATH_MAX], *slash = NULL;
	char *names[] = { near };
	struct places p = { .names = names, .nr = 1, .top = take_top, .file = no_file, .arg = &b };

	background_detach();
	if (!open_lock(&b))
		return TOOL_OK; /* another does it */
	snprintf(near, sizeof(near), "%s", top);
	for (int i = 0; i < 2; i++) {
		slash = strrchr(near, '/');
		if (slash)
			*slash = '\0';
	}
	if (slash)
		places_each(&p);
	if (b.m)
		return drain(&b);
	note_end(&b, "the backend is not there, or is another");
	return DRAIN_LEFT;
}
