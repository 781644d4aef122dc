/* SPDX-License-Identifier: BSD-3-Clause */
#include "test/lib/names_world.h"

#include "test/lib/job.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

enum { FILES = WORLD_NAMES + WORLD_PROCS * WORLD_SLOTS + 1, WORLDS = 128 };

struct world {
	int names[WORLD_NAMES]; /* 1 + the number of a file, or 0 */
	int held[WORLD_PROCS][WORLD_SLOTS];
	bool only_reads[WORLD_PROCS][WORLD_SLOTS];
	struct {
		long size;
		unsigned char bytes[WORLD_LEN]; /* zeros behind the size */
	} files[FILES];
};

static struct world *worlds, *next; /* WORLDS each */
static int nr_worlds, nr_next;

/* ---- one world ---- */

static bool is_used(const struct world *w, int file)
{
	for (int i = 0; i < WORLD_NAMES; i++)
		if (w->names[i] == file)
			return true;
	for (int who = 0; who < WORLD_PROCS; who++)
		for (int i = 0; i < WORLD_SLOTS; i++)
			if (w->held[who][i] == file)
				return true;
	return false;
}

/* What nobody can see any more is nothing, so that equal worlds are equal byte by byte. */
static void forget_files(struct world *w)
{
	for (int i = 0; i < FILES; i++)
		if (!is_used(w, i + 1))
			memset(&w->files[i], 0, sizeof(w->files[i]));
}

static int new_file(const struct world *w)
{
	int file = 1;

	while (is_used(w, file))
		file++;
	return file;
}

static void cut(struct world *w, int file, long size)
{
	unsigned char *bytes = w->files[file - 1].bytes;

	w->files[file - 1].size = size;
	memset(bytes + size, 0, (size_t)(WORLD_LEN - size));
}

static long open_it(struct world *w, int who, const struct world_order *o)
{
	int file = w->names[o->a];

	w->held[who][o->slot] = 0;
	w->only_reads[who][o->slot] = false;
	if (file && (o->flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL))
		return -EEXIST;
	if (!file && !(o->flags & O_CREAT))
		return -ENOENT;
	if (!file) {
		file = new_file(w);
		cut(w, file, 0);
	}
	w->names[o->a] = w->held[who][o->slot] = file;
	w->only_reads[who][o->slot] = (o->flags & O_ACCMODE) == O_RDONLY;
	if (o->flags & O_TRUNC)
		cut(w, file, 0);
	return 0;
}

static long write_at(struct world *w, int file, long off, const struct world_order *o)
{
	long end = off + (long)o->len;

	if (end > WORLD_LEN)
		die("longer than the model has room for");
	memset(w->files[file - 1].bytes + off, o->byte, o->len);
	if (end > w->files[file - 1].size)
		w->files[file - 1].size = end;
	return (long)o->len;
}

static long change_names(struct world *w, const struct world_order *o)
{
	int from = w->names[o->a], to = w->names[o->b];

	if (!from || (o->act == EXCHANGE && !to))
		return -ENOENT;
	if (o->act == LINK && to)
		return -EEXIST;
	if (o->act == UNLINK)
		w->names[o->a] = 0;
	if (o->act == UNLINK || from == to)
		return 0;
	w->names[o->b] = from;
	if (o->act != LINK)
		w->names[o->a] = o->act == EXCHANGE ? to : 0;
	return 0;
}

/* With an open file. */
static long with_held(struct world *w, int who, const struct world_order *o, const unsigned char **bytes)
{
	int file = w->held[who][o->slot];
	enum world_act act = o->act;

	if (!file)
		return 0;
	if (w->only_reads[who][o->slot] && (act == WRITE || act == APPEND || act == CUT))
		act = READ;
	if (act == WRITE)
		return write_at(w, file, (long)o->off, o);
	if (act == APPEND)
		return write_at(w, file, w->files[file - 1].size, o);
	if (act == CUT)
		cut(w, file, (long)o->off);
	if (act == CLOSE)
		w->held[who][o->slot] = w->only_reads[who][o->slot] = 0;
	if (act == READ)
		*bytes = w->files[file - 1].bytes;
	return act == READ || act == SIZE ? w->files[file - 1].size : 0;
}

