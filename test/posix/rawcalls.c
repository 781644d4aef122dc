/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * System calls by number, through syscall(): what they reach must be the file and not its stub.
 * Needs glibc 2.34: its numbers of close_range, faccessat2 and openat2.
 */
#include "posix.h"
#include <limits.h>
#include <linux/openat2.h>
#include <mntent.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/xattr.h>

static const char text[] = "0123456789abcdefghijklmnopqrstuvwxyz";

static int given(const char *name)
{
	make(name, text);
	return rw(name);
}

static void say_stat(const struct stat *st)
{
	say("%ld bytes, mode %o, %ld links\n", (long)st->st_size, st->st_mode, (long)st->st_nlink);
}

CASE(data_by_number)
{
	char buf[64] = "";
	int fd = T(syscall(SYS_openat, AT_FDCWD, at("f"), O_RDWR | O_CREAT | O_EXCL, 0640)), other;
	struct iovec iov[2] = {{buf, 3}, {buf + 10, 4}}, out[2] = {{"abc", 3}, {"defgh", 5}};
	struct stat st;
	struct statx stx;
	loff_t off = 2, to = 30;

	T(syscall(SYS_write, fd, text, 36L));
	T(syscall(SYS_lseek, fd, -30L, SEEK_END));
	T(syscall(SYS_read, fd, buf, 5L));
	say("%s\n", buf);
	T(syscall(SYS_pread64, fd, buf, 6L, 20L));
	say("%s\n", buf);
	T(syscall(SYS_pwrite64, fd, "XYZ", 3L, 40L));
	T(syscall(SYS_readv, fd, iov, 2));
	say("%s %s\n", buf, buf + 10);
	T(syscall(SYS_writev, fd, out, 2));
	T(syscall(SYS_preadv, fd, iov, 2, 5L, 0L));
	say("%s %s\n", buf, buf + 10);
	T(syscall(SYS_pwritev, fd, out, 2, 50L, 0L));
	T(syscall(SYS_preadv2, fd, iov, 2, 7L, 0L, 0));
	T(syscall(SYS_preadv2, fd, iov, 2, -1L, -1L, 0));
	say("%s %s, at %ld\n", buf, buf + 10, (long)syscall(SYS_lseek, fd, 0L, SEEK_CUR));
	T(syscall(SYS_pwritev2, fd, out, 2, 60L, 0L, RWF_SYNC));
	T(syscall(SYS_copy_file_range, fd, &off, fd, &to, 5L, 0));
	T(syscall(SYS_sendfile, fd, fd, &off, 3L));
	T(syscall(SYS_fstat, fd, &st));
	say_stat(&st);
	T(syscall(SYS_newfstatat, AT_FDCWD, at("f"), &st, 0));
	say_stat(&st);
	T(syscall(SYS_newfstatat, fd, "", &st, AT_EMPTY_PATH));
	say_stat(&st);
	T(syscall(SYS_statx, AT_FDCWD, at("f"), 0, STATX_BASIC_STATS, &stx));
	say("%ld bytes, mode %o\n", (long)stx.stx_size, stx.stx_mode);
	T(syscall(SYS_ftruncate, fd, 55L));
	T(syscall(SYS_fallocate, fd, 0, 50L, 20L));
	T(syscall(SYS_fsync, fd));
	T(syscall(SYS_fdatasync, fd));
	T(syscall(SYS_sync_file_range, fd, 0L, 10L, 0));
	T(syscall(SYS_fadvise64, fd, 0L, 10L, 99));
	T(syscall(SYS_fadvise64, fd, 0L, 10L, POSIX_FADV_DONTNEED));
	T(syscall(SYS_fcntl, fd, F_GETFL) & (O_ACCMODE | O_APPEND));
	T(syscall(SYS_flock, fd, LOCK_EX));
	other = T(syscall(SYS_dup, fd)) < 0;
	T(other);
	other = syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 100);
	T(syscall(SYS_dup3, fd, other, O_CLOEXEC) - other);
	T(syscall(SYS_lseek, other, 4L, SEEK_SET));
	T(syscall(SYS_read, fd, buf, 3L));
	say("%s\n", buf);
	T(syscall(SYS_close, other));
	T(syscall(SYS_read, other, buf, 3L));
	T(syscall(SYS_close_range, fd, fd, 0));
	T(syscall(SYS_read, fd, buf, 3L));
	T(syscall(SYS_truncate, at("f"), 58L));
	show("f");
}

