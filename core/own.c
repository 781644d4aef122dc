/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Transfers that go on where a signal, or the kernel, cut them short.
 */
#include "own.h"

ssize_t own_pread_all(int fd, void *buf, size_t len, uint64_t off)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = own_pread(fd, (char *)buf + done, len - done, (off_t)(off + done));

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

ssize_t own_preadv_all(int fd, struct iovec *iov, int cnt, uint64_t off)
{
	size_t done = 0;

	while (cnt) {
		ssize_t n = own_preadv(fd, iov, cnt, (off_t)(off + done));

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

ssize_t own_pwrite_all(int fd, const void *buf, size_t len, uint64_t off)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = own_pwrite(fd, (const char *)buf + done, len - done, (off_t)(off + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return done ? (ssize_t)done : n ? -errno : -ENOSPC;
		done += (size_t)n;
	}
	return (ssize_t)done;
}
