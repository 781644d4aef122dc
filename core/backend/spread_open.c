/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Notes at home of live files in another backend.
 */
#include "core/backend/spread_open.h"

#include "core/backend/name_list.h"
#include "core/backend/names.h"
#include "core/backend/near_file.h"
#include "core/base/alloc.h"
#include "core/base/bytes.h"
#include "core/base/crc32c.h"
#include "core/base/critical.h"
#include "core/base/msg.h"
#include "core/base/vec.h"

#include <stdio.h>

#define MADE 1u
#define REMOVED 2u
#define AT_ONCE 64 /* notes in a read */

struct note {
	uint32_t pid, seq, state;
};

static void encode(const struct note *n, uint8_t *buf)
{
	put_le32(buf, n->pid);
	put_le32(buf + 4, n->seq);
	put_le32(buf + 8, n->state);
	put_le32(buf + 12, crc32c(0, buf, 12));
}

static bool decode(struct note *n, const uint8_t *buf)
{
	n->pid = get_le32(buf);
	n->seq = get_le32(buf + 4);
	n->state = get_le32(buf + 8);
	return get_le32(buf + 12) == crc32c(0, buf, 12) && (n->state == MADE || n->state == REMOVED);
}

static bool is_same(const struct note *a, const struct note *b)
{
	return a->pid == b->pid && a->seq == b->seq;
}

/* ---- writing ---- */

/* Then both notes go: a file that is often opened stays short. */
static bool ends_with(struct store *s, int h, off_t end, const struct note *removed)
{
	uint8_t raw[SPREAD_NOTE_LEN];
	struct note last;

	return removed->state == REMOVED && end >= PLACE_LEN + SPREAD_NOTE_LEN &&
	       s->ops->pread(s, h, raw, sizeof(raw), (uint64_t)end - sizeof(raw)) == sizeof(raw) &&
	       decode(&last, raw) && last.state == MADE && is_same(&last, removed);
}

/* The lock is held. What a killed process has left of a note is written over. */
static int append(struct store *s, int h, const struct note *n)
{
	uint8_t raw[SPREAD_NOTE_LEN];
	struct stat st;
	off_t end;
	ssize_t len;
	int ret = s->ops->fstat(s, h, &st);

	if (ret)
		return ret;
	if (st.st_size < PLACE_LEN)
		return -EIO;
	end = st.st_size - (st.st_size - PLACE_LEN) % SPREAD_NOTE_LEN;
	if (ends_with(s, h, end, n))
		return s->ops->truncate(s, h, (uint64_t)end - SPREAD_NOTE_LEN);
	encode(n, raw);
	len = s->ops->pwrite(s, h, raw, sizeof(raw), (uint64_t)end);
	return len == sizeof(raw) ? 0 : len < 0 ? (int)len : -ENOSPC;
}

/* The file at home, locked: a handle; -errno. */
static int open_locked(struct store *s, const char *dir, const char *file)
{
	char path[STORE_PATH_LEN];
	int h, ret = near_file_path(path, dir, file);

	h = ret ? ret : store_open(s, path, O_RDWR | STORE_BRIEFLY, 0);
	if (h < 0)
		return h;
	ret = store_lock(s, h);
	if (!ret || ret == -EOPNOTSUPP)
		return h;
	store_close(s, &h);
	return ret;
}

static void close_locked(struct store *s, int h)
{
	store_unlock(s, h);
	store_close(s, &h);
}

int spread_note(struct store *s, const char *dir, unsigned slot, const char *live, bool made)
{
	struct note n = { .state = made ? MADE : REMOVED };
	char file[STORE_PATH_LEN];
	size_t len;
	const char *host = name_host(live, &len);
	int h, ret;

	if (!host)
		return -EIO;
	snprintf(file, sizeof(file), "spread.%u.%.*s", slot, (int)len, host);
	name_log_numbers(live, &n.pid, &n.seq);
	h = open_locked(s, dir, file);
	if (h < 0)
		return h;
	ret = append(s, h, &n);
	close_locked(s, h);
	return ret;
}

int spread_forget_notes(struct store *s, const char *dir, const char *file)
{
	struct stat st;
	int ret, h = open_locked(s, dir, file);

	if (h < 0)
		return h;
	ret = s->ops->fstat(s, h, &st);
	if (!ret && st.st_size > PLACE_LEN)
		ret = s->ops->truncate(s, h, PLACE_LEN);
	close_locked(s, h);
	return ret;
}

