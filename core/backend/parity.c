/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Blocks of groups, and where parity files are. What is in these core/dropping/parities.c reads and writes.
 */
#include "core/backend/parity.h"

#include "core/backend/host.h"
#include "core/backend/names.h"
#include "core/base/bytes.h"
#include "core/base/crc32c.h"
#include "core/base/sys.h"
#include "core/base/vec.h"

#include <stdio.h>

#define FILE_MAX_LEN ((size_t)1 << 28)

/* ---- blocks ---- */

static uint8_t *put_text(uint8_t *p, const char *text)
{
	size_t len = strlen(text) + 1;

	memcpy(p, text, len);
	return p + len;
}

size_t parity_encode(const struct container *c, const struct parity_group *g, uint8_t *buf)
{
	uint8_t *p = buf + PARITY_HEADER_LEN;
	size_t size;

	memset(buf, 0, PARITY_DATA_OFF);
	memcpy(buf, PARITY_MAGIC, 8);
	put_le32(buf + 8, PARITY_VERSION);
	memcpy(buf + 16, c->id, STUB_ID_LEN);
	put_le64(buf + 32, g->len);
	put_le32(buf + 40, g->data_crc);
	put_le32(buf + 48, 0); /* compat */
	put_le32(buf + 52, g->row ? PARITY_INCOMPAT_ROW : 0);
	put_le32(buf + 56, g->nr);
	put_le32(buf + 60, g->row);
	p = put_text(put_text(p, g->file), g->top);
	for (unsigned i = 0; i < g->nr; i++) {
		put_le64(p, g->logs[i].len);
		p = put_text(p + 8, g->logs[i].path);
	}
	size = round_up_u64((uint64_t)(p - buf), 8);
	put_le32(buf + 44, (uint32_t)size);
	put_le32(buf + 12, crc32c(0, buf, size));
	return size;
}

static_assert(PARITY_HEADER_LEN + CONTAINER_REST_MAX + 1 + PLACE_PATH_LEN +
			      PARITY_LOGS_MAX * (8 + CONTAINER_REST_MAX + 1) <= PARITY_DATA_OFF,
	      "a block fits in front of the data");

/* The text at *@p, up to @end, with its zero, into @out of @room bytes. */
static bool take_text(const uint8_t **p, const uint8_t *end, char *out, size_t room)
{
	const uint8_t *zero = *p < end ? memchr(*p, 0, (size_t)(end - *p)) : NULL;

	if (!zero || (size_t)(zero - *p) >= room)
		return false;
	memcpy(out, *p, (size_t)(zero - *p) + 1);
	*p = zero + 1;
	return true;
}

/* A path of a hostdir, so that nothing else of a store is opened by it. */
static bool is_path(const char *path, const char *kind)
{
	const char *slash = strchr(path, '/');

	return slash && !strncmp(path, "hostdir.", 8) && !strchr(slash + 1, '/') &&
	       !strncmp(slash + 1, kind, strlen(kind));
}

static bool take_logs(struct parity_group *g, const uint8_t *p, const uint8_t *end)
{
	for (unsigned i = 0; i < g->nr; i++) {
		struct parity_log *log = &g->logs[i];

		if (end - p < 8)
			return false;
		log->len = get_le64(p);
		p += 8;
		if (!take_text(&p, end, log->path, sizeof(log->path)) || !is_path(log->path, "data.") ||
		    !log->len || log->len > g->len)
			return false;
	}
	return true;
}

