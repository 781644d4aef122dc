/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Making a plain file of a logical one, in its place. The bytes go to a temporary file in the container,
 * where no program sees it and nothing is left of it when the container goes (of a file without one, beside
 * the containers); it takes the file's name when all of it is on stable storage. So at any moment, and after
 * any error, the name leads to a whole file.
 *
 * Root reads and writes what is the owner's as the owner (as_owner.h): a log that he could not read is not
 * copied into his file.
 *
 * Meanwhile the stub's in-use byte is locked exclusively: an open waits, and then finds that the stub has no
 * name any more; a second flattening waits as well. A file that cannot be written to cannot be locked so. But
 * no process can change it either, and two that flatten it at the same time see each other and both give up.
 */
#include "core/plain/copy_out.h"
#include "core/plain/flatten_names.h"
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

	while (*path == '/')
		path++;
	f->dir = sys_fd_hide(dirs_open_of(f->m->dirfd, path, &f->base));
	if (f->dir == -ENOENT || f->dir == -ENOTDIR || f->dir == -ELOOP)
		return -EAGAIN;
	if (f->dir < 0)
		return progress_failed(f->watch, f->dir, "cannot open its directory");
	return flatten_has_stub(f, f->dir, f->base) ? 0 : -EAGAIN;
}

/* As the owner: the size and the bytes, in a temporary file. */
static int copy(struct flatten *f)
{
	off_t size;
	int ret;

	as_owner_begin(&f->owner, f->st.st_uid, f->st.st_gid);
	size = plfs_size(f->file);
	ret = size < 0 ? progress_failed(f->watch, (int)size, "cannot read it") : flatten_make_temp(f);
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
	ret = flatten_take_name(f);
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
	flatten_drop_temp(f);
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
