/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory maps of logical files. Where a map must show what is written later, or be written to, the file is
 * moved into its body (core/file/body.h) and the kernel maps the stub; then munmap(), mremap(), msync() and
 * the rest are the kernel's. Other maps are of a copy, made when they are.
 */
#include "bynumber.h"
#include "fdtable.h"

#include <sys/syscall.h>

/*
 * A file up to this size is copied as far as it goes, and as one piece: mremap() may make the map longer. Of
 * a larger one what is mapped, and long extents are mapped from the logs.
 */
#define COPY_WHOLE_MAX (64 << 20)
#define EXTENT_MIN (64 << 10)
#define EXTENTS_MAX 1024

struct extent {
	off_t at; /* from the beginning of the map */
	size_t len;
	int fd; /* of a log */
	off_t fd_off;
};

/* What a map is made of: a file in memory, and extents that lie over it. */
struct copy {
	int fd;
	struct extent *extents;
	unsigned nr_extents;
};

static void copy_release(struct copy *c)
{
	while (c->nr_extents)
		sys_fd_close(&c->extents[--c->nr_extents].fd);
	mem_free(c->extents);
	if (c->fd >= 0)
		sys.close(c->fd);
}

/* [off + at, off + stop) of the file to @at of the copy. 0 or -errno. */
static int copy_bytes(struct copy *c, struct ofile *f, off_t off, off_t at, off_t stop)
{
	const size_t cap = 1 << 20;
	char *buf = mem_alloc(cap);
	ssize_t n = buf ? 1 : -ENOMEM;

	while (n > 0 && at < stop) {
		n = plfs_pread(f->file, buf, min_size(cap, (size_t)(stop - at)), off + at);
		if (n > 0 && sys.pwrite(c->fd, buf, (size_t)n, at) != n)
			n = -ENOMEM; /* what is out of space is memory */
		at += n;
	}
	mem_free(buf);
	return n < 0 ? (int)n : 0;
}

/*
 * If whole pages of [at, at + len), which begin at @fd_off of the log @fd, can be mapped from there: note
 * that, and close @fd if not.
 */
static bool take_extent(struct copy *c, off_t at, size_t len, int fd, off_t fd_off)
{
	off_t page = sysconf(_SC_PAGESIZE), skip = (page - at % page) % page;
	struct extent *e;

	if (c->nr_extents < EXTENTS_MAX && len >= EXTENT_MIN && (fd_off - at) % page == 0) {
		e = &c->extents[c->nr_extents++];
		*e = (struct extent){ at + skip, (len - (size_t)skip) / (size_t)page * (size_t)page, fd,
				      fd_off + skip };
		return true;
	}
	sys_fd_close(&fd);
	return false;
}

/* The same as copy_bytes() from the beginning on, but leaves out what take_extent() takes. */
static int copy_pieces(struct copy *c, struct ofile *f, off_t off, off_t stop)
{
	off_t at = 0, done = 0, fd_off;
	ssize_t n;
	int fd, r = 0;

	c->extents = mem_alloc(EXTENTS_MAX * sizeof(*c->extents));
	if (!c->extents)
		return -ENOMEM;
	for (; !r && at < stop; at += n) {
		n = plfs_extent(f->file, off + at, (size_t)(stop - at), &fd, &fd_off);
		if (n <= 0)
			return n ? (int)n : -EIO;
		if (fd >= 0 && take_extent(c, at, (size_t)n, fd, fd_off)) {
			const struct extent *e = &c->extents[c->nr_extents - 1];

			r = copy_bytes(c, f, off, done, e->at);
			done = e->at + (off_t)e->len;
		}
	}
	return r ? r : copy_bytes(c, f, off, done, stop);
}