ssize_t parity_decode(const struct container *c, struct parity_group *g, const uint8_t *buf, size_t len)
{
	static const uint8_t none[4];
	const uint8_t *p = buf + PARITY_HEADER_LEN;
	uint32_t size, crc;

	if (len < PARITY_HEADER_LEN || memcmp(buf, PARITY_MAGIC, 8))
		return -EBADMSG;
	size = get_le32(buf + 44);
	if (size < PARITY_HEADER_LEN || size > len || size > PARITY_DATA_OFF || size % 8)
		return -EBADMSG;
	crc = crc32c(crc32c(0, buf, 12), none, 4);
	if (crc32c(crc, buf + 16, size - 16) != get_le32(buf + 12))
		return -EBADMSG;
	if (get_le32(buf + 8) != PARITY_VERSION || get_le32(buf + 52) & ~PARITY_INCOMPAT_KNOWN)
		return -EPROTONOSUPPORT;
	g->len = get_le64(buf + 32);
	g->data_crc = get_le32(buf + 40);
	g->nr = get_le32(buf + 56);
	g->row = get_le32(buf + 60);
	if (memcmp(buf + 16, c->id, STUB_ID_LEN) || g->nr > PARITY_LOGS_MAX || g->len > INT64_MAX / 2 ||
	    g->row >= PARITY_ROWS_MAX ||
	    !take_text(&p, buf + size, g->file, sizeof(g->file)) || !is_path(g->file, "parity.") ||
	    !take_text(&p, buf + size, g->top, sizeof(g->top)) || !take_logs(g, p, buf + size))
		return -EBADMSG;
	return (ssize_t)size;
}

/* ---- all groups ---- */

