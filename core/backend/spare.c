/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * copies.HOST, and the directories that it names. What is in them core/dropping/copies.c reads and writes.
 */
#include "core/backend/spare.h"

#include "core/backend/container_dirs.h"
#include "core/backend/names.h"
#include "core/backend/origin.h"
#include "core/backend/parity.h"
#include "core/base/alloc.h"
#include "core/base/crc32c.h"
#include "core/base/io.h"
#include "core/base/sys.h"

#include <stdio.h>
#include <stdlib.h>

#define MAGIC "plfs-copies 1 "
#define CRC_DIGITS 8
#define COPIES "copies."
#define TEXT_MAX (SPARE_DIRS_MAX * PLACE_PATH_LEN + 64)

/* ---- what the mapping says ---- */

/* @path as it stands in a mapping, behind what is in @map, and then @end. */
static void add_path(char *map, const char *path, const char *end)
{
	char *to = map + strlen(map);

	for (; *path; path++) {
		if (strchr(":,;={}#\\ \t", *path))
			*to++ = '\\';
		*to++ = *path;
	}
	strcpy(to, end);
}

/* How many backends besides home there are copies or parity in. */
static unsigned nr_others(const struct mount_spec *spec)
{
	return (spec->parity ? (unsigned)spec->nr_backends : spec->mirror) - 1;
}

/* The mapping once more, as far as it is of copies. NULL: no memory. */
static char *make_map(const struct mount_spec *spec, const char *home, char *const *others)
{
	static const char *const rules[] = { "", "host", "process", "file" };
	size_t len = 2 * (strlen(spec->prefix) + strlen(home)) + 64;
	unsigned nr = nr_others(spec);
	char *map, last[40];

	for (unsigned i = 0; i < nr; i++)
		len += 2 * strlen(others[i]) + 1;
	map = mem_zalloc(len);
	if (!map)
		return NULL;
	if (spec->parity)
		snprintf(last, sizeof(last), "{spread=%s,parity=%u}", rules[spec->spread], spec->parity);
	else
		snprintf(last, sizeof(last), "{mirror=%u}", spec->mirror);
	add_path(map, spec->prefix, "=");
	add_path(map, home, ",");
	for (unsigned i = 0; i < nr; i++)
		add_path(map, others[i], i + 1 < nr ? "," : last);
	return map;
}

int spare_setup(struct spare_settings *ss, const struct mount_spec *spec, const char *home,
		char *const *others)
{
	unsigned nr = spec->parity ? 1 : nr_others(spec);

	*ss = (struct spare_settings){ .drain = spec->drain, .map = make_map(spec, home, others),
				       .parity = spec->parity, .nr = spec->parity ? 0 : nr };
	for (unsigned i = 0; i < nr; i++) {
		struct place_settings *ps = &ss->places[i];
		char id[sizeof(ps->backend_id)];

		*ps = (struct place_settings){ .near = others[i], .home = home,
					       .rate = spec->rate, .writers = spec->writers };
		place_settings_init(ps);
		snprintf(id, sizeof(id), COPIES "%.16s", ps->backend_id);
		memcpy(ps->backend_id, id, sizeof(id));
	}
	return ss->map ? 0 : -ENOMEM;
}

bool spare_is_top(const char *top)
{
	const char *slash = strrchr(top, '/');

	return slash && !strncmp(slash + 1, COPIES, strlen(COPIES));
}

/* ---- copies.HOST ---- */

/* "XX/ID/hostdir.K/copies.HOST" of the log @path, relative to the store. */
static int name_record(const struct container *c, const char *path, char *record)
{
	const char *name = name_of(path), *host;
	size_t len;
	int n;

	host = name_host(name, &len);
	if (!host)
		return -ENOENT;
	n = snprintf(record, CONTAINER_PATH_LEN, "%s/%.*scopies.%.*s", c->dir, (int)(name - path), path,
		     (int)len, host);
	return n < CONTAINER_PATH_LEN ? 0 : -ENAMETOOLONG;
}

/* The directory of the log @path, relative to the store. */
static void name_dir(const struct container *c, const char *path, char *dir)
{
	snprintf(dir, CONTAINER_PATH_LEN, "%s/%.*s", c->dir, (int)(name_of(path) - 1 - path), path);
}

