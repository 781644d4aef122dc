/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The store on a directory of a mounted file system: descriptors and system calls.
 */
#include "core/store/posix.h"

#include "core/base/guard.h"
#include "core/base/msg.h"
#include "core/base/io.h"
#include "core/store/posix_kind.h"
#include "core/store/posix_names.h"
#include "core/base/sys.h"

#include <sys/vfs.h>

/* Some store here is remote. */
static bool any_remote;

/* And is reached through FUSE. */
static bool any_fuse;

static int err(long ret)
{
	return ret < 0 ? -errno : 0;
}

/*
 * Give the file that was made just now what a umask has taken of @mode. Only O_EXCL says that it was: a file
 * that is there already may be any user's, who has not asked for other permissions.
 */
static int restore_mode(int fd, mode_t mode)
{
	struct stat st;

	if (mode & 077 && !sys.fstat(fd, &st) && (st.st_mode & mode) != mode)
		sys.fchmod(fd, ((st.st_mode | mode) & 0777) | (mode & S_ISGID));
	return fd;
}

/*
 * What the kernel says of a name that is none of a file, or no directory where there should be one; in what
 * was made here there are none.
 */
static int not_a_file(const char *path, int ret)
{
	if (ret != -ELOOP && ret != -EXDEV && ret != -EISDIR && ret != -ENOTDIR && ret != -ENXIO &&
	    ret != -ENODEV && ret != -ESPIPE)
		return ret;
	if (path)
		msg_error("%s: %s, which is not what libplfs makes here: damaged (%s)", path,
			  ret == -ELOOP || ret == -EXDEV ? "a symbolic link" :
			  ret == -EISDIR		 ? "a directory" :
			  ret == -ENOTDIR		 ? "no directory" :
							   "no file",
			  msg_errno_name(-ret));
	return -EIO;
}

/*
 * Whether O_DIRECT asks for no alignment here, as the kernel says of FUSE. GlusterFS hands the flag on to the
 * file systems that its servers keep files in, and these may. The first file that has a byte tells for all.
 */
static bool reads_uncached(struct store *s, int fd)
{
	ssize_t n;
	char c;

	if (s->uncached_works)
		return true;
	n = io_pread(fd, &c, 1, 0);
	s->uncached_works = n > 0;
	return n >= 0 || errno != EINVAL;
}

static int posix_open(struct store *s, const char *path, int flags, mode_t mode)
{
	int fd;

	if ((flags & (O_CREAT | O_EXCL)) == O_CREAT)
		return -EINVAL;
	if (!(flags & O_EXCL))
		flags |= O_NONBLOCK | O_NOCTTY;
	fd = names_open(s, path, flags, mode);
	if (unlikely(flags & O_DIRECT) && (fd < 0 ? errno == EINVAL : !reads_uncached(s, fd))) {
		if (fd >= 0)
			io_close(fd);
		s->uncached = 0;
		fd = names_open(s, path, flags & ~O_DIRECT, mode);
	}
	fd = fd < 0 ? -errno : flags & O_CREAT ? restore_mode(fd, mode) : fd;
	if (fd < 0)
		fd = not_a_file(path, fd);
	return flags & STORE_BRIEFLY ? sys_fd_hide_briefly(fd) : sys_fd_hide(fd);
}

static int posix_close(struct store *s, int *h)
{
	(void)s;
	return sys_fd_close(h);
}

/* What was empty when it was opened, and told nothing of that: it is read as others are from here on. */
static bool wants_alignment(struct store *s, int h)
{
	int flags = sys.fcntl(h, F_GETFL);

	if (flags < 0 || !(flags & O_DIRECT) || s->uncached_works)
		return false;
	s->uncached = 0;
	return !sys.fcntl(h, F_SETFL, flags & ~O_DIRECT);
}

static ssize_t posix_pread(struct store *s, int h, void *buf, size_t len, uint64_t off)
{
	ssize_t n = io_pread_all(h, buf, len, off);

	if (unlikely(n == -EINVAL) && wants_alignment(s, h))
		n = io_pread_all(h, buf, len, off);
	return n < 0 ? not_a_file(NULL, (int)n) : n;
}

static ssize_t posix_preadv(struct store *s, int h, struct iovec *iov, int cnt, uint64_t off)
{
	(void)s;
	return io_preadv_all(h, iov, cnt, off);
}

static ssize_t posix_pwrite(struct store *s, int h, const void *buf, size_t len, uint64_t off)
{
	ssize_t n = io_pwrite_all(h, buf, len, off);

	(void)s;
	return n < 0 ? not_a_file(NULL, (int)n) : n;
}

