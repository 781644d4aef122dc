/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * index.global as a file: written, confirmed, revoked, and taken apart.
 */
#include "core/gather/kept_map.h"

#include "core/backend/container_dirs.h"
#include "core/base/alloc.h"
#include "core/base/bytes.h"
#include "core/base/crc32c.h"
#include "core/base/msg.h"
#include "core/base/sys.h"
#include "core/base/event.h"

#include <stdio.h>

#define GLOBAL_MAGIC "PLFSGLB1"
#define GLOBAL_VERSION 3
#define GLOBAL_INCOMPAT_KNOWN 0u
#define GLOBAL_CRC_LEN 128
#define OFF_CONFIRMED 128
#define OFF_REVOKED 136
#define GLOBAL_HEADER_LEN 144

/*
 * An open reads the whole file. A longer one is ignored. So is a long one that is mostly a hole, as no kept
 * map is, though some file systems compress them: to read it takes longer than it took to make.
 */
#define GLOBAL_MAX (16LL << 30)
#define HOLLOW_MIN (64LL << 20)
#define COMPRESSED_MAX 16

static void global_path(const struct container *c, char *path)
{
	container_path(c, "index.global", path);
}

/* ---- reading ---- */

const uint64_t *kept_map_revoked(const struct kept_map *gi)
{
	return gi->base ? (const uint64_t *)(const void *)(gi->base + OFF_REVOKED) : NULL;
}

/* Where the list of logs is. */
static const char *names_of(const struct kept_map *gi)
{
	return (const char *)gi->base + GLOBAL_HEADER_LEN + gi->inputs_len;
}

/* Check the header and the lists, and take over what the header says. */
static bool is_valid(struct kept_map *gi, const struct container *c, uint64_t generation_ns)
{
	uint8_t head[GLOBAL_CRC_LEN];
	uint32_t crc;

	if (gi->len < GLOBAL_HEADER_LEN)
		return false;
	memcpy(head, gi->base, sizeof(head));
	crc = get_le32(head + 12);
	put_le32(head + 12, 0);
	if (memcmp(head, GLOBAL_MAGIC, 8) || get_le32(head + 8) != GLOBAL_VERSION ||
	    crc32c(0, head, sizeof(head)) != crc || memcmp(head + 16, c->id, STUB_ID_LEN) ||
	    get_le64(head + 32) != generation_ns || get_le32(head + 84) & ~GLOBAL_INCOMPAT_KNOWN)
		return false;
	gi->inputs_len = get_le64(head + 40);
	gi->names_len = get_le64(head + 48);
	gi->map_off = get_le64(head + 56);
	gi->map_len = get_le64(head + 64);
	gi->nr_logs = get_le32(head + 72);
	return gi->inputs_len <= gi->len && gi->names_len <= gi->len &&
	       GLOBAL_HEADER_LEN + gi->inputs_len + gi->names_len <= gi->map_off && gi->map_off % 8 == 0 &&
	       gi->map_off <= gi->len && gi->map_len <= gi->len - gi->map_off &&
	       gi->nr_logs <= gi->names_len &&
	       crc32c(0, gi->base + GLOBAL_HEADER_LEN, gi->inputs_len + gi->names_len) ==
		       get_le32(head + 76) &&
	       !load_le64(gi->base + OFF_REVOKED);
}

static bool is_hollow(const struct container *c, int h, uint64_t len)
{
	struct stat st;

	return len >= HOLLOW_MIN && !c->store->ops->fstat(c->store, h, &st) &&
	       (uint64_t)st.st_blocks * 512 < len / COMPRESSED_MAX;
}

int kept_map_adopt(struct kept_map *gi, const struct container *c, int h, uint64_t generation_ns)
{
	struct store_identity id;
	int ret = store_identify(c->store, h, &id);

	*gi = (struct kept_map){ 0 };
	if (ret || id.len < GLOBAL_HEADER_LEN || id.len > GLOBAL_MAX || is_hollow(c, h, id.len))
		return ret ? ret : -EBADMSG;
	gi->len = (size_t)id.len;
	gi->ino = id.ino;
	gi->id = id.id;
	gi->base = store_map(c->store, h, gi->len, false);
	if (!gi->base)
		return -ENODEV;
	if (is_valid(gi, c, generation_ns))
		return 0;
	kept_map_close(gi, c);
	return -EBADMSG;
}

int kept_map_open(struct kept_map *gi, const struct container *c, uint64_t generation_ns)
{
	char path[CONTAINER_PATH_LEN];
	int h, ret;

	*gi = (struct kept_map){ 0 };
	global_path(c, path);
	h = store_open(c->store, path, O_RDONLY | STORE_BRIEFLY, 0);
	if (h < 0)
		return h;
	ret = kept_map_adopt(gi, c, h, generation_ns);
	store_close(c->store, &h);
	return ret;
}

void kept_map_close(struct kept_map *gi, const struct container *c)
{
	if (gi->base)
		store_unmap(c->store, (void *)gi->base, gi->len);
	gi->base = NULL;
}