#ifdef SYS_open
CASE(old_calls_by_number)
{
	struct timeval tv[2] = {{1000, 0}, {2000, 0}};
	struct stat st;
	char buf[64] = "";
	int fd = T(syscall(SYS_creat, at("f"), 0600));

	T(syscall(SYS_write, fd, text, 36L));
	T(syscall(SYS_dup2, fd, 100));
	T(syscall(SYS_close, fd));
	T(syscall(SYS_write, 100, "more", 4L));
	fd = T(syscall(SYS_open, at("f"), O_RDONLY));
	T(syscall(SYS_read, fd, buf, 63L));
	say("%s\n", buf);
	T(syscall(SYS_stat, at("f"), &st));
	say_stat(&st);
	T(syscall(SYS_chmod, at("f"), 0640));
	T(syscall(SYS_chown, at("f"), -1, -1));
	T(syscall(SYS_access, at("f"), R_OK));
	T(syscall(SYS_link, at("f"), at("g")));
	T(syscall(SYS_symlink, "f", at("l")));
	T(syscall(SYS_lchown, at("l"), -1, -1));
	T(syscall(SYS_lstat, at("l"), &st));
	T(syscall(SYS_readlink, at("l"), buf, 63L));
	T(syscall(SYS_utimes, at("f"), tv));
	T(syscall(SYS_stat, at("l"), &st));
	say_stat(&st);
	say("%ld\n", (long)st.st_mtime);
	T(syscall(SYS_rename, at("f"), at("h")));
	T(syscall(SYS_mkdir, at("d"), 0700));
	T(syscall(SYS_rmdir, at("d")));
	T(syscall(SYS_unlink, at("g")));
	T(syscall(SYS_unlink, at("nothing")));
	show("h");
}

CASE(a_child_by_the_number_of_fork)
{
	int fd = given("f");
	pid_t pid;

	T(write(fd, "parent", 6));
	pid = syscall(SYS_fork);
	if (pid == 0) {
		write(fd, "child", 5);
		pwrite(fd, "C", 1, 30);
		_exit(0);
	}
	say_child(pid);
	T(write(fd, "again", 5));
	show("f");
}
#endif

CASE(names_by_number)
{
	struct timespec ts[2] = {{1000, 0}, {2000, 0}};
	struct statfs sfs;
	struct stat st;
	char buf[64] = "";
	int dir, fd = given("f");

	T(syscall(SYS_faccessat, AT_FDCWD, at("f"), R_OK));
	T(syscall(SYS_faccessat2, AT_FDCWD, at("f"), R_OK, AT_EACCESS));
	T(syscall(SYS_faccessat, AT_FDCWD, at("g"), R_OK));
	T(syscall(SYS_fchmodat, AT_FDCWD, at("f"), 0600));
	if (syscall(452 /* fchmodat2, of Linux 6.6 */, AT_FDCWD, at("f"), 0620, 0) && errno == ENOSYS)
		T(chmod(at("f"), 0620));
	T(stat(at("f"), &st));
	say_stat(&st);
	T(syscall(SYS_fchmod, fd, 0604));
	T(syscall(SYS_fchownat, AT_FDCWD, at("f"), -1, -1, 0));
	T(syscall(SYS_fchown, fd, -1, -1));
	T(syscall(SYS_linkat, AT_FDCWD, at("f"), AT_FDCWD, at("g"), 0));
	T(syscall(SYS_symlinkat, "f", AT_FDCWD, at("l")));
	T(syscall(SYS_readlinkat, AT_FDCWD, at("l"), buf, 63L));
	say("%s\n", buf);
	T(syscall(SYS_utimensat, AT_FDCWD, at("f"), ts, 0));
	ts[1].tv_sec = 3000;
	T(syscall(SYS_utimensat, fd, NULL, ts, 0));
	fstat(fd, &st);
	say_stat(&st);
	say("%ld\n", (long)st.st_mtime);
	T(syscall(SYS_mkdirat, AT_FDCWD, at("d"), 0755));
	T(syscall(SYS_renameat2, AT_FDCWD, at("g"), AT_FDCWD, at("d/g"), RENAME_NOREPLACE));
	T(syscall(SYS_mknodat, AT_FDCWD, at("fifo"), S_IFIFO | 0600, 0));
	T(syscall(SYS_statfs, at("d"), &sfs));
	T(syscall(SYS_fstatfs, fd, &sfs));
	T(syscall(SYS_setxattr, at("f"), "user.a", "value", 5L, 0));
	T(syscall(SYS_getxattr, at("f"), "user.a", buf, 63L));
	T(syscall(SYS_listxattr, at("f"), buf, 63L));
	T(syscall(SYS_removexattr, at("f"), "user.a"));
	dir = syscall(SYS_openat, AT_FDCWD, at("d"), O_RDONLY | O_DIRECTORY);
	fd = syscall(SYS_openat, dir, "g", O_RDONLY);
	T(syscall(SYS_read, fd, buf, 10L));
	T(syscall(SYS_unlinkat, dir, "g", 0));
	T(syscall(SYS_unlinkat, AT_FDCWD, at("d"), AT_REMOVEDIR));
	T(syscall(SYS_unlinkat, AT_FDCWD, at("fifo"), 0));
	T(syscall(SYS_openat, AT_FDCWD, at("f"), O_RDWR | O_CREAT | O_EXCL, 0600));
	show("f");
}

