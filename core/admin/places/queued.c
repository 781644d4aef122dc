/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The containers of a queue (core/backend/queue.h), one after the other.
 */
#include "core/admin/places/mirror.h"

#include "core/backend/mount.h"
#include "core/backend/placed.h"
#include "core/backend/queue.h"
#include "core/base/io.h"
#include "core/base/vec.h"

#include <stdio.h>
#include <unistd.h>

#define QUEUE_MAX ((size_t)1 << 24) /* more is the next pass's */

void plfs_queue_path(const struct plfs_mount *m, char *path)
{
	char name[STORE_PATH_LEN];

	queue_path(name);
	snprintf(path, PATH_MAX, "%.*s/%s", PATH_MAX - STORE_PATH_LEN - 2, m->backend, name);
}

/* One container of this user. One that has gone wants nothing. */
static int take_id(struct plfs_mount *m, const uint8_t *id, struct plfs_drain *d)
{
	struct container c;
	struct stat st;
	int ret;

	placed_enable(&m->store); /* logs may be on their way home */
	container_init(&c, &m->store, id, 0);
	ret = m->store.ops->stat(&m->store, c.dir, &st);
	if (ret || st.st_uid != geteuid())
		return ret == -ENOENT ? 0 : ret;
	c.mode = st.st_mode & 0666;
	c.gid = st.st_gid;
	return mirror_container(&c, 0, d);
}

static bool was_before(const char *text, size_t at)
{
	for (size_t i = 0; i < at; i += QUEUE_LINE_LEN)
		if (!memcmp(text + i, text + at, QUEUE_LINE_LEN))
			return true;
	return false;
}

int plfs_drain_queue(struct plfs_mount *m, int fd, uint64_t *end, struct plfs_drain *d)
{
	int saved ERRNO_KEPT = errno;
	uint8_t id[STUB_ID_LEN];
	struct stat st;
	char *text;
	ssize_t n;
	int ret = 0, one;

	if (sys.fstat(fd, &st))
		return -errno;
	text = mem_alloc(min_size((size_t)st.st_size, QUEUE_MAX) + 1);
	if (!text)
		return -ENOMEM;
	n = io_pread_all(fd, text, min_size((size_t)st.st_size, QUEUE_MAX), 0);
	for (size_t at = 0; n > 0 && at + QUEUE_LINE_LEN <= (size_t)n; at += QUEUE_LINE_LEN) {
		if (was_before(text, at) || !queue_parse(text + at, id))
			continue;
		one = take_id(m, id, d);
		ret = ret ? ret : one;
	}
	*end = n > 0 ? (uint64_t)n : 0;
	mem_free(text);
	return n < 0 ? (int)n : ret;
}
