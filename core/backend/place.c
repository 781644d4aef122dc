/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finding a place, and a hostdir in it.
 */
#include "core/backend/place.h"

#include "core/backend/names.h"
#include "core/backend/near_file.h"
#include "core/backend/origin.h"
#include "core/base/io.h"

#include <stdio.h>

int place_read_as(struct store *home, const char *dir, const char *file, struct place *p)
{
	uint8_t raw[PLACE_LEN];

	return near_file_read(home, dir, file, raw, p);
}

int place_read(struct store *home, const char *dir, const char *host, size_t host_len, struct place *p)
{
	char file[STORE_PATH_LEN];

	return place_read_as(home, dir, near_file_name(file, host, host_len), p);
}

int place_open_user_at(const char *path, uid_t uid)
{
	int fd = sys_fd_hide_briefly(io_open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)), ret = 0;
	struct stat st;

	if (fd < 0)
		return -errno;
	if (sys.fstat(fd, &st))
		ret = -errno;
	else if (st.st_uid != uid || st.st_mode & (S_IWGRP | S_IWOTH))
		ret = -EPERM;
	if (!ret)
		return fd;
	sys_fd_close(&fd);
	return ret;
}

int place_enter_below(struct store *home, int fd, const char *path, struct place_dir *near)
{
	near->store = store_bare(home);
	near->store.root = fd;
	near->lock = -1;
	near->slot = 0;
	near->store.root = store_open(&near->store, path, O_RDONLY | O_DIRECTORY | STORE_BRIEFLY, 0);
	sys_fd_close(&fd);
	return near->store.root < 0 ? near->store.root : 0;
}

/* NEAR/plfs.UID of NEAR/plfs.UID/BACKEND-ID; *@id: the rest. */
static int open_user_of(const char *path, const char **id)
{
	char user[PLACE_PATH_LEN];
	const char *slash = strrchr(path, '/'), *name;
	unsigned uid;

	if (*path != '/' || !slash || slash == path)
		return -EIO;
	snprintf(user, sizeof(user), "%.*s", (int)(slash - path), path);
	*id = slash + 1;
	name = strrchr(user, '/');
	return sscanf(name, "/plfs.%u", &uid) == 1 ? place_open_user_at(user, uid) : -EIO;
}

int place_open_top(struct store *home, const char *top, const char *dir, struct place_dir *near)
{
	char path[STORE_PATH_LEN];
	const char *id;
	int fd = open_user_of(top, &id);

	if (fd < 0)
		return fd;
	if (snprintf(path, sizeof(path), "%s/%s", id, place_below(dir)) < (int)sizeof(path))
		return place_enter_below(home, fd, path, near);
	sys_fd_close(&fd);
	return -ENAMETOOLONG;
}

/* What says that there is no such place here, or none that works; all else is an error that may pass. */
static int elsewhere(int ret)
{
	switch (-ret) {
	case ENOENT:
	case ELOOP:
	case EPERM:
	case EACCES:
		return -EREMOTE;
	default:
		return io_is_fault(-ret) ? -EREMOTE : ret;
	}
}

/*
 * What the bytes @raw of the file @path at home led to is not there. -ENOENT: the file has gone by now;
 * -EAGAIN: it has other bytes; -EREMOTE.
 */
static __attribute__((noinline, cold)) int look_again(struct store *home, const char *path,
						      const uint8_t *raw)
{
	uint8_t now[PLACE_LEN];
	int ret = near_file_raw(home, path, now);

	return ret == -ENOENT ? ret : ret || !memcmp(raw, now, PLACE_LEN) ? -EREMOTE : -EAGAIN;
}

/* One attempt. -EAGAIN: as above. */
static int try_enter(struct store *home, const char *dir, const char *file, struct place_dir *near, bool top)
{
	uint8_t raw[PLACE_LEN], there[PLACE_LEN];
	char path[STORE_PATH_LEN], name[STORE_PATH_LEN];
	struct place p;
	const char *id = "";
	int fd, ret = near_file_read(home, dir, file, raw, &p);

	if (ret)
		return ret == -EBADMSG ? -EREMOTE : ret;
	fd = open_user_of(p.path, &id);
	if (fd < 0)
		return elsewhere(fd);
	near_file_path(name, dir, file);
	if (origin_is_other(home, fd, id, name, raw, sizeof(raw))) {
		sys_fd_close(&fd);
		return look_again(home, name, raw);
	}
	if (top)
		snprintf(path, sizeof(path), "%s", id);
	else
		snprintf(path, sizeof(path), "%s/%s", id, place_below(dir));
	ret = place_enter_below(home, fd, path, near);
	if (!ret) {
		near->slot = name_spread_slot(file);
		near->features = p.features;
		ret = near_file_path(path, top ? place_below(dir) : ".", file);
		if (!ret)
			ret = near_file_raw(&near->store, path, there);
		if (!ret && !memcmp(raw, there, PLACE_LEN))
			return 0;
		place_leave(near);
		ret = ret ? ret : -EREMOTE;
	}
	ret = elsewhere(ret);
	return ret == -EREMOTE ? look_again(home, name, raw) : ret;
}

#define ENTER_TRIES 10 /* while others remove it and make it anew */

/* What leads there goes with the last log, first at home: so what is missing then is at home. */
int place_enter_as(struct store *home, const char *dir, const char *file, struct place_dir *near, bool top)
{
	int ret = -EAGAIN;

	for (int tries = 0; ret == -EAGAIN && tries < ENTER_TRIES; tries++)
		ret = try_enter(home, dir, file, near, top);
	return ret == -EAGAIN ? -EREMOTE : ret;
}

int place_enter(struct store *home, const char *dir, const char *host, size_t host_len,
		struct place_dir *near)
{
	char file[STORE_PATH_LEN];

	return place_enter_as(home, dir, near_file_name(file, host, host_len), near, false);
}

int place_enter_top(struct store *home, const char *dir, const char *host, size_t host_len,
		    struct place_dir *near)
{
	char file[STORE_PATH_LEN];

	return place_enter_as(home, dir, near_file_name(file, host, host_len), near, true);
}

void place_leave(struct place_dir *near)
{
	if (near->lock >= 0)
		store_close(&near->store, &near->lock);
	store_close(&near->store, &near->store.root);
}
