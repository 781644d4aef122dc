/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The replaced calls of the sys table. Each asks the hook, then does the real call, half of it, or none.
 */
#include "test/lib/calls.h"

const char *const CALL_NAMES[NR_CALLS] = {
	"openat", "open", "pwrite", "pread", "ftruncate", "fallocate", "mmap", "munmap", "fsync", "fdatasync",
	"unlinkat", "renameat", "mkdirat", "fchmodat", "fstat", "fstatat", "getdents64", "fcntl", "futimens",
	"close", "lseek",
};

int (*on_call)(enum call call);

struct sys_table calls_real;

static bool fails(enum call call)
{
	int err = on_call ? on_call(call) : 0;

	if (err <= 0)
		return false;
	errno = err;
	return true;
}

static mode_t mode_arg(int flags, va_list args)
{
	return flags & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0;
}

static int call_openat(int dirfd, const char *path, int flags, ...)
{
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = mode_arg(flags, args);
	va_end(args);
	return fails(CALL_OPENAT) ? -1 : calls_real.openat(dirfd, path, flags, mode);
}

int call_openat2(int dirfd, const char *path, struct open_how *how, size_t size)
{
	return fails(CALL_OPENAT) ? -1 : calls_real.openat2(dirfd, path, how, size);
}

static int call_open(const char *path, int flags, ...)
{
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = mode_arg(flags, args);
	va_end(args);
	return fails(CALL_OPEN) ? -1 : calls_real.open(path, flags, mode);
}

static size_t shortened(int err, size_t len)
{
	return err == CALL_SHORT && len > 1 ? len / 2 : len;
}

static ssize_t call_pwrite(int fd, const void *buf, size_t len, off_t off)
{
	int err = on_call ? on_call(CALL_PWRITE) : 0;

	errno = err > 0 ? err : errno;
	return err > 0 ? -1 : calls_real.pwrite(fd, buf, shortened(err, len), off);
}

/* Short of half of it where a part of the first piece, or of the second, is in. */
static ssize_t call_pwritev(int fd, const struct iovec *iov, int cnt, off_t off)
{
	int err = on_call ? on_call(CALL_PWRITE) : 0;
	struct iovec cut[2];
	size_t len;

	errno = err > 0 ? err : errno;
	if (err >= 0 || cnt != 2)
		return err > 0 ? -1 : calls_real.pwritev(fd, iov, cnt, off);
	len = shortened(err, iov[0].iov_len + iov[1].iov_len);
	cut[0] = (struct iovec){ iov[0].iov_base, len < iov[0].iov_len ? len : iov[0].iov_len };
	cut[1] = (struct iovec){ iov[1].iov_base, len - cut[0].iov_len };
	return calls_real.pwritev(fd, cut, 2, off);
}

static bool is_torn; /* the next half of the write ends the process */

/* An append that was short is not continued: one that is to be torn ends the process itself. */
static ssize_t call_pwritev2(int fd, const struct iovec *iov, int cnt, off_t off, int flags)
{
	int err = on_call ? on_call(CALL_PWRITE) : 0;
	struct iovec cut = iov[0];
	ssize_t n;

	errno = err > 0 ? err : errno;
	cut.iov_len = shortened(err, cut.iov_len);
	n = err > 0 ? -1 : calls_real.pwritev2(fd, err < 0 ? &cut : iov, err < 0 ? 1 : cnt, off, flags);
	if (err < 0 && is_torn)
		kill(getpid(), SIGKILL);
	return n;
}

static ssize_t call_pread(int fd, void *buf, size_t len, off_t off)
{
	int err = on_call ? on_call(CALL_PREAD) : 0;

	errno = err > 0 ? err : errno;
	return err > 0 ? -1 : calls_real.pread(fd, buf, shortened(err, len), off);
}

static ssize_t call_preadv(int fd, const struct iovec *iov, int cnt, off_t off)
{
	int err = on_call ? on_call(CALL_PREAD) : 0;

	errno = err > 0 ? err : errno;
	return err > 0 ? -1 : calls_real.preadv(fd, iov, err && cnt > 1 ? cnt / 2 : cnt, off);
}

static int call_fcntl(int fd, int cmd, ...)
{
	va_list args;
	void *arg;

	va_start(args, cmd);
	arg = va_arg(args, void *);
	va_end(args);
	return fails(CALL_FCNTL) ? -1 : calls_real.fcntl(fd, cmd, arg);
}

