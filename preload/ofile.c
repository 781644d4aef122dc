/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Open file descriptions: reference counts, offsets, and the data calls on them. What a call means on a
 * logical file is decided here and in core; the wrappers only find the description and pass the result on.
 */
#include "ofile.h"

#define IO_MAX 0x7ffff000 /* what Linux moves in one call at most */
#define OFF_MAX INT64_MAX

static pthread_mutex_t free_lock = PTHREAD_MUTEX_INITIALIZER; /* innermost: nothing is called under it */
static struct ofile *free_list;

/* ---- life ---- */

static struct ofile *ofile_new(enum ofile_kind kind)
{
	struct ofile *f;

	mutex_lock(&free_lock);
	f = free_list;
	if (f)
		free_list = f->next_free;
	mutex_unlock(&free_lock);
	if (!f) {
		f = mem_zalloc(sizeof(*f));
		if (!f)
			return NULL;
		pthread_mutex_init(&f->lock, NULL);
	}
	f->kind = kind;
	f->m = NULL;
	f->path = NULL;
	f->file = NULL;
	f->flags = 0;
	f->heirs_mark = f->program_signal = 0;
	f->direct_mem = f->direct_len = 0;
	f->logical_off = 0;
	f->shared = false;
	f->frozen = false;
	__atomic_store_n(&f->refs, 1, __ATOMIC_RELEASE);
	return f;
}

struct ofile *ofile_new_file(struct plfs_file *file, int flags, bool shared)
{
	struct ofile *f = ofile_new(OFILE_FILE);

	if (!f) {
		plfs_close(file);
		return NULL;
	}
	f->file = file;
	f->flags = flags;
	f->opened_append = flags & O_APPEND && !plfs_lifts_append(file);
	f->shared = shared;
	return f;
}

struct ofile *ofile_new_dir(struct plfs_mount *m, const char *path)
{
	struct ofile *f = ofile_new(OFILE_DIR);

	if (!f)
		return NULL;
	f->m = m;
	if (m)
		return f;
	f->path = mem_strdup(path);
	if (f->path)
		return f;
	ofile_unref(f);
	return NULL;
}

int ofile_end(struct ofile *f)
{
	struct plfs_file *file = f->file;

	mem_free(f->path);
	f->path = NULL;
	mutex_lock(&free_lock);
	f->next_free = free_list;
	free_list = f;
	mutex_unlock(&free_lock);
	return file ? plfs_close(file) : 0;
}

/* ---- the offset; all with the lock held ---- */

static off_t offset_get(struct ofile *f, int fd)
{
	off_t kernel_off;

	if (!f->shared)
		return f->logical_off;
	kernel_off = sys.lseek(fd, 0, SEEK_CUR);
	if (kernel_off < 0)
		return -errno;
	return kernel_off > PLFS_BODY_OFF ? kernel_off - PLFS_BODY_OFF : 0;
}

static off_t offset_set(struct ofile *f, int fd, off_t logical_off)
{
	if (!f->shared)
		f->logical_off = logical_off;
	else if (logical_off > OFF_MAX - PLFS_BODY_OFF)
		return -EOVERFLOW;
	else if (sys.lseek(fd, logical_off + PLFS_BODY_OFF, SEEK_SET) < 0)
		return -errno;
	return logical_off;
}

/*
 * Move the offset forward by *@len before the bytes are moved, and return where it was. A shared offset moves
 * in one system call, so that processes that write to one description at the same time get a place each, as
 * with a plain file. *@len shrinks where the offset cannot move so far.
 */
static off_t offset_take(struct ofile *f, int fd, size_t *len)
{
	off_t kernel_off, logical_off;

	if (f->shared) {
		kernel_off = sys.lseek(fd, (off_t)*len, SEEK_CUR);
		if (kernel_off >= (off_t)*len + PLFS_BODY_OFF)
			return kernel_off - (off_t)*len - PLFS_BODY_OFF;
		if (kernel_off >= 0) { /* somebody who did not know put it into the header */
			sys.lseek(fd, (off_t)*len + PLFS_BODY_OFF, SEEK_SET);
			return 0;
		}
		*len = 0;
		return offset_get(f, fd);
	}
	logical_off = f->logical_off;
	if (logical_off > OFF_MAX - (off_t)*len)
		*len = (size_t)(OFF_MAX - logical_off);
	f->logical_off += (off_t)*len;
	return logical_off;
}

