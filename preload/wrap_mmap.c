// SPDX-License-Identifier: BSD-3-Clause
/*
 * Memory maps of logical files. Where a map must show what is written later, or be written to, the file is
 * moved into its body (core/body.h) and the kernel maps the stub; then munmap(), mremap(), msync() and the rest are
 * the kernel's. Other maps are of a copy, made when they are.
 */
#include "fdtable.h"

/* Of a file up to this size all that follows is copied as well: mremap() may make the map longer. */
#define COPY_WHOLE_MAX (64 << 20)

/* [off, stop) of the file to the beginning of @fd. 0 or -errno. */
static int copy_to(int fd, struct ofile *f, off_t off, off_t stop)
{
	const size_t cap = 1 << 20;
	char *buf = mem_alloc(cap);
	ssize_t n = buf ? 1 : -ENOMEM;
	off_t at = 0;

	while (n > 0 && at < stop - off) {
		n = plfs_pread(f->file, buf, min_size(cap, (size_t)(stop - off - at)), off + at);
		if (n > 0 && sys.pwrite(fd, buf, (size_t)n, at) != n)
			n = -ENOMEM; /* what is out of space is memory */
		at += n;
	}
	mem_free(buf);
	return n < 0 ? (int)n : 0;
}

/* A file in memory with a copy of @f from @off on, as long as @f is: beyond, a map of it is SIGBUS, as it must be. */
static int make_copy(struct ofile *f, size_t len, off_t off)
{
	off_t size = plfs_size(f->file), stop = size;
	int fd, r;

	if (size < 0)
		return (int)size;
	if (size > COPY_WHOLE_MAX && (off_t)len < size - off)
		stop = off + (off_t)len;
	fd = sys.memfd_create("plfs", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	r = stop > off ? copy_to(fd, f, off, stop) : 0;
	if (!r && stop > off && sys.ftruncate(fd, stop - off))
		r = -errno;
#ifdef F_SEAL_FUTURE_WRITE
	if (!r && !ofile_can_write(f)) /* nor may mprotect() make it writable later */
		sys.fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE);
#endif
	if (!r)
		return fd;
	sys.close(fd);
	return r;
}

/* What the kernel would say of the arguments. */
static int check_args(const struct ofile *f, size_t len, int prot, int type, off_t off)
{
	if (!len || off % sysconf(_SC_PAGESIZE))
		return -EINVAL;
	if (type != MAP_PRIVATE && type != MAP_SHARED && type != MAP_SHARED_VALIDATE)
		return -EINVAL;
	if (off < 0 || off > INT64_MAX - PLFS_BODY_OFF - (off_t)min_size(len, INT64_MAX / 2))
		return -EOVERFLOW;
	if (!ofile_can_read(f) || (type != MAP_PRIVATE && (prot & PROT_WRITE) && !ofile_can_write(f)))
		return -EACCES;
	return 0;
}

/* Whether the stub itself can be mapped: 1, 0, or -ENODEV: that would be needed, but cannot be had. */
static int find_in_body(struct ofile *f, int prot, int type)
{
	enum plfs_map_use use = PLFS_MAP_COPY;
	int r;

	if (sysconf(_SC_PAGESIZE) > PLFS_BODY_OFF) /* its offsets are no multiples of a page */
		return type == MAP_PRIVATE ? 0 : (int)refused("shared mmap", ENODEV);
	if (type != MAP_PRIVATE)
		use = (prot & PROT_WRITE) || ofile_can_write(f) ? PLFS_MAP_WRITE : PLFS_MAP_READ;
	r = plfs_in_body(f->file, use);
	if (r >= 0 || use != PLFS_MAP_WRITE)
		return r > 0;
	log_debug(LOG_REFUSE, "mmap: the file cannot be moved into its stub: %s", strerrorname_np(-r));
	return r == -ENOSPC || r == -EDQUOT ? -ENOMEM : (int)refused("shared mmap", ENODEV);
}

static void *map_ours(struct ofile *f, void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	const int type = flags & MAP_TYPE;
	int copy, r = check_args(f, len, prot, type, off);
	void *map;

	if (!r)
		r = find_in_body(f, prot, type);
	if (r > 0)
		return sys.mmap(addr, len, prot, flags, fd, off + PLFS_BODY_OFF);
	copy = r < 0 ? r : make_copy(f, len, off);
	if (copy < 0) {
		done(copy);
		return MAP_FAILED;
	}
	map = sys.mmap(addr, len, prot, flags, copy, 0);
	r = errno;
	sys.close(copy);
	errno = r;
	return map;
}

/* Anonymous maps are asked for by allocators, in their own initialisation: they do not even start us. */
EXPORT void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	struct ofile *f = NULL;
	void *map;

	if (unlikely(!sys.mmap))
		sys_init();
	if (!(flags & MAP_ANONYMOUS))
		f = fd_get(fd);
	if (!f)
		return sys.mmap(addr, len, prot, flags, fd, off);
	map = map_ours(f, addr, len, prot, flags, fd, off);
	fd_put(f);
	return map;
}
ALIAS(mmap64, mmap);