CASE(the_working_directory_by_number)
{
	char buf[PATH_MAX], cwd[PATH_MAX];
	int fd;

	T(mkdir(at("d"), 0755));
	T(syscall(SYS_chdir, at("d")));
	fd = syscall(SYS_openat, AT_FDCWD, "f", O_WRONLY | O_CREAT, 0644);
	T(write(fd, "here", 4));
	getcwd(cwd, sizeof cwd);
	V(syscall(SYS_getcwd, buf, sizeof buf) - (long)strlen(cwd));
	V(strcmp(buf, cwd));
	T(syscall(SYS_getcwd, buf, strlen(cwd)));
	T(syscall(SYS_getcwd, NULL, sizeof buf));
	fd = open("/", O_RDONLY);
	T(syscall(SYS_fchdir, fd));
	T(syscall(SYS_getcwd, buf, sizeof buf));
	say("%s\n", buf);
}

static int compare_names(const void *a, const void *b) { return strcmp(a, b); }

static void list(long number, int name_at)
{
	char names[32][64], buf[4096];
	long n, i, nr = 0;
	int fd = open(at(""), O_RDONLY | O_DIRECTORY);

	while ((n = syscall(number, fd, buf, sizeof buf)) > 0)
		for (i = 0; i < n; i += *(unsigned short *)(buf + i + 16))
			snprintf(names[nr++ % 32], 64, "%s", buf + i + name_at);
	qsort(names, nr, 64, compare_names);
	for (i = 0; i < nr; i++)
		say("%s\n", names[i]);
	close(fd);
}

CASE(listings_by_number)
{
	char up[PATH_MAX];
	long n, i, hidden = 0, fd;
	char buf[8192];

	make("a", "a");
	make("b", "b");
	T(mkdir(at("c"), 0755));
	list(SYS_getdents64, 19);
#ifdef SYS_getdents
	list(SYS_getdents, 18);
#endif
	snprintf(up, sizeof up, "%s/..", at(""));
	fd = open(up, O_RDONLY | O_DIRECTORY); /* where the containers are */
	while ((n = syscall(SYS_getdents64, fd, buf, sizeof buf)) > 0)
		for (i = 0; i < n; i += *(unsigned short *)(buf + i + 16))
			hidden += !strcmp(buf + i + 19, ".plfs");
	say("%ld\n", hidden);
}

CASE(maps_by_number)
{
	int fd = given("f");
	char *p = (char *)syscall(SYS_mmap, NULL, 36L, PROT_READ, MAP_PRIVATE, fd, 0L);

	say("%.36s\n", p == MAP_FAILED ? strerrorname_np(errno) : p);
}

static long open2(int dirfd, const char *path, uint64_t flags, uint64_t mode, uint64_t resolve)
{
	struct open_how how = {.flags = flags, .mode = mode, .resolve = resolve};

	return syscall(SYS_openat2, dirfd, path, &how, sizeof how);
}

