/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A hook before every call of the sys table that changes or reads something, for the tests that let calls fail and
 * for those that kill the process at each of them in turn.
 */
#ifndef TEST_CALLS_H
#define TEST_CALLS_H

#include "../core/sys.h"

#include <signal.h>

enum call {
	CALL_OPENAT, CALL_OPEN, CALL_PWRITE, CALL_PREAD, CALL_FTRUNCATE, CALL_FALLOCATE, CALL_MMAP, CALL_MUNMAP, CALL_FSYNC,
	CALL_FDATASYNC, CALL_UNLINKAT, CALL_RENAMEAT, CALL_MKDIRAT, CALL_FCHMODAT, CALL_FSTAT, CALL_FSTATAT,
	CALL_GETDENTS, CALL_FCNTL, CALL_FUTIMENS, CALL_CLOSE, CALL_LSEEK, NR_CALLS
};

static const char *const CALL_NAMES[NR_CALLS] = {
	"openat", "open", "pwrite", "pread", "ftruncate", "fallocate", "mmap", "munmap", "fsync", "fdatasync", "unlinkat",
	"renameat", "mkdirat", "fchmodat", "fstat", "fstatat", "getdents64", "fcntl", "futimens", "close", "lseek",
};

#define CALL_SHORT (-1) /* pread, pwrite, pwritev: half of it */

/* 0: go on; an errno: fail with it; CALL_SHORT. */
static int (*on_call)(enum call call);

static struct sys_table real;

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
	return fails(CALL_OPENAT) ? -1 : real.openat(dirfd, path, flags, mode);
}

static int call_openat2(int dirfd, const char *path, struct open_how *how, size_t size)
{
	return fails(CALL_OPENAT) ? -1 : real.openat2(dirfd, path, how, size);
}

static int call_open(const char *path, int flags, ...)
{
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = mode_arg(flags, args);
	va_end(args);
	return fails(CALL_OPEN) ? -1 : real.open(path, flags, mode);
}

static size_t shortened(int err, size_t len)
{
	return err == CALL_SHORT && len > 1 ? len / 2 : len;
}

static ssize_t call_pwrite(int fd, const void *buf, size_t len, off_t off)
{
	int err = on_call ? on_call(CALL_PWRITE) : 0;

	errno = err > 0 ? err : errno;
	return err > 0 ? -1 : real.pwrite(fd, buf, shortened(err, len), off);
}

/* Short of half of it where a part of the first piece, or of the second, is in. */
static ssize_t call_pwritev(int fd, const struct iovec *iov, int cnt, off_t off)
{
	int err = on_call ? on_call(CALL_PWRITE) : 0;
	struct iovec cut[2];
	size_t len;

	errno = err > 0 ? err : errno;
	if (err >= 0 || cnt != 2)
		return err > 0 ? -1 : real.pwritev(fd, iov, cnt, off);
	len = shortened(err, iov[0].iov_len + iov[1].iov_len);
	cut[0] = (struct iovec){ iov[0].iov_base, len < iov[0].iov_len ? len : iov[0].iov_len };
	cut[1] = (struct iovec){ iov[1].iov_base, len - cut[0].iov_len };
	return real.pwritev(fd, cut, 2, off);
}

static ssize_t call_pread(int fd, void *buf, size_t len, off_t off)
{
	int err = on_call ? on_call(CALL_PREAD) : 0;

	errno = err > 0 ? err : errno;
	return err > 0 ? -1 : real.pread(fd, buf, shortened(err, len), off);
}

static ssize_t call_preadv(int fd, const struct iovec *iov, int cnt, off_t off)
{
	int err = on_call ? on_call(CALL_PREAD) : 0;

	errno = err > 0 ? err : errno;
	return err > 0 ? -1 : real.preadv(fd, iov, err && cnt > 1 ? cnt / 2 : cnt, off);
}