static int take_group(struct parity_groups *gs, const struct parity_group *g)
{
	struct parity_group *v;

	for (size_t i = gs->nr; !g->nr && i-- > 0;)
		if (!strcmp(gs->v[i].file, g->file)) {
			memmove(&gs->v[i], &gs->v[i + 1], (--gs->nr - i) * sizeof(*gs->v));
			gs->nr_dropped++;
			return 0;
		}
	if (!g->nr)
		return 0;
	v = vec_room(gs->v, &gs->cap, gs->nr + 1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	gs->v = v;
	v[gs->nr++] = *g;
	return 0;
}

static void record_path(const struct container *c, char *path) { container_path(c, PARITY_NAME, path); }

int parity_read(const struct container *c, struct parity_groups *gs)
{
	struct store home = store_bare(c->store);
	char path[CONTAINER_PATH_LEN];
	struct parity_group *g;
	uint8_t *text;
	size_t len;
	int ret;

	*gs = (struct parity_groups){ .nr = 0 };
	record_path(c, path);
	ret = store_read_file(&home, path, FILE_MAX_LEN, (void **)&text, &len);
	if (ret)
		return ret == -ENOENT ? 0 : ret;
	g = mem_alloc(sizeof(*g));
	ret = g ? 0 : -ENOMEM;
	for (size_t at = 0; at < len && !ret;) { /* a damaged one is passed over */
		ssize_t size = parity_decode(c, g, text + at, len - at);

		ret = size > 0 ? take_group(gs, g) : size == -EPROTONOSUPPORT ? (int)size : 0;
		at += size > 0 ? (size_t)size : 8;
	}
	mem_free(g);
	mem_free(text);
	return ret;
}

void parity_release(struct parity_groups *gs)
{
	mem_free(gs->v);
	*gs = (struct parity_groups){ .nr = 0 };
}

bool parity_is_of_same(const struct parity_group *a, const struct parity_group *b)
{
	bool same = a->len == b->len && a->nr == b->nr;

	for (unsigned i = 0; i < a->nr && same; i++)
		same = a->logs[i].len == b->logs[i].len && !strcmp(a->logs[i].path, b->logs[i].path);
	return same;
}

bool parity_is_pair(const struct parity_group *a, const struct parity_group *b)
{
	return a->row != b->row && parity_is_of_same(a, b);
}

const struct parity_group *parity_other(const struct parity_groups *gs, const struct parity_group *g)
{
	for (size_t i = gs->nr; i-- > 0;)
		if (parity_is_pair(&gs->v[i], g))
			return &gs->v[i];
	return NULL;
}

uint64_t parity_has(const struct parity_group *g, const char *path)
{
	for (unsigned i = 0; i < g->nr; i++)
		if (!strcmp(g->logs[i].path, path))
			return g->logs[i].len;
	return 0;
}

/*
 * Another user, who may write the file, can have made it: an older library let him make parity, which nobody
 * else can read. The owner begins anew; what that has left goes with the container.
 */
static void drop_record_of_another(const struct container *c, struct store *home, const char *path)
{
	struct stat st;

	if (c->uid != CONTAINER_ANYBODY && !home->ops->stat(home, path, &st) && st.st_uid != c->uid)
		home->ops->unlink(home, path);
}

int parity_lock(const struct container *c)
{
	struct store home = store_bare(c->store);
	char path[CONTAINER_PATH_LEN];
	bool made;
	int h, ret;

	record_path(c, path);
	drop_record_of_another(c, &home, path);
	h = store_open_or_make(&home, path, O_RDWR | STORE_BRIEFLY, container_file_mode(c, false), &made);
	if (h < 0)
		return h;
	if (made && c->give)
		store_give(&home, h, c->uid);
	ret = store_try_lock(&home, h);
	if (ret && ret != -EOPNOTSUPP) {
		store_close(&home, &h);
		return ret;
	}
	if (made)
		store_sync_path(&home, c->dir, true);
	return h;
}

/* A block begins at a multiple of 8: behind what a killed process has left, zeros. */
int parity_append(const struct container *c, int h, const struct parity_group *g)
{
	struct store home = store_bare(c->store);
	uint8_t *buf = mem_alloc(PARITY_DATA_OFF);
	struct parity_group copy = *g;
	struct stat st;
	size_t size;
	ssize_t n;
	int ret = buf ? home.ops->fstat(&home, h, &st) : -ENOMEM;

	if (!ret && !store_may_write(&st))
		ret = -EMLINK;
	if (!ret) {
		copy.data_crc = 0;
		size = parity_encode(c, &copy, buf);
		n = home.ops->pwrite(&home, h, buf, size, round_up_u64((uint64_t)st.st_size, 8));
		ret = n == (ssize_t)size ? home.ops->sync(&home, h, false) : n < 0 ? (int)n : -ENOSPC;
	}
	mem_free(buf);
	return ret;
}

/* ---- files ---- */

int parity_name(struct parity_group *g, const char *path)
{
	uint64_t salt;
	int n;

	if (sys.getrandom(&salt, sizeof(salt), 0) != sizeof(salt))
		return -EIO;
	n = snprintf(g->file, sizeof(g->file), "%.*sparity.%s.%016llx", (int)(name_of(path) - path), path,
		     host_name(), (unsigned long long)salt);
	return n < (int)sizeof(g->file) ? 0 : -ENAMETOOLONG;
}

static void dir_of(const struct container *c, const char *path, char *dir)
{
	snprintf(dir, CONTAINER_PATH_LEN, "%s/%.*s", c->dir, (int)(name_of(path) - 1 - path), path);
}

static int enter_home(const struct container *c, const char *dir, struct place_dir *to)
{
	*to = (struct place_dir){ .store = store_bare(c->store), .lock = -1 };
	to->store.root = store_open(&to->store, dir, O_RDONLY | O_DIRECTORY | STORE_BRIEFLY, 0);
	return to->store.root < 0 ? to->store.root : 0;
}

int parity_enter(const struct container *c, const struct parity_group *g, struct place_dir *dir)
{
	char path[CONTAINER_PATH_LEN];

	dir_of(c, g->file, path);
	return *g->top ? place_open_top(c->store, g->top, path, dir) : enter_home(c, path, dir);
}

static uid_t user_of(const struct container *c)
{
	return c->uid == CONTAINER_ANYBODY ? geteuid() : c->uid;
}

int parity_top(const struct container *c, const struct place_settings *ps, char *top)
{
	int n = snprintf(top, PLACE_PATH_LEN, "%s/plfs.%u/%s", ps->near, (unsigned)user_of(c),
			 ps->backend_id);

	return n < PLACE_PATH_LEN ? 0 : -ENAMETOOLONG;
}

int parity_begin(const struct container *c, const struct place_settings *ps, struct parity_group *g,
		 struct place_dir *dir)
{
	char path[CONTAINER_PATH_LEN];
	int ret;

	dir_of(c, g->file, path);
	*g->top = '\0';
	if (!ps)
		return enter_home(c, path, dir);
	ret = parity_top(c, ps, g->top);
	return ret ? ret : place_make(c->store, ps, user_of(c), path, dir);
}
