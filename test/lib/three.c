/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A file in several backends.
 */
#include "test/lib/three.h"

#include <criterion/criterion.h>

#include <ftw.h>

/* ---- files ---- */

char three_paths[THREE_PATHS_MAX][PATH_MAX];
int three_nr_paths;
static const char *wanted;

static int note_path(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	if (type == FTW_F && three_nr_paths < THREE_PATHS_MAX &&
	    !strncmp(path + ftw->base, wanted, strlen(wanted)))
		snprintf(three_paths[three_nr_paths++], PATH_MAX, "%s", path);
	return 0;
}

int three_find(const char *prefix)
{
	wanted = prefix;
	three_nr_paths = 0;
	nftw(scratch, note_path, 16, FTW_PHYS);
	nftw(near_dir, note_path, 16, FTW_PHYS);
	return three_nr_paths;
}

void three_path(char *path, int i) { memcpy(path, three_paths[i], PATH_MAX); }

int three_count(const char *top, const char *prefix)
{
	wanted = prefix;
	three_nr_paths = 0;
	nftw(top, note_path, 16, FTW_PHYS);
	return three_nr_paths;
}

void three_other(char *path, int i) { snprintf(path, PATH_MAX, "%s/%d", near_dir, i); }

int three_logs(int backend)
{
	char path[PATH_MAX];

	three_other(path, backend);
	return three_count(backend == 1 ? scratch : path, "data.");
}

void three_shell(const char *fmt, const char *a, const char *b)
{
	char text[3 * PATH_MAX];

	snprintf(text, sizeof(text), fmt, a, b);
	cr_assert_eq(system(text), 0, "%s", text);
}

void three_lose(int i, bool empty)
{
	char path[PATH_MAX];

	three_other(path, i);
	three_shell("mv '%s' '%s.gone'", path, path);
	if (empty)
		cr_assert_eq(mkdir(path, 0755), 0);
}

void three_bring_back(int i)
{
	char path[PATH_MAX];

	three_other(path, i);
	rmdir(path);
	three_shell("mv '%s.gone' '%s'", path, path);
}

void three_look_without_each(bool empty)
{
	for (int i = 2; i <= near_last; i++) {
		three_lose(i, empty);
		cr_assert_eq(image_look(), 0, "without %d", i);
		three_bring_back(i);
	}
}

/* ---- the file ---- */

void three_write(int from, int to, unsigned round)
{
	for (int i = from; i < to; i++)
		image_write((off_t)i * THREE_LEN, THREE_LEN - 1000 * (i % 5), round);
}

static bool is_in_all(void)
{
	for (int i = 1; i <= near_last; i++)
		if (!three_logs(i))
			return false;
	return true;
}

void three_make(void)
{
	int nr = 0, tries = 0;

	while (nr < 4 || !is_in_all()) {
		if (nr == 25) { /* by chance no process took one of them: once in thousands */
			cr_assert_lt(tries++, 3);
			cr_assert_eq(lunlink("a"), 0);
			image_len = nr = 0;
		}
		three_write(nr, nr + 1, 1);
		nr++;
	}
}

void three_make_covered(void)
{
	three_make();
	cr_assert_lt(image_drain(), 50);
}

void three_write_into(int i, unsigned round, int (*fn)(void *arg))
{
	int before = three_logs(i);

	for (int tries = 0; three_logs(i) == before; tries++) {
		struct image_piece p = { 0, THREE_LEN, round };
		int ret = in_child(fn, &p);

		cr_assert(tries < 60 && (!ret || ret == 256 + SIGKILL));
	}
	image_note(0, THREE_LEN, round);
}