static long look_at_name(const struct world *w, const struct world_order *o, const unsigned char **bytes)
{
	int file = w->names[o->a];

	if (!file)
		return -ENOENT;
	if (o->act == CAT)
		*bytes = w->files[file - 1].bytes;
	return w->files[file - 1].size;
}

/* What it gives; *@bytes: what was read, unless NULL. */
static long do_it(struct world *w, int who, const struct world_order *o, const unsigned char **bytes)
{
	*bytes = NULL;
	switch (o->act) {
	case OPEN:
		return open_it(w, who, o);
	case CAT:
	case STAT:
		return look_at_name(w, o, bytes);
	case UNLINK:
	case RENAME:
	case EXCHANGE:
	case LINK:
		return change_names(w, o);
	case KILL:
		memset(w->held[who], 0, sizeof(w->held[who]));
		memset(w->only_reads[who], 0, sizeof(w->only_reads[who]));
		return 0;
	case FLATTEN:
	case COMPACT:
	case REPAIR:
	case CHECK:
	case LOOK:
	case DRAIN:
	case DRAIN_KEEP:
	case BRING:
	case STAGE:
	case DROP:
	case GC:
		return 0;
	default:
		return with_held(w, who, o, bytes);
	}
}

static bool gives(struct world *w, int who, const struct world_order *o, const struct world_answer *a)
{
	const unsigned char *bytes;
	long ret = do_it(w, who, o, &bytes);

	return ret == a->ret && (!bytes || !memcmp(bytes, a->bytes, WORLD_LEN));
}

/* ---- all ---- */

static struct world *copy_of(const struct world *w)
{
	if (nr_next == WORLDS)
		die("too many worlds");
	next[nr_next] = *w;
	return &next[nr_next];
}

/* The one that copy_of() gave last stays, unless it is there already. */
static void keep(struct world *w)
{
	forget_files(w);
	for (int i = 0; i < nr_next; i++)
		if (!memcmp(&next[i], w, sizeof(*w)))
			return;
	nr_next++;
}

static bool go_on(void)
{
	struct world *was = worlds;

	if (!nr_next)
		return false;
	worlds = next;
	nr_worlds = nr_next;
	next = was;
	nr_next = 0;
	return true;
}

bool world_did(int who, const struct world_order *o, const struct world_answer *a)
{
	for (int i = 0; i < nr_worlds; i++) {
		struct world *w = copy_of(&worlds[i]);

		if (gives(w, who, o, a))
			keep(w);
	}
	return go_on();
}

static bool give(struct world *w, const struct world_done *done, int nr)
{
	for (int i = 0; i < nr; i++)
		if (!gives(w, done[i].who, &done[i].o, &done[i].a))
			return false;
	return true;
}

bool world_did_among(const struct world_done *stopped, const struct world_done *others, int nr)
{
	for (int i = 0; i < nr_worlds; i++)
		for (int before = 0; before <= nr; before++) {
			struct world *w = copy_of(&worlds[i]);

			if (give(w, others, before) && give(w, stopped, 1) &&
			    give(w, others + before, nr - before))
				keep(w);
		}
	return go_on();
}

bool world_did_both(int who_a, const struct world_order *o, const struct world_answer *a, int who_b,
		    const struct world_order *p, const struct world_answer *b)
{
	for (int i = 0; i < nr_worlds; i++) {
		struct world *w = copy_of(&worlds[i]);

		if (gives(w, who_a, o, a) && gives(w, who_b, p, b))
			keep(w);
		w = copy_of(&worlds[i]);
		if (gives(w, who_b, p, b) && gives(w, who_a, o, a))
			keep(w);
	}
	return go_on();
}

bool world_killed(int who, const struct world_order *o)
{
	const struct world_order k = { .act = KILL };
	const unsigned char *bytes;

	for (int i = 0; i < nr_worlds; i++) {
		struct world *w = copy_of(&worlds[i]);

		do_it(w, who, &k, &bytes);
		keep(w);
		w = copy_of(&worlds[i]);
		do_it(w, who, o, &bytes);
		do_it(w, who, &k, &bytes);
		keep(w);
	}
	return go_on();
}

void world_begin(void)
{
	if (!worlds) {
		worlds = calloc(WORLDS, sizeof(*worlds));
		next = calloc(WORLDS, sizeof(*next));
	}
	if (!worlds || !next)
		die("calloc");
	memset(worlds, 0, sizeof(*worlds));
	nr_worlds = 1;
	nr_next = 0;
}
