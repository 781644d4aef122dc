/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The functions of a store whose logs may be in several backends: each is that of the store on a directory,
 * called for one directory after the other. They lie below those of a store with places (placed.h), which
 * take them for what is at home.
 */
#include "core/backend/spread_store.h"

#include "core/backend/names.h"
#include "core/backend/rebuilt.h"
#include "core/backend/spread_list.h"
#include "core/backend/spread_open.h"
#include "core/backend/spread_tops.h"
#include "core/base/alloc.h"
#include "core/base/critical.h"
#include "core/base/sys.h"
#include "core/store/posix.h"

#include <stdio.h>

/* ---- one directory ---- */

/* A path ".plfs/XX/ID/hostdir.K/NAME" of a log or a live file, in parts. */
struct parts {
	char dir[CONTAINER_PATH_LEN];
	const char *name, *as, *host;
	size_t host_len;
};

static bool take_apart(const char *path, struct parts *p)
{
	const char *slash = strrchr(path, '/');
	enum dropping_kind kind;

	if (!slash || slash - path >= (ptrdiff_t)sizeof(p->dir))
		return false;
	p->name = slash + 1;
	p->as = spread_undamaged(p->name);
	kind = name_kind(p->as);
	if (kind != DROPPING_DATA && kind != DROPPING_LIVE)
		return false;
	p->host = name_host(p->as, &p->host_len);
	if (!p->host)
		return false;
	memcpy(p->dir, path, (size_t)(slash - path));
	p->dir[slash - path] = '\0';
	return true;
}

static int enter(struct store *s, const struct parts *p, unsigned slot, struct place_dir *to)
{
	char file[STORE_PATH_LEN];

	snprintf(file, sizeof(file), "spread.%u.%.*s", slot, (int)p->host_len, p->host);
	return spread_enter(s, p->dir, file, p->as, to);
}

/* ---- one log ---- */

/* What is done with a file, by the functions @ops of @s; @slot: in another backend, or 0. */
typedef int do_fn(void *arg, const struct store_ops *ops, struct store *s, const char *path, unsigned slot);

static int do_in(struct store *s, const struct parts *p, const char *path, unsigned slot, do_fn *fn,
		 void *arg)
{
	struct place_dir to;
	int ret;

	if (!slot)
		return fn(arg, s->base, s, path, 0);
	ret = enter(s, p, slot, &to);
	if (ret)
		return ret;
	ret = fn(arg, to.store.ops, &to.store, p->name, slot);
	place_leave(&to);
	return ret;
}

/*
 * Where the name says, then at home, then everywhere; and once more at home, where it may have come from
 * another one meanwhile. -ENOENT: it is nowhere; -EREMOTE: and one of the backends is not there.
 */
static int do_somewhere(struct store *s, const struct parts *p, const char *path, do_fn *fn, void *arg)
{
	unsigned first = spread_slot_of(p->name);
	bool elsewhere = false;
	int ret = -ENOENT;

	for (unsigned i = 0; i <= SPREAD_SLOTS + 1 && (ret == -ENOENT || ret == -EREMOTE); i++) {
		unsigned slot = !i ? first : i - 1;

		if (i && slot == first)
			continue;
		ret = do_in(s, p, path, slot, fn, arg);
		elsewhere |= ret == -EREMOTE;
	}
	if (ret == -ENOENT || ret == -EREMOTE)
		ret = fn(arg, s->base, s, path, 0);
	return ret == -ENOENT && elsewhere ? -EREMOTE : ret;
}

struct open_arg {
	int flags;
	mode_t mode;
};

/* What other hosts may write is read past the cache where its own file system asks for that. */
static int do_open(void *arg, const struct store_ops *ops, struct store *s, const char *path, unsigned slot)
{
	const struct open_arg *oa = arg;
	int flags = oa->flags;

	if (slot) {
		flags &= ~O_DIRECT;
		if ((flags & O_ACCMODE) == O_RDONLY && !name_is_ours(path))
			flags |= s->uncached;
	}
	return ops->open(s, path, flags, oa->mode);
}

