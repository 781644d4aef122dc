/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waiting for the container's lock file, see end_wait.h.
 */
#include "core/file/end_wait.h"

#include "core/backend/container_dirs.h"
#include "core/backend/host.h"
#include "core/backend/names.h"
#include "core/base/io.h"
#include "core/base/msg.h"
#include "core/base/stamp.h"

#include <stdio.h>

#define PAUSE_MIN_NS 50000 /* an append takes less */
#define PAUSE_MAX_NS 4000000

unsigned plfs_end_patience_ms = 10000; /* longer than most of them take */

/* ---- who it is ---- */

static bool is_stopped(uint32_t pid)
{
	char path[64], text[512];
	const char *state;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	fd = io_open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = io_pread_all(fd, text, sizeof(text) - 1, 0);
	io_close(fd);
	text[n > 0 ? n : 0] = '\0';
	state = strrchr(text, ')');
	return state && state[1] == ' ' && (state[2] == 'T' || state[2] == 't');
}

/* 1: its process is the stopped one. */
static int find_stopped(void *arg, const char *path, const char *name, enum dropping_kind kind)
{
	uint32_t *pid = arg, seq;

	(void)path;
	if (kind != DROPPING_LIVE || !name_is_our_live(name))
		return 0;
	name_log_numbers(name, pid, &seq);
	return is_stopped(*pid);
}

/* The name takes 4 KiB of the stack. */
static __attribute__((noinline, cold)) void tell(const struct container *c, int fd)
{
	char name[PATH_MAX];
	const char *file = fd < 0 ? c->dir : stub_name(fd, name, sizeof(name));
	uint32_t pid = 0;

	if (container_list_there(c, find_stopped, &pid) == 1)
		msg_error(
			"%s: process %u on host %s is stopped while it appends or truncates, and others wait for it: let it go on (kill -CONT %u), or end it",
			file, pid, host_name(), pid);
	else
		msg_error(
			"%s: an append or a truncation waits for another process, on this or another host: if that is stopped (plfs watch shows it), let it go on, or end it",
			file);
}

/* ---- the wait ---- */

int end_wait(const struct container *c, int h, int fd)
{
	struct timespec pause = { .tv_nsec = PAUSE_MIN_NS };
	int ret = store_try_lock(c->store, h);
	uint64_t until_ns = 0;

	while (ret == -EBUSY) {
		if (!until_ns)
			until_ns = stamp_fine_ns() + plfs_end_patience_ms * 1000000ULL;
		io_nanosleep(&pause, NULL);
		pause.tv_nsec = pause.tv_nsec < PAUSE_MAX_NS ? 2 * pause.tv_nsec : PAUSE_MAX_NS;
		ret = store_try_lock(c->store, h);
		if (ret == -EBUSY && stamp_fine_ns() > until_ns) {
			tell(c, fd);
			return store_lock(c->store, h);
		}
	}
	return ret;
}
