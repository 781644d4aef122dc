/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether system calls may be made in place, see raw.h.
 */
#include "raw.h"

HOT_DATA bool raw_open_ok = false;

/* O_PATH on the root directory: an old kernel, or a sandbox, has no openat2(). */
void raw_init(void)
{
	const struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS};
	int fd;

	if (!sys_is_libc((void *)sys.open) || !sys_is_libc((void *)sys.openat) ||
	    !sys_is_libc((void *)sys.creat) || !sys_is_libc((void *)sys.fopen))
		return;
	fd = raw_openat2(AT_FDCWD, "/", &how);
	raw_open_ok = fd >= 0;
	if (fd >= 0)
		sys.close(fd);
}
