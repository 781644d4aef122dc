/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Locks on bytes of "home" in the place, which nothing else locks: byte N for the matter N.
 */
#include "core/backend/place_turn.h"

#include "core/backend/origin.h"
#include "core/backend/place.h"
#include "core/base/io.h"

#include <stdio.h>

static int open_home(const struct place_settings *ps)
{
	char path[sizeof(ps->backend_id) + sizeof(ORIGIN_HOME) + 1];
	int dir = place_open_user(ps), fd;

	if (dir < 0)
		return dir;
	snprintf(path, sizeof(path), "%s/" ORIGIN_HOME, ps->backend_id);
	fd = io_openat(dir, path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0);
	fd = sys_fd_hide_briefly(fd < 0 ? -errno : fd);
	sys_fd_close(&dir);
	return fd;
}

static int wait_for(int fd, uint64_t number)
{
	struct flock lk = { .l_type = F_WRLCK, .l_start = (off_t)(number & INT64_MAX >> 1), .l_len = 1 };
	int ret;

	do {
		ret = io_fcntl(fd, F_OFD_SETLKW, &lk);
	} while (ret < 0 && errno == EINTR);
	return ret < 0 ? -errno : 0;
}

int place_turn_take(struct store *home, uint64_t number)
{
	int fd, ret;

	if (!home->near)
		return -EOPNOTSUPP;
	fd = open_home(home->near);
	if (fd < 0)
		return fd;
	ret = wait_for(fd, number);
	if (!ret)
		return fd;
	sys_fd_close(&fd);
	return ret;
}

/* A child that was forked meanwhile has the descriptor too. */
void place_turn_end(int *fd)
{
	struct flock lk = { .l_type = F_UNLCK };

	if (*fd < 0)
		return;
	io_fcntl(*fd, F_OFD_SETLK, &lk);
	sys_fd_close(fd);
}
