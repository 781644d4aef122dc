/* SPDX-License-Identifier: BSD-3-Clause */
#include "test/lib/places.h"

#include "test/lib/scratch.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char near_dir[64];

void near_map(const char *options)
{
	char text[200];

	new_dir(near_dir, sizeof(near_dir));
	setenv("PLFS_TEST_NEAR", near_dir, 1);
	snprintf(text, sizeof(text), "{small=0,near=$PLFS_TEST_NEAR%s}", options);
	scratch_map(text);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

void remove_tree(const char *path) { nftw(path, remove_one, 16, FTW_PHYS | FTW_DEPTH); }

void near_remove(void)
{
	scratch_remove();
	remove_tree(near_dir);
}

static const char *wanted;
static int nr_found;

static int count_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	nr_found += type == FTW_F && !strncmp(path + ftw->base, wanted, strlen(wanted));
	return 0;
}

int count_near(const char *prefix)
{
	wanted = prefix;
	nr_found = 0;
	nftw(near_dir, count_one, 16, FTW_PHYS);
	return nr_found;
}
