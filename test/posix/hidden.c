/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The program sees none but its own descriptors, and can have any number that it likes.
 * Needs glibc 2.34: close_range.
 */
#include "posix.h"

#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

#define LIMIT 256

/*
 * A logical file that has been written and read, and one that is appended to: the library has all its
 * descriptors open.
 */
static int files[2];

static void open_files(void)
{
	struct rlimit lim = {LIMIT, LIMIT};
	char c;

	dup2(0, LIMIT - 1); /* the kernel's table grows: select() looks no further than its end */
	for (int fd = 3; fd < LIMIT; fd++)
		close(fd); /* the caller's; none of what follows may reach them */
	setrlimit(RLIMIT_NOFILE, &lim);
	files[0] = open(at("f"), O_RDWR | O_CREAT | O_TRUNC, 0644);
	files[1] = open(at("g"), O_RDWR | O_CREAT | O_APPEND, 0644);
	for (int i = 0; i < 2; i++) {
		for (int k = 0; k < 5000; k++)
			dprintf(files[i], "line %d\n", k);
		pread(files[i], &c, 1, 0);
	}
	fdatasync(files[0]);
}

static bool is_mine(int fd) { return fd <= 2 || fd == files[0] || fd == files[1]; }

static void still_works(int fd)
{
	char buf[8] = "";

	T(write(fd, "more\n", 5));
	T(pread(fd, buf, 4, 5));
	say("%s\n", buf);
	T(fsync(fd));
}

/* What each of many calls says of all numbers that are not the program's: the same of every one. */
#define EACH(call) \
	({ \
		int nr_odd = 0, odd = 0, said = 0; \
		for (int fd = 3; fd < LIMIT; fd++) { \
			if (is_mine(fd)) \
				continue; \
			errno = 0; \
			long e_ret = (long)(call); \
			if (e_ret >= 0 || errno != EBADF) { \
				odd = fd; \
				said = e_ret >= 0 ? 0 : errno; \
				nr_odd++; \
			} \
		} \
		say("%s: %d%s%s\n", #call, nr_odd, odd ? " say " : "", odd ? strerrorname_np(said) : ""); \
	})

CASE(hidden_descriptors_are_not_there_for_any_call)
{
	struct statvfs vfs;
	struct statfs fs;
	struct statx sx;
	struct stat st;
	struct iovec iov = {&st, 4};
	struct flock fl = {.l_type = F_RDLCK};
	char buf[64];
	off_t off = 0;

	open_files();
	EACH(read(fd, buf, 1));
	EACH(write(fd, buf, 1));
	EACH(pread(fd, buf, 1, 0));
	EACH(pwrite(fd, buf, 1, 0));
	EACH(readv(fd, &iov, 1));
	EACH(preadv(fd, &iov, 1, 0));
	EACH(preadv2(fd, &iov, 1, 0, 0));
	EACH(pwritev(fd, &iov, 1, 0));
	EACH(pwritev2(fd, &iov, 1, 0, 0));
	EACH(lseek(fd, 0, SEEK_CUR));
	EACH(ftruncate(fd, 0));
	EACH(fallocate(fd, 0, 0, 1));
	EACH(-posix_fallocate(fd, 0, 1) ? (errno = EBADF, -1) : 0);
	EACH(readahead(fd, 0, 1));
	EACH(fsync(fd));
	EACH(fdatasync(fd));
	EACH(sync_file_range(fd, 0, 1, 0));
	EACH(syncfs(fd));
	EACH(fstat(fd, &st));
	EACH(fstatat(fd, "", &st, AT_EMPTY_PATH));
	EACH(fstatat(fd, "f", &st, 0));
	EACH(statx(fd, "", AT_EMPTY_PATH, STATX_MODE, &sx));
	EACH(openat(fd, ".", O_RDONLY));
	EACH(openat(fd, "f", O_RDONLY));
	EACH(faccessat(fd, "f", F_OK, 0));
	EACH(mkdirat(fd, "d", 0755));
	EACH(unlinkat(fd, "f", 0));
	EACH(readlinkat(fd, "f", buf, 1));
	EACH(fstatfs(fd, &fs));
	EACH(fstatvfs(fd, &vfs));
	EACH(fpathconf(fd, _PC_NAME_MAX));
	EACH(fchmod(fd, 0600));
	EACH(fchown(fd, -1, -1));
	EACH(futimens(fd, NULL));
	EACH(futimes(fd, NULL));
	EACH(fgetxattr(fd, "user.x", buf, 1));
	EACH(flistxattr(fd, buf, 1));
	EACH(fsetxattr(fd, "user.x", buf, 1, 0));
	EACH(fremovexattr(fd, "user.x"));
	EACH(fchdir(fd));
	EACH(dup(fd));
	EACH(dup2(fd, fd));
	EACH(dup2(fd, files[0]));
	EACH(dup3(fd, files[0], 0));
	EACH(fcntl(fd, F_GETFD));
	EACH(fcntl(fd, F_SETFD, 0));
	EACH(fcntl(fd, F_GETFL));
	EACH(fcntl(fd, F_DUPFD, 0));
	EACH(fcntl(fd, F_GETLK, &fl));
	EACH(flock(fd, LOCK_SH));
	EACH(lockf(fd, F_TEST, 0));
	EACH(ioctl(fd, FIONREAD, &off));
	EACH(fdopen(fd, "r") ? 0 : -1);
	EACH(fdopendir(fd) ? 0 : -1);
	EACH(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0) == MAP_FAILED ? -1 : 0);
	EACH(sendfile(files[0], fd, &off, 1));
	EACH(sendfile(fd, files[0], &off, 1));
	EACH(copy_file_range(fd, NULL, files[0], NULL, 1, 0));
	EACH(splice(fd, NULL, files[0], NULL, 1, 0));
	EACH(syscall(SYS_fstat, fd, &st));
	EACH(syscall(SYS_read, fd, buf, 1));
	EACH(syscall(SYS_getdents64, fd, buf, 64));
	EACH(close(fd));
	T(close_range(LIMIT - 4, LIMIT - 1, 0));
	still_works(files[0]);
	still_works(files[1]);
	T(system("md5sum <$P/f; md5sum <$P/g"));
}

