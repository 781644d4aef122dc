/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Making a plain file of a logical one, in its place. The bytes go to a temporary file in the container,
 * where no program sees it and nothing is left of it when the container goes (of a file without one, beside
 * the containers); it takes the file's name when all of it is on stable storage. So at any moment, and after
 * any error, the name leads to a whole file.
 *
 * Whoever owns the directory of the stub, or one above it, can put another thing in its place at any moment,
 * and root may be the one who flattens. So both directories are opened once, without following a link, and
 * names are changed in these alone; what gets the name is what was made here, and what loses it is the stub
 * that was read. Root reads and writes what is the owner's as the owner (as_owner.h): a log that he could not
 * read is not copied into his file.
 *
 * Meanwhile the stub's in-use byte is locked exclusively: an open waits, and then finds that the stub has no
 * name any more; a second flattening waits as well. A file that cannot be written to cannot be locked so. But
 * no process can change it either, and two that flatten it at the same time see each other and both give up.
 */
#include "core/plain/copy_out.h"
#include "core/backend/stub_known.h"
#include "core/backend/stub_use.h"
#include "core/base/as_owner.h"
#include "core/base/critical.h"
#include "core/file/file.h"
#include "core/base/msg.h"
#include "core/base/io.h"
#include "core/store/dirs.h"

#include <signal.h>
#include <stdio.h>

#define TRIES 200      /* another process was at work: look again */
#define BUSY_TRIES 20  /* it is open: perhaps for a moment only, by a process that is about to execute it */
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

/*
 * In place, everything but the bytes' home stays. The mode comes after the owner, whose change takes bits
 * away.
 */
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
	struct plfs_progress *watch;
	char name[PATH_MAX]; /* what the kernel calls the stub, for messages */
	int dir;             /* hidden, of the directory that the stub is in, or -1 */
	const char *base;    /* its name there */
	int temp_dir;        /* the same of the temporary file */
	char temp[40];       /* its name there, "" while there is none */
	struct plfs_mount *m;
	int fd;     /* hidden, of the stub */
	bool alone; /* with the in-use byte locked exclusively */
	struct stat st, made; /* of the stub, and of the temporary file */
	struct plfs_file *file;
	struct as_owner owner;
	uint64_t size;
	int to;
	int pin; /* hidden, of the temporary file when that is complete: for no more than its number */
};

static void tell_temp(const struct flatten *f, const char *dir)
{
	char path[PATH_MAX];

	if (!f->watch || !f->watch->temp)
		return;
	snprintf(path, sizeof(path), "%s/%s", dir, f->temp);
	f->watch->temp(f->watch->arg, *f->temp ? path : NULL);
}

static int make_in(struct flatten *f)
{
	int fd = io_openat(f->temp_dir, f->temp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);

	f->to = sys_fd_hide(fd < 0 ? -errno : fd);
	if (f->to < 0)
		return f->to;
	return sys.fstat(f->to, &f->made) ? -errno : f->made.st_dev == f->st.st_dev ? 0 : -EXDEV;
}

