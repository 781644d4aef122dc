/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls on plain files, and the library's own.
 */
#include "core/observe/hooks.h"

#include "core/backend/mount.h"
#include "core/backend/stub.h"
#include "core/base/io.h"
#include "core/observe/observe.h"

static struct sys_table real; /* as it was */
static bool everywhere;

/* ---- which files are counted ---- */

#define FDS_MAX 65536

/* By descriptor. NULL: not known; &passed: not counted. */
static struct tally *files[FDS_MAX], passed;
static uint8_t is_stream[FDS_MAX]; /* 1: its bytes go past the hooks */

static bool is_of_system(const char *path)
{
	static const char *const dirs[] = { "/proc/", "/sys/",	"/dev/", "/usr/", "/lib/", "/lib64/",
					    "/bin/",  "/sbin/", "/etc/", "/run/", "/opt/" };

	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
		if (!strncmp(path, dirs[i], strlen(dirs[i])))
			return true;
	return *path != '/';
}

static bool is_wanted(int fd)
{
	char path[PATH_MAX];
	struct stat st;

	if (real.fstat(fd, &st) || !S_ISREG(st.st_mode) || (!everywhere && !mount_has_dev(st.st_dev)))
		return false;
	stub_name(fd, path, sizeof(path));
	return everywhere ? !is_of_system(path) :
			    mount_of_backend_path(path) && !stub_marked(st.st_mode) &&
				    !strstr(path, "/" PLFS_DIR_NAME "/");
}

static struct tally *look(int fd)
{
	int saved ERRNO_KEPT = errno;
	struct tally *t = NULL;

	if ((unsigned)fd >= FDS_MAX || fd < 0)
		return &passed;
	critical_enter();
	if (is_wanted(fd))
		t = observe_file(fd, false, NULL);
	if (t)
		t->anywhere = everywhere;
	critical_leave();
	t = t ? t : &passed;
	__atomic_store_n(&files[fd], t, __ATOMIC_RELEASE);
	return t;
}

static struct tally *tally_of(int fd)
{
	struct tally *t = (unsigned)fd < FDS_MAX ? __atomic_load_n(&files[fd], __ATOMIC_ACQUIRE) : &passed;

	t = t ? t : look(fd);
	return t == &passed ? NULL : t;
}

static void forget(int fd)
{
	if ((unsigned)fd >= FDS_MAX)
		return;
	__atomic_store_n(&files[fd], NULL, __ATOMIC_RELEASE);
	is_stream[fd] = 0;
}

/* ---- the two ends of a call ---- */

struct hooked {
	struct seen call;  /* of the program */
	struct tally *own; /* whose call this one of ours is for */
	uint64_t begin_ns;
	enum work_kind work;
	int fd;
};

static void begin(struct hooked *h, int fd, enum seen_kind kind, enum work_kind work)
{
	h->call.t = h->own = NULL;
	h->fd = fd;
	if (critical.depth || observe_now) {
		h->own = observe_now;
		h->work = work;
		h->begin_ns = h->own ? stamp_fine_ns() : 0;
	} else {
		seen_begin(&h->call, tally_of(fd), kind);
	}
}

/* @ret: of the call; @off: where it was, -1: at the descriptor's offset. */
static void end(struct hooked *h, ssize_t ret, off_t off)
{
	int saved ERRNO_KEPT = errno;

	if (h->own)
		observe_work(h->own, h->work, ret > 0 ? (uint64_t)ret : 0, stamp_fine_ns() - h->begin_ns);
	if (!h->call.t)
		return;
	if (off < 0 && ret >= 0)
		off = real.lseek(h->fd, 0, SEEK_CUR) - ret;
	critical_enter();
	seen_end(&h->call, off > 0 ? (uint64_t)off : 0, ret < 0 ? -saved : ret);
	critical_leave();
}

/* An open() of the program gave @fd. */
static int opened(int fd, uint64_t begin_ns)
{
	if (fd < 0 || critical.depth || observe_now)
		return fd;
	forget(fd);
	hooks_opened(fd, begin_ns);
	return fd;
}

void hooks_opened(int fd, uint64_t begin_ns)
{
	struct tally *t = tally_of(fd);

	if (t)
		seen_end_open(t, begin_ns, 0);
}

