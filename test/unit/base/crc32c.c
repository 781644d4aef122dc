/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The checksum in all its forms: known values, and every form against the portable one. The .c
 * file is included to reach the forms that this machine would not choose by itself.
 */
#include "core/base/crc32c.c"

#include <criterion/criterion.h>
#include <stdlib.h>

#define BUF_LEN (64 << 10)

static unsigned char buf[BUF_LEN];

static void fill(void)
{
	uint32_t seed = 1;

	for (size_t i = 0; i < BUF_LEN; i++) {
		seed = seed * 1664525 + 1013904223;
		buf[i] = (unsigned char)(seed >> 24);
	}
}

static void compare(crc_fn *fn, size_t begin, size_t len)
{
	uint32_t crc = (uint32_t)(begin * 2654435761u + len);
	uint32_t want = crc32c_portable(crc, buf + begin, len);

	cr_assert_eq(~fn(~crc, buf + begin, len), want, "len %zu at %zu", len, begin);
}

static void compare_all_lengths(crc_fn *fn)
{
	for (size_t len = 0; len < 2600; len++)
		compare(fn, len % 67, len);
	for (size_t len = 2600; len < BUF_LEN - 64; len = len * 21 / 20 + 1)
		compare(fn, len % 64, len);
}

Test(crc32c, has_the_values_of_rfc_3720)
{
	unsigned char block[32];

	cr_assert_eq(crc32c(0, "123456789", 9), 0xe3069283);
	cr_assert_eq(crc32c(0, "", 0), 0);
	memset(block, 0, sizeof(block));
	cr_assert_eq(crc32c(0, block, sizeof(block)), 0x8a9136aa);
	memset(block, 0xff, sizeof(block));
	cr_assert_eq(crc32c(0, block, sizeof(block)), 0x62a8ab43);
	for (unsigned i = 0; i < sizeof(block); i++)
		block[i] = (unsigned char)i;
	cr_assert_eq(crc32c(0, block, sizeof(block)), 0x46dd794e);
}

Test(crc32c_portable, agrees_with_bit_by_bit_division)
{
	uint32_t crc = ~0u;

	fill();
	for (size_t i = 0; i < 1000; i++) {
		crc ^= buf[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
		cr_assert_eq(crc32c_portable(0, buf, i + 1), ~crc, "len %zu", i + 1);
	}
}

Test(crc32c, chosen_form_agrees_with_portable_at_every_length)
{
	fill();
	compare_all_lengths(best_for_this_machine());
}

Test(crc32c, instruction_form_agrees_with_portable_at_every_length)
{
#if defined(__x86_64__) || defined(__aarch64__)
	if (best_for_this_machine() == portable)
		cr_skip_test("this processor has no crc32 instruction");
	fill();
	compare_all_lengths(by_instruction);
#else
	cr_skip_test("no such form for this architecture");
#endif
}

Test(crc32c, continues_from_any_split)
{
	fill();
	for (size_t at = 0; at <= 2048; at += 7)
		cr_assert_eq(crc32c(crc32c(0, buf, at), buf + at, 2048 - at), crc32c(0, buf, 2048),
			     "split at %zu", at);
}

Test(crc32c, a_copy_has_the_bytes_and_their_checksum_at_every_length_and_alignment)
{
	static unsigned char copy[BUF_LEN + 128];

	fill();
	for (size_t len = 0; len < BUF_LEN - 64; len = len < 2600 ? len + 1 : len * 21 / 20 + 1) {
		unsigned char *to = copy + 1 + len % 61;

		memset(copy, 0x77, sizeof(copy));
		cr_assert_eq(crc32c_copy((uint32_t)len, to, buf + len % 64, len),
			     crc32c_portable((uint32_t)len, buf + len % 64, len), "len %zu", len);
		cr_assert_eq(memcmp(to, buf + len % 64, len), 0, "len %zu", len);
		cr_assert(to[-1] == 0x77 && to[len] == 0x77, "len %zu: beyond the end", len);
	}
}