/* In the directory @fd, hidden, which this takes, or whose error it is; @dir: its name. */
static int try_temp(struct flatten *f, int fd, const char *dir)
{
	uint64_t random = 0;

	if (fd < 0)
		return fd;
	f->temp_dir = fd;
	if (sys.getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return -EIO;
	snprintf(f->temp, sizeof(f->temp), ".plfs-flatten.%016llx", (unsigned long long)random);
	tell_temp(f, dir);
	return make_in(f);
}

static void drop_temp(struct flatten *f)
{
	sys_fd_close(&f->to);
	if (*f->temp)
		sys.unlinkat(f->temp_dir, f->temp, 0);
	*f->temp = '\0';
	sys_fd_close(&f->temp_dir);
	tell_temp(f, "");
}

/*
 * In the container, or if it has none beside all of them; beside the file if that is not ours to write, or on
 * another file system. A directory that the owner of the stub may not write to is none in which he could
 * exchange names: there root makes it as root.
 */
static int make_temp(struct flatten *f)
{
	const struct inode *ino = f->file->ino;
	const struct plfs_mount *m = f->m;
	char dir[PATH_MAX], rest[sizeof(ino->c.dir)];
	int ret;

	file_begin(f->file);
	if (ino->v.stub.has_container)
		m = ino->m;
	snprintf(rest, sizeof(rest), "%s", ino->v.stub.has_container ? ino->c.dir : PLFS_DIR_NAME);
	file_end(f->file);
	ret = -ENAMETOOLONG;
	if (snprintf(dir, sizeof(dir), "%s/%s", m->backend, rest) < (int)sizeof(dir))
		ret = try_temp(f, sys_fd_hide(dirs_open(m->dirfd, rest)), dir);
	if (!ret)
		return 0;
	drop_temp(f);
	snprintf(dir, sizeof(dir), "%.*s", (int)(strrchr(f->name, '/') - f->name), f->name);
	ret = try_temp(f, sys_fd_dup(f->dir), dir);
	if (ret == -EACCES && f->owner.is) {
		as_owner_end(&f->owner);
		ret = make_in(f);
		as_owner_begin(&f->owner, f->st.st_uid, f->st.st_gid);
	}
	return ret ? progress_failed(f->watch, ret, "cannot make a file beside it") : 0;
}

/* Whether nothing that was copied from the stub has changed since, and @st is the stub. */
static bool is_unchanged(const struct flatten *f, const struct stat *st)
{
	return st->st_dev == f->st.st_dev && st->st_ino == f->st.st_ino && st->st_nlink == 1 &&
	       st->st_size == f->st.st_size && st->st_mode == f->st.st_mode && st->st_uid == f->st.st_uid &&
	       st->st_gid == f->st.st_gid && st->st_mtim.tv_sec == f->st.st_mtim.tv_sec &&
	       st->st_mtim.tv_nsec == f->st.st_mtim.tv_nsec;
}

static bool has_stub(const struct flatten *f, int dir, const char *name)
{
	struct stat st;

	return !sys.fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) && is_unchanged(f, &st);
}

/* f->pin keeps its number from being given again. */
static bool has_made(const struct flatten *f, int dir, const char *name, struct stat *st)
{
	return !sys.fstatat(dir, name, st, AT_SYMLINK_NOFOLLOW) && st->st_dev == f->made.st_dev &&
	       st->st_ino == f->made.st_ino;
}

/* -EACCES, -EPERM of the owner: the directory is not his to change, and root may. */
static int rename_temp(struct flatten *f, unsigned flags)
{
	int ret;

	for (;;) {
		if (flags)
			ret = sys.renameat2(f->temp_dir, f->temp, f->dir, f->base, flags);
		else
			ret = sys.renameat(f->temp_dir, f->temp, f->dir, f->base);
		ret = ret ? -errno : 0;
		if ((ret != -EACCES && ret != -EPERM) || !f->owner.is)
			return ret;
		as_owner_end(&f->owner);
	}
}

/*
 * Whether the exchange gave each name what it was to have. Who opens the file from then on has the plain one,
 * and may write to it, cut it off, replace or remove it. What has the name by now is of interest only where
 * the owner could not have put anything there himself.
 */
static bool is_exchanged(const struct flatten *f)
{
	struct stat st;

	return has_stub(f, f->temp_dir, f->temp) &&
	       (as_owner_uid() == f->st.st_uid || has_made(f, f->dir, f->base, &st));
}

/* As before the exchange; but what another process has given the name since then has it. */
static void exchange_back(struct flatten *f)
{
	struct stat st;

	if (!rename_temp(f, RENAME_EXCHANGE) && as_owner_uid() == f->st.st_uid &&
	    !has_made(f, f->temp_dir, f->temp, &st))
		rename_temp(f, RENAME_EXCHANGE);
}

/*
 * The temporary file and the stub change names: so whatever happened to either name since they were looked at
 * shows before anything is lost. Where the file system cannot, the stub's is taken.
 */
static int take_name(struct flatten *f)
{
	struct stat st;
	int ret;

	if (!has_stub(f, f->dir, f->base) || !has_made(f, f->temp_dir, f->temp, &st) ||
	    st.st_size != (off_t)f->size)
		return -EAGAIN;
	ret = rename_temp(f, RENAME_EXCHANGE);
	if (ret == -EINVAL || ret == -ENOSYS) {
		ret = rename_temp(f, 0);
		if (!ret)
			*f->temp = '\0';
		return ret ? progress_failed(f->watch, ret, "cannot replace it") : 0;
	}
	if (ret)
		return ret == -ENOENT ? -EAGAIN : progress_failed(f->watch, ret, "cannot replace it");
	if (is_exchanged(f))
		return 0;
	exchange_back(f);
	return -EAGAIN;
}

