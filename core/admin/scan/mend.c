/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds the flipped bit by trying all.
 */
#include "core/admin/scan/mend.h"

#include "core/base/bytes.h"
#include "core/base/crc32c.h"

bool mend_is_right(const uint8_t *buf, size_t len, size_t crc_off)
{
	static const uint8_t zeros[4];
	uint32_t crc = crc32c(crc32c(0, buf, crc_off), zeros, sizeof(zeros));

	return crc32c(crc, buf + crc_off + 4, len - crc_off - 4) == get_le32(buf + crc_off);
}

bool mend_find(uint8_t *buf, size_t len, size_t crc_off, size_t *at)
{
	if (len > MEND_MAX || len < crc_off + 4 || mend_is_right(buf, len, crc_off))
		return false;
	for (size_t bit = 0; bit < len * 8; bit++) {
		buf[bit / 8] ^= (uint8_t)(1 << bit % 8);
		*at = bit / 8;
		if (mend_is_right(buf, len, crc_off))
			return true;
		buf[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	return false;
}

bool mend_differ_by_one(const uint8_t *a, const uint8_t *b, size_t len, size_t *at)
{
	int bits = 0;

	for (size_t i = 0; i < len && bits < 2; i++)
		if (a[i] != b[i]) {
			bits += __builtin_popcount(a[i] ^ b[i]);
			*at = i;
		}
	return bits == 1;
}
