/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tokens as locks on bytes of a file.
 */
#include "core/admin/places/tokens.h"

#include "core/admin/places/pace.h"
#include "core/backend/container.h"
#include "core/base/as_owner.h"
#include "core/base/io.h"
#include "core/base/sys.h"

#include <stdio.h>
#include <time.h>

#define PAUSE_MS 10
#define PAUSE_MAX_MS 500

/* 0; -EAGAIN: another process has it; -errno. */
static int try_byte(int fd, unsigned i)
{
	struct flock lk = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = i, .l_len = 1 };

	if (!sys.fcntl(fd, F_OFD_SETLK, &lk))
		return 0;
	return errno == EACCES ? -EAGAIN : -errno;
}

/* The first of all, from one on that differs between processes. */
static int try_all(int fd, unsigned nr)
{
	unsigned begin = (unsigned)sys.getpid() % nr;
	int ret = -EAGAIN;

	for (unsigned i = 0; i < nr && ret == -EAGAIN; i++)
		ret = try_byte(fd, (begin + i) % nr);
	return ret;
}

static void pause_ms(unsigned ms)
{
	const struct timespec ts = { .tv_nsec = (long)ms * 1000000 };

	io_nanosleep(&ts, NULL);
}

static int open_file(struct store *s)
{
	char path[64];
	struct stat st;
	bool made;
	int h;

	snprintf(path, sizeof(path), PLFS_DIR_NAME "/drains.%u", (unsigned)as_owner_uid());
	h = store_open_or_make(s, path, O_RDWR | STORE_BRIEFLY, 0600, &made);
	if (h >= 0 && (s->ops->fstat(s, h, &st) || !store_may_write(&st)))
		store_close(s, &h);
	return h;
}

int token_take(struct store *s, unsigned writers, const struct plfs_drain *d)
{
	unsigned nr = d->writers ? d->writers : writers, ms = PAUSE_MS;
	int ret, h = nr ? open_file(s) : -1;

	if (h < 0)
		return -1;
	while ((ret = try_all(store_fd(s, h), nr)) == -EAGAIN) {
		if (pace_is_over(d)) {
			store_close(s, &h);
			return -ETIME;
		}
		pause_ms(ms);
		ms = ms * 2 < PAUSE_MAX_MS ? ms * 2 : PAUSE_MAX_MS;
	}
	if (ret) /* no locks here: nobody can be kept out */
		store_close(s, &h);
	return h;
}

void token_give(struct store *s, int token)
{
	if (token >= 0)
		store_close(s, &token);
}
