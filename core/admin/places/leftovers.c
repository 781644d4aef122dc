/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Temporary files: a copy gets its name when it is whole.
 */
#include "core/admin/places/leftovers.h"

#include "core/base/io.h"
#include "core/store/dirs.h"

#define AGE_S 86400

struct leftovers {
	struct plfs_drain *d;
	bool in_hostdir;
};

static bool is_old(int fd, const char *name)
{
	struct timespec now;
	struct stat st;

	sys.clock_gettime(CLOCK_REALTIME, &now);
	return !sys.fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode) &&
	       now.tv_sec - st.st_mtim.tv_sec > AGE_S;
}

static int look(void *arg, int fd, const char *name, unsigned char type)
{
	struct leftovers *l = arg;
	int dir;

	(void)type;
	if (!l->in_hostdir) {
		dir = strncmp(name, "hostdir.", 8) ? -1 : dirs_open(fd, name);
		if (dir < 0)
			return 0;
		l->in_hostdir = true;
		dirs_list(dir, look, l);
		l->in_hostdir = false;
		io_close(dir);
	} else if ((!strncmp(name, "data.", 5) || !strncmp(name, "parity.", 7)) && strstr(name, ".tmp.") &&
		   is_old(fd, name)) {
		l->d->nr_orphans++;
		l->d->nr_left += !l->d->dry && sys.unlinkat(fd, name, 0);
	}
	return 0;
}

void leftovers_remove(int dir, const char *name, struct plfs_drain *d)
{
	struct leftovers l = { .d = d };
	int fd = dirs_open(dir, name);

	if (fd < 0)
		return;
	dirs_list(fd, look, &l);
	io_close(fd);
}
