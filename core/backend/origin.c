/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Looking for the original of a backend, by its path.
 */
#include "core/backend/origin.h"

#include "core/base/io.h"
#include "core/base/sys.h"

#include <stdio.h>

#define BYTES_MAX 4096

/* Up to @len bytes of a regular file; -errno. */
static ssize_t read_file(int dir, const char *path, char *buf, size_t len)
{
	int fd = sys_fd_hide_briefly(
		io_openat(dir, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
	struct stat st;
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = sys.fstat(fd, &st) ? -errno : S_ISREG(st.st_mode) ? 0 : -ENOENT;
	if (!n)
		n = io_read(fd, buf, len);
	sys_fd_close(&fd);
	return n;
}

uint64_t origin_identity(struct store *home)
{
	struct statx stx;

	if (sys.statx(store_fd(home, home->root), PLFS_DIR_NAME "/format", AT_SYMLINK_NOFOLLOW,
		      STATX_INO | STATX_BTIME, &stx))
		return 0;
	if (!(stx.stx_mask & STATX_BTIME))
		return stx.stx_ino;
	return stx.stx_ino ^ ((uint64_t)stx.stx_btime.tv_sec * 1000000000 + stx.stx_btime.tv_nsec);
}

void origin_line(struct store *home, char *line)
{
	snprintf(line, ORIGIN_ID_LEN + 1, "%016llx\n", (unsigned long long)origin_identity(home));
}

int origin_read(int user, const char *id, char *path, uint64_t *identity)
{
	char name[STORE_PATH_LEN], *end;
	unsigned long long number = 0;
	ssize_t n;

	snprintf(name, sizeof(name), "%s/" ORIGIN_HOME, id);
	n = read_file(user, name, path, PATH_MAX - 1);
	path[n < 0 ? 0 : n] = '\0';
	end = strchr(path, '\n');
	if (*path != '/' || !end || end - path < 1)
		return -ENODATA;
	*end = '\0';
	if (identity)
		*identity = sscanf(end + 1, "%16llx\n", &number) == 1 ? number : 0;
	return 0;
}

static bool is_gone(int error) { return error == -ENOENT || error == -ENOTDIR; }

int origin_is_at(struct store *home, const char *path)
{
	struct stat st, ours;
	int ret = sys.fstatat(AT_FDCWD, path, &st, 0) ? -errno : 0;

	if (ret)
		return is_gone(ret) ? -ENOENT : ret;
	ret = home->ops->fstat(home, home->root, &ours);
	return ret ? ret : st.st_dev == ours.st_dev && st.st_ino == ours.st_ino;
}

bool origin_is(struct store *home, int user, const char *id)
{
	char path[PATH_MAX];
	uint64_t identity;

	return !origin_read(user, id, path, &identity) && identity && identity == origin_identity(home) &&
	       origin_is_at(home, path) == 1;
}

/* Whether the backend at @origin has the same near.HOST; also if that cannot be told. */
static bool leads_there(const char *origin, const char *name, const uint8_t *bytes, size_t len)
{
	char path[PATH_MAX + STORE_PATH_LEN], theirs[BYTES_MAX];
	ssize_t n;

	snprintf(path, sizeof(path), "%s/%s", origin, name);
	n = read_file(AT_FDCWD, path, theirs, min_size(len, sizeof(theirs)));
	return n < 0 ? !is_gone((int)n) : n == (ssize_t)len && !memcmp(theirs, bytes, len);
}

bool origin_is_other(struct store *home, int user, const char *id, const char *name, const uint8_t *bytes,
		     size_t len)
{
	char own[17], origin[PATH_MAX];
	int ret;

	snprintf(own, sizeof(own), "%016llx", (unsigned long long)home->path_id);
	if (!strncmp(own, id, 16) && (!id[16] || id[16] == '-')) /* "-shared": in another backend */
		return false;
	if (origin_read(user, id, origin, NULL))
		return true;
	ret = origin_is_at(home, origin);
	if (ret)
		return ret < 0 && ret != -ENOENT;
	return leads_there(origin, name, bytes, len);
}
