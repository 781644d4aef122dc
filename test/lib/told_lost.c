/* SPDX-License-Identifier: BSD-3-Clause */
#include "test/lib/told_lost.h"

#include "test/lib/near.h"
#include "test/lib/rounds.h"
#include "test/lib/spoil.h"

#include "core/backend/near_host.h"
#include "core/base/sys.h"

#include <criterion/criterion.h>

#include <ftw.h>
#include <sys/mman.h>

enum { HOME = 1, LAST_MAX = 4, FLIPS = 4, FILES = 500, DATA_OFF = 65536 };

static enum lost_kind kind;
bool lost_amid;
unsigned lost_survives = 1;
unsigned lost_away;           /* bits of backends, as all that follow */
static unsigned wiped;        /* a new one is in the place */
static unsigned blind;        /* with a live file in it */
static uint64_t in[LAST_MAX + 1]; /* versions that may be in a backend */
static uint64_t covered;      /* that have parity */
static uint64_t settled;      /* that need @settled_away no more, and have parity in the others */
static uint64_t given_up;     /* that were in a backend which is forgotten */
static unsigned settled_away, repaired_away;
static unsigned nr_flips;
static struct {
	int backend;
	char name[100];
} flips[FLIPS];

static int *silent; /* what each open of something in a backend gives; 0: it answers. All processes see it */

/* ---- files ---- */

static void backend_path(char *path, int i, bool aside)
{
	if (i == HOME)
		snprintf(path, PATH_MAX, "%s", scratch);
	else
		snprintf(path, PATH_MAX, "%s/%d%s", near_dir, i, aside ? ".gone" : "");
}

/* ---- a backend that does not answer ---- */

static int (*open_it)(const char *path, int flags, ...);

static int open_there(const char *path, int flags, ...)
{
	char top[PATH_MAX];
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
	va_end(args);
	for (int i = 2; i <= near_last; i++) {
		backend_path(top, i, false);
		if (!silent[i] || strncmp(path, top, strlen(top)))
			continue;
		errno = silent[i];
		return -1;
	}
	return open_it(path, flags, mode);
}

static void intercept_open(void)
{
	open_it = sys.open;
	sys.open = open_there;
}

/* What the backends have, as it was when a step had been done. */
static struct file {
	int backend;
	char name[100], path[PATH_MAX];
	long len;
} files[FILES];
static int nr_files, listing;
static bool listed;

static int note_file(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	static const char *const kinds[] = { "data.", "live.", "parity.", "spread." };
	struct file *f = &files[nr_files];

	for (size_t i = 0; i < ARRAY_SIZE(kinds) && type == FTW_F && nr_files < FILES; i++) {
		if (strncmp(path + ftw->base, kinds[i], strlen(kinds[i])) || strstr(path + ftw->base, ".tmp."))
			continue;
		f->backend = listing;
		f->len = st->st_size;
		snprintf(f->path, sizeof(f->path), "%s", path);
		snprintf(f->name, sizeof(f->name), "%s", path + ftw->base);
		nr_files++;
		break;
	}
	return 0;
}

static void list(void)
{
	char top[PATH_MAX];

	if (listed)
		return;
	nr_files = 0;
	for (listing = HOME; listing <= near_last; listing++) {
		backend_path(top, listing, lost_away >> listing & 1 && !silent[listing]);
		nftw(top, note_file, 16, FTW_PHYS);
	}
	listed = true;
}

/* The number @nth of the files in a backend whose names begin with @prefix and have @part, or NULL. */
static const struct file *find_part(int backend, const char *prefix, const char *part, size_t nth)
{
	list();
	for (int i = 0; i < nr_files; i++)
		if (files[i].backend == backend && !strncmp(files[i].name, prefix, strlen(prefix)) &&
		    strstr(files[i].name, part) && !nth--)
			return &files[i];
	return NULL;
}

static const struct file *find(int backend, const char *prefix) { return find_part(backend, prefix, "", 0); }

bool lost_has_logs(int backend, int who)
{
	char pid[20];

	snprintf(pid, sizeof(pid), ".%d.", (int)told_pid(who));
	return find_part(backend, "data.", pid, 0);
}

/* ---- what is done ---- */

static void go(int i)
{
	static const int errors[] = { ENOTCONN, ETIMEDOUT, EHOSTDOWN, EIO, ESTALE, EACCES };
	char path[PATH_MAX], aside[PATH_MAX], way[32];
	bool used;

	if (lost_away >> i & 1)
		return;
	if (!rounds_rnd(3)) {
		silent[i] = errors[rounds_rnd(ARRAY_SIZE(errors))];
		lost_away |= 1u << i;
		return;
	}
	snprintf(way, sizeof(way), "spread.%d.", i - 1);
	used = find(HOME, way) || kind == LOST_MIRROR;
	backend_path(path, i, false);
	backend_path(aside, i, true);
	cr_assert(!rename(path, aside));
	lost_away |= 1u << i;
	if (rounds_rnd(2) && used && !lost_amid) /* else logs go below */
		cr_assert(!mkdir(path, 0755));
}

