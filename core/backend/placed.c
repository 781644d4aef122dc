/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The functions of a store with places: each is that of the store on a directory, called once or twice.
 */
#include "core/backend/placed.h"

#include "core/backend/name_list.h"
#include "core/backend/names.h"
#include "core/backend/spread_open.h"
#include "core/backend/staged.h"
#include "core/backend/twin.h"
#include "core/base/alloc.h"
#include "core/base/critical.h"
#include "core/base/io.h"
#include "core/base/memroom.h"

#include <linux/magic.h>
#include <stdio.h>
#include <sys/vfs.h>

#define DAMAGED "damaged."

/* A path ".plfs/XX/ID/hostdir.K/NAME" of a log or a live file, in parts. */
struct parts {
	char dir[CONTAINER_PATH_LEN];
	const char *name, *host;
	size_t host_len;
};

/* Whether @name lies in a hostdir and may lie near. */
static bool take_apart(const char *path, struct parts *p)
{
	const char *slash = strrchr(path, '/');
	enum dropping_kind kind;

	if (!slash || slash - path >= (ptrdiff_t)sizeof(p->dir))
		return false;
	p->name = slash + 1;
	kind = name_kind(p->name);
	if (kind != DROPPING_DATA && kind != DROPPING_LIVE)
		return false;
	p->host = name_host(p->name, &p->host_len);
	if (!p->host)
		return false;
	memcpy(p->dir, path, (size_t)(slash - path));
	p->dir[slash - path] = '\0';
	return true;
}

static int enter(struct store *s, const struct parts *p, struct place_dir *near)
{
	return place_enter(s, p->dir, p->host, p->host_len, near);
}

struct store placed_home(const struct store *s)
{
	struct store home = *s;

	home.ops = s->under ? s->under : s->ops;
	home.under = NULL;
	home.near = NULL;
	home.spares = NULL;
	return home;
}

/* What the two looks found: -EREMOTE if the file may be in a place that is not here. */
static int neither(int near, int home) { return home == -ENOENT && near == -EREMOTE ? -EREMOTE : home; }

/* Whether it is not known what the place has: what is at home may be a part of it. */
static bool is_error(int near) { return near && near != -ENOENT && near != -EREMOTE; }

static bool go_on(int near, int home, int *tries)
{
	return home == -ENOENT && near != -EREMOTE && !(*tries)++;
}

static off_t size_of(struct store *s, int h)
{
	struct stat st;

	return s->under->fstat(s, h, &st) ? 0 : st.st_size;
}

/*
 * A log is open near, or that gave an error: take what a sync has copied home as well. What has been written
 * since this host was started is near in any case, unless somebody cut it there.
 */
static int open_home_too(struct store *s, const char *path, const char *name, int flags, int near)
{
	bool ours = name_is_ours(name), reads = (flags & O_ACCMODE) == O_RDONLY;
	int home;

	if (near == -EMFILE || near == -ENFILE || near == -ENOMEM || name_is_live(name) ||
	    (!reads && (ours || near < 0)))
		return near;
	home = s->under->open(s, path, flags, 0);
	if (near < 0 || home < 0)
		return near < 0 && home >= 0 ? home : near;
	return twin_make(s, near, home, !ours || size_of(s, near) < size_of(s, home));
}

static int placed_open(struct store *s, const char *path, int flags, mode_t mode)
{
	struct place_dir near;
	struct parts p;
	int ret, h, tries = 0;

	if (flags & O_CREAT || !take_apart(path, &p))
		return s->under->open(s, path, flags, mode);
	do {
		ret = enter(s, &p, &near);
		if (!ret) {
			h = store_open(&near.store, p.name, flags & ~O_DIRECT, mode);
			place_leave(&near);
			if (h != -ENOENT)
				return open_home_too(s, path, p.name, flags, h);
		}
		if (is_error(ret))
			return ret;
		h = s->under->open(s, path, flags, mode);
	} while (go_on(ret, h, &tries));
	/* Of a live file that is not here nothing can be known: it is as one that has gone. */
	return name_is_live(p.name) ? h : neither(ret, h);
}

/* As twins are read. */
static void take_longer(struct store *s, const char *path, struct stat *st)
{
	struct stat home;

	if (!s->under->stat(s, path, &home) && S_ISREG(home.st_mode) && home.st_size > st->st_size)
		st->st_size = home.st_size;
}

