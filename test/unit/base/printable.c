/* SPDX-License-Identifier: BSD-3-Clause */
/* Whatever the bytes are, what is written is printable UTF-8, and printable text is unchanged. */
#include "core/base/printable.h"

#include <criterion/criterion.h>
#include <stdlib.h>

static const char *escaped(const char *text, size_t len, size_t cap)
{
	static char out[1024];

	out[printable_copy(out, cap, text, len)] = 0;
	return out;
}

Test(printable, text_stays_as_it_is)
{
	static const char text[] = "a \\ ~ \xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80 \xc2\xa0";

	cr_assert(is_printable(text, strlen(text)));
	cr_assert_str_eq(escaped(text, strlen(text), 100), text);
}

Test(printable, bytes_that_are_no_text_are_escaped)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{ "\n\r\t\b\x1b\x7f", "\\n\\r\\t\\x08\\x1b\\x7f" },
		{ "\x9b", "\\x9b" },             /* a control sequence in Latin-1 */
		{ "\xc2\x9b", "\\xc2\\x9b" },    /* and in UTF-8 */
		{ "\xc0\x8a", "\\xc0\\x8a" },    /* a newline that is longer than it need be */
		{ "\xed\xa0\x80", "\\xed\\xa0\\x80" },
		{ "\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80" },
		{ "\xe2\x82", "\\xe2\\x82" },
		{ "\xe2\x82z", "\\xe2\\x82z" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		cr_assert(!is_printable(cases[i].text, strlen(cases[i].text)));
		cr_assert_str_eq(escaped(cases[i].text, strlen(cases[i].text), 100), cases[i].want);
	}
	cr_assert_str_eq(escaped("a\0b", 3, 100), "a\\x00b");
}

Test(printable, what_does_not_fit_is_left_out_whole)
{
	cr_assert_str_eq(escaped("ab\n", 3, 3), "ab");
	cr_assert_str_eq(escaped("a\xe2\x82\xac", 4, 3), "a");
}

Test(printable, any_bytes_become_printable)
{
	srand(1);
	for (int round = 0; round < 10000; round++) {
		char text[64], out[sizeof(text) * PRINTABLE_MAX];
		size_t len = (size_t)rand() % sizeof(text), n;

		for (size_t i = 0; i < len; i++)
			text[i] = (char)(rand() % 3 ? rand() : rand() % 128);
		n = printable_copy(out, sizeof(out), text, len);
		cr_assert(is_printable(out, n));
		cr_assert(!is_printable(text, len) || (n == len && !memcmp(out, text, len)));
	}
}
