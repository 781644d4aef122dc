/* SPDX-License-Identifier: BSD-3-Clause */
#include "test/lib/unchanged.h"

#include "test/lib/near.h"

#include "core/base/bytes.h"
#include "core/base/crc32c.h"

#include <ftw.h>

static uint64_t sum;

static uint32_t sum_of(const char *path)
{
	static unsigned char buf[65536];
	int fd = open(path, O_RDONLY);
	uint32_t crc = 0;
	off_t at = 0;
	ssize_t n;

	while (fd >= 0 && (at = lseek(fd, at, SEEK_DATA)) >= 0 &&
	       (n = pread(fd, buf, sizeof(buf), at)) > 0) {
		for (ssize_t i = 0; i < n; i += 512) /* zeros may be a hole, or not */
			if (!is_zero((char *)buf + i, (size_t)(n - i < 512 ? n - i : 512)))
				crc ^= crc32c((uint32_t)(at + i) / 512, buf + i, (size_t)(n - i < 512 ? n - i : 512));
		at += n;
	}
	close(fd);
	return crc;
}

/* In any order. */
static int add(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)ftw;
	sum += mix64(crc32c((uint32_t)st->st_mode, path, strlen(path)));
	if (type == FTW_F)
		sum += mix64(((uint64_t)crc32c(0, path, strlen(path)) << 32 | sum_of(path)) + (uint64_t)st->st_size);
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