static ssize_t posix_pwrite2(struct store *s, int h, const void *buf, size_t len, const void *buf2,
			     size_t len2, uint64_t off)
{
	const struct iovec iov[2] = { { (void *)buf, len }, { (void *)buf2, len2 } };
	ssize_t n = 0, n2;

	if (len && len2)
		n = io_pwritev(h, iov, 2, (off_t)off);
	if (n < 0 && errno != EINTR)
		return -errno;
	n = n > 0 ? n : 0;
	if ((size_t)n < len) {
		n2 = io_pwrite_all(h, (const char *)buf + n, len - (size_t)n, off + (uint64_t)n);
		if (n2 < (ssize_t)len - n)
			return n2 > 0 ? n + n2 : n ? n : n2;
		n = (ssize_t)len;
	}
	if ((size_t)n == len + len2)
		return n;
	n2 = posix_pwrite(s, h, (const char *)buf2 + ((size_t)n - len), len + len2 - (size_t)n,
			  off + (uint64_t)n);
	return n2 > 0 ? n + n2 : n ? n : n2;
}

/* The kernel finds the end; the offset, which nothing else here uses, says where that was. */
static ssize_t posix_append(struct store *s, int h, const void *buf, size_t len, uint64_t *at)
{
	const struct iovec iov = { (void *)buf, len };
	ssize_t n;
	off_t end;

	(void)s;
	do {
		n = io_pwritev2(h, &iov, 1, -1, RWF_APPEND);
	} while (n < 0 && errno == EINTR);
	if (n < 0 && (errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL)) { /* an old kernel */
		if (sys.fcntl(h, F_SETFL, sys.fcntl(h, F_GETFL) | O_APPEND))
			return -errno;
		n = io_write(h, buf, len);
	}
	if (n < 0)
		return not_a_file(NULL, -errno);
	end = sys.lseek(h, 0, SEEK_CUR);
	if (end < n)
		return -EIO;
	*at = (uint64_t)(end - n);
	return n;
}

static int posix_fstat(struct store *s, int h, struct stat *st)
{
	(void)s;
	return err(sys.fstat(h, st));
}

static void posix_give(struct store *s, int h, uid_t uid)
{
	(void)s;
	if (sys.fchown(h, uid, (gid_t)-1))
		return; /* not even root may here */
}

static int posix_chmod(struct store *s, int h, mode_t mode)
{
	(void)s;
	return err(sys.fchmod(h, mode));
}

static int posix_chown(struct store *s, int h, uid_t uid, gid_t gid)
{
	(void)s;
	return err(sys.fchown(h, uid, gid));
}

/* Inode numbers are given again when a file has gone; with the time of birth they are not. */
static int posix_identify(struct store *s, int h, struct store_identity *id)
{
	struct statx stx;
	struct stat st;
	int ret;

	/* Forbidden, as in some sandboxes. */
	if (sys.statx(h, "", AT_EMPTY_PATH, STATX_INO | STATX_SIZE | STATX_BTIME, &stx)) {
		ret = posix_fstat(s, h, &st);
		if (!ret)
			*id = (struct store_identity){ .len = (uint64_t)st.st_size,
						       .ino = st.st_ino,
						       .id = st.st_ino };
		return ret;
	}
	*id = (struct store_identity){ .len = stx.stx_size, .ino = stx.stx_ino, .id = stx.stx_ino };
	if (stx.stx_mask & STATX_BTIME)
		id->id ^= (uint64_t)stx.stx_btime.tv_sec * 1000000000 + stx.stx_btime.tv_nsec;
	return 0;
}

/*
 * A client of a dispersed volume of GlusterFS tells its servers a file's new size a second or more later.
 * Each listing of the directory hands the kernel the servers' old size. The kernel then cuts the file's maps
 * there: what was stored in them is lost, and the next store raises SIGBUS. A sync tells the servers at once.
 */
static int settle_size(struct store *s, int h)
{
	return s->late_sizes ? err(io_fdatasync(h)) : 0;
}

static int posix_truncate(struct store *s, int h, uint64_t len)
{
	int ret = err(sys.ftruncate(h, (off_t)len));

	return ret ? ret : settle_size(s, h);
}

static int posix_sync(struct store *s, int h, bool dir)
{
	(void)s;
	return err(dir ? io_fsync(h) : io_fdatasync(h));
}

