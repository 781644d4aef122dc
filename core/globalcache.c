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

/* It is read from end to end when it is opened: one that is larger, for it may be a hole, is left alone. */
#define GLOBAL_MAX (16LL << 30)

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
static const char *names_of(const struct global_index *gi)
{
	return (const char *)gi->base + GLOBAL_HEADER_LEN + gi->inputs_len;
}

/* Check the header and the lists, and take over what the header says. */
static bool is_valid(struct global_index *gi, const struct container *c, uint64_t generation_ns)
{
	uint8_t head[GLOBAL_CRC_LEN];
	uint32_t crc;

	if (gi->len < GLOBAL_HEADER_LEN)
		return false;
	memcpy(head, gi->base, sizeof(head));
	crc = get_le32(head + 12);
	put_le32(head + 12, 0);
	if (memcmp(head, GLOBAL_MAGIC, 8) || get_le32(head + 8) != GLOBAL_VERSION || crc32c(0, head, sizeof(head)) != crc ||
	    memcmp(head + 16, c->id, STUB_ID_LEN) || get_le64(head + 32) != generation_ns)
		return false;
	gi->inputs_len = get_le64(head + 40);
	gi->names_len = get_le64(head + 48);
	gi->map_off = get_le64(head + 56);
	gi->map_len = get_le64(head + 64);
	gi->nr_logs = get_le32(head + 72);
	return gi->inputs_len <= gi->len && gi->names_len <= gi->len &&
	       GLOBAL_HEADER_LEN + gi->inputs_len + gi->names_len <= gi->map_off &&
	       gi->map_off % 8 == 0 && gi->map_off <= gi->len && gi->map_len <= gi->len - gi->map_off &&
	       gi->nr_logs <= gi->names_len &&
	       crc32c(0, gi->base + GLOBAL_HEADER_LEN, gi->inputs_len + gi->names_len) == get_le32(head + 76) &&
	       !load_le64(gi->base + OFF_REVOKED);
}

int global_adopt(struct global_index *gi, const struct container *c, int h, uint64_t generation_ns)
{
	struct store_identity id;
	int ret = c->store->ops->identify(c->store, h, &id);

	*gi = (struct global_index){ 0 };
	if (ret || id.len < GLOBAL_HEADER_LEN || id.len > GLOBAL_MAX)
		return ret ? ret : -EBADMSG;
	gi->len = (size_t)id.len;
	gi->ino = id.ino;
	gi->id = id.id;
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

/* "hostdir.K/data...", and nothing that leads elsewhere. */
static bool is_log_path(const char *path)
{
	const char *slash = strchr(path, '/');

	return slash && container_is_hostdir(path, (size_t)(slash - path)) && !strncmp(slash, "/data.", 6) &&
	       !strchr(slash + 1, '/') && strlen(path) <= CONTAINER_REST_MAX;
}

static int take_names(const struct global_index *gi, char **logs, uint32_t nr)
{
	const char *names = names_of(gi), *end = names + gi->names_len;

	for (uint32_t i = 0; i < nr; i++) {
		char path[CONTAINER_PATH_LEN];
		size_t len = strnlen(names, min_size(sizeof(path), (size_t)(end - names)));

		if (len == sizeof(path) || names + len == end)
			return -EBADMSG;
		memcpy(path, names, len); /* before it is judged: see above */
		path[len] = '\0';
		if (!is_log_path(path))
			return -EBADMSG;
		logs[i] = mem_strdup(path);
		if (!logs[i])
			return -ENOMEM;
		names += len + 1;
	}
	return 0;
}

int global_map(const struct global_index *gi, struct index_map *map)
{
	return index_map_open(map, gi->base + gi->map_off, gi->map_len, true);
}

int global_take(const struct global_index *gi, struct index_map *map, char ***logs, uint32_t *nr_logs)
{
	int ret = global_map(gi, map);

	if (ret)
		return ret;
	*nr_logs = gi->nr_logs;
	*logs = mem_zalloc((gi->nr_logs + (size_t)1) * sizeof(**logs));
	return *logs ? take_names(gi, *logs, gi->nr_logs) : -ENOMEM;
}

static int input_line(const struct index_inputs *in, uint32_t i, char *line, size_t len)
{
	return snprintf(line, len, "%s %llu\n", in->indexes[i], (unsigned long long)in->sizes[i]);
}

bool global_made_from(const struct global_index *gi, const struct index_inputs *in)
{
	const char *p = (const char *)gi->base + GLOBAL_HEADER_LEN, *end = p + gi->inputs_len;
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

	*end = p + gi->inputs_len;
	return p;
}

uint64_t global_logs_digest(const struct global_index *gi)
{
	const char *p = names_of(gi), *end = p + gi->names_len;
	uint64_t digest = 0;

	while (p < end) {
		size_t len = strnlen(p, (size_t)(end - p));

		digest += index_log_digest(p, len);
		p += len + 1;
	}
	return digest;
}

bool global_is_confirmed(const struct global_index *gi)
{
	return gi->base && load_le64(gi->base + OFF_CONFIRMED) == gi->id && !load_le64(gi->base + OFF_REVOKED);
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

/* @only: if it is that. */
static void confirm(const struct container *c, int h, uint64_t only)
{
	struct store_identity id;

	if (c->store->coherent && !c->store->ops->identify(c->store, h, &id) && (!only || id.id == only))
		write_word(c, h, OFF_CONFIRMED, id.id);
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
	confirm(c, h, gi->id);
	store_close(c->store, &h);
}

int global_revoke(const struct container *c)
{
	char path[CONTAINER_PATH_LEN];
	int h, ret, ret2 = -EACCES;
	struct stat st;

	global_path(c, path);
	h = store_open(c->store, path, O_RDWR | STORE_BRIEFLY, 0);
	if (h == -ENOENT)
		return 0;
	if (h >= 0) { /* for those who have it mapped, or remember its name */
		if (!c->store->ops->fstat(c->store, h, &st) && store_may_write(&st))
			ret2 = write_word(c, h, OFF_REVOKED, 1);
		store_close(c->store, &h);
	}
	ret = c->store->ops->unlink(c->store, path);
	return !ret2 || ret == -ENOENT ? 0 : ret == -EISDIR ? -EIO : ret; /* a directory was told of when it was opened */
}