/* "hostdir.K/data...", and nothing that leads elsewhere. */
static bool is_log_path(const char *path)
{
	const char *slash = strchr(path, '/');

	return slash && container_is_hostdir(path, (size_t)(slash - path)) && !strncmp(slash, "/data.", 6) &&
	       !strchr(slash + 1, '/') && strlen(path) <= CONTAINER_REST_MAX;
}

static int take_names(const struct kept_map *gi, char **logs, uint32_t nr)
{
	const char *names = names_of(gi), *end = names + gi->names_len;

	for (uint32_t i = 0; i < nr; i++) {
		char path[CONTAINER_PATH_LEN];
		size_t len = strnlen(names, min_size(sizeof(path), (size_t)(end - names)));

		if (len == sizeof(path) || names + len == end)
			return -EBADMSG;
		memcpy(path, names, len); /* copied before it is checked: see struct kept_map */
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

int kept_map_map(const struct kept_map *gi, struct index_map *map)
{
	return index_map_open(map, gi->base + gi->map_off, gi->map_len, true);
}

int kept_map_take(const struct kept_map *gi, struct index_map *map, char ***logs, uint32_t *nr_logs)
{
	int ret = kept_map_map(gi, map);

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

bool kept_map_made_from(const struct kept_map *gi, const struct index_inputs *in)
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

const char *kept_map_inputs(const struct kept_map *gi, const char **end)
{
	const char *p = (const char *)gi->base + GLOBAL_HEADER_LEN;

	*end = p + gi->inputs_len;
	return p;
}

uint64_t kept_map_logs_digest(const struct kept_map *gi)
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

bool kept_map_is_confirmed(const struct kept_map *gi)
{
	return gi->base && load_le64(gi->base + OFF_CONFIRMED) == gi->id &&
	       !load_le64(gi->base + OFF_REVOKED);
}

bool kept_map_is_current(const struct kept_map *gi, const struct container *c)
{
	char path[CONTAINER_PATH_LEN];
	struct stat st;

	if (!kept_map_is_confirmed(gi))
		return false;
	global_path(c, path);
	return !c->store->ops->stat(c->store, path, &st) && st.st_ino == gi->ino;
}

/* ---- writing ---- */

/* Everything in front of the map, mem_alloc()ed. */
static uint8_t *encode_head(const struct container *c, const struct kept_map_parts *parts, size_t *len)
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
	put_le32(buf + 80, 0); /* compat */
	put_le32(buf + 84, 0); /* incompat */
	put_le32(buf + 12, crc32c(0, buf, GLOBAL_CRC_LEN));
	return buf;
}

int kept_map_create(const struct container *c, const struct kept_map_parts *parts)
{
	char path[CONTAINER_PATH_LEN];
	uint8_t *head;
	size_t len;
	int h;

	head = encode_head(c, parts, &len);
	if (!head)
		return -ENOMEM;
	global_path(c, path);
	h = store_replace_file(c->store, path, container_file_mode(c, true), head, len, parts->image,
			       parts->image_len);
	event(EVENT_MAP_KEPT, .container = c->dir, .logs = parts->nr_logs, .result = h < 0 ? h : 0);
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

/* @only, unless 0: the identity that the file must have. */
static void confirm(const struct container *c, int h, uint64_t only)
{
	struct store_identity id;

	if (c->store->coherent && !store_identify(c->store, h, &id) && (!only || id.id == only))
		write_word(c, h, OFF_CONFIRMED, id.id);
}

void kept_map_confirm(const struct container *c, int h)
{
	confirm(c, h, 0);
}

void kept_map_confirm_opened(const struct container *c, const struct kept_map *gi)
{
	char path[CONTAINER_PATH_LEN];
	int h;

	if (kept_map_is_confirmed(gi))
		return;
	global_path(c, path);
	h = store_open(c->store, path, O_RDWR | STORE_BRIEFLY, 0);
	if (h < 0)
		return;
	confirm(c, h, gi->id);
	store_close(c->store, &h);
}

/* What is written to: a kept map of this container, by the file's own bytes. */
static bool is_of(const struct container *c, int h)
{
	uint8_t head[16 + STUB_ID_LEN];
	struct stat st;

	return !c->store->ops->fstat(c->store, h, &st) && store_may_write(&st) &&
	       c->store->ops->pread(c->store, h, head, sizeof(head), 0) == sizeof(head) &&
	       !memcmp(head, GLOBAL_MAGIC, 8) && !memcmp(head + 16, c->id, STUB_ID_LEN);
}

int kept_map_revoke(const struct container *c)
{
	char path[CONTAINER_PATH_LEN];
	int h, ret, ret2 = -EACCES;

	global_path(c, path);
	h = store_open(c->store, path, O_RDWR | STORE_BRIEFLY, 0);
	if (h == -ENOENT)
		return 0;
	if (h >= 0) { /* for readers that have it mapped, or remember its name */
		if (is_of(c, h))
			ret2 = write_word(c, h, OFF_REVOKED, 1);
		store_close(c->store, &h);
	}
	ret = c->store->ops->unlink(c->store, path);
	/* a directory was reported when it was opened */
	return !ret2 || ret == -ENOENT ? 0 : ret == -EISDIR ? -EIO : ret;
}