bool spare_is_one(const struct container *c, const struct stat *st, const uint8_t *head, size_t len)
{
	(void)c, (void)st;
	return len >= strlen(MAGIC) && !memcmp(head, MAGIC, strlen(MAGIC));
}

static int decode(const char *text, size_t len, struct spare_dirs *dirs)
{
	size_t head = strlen(MAGIC) + CRC_DIGITS + 1;
	unsigned crc;

	dirs->nr = 0;
	if (len < head || memcmp(text, MAGIC, strlen(MAGIC)) || text[head - 1] != '\n' ||
	    sscanf(text + strlen(MAGIC), "%8x", &crc) != 1 || crc32c(0, text + head, len - head) != crc)
		return -EBADMSG;
	for (size_t at = head; at < len;) {
		const char *end = memchr(text + at, '\n', len - at);
		size_t n = end ? (size_t)(end - text) - at : PLACE_PATH_LEN;

		if (n >= PLACE_PATH_LEN || dirs->nr == SPARE_DIRS_MAX)
			return -EBADMSG;
		memcpy(dirs->path[dirs->nr], text + at, n);
		dirs->path[dirs->nr++][n] = '\0';
		at += n + 1;
	}
	return 0;
}

static int read_record(const struct container *c, const char *record, struct spare_dirs *dirs)
{
	struct store home = store_bare(c->store);
	void *text;
	size_t len;
	int ret = store_read_file(&home, record, TEXT_MAX, &text, &len);

	dirs->nr = 0;
	if (ret)
		return ret == -EFBIG ? -EBADMSG : ret;
	ret = decode(text, len, dirs);
	mem_free(text);
	return ret;
}

int spare_read(const struct container *c, const char *path, struct spare_dirs *dirs)
{
	char record[CONTAINER_PATH_LEN];
	int ret = name_record(c, path, record);

	return ret ? ret : read_record(c, record, dirs);
}

static int write_record(const struct container *c, const char *record, const struct spare_dirs *dirs)
{
	struct store home = store_bare(c->store);
	char *text = mem_alloc(TEXT_MAX), *body;
	size_t len = 0;
	int ret;

	if (!text)
		return -ENOMEM;
	body = text + strlen(MAGIC) + CRC_DIGITS + 1;
	for (unsigned i = 0; i < dirs->nr; i++)
		len += (size_t)sprintf(body + len, "%s\n", dirs->path[i]);
	sprintf(text, MAGIC "%08x", crc32c(0, body, len));
	body[-1] = '\n';
	ret = store_replace_durably(&home, record, container_file_mode(c, false),
				    c->give ? c->uid : STORE_NOBODY, text, (size_t)(body - text) + len);
	mem_free(text);
	return ret;
}

/* ---- the directories ---- */

int spare_enter(const struct container *c, const char *path, const char *top, struct place_dir *dir)
{
	char name[CONTAINER_PATH_LEN];

	name_dir(c, path, name);
	return place_open_top(c->store, top, name, dir);
}

static uid_t user_of(const struct container *c)
{
	return c->uid == CONTAINER_ANYBODY ? geteuid() : c->uid;
}

static bool has_dir(const struct spare_dirs *dirs, const char *top)
{
	for (unsigned i = 0; i < dirs->nr; i++)
		if (!strcmp(dirs->path[i], top))
			return true;
	return false;
}

/* Before the first copy is there: a copy that nothing leads to would stay for ever. */
static int add_dir(const struct container *c, const char *path, const char *top)
{
	struct spare_dirs *dirs = mem_alloc(sizeof(*dirs));
	char record[CONTAINER_PATH_LEN];
	int ret = dirs ? name_record(c, path, record) : -ENOMEM;

	if (!ret)
		ret = read_record(c, record, dirs);
	if (ret == -ENOENT || ret == -EBADMSG)
		ret = dirs->nr = 0;
	if (!ret && !has_dir(dirs, top)) {
		ret = dirs->nr == SPARE_DIRS_MAX ? -ENOSPC : 0;
		if (!ret) {
			snprintf(dirs->path[dirs->nr++], PLACE_PATH_LEN, "%s", top);
			ret = write_record(c, record, dirs);
		}
	}
	mem_free(dirs);
	return ret;
}

int spare_begin(const struct container *c, const char *path, const struct place_settings *ps,
		struct place_dir *dir, char *top)
{
	char name[CONTAINER_PATH_LEN];
	int ret;

