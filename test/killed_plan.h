/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The plans of killed_at.h: steps on a few names, and what they make of the files, by a model in memory.
 */
#ifndef TEST_KILLED_PLAN_H
#define TEST_KILLED_PLAN_H

#include "calls.h"
#include "scratch.h"

#define SIZE_MAX_TESTED (400 * 1024)

enum action {
	CREATE, OPEN, OPEN_TRUNC, WRITE, APPEND, READ, TRUNCATE, SYNC, COMMIT, CLOSE, MOVE, /* on the open file */
	RENAME, LINK, UNLINK, FLATTEN,                                                     /* on names */
};

enum { F, G, H, NR_NAMES };
static const char *const NAMES[NR_NAMES] = { "f", "g", "h" };

struct step {
	enum action action;
	long off, len; /* TRUNCATE: len */
	int name, to;
};

/* Which of the files each name is of, -1: none; and which is open. "g" is there from the beginning. */
#define NR_FILES 8
struct model {
	int of[NR_NAMES], open, nr;
	long size[NR_FILES];
	unsigned char *data[NR_FILES];
};

struct progress {
	int done;      /* steps that have returned */
	int committed; /* of them, those that were followed by a release */
};

static struct step steps[2000];
static int nr_steps;
static struct progress *progress;

/* What is done, and how it ends. */
struct killing {
	void (*plan)(void);  /* adds the steps */
	int stride;          /* not at every call, unless PLFS_TEST_STRIDE says so */
	bool torn;           /* in the middle of writes alone */
	bool unshared;       /* nothing can be mapped */
	bool beside;         /* another process has "f" open all the time, and has written to it */
	const char *options; /* of the mapping; NULL: there are no small files */
};

static struct killing killing;

#define BESIDE_OFF 300000
#define BESIDE_LEN 5000

__attribute__((unused)) static void add(enum action action, long off, long len)
{
	steps[nr_steps++] = (struct step){ action, off, len, F, F };
}

__attribute__((unused)) static void add_named(enum action action, int name, int to)
{
	steps[nr_steps++] = (struct step){ action, 0, 0, name, to };
}

/* ---- what is right ---- */

static unsigned char *data_of(struct model *m, int file)
{
	if (!m->data[file])
		m->data[file] = calloc(1, SIZE_MAX_TESTED);
	return m->data[file];
}

static void apply(struct model *m, int i)
{
	const struct step *s = &steps[i];
	long *size = &m->size[m->open < 0 ? 0 : m->open], off = s->action == APPEND ? *size : s->off;

	switch (s->action) {
	case CREATE:
	case OPEN:
	case OPEN_TRUNC:
		if (m->of[s->name] < 0)
			m->of[s->name] = m->nr++;
		m->open = m->of[s->name];
		if (s->action == OPEN_TRUNC) {
			memset(data_of(m, m->open), 0, SIZE_MAX_TESTED);
			m->size[m->open] = 0;
		}
		break;
	case WRITE:
	case APPEND:
		pattern_fill(data_of(m, m->open) + off, (size_t)s->len, (uint64_t)off, (unsigned)i + 10);
		if (off + s->len > *size)
			*size = off + s->len;
		break;
	case TRUNCATE:
		if (s->len < *size)
			memset(data_of(m, m->open) + s->len, 0, (size_t)(*size - s->len));
		*size = s->len;
		break;
	case RENAME:
		m->of[s->to] = m->of[s->name];
		m->of[s->name] = -1;
		break;
	case LINK:
		m->of[s->to] = m->of[s->name];
		break;
	case UNLINK:
		m->of[s->name] = -1;
		break;
	default:
		break;
	}
}

static void model_init(struct model *m)
{
	*m = (struct model){ .of = { -1, 0, -1 }, .nr = 1, .size = { 3000 } };
	pattern_fill(data_of(m, 0), 3000, 0, 1);
	if (!killing.beside)
		return;
	m->of[F] = m->nr++;
	m->size[1] = BESIDE_OFF + BESIDE_LEN;
	pattern_fill(data_of(m, 1) + BESIDE_OFF, BESIDE_LEN, BESIDE_OFF, 5);
}

static void model_copy(struct model *to, const struct model *from)
{
	*to = *from;
	for (int i = 0; i < NR_FILES; i++) {
		to->data[i] = NULL;
		if (from->data[i])
			memcpy(data_of(to, i), from->data[i], SIZE_MAX_TESTED);
	}
}

static void model_free(struct model *m)
{
	for (int i = 0; i < NR_FILES; i++)
		free(m->data[i]);
}

#endif
