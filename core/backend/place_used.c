/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How much of a place is used.
 */
#include "core/backend/place.h"

#include "core/base/io.h"
#include "core/base/sys.h"
#include "core/store/dirs.h"

struct used_arg {
	uint64_t bytes;
	int depth;
};

static int add_used(void *arg, int fd, const char *name, unsigned char type)
{
	struct used_arg *ua = arg;
	struct dirs_sum sum = { 0 };
	int dir;

	(void)type;
	if (ua->depth == 2) { /* a container */
		if (!dirs_measure(fd, name, &sum))
			ua->bytes += sum.bytes;
		return 0;
	}
	dir = dirs_open(fd, name);
	if (dir < 0)
		return 0;
	ua->depth++;
	dirs_list(dir, add_used, ua);
	ua->depth--;
	io_close(dir);
	return 0;
}

uint64_t place_used(const struct place_settings *ps)
{
	struct used_arg ua = { 0 };
	int fd = place_open_user(ps), dir;

	if (fd < 0)
		return fd == -ENOENT ? 0 : UINT64_MAX;
	dir = dirs_open(fd, ".");
	sys_fd_close(&fd);
	if (dir < 0)
		return UINT64_MAX;
	dirs_list(dir, add_used, &ua);
	io_close(dir);
	return ua.bytes;
}
