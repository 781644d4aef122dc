/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A store in memory for the fuzz targets: a few files, each in a block of its own, so that the sanitizer sees who leaves it. A file may
 * be larger than its block, as a sparse one is larger than its bytes.
 */
#ifndef TEST_MEMSTORE_H
#define TEST_MEMSTORE_H

#include "../../core/container.h"

#include <stdlib.h>

#define MEM_FILES_MAX 24
#define MEM_MAP_MAX (1 << 20)

static struct mem_file {
	char path[320]; /* "": unlinked, or not in use */
	uint8_t *buf;
	size_t len;
	uint64_t size;
	bool used;
} mem_files[MEM_FILES_MAX];

static struct mem_file *mem_find(const char *path)
{
	for (int i = 0; i < MEM_FILES_MAX; i++)
		if (mem_files[i].used && !strcmp(mem_files[i].path, path))
			return &mem_files[i];
	return NULL;
}

static struct mem_file *mem_add(const char *path, const void *buf, size_t len, uint64_t size)
{
	for (int i = 0; i < MEM_FILES_MAX; i++) {
		struct mem_file *f = &mem_files[i];

		if (f->used)
			continue;
		*f = (struct mem_file){ .buf = malloc(len ? len : 1), .len = len, .size = max_u64(size, len), .used = true };
		snprintf(f->path, sizeof(f->path), "%s", path);
		if (len)
			memcpy(f->buf, buf, len);
		return f;
	}
	return NULL;
}

static void mem_clear(void)
{
	for (int i = 0; i < MEM_FILES_MAX; i++)
		free(mem_files[i].buf);
	memset(mem_files, 0, sizeof(mem_files));
}

static int mem_open(struct store *s, const char *path, int flags, mode_t mode)
{
	struct mem_file *f = mem_find(path);

	(void)s;
	(void)mode;
	if (f && flags & O_EXCL)
		return -EEXIST;
	if (!f && flags & O_CREAT)
		f = mem_add(path, "", 0, 0);
	else if (!f)
		return -ENOENT;
	return f ? (int)(f - mem_files) : -ENOSPC;
}

static int mem_close(struct store *s, int *h)
{
	(void)s;
	*h = -1;
	return 0;
}

static ssize_t mem_pread(struct store *s, int h, void *buf, size_t len, uint64_t off)
{
	struct mem_file *f = &mem_files[h];
	size_t have;

	(void)s;
	if (off > INT64_MAX)
		return -EINVAL;
	if (off >= f->size)
		return 0;
	len = (size_t)min_u64(len, f->size - off);
	have = off < f->len ? min_size(len, f->len - off) : 0;
	if (have)
		memcpy(buf, f->buf + off, have);
	memset((char *)buf + have, 0, len - have);
	return (ssize_t)len;
}

static ssize_t mem_pwrite2(struct store *s, int h, const void *buf, size_t len, const void *buf2, size_t len2, uint64_t off)
{
	struct mem_file *f = &mem_files[h];
	size_t end = (size_t)off + len + len2;

	(void)s;
	if (off > MEM_MAP_MAX)
		return -EFBIG;
	if (end > f->len) {
		uint8_t *p = realloc(f->buf, end);

		memset(p + f->len, 0, end - f->len);
		f->buf = p;
		f->len = end;
		f->size = max_u64(f->size, end);
	}
	if (len)
		memcpy(f->buf + off, buf, len);
	if (len2)
		memcpy(f->buf + off + len, buf2, len2);
	return (ssize_t)(len + len2);
}

static ssize_t mem_pwrite(struct store *s, int h, const void *buf, size_t len, uint64_t off)
{
	return mem_pwrite2(s, h, buf, len, NULL, 0, off);
}

static int mem_fill_stat(const struct mem_file *f, struct stat *st)
{
	memset(st, 0, sizeof(*st));
	st->st_mode = S_IFREG | 0644;
	st->st_size = (off_t)min_u64(f->size, INT64_MAX);
	st->st_ino = 1 + (ino_t)(f - mem_files);
	st->st_nlink = 1;
	return 0;
}

static int mem_fstat(struct store *s, int h, struct stat *st)
{
	(void)s;
	return mem_fill_stat(&mem_files[h], st);
}

