/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Changing the size of a file, and the space in it: ftruncate(), fallocate(); SEEK_DATA.
 */
#include "core/file/file.h"

#include "core/file/dispatch.h"
#include "core/file/logged.h"
#include "core/file/publish.h"

static int truncate_file(struct plfs_file *f, off_t size)
{
	int saved ERRNO_KEPT = errno;
	int ret;

	if (size < 0)
		return -EINVAL;
	if ((uint64_t)size > FORM_SIZE_MAX)
		return -EFBIG;
	ret = dispatch_truncate(f->ino, file_begin(f), (uint64_t)size);
	return (int)file_end_store(f, ret);
}

int plfs_truncate(struct plfs_file *f, off_t size)
{
	struct seen call;
	int ret;

	seen_begin(&call, f->ino->tally, SEEN_TRUNCATE);
	ret = truncate_file(f, size);
	seen_end(&call, (uint64_t)size, ret);
	return ret;
}

static int write_zeros(struct plfs_file *f, off_t logical_off, off_t len)
{
	static const char zeros[65536];

	while (len) {
		ssize_t n = file_write_uncounted(f, zeros, (size_t)min_u64(sizeof(zeros), (uint64_t)len),
					    logical_off);

		if (n < 0)
			return (int)n;
		logical_off += n;
		len -= n;
	}
	return 0;
}

static int allocate(struct plfs_file *f, int mode, off_t logical_off, off_t len)
{
	int saved ERRNO_KEPT = errno;
	bool keep = mode & FALLOC_FL_KEEP_SIZE;
	off_t size, stop;
	int ret;

	if (logical_off < 0 || len <= 0)
		return -EINVAL;
	if (file_bad_range((size_t)len, logical_off))
		return -EFBIG;
	stop = logical_off + len;
	size = plfs_size(f);
	if (size < 0)
		return (int)size;
	/* what logs say lies where it lies */
	if (mode == FALLOC_FL_COLLAPSE_RANGE || mode == FALLOC_FL_INSERT_RANGE) {
		ret = plfs_in_body(f, PLFS_MAP_WRITE);
		if (ret < 0)
			return ret == -EBUSY ? -EOPNOTSUPP : ret;
	}
	ret = dispatch_fallocate(f->ino, file_begin(f), mode, (uint64_t)logical_off, (uint64_t)len);
	file_end(f);
	if (ret <= 0)
		return ret;
	if (!form_emulates(mode))
		return -EOPNOTSUPP;
	if (mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE) && keep)
		stop = stop < size ? stop : size;
	ret = 0;
	if (mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE) && logical_off < size)
		ret = write_zeros(f, logical_off, (stop < size ? stop : size) - logical_off);
	else if (keep || stop <= size) { /* nothing to do; it counts as changed */
		publish_date(f->ino, file_begin(f));
		file_end(f);
	}
	if (!ret && !keep && stop > size) {
		ret = logged_grow(f->ino, file_begin(f), (uint64_t)stop);
		file_end(f);
	}
	return ret;
}

int plfs_fallocate(struct plfs_file *f, int mode, off_t logical_off, off_t len)
{
	struct seen call;
	int ret;

	seen_begin(&call, f->ino->tally, SEEN_OTHER);
	ret = allocate(f, mode, logical_off, len);
	seen_end(&call, (uint64_t)logical_off, ret);
	return ret;
}

off_t plfs_seek_hole(struct plfs_file *f, off_t logical_off, int whence)
{
	off_t size = plfs_size(f);

	if (size < 0)
		return size;
	if (logical_off < 0 || logical_off >= size)
		return -ENXIO;
	return whence == SEEK_DATA ? logical_off : size;
}
