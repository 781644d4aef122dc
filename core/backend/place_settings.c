/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Paths of places.
 */
#include "core/backend/place_settings.h"

#include <stdio.h>
#include <unistd.h>

void place_user_path(const struct place_settings *ps, uid_t uid, char *path)
{
	snprintf(path, PLACE_PATH_LEN, "%s/plfs.%u", ps->near, (unsigned)uid);
}

int place_top_path(const struct place_settings *ps, char *path)
{
	int n = snprintf(path, PLACE_PATH_LEN, "%s/plfs.%u/%s", ps->near, (unsigned)geteuid(),
			 ps->backend_id);

	return n < PLACE_PATH_LEN ? 0 : -ENAMETOOLONG;
}

void place_settings_init(struct place_settings *ps)
{
	snprintf(ps->backend_id, sizeof(ps->backend_id), "%016llx",
		 (unsigned long long)store_path_id(ps->home));
}
