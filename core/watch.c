/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Mapping what tells of other writers, and comparing.
 */
#include "watch.h"

#include "alloc.h"
#include "bytes.h"
#include "dropping.h"
#include "mapping.h"
#include "stage.h"
#include "stamp.h"

#include <fcntl.h>
#include <stdio.h>

#define WORD_LEN sizeof(uint64_t)

static int open_word(const struct container *c, int flags)
{
	char rest[CONTAINER_PATH_LEN], path[CONTAINER_PATH_LEN];

	snprintf(rest, sizeof(rest), "hostdir.%u/notice.%s", dropping_hostdir(c), dropping_host());
	container_path(c, rest, path);
	return container_open(c, path, flags | STORE_BRIEFLY, container_file_mode(c, true));
}

/* Two processes may do it at once: both values are new. */
static int change_word(const struct container *c, int h)
{
	uint8_t value[WORD_LEN];
	ssize_t n;

	put_le64(value, stamp_next());
	n = c->store->ops->pwrite(c->store, h, value, sizeof(value), 0);
	return n == (ssize_t)sizeof(value) ? 0 : -EIO;
}

int watch_open(const struct container *c) { return open_word(c, O_RDWR | O_CREAT); }

int watch_raise_in(const struct container *c)
{
	int h = open_word(c, O_RDWR | O_CREAT);

	if (h >= 0)
		change_word(c, h);
	return h;
}

void watch_raise(const struct container *c)
{
	int h = watch_raise_in(c);

	if (h >= 0)
		store_close(c->store, &h);
}

void watch_word(struct watch *w, const struct container *c, bool make)
{
	struct stat st;
	int h;

	if (mapping_is_broken(w->word)) {
		c->store->ops->unmap(c->store, (void *)w->word, WORD_LEN);
		w->word = NULL;
	}
	if (!w->word) {
		h = open_word(c, make ? O_RDWR | O_CREAT : O_RDONLY);
		if (h < 0)
			return;
		/* A word that has no bytes yet cannot be looked at. */
		if (!c->store->ops->fstat(c->store, h, &st) &&
		    (st.st_size >= (off_t)WORD_LEN || (make && !change_word(c, h))))
			w->word = c->store->ops->map(c->store, h, WORD_LEN, false);
		store_close(c->store, &h);
	}
	if (w->word)
		w->seen = __atomic_load_n(w->word, __ATOMIC_ACQUIRE);
	if (watch_is_revoked(w)) /* it has told */
		w->revoked = NULL;
}

static bool is_of_this_host(const char *path)
{
	const char *slash = strchr(path, '/');

	return slash && dropping_live_is_ours(slash + 1);
}

/* Take over the entry of @path from @old, or map the file. */
static bool look_at(struct watched *live, const struct container *c, const char *path, const struct watch *old)
{
	char full[CONTAINER_PATH_LEN];
	int h;

	for (uint32_t i = 0; i < old->nr_lives; i++) {
		if (old->lives[i].path && !strcmp(old->lives[i].path, path) && !mapping_is_broken(old->lives[i].map) &&
		    !stage_mapped_is_over(old->lives[i].map)) {
			*live = old->lives[i];
			old->lives[i] = (struct watched){ 0 };
			return true;
		}
	}
	container_path(c, path, full);
	*live = (struct watched){ .path = mem_strdup(path) };
	h = store_open(c->store, full, O_RDONLY | STORE_BRIEFLY, 0);
	if (h >= 0 && stage_is_whole(c->store, h))
		live->map = c->store->ops->map(c->store, h, STAGE_INDEX_LEN, false);
	if (h >= 0)
		store_close(c->store, &h);
	if (live->path && live->map)
		return true;
	if (live->map)
		c->store->ops->unmap(c->store, (void *)live->map, STAGE_INDEX_LEN);
	mem_free(live->path);
	return false;
}

static void release_lives(struct watch *w, const struct container *c)
{
	for (uint32_t i = 0; i < w->nr_lives; i++) {
		mem_free(w->lives[i].path);
		if (w->lives[i].map)
			c->store->ops->unmap(c->store, (void *)w->lives[i].map, STAGE_INDEX_LEN);
	}
	mem_free(w->lives);
	w->lives = NULL;
	w->nr_lives = 0;
}

void watch_lives(struct watch *w, const struct container *c, const struct index_inputs *in)
{
	struct watch old = *w;

	w->lives = NULL;
	w->nr_lives = 0;
	if (in->nr_lives && in->nr_lives <= WATCH_LIVES_MAX)
		w->lives = mem_zalloc(in->nr_lives * sizeof(*w->lives));
	for (uint32_t i = 0; w->lives && i < in->nr_lives; i++) {
		if (!is_of_this_host(in->lives[i]) || !look_at(&w->lives[w->nr_lives], c, in->lives[i], &old))
			continue;
		w->lives[w->nr_lives].digest = stage_mapped_digest(w->lives[w->nr_lives].map);
		w->nr_lives++;
	}
	release_lives(&old, c);
}

/* A live file that is not watched: it cannot be mapped, or its owner has closed it since it was listed, perhaps after another write. */
static bool is_as_listed(const struct container *c, const char *path, uint64_t digest)
{
	uint64_t now;

	return !is_of_this_host(path) || (!stage_digest(c, path, &now) && now == digest);
}

bool watch_agrees(const struct watch *w, const struct container *c, const struct index_inputs *in)
{
	uint32_t k = 0;

	for (uint32_t i = 0; i < in->nr_lives; i++) {
		bool watched = k < w->nr_lives && !strcmp(in->lives[i], w->lives[k].path);

		if (watched && stage_mapped_file_digest(w->lives[k].map) != in->digests[i])
			return false;
		if (!watched && !is_as_listed(c, in->lives[i], in->digests[i]))
			return false;
		k += watched;
	}
	return k == w->nr_lives;
}

/* Nothing is told by those. */
static bool is_broken(const struct watch *w)
{
	if (mapping_is_broken(w->word))
		return true;
	for (uint32_t i = 0; i < w->nr_lives; i++)
		if (mapping_is_broken(w->lives[i].map))
			return true;
	return false;
}

bool watch_changed(const struct watch *w)
{
	if (w->word && __atomic_load_n(w->word, __ATOMIC_ACQUIRE) != w->seen)
		return true;
	if (watch_is_revoked(w))
		return true;
	for (uint32_t i = 0; i < w->nr_lives; i++)
		if (stage_mapped_digest(w->lives[i].map) != w->lives[i].digest)
			return true;
	return unlikely(mapping_nr_broken) && is_broken(w);
}

void watch_release(struct watch *w, const struct container *c)
{
	release_lives(w, c);
	if (w->word)
		c->store->ops->unmap(c->store, (void *)w->word, WORD_LEN);
	w->word = NULL;
}
