/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Live files of any process: opening one, its header, and the words in it that other processes write.
 */
#include "stage_read.h"

#include "crc32c.h"
#include "dropping.h"
#include "log.h"
#include "own.h"

/* What a header may say at most, whoever wrote it. */
#define RECORDS_CAP_MAX (1 << 16)
#define STAGE_CAP_MAX (1 << 30)
#define OFF_MAX ((uint64_t)1 << 40)

#define TELLING_MS 1000

bool stage_is_foreign(const struct container *c, const char *path)
{
	return c->store->remote && !dropping_live_is_ours(strchr(path, '/') + 1);
}

/* A name in the same directory, and nothing that leads elsewhere. */
static bool is_log_name(const void *name)
{
	return memchr(name, 0, INDEX_LOG_NAME_LEN) && !strncmp(name, "data.", 5) && !strchr(name, '/');
}

bool stage_is_stranded(const struct container *c, const uint8_t *header)
{
	uint32_t boot = get_le32(header + 212), ours = dropping_boot();

	return !c->store->remote && boot && ours && boot != ours;
}

int stage_open_header(const struct container *c, const char *path, int flags, uint8_t *header, bool *elsewhere)
{
	char full[CONTAINER_PATH_LEN];
	uint8_t copy[STATIC_LEN];
	bool foreign = stage_is_foreign(c, path);
	ssize_t n;
	int h;

	container_path(c, path, full);
	h = store_open(c->store, full, flags | STORE_BRIEFLY | (foreign ? c->store->uncached : 0), 0);
	if (h < 0)
		return h;
	if (elsewhere)
		*elsewhere = foreign && c->store->ops->locked(c->store, h);
	if (foreign)
		c->store->ops->forget(c->store, h);
	n = c->store->ops->pread(c->store, h, header, HEADER_LEN, 0);
	memcpy(copy, header, STATIC_LEN);
	put_le32(copy + 12, 0);
	if (n == HEADER_LEN && !memcmp(header, STAGE_MAGIC, 8) && get_le32(header + 8) == STAGE_VERSION &&
	    !memcmp(header + 16, c->id, STUB_ID_LEN) && crc32c(0, copy, STATIC_LEN) == get_le32(header + 12) &&
	    is_log_name(header + 80) && get_le64(header + 32) <= OFF_MAX && get_le64(header + 40) <= RECORDS_CAP_MAX &&
	    get_le64(header + 64) <= OFF_MAX && get_le64(header + 72) <= STAGE_CAP_MAX)
		return h;
	store_close(c->store, &h);
	if (n == HEADER_LEN && !memcmp(header, STAGE_MAGIC, 8) && get_le32(header + 8) != STAGE_VERSION &&
	    crc32c(0, copy, STATIC_LEN) == get_le32(header + 12)) {
		log_error("%s: live index of version %u, this library's is %d", full, get_le32(header + 8), STAGE_VERSION);
		return -EPROTONOSUPPORT;
	}
	return n < 0 ? (int)n : *header ? -EBADMSG : -ENODATA;
}

int stage_take_words(uint8_t *header)
{
	for (size_t i = 0; i < ARRAY_SIZE(STAGE_WORDS); i++) {
		uint64_t word = get_le64(header + STAGE_WORDS[i]);

		if (stage_word(stage_number(word)) != word)
			return -EBADMSG;
		put_le64(header + STAGE_WORDS[i], stage_number(word));
	}
	return 0;
}

bool stage_is_unborn(const struct container *c, const char *path)
{
	uint8_t header[HEADER_LEN] = { 0 };
	bool elsewhere = false;
	int h = stage_open_header(c, path, O_RDONLY, header, &elsewhere);

	if (h >= 0)
		store_close(c->store, &h);
	return h == -ENODATA && elsewhere;
}

bool stage_is_unmapped(const struct container *c, const char *path)
{
	uint8_t header[HEADER_LEN] = { 0 };
	int h = stage_open_header(c, path, O_RDONLY, header, NULL);

	if (h < 0)
		return false;
	store_close(c->store, &h);
	return get_le32(header + 208);
}

static void await_told(const struct container *c, const char *path, int h)
{
	const struct timespec wait = { .tv_nsec = 1000000 };
	uint8_t word[8];

	for (int i = 0; i < TELLING_MS; i++) {
		if (c->store->ops->pread(c->store, h, word, sizeof(word), STAGE_TELLING_OFF) != sizeof(word) || !get_le64(word) ||
		    !dropping_is_running(strchr(path, '/') + 1))
			return;
		own_nanosleep(&wait, NULL);
	}
}

int stage_notify(const struct container *c, const char *path, uint64_t stamp_ns)
{
	uint8_t header[HEADER_LEN] = { 0 }, word[8];
	int h = stage_open_header(c, path, O_RDWR, header, NULL);
	uint8_t *map;
	ssize_t n;

	if (h < 0)
		return h == -ENODATA ? 0 : h;
	map = c->store->remote && !stage_is_foreign(c, path) ? c->store->ops->map(c->store, h, HEADER_LEN, true) : NULL;
	if (map) { /* a write beside the stores of the owner loses what those have left in the page, on GlusterFS for one */
		store_le64(map + OFF_NOTIFY, stamp_ns);
		c->store->ops->unmap(c->store, map, HEADER_LEN);
		n = 0;
	} else {
		put_le64(word, stamp_ns);
		n = c->store->ops->pwrite(c->store, h, word, sizeof(word), OFF_NOTIFY);
	}
	await_told(c, path, h);
	store_close(c->store, &h);
	return n < 0 ? (int)n : 0;
}

uint64_t stage_adopted(const struct container *c, const char *path)
{
	uint8_t header[HEADER_LEN] = { 0 };
	int h = stage_open_header(c, path, O_RDONLY, header, NULL);

	if (h < 0)
		return 0;
	store_close(c->store, &h);
	return get_le64(header + OFF_ADOPTED);
}

void stage_set_adopted(const struct container *c, const char *path, uint64_t digest)
{
	uint8_t header[HEADER_LEN] = { 0 }, word[8];
	int h = stage_open_header(c, path, O_RDWR, header, NULL);

	if (h < 0)
		return;
	put_le64(word, digest);
	c->store->ops->pwrite(c->store, h, word, sizeof(word), OFF_ADOPTED);
	store_close(c->store, &h);
}
