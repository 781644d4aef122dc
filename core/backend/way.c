/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Directories outside of the backend by their paths, to sync them: no file in them is opened.
 */
#include "core/backend/way.h"

#include "core/backend/place_settings.h"
#include "core/base/io.h"
#include "core/base/sys.h"

#include <stdio.h>

static int sync_dir(const char *path)
{
	int fd = sys_fd_hide_briefly(io_open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)), ret;

	if (fd < 0)
		return -errno;
	ret = io_fsync(fd) ? -errno : 0;
	sys_fd_close(&fd);
	return ret;
}

/* A NEAR that may not be read is not this user's to make. */
int way_sync_above(const char *top)
{
	char path[PLACE_PATH_LEN];
	int ret = 0;

	snprintf(path, sizeof(path), "%s", top);
	for (int i = 0; i < 2 && !ret; i++) {
		char *slash = strrchr(path, '/');

		if (!slash || slash == path)
			return -EIO;
		*slash = '\0';
		ret = sync_dir(path);
		if (ret == -EACCES && i)
			ret = 0;
	}
	return ret;
}

int way_sync(const char *top, const char *below)
{
	char path[PLACE_PATH_LEN + STORE_PATH_LEN];
	int ret = 0;

	snprintf(path, sizeof(path), "%s/%s", top, below);
	while (!ret && strlen(path) >= strlen(top)) {
		ret = sync_dir(path);
		*strrchr(path, '/') = '\0';
	}
	return ret ? ret : way_sync_above(top);
}
