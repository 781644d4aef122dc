/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Several backends: choosing one for a new log, and making what leads there.
 */
#include "core/backend/spread.h"

#include "core/backend/container_dirs.h"
#include "core/backend/host.h"
#include "core/backend/names.h"
#include "core/backend/near_file.h"
#include "core/backend/spread_open.h"
#include "core/base/crc32c.h"
#include "core/base/sys.h"
#include "core/store/posix.h"

#include <stdio.h>
#include <sys/file.h>

#define OWN_MODE 0755 /* as all directories there have it (place.c) */

static const uint32_t FEATURES[] = {
	[SPREAD_HOST] = PLACE_SHARED | PLACE_NOTED | PLACE_OWN_HOST,
	[SPREAD_PROCESS] = PLACE_SHARED | PLACE_NOTED | PLACE_OWN_PROCESS,
	[SPREAD_FILE] = PLACE_SHARED | PLACE_NOTED,
};

void spread_setup(struct spread_settings *ss, unsigned rule, const char *home, char *const *others)
{
	ss->rule = rule;
	for (ss->nr = 0; ss->nr < SPREAD_SLOTS && others[ss->nr]; ss->nr++) {
		struct place_settings *ps = &ss->others[ss->nr];

		*ps = (struct place_settings){
			.near = others[ss->nr],
			.home = home,
			.log_max = PLACE_LOG_MAX,
			.features = FEATURES[rule],
		};
		place_settings_init(ps);
		strcat(ps->backend_id, PLACE_SHARED_END);
	}
}

/* Of neighbours, as processes of a job have them, a CRC differs in few bits (MurmurHash3's last steps). */
static uint32_t mixed(uint32_t sum)
{
	sum = (sum ^ sum >> 16) * 0x85ebca6b;
	sum = (sum ^ sum >> 13) * 0xc2b2ae35;
	return sum ^ sum >> 16;
}

unsigned spread_pick(const struct container *c)
{
	const struct spread_settings *ss = c->store->spread;
	char text[128];
	uint32_t sum;

	if (ss->rule == SPREAD_FILE) {
		sum = crc32c(0, c->id, STUB_ID_LEN);
	} else {
		int n = snprintf(text, sizeof(text), "%s", host_name());

		if (ss->rule == SPREAD_PROCESS)
			n += snprintf(text + n, sizeof(text) - (size_t)n, ".%d", (int)sys.getpid());
		sum = crc32c(0, text, (size_t)n);
	}
	return mixed(sum) % (ss->nr + 1);
}

static void hostdir_path(const struct container *c, char *dir)
{
	char hostdir[32];

	snprintf(hostdir, sizeof(hostdir), "hostdir.%u", name_hostdir(c));
	container_path(c, hostdir, dir);
}

/* The directory of this host or process, in that which @hold has. */
static int enter_own(struct place_dir *hold)
{
	char log[INDEX_LOG_NAME_LEN], own[INDEX_LOG_NAME_LEN];
	struct store *s = &hold->store;
	int h, ret;

	name_make_log(0, log);
	if (!(hold->features & (PLACE_OWN_HOST | PLACE_OWN_PROCESS)) ||
	    !name_own_dir(log, hold->features & PLACE_OWN_PROCESS, own))
		return 0;
	h = store_open(s, own, O_RDONLY | O_DIRECTORY | STORE_BRIEFLY, 0);
	if (h == -ENOENT) {
		ret = s->ops->mkdir(s, own, OWN_MODE);
		if (!ret || ret == -EEXIST)
			h = store_open(s, own, O_RDONLY | O_DIRECTORY | STORE_BRIEFLY, 0);
		else
			h = ret;
	}
	if (h < 0)
		return h;
	store_close(s, &s->root);
	s->root = h;
	return 0;
}

/* ---- the number of a backend in a container ---- */

/* One attempt with spread.@slot.HOST; with @make it is made if it is in neither. */
static int begin_as(const struct container *c, const struct place_settings *ps, const char *dir,
		    unsigned slot, bool make, struct place_dir *hold)
{
	char file[STORE_PATH_LEN];

	snprintf(file, sizeof(file), "spread.%u.%s", slot, host_name());
	return place_begin_as(c->store, ps, dir, file, container_file_mode(c, false), make, NULL, hold);
}

/*
 * Whether spread.@slot.HOST at home leads to the backend of @ps, whose hostdir is @at, by this rule: it has
 * the same path, or the file there has the same bytes. *@taken: it leads somewhere, or its maker is not done.
 */
