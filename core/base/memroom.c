/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The limits and the use of memory, as the files of the kernel say.
 */
#include "core/base/memroom.h"

#include "core/base/io.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_LEN 4096

/* The text of a file: false: it cannot be read. */
static bool read_text(char *text, const char *root, const char *dir, const char *name)
{
	char path[PATH_MAX];
	ssize_t n;
	int fd;

	if (snprintf(path, sizeof(path), "%s%s%s", root, dir, name) >= (int)sizeof(path))
		return false;
	fd = io_open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = io_read(fd, text, TEXT_LEN - 1);
	io_close(fd);
	text[n > 0 ? n : 0] = '\0';
	return n > 0;
}

/* The number in a file. False also for "max". */
static bool read_number(uint64_t *n, const char *root, const char *dir, const char *name)
{
	char text[TEXT_LEN], *end;

	if (!read_text(text, root, dir, name))
		return false;
	*n = strtoull(text, &end, 10);
	return end != text;
}

/* The number in the line of @text that begins with @name and a blank or a colon; else 0. */
static uint64_t number_of(const char *text, const char *name)
{
	size_t len = strlen(name);

	for (const char *p = text; p; p = strchr(p, '\n')) {
		p += *p == '\n';
		if (!strncmp(p, name, len) && (p[len] == ' ' || p[len] == ':'))
			return strtoull(p + len + 1, NULL, 10);
	}
	return 0;
}

static uint64_t minus(uint64_t a, uint64_t b) { return a > b ? a - b : 0; }

/* The names of one version's files. */
struct version {
	const char *limit, *used, *caches[2];
};

static const struct version versions[] = {
	{ "/memory.limit_in_bytes",
	  "/memory.usage_in_bytes",
	  { "total_inactive_file", "total_active_file" } },
	{ "/memory.max", "/memory.current", { "inactive_file", "active_file" } },
};

/*
 * What the group @dir has left. The kernel takes long to say how much of its memory is cache: that is asked
 * where it matters.
 */
static uint64_t room_in(const char *root, const char *dir, const struct version *v)
{
	char text[TEXT_LEN];
	uint64_t limit, used;

	if (!read_number(&limit, root, dir, v->limit) || limit >= (uint64_t)1 << 60 ||
	    !read_number(&used, root, dir, v->used))
		return UINT64_MAX;
	limit -= limit / 10;
	if (used > limit / 2 && read_text(text, root, dir, "/memory.stat"))
		used = minus(used, number_of(text, v->caches[0]) + number_of(text, v->caches[1]));
	return minus(limit, used);
}

/* The least of the group @path, below @top, and those above it. */
static uint64_t room_up(const char *root, const char *top, const char *path, size_t len,
			const struct version *v)
{
	uint64_t room = UINT64_MAX, here;
	char dir[PATH_MAX];

	for (;; len--) {
		if (len && path[len] != '/' && path[len] != '\n' && path[len])
			continue;
		snprintf(dir, sizeof(dir), "%s%.*s", top, (int)len, path);
		here = room_in(root, dir, v);
		room = here < room ? here : room;
		if (!len)
			return room;
	}
}

/* A line of /proc/self/cgroup: "4:memory:/PATH", or "0::/PATH" of version 2, which may lie elsewhere. */
static uint64_t room_of_line(const char *root, const char *line)
{
	const char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL;
	uint64_t room, room2;
	size_t len;

	if (!path++)
		return UINT64_MAX;
	len = strcspn(path, "\n");
	if (!strncmp(names, ":memory:", 8))
		return room_up(root, "/sys/fs/cgroup/memory", path, len, &versions[0]);
	if (strncmp(names, "::", 2))
		return UINT64_MAX;
	room = room_up(root, "/sys/fs/cgroup", path, len, &versions[1]);
	room2 = room_up(root, "/sys/fs/cgroup/unified", path, len, &versions[1]);
	return room < room2 ? room : room2;
}

uint64_t memroom(const char *root)
{
	uint64_t room = UINT64_MAX, here;
	char text[TEXT_LEN];

	if (read_text(text, root, "/proc", "/meminfo"))
		room = minus(number_of(text, "MemAvailable"), number_of(text, "MemTotal") / 10) << 10;
	if (!read_text(text, root, "/proc/self", "/cgroup"))
		return room;
	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		here = room_of_line(root, line);
		room = here < room ? here : room;
	}
	return room;
}