static int call_fcntl(int fd, int cmd, ...)
{
	va_list args;
	void *arg;

	va_start(args, cmd);
	arg = va_arg(args, void *);
	va_end(args);
	return fails(CALL_FCNTL) ? -1 : real.fcntl(fd, cmd, arg);
}

static void *call_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	if (flags & MAP_ANONYMOUS)
		return real.mmap(addr, len, prot, flags, fd, off);
	return fails(CALL_MMAP) ? MAP_FAILED : real.mmap(addr, len, prot, flags, fd, off);
}

static off_t call_lseek(int fd, off_t off, int whence)
{
	return fails(CALL_LSEEK) ? -1 : real.lseek(fd, off, whence);
}

static ssize_t call_getdents64(int fd, void *buf, size_t len)
{
	return fails(CALL_GETDENTS) ? -1 : real.getdents64(fd, buf, len);
}

static int call_ftruncate(int fd, off_t len) { return fails(CALL_FTRUNCATE) ? -1 : real.ftruncate(fd, len); }
static int call_fsync(int fd) { return fails(CALL_FSYNC) ? -1 : real.fsync(fd); }
static int call_fdatasync(int fd) { return fails(CALL_FDATASYNC) ? -1 : real.fdatasync(fd); }
static int call_fstat(int fd, struct stat *st) { return fails(CALL_FSTAT) ? -1 : real.fstat(fd, st); }

static int call_fallocate(int fd, int mode, off_t off, off_t len)
{
	return fails(CALL_FALLOCATE) ? -1 : real.fallocate(fd, mode, off, len);
}

/* A failing munmap() or close() has done its work all the same: only its place is of interest. */
static int call_munmap(void *addr, size_t len)
{
	fails(CALL_MUNMAP);
	return real.munmap(addr, len);
}

static int call_close(int fd)
{
	fails(CALL_CLOSE);
	return real.close(fd);
}

static int call_unlinkat(int dirfd, const char *path, int flags)
{
	return fails(CALL_UNLINKAT) ? -1 : real.unlinkat(dirfd, path, flags);
}

static int call_renameat(int fromfd, const char *from, int tofd, const char *to)
{
	return fails(CALL_RENAMEAT) ? -1 : real.renameat(fromfd, from, tofd, to);
}

static int call_mkdirat(int dirfd, const char *path, mode_t mode)
{
	return fails(CALL_MKDIRAT) ? -1 : real.mkdirat(dirfd, path, mode);
}

static int call_fchmodat(int dirfd, const char *path, mode_t mode, int flags)
{
	return fails(CALL_FCHMODAT) ? -1 : real.fchmodat(dirfd, path, mode, flags);
}

static int call_fstatat(int dirfd, const char *path, struct stat *st, int flags)
{
	return fails(CALL_FSTATAT) ? -1 : real.fstatat(dirfd, path, st, flags);
}

static int call_futimens(int fd, const struct timespec ts[2])
{
	return fails(CALL_FUTIMENS) ? -1 : real.futimens(fd, ts);
}

/* ---- hooks of processes that are to die ---- */

static long calls_left;

/* At the last of @calls_left calls. */
__attribute__((unused)) static int die_at_last(enum call call)
{
	(void)call;
	if (!--calls_left)
		kill(getpid(), SIGKILL);
	return 0;
}

/* In the middle of the last of @calls_left writes: the next would be the rest of it. */
__attribute__((unused)) static int die_in_last_write(enum call call)
{
	if (call != CALL_PWRITE)
		return 0;
	if (--calls_left < 0)
		kill(getpid(), SIGKILL);
	return calls_left ? 0 : CALL_SHORT;
}

/* From here on the hook is asked. sys_init() has been called. */
static void calls_intercept(void)
{
	real = sys;
	sys.openat = call_openat;
	sys.openat2 = call_openat2;
	sys.open = call_open;
	sys.pwrite = call_pwrite;
	sys.pwritev = call_pwritev;
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

#endif