/*
 * Where a file system allocates late (ext4, XFS), bytes that are written have their space as surely as
 * allocated ones, and they are in the page cache already, in large folios. On ext4 the file of 552 KiB,
 * written so, touched and removed, takes 90 us instead of 300: allocated blocks are faulted in one page at a
 * time, at 1.5 us each, and have to be freed. On tmpfs, and where space once given may be given anew (btrfs),
 * allocating is better.
 */
static int posix_reserve(struct store *s, int h, uint64_t off, uint64_t len)
{
	int ret;

	if (s->zeros_reserve)
		return store_write_zeros(s, h, off, len);
	do { /* tmpfs lets signals in */
		ret = io_fallocate(h, 0, (off_t)off, (off_t)len);
	} while (ret < 0 && errno == EINTR);
	if (ret && (errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL))
		ret = store_write_zeros(s, h, off, len);
	else
		ret = err(ret);
	return ret ? ret : settle_size(s, h);
}

/*
 * On ext4 a large write takes a tenth less time where blocks need not be reserved one by one, and they lie
 * together when logs grow side by side. (XFS allocates ahead by itself; on tmpfs it is no gain.) A file that
 * is almost alone on its file system is no reason to fill it.
 */
static int posix_allocate_ahead(struct store *s, int h, uint64_t off, uint64_t len)
{
	struct statfs fs;
	int ret;

	if (!s->allocates_ahead)
		return -EOPNOTSUPP;
	if (sys.fstatfs(h, &fs))
		return -errno;
	if ((uint64_t)fs.f_bavail / 256 < len / (uint64_t)fs.f_bsize)
		return -ENOSPC;
	do {
		ret = io_fallocate(h, FALLOC_FL_KEEP_SIZE, (off_t)off, (off_t)len);
	} while (ret < 0 && errno == EINTR);
	return err(ret);
}

static void *posix_map(struct store *s, int h, size_t len, bool writable)
{
	void *p = sys.mmap(NULL, len, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, h, 0);

	(void)s;
	if (p == MAP_FAILED) {
		if (errno == EINVAL || errno == EOPNOTSUPP || errno == ENOSYS) /* 9p, and some of FUSE's */
			errno = ENODEV;
		return NULL;
	}
	if (guard_add(p, len))
		return p;
	sys.munmap(p, len);
	errno = ENOMEM;
	return NULL;
}

static void posix_unmap(struct store *s, void *p, size_t len)
{
	(void)s;
	guard_remove(p);
	sys.munmap(p, len);
}

#define ASK_MIN_NS 250000
#define ASK_MAX_NS 4000000

/*
 * Through FUSE we ask again and again. When a process is killed in a call that may wait for a lock, ceph-fuse
 * may get the lock for it all the same, and has it for as long as it is mounted: nobody else gets it any
 * more, and to all the file is in use for ever. Calls that do not wait are safe from that.
 */
int store_posix_lock(int fd, int wait_cmd, struct flock *lk)
{
	struct timespec pause = { .tv_nsec = ASK_MIN_NS };
	int ret;

	for (;;) {
		ret = io_fcntl(fd,
			       !any_fuse		? wait_cmd :
			       wait_cmd == F_OFD_SETLKW ? F_OFD_SETLK :
							  F_SETLK,
			       lk);
		if (ret >= 0 || (errno != EINTR && (errno != EAGAIN || !any_fuse)))
			return ret;
		if (errno == EINTR)
			continue;
		io_nanosleep(&pause, NULL);
		pause.tv_nsec = min_u64(2 * (uint64_t)pause.tv_nsec, ASK_MAX_NS);
	}
}

static int lock_op(int h, int type, bool wait)
{
	struct flock lk = { .l_type = (short)type, .l_whence = SEEK_SET };
	int ret = wait ? store_posix_lock(h, F_OFD_SETLKW, &lk) : io_fcntl(h, F_OFD_SETLK, &lk);

	if (ret < 0 && !wait && (errno == EAGAIN || errno == EACCES))
		return -EBUSY;
	if (ret < 0 && (errno == EINVAL || errno == ENOSYS || errno == ENOLCK))
		return -EOPNOTSUPP;
	return err(ret);
}

static int posix_lock(struct store *s, int h)
{
	(void)s;
	return lock_op(h, F_WRLCK, true);
}

static int posix_try_lock(struct store *s, int h)
{
	(void)s;
	return lock_op(h, F_WRLCK, false);
}

static int posix_lock_shared(struct store *s, int h)
{
	(void)s;
	return lock_op(h, F_RDLCK, true);
}

static int posix_unlock(struct store *s, int h)
{
	(void)s;
	return lock_op(h, F_UNLCK, true);
}