/* An open from here on gets the plain file, and no process has the stub open. */
static void drop_container(struct flatten *f)
{
	const struct inode *ino = f->file->ino;

	if (*f->temp && !sys.unlinkat(f->temp_dir, f->temp, 0))
		*f->temp = '\0';
	if (*f->temp || (!f->alone && stub_in_use(f->fd)))
		return;
	file_begin(f->file);
	if (ino->v.stub.has_container)
		inode_remove_container(ino, true);
	file_end(f->file);
}

/* The directory that the stub is in. -EAGAIN: it is there no more. */
static int open_dir(struct flatten *f)
{
	const char *path = f->name + f->m->backend_len;
	struct stat st;

	while (*path == '/')
		path++;
	f->dir = sys_fd_hide(dirs_open_of(f->m->dirfd, path, &f->base));
	if (f->dir == -ENOENT || f->dir == -ENOTDIR || f->dir == -ELOOP)
		return -EAGAIN;
	if (f->dir < 0)
		return progress_failed(f->watch, f->dir, "cannot open its directory");
	return sys.fstatat(f->dir, f->base, &st, AT_SYMLINK_NOFOLLOW) || !is_unchanged(f, &st) ? -EAGAIN : 0;
}

/* As the owner: the size and the bytes, in a temporary file. */
static int copy(struct flatten *f)
{
	off_t size;
	int ret;

	as_owner_begin(&f->owner, f->st.st_uid, f->st.st_gid);
	size = plfs_size(f->file);
	ret = size < 0 ? progress_failed(f->watch, (int)size, "cannot read it") : make_temp(f);
	f->size = ret ? 0 : (uint64_t)size;
	if (!ret && f->alone)
		ret = copy_locked(f->file, f->fd, f->to, f->size, f->watch);
	else if (!ret)
		ret = plfs_copy_out(f->file, f->fd, f->to, f->size, false, f->watch);
	as_owner_end(&f->owner);
	return ret;
}

/*
 * An empty stub only loses its mark. Whoever has just made it, and is not seen to have it open yet, goes on
 * with the file that has the name.
 */
static int unmark(struct flatten *f)
{
	int ret;

	as_owner_begin(&f->owner, f->st.st_uid, f->st.st_gid);
	ret = sys.fchmod(f->fd, f->st.st_mode & 06777) ? -errno : 0;
	as_owner_end(&f->owner);
	return ret ? progress_failed(f->watch, ret, "cannot take its mark off") : 0;
}

/* The stub is open and, if possible, locked. */
static int flatten_open(struct flatten *f)
{
	int ret = open_dir(f);

	if (!ret && !f->st.st_size)
		return unmark(f);
	if (!ret)
		ret = copy(f);
	if (ret)
		return ret;
	ret = copy_attributes(f->fd, f->to, &f->st); /* a group that its owner is not in, too */
	if (ret)
		return progress_failed(f->watch, ret, "cannot keep its owner, mode and attributes");
	if (io_fsync(f->to))
		return progress_failed(f->watch, -errno, "cannot write");
	if (!f->alone && stub_in_use(f->fd))
		return -EBUSY;
	/* Closed first: while it is open for writing it cannot be executed. */
	f->pin = stub_reopen(f->to, O_PATH);
	sys_fd_close(&f->to);
	as_owner_begin(&f->owner, f->st.st_uid, f->st.st_gid);
	ret = take_name(f);
	as_owner_end(&f->owner);
	if (ret)
		return ret;
	msg_debug(MSG_OPEN, "%s: is a plain file now", f->name);
	ret = io_fsync(f->dir) ? -errno : 0; /* before what it was goes */
	if (ret)
		msg_debug(MSG_OPEN, "%s: its directory could not be synced: %s", f->name, strerror(-ret));
	drop_container(f);
	return 0;
}

/*
 * Whether no process can be writing to it: not even through a shared map of a file in its body, which needs
 * no open file. The kernel knows: then it gives a lease. Should a process open the file in that moment, the
 * signal that says so is one that is ignored.
 */