CASE(hidden_descriptors_are_not_waited_for)
{
	struct pollfd fds[LIMIT];
	int nr = 0, invalid = 0, wrong = 0, ep = epoll_create1(0);
	fd_set in, out;

	open_files();
	for (int fd = 3; fd < LIMIT; fd++) {
		if (!is_mine(fd) && fd != ep)
			fds[nr++] = (struct pollfd){fd, POLLIN | POLLOUT, 0};
	}
	say("%d\n", poll(fds, nr, 0) == nr);
	for (int i = 0; i < nr; i++)
		invalid += fds[i].revents == POLLNVAL;
	say("%d\n", invalid == nr);
	say("%d\n", ppoll(fds, nr, NULL, NULL) == nr);
	say("%d\n", syscall(SYS_poll, fds, nr, 0) == nr);
	for (int fd = 3; fd < LIMIT; fd++) {
		struct epoll_event e = {EPOLLIN, {0}};
		struct timeval now = {0, 0};
		struct timespec now_ns = {0, 0};

		if (is_mine(fd) || fd == ep)
			continue;
		FD_ZERO(&in);
		FD_SET(fd, &in);
		out = in;
		wrong += select(LIMIT, &in, NULL, NULL, &now) != -1 || errno != EBADF;
		wrong += pselect(LIMIT, NULL, &out, NULL, &now_ns, NULL) != -1 || errno != EBADF;
		wrong += epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e) != -1 || errno != EBADF;
	}
	say("%d wrong\n", wrong);
	fds[0] = (struct pollfd){files[0], POLLIN | POLLOUT, 0};
	T(poll(fds, 1, -1));
	say("%x\n", fds[0].revents);
	FD_ZERO(&in);
	FD_SET(files[0], &in);
	T(select(LIMIT, &in, NULL, NULL, NULL));
}

/* The names in @path that are no number of this program's; how many are. */
static void list(const char *path)
{
	struct dirent *e, **all;
	DIR *dir = opendir(path);
	int nr = 0, n;

	while ((e = readdir(dir)))
		nr += *e->d_name != '.' && atoi(e->d_name) != dirfd(dir);
	closedir(dir);
	say("%s: %d by readdir\n", path, nr);
	n = scandir(path, &all, NULL, NULL);
	say("%d by scandir\n", n - 3); /* ".", ".." and its own */
}

