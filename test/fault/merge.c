/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Building a map without memory: the first, second, third... allocation fails, until none does. This file has
 * its own core/base/alloc.c, so that the library's stays out.
 */
#include "core/base/alloc.h"
#include "index/map/merge.h"

#include <criterion/criterion.h>
#include <stdlib.h>

static long until_failure, nr_live;

static bool fails(void) { return until_failure > 0 && --until_failure == 0; }

void *mem_realloc(void *p, size_t len)
{
	void *q = fails() ? NULL : realloc(p, len ? len : 1);

	nr_live += q && !p;
	return q;
}

void *mem_alloc(size_t len) { return mem_realloc(NULL, len); }

void *mem_zalloc(size_t len)
{
	void *p = mem_alloc(len);

	return p ? memset(p, 0, len) : NULL;
}

char *mem_strdup(const char *s)
{
	char *p = mem_alloc(strlen(s) + 1);

	return p ? strcpy(p, s) : NULL;
}

void mem_free(void *p)
{
	nr_live -= p != NULL;
	free(p);
}

/* Records that make every kind of panel. */
static int add_all(struct index_merge *m)
{
	int ret = 0;

	for (uint64_t i = 0; i < 300 && !ret; i++) {
		struct index_record recs[] = {
			{ INDEX_WRITE, i * 10, 10, 3000, 1000, 0, i, 0, 0 },
			{ INDEX_WRITE, 4000000 + i * 10, 10 + i, 3000 + i, 1000, 0, i, 0, 0 },
			{ INDEX_WRITE, 9000000 - i * 7, 500, 0, 1, i * 500, i, 0, 0 },
			{ INDEX_WRITE, 4500000 + i * 70, 50, 0, 1, i * 50, i, 0, 0 },
			{ INDEX_TRUNCATE, 9000000 - i, 0, 0, 0, 0, i, 0, 0 },
		};

		for (size_t k = 0; k < ARRAY_SIZE(recs) && !ret; k++)
			ret = index_merge_add(m, (uint32_t)k, &recs[k]);
	}
	return ret;
}

Test(index_merge, any_single_allocation_failure_is_reported_and_leaves_nothing_behind)
{
	long n = 0;
	int ret;

	do {
		struct index_merge m;
		struct index_map map;
		void *image = NULL;
		size_t len;

		index_merge_init(&m);
		until_failure = ++n;
		ret = add_all(&m);
		if (!ret)
			ret = index_merge_build(&m, &image, &len);
		until_failure = 0;
		index_merge_release(&m);
		if (ret == 0) {
			cr_assert_eq(index_map_open(&map, image, len, true), 0);
			mem_free(image);
		}
		cr_assert(ret == 0 || ret == -ENOMEM, "allocation %ld: %d", n, ret);
		cr_assert_eq(nr_live, 0, "allocation %ld: %ld left", n, nr_live);
	} while (ret);
	cr_assert_gt(n, 20);
}