static bool leads_to(const struct container *c, const struct place_settings *ps, const char *dir,
		     unsigned slot, struct place_dir *at, bool *taken)
{
	char path[STORE_PATH_LEN], file[STORE_PATH_LEN], top[PLACE_PATH_LEN];
	uint8_t raw[PLACE_LEN], there[PLACE_LEN];
	struct place p;
	int ret;

	snprintf(file, sizeof(file), "spread.%u.%s", slot, host_name());
	ret = near_file_path(path, dir, file);
	ret = ret ? ret : near_file_raw(c->store, path, raw);
	*taken = ret != -ENOENT;
	if (ret || place_decode(&p, raw) || p.features != ps->features || place_top_path(ps, top))
		return false;
	return !strcmp(p.path, top) ||
	       (!near_file_raw(&at->store, file, there) && !memcmp(raw, there, PLACE_LEN));
}

/*
 * The number that leads there already, or a new one: of those that are free, its own place in the mapping is
 * the first. The hostdir there is locked, so all processes of this host take the same one. Where the kernel
 * cannot lock it, two may take two: readers put up with that.
 */
static int choose(const struct container *c, unsigned backend, const char *dir, struct place_dir *at,
		  struct place_dir *hold)
{
	const struct place_settings *ps = &c->store->spread->others[backend - 1];
	bool taken[SPREAD_SLOTS];
	int ret = -EREMOTE;

	for (unsigned i = 0; i < SPREAD_SLOTS; i++) {
		unsigned slot = 1 + (backend - 1 + i) % SPREAD_SLOTS;

		if (leads_to(c, ps, dir, slot, at, &taken[slot - 1]))
			return begin_as(c, ps, dir, slot, true, hold);
	}
	for (unsigned i = 0; i < SPREAD_SLOTS && ret == -EREMOTE; i++) {
		unsigned slot = 1 + (backend - 1 + i) % SPREAD_SLOTS;

		if (!taken[slot - 1])
			ret = begin_as(c, ps, dir, slot, true, hold);
	}
	return ret;
}

/* ---- a backend that is not mounted ---- */

struct leading {
	const struct container *home; /* without its other backends */
	char top[PLACE_PATH_LEN]; /* what is looked for */
};

static int look_at_way(void *arg, const char *path, const char *name, enum dropping_kind kind)
{
	char rest[CONTAINER_PATH_LEN], dir[CONTAINER_PATH_LEN];
	struct leading *l = arg;
	struct place p;

	if (kind != DROPPING_SPREAD)
		return 0;
	snprintf(rest, sizeof(rest), "%.*s", (int)(strrchr(path, '/') - path), path);
	container_path(l->home, rest, dir);
	return !place_read_as(l->home->store, dir, name, &p) && !strcmp(p.path, l->top);
}

/* Whether the container @path is not in the backend. */
static bool lacks(const struct container *c, const struct place_settings *ps, const char *path)
{
	struct place_dir there;
	int ret = place_find(c->store, ps, geteuid(), path, &there);

	if (!ret)
		place_leave(&there);
	return ret == -ENOENT;
}

/*
 * A host without logs there sees by the other hosts' files at home whether the file should have some there.
 * The container's directory there is made before any of those, and stays as long as they do. So what another
 * process makes meanwhile is found by a second look.
 */
static bool is_unmounted(const struct container *c, const struct place_settings *ps, const char *dir)
{
	struct store bare = store_bare(c->store);
	struct container home = *c;
	struct leading l = { .home = &home };
	char path[CONTAINER_PATH_LEN];
	struct stat st;

	home.store = &bare;
	snprintf(path, sizeof(path), "%.*s", (int)(strrchr(dir, '/') - dir), dir);
	if (!lacks(c, ps, path) || sys.stat(ps->near, &st) || place_top_path(ps, l.top))
		return false;
	return container_list(&home, look_at_way, &l) == 1 && lacks(c, ps, path);
}

static int choose_alone(const struct container *c, unsigned backend, const char *dir, struct place_dir *hold)
{
	const struct place_settings *ps = &c->store->spread->others[backend - 1];
	struct place_dir at;
	int ret = is_unmounted(c, ps, dir) ? -ENODEV : place_make(c->store, ps, geteuid(), dir, &at);

	if (ret) {
		place_tell_refused(ps, ret);
		return ret;
	}
	while (sys.flock(at.store.root, LOCK_EX) && errno == EINTR)
		;
	ret = choose(c, backend, dir, &at, hold);
	sys.flock(at.store.root, LOCK_UN); /* a child may have got the descriptor */
	place_leave(&at);
	return ret;
}

