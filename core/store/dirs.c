/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Listing, measuring and removing trees.
 */
#include "core/store/dirs.h"

#include "core/base/alloc.h"
#include "core/base/io.h"
#include "core/base/msg.h"
#include "core/base/sys.h"

#include <stdio.h>
#include <stdlib.h>

#define DEPTH_MAX 3 /* of a container, in another backend (backend/spread.h) */

/* The directory @name, of @len bytes, in @dirfd, which is closed unless it is @top. */
static int open_component(int dirfd, int top, const char *name, size_t len, int flags)
{
	char one[NAME_MAX + 1];
	struct stat st, above;
	int fd = -1, ret;

	if (len >= sizeof(one) || (len == 2 && !memcmp(name, "..", 2))) {
		errno = len == 2 ? EXDEV : ENAMETOOLONG;
	} else {
		memcpy(one, name, len);
		one[len] = '\0';
		fd = io_openat(dirfd, one, flags | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	}
	ret = fd < 0 ? -errno : fd;
	if (ret == -ENOTDIR && !sys.fstatat(dirfd, one, &st, AT_SYMLINK_NOFOLLOW) && S_ISLNK(st.st_mode))
		ret = -ELOOP; /* as openat2() says it */
	if (fd >= 0 && (sys.fstat(fd, &st) || sys.fstat(top, &above) || st.st_dev != above.st_dev)) {
		io_close(fd);
		ret = -EXDEV;
	}
	if (dirfd != top)
		io_close(dirfd);
	return ret;
}

/* The number of the mount that @fd lies in. -1: that cannot be told. */
static long mount_of(int fd)
{
	char text[256], *id;
	ssize_t n;
	int info;

	snprintf(text, sizeof(text), "/proc/self/fdinfo/%d", fd);
	info = io_open(text, O_RDONLY | O_CLOEXEC);
	if (info < 0)
		return -1;
	n = io_read(info, text, sizeof(text) - 1);
	io_close(info);
	text[n > 0 ? n : 0] = '\0';
	id = strstr(text, "mnt_id:");
	return id ? strtol(id + 7, NULL, 10) : -1;
}

/* Whether there is a mount between @top and @fd; one from the same file system has its device number. */
static bool is_mounted(int top, int fd)
{
	long above = mount_of(top), below = mount_of(fd);

	return above >= 0 && below >= 0 && above != below;
}

/* Where the kernel has no openat2(): one component after the other, and no link on the way is followed. */
static int open_by_components(int top, const char *path, int flags)
{
	const char *slash;
	int fd = top;

	while (fd >= 0 && (slash = strchr(path, '/'))) {
		if (slash > path)
			fd = open_component(fd, top, path, (size_t)(slash - path), O_PATH);
		path = slash + 1;
	}
	if (fd >= 0)
		fd = open_component(fd, top, *path ? path : ".", *path ? strlen(path) : 1, flags);
	if (fd >= 0 && is_mounted(top, fd)) {
		io_close(fd);
		fd = -EXDEV;
	}
	return fd;
}

/* No link is followed. */
static int open_strictly(int dirfd, const char *path, int flags)
{
	struct open_how how = {
		.flags = (unsigned)flags | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK,
		.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV,
	};
	int fd;

	if (flags & O_PATH) /* openat2() takes no flags that O_PATH ignores */
		how.flags = O_PATH | O_DIRECTORY | O_CLOEXEC;

	do {
		fd = io_openat2(dirfd, path, &how, sizeof(how));
	} while (fd < 0 && (errno == EAGAIN || errno == EINTR));
	if (fd < 0 && (errno == ENOSYS || errno == EPERM || errno == EINVAL))
		return open_by_components(dirfd, path, flags);
	return fd < 0 ? -errno : fd;
}

int dirs_open(int dirfd, const char *path)
{
	return open_strictly(dirfd, path, O_RDONLY);
}

int dirs_open_any(int dirfd, const char *path)
{
	int fd = open_strictly(dirfd, path, O_RDONLY);

	return fd == -EACCES ? open_strictly(dirfd, path, O_PATH) : fd;
}

int dirs_open_of(int dirfd, const char *path, const char **name)
{
	const char *slash = strrchr(path, '/');
	char dir[PATH_MAX];

	*name = slash ? slash + 1 : path;
	if ((size_t)(*name - path) >= sizeof(dir))
		return -ENAMETOOLONG;
	memcpy(dir, path, (size_t)(*name - path));
	dir[slash ? slash - path : 0] = '\0';
	return dirs_open_any(dirfd, *dir ? dir : ".");
}

/* For the way of one call of a program. */
static int open_briefly(int dirfd, const char *name)
{
	return sys_fd_hide_briefly(dirs_open(dirfd, name));
}

static __attribute__((noinline, cold)) int list_by_stack(
	int fd, int (*fn)(void *arg, int fd, const char *name, unsigned char type), void *arg)
{
	char buf[DIRS_LIST_LEN] __attribute__((aligned(8)));

	return dirs_list_by(fd, buf, fn, arg);
}

/* Listings are made inside of others, in threads with a stack of 16 KiB. */
int dirs_list(int fd, int (*fn)(void *arg, int fd, const char *name, unsigned char type), void *arg)
{
	char *buf = mem_alloc(DIRS_LIST_LEN);
	int ret;

	if (unlikely(!buf))
		return list_by_stack(fd, fn, arg);
	ret = dirs_list_by(fd, buf, fn, arg);
	mem_free(buf);
	return ret;
}

/* getdents64() and a buffer of our own: opendir() would call the program's malloc. */
int dirs_list_by(int fd, char *buf, int (*fn)(void *arg, int fd, const char *name, unsigned char type),
		 void *arg)
{
	int ret = 0;
	ssize_t n;

	while (!ret && (n = sys.getdents64(fd, buf, DIRS_LIST_LEN)) != 0) {
		if (n < 0)
			return -errno;
		for (ssize_t pos = 0; pos < n && !ret;) {
			struct dirent *d = (struct dirent *)(buf + pos);

			pos += d->d_reclen;
			if (strcmp(d->d_name, ".") && strcmp(d->d_name, ".."))
				ret = fn(arg, fd, d->d_name, d->d_type);
		}
	}
	return ret;
}

/* ---- measuring ---- */

struct measure_arg {
	struct dirs_sum *sum;
	int depth;
};

static int measure(void *arg, int fd, const char *name, unsigned char type)
{
	struct measure_arg *ma = arg, below;
	struct stat st;
	int dir, ret;

	(void)type;
	if (sys.fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? 0 : -errno;
	ma->sum->bytes += (uint64_t)st.st_blocks * 512;
	ma->sum->changed_ns = max_u64(ma->sum->changed_ns, dirs_changed_ns(&st));
	below = (struct measure_arg){ ma->sum, ma->depth + 1 };
	if (!S_ISDIR(st.st_mode) || below.depth > DEPTH_MAX) {
		ma->sum->nr_files++;
		return 0;
	}
	ma->sum->nr_dirs++;
	dir = open_briefly(fd, name);
	if (dir < 0)
		return dir == -ENOENT ? 0 : dir;
	ret = dirs_list(dir, measure, &below);
	sys_fd_close(&dir);
	return ret;
}

int dirs_measure(int dirfd, const char *name, struct dirs_sum *sum)
{
	struct measure_arg ma = { .sum = sum };

	*sum = (struct dirs_sum){ 0 };
	return measure(&ma, dirfd, name, DT_UNKNOWN);
}

/* ---- removing ---- */

struct remove_arg {
	dirs_known *known;
	bool empty;
	int depth; /* 0: in the container */
	int ret;
	char *stranger; /* NAME_MAX + 1 bytes: the first that has to stay, or "" */
};

static int remove_dir(int dirfd, const char *name, struct remove_arg *ra);

static void note_stranger(struct remove_arg *ra, const char *name)
{
	if (*ra->stranger)
		return;
	for (size_t i = 0; i < NAME_MAX && name[i]; i++) /* zeros are behind it */
		ra->stranger[i] = name[i] > ' ' && name[i] < 0x7f ? name[i] : '?';
}

static bool is_dir(int fd, const char *name, unsigned char type)
{
	struct stat st;

	if (type != DT_UNKNOWN)
		return type == DT_DIR;
	return !sys.fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) && S_ISDIR(st.st_mode);
}

/* From the directory's own descriptor: whatever takes its place meanwhile, nothing elsewhere is removed. */
static int remove_one(void *arg, int fd, const char *name, unsigned char type)
{
	struct remove_arg *ra = arg, below = *ra;
	bool dir = is_dir(fd, name, type);
	int ret;

	below.depth++;
	below.ret = 0;
	if ((dir && below.depth >= DEPTH_MAX) || !ra->known(name, ra->depth, dir)) {
		note_stranger(ra, name);
		ret = -ENOTEMPTY;
	} else if (dir) {
		ret = remove_dir(fd, name, &below);
	} else {
		ret = ra->empty ? -ENOTEMPTY : sys.unlinkat(fd, name, 0) ? -errno : 0;
	}
	if (ret && ret != -ENOENT && !ra->ret)
		ra->ret = ra->empty ? -ENOTEMPTY : ret;
	return 0;
}

/*
 * Whether @fd, a directory in the container @dirfd, may have been made there: by its owner or root, or by
 * anybody if others may write to the container.
 */
static bool is_made_there(int dirfd, int fd)
{
	struct stat st, above;

	return !sys.fstat(fd, &st) && !sys.fstat(dirfd, &above) &&
	       (st.st_uid == above.st_uid || !st.st_uid || above.st_mode & (S_IWGRP | S_IWOTH));
}

static int remove_dir(int dirfd, const char *name, struct remove_arg *ra)
{
	int fd = open_briefly(dirfd, name), ret;

	if (fd < 0)
		return fd;
	if (ra->depth && !is_made_there(dirfd, fd)) {
		note_stranger(ra, name);
		sys_fd_close(&fd);
		return -ENOTEMPTY;
	}
	/* A listing may miss names while others are being removed. */
	for (int tries = 0; tries < 3; tries++) {
		ra->ret = 0;
		ret = dirs_list(fd, remove_one, ra);
		if (!ret)
			ret = ra->ret;
		if (!sys.unlinkat(dirfd, name, AT_REMOVEDIR) || ret)
			break;
		ret = -errno;
		if (ret != -ENOTEMPTY || ra->empty)
			break;
		sys.lseek(fd, 0, SEEK_SET);
	}
	sys_fd_close(&fd);
	return ret;
}

int dirs_remove(int dirfd, const char *name, bool empty, dirs_known *known)
{
	char stranger[NAME_MAX + 1] = "";
	struct remove_arg ra = { .known = known, .empty = empty, .stranger = stranger };
	int ret = remove_dir(dirfd, name, &ra);

	if (*stranger && !empty)
		msg_error(
			"%s: %s in it is nothing that libplfs makes, so it stays: look whose it is and take it away, then remove the directory",
			name, stranger);
	return ret == -ENOENT ? 0 : ret;
}

int dirs_sync_parent(int dirfd, const char *path)
{
	const char *slash = strrchr(path, '/');
	char dir[PATH_MAX] = ".";
	int fd, ret;

	if (slash && slash - path + 1 >= (int)sizeof(dir))
		return -ENAMETOOLONG;
	if (slash)
		memcpy(dir, path, (size_t)(slash - path) + 1); /* zeros are behind it */
	fd = io_openat(dirfd, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fd = sys_fd_hide_briefly(fd < 0 ? -errno : fd);
	if (fd < 0)
		return fd;
	ret = io_fsync(fd) ? -errno : 0;
	sys_fd_close(&fd);
	return ret;
}