CASE(hidden_descriptors_are_not_listed)
{
	static char buf[8192];
	char link[64], target[PATH_MAX];
	int fd, seen = 0, dir;
	struct stat st;
	long n, nr = 0;

	open_files();
	list("/proc/self/fd");
	list("/dev/fd");
	list("/proc/self/fdinfo");
	list("/proc/thread-self/fd");
	dir = open("/proc/self/fd", O_RDONLY | O_DIRECTORY);
	while ((n = syscall(SYS_getdents64, dir, buf, sizeof buf)) > 0) {
		for (long i = 0; i < n; i += *(unsigned short *)(buf + i + 16))
			nr++;
	}
	say("%ld by number\n", nr);
	close(dir);
	for (fd = 3; fd < LIMIT; fd++) {
		if (is_mine(fd))
			continue;
		snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
		seen += readlink(link, target, sizeof target) >= 0 || errno != ENOENT;
		seen += stat(link, &st) == 0 || lstat(link, &st) == 0 || access(link, F_OK) == 0 ||
			open(link, O_RDONLY) >= 0;
		snprintf(link, sizeof link, "/dev/fd/%d", fd);
		seen += readlink(link, target, sizeof target) >= 0;
		snprintf(link, sizeof link, "/proc/%d/fd/%d", getpid(), fd);
		seen += readlink(link, target, sizeof target) >= 0;
	}
	say("%d seen\n", seen);
	T(system("ls /proc/self/fd | wc -l; exec 5<$P/f; set -- /proc/$$/fd/*; echo $#"));
}

/* Numbers are taken from the top down, so each of the library's own is met. */
CASE(every_number_can_be_had_by_dup)
{
	int null = open("/dev/null", O_RDWR), wrong = 0, fd;
	struct stat a, b;

	open_files();
	fstat(null, &a);
	for (fd = LIMIT - 1; fd > 99; fd--) {
		int got = fd % 2 ? dup2(null, fd) : dup3(null, fd, O_CLOEXEC);

		wrong += got != fd || fstat(fd, &b) || a.st_rdev != b.st_rdev;
		wrong += fcntl(fd, F_GETFD) != (fd % 2 ? 0 : FD_CLOEXEC);
		if (fd % 16 == 0) {
			dprintf(files[0], "at %d\n", fd);
			dprintf(files[1], "at %d\n", fd);
		}
	}
	say("%d wrong\n", wrong);
	T(dup2(null, LIMIT));
	T(dup3(LIMIT - 1, LIMIT - 1, 0));
	T(dup3(null, LIMIT - 1, O_RDWR));
	still_works(files[0]);
	still_works(files[1]);
	for (fd = LIMIT - 1; fd > 99; fd--)
		wrong += close(fd) != 0;
	say("%d wrong\n", wrong);
	make("h", "another");
	show("h");
	T(system("md5sum <$P/f; md5sum <$P/g"));
}

CASE(a_number_is_had_by_a_logical_file)
{
	int wrong = 0, fd;

	open_files();
	for (fd = 100; fd < LIMIT; fd++)
		wrong += dup2(files[fd % 2], fd) != fd;
	say("%d wrong\n", wrong);
	for (fd = 100; fd < LIMIT; fd++)
		dprintf(fd, "by %d\n", fd);
	for (fd = 100; fd < LIMIT; fd++)
		wrong += close(fd) != 0;
	say("%d wrong\n", wrong);
	still_works(files[0]);
	still_works(files[1]);
	T(system("md5sum <$P/f; md5sum <$P/g"));
}

CASE(every_number_can_be_had_in_a_child)
{
	open_files();
	IN_CHILD(int wrong = 0; for (int fd = 100; fd < LIMIT; fd++) wrong += dup2(1, fd) != fd;
		 say("%d wrong\n", wrong); write(files[0], "child\n", 6); write(files[1], "child\n", 6));
	still_works(files[0]);
	still_works(files[1]);
	T(system("md5sum <$P/f; md5sum <$P/g"));
}

CASE(every_number_can_be_had_with_append_and_locks_of_the_description)
{
	struct flock fl = {.l_type = F_WRLCK, .l_len = 10};
	int wrong = 0, fd, r;

	open_files();
	T(fcntl(files[0], F_OFD_SETLK, &fl));
	T(flock(files[1], LOCK_EX));
	for (fd = 100; fd < LIMIT; fd++)
		wrong += dup2(0, fd) != fd;
	say("%d wrong\n", wrong);
	IN_CHILD(int other = open(at("f"), O_RDWR); fl.l_pid = 0; r = fcntl(other, F_OFD_SETLK, &fl);
		 say("%d %s\n", r, strerrorname_np(errno)); other = open(at("g"), O_RDWR);
		 r = flock(other, LOCK_EX | LOCK_NB); say("%d %s\n", r, strerrorname_np(errno)));
	still_works(files[0]);
}
