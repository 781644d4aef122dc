/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What can be done on any store with its table of functions alone.
 */
#include "store.h"

#include "alloc.h"
#include "sys.h"

int store_read_file(struct store *s, const char *path, size_t max, void **buf, size_t *len)
{
	struct stat st;
	ssize_t n;
	int ret;
	int h = store_open(s, path, O_RDONLY | STORE_BRIEFLY | s->uncached, 0);

	if (h < 0)
		return h;
	*buf = NULL;
	ret = s->ops->fstat(s, h, &st);
	if (ret)
		goto out;
	ret = -EIO;
	if (!S_ISREG(st.st_mode))
		goto out;
	ret = -EFBIG;
	if ((uint64_t)st.st_size > max)
		goto out;
	ret = -ENOMEM;
	*buf = mem_alloc((size_t)st.st_size + 1);
	if (!*buf)
		goto out;
	n = s->ops->pread(s, h, *buf, (size_t)st.st_size, 0);
	ret = n < 0 ? (int)n : 0;
	*len = n < 0 ? 0 : (size_t)n;
	if (ret) {
		mem_free(*buf);
		*buf = NULL;
	}
out:
	store_close(s, &h);
	return ret;
}

static int replace_file(struct store *s, const char *path, mode_t mode, const void *buf, size_t len, const void *buf2,
			size_t len2, bool durable)
{
	char tmp[PATH_MAX];
	uint64_t salt = 0;
	ssize_t n;
	int h, ret;

	if (sys.getrandom(&salt, sizeof(salt), 0) != sizeof(salt))
		return -EIO;
	if (snprintf(tmp, sizeof(tmp), "%s.tmp.%016llx", path, (unsigned long long)salt) >= (int)sizeof(tmp))
		return -ENAMETOOLONG;
	h = store_open(s, tmp, O_RDWR | O_CREAT | O_EXCL | STORE_BRIEFLY, mode);
	if (h < 0)
		return h;
	n = s->ops->pwrite2(s, h, buf, len, buf2, len2, 0);
	ret = n < 0 ? (int)n : (size_t)n < len + len2 ? -ENOSPC : 0;
	if (!ret && durable)
		ret = s->ops->sync(s, h, false);
	if (!ret)
		ret = s->ops->rename(s, tmp, path);
	if (!ret)
		return h;
	store_close(s, &h);
	s->ops->unlink(s, tmp);
	return ret;
}

int store_replace_file(struct store *s, const char *path, mode_t mode, const void *buf, size_t len, const void *buf2,
		       size_t len2)
{
	return replace_file(s, path, mode, buf, len, buf2, len2, false);
}

int store_write_file(struct store *s, const char *path, mode_t mode, const void *buf, size_t len, const void *buf2,
		     size_t len2)
{
	int h = replace_file(s, path, mode, buf, len, buf2, len2, true);

	if (h < 0)
		return h;
	store_close(s, &h);
	return 0;
}
