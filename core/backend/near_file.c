/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reading and writing near.HOST and spread.N.HOST, on both sides.
 */
#include "core/backend/near_file.h"

#include "core/backend/host.h"
#include "core/backend/names.h"
#include "core/backend/origin.h"
#include "core/backend/way.h"
#include "core/base/bytes.h"
#include "core/base/stamp.h"
#include "core/base/sys.h"

#include <stdio.h>

const char *near_file_name(char *file, const char *host, size_t host_len)
{
	snprintf(file, STORE_PATH_LEN, "near.%.*s", (int)host_len, host);
	return file;
}

int near_file_path(char *path, const char *dir, const char *file)
{
	int n = snprintf(path, STORE_PATH_LEN, "%s/%s", dir, file);

	return n < STORE_PATH_LEN ? 0 : -ENAMETOOLONG;
}

/* Whether @dir, ".plfs/XX/ID/hostdir.K", is in the container of this id. */
static bool is_in(const char *dir, const uint8_t *id)
{
	const char *end = strrchr(dir, '/');
	char hex[2 * STUB_ID_LEN + 1];

	for (int i = 0; i < STUB_ID_LEN; i++)
		snprintf(hex + 2 * i, 3, "%02x", id[i]);
	return end && end - dir > 2 * STUB_ID_LEN && !memcmp(end - 2 * STUB_ID_LEN, hex, 2 * STUB_ID_LEN);
}

/* Whether it is what @file in the hostdir @dir, ".plfs/XX/ID/hostdir.K", should be. */
static bool is_of(const struct place *p, const char *dir, const char *file)
{
	size_t len;
	const char *host = name_host(file, &len);

	return host && is_in(dir, p->id) && strlen(p->host) == len && !memcmp(p->host, host, len) &&
	       !(p->features & PLACE_SHARED) == !name_spread_slot(file);
}

/* Where new logs are made, near.HOST being damaged: for messages. */
static void guess(const struct store *home, const char *file, struct place *p)
{
	size_t len;
	const char *host = name_host(file, &len);

	memset(p, 0, sizeof(*p));
	snprintf(p->host, sizeof(p->host), "%.*s", (int)len, host);
	p->features = name_spread_slot(file) ? PLACE_SHARED : 0;
	if (home->near && !p->features)
		place_top_path(home->near, p->path);
	else
		snprintf(p->path, sizeof(p->path), "an unknown place (%.100s is damaged)",
			 file);
}

/* The first PLACE_LEN bytes of the file @path, or fewer; -errno. */
static ssize_t read_start(struct store *s, const char *path, uint8_t *buf)
{
	int h = store_open(s, path, O_RDONLY | STORE_BRIEFLY | s->uncached, 0);
	ssize_t n;

	if (h < 0)
		return h;
	n = s->ops->pread(s, h, buf, PLACE_LEN, 0);
	store_close(s, &h);
	return n;
}

int near_file_raw(struct store *s, const char *path, uint8_t *buf)
{
	ssize_t n = read_start(s, path, buf);

	return n < 0 ? (int)n : n < PLACE_LEN ? -ENODATA : 0;
}

int near_file_read(struct store *home, const char *dir, const char *file, uint8_t *raw, struct place *p)
{
	char path[STORE_PATH_LEN];
	int ret = near_file_path(path, dir, file);
	ssize_t n = ret ? ret : read_start(home, path, raw);

	if (n < 0)
		return (int)n;
	if (!n && !strncmp(file, "spread.", 7)) /* as yet: write_first() */
		return -ENOENT;
	if (n == PLACE_LEN && !place_decode(p, raw) && is_of(p, dir, file))
		return 0;
	guess(home, file, p);
	return -EBADMSG;
}

/* ---- the one near, locked ---- */

int near_file_read_locked(struct place_dir *near, const char *dir, const char *file, uint8_t *raw,
			  struct place *p)
{
	ssize_t n = near->store.ops->pread(&near->store, near->lock, raw, PLACE_LEN, 0);

	if (n < 0)
		return (int)n;
	return n == PLACE_LEN && !place_decode(p, raw) && is_of(p, dir, file) ? 0 : -ENODATA;
}

int near_file_write_locked(struct place_dir *near, const uint8_t *raw)
{
	ssize_t n = near->store.ops->pwrite(&near->store, near->lock, raw, PLACE_LEN, 0);

	return n == PLACE_LEN ? 0 : n < 0 ? (int)n : -ENOSPC;
}

