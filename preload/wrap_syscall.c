/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * syscall(): system calls by number. Those that name a file or a descriptor go to the function of the same
 * name here, the rest to the kernel.
 */
#include "bynumber.h"
#include "fdtable.h"
#include "ids.h"
#include "path.h"

#include <sched.h>
#include <sys/epoll.h>
#include <sys/fanotify.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#define P(arg) ((void *)(arg))
/* Which old headers lack; on all machines. */
#define SYS_LANDLOCK 444 /* landlock_create_ruleset(2) */
#define SYS_FCHMODAT2 452

#if defined(__has_attribute)
#if __has_attribute(musttail)
#define JUMP __attribute__((musttail))
#endif
#endif
#ifndef JUMP /* gcc before 15 does it unasked */
#define JUMP
#endif

/*
 * There are six arguments at most. On the machines that we run on a variadic function finds them, and leaves
 * them, at the same places. (Where the last one comes by the stack and the caller has passed fewer, its place
 * is something of the caller's: to be read, but not to be written, not even with what was there.)
 */
typedef long syscall_fn(long nr, long a, long b, long c, long d, long e, long f);

/* Whether the child has its own memory, and returns. With a stack of its own it cannot come back to us. */
static bool is_fork(unsigned long flags, unsigned long stack) { return !(flags & CLONE_VM) && !stack; }

/* The first form of struct clone_args, which headers before Linux 5.3 do not have. */
struct clone3_args {
	uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls;
};

static bool is_fork3(const struct clone3_args *args, size_t size)
{
	return args && size >= sizeof(*args) && is_fork(args->flags, args->stack);
}

/*
 * It gets descriptors of its own (wrap_clone.c). A longer form than this one is of a kernel to come. Not part
 * of by_number(), which may have no frame.
 */
static __attribute__((noinline)) long fork3(const void *args, size_t size)
{
	union {
		struct clone3_args args;
		char room[128];
	} own;

	if (size > sizeof(own))
		return done(-E2BIG);
	memcpy(&own, args, size);
	own.args.flags &= ~(uint64_t)CLONE_FILES;
	return bynumber_fork(SYS_clone3, (long)&own, (long)size, 0, 0, 0);
}

/* For a function that returns its error. */
static long returned_error(int err) { return done(-err); }

