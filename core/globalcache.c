/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * index.global as a file: writing it, confirming it, revoking it, and taking apart one that is there.
 */
#include "globalcache.h"

#include "alloc.h"
#include "bytes.h"
#include "crc32c.h"
#include "log.h"
#include "sys.h"

#include <stdio.h>

#define GLOBAL_MAGIC "PLFSGLB1"
#define GLOBAL_VERSION 2
#define GLOBAL_CRC_LEN 128
#define OFF_CONFIRMED 128
#define OFF_REVOKED 136
#define GLOBAL_HEADER_LEN 144

static void global_path(const struct container *c, char *path)
{
	container_path(c, "index.global", path);
}

/* ---- reading ---- */

const uint64_t *global_revoked(const struct global_index *gi)
{
	return gi->base ? (const uint64_t *)(const void *)(gi->base + OFF_REVOKED) : NULL;
}

/* Where the list of logs is. */
static const char *names_of(const struct global_index *gi, size_t *len)
{
	*len = get_le64(gi->base + 48);
	return (const char *)gi->base + GLOBAL_HEADER_LEN + get_le64(gi->base + 40);
}

static bool is_valid(const struct global_index *gi, const struct container *c, uint64_t generation_ns)
{
	const uint8_t *b = gi->base;
	uint8_t head[GLOBAL_CRC_LEN];
	uint64_t inputs_len, names_len, map_off, map_len;

	if (gi->len < GLOBAL_HEADER_LEN || memcmp(b, GLOBAL_MAGIC, 8) || get_le32(b + 8) != GLOBAL_VERSION)
		return false;
	memcpy(head, b, sizeof(head));
	put_le32(head + 12, 0);
	inputs_len = get_le64(b + 40);
	names_len = get_le64(b + 48);
	map_off = get_le64(b + 56);
	map_len = get_le64(b + 64);
	return crc32c(0, head, sizeof(head)) == get_le32(b + 12) && !memcmp(b + 16, c->id, STUB_ID_LEN) &&
	       get_le64(b + 32) == generation_ns && inputs_len <= gi->len && names_len <= gi->len &&
	       GLOBAL_HEADER_LEN + inputs_len + names_len <= map_off && map_off % 8 == 0 && map_off <= gi->len &&
	       map_len <= gi->len - map_off && (!names_len || !b[GLOBAL_HEADER_LEN + inputs_len + names_len - 1]) &&
	       crc32c(0, b + GLOBAL_HEADER_LEN, inputs_len + names_len) == get_le32(b + 76) && !load_le64(gi->base + OFF_REVOKED);
}

int global_adopt(struct global_index *gi, const struct container *c, int h, uint64_t generation_ns)
{
	struct stat st;
	int ret = c->store->ops->fstat(c->store, h, &st);

	*gi = (struct global_index){ 0 };
	if (ret || !st.st_size)
		return ret ? ret : -EBADMSG;
	gi->len = (size_t)st.st_size;
	gi->ino = st.st_ino;
	gi->base = c->store->ops->map(c->store, h, gi->len, false);
	if (!gi->base)
		return -ENODEV;
	if (is_valid(gi, c, generation_ns))
		return 0;
	global_close(gi, c);
	return -EBADMSG;
}

int global_open(struct global_index *gi, const struct container *c, uint64_t generation_ns)
{
	char path[CONTAINER_PATH_LEN];
	int h, ret;

	*gi = (struct global_index){ 0 };
	global_path(c, path);
	h = store_open(c->store, path, O_RDONLY | STORE_BRIEFLY, 0);
	if (h < 0)
		return h;
	ret = global_adopt(gi, c, h, generation_ns);
	store_close(c->store, &h);
	return ret;
}

void global_close(struct global_index *gi, const struct container *c)
{
	if (gi->base)
		c->store->ops->unmap(c->store, (void *)gi->base, gi->len);
	gi->base = NULL;
}