/* Correct the offset: it was moved by @taken from @logical_off, and @used bytes were moved. */
static void offset_settle(struct ofile *f, int fd, off_t logical_off, size_t taken, ssize_t used)
{
	off_t off = (off_t)(used > 0 ? used : 0) - (off_t)taken;

	if (!off)
		return;
	if (f->shared && taken)
		sys.lseek(fd, off, SEEK_CUR);
	else
		offset_set(f, fd, logical_off + (off_t)taken + off);
}

/*
 * What the kernel's flags do not say, for a process that inherits the description: it is kept as the signal
 * of F_SETSIG, which no regular file ever sends and which stays with the description.
 */
#define HEIR_BASE 48
#define HEIR_WRONLY 1
#define HEIR_APPEND 2
#define HEIR_DIRECT 4
#define HEIR_RDONLY 8
#define HEIR_ALL 15

void ofile_mark_for_heirs(struct ofile *f, int fd)
{
	int mark = (ofile_can_read(f) ? 0 : HEIR_WRONLY) |
		   (ofile_can_write(f) || !plfs_can_write(f->file) ? 0 : HEIR_RDONLY) |
		   (f->flags & O_APPEND && !f->opened_append ? HEIR_APPEND : 0) |
		   (f->flags & O_DIRECT ? HEIR_DIRECT : 0);

	if (mark != f->heirs_mark && !sys.fcntl(fd, F_SETSIG, mark ? HEIR_BASE + mark : 0))
		f->heirs_mark = mark;
}

void ofile_learn_locked(struct ofile *f, int fd)
{
	int saved ERRNO_KEPT = errno;
	int mark, flags;

	if (likely(!f->shared))
		return;
	mark = sys.fcntl(fd, F_GETSIG);
	flags = f->opened_append ? sys.fcntl(fd, F_GETFL) : 0;
	mark = mark > 0 ? mark - HEIR_BASE : mark;
	if (flags < 0 || mark < 0 || mark > HEIR_ALL)
		return;
	if (mark & HEIR_APPEND) /* an heir may have taken it off the description */
		f->opened_append = false;
	if (f->opened_append)
		f->flags = (f->flags & ~O_APPEND) | (flags & O_APPEND);
	if (mark == f->heirs_mark)
		return;
	if (!f->opened_append)
		f->flags = (f->flags & ~O_APPEND) | (mark & HEIR_APPEND ? O_APPEND : 0);
	if (mark & HEIR_DIRECT && !(f->flags & O_DIRECT))
		ofile_set_direct(f, fd);
	f->flags = (f->flags & ~O_DIRECT) | (mark & HEIR_DIRECT ? O_DIRECT : 0);
	f->heirs_mark = mark;
}

void ofile_learn_flags(struct ofile *f, int fd)
{
	if (likely(!f->shared))
		return;
	mutex_lock(&f->lock);
	ofile_learn_locked(f, fd);
	mutex_unlock(&f->lock);
}

struct ofile *ofile_new_heir(struct plfs_file *file, int fd)
{
	int flags = sys.fcntl(fd, F_GETFL) & ~(O_CREAT | O_EXCL | O_TRUNC),
	    mark = sys.fcntl(fd, F_GETSIG) - HEIR_BASE;
	bool appends = flags & O_APPEND, lifted = plfs_lifts_append(file);
	struct ofile *f;

	if (mark < 0 || mark > HEIR_ALL)
		mark = 0;
	if (mark & HEIR_WRONLY)
		flags = (flags & ~O_ACCMODE) | O_WRONLY;
	if (mark & HEIR_RDONLY)
		flags = (flags & ~O_ACCMODE) | O_RDONLY;
	flags |= (lifted || mark & HEIR_APPEND ? O_APPEND : 0) | (mark & HEIR_DIRECT ? O_DIRECT : 0);
	f = ofile_new_file(file, flags, true);
	if (f) {
		f->heirs_mark = mark;
		f->opened_append = appends;
		if (lifted)
			ofile_mark_for_heirs(f, fd);
		if (flags & O_DIRECT)
			ofile_set_direct(f, fd);
	}
	return f;
}

/* Fails if another thread is closing @fd. */
static void share(struct ofile *f, int fd)
{
	int saved = errno;

	if (!f->shared && sys.lseek(fd, f->logical_off + PLFS_BODY_OFF, SEEK_SET) >= 0)
		f->shared = true;
	ofile_mark_for_heirs(f, fd);
	errno = saved;
}