static int mem_identify(struct store *s, int h, struct store_identity *id)
{
	struct stat st;

	mem_fstat(s, h, &st);
	*id = (struct store_identity){ .len = (uint64_t)st.st_size, .ino = st.st_ino, .id = st.st_ino };
	return 0;
}

static int mem_stat(struct store *s, const char *path, struct stat *st)
{
	struct mem_file *f = mem_find(path);

	(void)s;
	return f ? mem_fill_stat(f, st) : -ENOENT;
}

/* What is mapped is a copy that ends where the mapping does. */
static void *mem_map(struct store *s, int h, size_t len, bool writable)
{
	uint8_t *p = len <= MEM_MAP_MAX ? calloc(1, len ? len : 1) : NULL;

	(void)s;
	(void)writable;
	if (p)
		memcpy(p, mem_files[h].buf, min_size(len, mem_files[h].len));
	return p;
}

static void mem_unmap(struct store *s, void *p, size_t len)
{
	(void)s;
	(void)len;
	free(p);
}

static int mem_handle_op(struct store *s, int h)
{
	(void)s;
	(void)h;
	return 0;
}

static bool mem_locked(struct store *s, int h)
{
	(void)h;
	return s->remote;
}

static void mem_forget(struct store *s, int h)
{
	(void)s;
	(void)h;
}

static int mem_unlink(struct store *s, const char *path)
{
	struct mem_file *f = mem_find(path);

	(void)s;
	if (!f)
		return -ENOENT;
	*f->path = '\0';
	return 0;
}

static int mem_rename(struct store *s, const char *from, const char *to)
{
	struct mem_file *f = mem_find(from);

	if (!f)
		return -ENOENT;
	mem_unlink(s, to);
	snprintf(f->path, sizeof(f->path), "%s", to);
	return 0;
}

/* A directory is what files are in. */
static int mem_list(struct store *s, const char *path, int (*fn)(void *arg, const char *name), void *arg)
{
	char names[MEM_FILES_MAX][256];
	size_t len = strlen(path);
	int nr = 0, ret = 0;

	(void)s;
	for (int i = 0; i < MEM_FILES_MAX; i++) {
		const char *rest = mem_files[i].path + len + 1;
		bool known = false;

		if (!mem_files[i].used || strncmp(mem_files[i].path, path, len) || mem_files[i].path[len] != '/')
			continue;
		snprintf(names[nr], sizeof(names[nr]), "%.*s", (int)strcspn(rest, "/"), rest);
		for (int k = 0; k < nr; k++)
			known |= !strcmp(names[k], names[nr]);
		nr += !known;
	}
	for (int k = 0; k < nr && !ret; k++)
		ret = fn(arg, names[k]);
	return nr ? ret : -ENOENT;
}

static uint64_t mem_next_data(struct store *s, int h, uint64_t off)
{
	(void)s, (void)h;
	return off;
}

static const struct store_ops mem_ops = {
	.open = mem_open,
	.close = mem_close,
	.pread = mem_pread,
	.pwrite = mem_pwrite,
	.pwrite2 = mem_pwrite2,
	.fstat = mem_fstat,
	.identify = mem_identify,
	.map = mem_map,
	.unmap = mem_unmap,
	.lock = mem_handle_op,
	.try_lock = mem_handle_op,
	.unlock = mem_handle_op,
	.locked = mem_locked,
	.next_data = mem_next_data,
	.forget = mem_forget,
	.stat = mem_stat,
	.unlink = mem_unlink,
	.rename = mem_rename,
	.list = mem_list,
};

static const uint8_t mem_id[STUB_ID_LEN] = { 0x3f, 0xa9, 1, 2, 3 };

/* An empty store with a container @c. */
static void mem_container(struct store *s, struct container *c)
{
	mem_clear();
	*s = (struct store){ .ops = &mem_ops, .coherent = true };
	container_init(c, s, mem_id, 0644);
}

/* Put a file into it: @rest is its path in the container. */
static struct mem_file *mem_put(const struct container *c, const char *rest, const void *buf, size_t len, uint64_t size)
{
	char path[CONTAINER_PATH_LEN];

	container_path(c, rest, path);
	return mem_add(path, buf, len, size);
}

#endif
