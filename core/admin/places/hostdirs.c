/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two levels of directories.
 */
#include "core/admin/places/hostdirs.h"

#include "core/base/io.h"
#include "core/store/dirs.h"

struct each {
	int (*fn)(void *arg, int fd, const char *name, unsigned char type);
	void *arg;
};

static int enter(void *arg, int fd, const char *name, unsigned char type)
{
	const struct each *e = arg;
	int dir = strncmp(name, "hostdir.", 8) ? -1 : dirs_open(fd, name), ret;

	(void)type;
	if (dir < 0)
		return 0;
	ret = dirs_list(dir, e->fn, e->arg);
	io_close(dir);
	return ret > 0; /* one that cannot be listed is passed over */
}

bool hostdirs_each(int dir, const char *name,
		   int (*fn)(void *arg, int fd, const char *name, unsigned char type), void *arg)
{
	struct each e = { .fn = fn, .arg = arg };
	int fd = dirs_open(dir, name);

	if (fd < 0)
		return false;
	dirs_list(fd, enter, &e);
	io_close(fd);
	return true;
}
