/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A library, to be preloaded behind libplfs: once the file $FAILING_WHEN exists, writes of files fail with
 * EIO, as those of a backend whose disk is gone. compile with: -shared -fPIC -ldl.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/*
 * Asked of the C library: libplfs, in front, may be in the middle of something. By statx(), since glibc
 * before 2.33 has no function fstat().
 */
static int fails(int fd)
{
	const char *when = getenv("FAILING_WHEN");
	int saved = errno;
	struct statx st;
	int yes = when && !REAL(statx)(fd, "", AT_EMPTY_PATH, STATX_TYPE, &st) && S_ISREG(st.stx_mode) &&
		  !REAL(access)(when, F_OK);

	errno = yes ? EIO : saved;
	return yes;
}

ssize_t write(int fd, const void *buf, size_t len) { return fails(fd) ? -1 : REAL(write)(fd, buf, len); }
ssize_t pwrite(int fd, const void *buf, size_t len, off_t off)
{
	return fails(fd) ? -1 : REAL(pwrite)(fd, buf, len, off);
}
ssize_t pwrite64(int fd, const void *buf, size_t len, off_t off)
{
	return fails(fd) ? -1 : REAL(pwrite)(fd, buf, len, off);
}
ssize_t writev(int fd, const struct iovec *iov, int cnt)
{
	return fails(fd) ? -1 : REAL(writev)(fd, iov, cnt);
}
int fsync(int fd) { return fails(fd) ? -1 : REAL(fsync)(fd); }
int fdatasync(int fd) { return fails(fd) ? -1 : REAL(fdatasync)(fd); }