static int take_names(const struct global_index *gi, char **logs, uint32_t nr)
{
	size_t len;
	const char *names = names_of(gi, &len), *end = names + len;

	for (uint32_t i = 0; i < nr; i++) {
		const char *nul = memchr(names, 0, (size_t)(end - names));
		const char *slash = nul ? strchr(names, '/') : NULL;

		/* "hostdir.K/data...", and nothing that leads elsewhere */
		if (!slash || nul - names >= CONTAINER_PATH_LEN - 64 || strncmp(names, "hostdir.", 8) ||
		    strncmp(slash, "/data.", 6) || strchr(slash + 1, '/'))
			return -EBADMSG;
		logs[i] = mem_strdup(names);
		if (!logs[i])
			return -ENOMEM;
		names = nul + 1;
	}
	return 0;
}

int global_map(const struct global_index *gi, struct index_map *map)
{
	return index_map_open(map, gi->base + get_le64(gi->base + 56), get_le64(gi->base + 64), true);
}

int global_take(const struct global_index *gi, struct index_map *map, char ***logs, uint32_t *nr_logs)
{
	uint32_t nr = get_le32(gi->base + 72);
	int ret = global_map(gi, map);

	if (ret || nr > gi->len)
		return ret ? ret : -EBADMSG;
	*nr_logs = nr;
	*logs = mem_zalloc((nr + (size_t)1) * sizeof(**logs));
	return *logs ? take_names(gi, *logs, nr) : -ENOMEM;
}

static int input_line(const struct index_inputs *in, uint32_t i, char *line, size_t len)
{
	return snprintf(line, len, "%s %llu\n", in->indexes[i], (unsigned long long)in->sizes[i]);
}

bool global_made_from(const struct global_index *gi, const struct index_inputs *in)
{
	const char *p = (const char *)gi->base + GLOBAL_HEADER_LEN, *end = p + get_le64(gi->base + 40);
	char line[CONTAINER_PATH_LEN + 32];

	for (uint32_t i = 0; i < in->nr_indexes; i++) {
		int n = input_line(in, i, line, sizeof(line));

		if (end - p < n || memcmp(p, line, (size_t)n))
			return false;
		p += n;
	}
	return p == end && !in->nr_lives;
}

const char *global_inputs(const struct global_index *gi, const char **end)
{
	const char *p = (const char *)gi->base + GLOBAL_HEADER_LEN;

	*end = p + get_le64(gi->base + 40);
	return p;
}

uint64_t global_logs_digest(const struct global_index *gi)
{
	uint64_t digest = 0;
	size_t len;

	for (const char *p = names_of(gi, &len), *end = p + len; p < end; p += strlen(p) + 1)
		digest += index_log_digest(p);
	return digest;
}

bool global_is_confirmed(const struct global_index *gi)
{
	return gi->base && load_le64(gi->base + OFF_CONFIRMED) == (uint64_t)gi->ino && !load_le64(gi->base + OFF_REVOKED);
}

bool global_is_current(const struct global_index *gi, const struct container *c)
{
	char path[CONTAINER_PATH_LEN];
	struct stat st;

	if (!global_is_confirmed(gi))
		return false;
	global_path(c, path);
	return !c->store->ops->stat(c->store, path, &st) && st.st_ino == gi->ino;
}

/* ---- writing ---- */

