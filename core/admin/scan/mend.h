/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds the one flipped bit that explains a wrong checksum. At the lengths of headers, records and trailers
 * (up to 5243 bits) a CRC-32C tells any five flipped bits from none (Castagnoli, Braeuer and Herrmann 1993;
 * Koopman 2002). So if changing one bit makes the checksum right, either this bit was flipped or at least
 * five others were.
 */
#ifndef PLFS_MEND_H
#define PLFS_MEND_H

#include "core/base/base.h"

#define MEND_MAX 655 /* bytes */

/* Whether the CRC-32C at @crc_off (taken as 0 in it) of the @len bytes at @buf is right. */
bool mend_is_right(const uint8_t *buf, size_t len, size_t crc_off);

/*
 * Find the bit that makes the CRC-32C at @crc_off (taken as 0 in it) of the @len bytes at @buf right, and
 * change it there. True: *@at is the byte with that bit. False: no bit does, or the checksum is right.
 */
bool mend_find(uint8_t *buf, size_t len, size_t crc_off, size_t *at);

/* Whether @a and @b differ by one bit, which is in byte *@at. */
bool mend_differ_by_one(const uint8_t *a, const uint8_t *b, size_t len, size_t *at);

#endif