static uint64_t posix_next_data(struct store *s, int h, uint64_t off)
{
	off_t at = sys.lseek(h, (off_t)off, SEEK_DATA);

	(void)s;
	return at >= 0 ? (uint64_t)at : errno == ENXIO ? UINT64_MAX : off;
}

/* A shared lock is that of a reader: beside it there is no exclusive one. */
bool store_posix_locked(int fd)
{
	struct flock lk = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	return sys.fcntl(fd, F_OFD_GETLK, &lk) || lk.l_type == F_WRLCK;
}

static bool posix_locked(struct store *s, int h)
{
	(void)s;
	return store_posix_locked(h);
}

/*
 * Writes out what is dirty in the page cache: from there on a network file system lets other hosts see it, as
 * what was written by a call. It need not be on stable storage.
 */
static int posix_expose(struct store *s, int h, uint64_t len)
{
	int ret;

	if (!s->remote)
		return 0;
	ret = err(sys.sync_file_range(h, 0, (off_t)len,
				      SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
					      SYNC_FILE_RANGE_WAIT_AFTER));
	return ret == -ENOSYS || ret == -EINVAL ? err(io_fdatasync(h)) : ret;
}

/*
 * ceph-fuse, for one, never tells the kernel that another host has changed a page of a file that both have
 * open.
 */
void store_posix_forget(int fd, off_t len)
{
	if (unlikely(any_remote))
		sys.posix_fadvise(fd, 0, len, POSIX_FADV_DONTNEED);
}

static void posix_forget(struct store *s, int h)
{
	if (s->remote)
		store_posix_forget(h, 0);
}

static int posix_stat(struct store *s, const char *path, struct stat *st)
{
	return err(sys.fstatat(s->root, path, st, AT_SYMLINK_NOFOLLOW));
}

static int posix_fd(struct store *s, int h)
{
	(void)s;
	return h;
}

static const struct store_ops posix_ops = {
	.open = posix_open,
	.keep = sys_fd_own,
	.close = posix_close,
	.pread = posix_pread,
	.pwrite = posix_pwrite,
	.fstat = posix_fstat,
	.truncate = posix_truncate,
	.sync = posix_sync,
	.stat = posix_stat,
	.mkdir = names_mkdir,
	.unlink = names_unlink,
	.rename = names_rename,
	.list = names_list,

	.fd = posix_fd,
	.preadv = posix_preadv,
	.pwrite2 = posix_pwrite2,
	.identify = posix_identify,
	.rename_new = names_rename_new,
	.rmdir = names_rmdir,
	.remove_tree = names_remove_tree,
	.reserve = posix_reserve,
	.allocate_ahead = posix_allocate_ahead,
	.next_data = posix_next_data,
	.map = posix_map,
	.unmap = posix_unmap,
	.expose = posix_expose,
	.forget = posix_forget,
	.append = posix_append,
	.lock = posix_lock,
	.try_lock = posix_try_lock,
	.lock_shared = posix_lock_shared,
	.unlock = posix_unlock,
	.locked = posix_locked,
	.grant = names_grant,
	.give = posix_give,
	.chmod = posix_chmod,
	.chown = posix_chown,
};

static void set_kind(struct store *s, const struct statfs *fs)
{
	any_fuse |= store_kind_set(s, fs);
	any_remote |= s->remote;
}

void store_posix_set_kind(struct store *s)
{
	struct statfs fs;

	if (sys.fstatfs(s->root, &fs))
		fs.f_type = 0;
	set_kind(s, &fs);
}

void store_posix_join(struct store *s, const struct store *other, bool one)
{
	s->remote |= other->remote;
	s->coherent &= other->coherent;
	s->keeps_order &= other->keeps_order && one;
	s->zeros_reserve &= other->zeros_reserve;
	s->allocates_ahead &= other->allocates_ahead;
	s->late_sizes |= other->late_sizes;
}

int store_posix_open(struct store *s, const char *path)
{
	struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC };
	int fd = io_openat2(AT_FDCWD, path, &how, sizeof(how));
	struct statfs fs;

	s->no_openat2 = fd < 0 && (errno == ENOSYS || errno == EPERM); /* an old kernel, or a sandbox */
	if (s->no_openat2)
		fd = io_open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	fd = sys_fd_hide(fd < 0 ? -errno : fd);
	if (fd < 0)
		return fd;
	s->ops = &posix_ops;
	s->root = fd;
	s->path_id = store_path_id(path);
	if (sys.statfs(path, &fs))
		fs.f_type = 0;
	set_kind(s, &fs);
	return 0;
}

void store_posix_close(struct store *s)
{
	sys_fd_close(&s->root);
}