/* Mostly its own place in the mapping is its number. Another list of backends may have taken that. */
static int begin(const struct container *c, unsigned backend, const char *dir, struct place_dir *hold)
{
	int ret = begin_as(c, &c->store->spread->others[backend - 1], dir, backend, false, hold);

	if (ret == -ENODATA || ret == -EREMOTE)
		ret = choose_alone(c, backend, dir, hold);
	if (ret)
		return ret;
	ret = enter_own(hold);
	if (ret)
		place_leave(hold);
	return ret;
}

int spread_hold(const struct container *c, unsigned backend, struct place_dir *hold)
{
	char dir[CONTAINER_PATH_LEN];
	int ret;

	hostdir_path(c, dir);
	ret = begin(c, backend, dir, hold);
	if (ret == -ENOENT && !container_add_hostdir(c, name_hostdir(c)))
		ret = begin(c, backend, dir, hold);
	return ret;
}

int spread_hold_of(struct store *s, const char *path, struct place_dir *hold)
{
	char dir[CONTAINER_PATH_LEN], file[STORE_PATH_LEN];
	const char *name = strrchr(path, '/') + 1;
	unsigned slot = spread_slot_of(name);
	struct stat st;
	int ret;

	if (!s->base || !slot)
		return -ENOENT;
	snprintf(dir, sizeof(dir), "%.*s", (int)(name - 1 - path), path);
	snprintf(file, sizeof(file), "spread.%u.%s", slot, host_name());
	ret = spread_enter(s, dir, file, name, hold);
	if (ret)
		return ret;
	ret = hold->store.ops->stat(&hold->store, name, &st);
	if (ret)
		place_leave(hold);
	return ret;
}

void spread_tell_gone_of(struct store *s, const char *path)
{
	char dir[CONTAINER_PATH_LEN], file[STORE_PATH_LEN];
	const char *name = strrchr(path, '/') + 1, *host;
	unsigned slot = spread_slot_of(name);
	size_t len;

	host = slot ? name_host(name, &len) : NULL;
	if (!host)
		return;
	snprintf(dir, sizeof(dir), "%.*s", (int)(name - 1 - path), path);
	snprintf(file, sizeof(file), "spread.%u.%.*s", slot, (int)len, host);
	spread_tell_gone(s, dir, file);
}

/* ---- stable storage ---- */

/* What @file leads to is not there. */
static int sync_gone(struct store *s, const char *dir, const char *file)
{
	if (!spread_has_open(s, dir, file, NULL))
		return -EREMOTE;
	spread_tell_gone(s, dir, file);
	return -EIO;
}

struct syncing_own {
	struct store *s;
	const char *host;
	int ret;
};

static int sync_own(void *arg, const char *name)
{
	struct syncing_own *so = arg;
	size_t len = strlen(so->host);

	if (!so->ret && name_is_own_dir(name) && !strncmp(name + 4, so->host, len) &&
	    (!name[4 + len] || name[4 + len] == '.'))
		so->ret = store_sync_path(so->s, name, true);
	return 0;
}

int spread_sync_names(struct store *s, const char *dir)
{
	char file[STORE_PATH_LEN];
	struct place_dir there;
	bool gone = false;
	int ret = 0;

	for (unsigned i = 1; s->base && i <= SPREAD_SLOTS && !ret; i++) {
		snprintf(file, sizeof(file), "spread.%u.%s", i, host_name());
		ret = spread_enter(s, dir, file, NULL, &there);
		if (!ret) {
			struct syncing_own so = { .s = &there.store, .host = host_name() };

			ret = there.store.ops->list(&there.store, ".", sync_own, &so);
			ret = ret ? ret : so.ret;
			place_leave(&there);
			ret = ret ? ret : place_sync_names_as(s, dir, file);
		}
		ret = ret == -ENOENT ? 0 : ret == -EREMOTE ? sync_gone(s, dir, file) : ret;
		gone |= ret == -EREMOTE;
		ret = ret == -EREMOTE ? 0 : ret;
	}
	return !ret && gone ? -EREMOTE : ret;
}