static int placed_stat(struct store *s, const char *path, struct stat *st)
{
	struct place_dir near;
	struct parts p;
	int ret, ret2, tries = 0;

	if (!take_apart(path, &p))
		return s->under->stat(s, path, st);
	do {
		ret = enter(s, &p, &near);
		if (!ret) {
			ret2 = near.store.ops->stat(&near.store, p.name, st);
			place_leave(&near);
			if (!ret2 && !name_is_ours(p.name))
				take_longer(s, path, st);
			if (ret2 != -ENOENT)
				return ret2;
		}
		if (is_error(ret))
			return ret;
		ret2 = s->under->stat(s, path, st);
	} while (go_on(ret, ret2, &tries));
	return neither(ret, ret2);
}

/* A live file of this host, where it is made now: nobody else has one of that name. */
static int unlink_live(struct store *s, const struct parts *p)
{
	char top[PLACE_PATH_LEN];
	struct place_dir near;
	int ret;

	if (!s->near || !name_is_our_live(p->name))
		return -ENOENT;
	ret = place_top_path(s->near, top);
	if (!ret)
		ret = place_open_top(s, top, p->dir, &near);
	if (ret)
		return ret;
	ret = near.store.ops->unlink(&near.store, p->name);
	place_leave(&near);
	return ret;
}

/* Both, the one that readers see first: a log that a killed mover has left twice goes for good. */
static int placed_unlink(struct store *s, const char *path)
{
	struct place_dir near;
	struct parts p;
	int ret, there = -ENOENT, home, tries = 0;

	if (!take_apart(path, &p))
		return s->under->unlink(s, path);
	if (!unlink_live(s, &p)) /* home is not asked */
		return 0;
	do {
		ret = enter(s, &p, &near);
		if (!ret) {
			there = near.store.ops->unlink(&near.store, p.name);
			place_leave(&near);
		}
		if (!there && name_is_live(p.name)) /* nobody moves or copies one: home has none */
			return 0;
		if (is_error(ret) || (there && there != -ENOENT))
			return is_error(ret) ? ret : there;
		home = s->under->unlink(s, path);
	} while (there && go_on(ret, home, &tries));
	return !there && home == -ENOENT ? 0 : neither(ret, home);
}

static int placed_rename(struct store *s, const char *from, const char *to)
{
	const char *slash = strrchr(to, '/');
	struct place_dir near;
	struct parts p;
	int ret = -ENOENT;

	if (take_apart(from, &p))
		ret = enter(s, &p, &near);
	if (ret)
		return is_error(ret) ? ret : s->under->rename(s, from, to);
	ret = near.store.ops->rename(&near.store, p.name, slash ? slash + 1 : to);
	place_leave(&near);
	return ret == -ENOENT ? s->under->rename(s, from, to) : ret;
}

/* ---- lists ---- */

static int add_movable(void *arg, const char *name)
{
	enum dropping_kind kind = name_kind(name);

	return kind == DROPPING_DATA || kind == DROPPING_LIVE || !strncmp(name, DAMAGED, strlen(DAMAGED)) ?
		       name_list_add(arg, name) :
		       0;
}

/* Add what lies in the places that @home's near.HOSTs lead to. Returns whether there is one, or was. */
static int list_places(struct store *s, const char *dir, const struct name_list *home, struct name_list *near)
{
	int ret = 0;
	bool any = false;

	for (size_t i = 0; i < home->nr && !ret; i++) {
		struct place_dir there;
		size_t len;
		const char *host = name_is_near(home->v[i]) ? name_host(home->v[i], &len) : NULL;

		int entered = host ? place_enter(s, dir, host, len, &there) : -ENOENT;

		any |= host && entered == -ENOENT; /* removed meanwhile: what was there is at home */
		if (entered) {
			ret = is_error(entered) ? entered : 0;
			continue;
		}
		any = true;
		ret = there.store.ops->list(&there.store, ".", add_movable, near);
		if (ret == -ENOENT) /* the same, since it was entered */
			ret = 0;
		place_leave(&there);
	}
	return ret ? ret : any;
}

/* Those near, then those at home that are not near as well. */
static int tell_names(const struct name_list *near, const struct name_list *home,
		      int (*fn)(void *arg, const char *name), void *arg)
{
	int ret = 0;

	for (size_t i = 0; i < near->nr && !ret; i++)
		ret = fn(arg, near->v[i]);
	for (size_t i = 0; i < home->nr && !ret; i++)
		ret = name_list_has(near, home->v[i]) ? 0 : fn(arg, home->v[i]);
	return ret;
}