static void come_back(int i)
{
	char path[PATH_MAX], aside[PATH_MAX], old[PATH_MAX];

	if (!(lost_away >> i & 1))
		return;
	lost_away &= ~(1u << i);
	if (silent[i]) {
		silent[i] = 0;
		return;
	}
	backend_path(path, i, false);
	backend_path(aside, i, true);
	snprintf(old, sizeof(old), "%s/below%d", near_dir, i);
	shell("rm -rf '%s'", old);
	rename(path, old);
	cr_assert(!rename(aside, path));
}

/* One that is killed at any call may have left the note of a live file alone. */
static bool has_notes(int i)
{
	char way[32];
	const struct file *f;

	snprintf(way, sizeof(way), "spread.%d.", i - 1);
	for (size_t nth = 0; lost_amid && (f = find_part(HOME, way, "", nth)); nth++)
		if (f->len > PLACE_LEN)
			return true;
	return false;
}

/* What it had does not come back. */
static void wipe(int i)
{
	char path[PATH_MAX], aside[PATH_MAX];

	if (!(lost_away >> i & 1))
		return;
	blind |= find(i, "live.") || has_notes(i) ? 1u << i : 0;
	backend_path(path, i, false);
	backend_path(aside, i, true);
	silent[i] = 0;
	shell("rm -rf '%s' '%s'", path, aside);
	cr_assert(!mkdir(path, 0755));
	lost_away &= ~(1u << i);
	wiped |= 1u << i;
}

/* @backend 0: any. */
static bool is_flipped(int backend, const char *name)
{
	for (unsigned i = 0; i < nr_flips; i++)
		if ((!backend || flips[i].backend == backend) && !strcmp(flips[i].name, name))
			return true;
	return false;
}

bool lost_may_be_forgotten(int i)
{
	listed = false;
	return lost_away >> i & 1 && !find(i, "live.") && !has_notes(i);
}

/* Only what is certainly not there. New logs could go below it from here on. */
static bool is_forgotten_well(int i, long ret)
{
	bool gone = lost_away >> i & 1 && !silent[i];
	char path[PATH_MAX];

	backend_path(path, i, false);
	if (ret > 0 && gone)
		rmdir(path);
	if (wiped >> i & 1 && silent[i]) /* it has gone, and cannot be looked at */
		return true;
	wiped |= ret > 0 ? 1u << i : 0;
	given_up |= ret > 0 ? in[i] : 0;
	return gone ? ret >= 0 : ret <= 0;
}

/* A closed log: of an open one not all has checksums. */
static bool flip(void)
{
	int backend = 1 + (int)rounds_rnd((size_t)near_last);
	size_t nr = 0;
	const struct file *f;
	char live[PATH_MAX];

	while (find_part(backend, "data.", "", nr))
		nr++;
	if (!nr || nr_flips == FLIPS)
		return false;
	f = find_part(backend, "data.", "", rounds_rnd(nr));
	snprintf(live, sizeof(live), "live.%s", f->name + 5);
	for (int i = HOME; i <= near_last; i++)
		if (find(i, live))
			return false;
	if (f->len <= DATA_OFF || is_flipped(0, f->name))
		return false;
	spoil_bit(f->path, rounds_rnd(8) ? DATA_OFF + (off_t)rounds_rnd((size_t)f->len - DATA_OFF) :
					   (off_t)rounds_rnd(64));
	flips[nr_flips].backend = backend;
	snprintf(flips[nr_flips++].name, sizeof(flips->name), "%s", f->name);
	return true;
}

static long here(const struct told_order *o)
{
	int i = (int)o->off;

	listed = false;
	switch (o->act) {
	case AWAY:
		go(i);
		return lost_away;
	case BACK:
		come_back(i);
		return lost_away;
	case WIPE:
		wipe(i);
		return lost_away;
	default:
		return flip();
	}
}

/* ---- the model ---- */

static void begin(void)
{
	memset(in, 0, sizeof(in));
	covered = settled = given_up = 0;
	wiped = blind = settled_away = repaired_away = 0;
	nr_flips = 0;
}

/* A log at home is damaged, and no whole copy of it is there. */
static bool is_lost_twice(const char *name)
{
	const struct file *log = find(HOME, name), *copy;

	if (!is_flipped(HOME, name) || !log)
		return false;
	for (int i = 2; i <= near_last; i++) {
		copy = lost_away >> i & 1 || is_flipped(i, name) ? NULL : find(i, name);
		if (copy && copy->len >= log->len)
			return false;
	}
	return true;
}

