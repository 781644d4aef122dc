/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The list of libc functions in the sys table, by family. A function that this libc does
 * not have leaves its member NULL; the ones that may be are marked.
 */
#ifndef PLFS_SYS_CALLS_H
#define PLFS_SYS_CALLS_H

#include <aio.h>
#include <dlfcn.h>
#include <fts.h>
#include <ftw.h>
#include <glob.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <termios.h>
#include <wchar.h>
#include <wordexp.h>

#define SYS_CALLS(X) \
	/* open and close */ \
	X(int, open, (const char *path, int flags, ...)) \
	X(int, openat, (int dirfd, const char *path, int flags, ...)) \
	X(int, creat, (const char *path, mode_t mode)) \
	X(int, mkstemp, (char *name)) \
	X(int, mkostemp, (char *name, int flags)) \
	X(int, mkstemps, (char *name, int suffix_len)) \
	X(int, mkostemps, (char *name, int suffix_len, int flags)) \
	X(char *, mkdtemp, (char *name)) \
	X(char *, mktemp, (char *name)) \
	X(char *, tempnam, (const char *dir, const char *prefix)) \
	X(int, close, (int fd)) \
	X(int, close_range, (unsigned first, unsigned last, int flags)) /* glibc 2.34 */ \
	X(void, closefrom, (int first))					/* glibc 2.34 */ \
	/* data */ \
	X(ssize_t, read, (int fd, void *buf, size_t len)) \
	X(ssize_t, write, (int fd, const void *buf, size_t len)) \
	X(ssize_t, pread, (int fd, void *buf, size_t len, off_t off)) \
	X(ssize_t, pwrite, (int fd, const void *buf, size_t len, off_t off)) \
	X(ssize_t, readv, (int fd, const struct iovec *iov, int cnt)) \
	X(ssize_t, writev, (int fd, const struct iovec *iov, int cnt)) \
	X(ssize_t, preadv, (int fd, const struct iovec *iov, int cnt, off_t off)) \
	X(ssize_t, pwritev, (int fd, const struct iovec *iov, int cnt, off_t off)) \
	X(ssize_t, preadv2, (int fd, const struct iovec *iov, int cnt, off_t off, int flags)) \
	X(ssize_t, pwritev2, (int fd, const struct iovec *iov, int cnt, off_t off, int flags)) \
	X(off_t, lseek, (int fd, off_t off, int whence)) \
	/* size and persistence */ \
	X(int, truncate, (const char *path, off_t len)) \
	X(int, ftruncate, (int fd, off_t len)) \
	X(int, fallocate, (int fd, int mode, off_t off, off_t len)) \
	X(int, posix_fallocate, (int fd, off_t off, off_t len)) \
	X(int, posix_fadvise, (int fd, off_t off, off_t len, int advice)) \
	X(ssize_t, readahead, (int fd, off_t off, size_t len)) \
	X(int, fsync, (int fd)) \
	X(int, fdatasync, (int fd)) \
	X(void, sync, (void)) \
	X(int, syncfs, (int fd)) \
	X(int, sync_file_range, (int fd, off_t off, off_t len, unsigned flags)) \
	/* metadata */ \
	X(int, fstat, (int fd, struct stat *st)) \
	X(int, stat, (const char *path, struct stat *st)) \
	X(int, lstat, (const char *path, struct stat *st)) \
	X(int, fstatat, (int dirfd, const char *path, struct stat *st, int flags)) \
	X(int, statx, (int dirfd, const char *path, int flags, unsigned mask, struct statx *stx)) \
	X(int, access, (const char *path, int mode)) \
	X(int, faccessat, (int dirfd, const char *path, int mode, int flags)) \
	X(int, euidaccess, (const char *path, int mode)) \
	X(int, chmod, (const char *path, mode_t mode)) \
	X(int, fchmod, (int fd, mode_t mode)) \
	X(int, fchmodat, (int dirfd, const char *path, mode_t mode, int flags)) \
	X(int, lchmod, (const char *path, mode_t mode)) \
	X(int, chown, (const char *path, uid_t uid, gid_t gid)) \
	X(int, lchown, (const char *path, uid_t uid, gid_t gid)) \
	X(int, fchown, (int fd, uid_t uid, gid_t gid)) \
	X(int, setuid, (uid_t uid)) \
	X(int, setreuid, (uid_t uid, uid_t euid)) \
	X(int, setresuid, (uid_t uid, uid_t euid, uid_t suid)) \
	X(int, fchownat, (int dirfd, const char *path, uid_t uid, gid_t gid, int flags)) \
	X(int, utime, (const char *path, const struct utimbuf *times)) \
	X(int, utimes, (const char *path, const struct timeval tv[2])) \
	X(int, lutimes, (const char *path, const struct timeval tv[2])) \
	X(int, futimes, (int fd, const struct timeval tv[2])) \
	X(int, futimesat, (int dirfd, const char *path, const struct timeval tv[2])) \
	X(int, futimens, (int fd, const struct timespec ts[2])) \
	X(int, utimensat, (int dirfd, const char *path, const struct timespec ts[2], int flags)) \
	X(int, statfs, (const char *path, struct statfs *buf)) \
	X(int, fstatfs, (int fd, struct statfs *buf)) \
	X(int, fstatvfs, (int fd, struct statvfs *buf)) \
	X(long, fpathconf, (int fd, int name)) \
	X(int, statvfs, (const char *path, struct statvfs *buf)) \
	X(long, pathconf, (const char *path, int name)) \
	X(ssize_t, getxattr, (const char *path, const char *name, void *value, size_t len)) \
	X(ssize_t, lgetxattr, (const char *path, const char *name, void *value, size_t len)) \
	X(int, setxattr, (const char *path, const char *name, const void *value, size_t len, int flags)) \
	X(int, lsetxattr, (const char *path, const char *name, const void *value, size_t len, int flags)) \
	X(ssize_t, listxattr, (const char *path, char *list, size_t len)) \
	X(ssize_t, llistxattr, (const char *path, char *list, size_t len)) \
	X(int, removexattr, (const char *path, const char *name)) \
	X(int, lremovexattr, (const char *path, const char *name)) \
	X(ssize_t, flistxattr, (int fd, char *list, size_t len)) \
	X(ssize_t, fgetxattr, (int fd, const char *name, void *value, size_t len)) \
	X(int, fremovexattr, (int fd, const char *name)) \
	X(int, fsetxattr, (int fd, const char *name, const void *value, size_t len, int flags)) \
	X(int, name_to_handle_at, \
	  (int dirfd, const char *path, struct file_handle *handle, int *mount_id, int flags)) \
	X(int, open_by_handle_at, (int mount_fd, struct file_handle *handle, int flags)) \
	X(int, inotify_add_watch, (int fd, const char *path, uint32_t mask)) \
	X(int, fanotify_mark, (int fd, unsigned flags, uint64_t mask, int dirfd, const char *path)) \
	X(key_t, ftok, (const char *path, int id)) \
	X(int, pidfd_getfd, (int pidfd, int fd, unsigned flags)) /* glibc 2.36 */ \
	/* the namespace */ \
	X(int, unlink, (const char *path)) \
	X(int, unlinkat, (int dirfd, const char *path, int flags)) \
	X(int, remove, (const char *path)) \
	X(int, rename, (const char *from, const char *to)) \
	X(int, renameat, (int fromfd, const char *from, int tofd, const char *to)) \
	X(int, renameat2, (int fromfd, const char *from, int tofd, const char *to, unsigned flags)) \
	X(int, link, (const char *from, const char *to)) \
	X(int, linkat, (int fromfd, const char *from, int tofd, const char *to, int flags)) \
	X(int, symlink, (const char *target, const char *path)) \
	X(int, symlinkat, (const char *target, int dirfd, const char *path)) \
	X(ssize_t, readlink, (const char *path, char *buf, size_t len)) \
	X(ssize_t, readlinkat, (int dirfd, const char *path, char *buf, size_t len)) \
	X(char *, realpath, (const char *path, char *resolved)) \
	X(int, mkdir, (const char *path, mode_t mode)) \
	X(int, mkdirat, (int dirfd, const char *path, mode_t mode)) \
	X(int, rmdir, (const char *path)) \
	X(int, mknod, (const char *path, mode_t mode, dev_t dev)) \
	X(int, mknodat, (int dirfd, const char *path, mode_t mode, dev_t dev)) \
	X(int, mkfifo, (const char *path, mode_t mode)) \
	X(int, mkfifoat, (int dirfd, const char *path, mode_t mode)) \
	/* directories */ \
	X(DIR *, opendir, (const char *path)) \
	X(DIR *, fdopendir, (int fd)) \
	X(int, closedir, (DIR * dir)) \
	X(struct dirent *, readdir, (DIR * dir)) \
	X(int, readdir_r, (DIR * dir, struct dirent * entry, struct dirent * *result)) \
	X(int, dirfd, (DIR * dir)) \
	X(ssize_t, getdents64, (int fd, void *buf, size_t len)) /* glibc 2.30 */ \
	X(int, scandirat, \
	  (int dirfd, const char *path, struct dirent ***list, int (*filter)(const struct dirent *), \
	   int (*compar)(const struct dirent **, const struct dirent **))) \
	X(int, ftw, (const char *path, __ftw_func_t fn, int nr_fds)) \
	X(int, nftw, (const char *path, __nftw_func_t fn, int nr_fds, int flags)) \
	X(FTS *, fts_open, \
	  (char *const *paths, int options, int (*compar)(const FTSENT **, const FTSENT **))) \
	X(FTSENT *, fts_read, (FTS * fts)) \
	X(FTSENT *, fts_children, (FTS * fts, int instr)) \
	X(int, fts_set, (FTS * fts, FTSENT * entry, int instr)) \
	X(int, fts_close, (FTS * fts)) \
	X(int, glob, (const char *pattern, int flags, int (*errfunc)(const char *, int), glob_t *out)) \
	X(int, wordexp, (const char *words, wordexp_t *we, int flags)) \
	/* the current directory */ \
	X(int, chdir, (const char *path)) \
	X(int, fchdir, (int fd)) \
	X(int, chroot, (const char *path)) \
	X(char *, getcwd, (char *buf, size_t len)) \
	X(char *, get_current_dir_name, (void)) \
	/* descriptors and locks */ \
	X(int, dup, (int fd)) \
	X(int, dup2, (int from, int to)) \
	X(int, dup3, (int from, int to, int flags)) \
	X(int, fcntl, (int fd, int cmd, ...)) \
	X(int, ioctl, (int fd, unsigned long request, ...)) \
	X(int, flock, (int fd, int op)) \
	X(int, poll, (struct pollfd * fds, nfds_t nr, int timeout_ms)) \
	X(int, ppoll, \
	  (struct pollfd * fds, nfds_t nr, const struct timespec *timeout, const sigset_t *mask)) \
	X(int, select, (int nr, fd_set *in, fd_set *out, fd_set *except, struct timeval *timeout)) \
	X(int, pselect, \
	  (int nr, fd_set *in, fd_set *out, fd_set *except, const struct timespec *timeout, \
	   const sigset_t *mask)) \
	X(int, epoll_ctl, (int epfd, int op, int fd, struct epoll_event *event)) \
	X(int, lockf, (int fd, int cmd, off_t len)) \
	/* memory */ \
	X(int, remap_file_pages, (void *addr, size_t len, int prot, size_t page, int flags)) \
	X(void *, mmap, (void *addr, size_t len, int prot, int flags, int fd, off_t off)) \
	X(int, munmap, (void *addr, size_t len)) \
	/* between descriptors */ \
	X(ssize_t, sendfile, (int out, int in, off_t *off, size_t len)) \
	X(ssize_t, copy_file_range, \
	  (int in, off_t *in_off, int out, off_t *out_off, size_t len, unsigned flags)) \
	X(ssize_t, splice, (int in, off_t *in_off, int out, off_t *out_off, size_t len, unsigned flags)) \
	X(ssize_t, tee, (int in, int out, size_t len, unsigned flags)) \
	/* asynchronous I/O */ \
	X(int, aio_read, (struct aiocb * cb)) \
	X(int, aio_write, (struct aiocb * cb)) \
	X(int, aio_fsync, (int op, struct aiocb *cb)) \
	X(int, lio_listio, (int mode, struct aiocb *const list[], int nr, struct sigevent *event)) \
	/* streams */ \
	X(FILE *, fopen, (const char *path, const char *mode)) \
	X(FILE *, fdopen, (int fd, const char *mode)) \
	X(FILE *, freopen, (const char *path, const char *mode, FILE *stream)) \
	X(FILE *, fopencookie, (void *cookie, const char *mode, cookie_io_functions_t funcs)) \
	X(int, fclose, (FILE * stream)) \
	X(int, vdprintf, (int fd, const char *format, va_list ap)) \
	X(int, __vdprintf_chk, (int fd, int flag, const char *format, va_list ap)) \
	X(FILE *, setmntent, (const char *path, const char *mode)) \
	X(void, backtrace_symbols_fd, (void *const *buf, int nr, int fd)) \
	X(int, fflush, (FILE * stream)) \
	X(wint_t, fgetwc, (FILE * stream)) \
	X(wchar_t *, fgetws, (wchar_t * s, int n, FILE *stream)) \
	X(wint_t, fputwc, (wchar_t wc, FILE * stream)) \
	X(int, fputws, (const wchar_t *s, FILE *stream)) \
	X(wint_t, ungetwc, (wint_t wc, FILE * stream)) \
	X(int, fwide, (FILE * stream, int mode)) \
	X(int, vfwprintf, (FILE * stream, const wchar_t *format, va_list ap)) \
	X(int, __vfwprintf_chk, (FILE * stream, int flag, const wchar_t *format, va_list ap)) \
	X(int, vfwscanf, (FILE * stream, const wchar_t *format, va_list ap)) \
	X(int, __isoc99_vfwscanf, (FILE * stream, const wchar_t *format, va_list ap)) \
	X(int, __isoc23_vfwscanf, (FILE * stream, const wchar_t *format, va_list ap)) /* glibc 2.38 */ \
	/* processes */ \
	X(pid_t, fork, (void)) \
	X(pid_t, _Fork, (void)) /* glibc 2.34 */ \
	X(int, clone, (int (*fn)(void *), void *stack, int flags, void *arg, ...)) \
	X(int, execve, (const char *path, char *const argv[], char *const envp[])) \
	X(int, execvpe, (const char *file, char *const argv[], char *const envp[])) \
	X(int, fexecve, (int fd, char *const argv[], char *const envp[])) \
	X(int, execveat, \
	  (int dirfd, const char *path, char *const argv[], char *const envp[], int flags)) /* 2.34 */ \
	X(int, posix_spawn, \
	  (pid_t * pid, const char *path, const posix_spawn_file_actions_t *actions, \
	   const posix_spawnattr_t *attr, char *const argv[], char *const envp[])) \
	X(int, posix_spawnp, \
	  (pid_t * pid, const char *file, const posix_spawn_file_actions_t *actions, \
	   const posix_spawnattr_t *attr, char *const argv[], char *const envp[])) \
	X(int, pidfd_spawn, \
	  (int *pidfd, const char *path, const posix_spawn_file_actions_t *actions, \
	   const posix_spawnattr_t *attr, char *const argv[], char *const envp[])) /* glibc 2.39 */ \
	X(int, pidfd_spawnp, \
	  (int *pidfd, const char *file, const posix_spawn_file_actions_t *actions, \
	   const posix_spawnattr_t *attr, char *const argv[], char *const envp[])) /* also */ \
	X(int, posix_spawn_file_actions_init, (posix_spawn_file_actions_t * actions)) \
	X(int, posix_spawn_file_actions_destroy, (posix_spawn_file_actions_t * actions)) \
	X(int, posix_spawn_file_actions_addopen, \
	  (posix_spawn_file_actions_t * actions, int fd, const char *path, int flags, mode_t mode)) \
	X(int, posix_spawn_file_actions_addclose, (posix_spawn_file_actions_t * actions, int fd)) \
	X(int, posix_spawn_file_actions_adddup2, (posix_spawn_file_actions_t * actions, int fd, int to)) \
	X(int, posix_spawn_file_actions_addchdir_np, \
	  (posix_spawn_file_actions_t * actions, const char *path)) \
	X(int, posix_spawn_file_actions_addfchdir_np, (posix_spawn_file_actions_t * actions, int fd)) \
	X(int, posix_spawn_file_actions_addclosefrom_np, \
	  (posix_spawn_file_actions_t * actions, int fd)) /* 2.34 */ \
	X(int, posix_spawn_file_actions_addtcsetpgrp_np, \
	  (posix_spawn_file_actions_t * actions, int fd)) /* 2.35 */ \
	X(void *, dlopen, (const char *name, int flags)) \
	X(void *, dlmopen, (Lmid_t ns, const char *name, int flags)) \
	X(int, system, (const char *command)) \
	X(FILE *, popen, (const char *command, const char *type)) \
	X(int, pclose, (FILE * stream)) \
	X(pid_t, wait, (int *status)) \
	X(pid_t, waitpid, (pid_t pid, int *status, int options)) \
	X(pid_t, wait3, (int *status, int options, struct rusage *usage)) \
	X(pid_t, wait4, (pid_t pid, int *status, int options, struct rusage *usage)) \
	X(int, waitid, (idtype_t type, id_t id, siginfo_t * info, int options)) \
	X(int, daemon, (int nochdir, int noclose)) \
	X(int, login_tty, (int fd)) /* before glibc 2.34 in libutil, which need not be loaded */ \
	X(pid_t, forkpty, \
	  (int *master, char *name, const struct termios *termp, const struct winsize *winp)) /* also */ \
	X(void, _exit, (int status)) \
	X(void, quick_exit, (int status)) \
	/* sockets */ \
	X(int, bind, (int sock, const struct sockaddr *addr, socklen_t len)) \
	X(int, connect, (int sock, const struct sockaddr *addr, socklen_t len)) \
	X(int, accept, (int sock, struct sockaddr *addr, socklen_t *len)) \
	X(int, accept4, (int sock, struct sockaddr *addr, socklen_t *len, int flags)) \
	X(int, getsockname, (int sock, struct sockaddr *addr, socklen_t *len)) \
	X(int, getpeername, (int sock, struct sockaddr *addr, socklen_t *len)) \
	X(ssize_t, sendto, \
	  (int sock, const void *data, size_t size, int flags, const struct sockaddr *addr, socklen_t len)) \
	X(ssize_t, recvfrom, \
	  (int sock, void *data, size_t size, int flags, struct sockaddr *addr, socklen_t *len)) \
	X(ssize_t, sendmsg, (int sock, const struct msghdr *msg, int flags)) \
	X(ssize_t, recvmsg, (int sock, struct msghdr *msg, int flags)) \
	X(int, sendmmsg, (int sock, struct mmsghdr *msgs, unsigned nr, int flags)) \
	X(int, recvmmsg, (int sock, struct mmsghdr *msgs, unsigned nr, int flags, struct timespec *timeout)) \
	/* signals */ \
	X(int, sigaction, (int sig, const struct sigaction *act, struct sigaction *old)) \
	X(int, siginterrupt, (int sig, int interrupts)) \
	X(int, sigprocmask, (int how, const sigset_t *set, sigset_t *old)) \
	/* the rest that the library itself calls */ \
	X(pid_t, getpid, (void)) \
	X(long, syscall, (long nr, ...)) \
	X(int, gethostname, (char *buf, size_t len)) \
	X(int, clock_gettime, (clockid_t clock, struct timespec * ts)) \
	X(int, nanosleep, (const struct timespec *want, struct timespec *left)) \
	X(int, getrlimit, (int what, struct rlimit *lim)) \
	X(ssize_t, getrandom, (void *buf, size_t len, unsigned flags)) \
	X(int, memfd_create, (const char *name, unsigned flags))

#endif
