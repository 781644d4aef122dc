/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fcntl locks, flock and lockf. The kernel keeps the locks, on the stub; taking one acquires and giving one
 * up releases, so that what is read under a lock is what was written under the one before.
 */
#include "fdtable.h"
#include "lock.h"

#define OFF_MAX INT64_MAX

/* What the kernel checks against the access mode, which for us is always read and write. */
static int check_access(const struct ofile *f, const struct flock *fl)
{
	if (fl->l_type == F_RDLCK && !ofile_can_read(f))
		return -EBADF;
	if (fl->l_type == F_WRLCK && !ofile_can_write(f))
		return -EBADF;
	return 0;
}

/* The range of @fl, as programs count, becomes @out's, as the kernel counts in the stub. */
static int to_stub(struct ofile *f, int fd, const struct flock *fl, struct flock *out)
{
	off_t start, base = 0, len = fl->l_len;

	if (fl->l_whence == SEEK_CUR)
		base = ofile_tell(f, fd);
	else if (fl->l_whence == SEEK_END)
		base = plfs_size(f->file);
	else if (fl->l_whence != SEEK_SET)
		base = -EINVAL;
	if (base < 0)
		return (int)base;
	if (__builtin_add_overflow(base, fl->l_start, &start))
		return -EOVERFLOW;
	if (len < 0) {
		if (__builtin_add_overflow(start, len, &start))
			return -EINVAL;
		len = -len;
	}
	if (start < 0)
		return -EINVAL;
	if (len && len - 1 > OFF_MAX - start)
		return -EOVERFLOW;
	start = start > OFF_MAX - PLFS_BODY_OFF ? OFF_MAX : start + PLFS_BODY_OFF; /* the last few are one */
	if (len - 1 > OFF_MAX - start)
		len = 0; /* to the end of what can be locked, which is where it ends anyway */
	*out = *fl;
	out->l_whence = SEEK_SET;
	out->l_start = start;
	out->l_len = len;
	return 0;
}

/* F_GETLK: who holds it, in the program's terms. */
static void show_holder(struct flock *fl, const struct flock *stub)
{
	if (stub->l_type == F_UNLCK) { /* nobody: the rest stays as it was */
		fl->l_type = F_UNLCK;
		return;
	}
	*fl = *stub;
	fl->l_start -= PLFS_BODY_OFF;
	if (fl->l_start < 0) {
		if (fl->l_len)
			fl->l_len += fl->l_start > -fl->l_len ? fl->l_start : 1 - fl->l_len;
		fl->l_start = 0;
	}
}

bool lock_is_command(int cmd)
{
	return cmd == F_GETLK || cmd == F_SETLK || cmd == F_SETLKW || cmd == F_OFD_GETLK ||
	       cmd == F_OFD_SETLK || cmd == F_OFD_SETLKW;
}

/* Before a lock changes: what was written so far can be seen by the next holder. */
static int prepare(struct ofile *f, int fd, int cmd, const struct flock *fl, struct flock *stub)
{
	int r = user_readable(fl, sizeof(*fl)) == sizeof(*fl) ? to_stub(f, fd, fl, stub) : -EFAULT;

	if (r < 0 || cmd == F_GETLK || cmd == F_OFD_GETLK)
		return r;
	r = check_access(f, fl);
	if (!r && fl->l_type != F_WRLCK) /* unlocked, or no longer alone */
		r = plfs_commit(f->file);
	if (!r && fl->l_type != F_UNLCK && (cmd == F_SETLK || cmd == F_SETLKW))
		plfs_note_record_lock(f->file);
	return r;
}

/* A lock on @fd has been got: what the holders before wrote is to be seen. */
static int acquired(int fd)
{
	struct ofile *f = fd_find(fd);
	int r = 0;

	if (f) {
		r = plfs_refresh(f->file);
		fd_put(f);
	}
	return r;
}

int lock_fcntl(struct ofile *f, int fd, int cmd, struct flock *fl)
{
	bool get = cmd == F_GETLK || cmd == F_OFD_GETLK;
	struct flock stub;
	int r = prepare(f, fd, cmd, fl, &stub);

	fd_put(f);
	if (r < 0)
		return r;
	if (sys.fcntl(fd, cmd, &stub) < 0)
		return -errno;
	if (get)
		show_holder(fl, &stub);
	return get || fl->l_type == F_UNLCK ? 0 : acquired(fd);
}

static int lock_whole(int fd, int op, bool ours)
{
	int r = ours ? plfs_flock(fd, op) : -EOPNOTSUPP;

	return r != -EOPNOTSUPP ? r : sys.flock(fd, op) ? -errno : 0;
}

EXPORT int flock(int fd, int op)
{
	struct ofile *f = fd_get(&fd);
	int r = 0, what = op & ~LOCK_NB;
	bool ours;

	if (!f)
		return sys.flock(fd, op);
	if (what != LOCK_EX)
		r = plfs_commit(f->file);
	ours = plfs_has_own_flock(f->file);
	fd_put(f); /* nothing is held while the kernel waits */
	if (!r)
		r = lock_whole(fd, op, ours);
	return (int)done(r || what == LOCK_UN ? r : acquired(fd));
}

/* Locks of this process do not show in F_GETLK. */
static int test_lock(struct ofile *f, int fd, struct flock *fl)
{
	int r;

	fl->l_type = F_RDLCK;
	r = lock_fcntl(f, fd, F_GETLK, fl);
	return r < 0 || fl->l_type == F_UNLCK || fl->l_pid == sys.getpid() ? r : -EACCES;
}

/* Takes over the reference to @f. */
static int lockf_ours(struct ofile *f, int fd, int cmd, off_t len)
{
	struct flock fl = {.l_type = F_WRLCK, .l_whence = SEEK_CUR, .l_len = len};

	switch (cmd) {
	case F_ULOCK:
		fl.l_type = F_UNLCK;
		return lock_fcntl(f, fd, F_SETLK, &fl);
	case F_LOCK:
		return lock_fcntl(f, fd, F_SETLKW, &fl);
	case F_TLOCK:
		return lock_fcntl(f, fd, F_SETLK, &fl);
	case F_TEST:
		return test_lock(f, fd, &fl);
	default:
		fd_put(f);
		return -EINVAL;
	}
}

EXPORT int lockf(int fd, int cmd, off_t len)
{
	struct ofile *f = fd_get(&fd);

	if (!f) {
		plfs_note_plain_lock();
		return sys.lockf(fd, cmd, len);
	}
	return (int)done(lockf_ours(f, fd, cmd, len));
}
ALIAS(lockf64, lockf);
