/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Accessing what was not read. Reading a byte needs no more rights than the reader has, and leaves it to the
 * mount's options what comes of it.
 */
#include "core/file/accessed.h"

#include "core/backend/container_dirs.h"
#include "core/backend/names.h"
#include "core/backend/parity.h"
#include "core/backend/writer_table.h"
#include "core/base/alloc.h"
#include "core/base/io.h"
#include "core/base/stamp.h"
#include "core/base/sys.h"
#include "core/dropping/copies.h"
#include "core/dropping/parities.h"

#define DAY_S 86400
#define FRESH_MAX 4 /* so many side by side that others have accessed: they do the rest */
#define LONGEST_NS 1000000000 /* what is left then the next day does, and begins elsewhere if it has maps */

static bool is_past(int64_t s)
{
	struct timespec now;

	return !sys.clock_gettime(CLOCK_REALTIME_COARSE, &now) && s + DAY_S <= now.tv_sec;
}

static bool is_old(const struct stat *st) { return is_past(st->st_atim.tv_sec); }

bool accessed_is_due(const struct stat *st) { return st->st_size && is_old(st); }

/* @path: relative to the store. False: it needs no access, or cannot have it. */
static bool touch(struct store *s, const char *path)
{
	struct stat st;
	char byte;
	int h;

	if (s->ops->stat(s, path, &st) || !S_ISREG(st.st_mode) || !is_old(&st))
		return false;
	h = store_open(s, path, O_RDONLY | STORE_BRIEFLY, 0);
	if (h < 0)
		return false;
	s->ops->pread(s, h, &byte, 1, 0);
	store_close(s, &h);
	return true;
}

static bool touch_in(const struct container *c, const char *path)
{
	char full[CONTAINER_PATH_LEN];

	container_path(c, path, full);
	return touch(c->store, full);
}

/* The header of each copy of the log is read. */
static void touch_copies(const struct container *c, const char *path)
{
	struct spare_dirs *dirs = mem_alloc(sizeof(*dirs));
	struct copies_one one;

	if (dirs && !spare_read(c, path, dirs))
		for (unsigned i = 0; i < dirs->nr; i++)
			copies_look(c, path, dirs->path[i], false, &one);
	mem_free(dirs);
}

/* A pass over the droppings, in LONGEST_NS. */
struct pass {
	const struct container *c;
	uint64_t begin_ns;
	bool all;    /* listed logs too: there are no maps by which they were touched */
	bool copied; /* there may be copies and parity */
};

static bool is_over(const struct pass *p) { return stamp_coarse_ns() - p->begin_ns > LONGEST_NS; }

/* @read: this process has read it. Returns whether the log itself was old. */
static bool touch_log(const struct pass *p, const char *path, bool read)
{
	bool was_old = !read && touch_in(p->c, path);

	if (p->copied)
		touch_copies(p->c, path);
	return was_old;
}

static void touch_logs(const struct pass *p, const struct logset *logs)
{
	uint32_t first = (uint32_t)sys.getpid() * 2654435761u % logs->nr, fresh = 0;

	for (uint32_t i = 0; i < logs->nr && fresh < FRESH_MAX && !is_over(p); i++) {
		const struct logset_log *log = &logs->logs[(first + i) % logs->nr];
		bool read = log->next_off || log->handle;

		if (touch_log(p, log->path, read))
			fresh = 0;
		else if (!read)
			fresh++;
	}
}

static int touch_listed(void *arg, const char *path, const char *name, enum dropping_kind kind)
{
	const struct pass *p = arg;

	(void)name;
	if (kind != DROPPING_DATA)
		touch_in(p->c, path);
	else if (p->all)
		touch_log(p, path, false);
	return is_over(p);
}

static void touch_parity(const struct pass *p)
{
	struct parity_groups gs = { 0 };

	if (!parity_read(p->c, &gs))
		for (size_t i = 0; i < gs.nr && !is_over(p); i++)
			parities_look(p->c, &gs.v[i], false);
	parity_release(&gs);
}

static void touch_table(void *store, const char *path)
{
	touch(store, path);
}

static void touch_container(const struct inode *ino)
{
	struct pass pass = { &ino->c, stamp_coarse_ns(), .copied = ino->v.stub.copied };

	touch_in(&ino->c, "lock"); /* first: whoever ends meanwhile leaves the rest to this process */
	touch_in(&ino->c, "index.global");
	pass.all = !ino->v.r.loaded || !ino->v.r.logs.nr;
	if (!pass.all)
		touch_logs(&pass, &ino->v.r.logs);
	pass.begin_ns = stamp_coarse_ns();
	container_list_there(&ino->c, touch_listed, &pass);
	pass.begin_ns = stamp_coarse_ns();
	if (pass.copied)
		touch_parity(&pass);
}

static bool is_lock_old(const struct container *c)
{
	char path[CONTAINER_PATH_LEN];
	struct stat st;

	container_path(c, "lock", path);
	return !c->store->ops->stat(c->store, path, &st) && is_old(&st);
}

static bool is_due(const struct inode *ino)
{
	if (!ino->v.stub.has_container || ino->v.stub.in_body || (!ino->v.r.loaded && !ino->v.published_ns))
		return false;
	return ino->access_due || (is_past((int64_t)(ino->v.stub.created_ns / 1000000000)) &&
				   is_lock_old(&ino->c));
}

void accessed_note(struct inode *ino, int fd)
{
	char path[CONTAINER_PATH_LEN];
	struct stat st;

	if (!is_due(ino))
		return;
	ino->access_due = false;
	if (sys.fstat(fd, &st) || !st.st_nlink || is_old(&st))
		return;
	touch(&ino->m->store, PLFS_DIR_NAME "/format");
	writer_table_each(&st, touch_table, &ino->m->store);
	container_for_path(&ino->c, path);
	touch(ino->c.store, path);
	touch_container(ino);
}

/* The stub by a descriptor that there is: to close another one would end the program's record locks on it. */
void accessed_daily(struct inode *ino, int fd)
{
	uint64_t now_ns = stamp_coarse_ns(), since_ns = now_ns - ino->accessed_ns;
	bool first = !ino->accessed_ns;
	char byte;

	if (likely(!first && since_ns < DAY_S * 1000000000ull))
		return;
	ino->accessed_ns = now_ns;
	if (first || io_pread(fd, &byte, 1, 0) != 1)
		return;
	ino->access_due = true;
	accessed_note(ino, fd);
}
