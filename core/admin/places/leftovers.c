/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Temporary files: a copy gets its name when it is whole.
 */
#include "core/admin/places/leftovers.h"

#include "core/admin/places/hostdirs.h"
#include "core/admin/places/mend.h"
#include "core/backend/place.h"
#include "core/base/sys.h"

#include <stdio.h>

#define AGE_S 86400

static bool is_old(int fd, const char *name)
{
	struct timespec now;
	struct stat st;

	sys.clock_gettime(CLOCK_REALTIME, &now);
	return !sys.fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode) &&
	       now.tv_sec - st.st_mtim.tv_sec > AGE_S;
}

struct leftovers {
	struct plfs_drain *d;
	char path[CONTAINER_PATH_LEN + PLACE_PATH_LEN]; /* of the container */
};

static int look(void *arg, int fd, const char *name, unsigned char type)
{
	struct leftovers *l = arg;

	(void)type;
	if ((!strncmp(name, "data.", 5) || !strncmp(name, "parity.", 7)) && strstr(name, ".tmp.") &&
	    is_old(fd, name))
		drain_count_orphan(l->d, l->path, name, !l->d->dry && sys.unlinkat(fd, name, 0) ? -errno : 0);
	return 0;
}

void leftovers_remove(int dir, const char *name, const char *top, struct plfs_drain *d)
{
	struct leftovers l = { .d = d };

	snprintf(l.path, sizeof(l.path), "%s/%.2s/%s", top, name, name);
	hostdirs_each(dir, name, look, &l);
}