void ofile_share(struct ofile *f, int fd)
{
	mutex_lock(&f->lock);
	share(f, fd);
	mutex_unlock(&f->lock);
}

void ofile_freeze(struct ofile *f, int fd)
{
	if (!f->frozen)
		mutex_lock(&f->lock);
	f->frozen = true;
	share(f, fd);
}

void ofile_thaw(struct ofile *f)
{
	f->frozen = false;
	mutex_unlock(&f->lock);
}

void ofile_disown(struct ofile *f)
{
	pthread_mutex_init(&f->lock, NULL);
	f->shared = true; /* what that thread has of the offset is not known here */
}

void ofile_freeze_list(void) { mutex_lock(&free_lock); }

void ofile_thaw_list(void) { mutex_unlock(&free_lock); }

off_t ofile_tell(struct ofile *f, int fd)
{
	off_t off;

	mutex_lock(&f->lock);
	off = offset_get(f, fd);
	mutex_unlock(&f->lock);
	return off;
}

off_t ofile_lseek(struct ofile *f, int fd, off_t off, int whence)
{
	off_t base = 0;

	mutex_lock(&f->lock);
	if (whence == SEEK_CUR)
		base = offset_get(f, fd);
	else if (whence == SEEK_END)
		base = plfs_size(f->file);
	else if (whence == SEEK_DATA || whence == SEEK_HOLE)
		base = plfs_seek_hole(f->file, off, whence);
	else if (whence != SEEK_SET)
		base = -EINVAL;
	if (whence == SEEK_DATA || whence == SEEK_HOLE)
		off = 0;

	if (base >= 0 && off > OFF_MAX - base)
		base = -EOVERFLOW;
	else if (base >= 0 && base + off < 0)
		base = -EINVAL;
	else if (base >= 0)
		base = whence == SEEK_CUR && !off ? base : offset_set(f, fd, base + off);
	mutex_unlock(&f->lock);
	return base;
}

/* ---- O_DIRECT ---- */

#ifndef STATX_DIOALIGN
#define STATX_DIOALIGN 0x2000U /* Linux 6.1 */
#endif
#define STATX_DIO_MEM_AT 0x98 /* of struct statx, where the C library's may have no names for them */
#define STATX_DIO_OFFSET_AT 0x9c

/* Where the kernel does not say what it asks for, nothing is asked for. */
void ofile_set_direct(struct ofile *f, int fd)
{
	int saved ERRNO_KEPT = errno;
	uint32_t mem = 0, len = 0;
	struct statx sx;

	if (sys.statx && !sys.statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &sx) &&
	    sx.stx_mask & STATX_DIOALIGN) {
		memcpy(&mem, (char *)&sx + STATX_DIO_MEM_AT, sizeof(mem));
		memcpy(&len, (char *)&sx + STATX_DIO_OFFSET_AT, sizeof(len));
	}
	f->direct_mem = mem ? mem - 1 : 0;
	f->direct_len = len ? len - 1 : 0;
}

/* Whether the transfer is one that a file system which moves blocks refuses. */
static COLD bool is_misaligned(const struct ofile *f, const struct iovec *iov, int cnt, off_t logical_off)
{
	uintptr_t mem = 0;
	uint64_t len = (uint64_t)logical_off;

	for (int i = 0; i < cnt; i++) {
		mem |= iov[i].iov_len ? (uintptr_t)iov[i].iov_base : 0;
		len |= iov[i].iov_len;
	}
	return mem & f->direct_mem || len & f->direct_len;
}

/* ---- data ---- */

static ssize_t get(struct ofile *f, const struct iovec *iov, int cnt, off_t logical_off)
{
	/* At the end of the file there is nothing to be moved. */
	if (unlikely(f->flags & O_DIRECT) && is_misaligned(f, iov, cnt, logical_off) &&
	    logical_off < plfs_size(f->file))
		return -EINVAL;
	if (cnt == 1)
		return plfs_pread(f->file, iov->iov_base, min_size(iov->iov_len, IO_MAX), logical_off);
	return plfs_preadv(f->file, iov, cnt, logical_off);
}

