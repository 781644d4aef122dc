/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CRC-32C (Castagnoli), the checksum of every header, record and log chunk.
 */
#ifndef PLFS_CRC32C_H
#define PLFS_CRC32C_H

#include "core/base/base.h"

/*
 * Continue the checksum @crc (0 to begin) over @len bytes at @buf; the CRC-32C of "123456789"
 * is 0xe3069283. crc32c(crc32c(0, a, n), a + n, m) == crc32c(0, a, n + m). Thread-safe.
 */
uint32_t crc32c(uint32_t crc, const void *buf, size_t len);

/*
 * Continue the checksum while copying @len bytes at @buf to @to, which they do not overlap. For cold data the
 * checksum is free then. It is of the bytes copied, whatever another thread does to @buf meanwhile. As
 * copy_to_pages(), no store reaches into two pages.
 */
uint32_t crc32c_copy(uint32_t crc, void *to, const void *buf, size_t len);

/* crc32c() by table alone, for machines without the instructions, and to check these. */
uint32_t crc32c_portable(uint32_t crc, const void *buf, size_t len);

#endif
