/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A run of plfs gc keeps its last report here; files are made and orphaned by the means that users have.
 */
#include "test/lib/gc.h"

/* ---- running it ---- */

char last_why[256], last_trouble[PATH_MAX];
enum plfs_gc_fate last_fate;

static void note_item(void *arg, const struct plfs_gc_item *item)
{
	(void)arg;
	last_fate = item->fate;
	snprintf(last_why, sizeof(last_why), "%s", item->why ? item->why : "");
}

static void note_trouble(void *arg, const char *path, const char *why)
{
	(void)arg, (void)why;
	snprintf(last_trouble, sizeof(last_trouble), "%s", path);
}

int gc(struct plfs_gc *g)
{
	char path[PATH_MAX];

	g->item = note_item;
	g->trouble = note_trouble;
	g->nr_threads = g->nr_threads ? g->nr_threads : 1;
	*last_trouble = *last_why = '\0';
	return plfs_gc(lpath("", path), g);
}

struct plfs_gc gc_now(void)
{
	struct plfs_gc g = { .age_ns = 0, .later_ns = HOUR_NS };

	cr_assert_eq(gc(&g), 0);
	return g;
}

/* ---- files ---- */

void make_dir(const char *name)
{
	char path[PATH_MAX];

	lpath(name, path);
	cr_assert_eq(mkdir(path, 0755), 0);
}

void make(const char *name, unsigned round)
{
	struct lfile l = made(name);

	cr_assert_eq(lfill(&l, 0, LEN, round), LEN);
	lclose(&l);
}

void assert_whole(const char *name, unsigned round)
{
	struct lfile l = lopen(name, O_RDONLY);

	cr_assert_eq(lcheck(&l, 0, LEN, round), 0, "%s", name);
	lclose(&l);
}

void orphan(const char *name)
{
	char path[PATH_MAX];

	lpath(name, path);
	cr_assert_eq(unlink(path), 0);
}

void touch_below(const char *format, const char *dir)
{
	char path[2 * PATH_MAX];

	snprintf(path, sizeof(path), format, dir);
	close(open(path, O_WRONLY | O_CREAT | O_EXCL, 0644));
	cr_assert_eq(access(path, F_OK), 0);
}

void container_of_file(const char *name, char *dir)
{
	struct lfile l = lopen(name, O_RDONLY);
	struct plfs_info info;

	cr_assert_eq(plfs_get_info(l.f, &info), 0);
	strcpy(dir, info.container);
	lclose(&l);
}
