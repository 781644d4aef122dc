/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Putting on stable storage what is in a place, where it is (sync=near), or in another backend (spread.h).
 */
#include "core/backend/place.h"

#include "core/backend/names.h"
#include "core/backend/way.h"

#include <stdio.h>

int place_sync_file(struct store *home, const char *path)
{
	const char *slash = strrchr(path, '/'), *host;
	char dir[STORE_PATH_LEN];
	struct place_dir near;
	size_t len;
	int ret;

	host = slash ? name_host(slash + 1, &len) : NULL;
	if (!host || slash - path >= (ptrdiff_t)sizeof(dir))
		return -ENOENT;
	snprintf(dir, sizeof(dir), "%.*s", (int)(slash - path), path);
	ret = place_enter(home, dir, host, len, &near);
	if (ret)
		return ret;
	ret = store_sync_path(&near.store, slash + 1, false);
	place_leave(&near);
	return ret;
}

int place_sync_names_as(struct store *home, const char *dir, const char *file)
{
	char path[STORE_PATH_LEN];
	struct place_dir top;
	struct place p;
	int ret = place_read_as(home, dir, file, &p);

	if (ret)
		return ret == -EBADMSG ? -EREMOTE : ret;
	if (snprintf(path, sizeof(path), "%s/%s", dir, file) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	ret = place_enter_as(home, dir, file, &top, true);
	if (ret)
		return ret;
	ret = store_sync_path(&top.store, strchr(path, '/') + 1, false);
	if (!ret)
		ret = store_sync_parents(&top.store, strchr(path, '/') + 1);
	place_leave(&top);
	if (!ret)
		ret = way_sync_above(p.path);
	return ret ? ret : store_sync_path(home, path, false);
}

int place_sync_names(struct store *home, const char *dir, const char *host, size_t host_len)
{
	char file[STORE_PATH_LEN];

	snprintf(file, sizeof(file), "near.%.*s", (int)host_len, host);
	return place_sync_names_as(home, dir, file);
}