static void *call_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	if (flags & MAP_ANONYMOUS)
		return calls_real.mmap(addr, len, prot, flags, fd, off);
	return fails(CALL_MMAP) ? MAP_FAILED : calls_real.mmap(addr, len, prot, flags, fd, off);
}

static off_t call_lseek(int fd, off_t off, int whence)
{
	return fails(CALL_LSEEK) ? -1 : calls_real.lseek(fd, off, whence);
}

static ssize_t call_getdents64(int fd, void *buf, size_t len)
{
	return fails(CALL_GETDENTS) ? -1 : calls_real.getdents64(fd, buf, len);
}

static int call_ftruncate(int fd, off_t len)
{
	return fails(CALL_FTRUNCATE) ? -1 : calls_real.ftruncate(fd, len);
}

static int call_fsync(int fd) { return fails(CALL_FSYNC) ? -1 : calls_real.fsync(fd); }
static int call_fdatasync(int fd) { return fails(CALL_FDATASYNC) ? -1 : calls_real.fdatasync(fd); }
static int call_fstat(int fd, struct stat *st) { return fails(CALL_FSTAT) ? -1 : calls_real.fstat(fd, st); }

static int call_fallocate(int fd, int mode, off_t off, off_t len)
{
	return fails(CALL_FALLOCATE) ? -1 : calls_real.fallocate(fd, mode, off, len);
}

/* A failing munmap() or close() has done its work all the same: only its place is of interest. */
static int call_munmap(void *addr, size_t len)
{
	fails(CALL_MUNMAP);
	return calls_real.munmap(addr, len);
}

static int call_close(int fd)
{
	fails(CALL_CLOSE);
	return calls_real.close(fd);
}

int call_unlinkat(int dirfd, const char *path, int flags)
{
	return fails(CALL_UNLINKAT) ? -1 : calls_real.unlinkat(dirfd, path, flags);
}

static int call_renameat(int fromfd, const char *from, int tofd, const char *to)
{
	return fails(CALL_RENAMEAT) ? -1 : calls_real.renameat(fromfd, from, tofd, to);
}

static int call_mkdirat(int dirfd, const char *path, mode_t mode)
{
	return fails(CALL_MKDIRAT) ? -1 : calls_real.mkdirat(dirfd, path, mode);
}

static int call_fchmodat(int dirfd, const char *path, mode_t mode, int flags)
{
	return fails(CALL_FCHMODAT) ? -1 : calls_real.fchmodat(dirfd, path, mode, flags);
}

static int call_fstatat(int dirfd, const char *path, struct stat *st, int flags)
{
	return fails(CALL_FSTATAT) ? -1 : calls_real.fstatat(dirfd, path, st, flags);
}

static int call_futimens(int fd, const struct timespec ts[2])
{
	return fails(CALL_FUTIMENS) ? -1 : calls_real.futimens(fd, ts);
}

/* ---- hooks that kill the process ---- */

long calls_left;

int die_at_last(enum call call)
{
	(void)call;
	if (!--calls_left)
		kill(getpid(), SIGKILL);
	return 0;
}

int stop_at_last(enum call call)
{
	(void)call;
	if (!--calls_left)
		raise(SIGSTOP);
	return 0;
}

int die_in_last_write(enum call call)
{
	if (call != CALL_PWRITE)
		return 0;
	if (--calls_left < 0)
		kill(getpid(), SIGKILL);
	is_torn = !calls_left;
	return is_torn ? CALL_SHORT : 0;
}

void calls_intercept(void)
{
	calls_real = sys;
	sys.openat = call_openat;
	sys.openat2 = call_openat2;
	sys.open = call_open;
	sys.pwrite = call_pwrite;
	sys.pwritev = call_pwritev;
	sys.pwritev2 = call_pwritev2;
	sys.pread = call_pread;
	sys.preadv = call_preadv;
	sys.ftruncate = call_ftruncate;
	sys.fallocate = call_fallocate;
	sys.mmap = call_mmap;
	sys.munmap = call_munmap;
	sys.fsync = call_fsync;
	sys.fdatasync = call_fdatasync;
	sys.unlinkat = call_unlinkat;
	sys.renameat = call_renameat;
	sys.mkdirat = call_mkdirat;
	sys.fchmodat = call_fchmodat;
	sys.fstat = call_fstat;
	sys.fstatat = call_fstatat;
	sys.getdents64 = call_getdents64;
	sys.fcntl = call_fcntl;
	sys.futimens = call_futimens;
	sys.close = call_close;
	sys.lseek = call_lseek;
}