/* ---- open and close ---- */

static mode_t mode_of(int flags, va_list args)
{
	return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(args, mode_t) : 0;
}

static uint64_t work_begin(void) { return critical.depth && !observe_now ? 0 : stamp_fine_ns(); }

static int open_done(int fd, uint64_t begin_ns)
{
	int saved ERRNO_KEPT = errno;

	if (observe_now)
		observe_work(observe_now, WORK_OTHER, 0, stamp_fine_ns() - begin_ns);
	return opened(fd, begin_ns);
}

static int hook_open(const char *path, int flags, ...)
{
	uint64_t begin_ns = work_begin();
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = mode_of(flags, args);
	va_end(args);
	return open_done(real.open(path, flags, mode), begin_ns);
}

static int hook_openat(int dirfd, const char *path, int flags, ...)
{
	uint64_t begin_ns = work_begin();
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = mode_of(flags, args);
	va_end(args);
	return open_done(real.openat(dirfd, path, flags, mode), begin_ns);
}

static int hook_creat(const char *path, mode_t mode)
{
	uint64_t begin_ns = work_begin();

	return open_done(real.creat(path, mode), begin_ns);
}

static int hook_close(int fd)
{
	struct hooked h;
	int ret;

	begin(&h, fd, SEEN_CLOSE, WORK_OTHER);
	forget(fd);
	ret = real.close(fd);
	end(&h, ret, 0);
	return ret;
}

static int hook_close_range(unsigned first, unsigned last, int flags)
{
	for (unsigned fd = first; fd <= last && fd < FDS_MAX; fd++)
		forget((int)fd);
	return real.close_range(first, last, flags);
}

static void hook_closefrom(int first)
{
	for (int fd = first < 0 ? 0 : first; fd < FDS_MAX; fd++)
		forget(fd);
	real.closefrom(first);
}

static int hook_dup2(int from, int to)
{
	if (from != to)
		forget(to);
	return real.dup2(from, to);
}

static int hook_dup3(int from, int to, int flags)
{
	forget(to);
	return real.dup3(from, to, flags);
}

/* ---- data, sizes, persistence ---- */

/* A call on the descriptor @fd, at @off (as end() has it); then its parameters, and these as arguments. */
#define HOOKED(type, name, fd, kind, work, off, parameters, ...) \
	static type hook_##name parameters \
	{ \
		struct hooked h; \
		type ret; \
		begin(&h, fd, kind, work); \
		ret = real.name(__VA_ARGS__); \
		end(&h, ret, off); \
		return ret; \
	}

#define READ(name, off, parameters, ...) \
	HOOKED(ssize_t, name, fd, SEEN_READ, WORK_READ, off, parameters, __VA_ARGS__)
#define WRITE(name, off, parameters, ...) \
	HOOKED(ssize_t, name, fd, SEEN_WRITE, WORK_WRITE, off, parameters, __VA_ARGS__)
#define OTHER(name, kind, off, parameters, ...) \
	HOOKED(int, name, fd, kind, WORK_OTHER, off, parameters, __VA_ARGS__)

READ(read, -1, (int fd, void *buf, size_t len), fd, buf, len)
READ(readv, -1, (int fd, const struct iovec *iov, int cnt), fd, iov, cnt)
READ(pread, off, (int fd, void *buf, size_t len, off_t off), fd, buf, len, off)
READ(preadv, off, (int fd, const struct iovec *iov, int cnt, off_t off), fd, iov, cnt, off)
READ(preadv2, off, (int fd, const struct iovec *iov, int cnt, off_t off, int flags), fd, iov, cnt, off, flags)
WRITE(write, -1, (int fd, const void *buf, size_t len), fd, buf, len)
WRITE(writev, -1, (int fd, const struct iovec *iov, int cnt), fd, iov, cnt)
WRITE(pwrite, off, (int fd, const void *buf, size_t len, off_t off), fd, buf, len, off)
WRITE(pwritev, off, (int fd, const struct iovec *iov, int cnt, off_t off), fd, iov, cnt, off)
WRITE(pwritev2, off, (int fd, const struct iovec *iov, int cnt, off_t off, int flags), fd, iov, cnt, off,
      flags)
