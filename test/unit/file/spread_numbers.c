/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The numbers of other backends in a container (spread.N.HOST). Mappings may name the backends in any order:
 * a backend gets one number all the same. Files that have two for one backend, as where some logs were made
 * by another rule, are read, checked and listed as if they had one.
 */
#include "test/lib/near.h"

#include "core/backend/names.h"
#include "core/base/sys.h"

#include <criterion/criterion.h>

#include <fts.h>
#include <sys/stat.h>
#include <unistd.h>

#define LEN 30000
#define NR 12 /* processes that begin a file at once */

static void by_process(void) { near_spread("process"); }
static void by_file(void) { near_spread("file"); }

TestSuite(spread_numbers, .init = by_process, .fini = near_remove);
TestSuite(spread_numbers_file, .init = by_file, .fini = near_remove);

/* ---- another mapping of the same backends ---- */

static char turned[200], ruled[200]; /* for near_map_q() */

static void make_maps(void)
{
	snprintf(turned, sizeof(turned), ",%s/3,%s/2{small=0,spread=process}", near_dir, near_dir);
	snprintf(ruled, sizeof(ruled), ",%s/2,%s/3{small=0,spread=process}", near_dir, near_dir);
}

static const char *map; /* NULL: as the suite has it */
static int go[2];       /* a pipe: its other end is closed when all may begin */

static int write_one(void *arg)
{
	long i = (long)arg;
	struct lfile l;
	char c;

	if (map && near_map_q(map))
		return 100;
	if (go[0]) {
		close(go[1]);
		if (read(go[0], &c, 1))
			return 101;
	}
	if (!map)
		l = made("a");
	else if (near_open_q(&l, O_RDWR | O_CREAT))
		return 102;
	return lfill(&l, i * LEN, LEN, 1) != LEN || lclose(&l);
}

static int read_it(void *arg)
{
	struct lfile l = lopen("a", O_RDONLY);

	return lcheck(&l, 0, (size_t)(long)arg * LEN, 1) || lclose(&l);
}

/* ---- what there is ---- */

