/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Making a plain file of a logical one, in its place. The bytes go to a temporary file in the container, where no
 * program sees it and nothing is left of it when the container goes (of a file without one, beside the containers);
 * it takes the file's name when all of it is on stable storage. So at any moment, and after any error, the name leads
 * to a whole file.
 *
 * Meanwhile the stub's in-use byte is locked exclusively: who opens the file waits, and then finds that the stub has
 * no name any more; who wants to flatten it too waits as well. A file that cannot be written to cannot be locked so;
 * but nobody can change it either, and two that flatten it at the same time see each other and both give up.
 */
#include "copy.h"
#include "critical.h"
#include "file.h"
#include "log.h"
#include "own.h"

#include <signal.h>
#include <stdio.h>

#define TRIES 200      /* somebody else was at work: look again */
#define BUSY_TRIES 20  /* it is open: perhaps for a moment only, by somebody who is about to execute it */
#define WAIT_NS 500000

/* ---- attributes ---- */

/* Access control lists above all; labels that the system keeps are its own business. */
static int copy_xattrs(int from, int to)
{
	char names[4096], value[4096];
	ssize_t len = sys.flistxattr(from, names, sizeof(names)), n;

	if (len < 0)
		return errno == EOPNOTSUPP || errno == ENOSYS ? 0 : -errno;
	for (const char *name = names; name < names + len; name += strlen(name) + 1) {
		if (!strncmp(name, "security.", 9) || !strncmp(name, "trusted.", 8))
			continue;
		n = sys.fgetxattr(from, name, value, sizeof(value));
		if (n < 0 || sys.fsetxattr(to, name, value, (size_t)n, 0))
			return -errno;
	}
	return 0;
}

/* In place, everything but the bytes' home stays. The mode comes after the owner, whose change takes bits away. */
static int copy_attributes(int from, int to, const struct stat *st)
{
	struct timespec times[2] = { st->st_atim, st->st_mtim };
	int ret = sys.fchown(to, st->st_uid, st->st_gid) ? -errno : 0;

	if (!ret)
		ret = copy_xattrs(from, to);
	if (!ret && (sys.fchmod(to, st->st_mode & 06777) || sys.futimens(to, times)))
		ret = -errno;
	return ret;
}

/* ---- one attempt ---- */

struct flatten {
	struct plfs_watch *watch;
	char name[PATH_MAX]; /* what the kernel calls the stub */
	char temp[PATH_MAX]; /* the temporary file, "" while there is none */
	struct plfs_mount *m;
	int fd;     /* hidden, of the stub */
	bool alone; /* with the in-use byte locked exclusively */
	struct stat st;
	struct plfs_file *file;
	uint64_t size;
	int to;
};

static void tell_temp(const struct flatten *f)
{
	if (f->watch && f->watch->temp)
		f->watch->temp(f->watch->arg, *f->temp ? f->temp : NULL);
}

