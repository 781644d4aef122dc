/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Temporary files: a copy gets its name when it is whole.
 */
#include "core/admin/places/leftovers.h"

#include "core/admin/places/hostdirs.h"
#include "core/base/sys.h"

#define AGE_S 86400

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
	struct plfs_drain *d = arg;

	(void)type;
	if ((!strncmp(name, "data.", 5) || !strncmp(name, "parity.", 7)) && strstr(name, ".tmp.") &&
	    is_old(fd, name)) {
		d->nr_orphans++;
		d->nr_left += !d->dry && sys.unlinkat(fd, name, 0);
	}
	return 0;
}

void leftovers_remove(int dir, const char *name, struct plfs_drain *d) { hostdirs_each(dir, name, look, d); }