static void read_from(int fd)
{
	char buf[100] = "";

	if (fd < 0)
		return;
	lseek(fd, 0, SEEK_SET);
	say("reads %zd", read(fd, buf, 99));
	say(" \"%s\"\n", buf);
	close(fd);
}

#define OPENS(call) read_from(({ int o_fd = (call); if (o_fd < 0) T(call); else say(#call "\n"); o_fd; }))

CASE(openat2_without_rules)
{
	struct open_how how = {.flags = O_RDWR | O_CREAT | O_EXCL, .mode = 0640};
	char room[64] = "";
	int dir;

	make("f", text);
	T(mkdir(at("d"), 0755));
	OPENS(open2(AT_FDCWD, at("f"), O_RDONLY, 0, 0));
	OPENS(open2(AT_FDCWD, at("new"), O_RDWR | O_CREAT | O_EXCL, 0640, 0));
	OPENS(open2(AT_FDCWD, at("new"), O_RDWR | O_CREAT | O_EXCL, 0640, 0));
	OPENS(open2(AT_FDCWD, at("f"), O_RDWR, 0640, 0));
	OPENS(open2(AT_FDCWD, at("f"), O_RDWR | (1 << 30), 0, 0));
	OPENS(open2(AT_FDCWD, at("f"), 1ull << 40, 0, 0));
	OPENS(open2(AT_FDCWD, at("n"), O_RDWR | O_CREAT, 0200000, 0));
	OPENS(open2(AT_FDCWD, at("f"), O_RDONLY, 0, 1 << 20));
	T(syscall(SYS_openat2, AT_FDCWD, at("f"), &how, 8L));
	memcpy(room, &how, sizeof how);
	OPENS(syscall(SYS_openat2, AT_FDCWD, at("g"), room, 64L));
	room[60] = 1;
	OPENS(syscall(SYS_openat2, AT_FDCWD, at("h"), room, 64L));
	dir = open2(AT_FDCWD, at(""), O_RDONLY | O_DIRECTORY, 0, 0);
	OPENS(open2(dir, "f", O_RDONLY, 0, 0));
	OPENS(open2(dir, "d/../f", O_RDONLY, 0, 0));
	read_from(open2(dir, "f", O_WRONLY | O_TRUNC, 0, 0));
	show("f");
}

CASE(openat2_with_rules)
{
	char other[PATH_MAX];
	int dir, fd;

	make("f", text);
	T(mkdir(at("d"), 0755));
	make("d/g", "gg");
	T(symlink("f", at("l")));
	T(symlink("../f", at("d/up")));
	snprintf(other, sizeof other, "%s/f", getenv("P"));
	T(symlink(other, at("d/far")));
	T(symlink("/f", at("top")));
	dir = open(at(""), O_RDONLY | O_DIRECTORY);
	OPENS(open2(dir, "f", O_RDONLY, 0, RESOLVE_BENEATH));
	OPENS(open2(dir, "d/up", O_RDONLY, 0, RESOLVE_BENEATH));
	OPENS(open2(dir, "d/g", O_RDONLY, 0, RESOLVE_IN_ROOT));
	OPENS(open2(dir, "../../../../../f", O_RDONLY, 0, RESOLVE_IN_ROOT));
	OPENS(open2(dir, "/f", O_RDONLY, 0, RESOLVE_IN_ROOT));
	OPENS(open2(dir, "/f", O_RDONLY, 0, RESOLVE_BENEATH));
	OPENS(open2(dir, "top", O_RDONLY, 0, RESOLVE_IN_ROOT));
	OPENS(open2(dir, "l", O_RDONLY, 0, RESOLVE_NO_SYMLINKS));
	OPENS(open2(dir, "l", O_RDONLY, 0, RESOLVE_NO_MAGICLINKS));
	OPENS(open2(dir, "l", O_RDONLY | O_NOFOLLOW, 0, RESOLVE_BENEATH));
	OPENS(open2(dir, "f", O_RDONLY | O_DIRECTORY, 0, RESOLVE_BENEATH));
	OPENS(open2(dir, "f", O_RDWR | O_CREAT | O_EXCL, 0600, RESOLVE_BENEATH));
	OPENS(open2(dir, "nothing", O_RDWR, 0, RESOLVE_BENEATH));
	OPENS(open2(dir, "no/thing", O_RDWR | O_CREAT, 0600, RESOLVE_BENEATH));
	OPENS(open2(dir, "../nothing", O_RDWR | O_CREAT, 0600, RESOLVE_BENEATH));
	fd = T(open2(dir, "d/new", O_RDWR | O_CREAT, 0600, RESOLVE_BENEATH));
	T(write(fd, "new", 3));
	OPENS(open2(dir, "d/new", O_RDONLY, 0, RESOLVE_BENEATH));
	fd = open(at("d"), O_RDONLY | O_DIRECTORY);
	OPENS(open2(fd, "up", O_RDONLY, 0, RESOLVE_BENEATH));
	OPENS(open2(fd, "far", O_RDONLY, 0, RESOLVE_BENEATH));
	OPENS(open2(fd, "far", O_RDONLY, 0, RESOLVE_NO_XDEV));
	snprintf(other, sizeof other, "%s", at("f"));
	OPENS(open2(AT_FDCWD, other, O_WRONLY | O_TRUNC, 0, RESOLVE_NO_SYMLINKS));
	fd = T(open2(dir, "f", O_WRONLY | O_APPEND, 0, RESOLVE_BENEATH));
	T(write(fd, "appended", 8));
	show("f");
}

