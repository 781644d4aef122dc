/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Looking for a place with the eyes of one who is about to give it up.
 */
#include "core/backend/place_lost.h"

#include "core/base/io.h"
#include "core/base/sys.h"

#include <stdio.h>

static bool is_missing(int ret) { return ret == -ENOENT || ret == -ENOTDIR; }

/* Whether the user's directory, NEAR/plfs.UID, can be looked at, and is one that counts. */
static int look_at_user(const struct place *p)
{
	char user[PLACE_PATH_LEN];
	struct stat st;
	unsigned uid;

	snprintf(user, sizeof(user), "%.*s", (int)(strrchr(p->path, '/') - p->path), p->path);
	if (sscanf(user + place_near_len(p->path), "/plfs.%u", &uid) != 1)
		return -ENOENT;
	if (sys.fstatat(AT_FDCWD, user, &st, AT_SYMLINK_NOFOLLOW))
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	return st.st_uid != uid || st.st_mode & (S_IWGRP | S_IWOTH) ? -EPERM : 0;
}

/* Its file there is that, which leads there from @p: -EBUSY; -ENOENT: there is none, or another. */
static int look_at_file(const struct place *p, const char *dir, const char *file)
{
	char path[PLACE_PATH_LEN + STORE_PATH_LEN];
	uint8_t raw[PLACE_LEN];
	struct place there;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/%s/%s", p->path, strchr(dir, '/') + 1, file);
	fd = sys_fd_hide_briefly(io_open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
	if (fd < 0)
		return -errno;
	n = io_pread_all(fd, raw, sizeof(raw), 0);
	sys_fd_close(&fd);
	if (n < 0)
		return (int)n;
	if (n < PLACE_LEN || place_decode(&there, raw) || memcmp(there.token, p->token, sizeof(p->token)))
		return -ENOENT;
	return -EBUSY;
}

int place_is_lost(struct store *home, const char *dir, const char *file)
{
	struct place_dir there;
	struct place p;
	int ret = place_read_as(home, dir, file, &p);

	if (ret)
		return ret == -EBADMSG ? 0 : ret;
	ret = place_enter_as(home, dir, file, &there, false);
	if (!ret) {
		place_leave(&there);
		return -EBUSY;
	}
	if (ret != -EREMOTE)
		return ret;
	ret = look_at_user(&p);
	ret = ret ? ret : look_at_file(&p, dir, file);
	return is_missing(ret) ? 0 : ret;
}
