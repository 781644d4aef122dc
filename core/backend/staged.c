/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where staged copies are, and reading from them.
 */
#include "core/backend/staged.h"

#include "core/backend/container_dirs.h"
#include "core/backend/twin.h"
#include "core/base/io.h"
#include "core/base/sys.h"
#include "core/store/dirs.h"

#include <stdio.h>
#include <unistd.h>

#define DIR_MODE 0755

/* "BACKEND-ID/staged/REST" of ".plfs/REST", in plfs.UID. */
static int path_of(const struct store *s, const char *path, char *out)
{
	const char *rest = strchr(path, '/') + 1;
	int n = snprintf(out, STORE_PATH_LEN, "%s/" STAGED_DIR "/%s", s->near->backend_id, rest);

	return n < STORE_PATH_LEN ? 0 : -ENAMETOOLONG;
}

/* A store whose root is plfs.UID, which is this user's alone. */
static int enter_user(struct store *s, struct store *user)
{
	if (!s->near)
		return -EOPNOTSUPP;
	*user = *s;
	user->ops = s->under ? s->under : s->ops;
	user->under = NULL;
	user->near = NULL;
	user->root = place_open_user(s->near);
	return user->root < 0 ? user->root : 0;
}

/* One call where there is no copy. Whose the directory is, is looked at before it is believed. */
static int open_copy(struct store *s, const char *path)
{
	char rest[STORE_PATH_LEN], full[2 * PATH_MAX];
	struct store user;
	int ret = path_of(s, path, rest), h;

	if (ret)
		return ret;
	snprintf(full, sizeof(full), "%s/plfs.%u/%s", s->near->near, (unsigned)geteuid(), rest);
	if (sys.euidaccess(full, R_OK))
		return -errno;
	ret = enter_user(s, &user);
	if (ret)
		return ret;
	h = store_open(&user, rest, O_RDONLY, 0);
	store_close(&user, &user.root);
	return h;
}

static off_t size_of(struct store *s, int h)
{
	struct stat st;

	return s->under->fstat(s, h, &st) || !S_ISREG(st.st_mode) ? -1 : st.st_size;
}

int staged_use(struct store *s, const char *path, int home)
{
	int copy, both;

	if (likely(!s->near) || !s->under || twin_is(home))
		return home;
	copy = open_copy(s, path);
	if (copy < 0)
		return home;
	/* a log that is shorter was cut: by a repair, or a power failure */
	both = size_of(s, copy) <= size_of(s, home) ? twin_make_staged(copy, home) : -ESTALE;
	if (both < 0)
		s->under->close(s, &copy);
	return both < 0 ? home : both;
}

bool staged_find(struct store *s, const char *path, uint64_t *len)
{
	char rest[STORE_PATH_LEN];
	struct store user;
	struct stat st;
	int ret = path_of(s, path, rest);

	if (!ret)
		ret = enter_user(s, &user);
	if (ret)
		return false;
	ret = user.ops->stat(&user, rest, &st);
	store_close(&user, &user.root);
	*len = ret ? 0 : (uint64_t)st.st_size;
	return !ret;
}

int staged_enter(struct store *s, const char *dir, struct store *to)
{
	char path[STORE_PATH_LEN];
	struct store user;
	int ret = s->near ? path_of(s, dir, path) : -EOPNOTSUPP;

	if (!ret)
		ret = place_make_top(s);
	if (!ret)
		ret = enter_user(s, &user);
	if (ret)
		return ret;
	ret = store_make_dirs(&user, path, DIR_MODE);
	*to = user;
	if (!ret)
		to->root = store_open(&user, path, O_RDONLY | O_DIRECTORY | STORE_BRIEFLY, 0);
	store_close(&user, &user.root);
	return ret ? ret : to->root < 0 ? to->root : 0;
}

int staged_lock(struct store *s)
{
	struct flock lk = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };
	char path[64];
	struct store user;
	int fd, ret = place_make_top(s);

	if (!ret)
		ret = enter_user(s, &user);
	if (ret)
		return ret;
	snprintf(path, sizeof(path), "%s/" STAGED_DIR, s->near->backend_id);
	ret = store_make_dirs(&user, path, DIR_MODE);
	snprintf(path, sizeof(path), "%s/" STAGED_DIR "/lock", s->near->backend_id);
	fd = ret;
	if (!ret) {
		fd = io_openat(store_fd(&user, user.root), path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC,
			       0600);
		fd = sys_fd_hide_briefly(fd < 0 ? -errno : fd);
	}
	store_close(&user, &user.root);
	if (fd < 0)
		return fd;
	do {
		ret = io_fcntl(fd, F_OFD_SETLKW, &lk) ? -errno : 0;
	} while (ret == -EINTR);
	if (!ret)
		return fd;
	sys_fd_close(&fd);
	return ret;
}

int staged_remove(struct store *s, const char *dir)
{
	char path[STORE_PATH_LEN];
	struct store user;
	struct stat st;
	int ret = path_of(s, dir, path);

	if (!ret)
		ret = enter_user(s, &user);
	if (ret)
		return ret;
	ret = user.ops->stat(&user, path, &st);
	if (!ret)
		ret = store_remove_tree(&user, path, container_has);
	store_close(&user, &user.root);
	return ret;
}
