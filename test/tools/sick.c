/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For plfs doctor: a preloaded library that lacks what file systems can lack which no test can mount. SICK
 * has the words: mark, locks, weak, maps, ahead. SICK_MOUNT is the type and the options of every mount, as
 * "lustre rw,localflock".
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int is_sick(const char *word)
{
	const char *sick = getenv("SICK");

	return sick && strstr(sick, word);
}

/* As vfat does. */
int fchmod(int fd, mode_t mode)
{
	int (*real)(int, mode_t) = (int (*)(int, mode_t))dlsym(RTLD_NEXT, "fchmod");

	return real(fd, is_sick("mark") ? mode & 0777 : mode);
}

/* As Lustre without -o flock does; weak: each lock is given, as where hosts have locks of their own. */
int fcntl(int fd, int cmd, ...)
{
	int (*real)(int, int, ...) = (int (*)(int, int, ...))dlsym(RTLD_NEXT, "fcntl");
	va_list args;
	void *arg;

	va_start(args, cmd);
	arg = va_arg(args, void *);
	va_end(args);
	if (cmd == F_OFD_SETLK && is_sick("locks")) {
		errno = ENOSYS;
		return -1;
	}
	return cmd == F_OFD_SETLK && is_sick("weak") ? 0 : real(fd, cmd, arg);
}

int fcntl64(int fd, int cmd, ...)
{
	va_list args;
	void *arg;

	va_start(args, cmd);
	arg = va_arg(args, void *);
	va_end(args);
	return fcntl(fd, cmd, arg);
}

/* Through /proc/self/fd the scratch file alone has no name. */
void *mmap(void *p, size_t len, int prot, int flags, int fd, off_t off)
{
	void *(*real)(void *, size_t, int, int, int, off_t) =
		(void *(*)(void *, size_t, int, int, int, off_t))dlsym(RTLD_NEXT, "mmap");
	struct stat st;

	if (fd >= 0 && flags & MAP_SHARED && is_sick("maps") && !fstat(fd, &st) && !st.st_nlink) {
		errno = ENODEV;
		return MAP_FAILED;
	}
	return real(p, len, prot, flags, fd, off);
}

int clock_gettime(clockid_t clock, struct timespec *ts)
{
	int (*real)(clockid_t, struct timespec *) =
		(int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
	int ret = real(clock, ts);

	if (!ret && clock == CLOCK_REALTIME && is_sick("ahead"))
		ts->tv_sec += 3;
	return ret;
}

FILE *fopen(const char *path, const char *mode)
{
	FILE *(*real)(const char *, const char *) = (FILE * (*)(const char *, const char *)) dlsym(RTLD_NEXT, "fopen");
	const char *mount = getenv("SICK_MOUNT");
	FILE *f = real(path, mode), *told;
	char *line = NULL, *end;
	size_t len = 0;

	if (!f || !mount || strcmp(path, "/proc/self/mountinfo"))
		return f;
	told = tmpfile();
	while (told && getline(&line, &len, f) > 0) {
		end = strstr(line, " - ");
		if (end)
			fprintf(told, "%.*s - %.*s none %s\n", (int)(end - line), line, (int)strcspn(mount, " "), mount,
				strchr(mount, ' ') + 1);
	}
	free(line);
	fclose(f);
	if (told)
		rewind(told);
	return told;
}

FILE *fopen64(const char *path, const char *mode)
{
	return fopen(path, mode);
}