/* Everything in front of the map, mem_alloc()ed. */
static uint8_t *encode_head(const struct container *c, const struct global_parts *parts, size_t *len)
{
	const struct index_inputs *in = parts->inputs;
	size_t cap = GLOBAL_HEADER_LEN + 8, inputs_len, names_len;
	uint8_t *buf;
	char *p;

	for (uint32_t i = 0; i < in->nr_indexes; i++)
		cap += strlen(in->indexes[i]) + 24;
	for (uint32_t i = 0; i < parts->nr_logs; i++)
		cap += strlen(parts->logs[i]) + 1;
	buf = mem_zalloc(cap);
	if (!buf)
		return NULL;
	p = (char *)buf + GLOBAL_HEADER_LEN;
	for (uint32_t i = 0; i < in->nr_indexes; i++)
		p += input_line(in, i, p, (size_t)((char *)buf + cap - p));
	inputs_len = (size_t)((uint8_t *)p - buf) - GLOBAL_HEADER_LEN;
	for (uint32_t i = 0; i < parts->nr_logs; i++)
		p = stpcpy(p, parts->logs[i]) + 1;
	names_len = (size_t)((uint8_t *)p - buf) - GLOBAL_HEADER_LEN - inputs_len;
	*len = (GLOBAL_HEADER_LEN + inputs_len + names_len + 7) / 8 * 8;
	memcpy(buf, GLOBAL_MAGIC, 8);
	put_le32(buf + 8, GLOBAL_VERSION);
	memcpy(buf + 16, c->id, STUB_ID_LEN);
	put_le64(buf + 32, parts->generation_ns);
	put_le64(buf + 40, inputs_len);
	put_le64(buf + 48, names_len);
	put_le64(buf + 56, *len);
	put_le64(buf + 64, parts->image_len);
	put_le32(buf + 72, parts->nr_logs);
	put_le32(buf + 76, crc32c(0, buf + GLOBAL_HEADER_LEN, inputs_len + names_len));
	put_le32(buf + 12, crc32c(0, buf, GLOBAL_CRC_LEN));
	return buf;
}

int global_create(const struct container *c, const struct global_parts *parts)
{
	char path[CONTAINER_PATH_LEN];
	uint8_t *head;
	size_t len;
	int h;

	head = encode_head(c, parts, &len);
	if (!head)
		return -ENOMEM;
	global_path(c, path);
	h = store_replace_file(c->store, path, container_file_mode(c, true), head, len, parts->image, parts->image_len);
	log_debug(LOG_INDEX, "%s: kept the map of %u logs: %s", c->dir, parts->nr_logs, strerror(h < 0 ? -h : 0));
	mem_free(head);
	return h;
}

static int write_word(const struct container *c, int h, size_t off, uint64_t value)
{
	uint8_t word[8];
	ssize_t n;

	put_le64(word, value);
	n = c->store->ops->pwrite(c->store, h, word, sizeof(word), off);
	return n == sizeof(word) ? 0 : n < 0 ? (int)n : -ENOSPC;
}

static void confirm(const struct container *c, int h, ino_t only)
{
	struct stat st;

	if (c->store->coherent && !c->store->ops->fstat(c->store, h, &st) && (!only || st.st_ino == only))
		write_word(c, h, OFF_CONFIRMED, (uint64_t)st.st_ino);
}

void global_confirm(const struct container *c, int h)
{
	confirm(c, h, 0);
}

void global_confirm_opened(const struct container *c, const struct global_index *gi)
{
	char path[CONTAINER_PATH_LEN];
	int h;

	if (global_is_confirmed(gi))
		return;
	global_path(c, path);
	h = store_open(c->store, path, O_RDWR | STORE_BRIEFLY, 0);
	if (h < 0)
		return;
	confirm(c, h, gi->ino);
	store_close(c->store, &h);
}

int global_revoke(const struct container *c)
{
	char path[CONTAINER_PATH_LEN];
	int h, ret, ret2 = -EACCES;

	global_path(c, path);
	h = store_open(c->store, path, O_RDWR | STORE_BRIEFLY, 0);
	if (h == -ENOENT)
		return 0;
	if (h >= 0) { /* for those who have it mapped, or remember its name */
		ret2 = write_word(c, h, OFF_REVOKED, 1);
		store_close(c->store, &h);
	}
	ret = c->store->ops->unlink(c->store, path);
	return !ret2 || ret == -ENOENT ? 0 : ret;
}