/* A copy of @f from @off on, as long as @f is: beyond, a map of it is SIGBUS, as it must be. */
static int copy_make(struct copy *c, struct ofile *f, size_t len, off_t off)
{
	off_t size = plfs_size(f->file), stop = size > off ? size - off : 0;
	int r;

	*c = (struct copy){.fd = -1};
	if (size < 0)
		return (int)size;
	c->fd = sys.memfd_create("plfs", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (c->fd < 0)
		return -errno;
	if (size <= COPY_WHOLE_MAX) {
		r = copy_bytes(c, f, off, 0, stop);
	} else {
		stop = (off_t)min_size(len, (size_t)stop);
		r = copy_pieces(c, f, off, stop);
	}
	if (!r && sys.ftruncate(c->fd, stop))
		r = -errno;
#ifdef F_SEAL_FUTURE_WRITE
	if (!r && !ofile_can_write(f)) /* nor may mprotect() make it writable later */
		sys.fcntl(c->fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE);
#endif
	return r;
}

static void *copy_map(const struct copy *c, void *addr, size_t len, int prot, int flags)
{
	char *map = sys.mmap(addr, len, prot, flags, c->fd, 0);
	unsigned i;

	for (i = 0; i < c->nr_extents && map != MAP_FAILED; i++) {
		const struct extent *e = &c->extents[i];
		int fixed = (flags & ~MAP_FIXED_NOREPLACE) | MAP_FIXED;

		if (sys.mmap(map + e->at, e->len, prot, fixed, e->fd, e->fd_off) == MAP_FAILED) {
			int saved = errno;

			sys.munmap(map, len);
			errno = saved;
			return MAP_FAILED;
		}
	}
	return map;
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

/* Whether the stub itself can be mapped: 1, 0, or -ENODEV: that would be needed, but cannot be had. -EIO */
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
	msg_debug(MSG_REFUSE, "mmap: the file cannot be moved from its logs into its stub: %s",
		  msg_errno_name(-r));
	if (r == -EIO) /* a line has said what is damaged */
		return r;
	return r == -ENOSPC || r == -EDQUOT ? -ENOMEM : (int)refused("shared mmap", ENODEV);
}

static bool maps_logical; /* there has been a map of a logical file */

static void *map_ours(struct ofile *f, void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	const int type = flags & MAP_TYPE;
	int r = check_args(f, len, prot, type, off);
	struct copy copy;
	void *map;

	if (!r)
		r = find_in_body(f, prot, type);
	if (r >= 0)
		__atomic_store_n(&maps_logical, true, __ATOMIC_RELAXED);
	if (r > 0)
		return sys.mmap(addr, len, prot, flags, fd, off + PLFS_BODY_OFF);
	copy = (struct copy){.fd = -1};
	if (!r)
		r = copy_make(&copy, f, len, off);
	map = r < 0 ? MAP_FAILED : copy_map(&copy, addr, len, prot, flags);
	if (r >= 0)
		r = map == MAP_FAILED ? -errno : 0;
	copy_release(&copy);
	if (r < 0)
		done(r);
	return map;
}

/* Counts pages from the beginning of what is really mapped, a stub or a copy of a part. */
EXPORT int remap_file_pages(void *addr, size_t len, int prot, size_t page, int flags)
{
	if (__atomic_load_n(&maps_logical, __ATOMIC_RELAXED))
		return (int)done(refused("remap_file_pages", EINVAL));
	return sys.remap_file_pages(addr, len, prot, page, flags);
}

/*
 * sys.mmap() may come back to us: libraries that must hear of every map (UCX, below MPI) overwrite the code
 * of the C library's too. What comes back has a descriptor that was translated before, or is our own, and is
 * the kernel's to answer.
 */
static __thread int passed_fd __attribute__((tls_model("initial-exec"))) = -1;
static void *(*next_mmap)(void *addr, size_t len, int prot, int flags, int fd, off_t off);

static void *pass_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	int outer = passed_fd;
	void *map;

	passed_fd = flags & MAP_ANONYMOUS ? -1 : fd;
	map = next_mmap(addr, len, prot, flags, fd, off);
	passed_fd = outer;
	return map;
}

bool mmap_is_passed(int fd) { return fd >= 0 && fd == passed_fd; }

void mmap_start(void)
{
	next_mmap = sys.mmap;
	__atomic_store_n(&sys.mmap, pass_mmap, __ATOMIC_RELEASE);
}

/*
 * Anonymous maps are asked for by allocators, in their own initialisation: they do not even start us.
 *
 * Not in mmap() itself: libraries that must hear of every map (UCX, below MPI) overwrite the code of mmap
 * with a jump to their own, which does the system call by number.
 */
__attribute__((noinline)) long bynumber_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	struct ofile *f = NULL;
	void *map;

	if (unlikely(!sys.mmap))
		sys_init();
	if (unlikely(!(flags & MAP_ANONYMOUS) && mmap_is_passed(fd)))
		return sys.syscall(SYS_mmap, addr, len, prot, flags, fd, off);
	if (!(flags & MAP_ANONYMOUS))
		f = fd_get(&fd);
	if (!f)
		return (long)sys.mmap(addr, len, prot, flags, fd, off);
	map = map_ours(f, addr, len, prot, flags, fd, off);
	fd_put(f);
	return (long)map;
}

EXPORT void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	return (void *)bynumber_mmap(addr, len, prot, flags, fd, off);
}
ALIAS(mmap64, mmap);