/* Home is listed last, once more: a log that has moved meanwhile is there by then. */
static int list_hostdir(struct store *s, const char *path, int (*fn)(void *arg, const char *name), void *arg)
{
	struct name_list home = { .nr = 0 }, near = { .nr = 0 };
	int ret = s->under->list(s, path, name_list_add, &home), gone;

	/* another backend is gone: the other names are told all the same */
	gone = ret == -EREMOTE || ret == -EIO ? ret : 0;
	ret = gone ? 0 : ret;
	if (!ret)
		ret = list_places(s, path, &home, &near);
	if (ret > 0) {
		name_list_release(&home);
		ret = s->under->list(s, path, name_list_add, &home);
		ret = ret == gone ? 0 : ret;
	}
	if (!ret)
		ret = tell_names(&near, &home, fn, arg);
	name_list_release(&home);
	name_list_release(&near);
	return ret ? ret : gone;
}

static int placed_list(struct store *s, const char *path, int (*fn)(void *arg, const char *name), void *arg)
{
	const char *slash = strrchr(path, '/');

	return slash && !strncmp(slash + 1, "hostdir.", 8) ? list_hostdir(s, path, fn, arg) :
							     s->under->list(s, path, fn, arg);
}

/* ---- removal ---- */

#define PLACES_MAX 64 /* of one container, on one host; more stay, for plfs gc --places */

struct removal {
	struct store *s;
	const char *container;
	char hostdir[CONTAINER_PATH_LEN];
	struct place_dir tops[PLACES_MAX];
	unsigned nr;
};

static int find_near(void *arg, const char *name)
{
	struct removal *r = arg;
	size_t len;

	if (name_kind(name) == DROPPING_NEAR && r->nr < PLACES_MAX) {
		const char *host = name_host(name, &len);

		r->nr += !place_enter_top(r->s, r->hostdir, host, len, &r->tops[r->nr]);
	}
	return 0;
}

static int find_in_hostdir(void *arg, const char *name)
{
	struct removal *r = arg;

	if (strncmp(name, "hostdir.", 8) ||
	    snprintf(r->hostdir, sizeof(r->hostdir), "%s/%s", r->container, name) >= (int)sizeof(r->hostdir))
		return 0;
	r->s->under->list(r->s, r->hostdir, find_near, r);
	return 0;
}

/* What is near goes after what is at home: until then the file has all its bytes. */
static int placed_remove_tree(struct store *s, const char *path, dirs_known *known)
{
	struct removal *r = mem_zalloc(sizeof(*r));
	struct store home = placed_home(s);
	int ret;

	if (!r)
		return -ENOMEM;
	r->s = s;
	r->container = path;
	s->under->list(s, path, find_in_hostdir, r);
	ret = store_remove_tree(&home, path, known);
	for (unsigned i = 0; i < r->nr; i++) {
		struct store *top = &r->tops[i].store;

		if (!ret)
			store_remove_tree(top, strchr(path, '/') + 1, known);
		place_leave(&r->tops[i]);
	}
	if (!ret && s->near)
		staged_remove(s, path);
	mem_free(r);
	return ret;
}

/* ---- all ---- */

static struct store_ops placed_ops;

void placed_enable(struct store *s)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

	if (__atomic_load_n(&s->ops, __ATOMIC_ACQUIRE) == &placed_ops)
		return;
	mutex_lock(&lock);
	if (s->ops != &placed_ops && s->ops->remove_tree) {
		if (!placed_ops.open) {
			placed_ops = *s->ops;
			placed_ops.stat = placed_stat;
			placed_ops.unlink = placed_unlink;
			placed_ops.rename = placed_rename;
			placed_ops.list = placed_list;
			placed_ops.remove_tree = placed_remove_tree;
			twin_set_ops(&placed_ops);
			placed_ops.open = placed_open;
		}
		s->under = s->ops;
		__atomic_store_n(&s->ops, &placed_ops, __ATOMIC_RELEASE);
	}
	mutex_unlock(&lock);
}

/* Of the group of the stub, or there are users whose rights it would lack. */
static int has_group(struct store *s, int h, mode_t mode, gid_t gid)
{
	struct stat st;
	int ret = s->ops->fstat(s, h, &st);

	return ret || st.st_gid == gid || !(mode & S_IRWXG) ? ret : store_chown(s, h, (uid_t)-1, gid);
}