CASE(a_raw_clone_like_fork)
{
	int fd = given("f");
	pid_t pid;

	T(write(fd, "parent", 6));
	pid = syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
	if (pid == 0) {
		write(fd, "child", 5);
		pwrite(fd, "C", 1, 30);
		_exit(0);
	}
	say_child(pid);
	T(write(fd, "again", 5));
	/* a wrong flag for waitpid() */
	pid = syscall(SYS_clone, CLONE_FS | CLONE_FILES, NULL, NULL, NULL, NULL);
	if (pid == 0) {
		write(fd, "CHILD", 5);
		_exit(0);
	}
	while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
		;
	T(write(fd, "end", 3));
	show("f");
}

/* What its child closes stays open here, which it would not without the library; nothing else is touched. */
CASE(a_child_that_would_share_the_descriptors)
{
	int fd = given("f"), other;
	char buf[16] = "";
	pid_t pid;

	T(write(fd, "parent", 6));
	pid = syscall(SYS_clone, CLONE_FILES | SIGCHLD, NULL, NULL, NULL, NULL);
	if (pid == 0)
		_exit(close(fd));
	say_child(pid);
	fd = open(at("f"), O_RDWR); /* the number of the first, or another */
	other = open(at("g"), O_RDWR | O_CREAT, 0644);
	T(write(other, "other", 5));
	T(pwrite(fd, "again", 5, 100));
	T(pread(fd, buf, 6, 0));
	say("%s\n", buf);
	T(close(other));
	T(close(fd));
	show("f");
	show("g");
}

static int cloned(void *arg)
{
	write(*(int *)arg, "child", 5);
	return 3;
}

CASE(clone_with_a_stack)
{
	static char stack[1 << 16] __attribute__((aligned(16)));
	int fd = given("f");
	pid_t pid;

	T(write(fd, "parent", 6));
	pid = clone(cloned, stack + sizeof stack, SIGCHLD, &fd);
	say_child(pid);
	T(write(fd, "again", 5));
	show("f");
}

/*
 * The child has its parent's stack, and uses it below the frame that called: nobody's frame may be there. (In
 * C alone it could not be done with the C library's syscall() either.)
 */
CASE(a_raw_clone_that_shares_memory)
{
	static volatile int shared_word;
	pid_t pid;

#ifdef __x86_64__
	pid = syscall(SYS_clone, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL, NULL, NULL, NULL);
	if (pid == 0)
		__asm__ volatile("movl $7, %0\n\t"
				 "movq $-1000, %%rcx\n"
				 "1:\tmovq $0, -8(%%rsp,%%rcx,8)\n\t"
				 "incq %%rcx\n\t"
				 "jnz 1b\n\t"
				 "syscall"
				 : "=m"(shared_word)
				 : "a"(SYS_exit), "D"(4)
				 : "rcx", "r11", "memory");
#else
	pid = fork();
	shared_word = 7;
	if (pid == 0)
		_exit(4);
#endif
	say_child(pid);
	say("%d\n", shared_word);
}

