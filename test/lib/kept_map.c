/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A file of LOGS logs; its map is found by the name of its file, and damaged by offset.
 */
#include "test/lib/kept_map.h"

void setup_in_memory(void)
{
	scratch_in_memory = true;
	scratch_setup();
}

char kept_name[16] = "a";

int make_part(void *arg)
{
	struct lfile l = lopen(kept_name, O_RDWR | O_CREAT);

	return lfill(&l, *(int *)arg * PART, PART, 1) != PART || lclose(&l);
}

int make_file(void *arg)
{
	(void)arg;
	for (int i = 0; i < LOGS; i++)
		if (in_child(make_part, &i))
			return 1;
	return 0;
}

int write_some(void *arg)
{
	struct lfile l = lopen(kept_name, O_RDWR);

	(void)arg;
	return lfill(&l, 50, 10, 2) != 10 || lclose(&l);
}

int check_as_made(void *arg)
{
	struct lfile l = lopen(kept_name, O_RDONLY);

	(void)arg;
	return lcheck(&l, 0, LEN, 1) || lclose(&l);
}

int check_written(void *arg)
{
	struct lfile l = lopen(kept_name, O_RDONLY);

	(void)arg;
	return lcheck(&l, 0, 50, 1) || lcheck(&l, 50, 10, 2) || lcheck(&l, 60, LEN - 60, 1) || lclose(&l);
}

void set_word(off_t off, uint64_t value)
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

bool open_fails, unlink_fails;

static bool is_map(const char *path)
{
	const char *slash = strrchr(path, '/');

	return !strcmp(slash ? slash + 1 : path, "index.global");
}

int some_openat2(int dirfd, const char *path, struct open_how *how, size_t size)
{
	if (open_fails && how->flags & O_RDWR && is_map(path)) {
		errno = EACCES;
		return -1;
	}
	return call_openat2(dirfd, path, how, size);
}

int some_unlinkat(int dirfd, const char *path, int flags)
{
	if (unlink_fails && is_map(path)) {
		errno = EACCES;
		return -1;
	}
	return call_unlinkat(dirfd, path, flags);
}