	if (snprintf(top, PLACE_PATH_LEN, "%s/plfs.%u/%s", ps->near, (unsigned)user_of(c), ps->backend_id) >=
	    PLACE_PATH_LEN)
		return -ENAMETOOLONG;
	name_dir(c, path, name);
	ret = place_make(c->store, ps, user_of(c), name, dir);
	if (ret)
		return ret;
	ret = add_dir(c, path, top);
	if (ret)
		place_leave(dir);
	return ret;
}

/* ---- removal ---- */

/*
 * Whether the copies, or the parity, in @top are of the logs of this backend, and not of the one that this is
 * a copy of, made without the library: that is still at the path which the place has.
 */
static bool is_ours(const struct container *c, const char *top)
{
	struct store home = store_bare(c->store);
	const char *slash = strrchr(top, '/');
	char user[PLACE_PATH_LEN], own[40], origin[PATH_MAX];
	int fd, ret;

	snprintf(own, sizeof(own), "%016llx", (unsigned long long)home.path_id);
	if (!slash || strstr(slash, own)) /* copies.BACKEND-ID, or BACKEND-ID-shared */
		return slash;
	snprintf(user, sizeof(user), "%.*s", (int)(slash - top), top);
	fd = sys_fd_hide_briefly(io_open(user, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
	ret = fd < 0 ? -errno : origin_read(fd, slash + 1, origin, NULL);
	sys_fd_close(&fd);
	if (ret)
		return false;
	ret = origin_is_at(&home, origin);
	return ret == 1 || ret == -ENOENT; /* it was moved */
}

void spare_unlink(const struct container *c, const char *path)
{
	struct spare_dirs *dirs = mem_alloc(sizeof(*dirs));
	int ret = dirs ? spare_read(c, path, dirs) : -ENOMEM;

	for (unsigned i = 0; !ret && i < dirs->nr; i++) {
		struct place_dir dir;

		if (!is_ours(c, dirs->path[i]) || spare_enter(c, path, dirs->path[i], &dir))
			continue;
		dir.store.ops->unlink(&dir.store, name_of(path));
		place_leave(&dir);
	}
	mem_free(dirs);
}

struct finding {
	const struct container *c;
	struct spare_removal *r;
	struct spare_dirs *dirs;
};

static void add_top(struct spare_removal *r, const char *top)
{
	unsigned k = 0;

	while (k < r->nr && strcmp(r->path[k], top))
		k++;
	if (k == r->nr && k < SPARE_DIRS_MAX)
		snprintf(r->path[r->nr++], PLACE_PATH_LEN, "%s", top);
}

static int find_record(void *arg, const char *path, const char *name, enum dropping_kind kind)
{
	struct finding *f = arg;
	char record[CONTAINER_PATH_LEN];

	(void)name;
	if (kind != DROPPING_COPIES)
		return 0;
	container_path(f->c, path, record);
	if (read_record(f->c, record, f->dirs))
		return 0;
	for (unsigned i = 0; i < f->dirs->nr; i++)
		add_top(f->r, f->dirs->path[i]);
	return 0;
}

/* Parity may be in a backend that has no log. */
static void find_parity(const struct container *c, struct spare_removal *r)
{
	struct parity_groups gs;

	if (c->store->base && !parity_read(c, &gs))
		for (size_t i = 0; i < gs.nr; i++)
			if (*gs.v[i].top)
				add_top(r, gs.v[i].top);
	if (c->store->base)
		parity_release(&gs);
}

struct spare_removal *spare_find(const struct container *c)
{
	struct finding f = { .c = c, .r = mem_zalloc(sizeof(*f.r)), .dirs = mem_alloc(sizeof(*f.dirs)) };

	if (f.r && f.dirs)
		container_list(c, find_record, &f);
	if (f.r)
		find_parity(c, f.r);
	mem_free(f.dirs);
	return f.r;
}

void spare_remove(const struct container *c, const struct spare_removal *r)
{
	for (unsigned i = 0; i < r->nr; i++) {
		struct place_dir dir;

		if (!is_ours(c, r->path[i]) || place_open_top(c->store, r->path[i], PLFS_DIR_NAME "/.", &dir))
			continue;
		store_remove_tree(&dir.store, strchr(c->dir, '/') + 1, container_has);
		place_leave(&dir);
	}
}
