/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names, locks and appends of node indexes, of whatever host.
 */
#include "left_index.h"

#include "sys.h"

#include <stdio.h>

void left_index_path(const char *path, char *index)
{
	const char *name = strchr(path, '/') + 1, *host = name + sizeof("data.") - 1, *end = name + strlen(name);

	for (int dots = 0; dots < 2 && end > host;)
		dots += *--end == '.';
	snprintf(index, CONTAINER_PATH_LEN, "%.*sindex.%.*s", (int)(name - path), path, (int)(end - host), host);
}

int left_index_lock(const struct container *c, const char *index, struct stat *st)
{
	struct store *s = c->store;
	char path[CONTAINER_PATH_LEN];
	int h, ret;

	container_path(c, index, path);
	for (;;) {
		h = container_open(c, path, O_RDWR | O_CREAT | STORE_BRIEFLY, container_file_mode(c, true));
		if (h < 0)
			return h;
		ret = s->ops->lock(s, h);
		if (!ret || ret == -EOPNOTSUPP)
			ret = s->ops->fstat(s, h, st);
		if (!ret && st->st_nlink && !store_may_write(st))
			ret = -EMLINK;
		if (!ret && st->st_nlink)
			return h;
		store_close(s, &h);
		if (ret) /* else it was collected or replaced while we waited */
			return ret;
	}
}

void left_index_unlock(const struct container *c, int h)
{
	c->store->ops->unlock(c->store, h);
	store_close(c->store, &h);
}

int left_kept_name(const struct container *c, const char *path, char *kept)
{
	const char *name = strchr(path, '/') + 1;
	char full[CONTAINER_PATH_LEN];
	struct stat st;

	for (int i = 0; i < 1000; i++) {
		int ret;

		if (snprintf(kept, CONTAINER_PATH_LEN, "%.*sdamaged.%d.%s", (int)(name - path), path, i, name) >=
		    CONTAINER_PATH_LEN - 64)
			return -ENAMETOOLONG;
		container_path(c, kept, full);
		ret = c->store->ops->stat(c->store, full, &st);
		if (ret)
			return ret == -ENOENT ? 0 : ret;
	}
	return -EEXIST;
}

int left_index_append(const struct container *c, const char *index, const void *block, size_t len)
{
	struct store *s = c->store;
	struct stat st;
	ssize_t n;
	int ret, h = left_index_lock(c, index, &st);

	if (h < 0)
		return h;
	n = s->ops->pwrite(s, h, block, len, round_up_u64((uint64_t)st.st_size, 8));
	ret = n == (ssize_t)len ? s->ops->sync(s, h, false) : n < 0 ? (int)n : -ENOSPC;
	if (n != (ssize_t)len)
		s->ops->truncate(s, h, (uint64_t)st.st_size);
	left_index_unlock(c, h);
	return ret;
}