/* The logs below @dir. */
static int logs_below(const char *dir)
{
	char path[100], *const argv[] = { path, NULL };
	FTS *fts;
	FTSENT *e;
	int nr = 0;

	snprintf(path, sizeof(path), "%s/%s", near_dir, dir);
	fts = fts_open(argv, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	while ((e = fts_read(fts)))
		nr += e->fts_info == FTS_F && name_kind(e->fts_name) == DROPPING_DATA;
	fts_close(fts);
	return nr;
}

static void found(void *arg, const struct plfs_finding *f)
{
	*(int *)arg += f->severity == PLFS_DAMAGED;
}

static int check_it(void *arg)
{
	int nr = 0, ret;
	struct plfs_check c = { .found = found, .arg = &nr };
	char path[PATH_MAX];
	struct plfs_mount *m = lpath("a", path);

	(void)arg;
	ret = plfs_check(m, AT_FDCWD, path, &c);
	return ret ? 100 : nr;
}

struct seen {
	int nr, nr_logs;
};

static int see(void *arg, const struct plfs_place *p)
{
	struct seen *seen = arg;

	seen->nr++;
	seen->nr_logs += (int)p->nr_logs;
	return 0;
}

static struct seen places(void)
{
	struct seen seen = { 0 };
	char path[PATH_MAX];
	struct plfs_mount *m = lpath("a", path);

	cr_assert_geq(plfs_places_of(m, AT_FDCWD, path, see, &seen), 0);
	return seen;
}

/* All is read, and by a kept map; check finds nothing; each backend is listed once, with its logs. */
static void look(long nr)
{
	struct seen seen;

	cr_assert_eq(in_child(read_it, (void *)nr), 0);
	if (nr >= NR)
		cr_assert_eq(count_files("index.global"), 1);
	cr_assert_eq(in_child(read_it, (void *)nr), 0);
	cr_assert_eq(in_child(check_it, NULL), 0);
	seen = places();
	cr_assert_eq(seen.nr, !!logs_below("2") + !!logs_below("3"));
	cr_assert_eq(seen.nr_logs, near_count("data."));
}

/* ---- tests ---- */

Test(spread_numbers, a_backend_has_one_number_in_whichever_order_mappings_name_it)
{
	long nr = 0;

	make_maps();
	for (int order = 0; order < 2; order++) {
		int two = logs_below("2"), three = logs_below("3");

		map = order ? turned : NULL;
		while (logs_below("2") == two || logs_below("3") == three) {
			cr_assert_lt(nr, 200);
			cr_assert_eq(in_child(write_one, (void *)nr++), 0);
		}
		cr_assert_eq(count_files("spread."), 2, "with either order");
	}
	look(nr);
}

Test(spread_numbers, processes_that_begin_at_once_agree_on_the_numbers)
{
	pid_t pids[NR];

	make_maps();
	for (int round = 0; round < 5; round++) {
		cr_assert_eq(pipe(go), 0);
		for (long i = 0; i < NR; i++) {
			map = i % 2 ? turned : NULL;
			pids[i] = start_child(write_one, (void *)i);
		}
		close(go[1]);
		for (int i = 0; i < NR; i++)
			cr_assert_eq(wait_child(pids[i]), 0);
		close(go[0]);
		cr_assert_eq(count_files("spread."), !!logs_below("2") + !!logs_below("3"));
		look(NR);
		cr_assert_eq(lunlink("a"), 0);
		cr_assert_eq(near_count("data.") + near_count("spread."), 0);
	}
}

/* ---- a process that begins in the middle of another's first log ---- */

static int begun[2]; /* a pipe: its other end is closed when the process that is waited for has its log */
static int (*real_stat)(const char *path, struct stat *st);

static int stat_of_late(const char *path, struct stat *st)
{
	char c;

	if (!strncmp(path, near_dir, strlen(near_dir))) {
		sys.stat = real_stat;
		close(go[1]);
		close(begun[1]);
		read(begun[0], &c, 1);
	}
	return real_stat(path, st);
}

/* It has found nothing of the file in the other backend, and looks whether that is mounted. */
static int write_late(void *arg)
{
	struct lfile l = made("a");

	(void)arg;
	real_stat = sys.stat;
	sys.stat = stat_of_late;
	return lfill(&l, 0, LEN, 1) != LEN || lclose(&l);
}

Test(spread_numbers_file, a_backend_in_which_another_process_just_begins_is_no_other_device)
{
	pid_t other, late;

	for (int i = 0; !near_count("data."); i++) {
		cr_assert_lt(i, 100);
		lunlink("a");
		cr_assert(pipe(go) == 0 && pipe(begun) == 0);
		other = start_child(write_one, (void *)1);
		late = start_child(write_late, NULL);
		close(go[0]);
		close(go[1]);
		close(begun[0]);
		close(begun[1]);
		cr_assert_eq(wait_child(late), 0);
		cr_assert_eq(wait_child(other), 0);
	}
	go[0] = 0;
	cr_assert_eq(near_count("data."), 2, "by the rule, both are there");
	cr_assert_eq(in_child(read_it, (void *)2), 0);
}

/* A number has one rule. */
Test(spread_numbers_file, two_numbers_of_one_backend_are_listed_once)
{
	long nr = 0;
	int before;
	const char *dir;

	make_maps();
	while (in_child(write_one, (void *)0) == 0 && !near_count("data."))
		cr_assert(lunlink("a") == 0 && nr++ < 100);
	dir = logs_below("2") ? "2" : "3";
	before = logs_below(dir);
	map = ruled;
	for (nr = 1; logs_below(dir) == before || nr < NR; nr++) {
		cr_assert_lt(nr, 100);
		cr_assert_eq(in_child(write_one, (void *)nr), 0);
	}
	map = NULL;
	cr_assert_eq(count_files("spread."), 1 + !!logs_below("2") + !!logs_below("3"));
	look(nr);
	cr_assert_eq(in_child(near_bring, NULL), 0);
	cr_assert_eq(near_count("data.") + near_count("spread.") + count_files("spread."), 0);
	look(nr);
}
