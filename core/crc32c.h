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

/* The same by table alone, for machines without the instructions and to check them against. */
uint32_t crc32c_portable(uint32_t crc, const void *buf, size_t len);

#endif