static long mapped_syscall(long nr, long a, long b, long c, long d, long e, long f)
{
	switch (nr) {
	/* ---- data ---- */
	case SYS_read:
		return read(a, P(b), c);
	case SYS_write:
		return write(a, P(b), c);
	case SYS_pread64:
		return pread(a, P(b), c, d);
	case SYS_pwrite64:
		return pwrite(a, P(b), c, d);
	case SYS_readv:
		return readv(a, P(b), c);
	case SYS_writev:
		return writev(a, P(b), c);
	case SYS_preadv: /* the offset's upper half, e, is for small machines */
		return preadv(a, P(b), c, d);
	case SYS_pwritev:
		return pwritev(a, P(b), c, d);
	case SYS_preadv2:
		return preadv2(a, P(b), c, d, f);
	case SYS_pwritev2:
		return pwritev2(a, P(b), c, d, f);
	case SYS_lseek:
		return lseek(a, b, c);
	case SYS_truncate:
		return truncate(P(a), b);
	case SYS_ftruncate:
		return ftruncate(a, b);
	case SYS_fallocate:
		return fallocate(a, b, c, d);
	case SYS_fadvise64:
		return returned_error(posix_fadvise(a, b, c, d));
	case SYS_readahead:
		return readahead(a, b, c);
	case SYS_fsync:
		return fsync(a);
	case SYS_fdatasync:
		return fdatasync(a);
	case SYS_sync_file_range:
		return sync_file_range(a, b, c, d);
	case SYS_syncfs:
		return syncfs(a);
	case SYS_sync:
		sync();
		return 0;
	case SYS_remap_file_pages:
		return remap_file_pages((void *)a, b, c, d, e);
	case SYS_mmap: /* an allocator's mmap() ends here, and must not begin again */
		if (d & MAP_ANONYMOUS || !fd_is_ours((int)e) || mmap_is_passed((int)e))
			break;
		return bynumber_mmap(P(a), b, c, d, e, f);
	case SYS_sendfile:
		return sendfile(a, b, P(c), d);
	case SYS_copy_file_range:
		return copy_file_range(a, P(b), c, P(d), e, f);
	case SYS_splice:
		return splice(a, P(b), c, P(d), e, f);

	/* ---- descriptors ---- */
	case SYS_openat:
		return openat(a, P(b), c, (mode_t)d);
	case SYS_openat2:
		return bynumber_openat2(a, P(b), P(c), d);
	case SYS_open_by_handle_at:
		return open_by_handle_at(a, P(b), c);
	case SYS_close:
		return close(a);
	case SYS_close_range:
		return close_range(a, b, c);
	case SYS_dup:
		return dup(a);
	case SYS_dup3:
		return dup3(a, b, c);
	case SYS_fcntl:
		return fcntl(a, b, c);
	case SYS_ioctl:
		return ioctl(a, b, c);
	case SYS_epoll_ctl:
		return epoll_ctl(a, b, c, P(d));
	case SYS_ppoll:
		return bynumber_poll(nr, P(a), b, c, d, e);
	case SYS_pselect6:
		return bynumber_select(nr, a, P(b), P(c), d, e, f);
	case SYS_flock:
		return flock(a, b);
	case SYS_bind:
		return bind(a, P(b), c);
	case SYS_connect:
		return connect(a, P(b), c);
	case SYS_accept:
		return accept(a, P(b), P(c));
	case SYS_accept4:
		return accept4(a, P(b), P(c), d);
	case SYS_getsockname:
		return getsockname(a, P(b), P(c));
	case SYS_getpeername:
		return getpeername(a, P(b), P(c));
	case SYS_sendto:
		return sendto(a, P(b), c, d, P(e), f);
	case SYS_recvfrom:
		return recvfrom(a, P(b), c, d, P(e), P(f));
	case SYS_sendmsg:
		return sendmsg(a, P(b), c);
	case SYS_recvmsg:
		return recvmsg(a, P(b), c);
	case SYS_sendmmsg:
		return sendmmsg(a, P(b), c, d);
	case SYS_recvmmsg:
		return recvmmsg(a, P(b), c, d, P(e));
	case SYS_pidfd_getfd:
		return pidfd_getfd(a, b, c);

	/* ---- what the kernel tells of files ---- */
	case SYS_fstat:
		return fstat(a, P(b));
	case SYS_newfstatat:
		return fstatat(a, P(b), P(c), d);
	case SYS_statx:
		return statx(a, P(b), c, d, P(e));
	case SYS_statfs:
		return statfs(P(a), P(b));
	case SYS_fstatfs:
		return fstatfs(a, P(b));
	case SYS_faccessat:
		return faccessat(a, P(b), c, 0);
	case SYS_faccessat2:
		return faccessat(a, P(b), c, d);
	case SYS_getdents64:
		return bynumber_getdents(nr, a, P(b), c, offsetof(struct dirent64, d_name));
	case SYS_getcwd:
		return bynumber_getcwd(P(a), b);
	case SYS_chdir:
		return chdir(P(a));
	case SYS_fchdir:
		return fchdir(a);
	case SYS_chroot:
		return chroot(P(a));
	case SYS_name_to_handle_at:
		return name_to_handle_at(a, P(b), P(c), P(d), e);
	case SYS_inotify_add_watch:
		return inotify_add_watch(a, P(b), c);
	case SYS_fanotify_mark:
		return fanotify_mark(a, b, c, d, P(e));
	case SYS_getxattr:
		return getxattr(P(a), P(b), P(c), d);
	case SYS_lgetxattr:
		return lgetxattr(P(a), P(b), P(c), d);
	case SYS_setxattr:
		return setxattr(P(a), P(b), P(c), d, e);
	case SYS_lsetxattr:
		return lsetxattr(P(a), P(b), P(c), d, e);
	case SYS_fgetxattr:
		return fgetxattr(a, P(b), P(c), d);
	case SYS_fsetxattr:
		return fsetxattr(a, P(b), P(c), d, e);
	case SYS_flistxattr:
		return flistxattr(a, P(b), c);
	case SYS_fremovexattr:
		return fremovexattr(a, P(b));
	case SYS_listxattr:
		return listxattr(P(a), P(b), c);
	case SYS_llistxattr:
		return llistxattr(P(a), P(b), c);
	case SYS_removexattr:
		return removexattr(P(a), P(b));
	case SYS_lremovexattr:
		return lremovexattr(P(a), P(b));

	/* ---- names ---- */
	case SYS_unlinkat:
		return unlinkat(a, P(b), c);
#ifdef SYS_renameat
	case SYS_renameat:
		return renameat(a, P(b), c, P(d));
#endif
	case SYS_renameat2:
		return renameat2(a, P(b), c, P(d), e);
	case SYS_linkat:
		return linkat(a, P(b), c, P(d), e);
	case SYS_symlinkat:
		return symlinkat(P(a), b, P(c));
	case SYS_readlinkat:
		return readlinkat(a, P(b), P(c), (int)d);
	case SYS_mkdirat:
		return mkdirat(a, P(b), c);
	case SYS_mknodat:
		return mknodat(a, P(b), c, (dev_t)d);
	case SYS_fchmod:
		return fchmod(a, b);
	case SYS_fchmodat:
		return fchmodat(a, P(b), c, 0);
	case SYS_FCHMODAT2:
		return d & AT_EMPTY_PATH && b && !*(char *)P(b) ? fchmod(a, c) : fchmodat(a, P(b), c, d);
	case SYS_fchown:
		return fchown(a, b, c);
	case SYS_fchownat:
		return fchownat(a, P(b), c, d, e);
	case SYS_utimensat: /* the C library's takes no NULL */
		return b || d ? utimensat(a, P(b), P(c), d) : futimens(a, P(c));

	/* ---- processes ---- */
	case SYS_setuid: /* the C library's functions change all threads */
		ids_before_user((uid_t)a);
		break;
	case SYS_setreuid:
	case SYS_setresuid:
		ids_before_user((uid_t)b);
		break;
	case SYS_execve:
		return execve(P(a), P(b), P(c));
	case SYS_execveat:
		return execveat(a, P(b), P(c), P(d), e);
	case SYS_exit_group:
		_exit(a);
	case SYS_wait4:
		return wait4(a, P(b), c, P(d));
	case SYS_waitid: /* the C library's has no place for the usage, e */
		if (e)
			break;
		return waitid(a, b, P(c), d);
	case SYS_unshare:
		return unshare((int)a);
	case SYS_clone:
		if (!is_fork(a, b))
			break;
		return bynumber_fork(nr, a & ~CLONE_FILES, b, c, d, e);
	case SYS_clone3:
		if (!is_fork3(P(a), b))
			break;
		return fork3(P(a), b);
	case SYS_io_submit:
		return bynumber_io_submit(a, b, P(c));
	case SYS_io_uring_setup:
		return done(refused("io_uring_setup", ENOSYS));
	case SYS_LANDLOCK: /* as a kernel without it: the program would lock us out of our containers */
		return done(refused("landlock_create_ruleset", EOPNOTSUPP));

#ifdef SYS_open /* what newer machines do without */
	case SYS_open:
		return open(P(a), b, (mode_t)c);
	case SYS_creat:
		return creat(P(a), b);
	case SYS_poll:
		return bynumber_poll(nr, P(a), b, c, 0, 0);
	case SYS_select:
		return bynumber_select(nr, a, P(b), P(c), d, e, 0);
	case SYS_dup2:
		return dup2(a, b);
	case SYS_stat:
		return stat(P(a), P(b));
	case SYS_lstat:
		return lstat(P(a), P(b));
	case SYS_access:
		return access(P(a), b);
	case SYS_getdents: /* an inode number, an offset, a length; the name */
		return bynumber_getdents(nr, a, P(b), c, 18);
	case SYS_unlink:
		return unlink(P(a));
	case SYS_rename:
		return rename(P(a), P(b));
	case SYS_link:
		return link(P(a), P(b));
	case SYS_symlink:
		return symlink(P(a), P(b));
	case SYS_readlink:
		return readlink(P(a), P(b), (int)c);
	case SYS_mkdir:
		return mkdir(P(a), b);
	case SYS_rmdir:
		return rmdir(P(a));
	case SYS_mknod:
		return mknod(P(a), b, (dev_t)c);
	case SYS_chmod:
		return chmod(P(a), b);
	case SYS_chown:
		return chown(P(a), b, c);
	case SYS_lchown:
		return lchown(P(a), b, c);
	case SYS_utime:
		return utime(P(a), P(b));
	case SYS_utimes:
		return utimes(P(a), P(b));
	case SYS_futimesat:
		return futimesat(a, P(b), P(c));
	case SYS_fork:
	case SYS_vfork: /* as our vfork(): the child has memory of its own, which POSIX allows */
		return bynumber_fork(SYS_fork, 0, 0, 0, 0, 0);
#endif
	default:
		break;
	}
	return sys.syscall(nr, a, b, c, d, e, f);
}

/*
 * A child that has our memory too: it must not come back through a frame of ours, which its parent needs as
 * well.
 */
static bool shares_memory(long nr, long a)
{
	return (nr == SYS_clone && (a & CLONE_VM)) ||
	       (nr == SYS_clone3 && a && (((const struct clone3_args *)a)->flags & CLONE_VM));
}

static long by_number(long nr, long a, long b, long c, long d, long e, long f)
{
	bool on = shim_on();
	long ret;

	if (unlikely(shares_memory(nr, a)))
		JUMP return ((syscall_fn *)sys.syscall)(nr, a, b, c, d, e, f);
	ret = on ? mapped_syscall(nr, a, b, c, d, e, f) : sys.syscall(nr, a, b, c, d, e, f);
	__asm__ volatile("" : "+r"(ret)); /* no jump, which would write the arguments */
	return ret;
}
extern long syscall(long nr, ...) __attribute__((alias("by_number"), visibility("default")));
