/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The age of a tree is that of its newest file.
 */
#include "core/admin/places/young.h"

#include "core/base/sys.h"
#include "core/base/io.h"
#include "core/store/dirs.h"

struct looking {
	uint64_t after_ns; /* what has changed since is young */
};

static int look(void *arg, int fd, const char *name, unsigned char type)
{
	struct looking *l = arg;
	struct stat st;
	int dir, ret;

	(void)type;
	if (sys.fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? 0 : -errno;
	if (dirs_changed_ns(&st) > l->after_ns)
		return 1;
	if (!S_ISDIR(st.st_mode))
		return 0;
	dir = dirs_open(fd, name);
	if (dir < 0)
		return dir;
	ret = dirs_list(dir, look, l);
	io_close(dir);
	return ret;
}

bool young_tree(int dir, const char *name, uint64_t age_ns)
{
	struct looking l = { .after_ns = 0 };
	struct timespec now;
	uint64_t now_ns;

	if (!age_ns)
		return false;
	sys.clock_gettime(CLOCK_REALTIME, &now);
	now_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	l.after_ns = now_ns - (age_ns < now_ns ? age_ns : now_ns);
	return look(&l, dir, name, 0) != 0;
}