int near_file_fill(struct store *home, struct place_dir *near, const char *dir, const char *host,
		   const char *path, uint32_t features)
{
	struct place p = {
		.created_ns = stamp_next(), .features = features, .origin = origin_identity(home)
	};
	const char *end = strrchr(dir, '/');
	uint8_t raw[PLACE_LEN];

	for (int i = 0; i < STUB_ID_LEN; i++) {
		unsigned byte;

		if (sscanf(end - 2 * STUB_ID_LEN + 2 * i, "%2x", &byte) != 1)
			return -EIO;
		p.id[i] = (uint8_t)byte;
	}
	if (sys.getrandom(p.token, sizeof(p.token), 0) != sizeof(p.token))
		return -EIO;
	if (snprintf(p.host, sizeof(p.host), "%s", host) >= (int)sizeof(p.host) ||
	    snprintf(p.path, sizeof(p.path), "%s", path) >= (int)sizeof(p.path))
		return -ENAMETOOLONG;
	place_encode(&p, raw);
	return near_file_write_locked(near, raw);
}

bool near_file_is_gone(struct place_dir *near)
{
	struct stat st;

	return near->store.ops->fstat(&near->store, near->lock, &st) || !st.st_nlink;
}

/* ---- the one at home ---- */

/*
 * Two mappings may name different backends, and take the same number for them at once: who makes the empty
 * file is first, and nobody else puts another in its place. An empty one leads nowhere, so a process that is
 * killed in between has hidden nothing. Others take the next number meanwhile.
 */
static int write_first(struct store *home, const char *path, mode_t mode, const uint8_t *raw)
{
	int h = store_open(home, path, O_RDWR | O_CREAT | O_EXCL | STORE_BRIEFLY, mode);

	if (h < 0)
		return h == -EEXIST ? -EREMOTE : h;
	store_close(home, &h);
	/* Synced before it has the name: else half of one could hide the backend after a power failure. */
	h = store_replace_durably(home, path, mode, STORE_NOBODY, raw, PLACE_LEN);
	if (h)
		home->ops->unlink(home, path);
	return h;
}

int near_file_write_home(struct store *home, const char *path, mode_t mode, struct place_dir *near,
			 bool durably)
{
	uint8_t raw[PLACE_LEN];
	ssize_t n = near->store.ops->pread(&near->store, near->lock, raw, sizeof(raw), 0);
	int h;

	if (n != sizeof(raw))
		return n < 0 ? (int)n : -EIO;
	if (get_le32(raw + 60) & PLACE_SHARED)
		return write_first(home, path, mode, raw);
	if (durably)
		return store_replace_durably(home, path, mode, STORE_NOBODY, raw, sizeof(raw));
	h = store_replace_file(home, path, mode, raw, sizeof(raw), NULL, 0);
	if (h < 0)
		return h;
	store_close(home, &h);
	return 0;
}

/*
 * The file at home, of the bytes @raw, is another than that here. -ENODEV: it is of this backend, which lacks
 * what it had: it is not mounted, say. Nothing is to be written below where it was.
 */
static int other_place(const struct place_settings *ps, const uint8_t *raw)
{
	char top[PLACE_PATH_LEN];
	struct place p;

	if (!ps->features || place_decode(&p, raw) || place_top_path(ps, top))
		return -EREMOTE;
	return strcmp(p.path, top) ? -EREMOTE : -ENODEV;
}

int near_file_compare(struct store *home, const struct place_settings *ps, const char *dir, const char *file,
		      mode_t mode, struct place_dir *near, bool make)
{
	uint8_t here[PLACE_LEN], there[PLACE_LEN];
	char path[STORE_PATH_LEN], top[PLACE_PATH_LEN];
	struct place p;
	int ret = near_file_is_gone(near) ? -EAGAIN : near_file_path(path, dir, file), own;

	own = ret ? ret : near_file_read_locked(near, dir, file, here, &p);
	if (own && own != -ENODATA)
		return own;
	ret = near_file_raw(home, path, there);
	if (!ret && !own && !memcmp(here, there, PLACE_LEN))
		return p.features == ps->features ? 0 : -EREMOTE;
	if (ret != -ENOENT)
		return ret && ret != -ENODATA ? ret : ret ? -EREMOTE : other_place(ps, there);
	if (!make)
		return -ENODATA;
	ret = place_top_path(ps, top);
	if (!ret && own)
		ret = near_file_fill(home, near, dir, host_name(), top, ps->features);
	/* A power failure that leaves the file at home alone would make the backend seem to be gone. */
	if (!ret && ps->features & PLACE_SHARED)
		ret = near->store.ops->sync(&near->store, near->lock, false);
	if (!ret && ps->features & PLACE_SHARED)
		ret = way_sync(top, strchr(dir, '/') + 1);
	return ret ? ret : near_file_write_home(home, path, mode, near, false);
}
