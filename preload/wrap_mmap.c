// SPDX-License-Identifier: BSD-3-Clause
/*
 * Memory maps of logical files. A private one is served with a copy: POSIX leaves open whether it would see
 * later writes. A shared one is refused.
 */
#include "fdtable.h"

/* Fill @map with the bytes from @off; what lies past the end of the file stays zero. 0 or -errno. */
static int fill(struct ofile *f, char *map, size_t len, off_t off)
{
	size_t have = 0;
	ssize_t n = 1;

	while (have < len && n > 0) {
		n = plfs_pread(f->file, map + have, min_size(len - have, 1 << 30), off + (off_t)have);
		if (n > 0)
			have += (size_t)n;
	}
	return n < 0 ? (int)n : 0;
}

/* mmap(2) of @f; MAP_FAILED and errno. */
static void *map_copy(struct ofile *f, void *addr, size_t len, int prot, int flags, off_t off)
{
	const int kept = MAP_FIXED | MAP_FIXED_NOREPLACE | MAP_NORESERVE | MAP_LOCKED;
	char *map;
	int r = 0;

	if (!len || off < 0 || off % sysconf(_SC_PAGESIZE))
		r = -EINVAL;
	else if (!ofile_can_read(f))
		r = -EACCES;
	else if ((flags & MAP_TYPE) != MAP_PRIVATE)
		r = (int)refused("shared mmap", ENODEV);
	if (r < 0) {
		done(r);
		return MAP_FAILED;
	}
	map = sys.mmap(addr, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | (flags & kept), -1,
	               0);
	if (map == MAP_FAILED)
		return map;
	r = fill(f, map, len, off);
	if (!r && prot != (PROT_READ | PROT_WRITE) && sys.mprotect(map, len, prot))
		r = -errno;
	if (!r)
		return map;
	sys.munmap(map, len);
	done(r);
	return MAP_FAILED;
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
	map = map_copy(f, addr, len, prot, flags, off);
	ofile_put(f);
	return map;
}
ALIAS(mmap64, mmap);
