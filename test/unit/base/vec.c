/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Arrays that grow.
 */
#include "core/base/vec.h"

#include "core/base/sys.h"

#include <criterion/criterion.h>

static unsigned nr_asked;

static bool count(void)
{
	nr_asked++;
	return false;
}

static bool refuse(void)
{
	return true;
}

static void fini(void)
{
	mem_refuses = NULL;
}

TestSuite(vec, .init = sys_init, .fini = fini);

Test(vec, keeps_its_elements_and_grows_by_doubling)
{
	uint64_t *v = NULL;
	size_t cap = 0;

	mem_refuses = count;
	for (size_t i = 0; i < 100000; i++) {
		v = vec_room(v, &cap, i + 1, sizeof(*v));
		cr_assert_not_null(v);
		cr_assert_geq(cap, i + 1);
		v[i] = i * i;
	}
	for (size_t i = 0; i < 100000; i++)
		cr_assert_eq(v[i], i * i);
	cr_assert_leq(nr_asked, 14, "%u", nr_asked);
	mem_free(v);
}

Test(vec, has_room_for_many_at_once)
{
	size_t cap = 0;
	char *v = vec_room(NULL, &cap, 1000, 3);

	cr_assert_eq(cap, 1000);
	memset(v, 1, 3 * cap);
	mem_free(v);
}

Test(vec, is_as_before_when_there_is_no_memory)
{
	size_t cap = 0;
	int *v = vec_room(NULL, &cap, 1, sizeof(*v));

	cr_assert_eq(cap, VEC_MIN);
	v[0] = 7;
	mem_refuses = refuse;
	cr_assert_eq(vec_room(v, &cap, VEC_MIN, sizeof(*v)), v);
	cr_assert_null(vec_room(v, &cap, VEC_MIN + 1, sizeof(*v)));
	cr_assert_eq(cap, VEC_MIN);
	cr_assert_eq(v[0], 7);
	mem_free(v);
}

Test(vec, more_than_there_are_addresses_is_refused)
{
	size_t cap = 0;

	cr_assert_null(vec_room(NULL, &cap, SIZE_MAX / 2, 16));
	cr_assert_eq(cap, 0);
}