/* A live file is nowhere, and a backend is not there. -EIO: it is in that, by its note; -ENOENT. */
static int gone_live(struct store *s, const struct parts *p)
{
	char file[STORE_PATH_LEN];
	unsigned slot = spread_slot_of(p->name);

	snprintf(file, sizeof(file), "spread.%u.%.*s", slot, (int)p->host_len, p->host);
	return slot && spread_has_open(s, p->dir, file, p->name) ? -EIO : -ENOENT;
}

static int spread_open(struct store *s, const char *path, int flags, mode_t mode)
{
	struct open_arg oa = { flags, mode };
	struct parts p;
	int ret;

	if (flags & O_CREAT || !take_apart(path, &p))
		return s->base->open(s, path, flags, mode);
	ret = do_somewhere(s, &p, path, do_open, &oa);
	return ret == -EREMOTE && name_is_live(p.name) ? gone_live(s, &p) : ret;
}

static int do_stat(void *arg, const struct store_ops *ops, struct store *s, const char *path, unsigned slot)
{
	(void)slot;
	return ops->stat(s, path, arg);
}

static int spread_stat(struct store *s, const char *path, struct stat *st)
{
	struct parts p;

	return take_apart(path, &p) ? do_somewhere(s, &p, path, do_stat, st) : s->base->stat(s, path, st);
}

static int do_unlink(void *arg, const struct store_ops *ops, struct store *s, const char *path, unsigned slot)
{
	*(unsigned *)arg = slot;
	return ops->unlink(s, path);
}

/* The live file has lost its name. Without the note it counts as one while its backend is not there. */
static void note_gone(struct store *s, const struct parts *p, unsigned slot)
{
	if (name_is_live(p->name))
		spread_note(s, p->dir, slot, p->name, false);
}

/*
 * A log that a killed command has left twice goes for good, the one that readers see first. One that may be
 * in a backend that is not there stays at home too: it would come back.
 */
static int spread_unlink(struct store *s, const char *path)
{
	struct parts p;
	unsigned slot = 0;
	int ret, home;

	if (!take_apart(path, &p))
		return s->base->unlink(s, path);
	ret = do_in(s, &p, path, spread_slot_of(p.name), do_unlink, &slot);
	if (ret == -EREMOTE)
		return ret;
	if (ret)
		ret = do_somewhere(s, &p, path, do_unlink, &slot);
	if (ret || !slot)
		return ret;
	note_gone(s, &p, slot);
	home = s->base->unlink(s, path);
	return home == -ENOENT ? 0 : home;
}

struct rename_arg {
	const char *to;
	unsigned slot; /* where it was done */
};

static int do_rename(void *arg, const struct store_ops *ops, struct store *s, const char *path, unsigned slot)
{
	struct rename_arg *ra = arg;
	const char *slash = strrchr(ra->to, '/');

	ra->slot = slot;
	return ops->rename(s, path, slot && slash ? slash + 1 : ra->to);
}

static int spread_rename(struct store *s, const char *from, const char *to)
{
	struct rename_arg ra = { .to = to };
	struct parts p;
	int ret;

	if (!take_apart(from, &p))
		return s->base->rename(s, from, to);
	ret = do_somewhere(s, &p, from, do_rename, &ra);
	if (!ret && ra.slot)
		note_gone(s, &p, ra.slot);
	return ret;
}

int spread_where(struct store *s, const char *path, char *top)
{
	char file[STORE_PATH_LEN];
	struct place place;
	struct parts p;
	struct stat st;
	bool elsewhere = false;
	int ret = take_apart(path, &p) ? -ENOENT : -EINVAL;

	*top = '\0';
	for (unsigned i = 0; i <= SPREAD_SLOTS + 1 && ret == -ENOENT; i++) {
		unsigned slot = !i ? spread_slot_of(p.name) : i - 1;

		ret = do_in(s, &p, path, slot, do_stat, &st);
		elsewhere |= ret == -EREMOTE;
		if (!ret && slot) {
			snprintf(file, sizeof(file), "spread.%u.%.*s", slot, (int)p.host_len, p.host);
			ret = place_read_as(s, p.dir, file, &place);
			snprintf(top, PLACE_PATH_LEN, "%s", ret ? "" : place.path);
		}
		ret = ret == -EREMOTE ? -ENOENT : ret;
	}
	return ret == -ENOENT && elsewhere ? -EREMOTE : ret;
}

