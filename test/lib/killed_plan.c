/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The steps of a plan, and the model that carries them out in memory.
 */
#include "test/lib/killed_plan.h"

struct step killed_steps[2000];
int nr_killed_steps;

struct killing killing;

void add(enum action action, long off, long len)
{
	killed_steps[nr_killed_steps++] = (struct step){ action, off, len, F, F };
}

void add_named(enum action action, int name, int to)
{
	killed_steps[nr_killed_steps++] = (struct step){ action, 0, 0, name, to };
}

/* ---- the model ---- */

unsigned char *model_data(struct model *m, int file)
{
	if (!m->data[file])
		m->data[file] = calloc(1, SIZE_MAX_TESTED);
	return m->data[file];
}

void model_apply(struct model *m, int i)
{
	const struct step *s = &killed_steps[i];
	long *size = &m->size[m->open < 0 ? 0 : m->open], off = s->action == APPEND ? *size : s->off;

	switch (s->action) {
	case CREATE:
	case OPEN:
	case OPEN_TRUNC:
		if (m->of[s->name] < 0)
			m->of[s->name] = m->nr++;
		m->open = m->of[s->name];
		if (s->action == OPEN_TRUNC) {
			memset(model_data(m, m->open), 0, SIZE_MAX_TESTED);
			m->size[m->open] = 0;
		}
		break;
	case WRITE:
	case APPEND:
		pattern_fill(model_data(m, m->open) + off, (size_t)s->len, (uint64_t)off, (unsigned)i + 10);
		if (off + s->len > *size)
			*size = off + s->len;
		break;
	case TRUNCATE:
		if (s->len < *size)
			memset(model_data(m, m->open) + s->len, 0, (size_t)(*size - s->len));
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

void model_init(struct model *m)
{
	*m = (struct model){ .of = { -1, 0, -1 }, .nr = 1, .size = { 3000 } };
	pattern_fill(model_data(m, 0), 3000, 0, 1);
	if (!killing.beside)
		return;
	m->of[F] = m->nr++;
	m->size[1] = BESIDE_OFF + BESIDE_LEN;
	pattern_fill(model_data(m, 1) + BESIDE_OFF, BESIDE_LEN, BESIDE_OFF, 5);
}

void model_free(struct model *m)
{
	for (int i = 0; i < NR_FILES; i++)
		free(m->data[i]);
}
