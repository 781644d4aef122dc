/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The file sealed.N.HOST.
 */
#include "core/backend/sealed.h"

#include "core/backend/names.h"
#include "core/base/alloc.h"
#include "core/base/crc32c.h"

#include <stdio.h>

#define MAGIC "plfs-sealed 1 "
#define CRC_DIGITS 8
#define HEAD_LEN (sizeof(MAGIC) - 1 + CRC_DIGITS + 1)
#define TEXT_MAX ((size_t)1 << 26)

/* "sealed.N.HOST" for "spread.N.HOST". */
static int name_file(const char *dir, const char *spread, char *path)
{
	const char *dot = strchr(spread, '.');
	int n = dot ? snprintf(path, STORE_PATH_LEN, "%s/sealed%s", dir, dot) : -1;

	return n >= 0 && n < STORE_PATH_LEN ? 0 : -ENAMETOOLONG;
}

bool sealed_is_one(const struct container *c, const struct stat *st, const uint8_t *head, size_t len)
{
	(void)c, (void)st;
	return len >= sizeof(MAGIC) - 1 && !memcmp(head, MAGIC, sizeof(MAGIC) - 1);
}

static int decode(char *text, size_t len, int (*fn)(void *arg, const char *name), void *arg)
{
	unsigned crc;
	int ret = 0;

	if (len < HEAD_LEN || memcmp(text, MAGIC, sizeof(MAGIC) - 1) || text[HEAD_LEN - 1] != '\n' ||
	    sscanf(text + sizeof(MAGIC) - 1, "%8x", &crc) != 1 ||
	    crc32c(0, text + HEAD_LEN, len - HEAD_LEN) != crc)
		return -ENOENT;
	for (size_t at = HEAD_LEN; at < len && !ret;) {
		char *end = memchr(text + at, '\n', len - at);

		if (!end)
			return -ENOENT;
		*end = '\0';
		ret = name_kind(text + at) == DROPPING_DATA ? fn(arg, text + at) : 0;
		at = (size_t)(end - text) + 1;
	}
	return ret;
}

int sealed_list(struct store *s, const char *dir, const char *spread,
		int (*fn)(void *arg, const char *name), void *arg)
{
	struct store home = store_bare(s);
	char path[STORE_PATH_LEN];
	void *text;
	size_t len;
	int ret = name_file(dir, spread, path);

	if (!ret)
		ret = store_read_file(&home, path, TEXT_MAX, &text, &len);
	if (ret)
		return ret;
	ret = decode(text, len, fn, arg);
	mem_free(text);
	return ret;
}

static int no_more(void *arg, const char *name) { return (void)arg, (void)name, 0; }

bool sealed_is(struct store *s, const char *dir, const char *spread)
{
	return !sealed_list(s, dir, spread, no_more, NULL);
}

int sealed_break(struct store *s, const char *dir, const char *spread)
{
	struct store home = store_bare(s);
	char path[STORE_PATH_LEN];
	int ret = name_file(dir, spread, path);

	if (!ret)
		ret = home.ops->unlink(&home, path);
	return ret == -ENOENT ? 0 : ret;
}

int sealed_begin(struct store *s, const char *dir, const char *spread, mode_t mode)
{
	struct store home = store_bare(s);
	char path[STORE_PATH_LEN];
	int ret = sealed_break(s, dir, spread);

	if (!ret)
		ret = name_file(dir, spread, path);
	return ret ? ret : store_open(&home, path, O_RDWR | O_CREAT | O_EXCL | STORE_BRIEFLY, mode);
}

int sealed_end(struct store *s, const char *dir, int h, const char *names, size_t len)
{
	struct store home = store_bare(s);
	char head[HEAD_LEN + 1];
	ssize_t n;
	int ret;

	snprintf(head, sizeof(head), MAGIC "%08x\n", crc32c(0, names, len));
	n = home.ops->pwrite(&home, h, names, len, HEAD_LEN);
	if (n == (ssize_t)len)
		n = home.ops->pwrite(&home, h, head, HEAD_LEN, 0);
	else
		n = n < 0 ? n : -ENOSPC;
	if (n != (ssize_t)HEAD_LEN)
		return n < 0 ? (int)n : -ENOSPC;
	ret = home.ops->sync(&home, h, false);
	return ret ? ret : store_sync_path(&home, dir, true);
}
