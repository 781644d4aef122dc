/* SPDX-License-Identifier: BSD-3-Clause */
#include "test/lib/unchanged.h"

#include "test/lib/near.h"

#include "core/base/bytes.h"
#include "core/base/crc32c.h"

#include <ftw.h>

enum { UNIT = 512 };

static uint64_t sum;

/* Zeros may be a hole, or not. */
static uint64_t sum_of_piece(const char *p, size_t len, off_t at)
{
	return is_zero(p, len) ? 0 : mix64((uint64_t)at << 32 | crc32c(0, p, len));
}

static uint64_t sum_of(const char *path)
{
	static char buf[128 * UNIT];
	int fd = open(path, O_RDONLY);
	uint64_t all = 0;
	off_t at = 0;
	ssize_t n;

	while ((at = lseek(fd, at, SEEK_DATA)) >= 0 && (n = pread(fd, buf, sizeof(buf), at)) > 0)
		for (ssize_t i = 0; i < n; i += UNIT, at += UNIT)
			all += sum_of_piece(buf + i, min_size(UNIT, (size_t)(n - i)), at);
	close(fd);
	return all;
}

/* In any order. */
static int add(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	uint64_t name = crc32c((uint32_t)st->st_mode, path, strlen(path));

	(void)ftw;
	sum += mix64(name + (type == FTW_F ? mix64(name + (uint64_t)st->st_size) + sum_of(path) : 0));
	return 0;
}

uint64_t all_that_is(void)
{
	sum = 0;
	nftw(scratch, add, 16, FTW_PHYS);
	if (*near_dir)
		nftw(near_dir, add, 16, FTW_PHYS);
	return sum;
}