CASE(what_is_not_about_files)
{
	int word = 0;

	V(syscall(SYS_getpid) == getpid());
	V(syscall(SYS_gettid) == getpid());
	T(syscall(SYS_kill, 0x7fffffff, 0));
	T(syscall(99999));
	T(syscall(-1L));
	T(syscall(SYS_futex, &word, 0, 12345, NULL, NULL, 0));
}

CASE(run_by_number)
{
	int fd = given("f");
	char *argv[] = {"sh", "-c", "echo from the child; cat", NULL}, *envp[] = {NULL};

	T(syscall(SYS_dup3, fd, 0, 0));
	T(lseek(0, 30, SEEK_SET));
	IN_CHILD(syscall(SYS_execve, "/bin/sh", argv, envp));
	IN_CHILD(write(fd, "last words", 10); syscall(SYS_exit_group, 5));
	show("f");
}

CASE(sockets_by_number)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX}, got;
	socklen_t len = sizeof got;
	char buf[64] = "";
	siginfo_t info;
	int s, c, a;

	snprintf(name.sun_path, sizeof name.sun_path, "%s", at("s"));
	s = T(syscall(SYS_socket, AF_UNIX, SOCK_STREAM, 0)) < 0 ? -1 : 3;
	T(syscall(SYS_bind, s, &name, sizeof name));
	T(syscall(SYS_getsockname, s, &got, &len) - strlen(got.sun_path) + strlen(name.sun_path));
	T(syscall(SYS_listen, s, 3));
	c = socket(AF_UNIX, SOCK_STREAM, 0);
	T(syscall(SYS_connect, c, &name, sizeof name));
	a = syscall(SYS_accept4, s, NULL, NULL, 0);
	T(syscall(SYS_sendto, c, text, 36L, 0, NULL, 0));
	T(syscall(SYS_recvfrom, a, buf, 60L, 0, NULL, NULL));
	say("%s\n", buf);
	if (!fork())
		_exit(3);
	T(syscall(SYS_waitid, P_ALL, 0, &info, WEXITED, NULL));
	T(unlink(at("s")));
}

/* Opened inside the C library. */
CASE(a_table_of_file_systems)
{
	struct mntent *m, add = {"node", "/dir", "type", "ro,sync", 1, 2};
	FILE *fp;

	make("tab", "dev /a ext4 rw 0 1\n# none\nother /b\\040c tmpfs ro 0 0\n");
	fp = setmntent(at("tab"), "r");
	while (fp && (m = getmntent(fp)))
		say("%s %s %s %s %d %d\n", m->mnt_fsname, m->mnt_dir, m->mnt_type, m->mnt_opts, m->mnt_freq,
		    m->mnt_passno);
	V(fp ? endmntent(fp) : -1);
	fp = setmntent(at("tab"), "a+");
	V(fp ? addmntent(fp, &add) : -1);
	V(fp ? endmntent(fp) : -1);
	V(setmntent(at("none"), "r") == NULL);
	show("tab");
}

CASE(handles)
{
	struct {
		struct file_handle h;
		char room[128];
	} u = {.h.handle_bytes = 128};
	int fd = given("f"), mount, dir;

	T(mkdir(at("d"), 0755));
	T(name_to_handle_at(AT_FDCWD, at("f"), &u.h, &mount, 0));
	dir = open(at("d"), O_RDONLY);
	OPENS(open_by_handle_at(dir, &u.h, O_RDONLY));
	T(close(fd));
	fd = open_by_handle_at(dir, &u.h, O_WRONLY);
	T(write(fd, "written", 7));
	T(close(fd));
	OPENS(syscall(SYS_open_by_handle_at, dir, &u.h, O_RDWR));
	fd = open_by_handle_at(dir, &u.h, O_WRONLY | O_TRUNC);
	T(write(fd, "cut", 3));
	T(close(fd));
	show("f");
	T(unlink(at("f")));
	T(open_by_handle_at(dir, &u.h, O_RDONLY));
	u.h.handle_bytes = 128;
	T(name_to_handle_at(AT_FDCWD, at("d"), &u.h, &mount, 0));
	make("d/g", "gg");
	fd = open_by_handle_at(dir, &u.h, O_RDONLY | O_DIRECTORY);
	OPENS(openat(fd, "g", O_RDONLY));
}