/* ---- reading ---- */

struct open_notes {
	struct note *v; /* without those that were removed */
	size_t nr, cap;
};

/* False: no memory. */
static bool take(struct open_notes *o, const struct note *n)
{
	struct note *v;
	size_t i = 0;

	while (i < o->nr && !is_same(&o->v[i], n))
		i++;
	if (n->state == REMOVED) {
		if (i < o->nr)
			o->v[i] = o->v[--o->nr];
		return true;
	}
	if (i < o->nr)
		return true;
	v = vec_room(o->v, &o->cap, o->nr + 1, sizeof(*v));
	if (!v)
		return false;
	o->v = v;
	v[o->nr++] = *n;
	return true;
}

/* All notes from @h, at PLACE_LEN on. False: they are not whole, or cannot be read. */
static bool take_all(struct open_notes *o, struct store *s, int h)
{
	uint8_t raw[AT_ONCE * SPREAD_NOTE_LEN];
	uint64_t off = PLACE_LEN;
	struct note n;
	ssize_t len;

	while ((len = s->ops->pread(s, h, raw, sizeof(raw), off)) > 0) {
		if (len % SPREAD_NOTE_LEN)
			return false;
		for (ssize_t i = 0; i < len; i += SPREAD_NOTE_LEN)
			if (!decode(&n, raw + i) || !take(o, &n))
				return false;
		off += (uint64_t)len;
	}
	return !len;
}

static bool is_noted(struct store *s, int h)
{
	uint8_t raw[PLACE_LEN];
	struct place p;

	return s->ops->pread(s, h, raw, sizeof(raw), 0) == sizeof(raw) && !place_decode(&p, raw) &&
	       p.features & PLACE_NOTED;
}

bool spread_has_open(struct store *s, const char *dir, const char *file, const char *live)
{
	struct open_notes o = { .nr = 0 };
	struct note one = { .pid = 0 };
	char path[STORE_PATH_LEN];
	bool has = true;
	int h = near_file_path(path, dir, file);

	h = h ? h : store_open(s, path, O_RDONLY | STORE_BRIEFLY | s->uncached, 0);
	if (h < 0)
		return true;
	if (is_noted(s, h) && take_all(&o, s, h)) {
		if (live)
			name_log_numbers(live, &one.pid, &one.seq);
		has = !live && o.nr;
		for (size_t i = 0; i < o.nr && live; i++)
			has |= is_same(&o.v[i], &one);
	}
	mem_free(o.v);
	store_close(s, &h);
	return has;
}

/* ---- messages ---- */

void spread_tell_gone(struct store *s, const char *dir, const char *file)
{
	static char last[CONTAINER_PATH_LEN];
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	bool same, open = spread_has_open(s, dir, file, NULL);
	struct place p;
	int ret = place_read_as(s, dir, file, &p);

	mutex_lock(&lock);
	same = !strcmp(last, dir);
	snprintf(last, sizeof(last), "%s", dir);
	mutex_unlock(&lock);
	if (same || (ret && ret != -EBADMSG))
		return;
	if (ret)
		msg_error("%s/%s: damaged: which backend it leads to is not known, and what was written last may be there",
			  dir, file);
	else if (open)
		msg_error("%s/%s: the backend %s is not there, or cannot be read: what was written last may be in it; bring it back, or give it up with: plfs places --forget %.*s FILE",
			  dir, file, p.path, place_near_len(p.path), p.path);
	else
		msg_error("%s/%s: the backend %s is not there, or cannot be read: not all logs can be listed; bring it back, or give it up with: plfs places --forget %.*s FILE",
			  dir, file, p.path, place_near_len(p.path), p.path);
}

void spread_tell_all_gone(struct store *s, const char *dir)
{
	struct name_list names = { .nr = 0 };
	struct store bare = store_bare(s);
	struct place_dir there;

	bare.ops->list(&bare, dir, name_list_add, &names);
	for (size_t i = 0; i < names.nr; i++) {
		bool is = name_spread_slot(names.v[i]);
		int ret = is ? place_enter_as(s, dir, names.v[i], &there, false) : -ENOENT;

		if (!ret)
			place_leave(&there);
		if (ret == -EREMOTE)
			spread_tell_gone(s, dir, names.v[i]);
	}
	name_list_release(&names);
}
