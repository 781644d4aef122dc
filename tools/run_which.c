/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plfs run --which: what a job would get, and nothing is run.
 */
#include "run_which.h"

#include "tool.h"

#include <stdlib.h>
#include <sys/mman.h>

#define MARK "libplfs " /* stands before the version, as strings(1) shows it */

/* The version in the library's bytes, behind a 0 and MARK, into @out. */
static bool find_version(const char *bytes, size_t len, char *out, size_t out_len)
{
	const char *end = bytes + len, *p = bytes;
	static const char mark[] = "\0" MARK;

	while ((p = memmem(p, (size_t)(end - p), mark, sizeof(mark) - 1))) {
		size_t n = 0;

		p += sizeof(mark) - 1;
		while (p + n < end && p[n] >= '.' && p[n] <= '9' && p[n] != '/')
			n++;
		if (n && n < out_len && p + n < end && !p[n]) {
			snprintf(out, out_len, "%s", p);
			return true;
		}
	}
	return false;
}

static void print_version(const char *library)
{
	int fd = open(library, O_RDONLY | O_CLOEXEC);
	char version[32] = "unknown";
	struct stat st;
	void *bytes = MAP_FAILED;

	if (fd >= 0 && !fstat(fd, &st) && st.st_size > 0)
		bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes != MAP_FAILED) {
		find_version(bytes, (size_t)st.st_size, version, sizeof(version));
		munmap(bytes, (size_t)st.st_size);
	}
	if (fd >= 0)
		close(fd);
	tool_print("%-10s %s%s", "Version", version,
		   strcmp(version, PLFS_VERSION) ? ", which is not that of this command: " PLFS_VERSION : "");
}

void run_which_library(const char *library)
{
	tool_print("%-10s %s", "Library", library);
	print_version(library);
}

void run_which_settings(const char *const *settings, size_t nr, const char *command)
{
	struct plfs_mount *m;

	for (int i = 0; (m = plfs_mount_at(i)); i++)
		if (strcmp(plfs_prefix(m), plfs_backend(m)))
			tool_print("%-10s %s, stored in %s", "Mapping", plfs_prefix(m), plfs_backend(m));
		else
			tool_print("%-10s %s, in place", "Mapping", plfs_backend(m));
	for (size_t i = 0; i < nr; i++)
		if (getenv(settings[i]))
			tool_print("%s=%s", settings[i], getenv(settings[i]));
	if (command)
		tool_print("%-10s %s", "Command", command);
}