static bool has_no_writer(int fd)
{
	if (sys.fcntl(fd, F_SETSIG, SIGURG) || sys.fcntl(fd, F_SETLEASE, F_RDLCK))
		return false;
	sys.fcntl(fd, F_SETLEASE, F_UNLCK);
	return true;
}

/*
 * The same of the locked file, which is open here for writing: whether no other process has it open or mapped
 * at all. A map only for reading looks the same as one for writing.
 */
static bool is_nowhere_else(int fd)
{
	if (sys.fcntl(fd, F_SETSIG, SIGURG) || sys.fcntl(fd, F_SETLEASE, F_WRLCK))
		return false;
	sys.fcntl(fd, F_SETLEASE, F_UNLCK);
	return true;
}

/*
 * Lock all others out. 0; -EBUSY: the file is open; -EAGAIN: another process was flattening it; -ETIMEDOUT:
 * it does so still.
 */
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
	if (fd == -ETXTBSY) /* a process tries to execute it */
		return -EAGAIN;
	if (fd == -EACCES || fd == -EROFS || fd == -EPERM) {
		ret = stub_mark_in_use(f->fd) ? -ETIMEDOUT : 0;
		return ret ? ret : stub_in_use(f->fd) ? -EBUSY : 0;
	}
	if (fd < 0)
		return progress_failed(f->watch, fd, "cannot lock it");
	sys_fd_close(&f->fd);
	f->fd = fd;
	ret = stub_lock_out(fd);
	f->alone = !ret;
	/* A process that mapped it between the first look and the lock may have closed it since. */
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

/* By the header, where it has lost its mark. */
static bool is_stub(int fd, const struct stat *st)
{
	struct stat now = *st;

	stub_know(&now, fd);
	return stub_marked(now.st_mode);
}

static int flatten_once(struct flatten *f, int dirfd, const char *path)
{
	int fd = io_openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	int ret;

	f->fd = sys_fd_hide(fd < 0 ? -errno : fd);
	if (f->fd < 0)
		return progress_failed(f->watch, f->fd, "cannot open it");
	if (sys.fstat(f->fd, &f->st))
		return -errno;
	if (!is_stub(f->fd, &f->st) || !mount_has_dev(f->st.st_dev))
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
	as_owner_end(&f->owner);
	drop_temp(f);
	sys_fd_close(&f->pin);
	sys_fd_close(&f->dir);
	if (f->fd >= 0)
		stub_unmark_in_use(f->fd);
	sys_fd_close(&f->fd);
	if (f->file)
		plfs_close(f->file);
}

int plfs_flatten(int dirfd, const char *path, struct plfs_progress *watch)
{
	int saved ERRNO_KEPT = errno;
	bool section CRITICAL = critical_begin();
	const struct timespec wait = { .tv_nsec = WAIT_NS };
	int ret = -EAGAIN, busy = 0;

	for (int tries = 0; tries < TRIES && busy < BUSY_TRIES && (ret == -EAGAIN || ret == -EBUSY);
	     tries++) {
		struct flatten f = { .watch = watch, .fd = -1, .dir = -1, .temp_dir = -1, .to = -1,
				     .pin = -1 };

		if (tries)
			io_nanosleep(&wait, NULL);
		ret = flatten_once(&f, dirfd, path);
		finish(&f);
		busy += ret == -EBUSY;
	}
	if (ret == -ETIMEDOUT)
		return progress_explained(watch, -EBUSY, "another process is making it a plain file, or keeps it locked as if it were");
	if (ret != -EAGAIN && ret != -EBUSY)
		return ret;
	if (watch)
		*watch->why = '\0';
	return progress_explained(watch, -EBUSY, "another process has it open; what it writes would be lost");
}

bool plfs_wait_flattened(int dirfd, const char *path)
{
	int saved ERRNO_KEPT = errno;
	int fd = io_openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	bool was = false;

	fd = sys_fd_hide(fd < 0 ? -errno : fd);
	if (fd >= 0 && !sys.fstat(fd, &st))
		was = !is_stub(fd, &st) || stub_wait_flattened(fd) == -EAGAIN || sys.fstat(fd, &st) ||
		      !st.st_nlink;
	sys_fd_close(&fd);
	return was;
}