int placed_create(struct store *s, const char *path, mode_t mode, gid_t gid, mode_t home_mode,
		  struct place_dir *hold)
{
	struct place_dir near;
	struct parts p;
	bool noted;
	int ret, h;

	ret = take_apart(path, &p) ? 0 : -EOPNOTSUPP;
	if (!ret && !hold)
		ret = placed_hold(s, p.dir, home_mode, NULL, &near);
	if (ret)
		return ret;
	near = hold ? *hold : near;
	noted = hold && hold->slot && name_is_live(p.name);
	if (noted)
		ret = spread_note(s, p.dir, hold->slot, p.name, true);
	if (ret)
		return ret;
	h = store_open(&near.store, p.name, O_RDWR | O_CREAT | O_EXCL, mode);
	ret = h < 0 ? h : has_group(s, h, mode, gid);
	if (ret && h >= 0) {
		store_close(s, &h);
		near.store.ops->unlink(&near.store, p.name);
	}
	if (ret && ret != -EEXIST && noted)
		spread_note(s, p.dir, hold->slot, p.name, false);
	if (!hold)
		place_leave(&near);
	return ret ? ret : h;
}

int placed_hold(struct store *s, const char *dir, mode_t home_mode, const struct place_first *first,
		struct place_dir *hold)
{
	if (!s->near || !s->under)
		return -EOPNOTSUPP;
	if (s->near->max && place_used(s->near) >= s->near->max) /* the budget is used up */
		return -ENOSPC;
	return place_begin(s, dir, home_mode, first, hold);
}

void placed_release(struct place_dir *hold) { place_leave(hold); }

bool placed_is_held(struct store *s, const char *path)
{
	char name[STORE_PATH_LEN];
	struct place_dir near;
	struct parts p;
	bool held;

	if (!take_apart(path, &p) || enter(s, &p, &near))
		return true;
	snprintf(name, sizeof(name), "near.%.*s", (int)p.host_len, p.host);
	near.lock = store_open(&near.store, name, O_RDWR | STORE_BRIEFLY, 0);
	held = near.lock < 0 || store_try_lock(&near.store, near.lock) == -EBUSY;
	place_leave(&near);
	return held;
}

int placed_near(struct store *s, const char *path)
{
	struct place_dir near;
	struct parts p;
	struct stat st;
	int ret;

	if (likely(!s->under) || !take_apart(path, &p))
		return 0;
	ret = enter(s, &p, &near);
	if (ret)
		return ret == -ENOENT ? 0 : ret;
	ret = near.store.ops->stat(&near.store, p.name, &st);
	place_leave(&near);
	return ret == -ENOENT ? 0 : ret ? ret : 1;
}

bool placed_is_here(struct store *s, const char *path)
{
	const char *slash = strrchr(path, '/'), *host;
	char dir[CONTAINER_PATH_LEN];
	struct place_dir near;
	struct place p;
	size_t len;

	host = slash ? name_host(slash + 1, &len) : NULL;
	if (!host || slash - path >= (ptrdiff_t)sizeof(dir))
		return false;
	snprintf(dir, sizeof(dir), "%.*s", (int)(slash - path), path);
	if (place_enter(s, dir, host, len, &near))
		return place_read(s, dir, host, len, &p) == -ENOENT;
	place_leave(&near);
	return true;
}

static bool is_in_memory(int fd)
{
	struct statfs fs;

	return !sys.fstatfs(fd, &fs) && (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC);
}

int placed_reserve(struct store *s, int h, uint64_t off, uint64_t len)
{
	const struct place_settings *ps = s->near;
	int fd = store_fd(s, h), ret;

	if (ps && ps->max && place_used(ps) + len > ps->max)
		return -ENOSPC;
	if (is_in_memory(fd) && memroom("") < len)
		return -ENOSPC;
	do {
		ret = io_fallocate(fd, FALLOC_FL_KEEP_SIZE, (off_t)off, (off_t)len);
	} while (ret < 0 && errno == EINTR);
	return ret ? -errno : 0;
}

bool placed_is_elsewhere(struct store *s, const char *path, struct place *place)
{
	struct place_dir near;
	struct parts p;
	int ret;

	if (spread_is_elsewhere(s, path, place))
		return true;
	if (likely(!s->under) || !take_apart(path, &p))
		return false;
	ret = enter(s, &p, &near);
	if (!ret)
		place_leave(&near);
	if (ret != -EREMOTE)
		return false;
	ret = place_read(s, p.dir, p.host, p.host_len, place);
	return !ret || ret == -EBADMSG;
}
