/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which process has a file open, by the descriptors of all that this user may look at.
 */
#include "tool.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Whether a descriptor of the process whose directory in /proc is @proc leads to the file. */
static bool has_open(int proc, const struct stat *file)
{
	int fd = openat(proc, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *d;
	struct stat st;
	bool found = false;

	while (dir && !found && (d = readdir(dir)))
		found = *d->d_name != '.' && !fstatat(fd, d->d_name, &st, 0) && st.st_ino == file->st_ino &&
			st.st_dev == file->st_dev;
	if (dir)
		closedir(dir);
	return found;
}

/* " (process 1234, python3, of user 1000)". A program gives itself its name: the line is escaped later. */
static void describe(int proc, const char *pid, char *out, size_t len)
{
	int fd = openat(proc, "comm", O_RDONLY | O_CLOEXEC);
	char name[64] = "";
	struct stat st;
	ssize_t n = fd < 0 ? 0 : read(fd, name, sizeof(name) - 1);

	if (fd >= 0)
		close(fd);
	name[n > 0 ? n - 1 : 0] = '\0'; /* a newline ends it */
	if (fstat(proc, &st))
		st.st_uid = 0;
	snprintf(out, len, " (process %s, %s, of user %u)", pid, name, (unsigned)st.st_uid);
}

const char *tool_holder(const char *path, char *out, size_t len)
{
	DIR *dir = opendir("/proc");
	unsigned long pid;
	struct stat file;
	struct dirent *d;
	bool found = false;
	int proc;

	*out = '\0';
	if (stat(path, &file)) {
		if (dir)
			closedir(dir);
		return out;
	}
	while (dir && !found && (d = readdir(dir))) {
		pid = strtoul(d->d_name, NULL, 10);
		if (!pid || pid == (unsigned long)getpid())
			continue;
		proc = openat(dirfd(dir), d->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		found = proc >= 0 && has_open(proc, &file);
		if (found)
			describe(proc, d->d_name, out, len);
		if (proc >= 0)
			close(proc);
	}
	if (dir)
		closedir(dir);
	return out;
}
