/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A file of so many logs that a map of it is kept, and what its readers must find.
 */
#ifndef TEST_GLOBALCACHE_H
#define TEST_GLOBALCACHE_H

#include "scratch.h"

#include "calls.h"

#include "../core/file.h"

#include <criterion/criterion.h>

__attribute__((unused)) static void setup_in_memory(void)
{
	scratch_in_memory = true;
	scratch_setup();
}

#define SUITE(name) TestSuite(name, .init = setup_in_memory, .fini = scratch_remove, .timeout = 300)

#define LOGS 8 /* enough for a map to be kept */
#define PART 100
#define LEN (LOGS * PART)

static char name[16] = "a";

__attribute__((unused)) static int make_part(void *arg)
{
	struct lfile l = lopen(name, O_RDWR | O_CREAT);

	return lfill(&l, *(int *)arg * PART, PART, 1) != PART || lclose(&l);
}

/* Each part by another process: in a log of its own. */
__attribute__((unused)) static int make_file(void *arg)
{
	(void)arg;
	for (int i = 0; i < LOGS; i++)
		if (in_child(make_part, &i))
			return 1;
	return 0;
}

__attribute__((unused)) static int write_some(void *arg)
{
	struct lfile l = lopen(name, O_RDWR);

	(void)arg;
	return lfill(&l, 50, 10, 2) != 10 || lclose(&l);
}

__attribute__((unused)) static int check_as_made(void *arg)
{
	struct lfile l = lopen(name, O_RDONLY);

	(void)arg;
	return lcheck(&l, 0, LEN, 1) || lclose(&l);
}

__attribute__((unused)) static int check_written(void *arg)
{
	struct lfile l = lopen(name, O_RDONLY);

	(void)arg;
	return lcheck(&l, 0, 50, 1) || lcheck(&l, 50, 10, 2) || lcheck(&l, 60, LEN - 60, 1) || lclose(&l);
}

/* Where words of index.global are. */
#define OFF_CONFIRMED 128

__attribute__((unused)) static void set_word(off_t off, uint64_t value)
{
	char path[PATH_MAX];
	int fd;

	if (!find_file("index.global", path))
		die("no map");
	fd = open(path, O_WRONLY);
	if (pwrite(fd, &value, sizeof(value), off) != sizeof(value))
		die("%s", path);
	close(fd);
}

/* A map that this process may read and not change. */
static bool open_fails, unlink_fails;

__attribute__((unused)) static bool is_map(const char *path)
{
	const char *slash = strrchr(path, '/');

	return !strcmp(slash ? slash + 1 : path, "index.global");
}

__attribute__((unused)) static int some_openat2(int dirfd, const char *path, struct open_how *how, size_t size)
{
	if (open_fails && how->flags & O_RDWR && is_map(path)) {
		errno = EACCES;
		return -1;
	}
	return call_openat2(dirfd, path, how, size);
}

__attribute__((unused)) static int some_unlinkat(int dirfd, const char *path, int flags)
{
	if (unlink_fails && is_map(path)) {
		errno = EACCES;
		return -1;
	}
	return call_unlinkat(dirfd, path, flags);
}

#endif
