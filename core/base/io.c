/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Transfers that go on where a signal, or the kernel, cut them short. Descriptors of our own.
 */
#include "core/base/io.h"

#include <stdio.h>

/*
 * Hidden descriptors start at three quarters of the soft limit, but not above this: the kernel
 * keeps a table as long as the highest descriptor and copies it at every fork (about 25 us for
 * 4000 entries, 90 us for 12000).
 */
#define HIDDEN_FD_MAX_BASE 4000
#define HIDDEN_FD_MIN_BASE 10 /* what is below, shell scripts name by its number */

bool io_is_fault(int err)
{
	static const int errors[] = {
		EIO, ENXIO, ENODEV, ESTALE, ENODATA, ENOTDIR, EREMOTEIO, EUCLEAN,
		ENOTCONN, ETIMEDOUT, EHOSTDOWN, EHOSTUNREACH, /* FUSE, a server */
	};

	for (size_t i = 0; i < ARRAY_SIZE(errors); i++)
		if (err == errors[i])
			return true;
	return false;
}

unsigned char sys_fd_hidden[SYS_FD_HIDDEN_LIMIT];
void (*sys_fd_noted)(int fd, bool hidden);
static int *fd_owners[SYS_FD_HIDDEN_LIMIT]; /* where the number is kept; NULL: not known */

ssize_t io_pread_all(int fd, void *buf, size_t len, uint64_t off)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = io_pread(fd, (char *)buf + done, len - done, (off_t)(off + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

ssize_t io_preadv_all(int fd, struct iovec *iov, int cnt, uint64_t off)
{
	size_t done = 0;

	while (cnt) {
		ssize_t n = io_preadv(fd, iov, cnt, (off_t)(off + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			break;
		done += (size_t)n;
		for (; cnt && (size_t)n >= iov->iov_len; iov++, cnt--)
			n -= (ssize_t)iov->iov_len;
		if (n) {
			iov->iov_base = (char *)iov->iov_base + n;
			iov->iov_len -= (size_t)n;
		}
	}
	return (ssize_t)done;
}

ssize_t io_pwrite_all(int fd, const void *buf, size_t len, uint64_t off)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = io_pwrite(fd, (const char *)buf + done, len - done, (off_t)(off + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return done ? (ssize_t)done : n ? -errno : -ENOSPC;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

static bool remember(int fd, bool hidden)
{
	if (fd < 0 || fd >= SYS_FD_HIDDEN_LIMIT)
		return false;
	__atomic_store_n(&sys_fd_hidden[fd], hidden, __ATOMIC_RELEASE);
	return true;
}

/* The same, and report it. */
static bool note(int fd, bool hidden)
{
	if (!remember(fd, hidden))
		return false;
	if (sys_fd_noted)
		sys_fd_noted(fd, hidden);
	return true;
}

/* Asked for once: where the limit is lower meanwhile, dup_high() goes down. */
static int hidden_fd_base(void)
{
	static int known;
	int base = __atomic_load_n(&known, __ATOMIC_RELAXED);
	struct rlimit limit;

	if (base)
		return base;
	base = HIDDEN_FD_MAX_BASE;
	if (!sys.getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur / 4 * 3 < HIDDEN_FD_MAX_BASE)
		base = (int)(limit.rlim_cur / 4 * 3);
	__atomic_store_n(&known, base, __ATOMIC_RELAXED);
	return base;
}

/*
 * A close-on-exec duplicate above @floor and as high as can be; -1 and errno. EINVAL above the limit, EMFILE
 * when all from base on are taken.
 */
static int dup_high(int fd, int floor)
{
	int high = -1;

	for (int base = hidden_fd_base(); base >= HIDDEN_FD_MIN_BASE && floor < base && high < 0;
	     base -= base / 4)
		high = sys.fcntl(fd, F_DUPFD_CLOEXEC, base);
	return high;
}

int sys_fd_hide(int fd)
{
	int saved_errno = errno;
	int high;

	if (fd < 0)
		return fd;
	high = dup_high(fd, fd);
	if (high >= 0 && note(high, true)) {
		io_close(fd);
		fd = high;
	} else {
		if (high >= 0)
			io_close(high);
		sys.fcntl(fd, F_SETFD, FD_CLOEXEC);
		note(fd, true);
	}
	errno = saved_errno;
	return fd;
}

int sys_fd_hide_briefly(int fd)
{
	/* Where the program has closed standard error, what is put there would go into the file. */
	if (fd <= STDERR_FILENO || !__libc_single_threaded)
		return sys_fd_hide(fd);
	remember(fd, true);
	return fd;
}

int sys_fd_dup(int fd)
{
	int saved_errno = errno;
	int ret = dup_high(fd, -1);

	if (ret < 0)
		ret = sys.fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (ret < 0)
		ret = -errno;
	else
		note(ret, true);
	errno = saved_errno;
	return ret;
}

void sys_fd_own(int *fd)
{
	if (sys_fd_is_hidden(*fd))
		__atomic_store_n(&fd_owners[*fd], fd, __ATOMIC_RELAXED);
}

int sys_fd_move_away(int fd)
{
	int *place = sys_fd_is_hidden(fd) ? __atomic_load_n(&fd_owners[fd], __ATOMIC_RELAXED) : NULL;
	int other;

	if (!place || *place != fd)
		return -EBUSY;
	other = sys_fd_dup(fd);
	if (other < 0)
		return other;
	__atomic_store_n(&fd_owners[fd], NULL, __ATOMIC_RELAXED);
	note(fd, false);
	*place = other;
	sys_fd_own(place);
	return 0;
}

int sys_fd_close(int *fd)
{
	int saved ERRNO_KEPT = errno;
	int ret;

	if (*fd < 0)
		return 0;
	/* In this order: once closed, the number may be hidden again by another thread. */
	if (note(*fd, false))
		__atomic_store_n(&fd_owners[*fd], NULL, __ATOMIC_RELAXED);
	ret = io_close(*fd) && errno != EINTR ? -errno : 0;
	*fd = -1;
	return ret;
}

int io_chmod_path(int fd, mode_t mode)
{
	char link[64];

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	return sys.chmod(link, mode & 07777) ? -errno : 0;
}
