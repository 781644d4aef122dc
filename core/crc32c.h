/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CRC-32C (Castagnoli), the checksum of every header, record and log chunk.
 */
#ifndef PLFS_CRC32C_H
#define PLFS_CRC32C_H

#include "base.h"

/*
 * Continue the checksum @crc (0 to begin) over @len bytes at @buf; the CRC-32C of "123456789"
 * is 0xe3069283. crc32c(crc32c(0, a, n), a + n, m) == crc32c(0, a, n + m). Thread-safe.
 */
uint32_t crc32c(uint32_t crc, const void *buf, size_t len);

/*
 * The same while @len bytes at @buf are copied to @to, which they do not overlap: of data that is cold the checksum costs
 * nothing then. The checksum is of what was copied, whatever another thread does to @buf meanwhile. No store reaches into two pages (copy_to_pages()).
 */
uint32_t crc32c_copy(uint32_t crc, void *to, const void *buf, size_t len);

/* The same by table alone, for machines without the instructions and to check them against. */
uint32_t crc32c_portable(uint32_t crc, const void *buf, size_t len);

#endif
