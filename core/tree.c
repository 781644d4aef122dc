/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Listing, measuring and removing trees.
 */
#include "tree.h"

#include "newer.h"
#include "own.h"
#include "sys.h"

#include <linux/openat2.h>

#define DEPTH_MAX 16 /* a container has 2 */

/* Where the kernel has no openat2(): links on the way are followed. */
static int open_plainly(int dirfd, const char *path)
{
	int fd = own_openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	struct stat st, above;

	if (fd < 0)
		return -errno;
	if (sys.fstat(fd, &st) || sys.fstat(dirfd, &above) || st.st_dev != above.st_dev) {
		own_close(fd);
		return -EXDEV;
	}
	return fd;
}

int tree_open(int dirfd, const char *path)
{
	struct open_how how = {
		.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK,
		.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV,
	};
	long fd;

	do {
		fd = sys.syscall(SYS_openat2, dirfd, path, &how, sizeof(how));
	} while (fd < 0 && (errno == EAGAIN || errno == EINTR));
	if (fd < 0 && (errno == ENOSYS || errno == EPERM || errno == EINVAL))
		return open_plainly(dirfd, path);
	return fd < 0 ? -errno : (int)fd;
}

int tree_list(int fd, int (*fn)(void *arg, int fd, const char *name, unsigned char type), void *arg)
{
	char buf[8192] __attribute__((aligned(8)));
	int ret = 0;
	ssize_t n;

	while (!ret && (n = sys.getdents64(fd, buf, sizeof(buf))) != 0) {
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
	struct tree_sum *sum;
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
	ma->sum->changed_ns = max_u64(ma->sum->changed_ns, tree_changed_ns(&st));
	ma->sum->nr_files += !S_ISDIR(st.st_mode);
	if (!S_ISDIR(st.st_mode))
		return 0;
	below = (struct measure_arg){ ma->sum, ma->depth + 1 };
	if (below.depth > DEPTH_MAX)
		return -ENAMETOOLONG;
	dir = tree_open(fd, name);
	if (dir < 0)
		return dir == -ENOENT ? 0 : dir;
	ret = tree_list(dir, measure, &below);
	own_close(dir);
	return ret;
}

int tree_measure(int dirfd, const char *name, struct tree_sum *sum)
{
	struct measure_arg ma = { .sum = sum };

	*sum = (struct tree_sum){ 0 };
	return measure(&ma, dirfd, name, DT_UNKNOWN);
}

/* ---- removing ---- */

struct remove_arg {
	bool empty;
	int depth;
	int ret;
};

static int remove_dir(int dirfd, const char *name, bool empty, int depth);

static int remove_one(void *arg, int fd, const char *name, unsigned char type)
{
	struct remove_arg *ra = arg;
	int ret = -EISDIR;

	if (!ra->empty && type != DT_DIR)
		ret = sys.unlinkat(fd, name, 0) ? -errno : 0;
	if (ret == -EISDIR || ret == -EPERM)
		ret = remove_dir(fd, name, ra->empty, ra->depth + 1);
	if (ret && ret != -ENOENT && !ra->ret)
		ra->ret = ra->empty ? -ENOTEMPTY : ret;
	return 0;
}

static int remove_dir(int dirfd, const char *name, bool empty, int depth)
{
	struct remove_arg ra = { .empty = empty, .depth = depth };
	int fd = depth > DEPTH_MAX ? -ENAMETOOLONG : tree_open(dirfd, name), ret;

	if (fd < 0)
		return fd;
	ret = tree_list(fd, remove_one, &ra);
	own_close(fd);
	if (!ret)
		ret = ra.ret;
	if (sys.unlinkat(dirfd, name, AT_REMOVEDIR) && !ret)
		ret = -errno;
	return ret;
}

int tree_remove(int dirfd, const char *name, bool empty)
{
	int ret = 0;

	/* A listing may miss names while others are being removed. */
	for (int tries = 0; tries < 3; tries++) {
		ret = remove_dir(dirfd, name, empty, 0);
		if (ret != -ENOTEMPTY || empty)
			break;
	}
	return ret == -ENOENT ? 0 : ret;
}
