/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Descriptors that this process did not open: inherited, received from another process, or opened by a call
 * that does not say what it opened.
 */
#include "adopt.h"

#include "fdtable.h"
#include "path.h"

#include <poll.h>

void fd_adopt(int fd)
{
	struct plfs_file *file = NULL;
	struct plfs_mount *m;
	struct ofile *f = NULL;
	char name[PATH_MAX];
	struct stat st;
	int r;

	if (fd_is_hidden(fd) || sys.fstat(fd, &st))
		return;
	if (plfs_maybe_stub(st.st_mode) || plfs_maybe_unmarked(&st, true)) {
		r = plfs_adopt(fd, &file);
		if (file) {
			f = ofile_new_heir(file, fd);
			r = f ? 0 : -ENOMEM;
		}
		if (r < 0) {
			msg_error(
				"%s: inherited or received as descriptor %d, but cannot be opened (%s): calls with it say EBADF",
				path_read_fd(fd, name) > 0 ? name : "a logical file", fd, msg_errno_name(-r));
			plfs_disable(fd);
		}
	} else if (S_ISDIR(st.st_mode)) {
		m = path_mount_of_dir(fd);
		if (m)
			f = ofile_new_dir(m, NULL);
	}
	if (f)
		fd_install(fd, f);
}

/* Call @fn for each number named in the directory @dirfd, /proc/self/fd. */
static void each_listed(int dirfd, void (*fn)(int fd, int arg), int arg)
{
	union {
		struct dirent64 entry;
		char bytes[4096];
	} buf;
	const struct dirent64 *e;
	const char *p;
	ssize_t len, at;
	int fd;

	while ((len = sys.getdents64(dirfd, &buf, sizeof(buf))) > 0) {
		for (at = 0; at < len; at += e->d_reclen) {
			e = (const struct dirent64 *)(buf.bytes + at);
			for (fd = 0, p = e->d_name; *p >= '0' && *p <= '9'; p++)
				fd = fd * 10 + (*p - '0');
			if (p != e->d_name && fd != dirfd)
				fn(fd, arg);
		}
	}
}

/* Without /proc: the kernel marks those that are not open, many in one call. */
static void each_polled(void (*fn)(int fd, int arg), int arg)
{
	struct pollfd v[1024];
	unsigned n;

	for (unsigned first = 0; first < fdtable_len; first += n) {
		for (n = 0; n < ARRAY_SIZE(v) && first + n < fdtable_len; n++)
			v[n] = (struct pollfd){ .fd = (int)(first + n) };
		sys.poll(v, n, 0); /* fails if they are more than the process may have: then all are asked */
		for (unsigned i = 0; i < n; i++) {
			if (!(v[i].revents & POLLNVAL))
				fn(v[i].fd, arg);
		}
	}
}

void fd_each_open(void (*fn)(int fd, int arg), int arg)
{
	int dirfd = sys.openat(AT_FDCWD, "/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (dirfd >= 0 && sys.getdents64)
		each_listed(dirfd, fn, arg);
	else
		each_polled(fn, arg);
	if (dirfd >= 0)
		sys.close(dirfd);
}

static void adopt_one(int fd, int arg)
{
	(void)arg;
	fd_adopt(fd);
}

void fd_adopt_inherited(void) { fd_each_open(adopt_one, 0); }