static bool mirror_may_fail(int who, size_t from, size_t to)
{
	(void)who, (void)from, (void)to;
	for (unsigned i = 0; i < nr_flips; i++)
		if (is_lost_twice(flips[i].name))
			return true;
	return false;
}

/* A backend that is away has a live file. */
static bool is_open_there(void)
{
	for (int i = 2; i <= near_last; i++)
		if (lost_away >> i & 1 && (find(i, "live.") || has_notes(i)))
			return true;
	return blind;
}

static unsigned nr_of(unsigned bits) { return (unsigned)__builtin_popcount(bits); }

/* Whether version @v may be lost, as the backends are. */
static bool may_be_lost(int v)
{
	unsigned gone = lost_away | wiped;

	if (given_up >> v & 1)
		return true;
	if (covered >> v & 1 && nr_of(gone) + nr_flips <= lost_survives)
		return false;
	if (settled >> v & 1 && gone & settled_away && !nr_flips)
		return false;
	for (int i = 1; i <= near_last; i++)
		if (in[i] >> v & 1 && (gone >> i & 1 || nr_flips))
			return true;
	return false;
}

static bool may_fail(int who, size_t from, size_t to)
{
	if (kind == LOST_MIRROR)
		return mirror_may_fail(who, from, to);
	if (nr_flips > lost_survives || is_open_there())
		return true;
	for (int v = 0; v < 64 && model_all() >> v; v++)
		if (may_be_lost(v) && model_may_read(who, v, from, to))
			return true;
	return false;
}

static void note_places(int who)
{
	for (int i = 1; i <= near_last; i++)
		if (lost_has_logs(i, who))
			for (int v = 0; v < 64 && model_all() >> v; v++)
				if (model_writer(v) == who)
					in[i] |= 1ull << v;
}

/* It returned without an error, and nothing is left to do. */
static void drained(void)
{
	unsigned gone = lost_away | wiped;

	if (kind != LOST_PARITY || nr_flips)
		return;
	if (nr_of(gone) <= lost_survives)
		covered = model_at_rest();
	settled = gone && nr_of(gone) <= lost_survives && gone == repaired_away ? covered : 0;
	settled_away = gone;
}

static void repaired(void)
{
	nr_flips = kind != LOST_SPREAD && !lost_away ? 0 : nr_flips;
	in[HOME] = lost_away | wiped ? model_all() : in[HOME];
	repaired_away = lost_away | wiped;
}

static bool done(int who, const struct told_order *o, int v, long ret, bool ok)
{
	bool any = lost_away || wiped || nr_flips;

	listed = false;
	if (v >= 0)
		note_places(who);
	switch (o->act) {
	case COMPACT:
		for (int i = 1; i <= near_last; i++)
			in[i] |= lost_has_logs(i, who) ? model_all() : 0;
		return ok || (any && ret == -EIO);
	case REPAIR:
		if (!ret)
			repaired();
		return ok || (any && ret == -EIO);
	case DRAIN:
	case BRING:
		if (!ret)
			drained();
		return ok || any;
	case CUT:
	case APPEND:
		return ok || (ret == -EIO && is_open_there());
	case SYNC:
		return ok || (any && ret == -EIO);
	case FORGET:
		return is_forgotten_well((int)o->off, ret);
	default:
		return ok;
	}
}

static int remove_orphans(void *arg, const char *top, const char *home)
{
	(void)home;
	return plfs_drain_place(plfs_mount_at(0), top, true, arg);
}

static int collect(void *arg)
{
	struct plfs_drain d = { 0 };
	char path[PATH_MAX];
	int ret = 0;

	(void)arg;
	for (int i = 2; i <= near_last; i++) {
		backend_path(path, i, false);
		ret |= plfs_places_in(path, remove_orphans, &d);
	}
	return ret != 0;
}

/* Of a file that is removed a collection leaves nothing. */
bool lost_leaves_nothing(void)
{
	bool left = false;

	listed = false;
	for (int i = 2; i <= near_last; i++)
		if (find(i, "data.") || find(i, "live.") || find(i, "parity."))
			left = true;
	if (!left)
		return true;
	/* one that was killed as it began there may have left no way back */
	if (in_child(collect, NULL))
		return lost_amid;
	listed = false;
	for (int i = 2; i <= near_last; i++)
		if (find(i, "data.") || find(i, "live.") || find(i, "parity.")) {
			fprintf(stderr, "left: %s\n", files[nr_files - 1].path);
			return false;
		}
	return true;
}

void lost_begin(enum lost_kind which)
{
	static const struct model_backends backends = { begin, may_fail, done };

	kind = which;
	told_here = here;
	told_begins = intercept_open;
	silent = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(silent, MAP_FAILED);
	model_backends = &backends;
	lost_away = 0;
}