OTHER(fsync, SEEN_SYNC, 0, (int fd), fd)
OTHER(fdatasync, SEEN_SYNC, 0, (int fd), fd)
OTHER(ftruncate, SEEN_TRUNCATE, len, (int fd, off_t len), fd, len)
OTHER(fallocate, SEEN_OTHER, off, (int fd, int mode, off_t off, off_t len), fd, mode, off, len)

/* What is copied inside the kernel is counted where it goes. */
HOOKED(ssize_t, copy_file_range, to, SEEN_WRITE, WORK_WRITE, ret > 0 && to_off ? *to_off - ret : -1,
       (int from, off_t *from_off, int to, off_t *to_off, size_t len, unsigned flags),
       from, from_off, to, to_off, len, flags)
HOOKED(ssize_t, sendfile, to, SEEN_WRITE, WORK_WRITE, -1, (int to, int from, off_t *from_off, size_t len),
       to, from, from_off, len)

/* ---- streams: the C library's own calls go past the hooks ---- */

static void stream_moved(int fd)
{
	struct tally *t = (unsigned)fd < FDS_MAX && is_stream[fd] ? tally_of(fd) : NULL;
	off_t off = t ? real.lseek(fd, 0, SEEK_CUR) : 0;

	if (off <= 0)
		return;
	critical_enter();
	observe_stream(t, is_stream[fd] == 2 ? WAY_WRITE : WAY_READ, (uint64_t)off);
	critical_leave();
	is_stream[fd] = 0;
}

static FILE *hook_fopen(const char *path, const char *mode)
{
	uint64_t begin_ns = work_begin();
	FILE *fp = real.fopen(path, mode);
	int fd = fp && !critical.depth && !observe_now ? fp->_fileno : -1;

	opened(fd, begin_ns);
	if ((unsigned)fd < FDS_MAX)
		is_stream[fd] = *mode == 'r' ? 1 : 2;
	return fp;
}

static int hook_fclose(FILE *fp)
{
	struct hooked h;
	int ret;

	if (critical.depth || observe_now || fp->_fileno < 0)
		return real.fclose(fp);
	if ((unsigned)fp->_fileno < FDS_MAX && is_stream[fp->_fileno] == 2)
		real.fflush(fp);
	stream_moved(fp->_fileno);
	begin(&h, fp->_fileno, SEEN_CLOSE, WORK_OTHER);
	forget(fp->_fileno);
	ret = real.fclose(fp);
	end(&h, ret, 0);
	return ret;
}

void hooks_exit(void)
{
	for (int fd = 0; fd < FDS_MAX; fd++)
		if (is_stream[fd])
			stream_moved(fd);
}

/* ---- the next image ---- */

static int hook_execve(const char *path, char *const argv[], char *const envp[])
{
	observe_exec();
	return real.execve(path, argv, envp);
}

static int hook_execvpe(const char *file, char *const argv[], char *const envp[])
{
	observe_exec();
	return real.execvpe(file, argv, envp);
}

static int hook_fexecve(int fd, char *const argv[], char *const envp[])
{
	observe_exec();
	return real.fexecve(fd, argv, envp);
}

static int hook_execveat(int dirfd, const char *path, char *const argv[], char *const envp[], int flags)
{
	observe_exec();
	return real.execveat(dirfd, path, argv, envp, flags);
}

#define HOOK(name) (sys.name = sys.name ? hook_##name : NULL)

void hooks_install(bool all)
{
	real = sys;
	everywhere = all;
	HOOK(open), HOOK(openat), HOOK(creat), HOOK(close), HOOK(close_range), HOOK(closefrom);
	HOOK(dup2), HOOK(dup3);
	HOOK(read), HOOK(readv), HOOK(pread), HOOK(preadv), HOOK(preadv2);
	HOOK(write), HOOK(writev), HOOK(pwrite), HOOK(pwritev), HOOK(pwritev2);
	HOOK(copy_file_range), HOOK(sendfile);
	HOOK(fsync), HOOK(fdatasync), HOOK(ftruncate), HOOK(fallocate);
	HOOK(fopen), HOOK(fclose);
	HOOK(execve), HOOK(execvpe), HOOK(fexecve), HOOK(execveat);
}
