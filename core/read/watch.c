/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Words and live files are mapped, remembered, and compared.
 */
#include "core/read/watch.h"

#include "core/base/alloc.h"
#include "core/backend/names.h"
#include "core/base/guard.h"
#include "core/dropping/live.h"
#include "core/dropping/notice.h"

#include <fcntl.h>

/*
 * A word that has no bytes yet cannot be looked at. It gets some here with @make, in a file made for that.
 * Where hosts share the store no other look finds the first writer of the host: its hostdir is made too.
 */
static int open_word(const struct container *c, bool make)
{
	int h = notice_open(c, O_RDONLY);
	struct stat st;

	if (h >= 0 && !c->store->ops->fstat(c->store, h, &st) && st.st_size >= NOTICE_HEADER_LEN)
		return h;
	if (h >= 0)
		store_close(c->store, &h);
	if (!make)
		return -ENODATA;
	h = c->store->remote ? notice_open_here(c) : notice_open(c, O_RDWR | O_CREAT);
	if (h >= 0 && notice_change(c, h)) { /* a full disk: nothing can be mapped */
		store_close(c->store, &h);
		h = -ENODATA;
	}
	return h;
}

static void unmap_word(struct watch *w, const struct container *c)
{
	if (w->notice)
		store_unmap(c->store, (void *)w->notice, NOTICE_HEADER_LEN);
	w->notice = NULL;
	w->word = NULL;
}

/* That of something else would never change. */
static void map_word(struct watch *w, const struct container *c, int h)
{
	w->notice = store_map(c->store, h, NOTICE_HEADER_LEN, false);
	if (!w->notice)
		return;
	w->word = (const uint64_t *)(const void *)(w->notice + NOTICE_OFF_WORD);
	if (!notice_has_header(c, w->notice))
		unmap_word(w, c);
}

void watch_word(struct watch *w, const struct container *c, bool make)
{
	int h;

	if (guard_is_broken(w->notice))
		unmap_word(w, c);
	if (!w->word) {
		h = open_word(c, make);
		if (h < 0)
			return;
		map_word(w, c, h);
		store_close(c->store, &h);
	}
	if (w->word)
		w->seen = __atomic_load_n(w->word, __ATOMIC_ACQUIRE);
	if (watch_is_revoked(w)) /* noticed: the load that follows heeds it */
		w->revoked = NULL;
}

static bool is_of_this_host(const char *path)
{
	return name_is_our_live(name_of(path));
}

/* Take over the entry of @path from @old, or map the file. */
static bool map_live(struct watched *live, const struct container *c, const char *path,
		     const struct watch *old)
{
	char full[CONTAINER_PATH_LEN];
	int h;

	for (uint32_t i = 0; i < old->nr_lives; i++) {
		if (old->lives[i].path && !strcmp(old->lives[i].path, path) &&
		    !guard_is_broken(old->lives[i].map) && !live_mapped_is_over(old->lives[i].map)) {
			*live = old->lives[i];
			old->lives[i] = (struct watched){ 0 };
			return true;
		}
	}
	container_path(c, path, full);
	*live = (struct watched){ .path = mem_strdup(path) };
	h = store_open(c->store, full, O_RDONLY | STORE_BRIEFLY, 0);
	if (h >= 0 && live_is_whole(c->store, h))
		live->map = store_map(c->store, h, LIVE_INDEX_LEN, false);
	if (h >= 0)
		store_close(c->store, &h);
	if (live->path && live->map)
		return true;
	if (live->map)
		store_unmap(c->store, (void *)live->map, LIVE_INDEX_LEN);
	mem_free(live->path);
	return false;
}

static void release_lives(struct watch *w, const struct container *c)
{
	for (uint32_t i = 0; i < w->nr_lives; i++) {
		mem_free(w->lives[i].path);
		if (w->lives[i].map)
			store_unmap(c->store, (void *)w->lives[i].map, LIVE_INDEX_LEN);
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
		if (!is_of_this_host(in->lives[i]) ||
		    !map_live(&w->lives[w->nr_lives], c, in->lives[i], &old))
			continue;
		w->lives[w->nr_lives].digest = live_mapped_digest(w->lives[w->nr_lives].map);
		w->nr_lives++;
	}
	release_lives(&old, c);
}

/*
 * A live file that is not watched: it cannot be mapped, or its owner has closed it since it was listed,
 * perhaps after another write.
 */
static bool is_as_listed(const struct container *c, const char *path, uint64_t digest)
{
	uint64_t now;

	return !is_of_this_host(path) || (!live_digest(c, path, &now) && now == digest);
}

bool watch_agrees(const struct watch *w, const struct container *c, const struct index_inputs *in)
{
	uint32_t k = 0;

	for (uint32_t i = 0; i < in->nr_lives; i++) {
		bool watched = k < w->nr_lives && !strcmp(in->lives[i], w->lives[k].path);

		if (watched && live_mapped_file_digest(w->lives[k].map) != in->digests[i])
			return false;
		if (!watched && !is_as_listed(c, in->lives[i], in->digests[i]))
			return false;
		k += watched;
	}
	return k == w->nr_lives;
}

/* A broken mapping shows no change any more. */
static bool is_broken(const struct watch *w)
{
	if (guard_is_broken(w->notice))
		return true;
	for (uint32_t i = 0; i < w->nr_lives; i++)
		if (guard_is_broken(w->lives[i].map))
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
		if (live_mapped_digest(w->lives[i].map) != w->lives[i].digest)
			return true;
	return unlikely(guard_nr_broken) && is_broken(w);
}

void watch_release(struct watch *w, const struct container *c)
{
	release_lives(w, c);
	unmap_word(w, c);
}