/* A handle of the log in one other backend. */
static int open_in(struct store *s, const struct parts *p, unsigned slot, struct place_dir *to)
{
	struct open_arg oa = { O_RDONLY, 0 };
	int h, ret = enter(s, p, slot, to);

	if (ret)
		return ret;
	h = do_open(&oa, to->store.ops, &to->store, p->name, slot);
	if (h < 0)
		place_leave(to);
	return h;
}

int spread_open_there(struct store *s, const char *path, struct place_dir *to, char *file)
{
	struct parts p;
	struct stat st;
	bool gone = false;
	int h = -ENOENT;

	if (!s->base || !take_apart(path, &p))
		return -ENOENT;
	for (unsigned i = 0; i <= SPREAD_SLOTS && h == -ENOENT; i++) {
		unsigned slot = i ? i : spread_slot_of(p.name);

		if (!slot || (i && slot == spread_slot_of(p.name)))
			continue;
		h = open_in(s, &p, slot, to);
		snprintf(file, STORE_PATH_LEN, "spread.%u.%.*s", slot, (int)p.host_len, p.host);
		gone |= h == -EREMOTE;
		h = h == -EREMOTE ? -ENOENT : h;
	}
	return h == -ENOENT && gone && s->base->stat(s, path, &st) ? -EREMOTE : h;
}

bool spread_is_elsewhere(struct store *s, const char *path, struct place *place)
{
	char file[STORE_PATH_LEN];
	struct place_dir to;
	struct parts p;
	struct stat st;
	unsigned first;

	if (likely(!s->base) || !take_apart(path, &p) || !do_somewhere(s, &p, path, do_stat, &st))
		return false;
	first = spread_slot_of(p.name);
	for (unsigned i = 0; i <= SPREAD_SLOTS; i++) {
		unsigned slot = !i ? first : i;
		int ret = slot && (!i || slot != first) ? enter(s, &p, slot, &to) : -ENOENT;

		if (!ret)
			place_leave(&to);
		if (ret != -EREMOTE)
			continue;
		snprintf(file, sizeof(file), "spread.%u.%.*s", slot, (int)p.host_len, p.host);
		ret = place_read_as(s, p.dir, file, place);
		if (!ret || ret == -EBADMSG)
			return true;
	}
	return false;
}

/* ---- removal ---- */

/* What is in others goes after what is at home: until then the file has all its bytes. */
static int spread_remove_tree(struct store *s, const char *path, dirs_known *known)
{
	struct spread_tops *tops = spread_tops_open(s, path);
	int ret = s->base->remove_tree(s, path, known);

	spread_tops_close(tops, path, ret ? NULL : known);
	return ret;
}

/* ---- all ---- */

static struct store_ops spread_ops;

void spread_enable(struct store *s)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	const struct store_ops **slot;

	if (__atomic_load_n(&s->base, __ATOMIC_ACQUIRE))
		return;
	mutex_lock(&lock);
	slot = s->under ? &s->under : &s->ops;
	if (!s->base && (*slot)->remove_tree) {
		if (!spread_ops.open) {
			spread_ops = **slot;
			spread_ops.stat = spread_stat;
			spread_ops.unlink = spread_unlink;
			spread_ops.rename = spread_rename;
			spread_ops.list = spread_list_path;
			spread_ops.remove_tree = spread_remove_tree;
			spread_ops.open = spread_open;
			rebuilt_set_ops(&spread_ops);
		}
		__atomic_store_n(&s->base, *slot, __ATOMIC_RELEASE);
		__atomic_store_n(slot, &spread_ops, __ATOMIC_RELEASE);
	}
	mutex_unlock(&lock);
}