static int try_temp(struct flatten *f, const char *dir, size_t len)
{
	uint64_t random = 0;
	int fd;

	if (sys.getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return -EIO;
	if (snprintf(f->temp, sizeof(f->temp), "%.*s/.plfs-flatten.%016llx", (int)len, dir, (unsigned long long)random) >=
	    (int)sizeof(f->temp)) {
		*f->temp = '\0';
		return -ENAMETOOLONG;
	}
	tell_temp(f);
	fd = own_openat(AT_FDCWD, f->temp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	f->to = sys_fd_hide(fd < 0 ? -errno : fd);
	return f->to < 0 ? f->to : 0;
}

static void drop_temp(struct flatten *f)
{
	sys_fd_close(&f->to);
	if (*f->temp)
		sys.unlinkat(AT_FDCWD, f->temp, 0);
	*f->temp = '\0';
	tell_temp(f);
}

/*
 * In the container, or if it has none beside all of them; beside the file if that is not ours to write, or on another file
 * system.
 */
static int make_temp(struct flatten *f)
{
	const struct inode *ino = f->file->ino;
	char dir[PATH_MAX];
	struct stat st;
	int len, ret;

	len = snprintf(dir, sizeof(dir), "%s/%s", ino->m->backend, ino->stub.has_container ? ino->c.dir : PLFS_DIR_NAME);
	if (len < PATH_MAX) {
		ret = try_temp(f, dir, (size_t)len);
		if (!ret && !sys.fstat(f->to, &st) && st.st_dev == f->st.st_dev)
			return 0;
		drop_temp(f);
	}
	ret = try_temp(f, f->name, (size_t)(strrchr(f->name, '/') - f->name));
	return ret ? watch_failed(f->watch, ret, "cannot make a file beside it") : 0;
}

/* Whether nothing that was copied from the stub has changed since, and @st is the stub. */
static bool is_unchanged(const struct flatten *f, const struct stat *st)
{
	return st->st_dev == f->st.st_dev && st->st_ino == f->st.st_ino && st->st_nlink == 1 &&
	       st->st_size == f->st.st_size && st->st_mode == f->st.st_mode && st->st_uid == f->st.st_uid &&
	       st->st_gid == f->st.st_gid && st->st_mtim.tv_sec == f->st.st_mtim.tv_sec &&
	       st->st_mtim.tv_nsec == f->st.st_mtim.tv_nsec;
}

static int sync_dir_of(const char *path)
{
	char dir[PATH_MAX];
	int ret, fd;

	snprintf(dir, sizeof(dir), "%.*s", (int)(strrchr(path, '/') - path) + 1, path);
	fd = own_open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ret = fd < 0 || own_fsync(fd) ? -errno : 0;
	if (fd >= 0)
		own_close(fd);
	return ret;
}

/*
 * The temporary file and the stub change names: so whatever happened to the name in between shows before anything is
 * lost. Where the file system cannot, the name is looked at just before it is taken.
 */
static int take_name(struct flatten *f)
{
	struct stat st;
	int ret = sys.renameat2(AT_FDCWD, f->temp, AT_FDCWD, f->name, RENAME_EXCHANGE) ? -errno : 0;

	if (ret == -EINVAL || ret == -ENOSYS) {
		if (sys.fstatat(AT_FDCWD, f->name, &st, AT_SYMLINK_NOFOLLOW) || !is_unchanged(f, &st))
			return -EAGAIN;
		ret = sys.renameat(AT_FDCWD, f->temp, AT_FDCWD, f->name) ? -errno : 0;
		if (!ret)
			*f->temp = '\0';
		return ret ? watch_failed(f->watch, ret, "cannot replace it") : 0;
	}
	if (ret)
		return ret == -ENOENT ? -EAGAIN : watch_failed(f->watch, ret, "cannot replace it");
	if (!sys.fstatat(AT_FDCWD, f->temp, &st, AT_SYMLINK_NOFOLLOW) && is_unchanged(f, &st))
		return 0;
	sys.renameat2(AT_FDCWD, f->temp, AT_FDCWD, f->name, RENAME_EXCHANGE);
	return -EAGAIN;
}

/* Whoever opens the file from here on gets the plain one, and nobody has the stub open. */
static void drop_container(struct flatten *f)
{
	const struct inode *ino = f->file->ino;

	if (*f->temp && !sys.unlinkat(AT_FDCWD, f->temp, 0))
		*f->temp = '\0';
	if (*f->temp || !ino->stub.has_container || (!f->alone && stub_in_use(f->fd)))
		return;
	inode_remove_container(ino, true);
}

/* The stub is open and, if possible, locked. */
static int flatten_open(struct flatten *f)
{
	off_t size = plfs_size(f->file);
	int ret = size < 0 ? watch_failed(f->watch, (int)size, "cannot read it") : make_temp(f);

	if (ret)
		return ret;
	f->size = (uint64_t)size;
	ret = plfs_copy_out(f->file, f->fd, f->to, f->size, f->alone, f->watch);
	if (ret)
		return ret;
	ret = copy_attributes(f->fd, f->to, &f->st);
	if (ret)
		return watch_failed(f->watch, ret, "cannot keep its owner, mode and attributes");
	if (own_fsync(f->to))
		return watch_failed(f->watch, -errno, "cannot write");
	if (!f->alone && stub_in_use(f->fd))
		return -EBUSY;
	/* Closed first: while it is open for writing nobody can execute it. */
	sys_fd_close(&f->to);
	ret = take_name(f);
	if (ret)
		return ret;
	log_debug(LOG_OPEN, "%s: is a plain file now", f->name);
	ret = sync_dir_of(f->name); /* before what it was goes */
	if (ret)
		log_debug(LOG_OPEN, "%s: its directory could not be synced: %s", f->name, strerror(-ret));
	drop_container(f);
	return 0;
}

/*
 * Whether nobody can be writing to it: not even through a shared map of a file in its body, which needs no open file.
 * The kernel knows, and tells by giving a lease. Should somebody open the file in that moment, the signal that says
 * so is one that is ignored.
 */
static bool has_no_writer(int fd)
{
	if (sys.fcntl(fd, F_SETSIG, SIGURG) || sys.fcntl(fd, F_SETLEASE, F_RDLCK))
		return false;
	sys.fcntl(fd, F_SETLEASE, F_UNLCK);
	return true;
}

/*
 * The same of the locked file, which is open here for writing: whether nobody else has it open or mapped at all. Who
 * has mapped it only for reading cannot be told from who may write.
 */
static bool is_nowhere_else(int fd)
{
	if (sys.fcntl(fd, F_SETSIG, SIGURG) || sys.fcntl(fd, F_SETLEASE, F_WRLCK))
		return false;
	sys.fcntl(fd, F_SETLEASE, F_UNLCK);
	return true;
}

/* Lock everybody else out. -EBUSY: somebody has it open; -EAGAIN: somebody else was flattening it. */
static int lock_out(struct flatten *f)
{
	int fd, ret = stub_wait_flattened(f->fd);
	struct stub stub;

	if (!ret)
		ret = stub_read(f->fd, &stub);
	if (!ret && stub.in_body && !has_no_writer(f->fd))
		ret = -EBUSY;
	if (ret)
		return ret;
	fd = stub_reopen(f->fd, O_RDWR);
	if (fd == -ETXTBSY) /* somebody tries to execute it */
		return -EAGAIN;
	if (fd == -EACCES || fd == -EROFS || fd == -EPERM) {
		stub_mark_in_use(f->fd);
		return stub_in_use(f->fd) ? -EBUSY : 0;
	}
	if (fd < 0)
		return watch_failed(f->watch, fd, "cannot lock it");
	sys_fd_close(&f->fd);
	f->fd = fd;
	ret = stub_lock_out(fd);
	f->alone = !ret;
	/* Whoever mapped it between the first look and the lock may have closed it since. */
	if (!ret)
		ret = stub_read(fd, &stub);
	if (!ret && stub.in_body && !is_nowhere_else(fd))
		ret = -EBUSY;
	return ret;
}

/* The stub f->fd, seen at its name. -EAGAIN: it is there no more. */
static int check(struct flatten *f)
{
	struct inode *ino;

	if (sys.fstat(f->fd, &f->st))
		return -errno;
	if (!f->st.st_nlink)
		return -EAGAIN;
	if (f->st.st_nlink > 1) {
		if (f->watch)
			snprintf(f->watch->why, sizeof(f->watch->why),
				 "has %lu names (hard links), which would become two files",
				 (unsigned long)f->st.st_nlink);
		return -EMLINK;
	}
	ino = inode_find(f->st.st_dev, f->st.st_ino);
	if (ino)
		inode_put(ino, NULL);
	return ino ? -EBUSY : 0;
}

static int flatten_once(struct flatten *f, int dirfd, const char *path)
{
	int fd = own_openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	int ret;

	f->fd = sys_fd_hide(fd < 0 ? -errno : fd);
	if (f->fd < 0)
		return watch_failed(f->watch, f->fd, "cannot open it");
	if (sys.fstat(f->fd, &f->st))
		return -errno;
	if (!stub_marked(f->st.st_mode) || !mount_has_dev(f->st.st_dev))
		return 0;
	f->m = mount_of_backend_path(stub_name(f->fd, f->name, sizeof(f->name)));
	if (!f->m)
		return f->st.st_nlink ? 0 : -EAGAIN;
	ret = check(f);
	if (!ret)
		ret = lock_out(f);
	if (!ret)
		ret = check(f); /* with everybody else locked out */
	if (!ret)
		ret = file_of(f->fd, &f->file);
	if (f->file)
		f->file->ino->shared = true; /* its mark is taken away in finish() */
	if (!ret && !f->file)
		ret = -EAGAIN;
	return ret ? ret : flatten_open(f);
}

/* Unlocked by name: a child of another thread's fork may share the description, and live long. */
static void finish(struct flatten *f)
{
	drop_temp(f);
	if (f->fd >= 0)
		stub_unmark_in_use(f->fd);
	sys_fd_close(&f->fd);
	if (f->file)
		plfs_close(f->file);
}

int plfs_flatten(int dirfd, const char *path, struct plfs_watch *watch)
{
	int saved ERRNO_KEPT = errno;
	bool section CRITICAL = critical_begin();
	const struct timespec wait = { .tv_nsec = WAIT_NS };
	int ret = -EAGAIN, busy = 0;

	for (int tries = 0; tries < TRIES && busy < BUSY_TRIES && (ret == -EAGAIN || ret == -EBUSY); tries++) {
		struct flatten f = { .watch = watch, .fd = -1, .to = -1 };

		if (tries)
			own_nanosleep(&wait, NULL);
		ret = flatten_once(&f, dirfd, path);
		finish(&f);
		busy += ret == -EBUSY;
	}
	if (ret != -EAGAIN && ret != -EBUSY)
		return ret;
	if (watch)
		*watch->why = '\0';
	return watch_explained(watch, -EBUSY, "another process has it open; what it writes would be lost");
}

bool plfs_wait_flattened(int dirfd, const char *path)
{
	int saved ERRNO_KEPT = errno;
	int fd = own_openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	bool was = false;

	fd = sys_fd_hide(fd < 0 ? -errno : fd);
	if (fd >= 0 && !sys.fstat(fd, &st))
		was = !stub_marked(st.st_mode) || stub_wait_flattened(fd) == -EAGAIN || sys.fstat(fd, &st) || !st.st_nlink;
	sys_fd_close(&fd);
	return was;
}
