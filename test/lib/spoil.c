/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Damage, by plain calls.
 */
#include "test/lib/spoil.h"

const char *const SPOIL_NAMES[NR_SPOILS] = { "removed", "a bit inside", "a bit of its end", "cut", "cut by 8 bytes",
					     "emptied", "a bit of its header", "zeros inside" };

void spoil_bit(const char *path, off_t off)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	unsigned char c;

	if (fd < 0 || pread(fd, &c, 1, off) != 1)
		die("read %s", path);
	c ^= 4;
	if (pwrite(fd, &c, 1, off) != 1)
		die("write %s", path);
	close(fd);
}

static void put_zeros(const char *path, off_t off, size_t len)
{
	static const char zeros[4096];
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	for (size_t at = 0; at < len; at += sizeof(zeros))
		if (fd < 0 || pwrite(fd, zeros, sizeof(zeros), off + (off_t)at) != sizeof(zeros))
			die("write %s", path);
	close(fd);
}

void spoil(const char *path, enum spoil how)
{
	off_t cut = 200000;
	struct stat st;

	if (stat(path, &st) || st.st_size <= cut)
		die("too short: %s", path);
	switch (how) {
	case SPOIL_REMOVE:
		cut = unlink(path);
		break;
	case SPOIL_FLIP:
		spoil_bit(path, cut);
		break;
	case SPOIL_FLIP_END:
		spoil_bit(path, st.st_size - 20);
		break;
	case SPOIL_CUT:
		cut = truncate(path, cut);
		break;
	case SPOIL_CUT_END:
		cut = truncate(path, st.st_size - 8);
		break;
	case SPOIL_EMPTY:
		cut = truncate(path, 0);
		break;
	case SPOIL_HEADER:
		spoil_bit(path, 33);
		break;
	case SPOIL_ZEROS:
		put_zeros(path, 131072, 65536);
		break;
	case NR_SPOILS:
		break;
	}
	if (cut && cut != 200000)
		die("spoil %s", path);
}
