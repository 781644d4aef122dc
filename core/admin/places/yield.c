/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who writes is seen by the time of a log that has a live file.
 */
#include "core/admin/places/yield.h"

#include "core/admin/places/hostdirs.h"
#include "core/backend/container.h"
#include "core/backend/names.h"
#include "core/base/io.h"
#include "core/store/dirs.h"

#include <stdio.h>
#include <sys/statvfs.h>

#define LOOK_NS 50000000
#define LOOKS_PART 10 /* looking takes at most so small a part of the time */
#define JUST_NOW_NS 300000000
#define NEARLY_FULL 8 /* an eighth is left */

static uint64_t time_ns(clockid_t clock)
{
	struct timespec now;

	sys.clock_gettime(clock, &now);
	return dirs_time_ns(&now);
}

struct look {
	uint64_t now_ns;
	bool busy;
};

/* Whether the live file is that of a log which was written just now. */
static int is_written(void *arg, int fd, const char *name, unsigned char type)
{
	char live[CONTAINER_PATH_LEN], log[CONTAINER_PATH_LEN];
	struct look *l = arg;
	struct stat st;

	(void)type;
	if (name_kind(name) != DROPPING_LIVE)
		return 0;
	if (snprintf(live, sizeof(live), "./%s", name) >= (int)sizeof(live))
		return 0;
	name_log_of_live(live, log);
	l->busy = !sys.fstatat(fd, log, &st, AT_SYMLINK_NOFOLLOW) &&
		  dirs_time_ns(&st.st_mtim) + JUST_NOW_NS > l->now_ns;
	return l->busy;
}

static int look_in_container(void *arg, int fd, const char *name, unsigned char type)
{
	struct look *l = arg;

	(void)type;
	hostdirs_each(fd, name, is_written, l);
	return l->busy;
}

static int look_in_dir(void *arg, int fd, const char *name, unsigned char type)
{
	struct look *l = arg;
	int dir = dirs_open(fd, name);

	(void)type;
	if (dir < 0) /* the file "home" */
		return 0;
	dirs_list(dir, look_in_container, l);
	io_close(dir);
	return l->busy;
}

static bool is_busy(int place)
{
	struct look l = { .now_ns = time_ns(CLOCK_REALTIME) };
	int own = dirs_open(place, "."); /* the drain is in the middle of a list of it */

	if (own < 0)
		return false;
	dirs_list(own, look_in_dir, &l);
	io_close(own);
	return l.busy;
}

static bool is_nearly_full(int place)
{
	struct statvfs fs;

	return sys.fstatvfs(place, &fs) || fs.f_bavail < fs.f_blocks / NEARLY_FULL;
}

/* A look goes through all of the place, which may have thousands of logs. */
void yield_to_writers(const struct plfs_drain *d)
{
	const struct timespec pause = { .tv_nsec = LOOK_NS };
	uint64_t began_ns = time_ns(CLOCK_MONOTONIC), now_ns = began_ns, took_ns;
	struct plfs_yield *y = d->yield;

	if (!y || now_ns < y->free_until_ns)
		return;
	while (is_busy(y->place) && !is_nearly_full(y->place)) {
		if (now_ns - began_ns >= y->most_ns) {
			y->free_until_ns = now_ns + y->most_ns;
			return;
		}
		io_nanosleep(&pause, NULL);
		now_ns = time_ns(CLOCK_MONOTONIC);
	}
	took_ns = time_ns(CLOCK_MONOTONIC) - now_ns;
	y->free_until_ns = now_ns + max_u64(LOOK_NS, LOOKS_PART * took_ns);
}
