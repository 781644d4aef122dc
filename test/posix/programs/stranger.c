/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program without a dynamic C library, which no preloaded library reaches; the same commands as store.go.
 * compile with: -static.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int fail(const char *what)
{
	perror(what);
	return 1;
}

static int copy(int fd)
{
	char buf[65536];
	ssize_t n;

	while ((n = read(fd, buf, sizeof buf)) > 0) {
		if (write(1, buf, n) != n)
			return fail("write");
	}
	return n < 0 ? fail("read") : 0;
}

static int put(const char *name, int flags)
{
	static const char text[] = "by the stranger\n";
	int fd = open(name, flags, 0644);

	if (fd < 0 || write(fd, text, sizeof text - 1) != (ssize_t)sizeof text - 1 || close(fd))
		return fail(name);
	return 0;
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "", *name = argc > 2 ? argv[2] : "";
	struct stat st;

	if (!strcmp(how, "copy"))
		return copy(0);
	if (!strcmp(how, "say"))
		return puts(name) < 0 || fflush(stdout);
	if (!strcmp(how, "read"))
		return copy(open(name, O_RDONLY));
	if (!strcmp(how, "append"))
		return put(name, O_WRONLY | O_APPEND);
	if (!strcmp(how, "write"))
		return put(name, O_WRONLY);
	if (!strcmp(how, "create"))
		return put(name, O_WRONLY | O_CREAT | O_TRUNC);
	if (!strcmp(how, "truncate"))
		return truncate(name, 0) ? fail(name) : 0;
	if (!strcmp(how, "unlink"))
		return unlink(name) ? fail(name) : 0;
	if (stat(name, &st))
		return fail(name);
	return printf("%lld %o\n", (long long)st.st_size, st.st_mode) < 0;
}