static ssize_t put(struct ofile *f, const struct iovec *iov, int cnt, off_t logical_off)
{
	ssize_t ret;
	int r;

	if (unlikely(f->flags & O_DIRECT) && is_misaligned(f, iov, cnt, logical_off))
		return -EINVAL;
	if (cnt == 1)
		ret = plfs_pwrite(f->file, iov->iov_base, min_size(iov->iov_len, IO_MAX), logical_off);
	else
		ret = plfs_pwritev(f->file, iov, cnt, logical_off);
	if (ret > 0 && (f->flags & O_DSYNC)) { /* O_SYNC contains it */
		r = plfs_sync(f->file);
		ret = r < 0 ? r : ret;
	}
	return ret;
}

static ssize_t append(struct ofile *f, const struct iovec *iov, int cnt, off_t *end)
{
	ssize_t ret;
	int r;

	if (unlikely(f->flags & O_DIRECT) && is_misaligned(f, iov, cnt, plfs_size(f->file)))
		return -EINVAL;
	ret = plfs_appendv(f->file, iov, cnt, end);
	if (ret > 0 && (f->flags & O_DSYNC)) {
		r = plfs_sync(f->file);
		ret = r < 0 ? r : ret;
	}
	return ret;
}

ssize_t ofile_readv(struct ofile *f, int fd, const struct iovec *iov, int cnt)
{
	ssize_t ret = plfs_iov_total(iov, cnt);
	size_t len;
	off_t off;

	if (!ofile_can_read(f))
		return -EBADF;
	if (ret <= 0)
		return ret;
	len = min_size((size_t)ret, IO_MAX);
	mutex_lock(&f->lock);
	off = offset_take(f, fd, &len);
	ret = off < 0 ? off : get(f, iov, cnt, off);
	if (off >= 0)
		offset_settle(f, fd, off, len, ret);
	mutex_unlock(&f->lock);
	return ret;
}

/* Whether a write needs nothing but plfs_pwrite(). */
static inline bool is_plain_write(const struct ofile *f)
{
	return ofile_can_write(f) && !(f->flags & (O_APPEND | O_DSYNC | O_DIRECT));
}

ssize_t ofile_writev(struct ofile *f, int fd, const struct iovec *iov, int cnt)
{
	ssize_t ret = plfs_iov_total(iov, cnt);
	size_t len;
	off_t off;

	ofile_learn_flags(f, fd);
	if (f->flags & O_APPEND)
		return ofile_appendv(f, fd, iov, cnt);
	if (!ofile_can_write(f))
		return -EBADF;
	if (ret <= 0)
		return ret;
	len = min_size((size_t)ret, IO_MAX);
	mutex_lock(&f->lock);
	off = offset_take(f, fd, &len);
	ret = off < 0 ? off : put(f, iov, cnt, off);
	if (off >= 0)
		offset_settle(f, fd, off, len, ret);
	mutex_unlock(&f->lock);
	return ret;
}

ssize_t ofile_appendv(struct ofile *f, int fd, const struct iovec *iov, int cnt)
{
	ssize_t ret = plfs_iov_total(iov, cnt);
	off_t end;

	if (!ofile_can_write(f))
		return -EBADF;
	if (ret <= 0)
		return ret;
	mutex_lock(&f->lock);
	ret = append(f, iov, cnt, &end);
	if (ret > 0 && fd >= 0)
		offset_set(f, fd, end);
	mutex_unlock(&f->lock);
	return ret;
}

ssize_t ofile_preadv(struct ofile *f, const struct iovec *iov, int cnt, off_t logical_off)
{
	ssize_t total = plfs_iov_total(iov, cnt);

	if (logical_off < 0)
		return -EINVAL;
	if (!ofile_can_read(f))
		return -EBADF;
	return total <= 0 ? total : get(f, iov, cnt, logical_off);
}

ssize_t ofile_pwritev(struct ofile *f, int fd, const struct iovec *iov, int cnt, off_t logical_off)
{
	ssize_t total;

	ofile_learn_flags(f, fd);
	if (likely(cnt == 1 && is_plain_write(f) && iov->iov_len <= IO_MAX && logical_off >= 0))
		return plfs_pwrite(f->file, iov->iov_base, iov->iov_len, logical_off);
	total = plfs_iov_total(iov, cnt);
	if (logical_off < 0)
		return -EINVAL;
	if (f->flags & O_APPEND)
		return ofile_appendv(f, -1, iov, cnt);
	if (!ofile_can_write(f))
		return -EBADF;
	return total <= 0 ? total : put(f, iov, cnt, logical_off);
}
