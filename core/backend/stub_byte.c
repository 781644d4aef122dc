/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Locks of the kernel on one byte of a stub.
 */
#include "core/backend/stub_byte.h"

#include "core/base/io.h"
#include "core/base/sys.h"

#include <unistd.h>

int stub_byte_lock(int fd, int cmd, off_t byte, short type)
{
	struct flock lk = { .l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1 };
	int ret;

	do {
		ret = io_fcntl(fd, cmd, &lk);
	} while (ret < 0 && errno == EINTR);
	return ret >= 0 ? 0 : errno == EAGAIN || errno == EACCES ? -EBUSY : -errno;
}

short stub_byte_of_others(int fd, int cmd, off_t byte, short unknown)
{
	struct flock lk = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1 };

	return sys.fcntl(fd, cmd, &lk) ? unknown : lk.l_type;
}

bool stub_is_ours_alone(int fd)
{
	struct stat st;

	return !sys.fstat(fd, &st) && st.st_uid == geteuid() && !(st.st_mode & 022);
}
