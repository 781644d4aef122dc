/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/base/mapped_by.h"

#include "core/base/io.h"

#include <stdio.h>

/* Whether the text of the file @fd contains @name. */
static bool has_text(int fd, const char *name)
{
	char buf[8192 + 256];
	size_t len = strlen(name), have = 0;
	ssize_t n;

	if (len > 255)
		return false;
	while ((n = io_read(fd, buf + have, 8192)) > 0) {
		have += (size_t)n;
		if (memmem(buf, have, name, len))
			return true;
		if (have > len) {
			memmove(buf, buf + have - len, len);
			have = len;
		}
	}
	return false;
}

int mapped_by(unsigned long pid, const char *name)
{
	char path[64];
	int fd, ret;

	snprintf(path, sizeof(path), "/proc/%lu/maps", pid);
	fd = io_open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT || errno == ESRCH ? 0 : -errno;
	ret = has_text(fd, name);
	io_close(fd);
	return ret;
}
