/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Symbols found by the tables of the loaded objects are those that dlsym() finds.
 */
#include "core/base/next_symbol.h"
#include "core/base/sys.h"
#include "test/lib/sanitized.h"

#include <criterion/criterion.h>

static const char *const NAMES[] = {
#define NAME(ret, name, args) #name,
	SYS_CALLS(NAME)
#undef NAME
	"mmap", "munmap", "madvise", "__xstat", "__fxstatat", "memcpy", "strlen",
};

/* The version that is linked today: dlsym() finds it from glibc 2.36 on. */
Test(next_symbol, is_the_one_that_dlsym_finds)
{
	unsigned found = 0;

	for (unsigned i = 0; i < ARRAY_SIZE(NAMES); i++) {
		void *symbol = next_symbol_by_tables(NAMES[i]);

#if __GLIBC_PREREQ(2, 36)
		cr_assert_eq(symbol, dlsym(RTLD_NEXT, NAMES[i]), "%s", NAMES[i]);
#else
		cr_assert_eq(!symbol, !dlsym(RTLD_NEXT, NAMES[i]), "%s", NAMES[i]);
#endif
		found += symbol != NULL;
	}
	cr_assert_gt(found, ARRAY_SIZE(NAMES) / 2);
}

#ifdef __x86_64__
Test(next_symbol, is_the_newest_of_several_versions)
{
	if (is_sanitized())
		cr_skip_test("a sanitizer has some of these functions, in front of those of the C library");
	cr_assert_eq(next_symbol("realpath"), dlvsym(RTLD_NEXT, "realpath", "GLIBC_2.3"));
	cr_assert_eq(next_symbol("glob"), dlvsym(RTLD_NEXT, "glob", "GLIBC_2.27"));
	cr_assert_neq(next_symbol("glob"), dlvsym(RTLD_NEXT, "glob", "GLIBC_2.2.5"));
}
#endif

Test(next_symbol, that_is_nowhere_is_null_without_a_message)
{
	dlerror(); /* a sanitizer has asked for something in vain */
	cr_assert_null(next_symbol_by_tables("plfs_no_such_function"));
	cr_assert_null(next_symbol_by_tables(""));
	cr_assert_null(dlerror());
}
