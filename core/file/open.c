/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Descriptions: opening, adopting and closing them. What a path leads to is decided here, and whether what is
 * made there is a logical file.
 */
#include "core/file/file.h"
#include "core/file/logged.h"
#include "core/file/release.h"

#include "core/backend/nested.h"
#include "core/backend/stub_known.h"
#include "core/backend/stub_use.h"
#include "core/base/msg.h"
#include "core/observe/hooks.h"
#include "core/base/io.h"
#include "core/backend/writer_table.h"

bool file_has_record_locks(const struct stat *st)
{
	struct inode *ino = inode_find(st->st_dev, st->st_ino);
	bool has;

	if (!ino)
		return false;
	mutex_lock(&ino->lock);
	has = ino->record_locks;
	mutex_unlock(&ino->lock);
	inode_put(ino, NULL);
	return has;
}

/* Whether it is a stub that this process has open. */
static bool is_open_stub(struct stat *st)
{
	struct inode *ino = inode_find(st->st_dev, st->st_ino);

	if (!ino)
		return false;
	st->st_mode |= S_ISVTX;
	inode_put(ino, NULL);
	return true;
}

void file_know_at(struct stat *st, int dirfd, const char *path, int at_flags)
{
	bool section CRITICAL = critical_begin();

	if (stub_is_known(st) || is_open_stub(st))
		return;
	stub_know_at(st, dirfd, path, at_flags);
}

/*
 * Among the flags of open(2): the description itself is O_WRONLY. Its bit is that of O_PATH, with which no
 * file is opened here.
 */
#define UNREADABLE O_PATH

/*
 * A hidden descriptor of the stub beside the program's @fd. It shares the description, unless that appends:
 * pwrite() on such a one ignores its offset, so the header and the size need another. But to move that out of
 * the program's way means to close a descriptor of the file, which would take the process's record locks
 * away: then O_APPEND is taken off for good, and preload/ knows alone that it appends. (For each call would
 * not do: another process that has the description puts it back in the middle of one.)
 *
 * A description that can only be written is of no use here: it was opened by a program without the library,
 * and no read lock marks it as in use.
 */
static int hidden_fds(struct plfs_file *f, int fd, const struct stat *st, int flags)
{
	int other = -1;

	f->own_fd = -1;
	if (unlikely(flags & UNREADABLE)) {
		f->fd = stub_reopen(fd, O_RDWR);
		sys_fd_own(&f->fd);
		return f->fd < 0 ? f->fd : 0;
	}
	f->fd = sys_fd_dup(fd);
	if (f->fd < 0)
		return f->fd;
	if (flags & O_APPEND && !file_has_record_locks(st))
		other = stub_reopen(fd, f->writable ? O_RDWR : O_RDONLY);
	if (other >= 0) {
		f->own_fd = f->fd;
		f->fd = other;
	}
	sys_fd_own(&f->fd);
	sys_fd_own(&f->own_fd);
	f->lifted = other < 0 && flags & O_APPEND && f->writable;
	if (f->lifted && sys.fcntl(f->fd, F_SETFL, sys.fcntl(f->fd, F_GETFL) & ~O_APPEND))
		return -errno;
	return 0;
}

/* @f becomes one of its inode's. False: the last of those has gone meanwhile, and so has the reference. */
static bool join(struct plfs_file *f)
{
	struct inode *ino = f->ino;
	bool over;

	mutex_lock(&ino->lock);
	over = ino->over;
	if (!over) {
		if (ino->opened)
			/* an open sees what was closed before it, though we have the file open already */
			inode_refresh(ino);
		ino->opened = true;
		f->next = ino->files;
		ino->files = f;
	}
	mutex_unlock(&ino->lock);
	if (unlikely(over))
		inode_put_over(ino);
	return !over;
}

static int file_new(struct plfs_mount *m, int fd, const struct stat *st, int flags, struct plfs_file **out)
{
	struct plfs_file *f = mem_zalloc(sizeof(*f));
	int ret = -ENOMEM;

	if (!f)
		return ret;
	f->writable = (flags & O_ACCMODE) != O_RDONLY;
	ret = hidden_fds(f, fd, st, flags);
	do {
		if (!ret)
			ret = inode_get(m, f->fd, st, &f->ino);
	} while (!ret && !join(f));
	if (ret) {
		file_close_fds(f);
		mem_free(f);
		return ret;
	}
	*out = f;
	return 0;
}

/* Names with a kernel meaning of their own, or no data: opened as they are. */
static bool is_special(int flags)
{
	return flags & (O_PATH | O_DIRECTORY) || (flags & O_TMPFILE) == O_TMPFILE;
}

/* What this makes is plain, so @mode has no sticky bit, unless it is to be a stub. */
static int kernel_open(int dirfd, const char *path, int flags, mode_t mode)
{
	int fd = io_openat(dirfd, path, flags, mode);

	return fd < 0 ? -errno : fd;
}

/*
 * The flags that a stub is opened with: readable always, since the header must be read; truncated never,
 * since the header must stay.
 */
static int stub_flags(int flags)
{
	int access_mode = flags & (O_WRONLY | O_RDWR | O_TRUNC) ? O_RDWR : O_RDONLY;

	return (flags & ~(O_ACCMODE | O_CREAT | O_EXCL | O_TRUNC | O_DIRECT)) | access_mode;
}

static int close_failed(int fd, int ret)
{
	io_close(fd);
	return ret;
}

/* What was found out of the files that a name led to, by inode number; 0: nothing. */
struct found {
	bool below; /* the name is of the directory that the mount has open, and nowhere else */
	/* the last one without a name. Twice: it was reached through /proc/self/fd, as good as a name */
	ino_t gone;
	ino_t stub, plain; /* by its header, whatever its mark says */
};

static void apply_found(const struct found *found, struct stat *st)
{
	if (unlikely(found->stub && found->stub == st->st_ino && S_ISREG(st->st_mode)))
		st->st_mode |= S_ISVTX;
	if (unlikely(found->plain && found->plain == st->st_ino && S_ISREG(st->st_mode)))
		st->st_mode &= ~(mode_t)S_ISVTX;
}

/* Whether a stub that has lost its mark can be recognised through the descriptor that the program gets. */
static bool can_look_later(int flags)
{
	return (flags & O_ACCMODE) != O_WRONLY && !(flags & (O_TRUNC | O_DIRECT));
}

/* Whether the header has neither a container nor the sentence, though it is no empty file. */
static bool is_unexplained(const struct plfs_file *f, const struct stat *st)
{
	bool unexplained;

	if (!st->st_size)
		return false;
	mutex_lock(&f->ino->lock);
	unexplained = inode_seems_bare(f->ino) && !f->ino->v.stub.explained && !f->ino->explained;
	mutex_unlock(&f->ino->lock);
	return unexplained;
}

/* @ret, of file_new(); 1: it is a plain file by its header, and is not open; -EIO: its header is lost. */
static int doubt(int fd, const struct stat *st, int ret, bool inherited, struct plfs_file **out)
{
	int blank = 0;

	if (likely(ret ? ret != -EIO : !is_unexplained(*out, st)))
		return ret;
	if (!ret && !inherited)
		blank = stub_look_blank(NULL, fd, st);
	if (!ret && !blank && !stub_is_headless(fd))
		return 0;
	if (!ret)
		plfs_close(*out);
	*out = NULL;
	if (blank < 0)
		stub_tell_damaged(fd);
	return blank < 0 ? blank : stub_make_plain(fd) ? 1 : -EIO;
}

/*
 * Give the kernel's descriptor @fd of a stub a description, or close it. -EAGAIN: it is a plain file by its
 * header.
 */
static int finish_open(struct plfs_mount *m, int fd, const struct stat *st, int flags, struct plfs_file **out,
		       struct found *found)
{
	int ret;

	ret = file_new(nested_holding(m, fd, found->below), fd, st, flags & O_TRUNC ? flags | O_RDWR : flags,
		       out);
	ret = doubt(fd, st, ret, false, out);
	if (ret > 0) {
		found->plain = st->st_ino;
		ret = -EAGAIN;
	}
	if (!ret && flags & O_TRUNC) {
		if (st->st_size)
			ret = plfs_truncate(*out, 0);
		else /* it stays without a header */
			stub_touch(fd);
		if (ret)
			plfs_close(*out);
	}
	if (ret) {
		io_close(fd);
		*out = NULL;
		return ret;
	}
	sys.lseek(fd, PLFS_BODY_OFF, SEEK_SET);
	return fd;
}

void file_remove_unlinked(struct plfs_mount *m, int fd, const struct stat *st)
{
	struct container c;
	struct stub stub;

	if (!stub_marked(st->st_mode) || st->st_nlink || !st->st_size || stub_read(fd, &stub) ||
	    !stub.has_container || stub_is_copy(&stub, st->st_ino))
		return;
	stub_unmark_in_use(fd);
	if (stub_in_use(fd))
		return;
	m = nested_init_container(mount_followed(m, fd), &c, fd, &stub, st);
	writer_table_remove_container(m, &c, st->st_ino);
}

/* @st: attributes from before. -EAGAIN: it is a stub by its header. */
static int open_plain(int dirfd, const char *path, int flags, mode_t mode, const struct stat *st,
		      struct found *found)
{
	unsigned depth = critical_pause(); /* a fifo waits for its other end */
	int fd = sys.openat(dirfd, path, flags & ~O_CREAT, mode); /* a cancellation point */
	struct stat now;

	fd = fd < 0 ? -errno : fd;
	critical_resume(depth);
	if (fd < 0 || !stub_maybe_unmarked(st) || !can_look_later(flags) || found->plain == st->st_ino ||
	    sys.fstat(fd, &now))
		return fd;
	stub_know(&now, fd);
	if (!stub_marked(now.st_mode))
		return fd;
	found->stub = now.st_ino;
	return close_failed(fd, -EAGAIN);
}

static int open_existing(struct plfs_mount *m, int dirfd, const char *path, int flags, mode_t mode,
			 struct found *found, struct plfs_file **out)
{
	bool exclusive = (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL);
	int at_flags = flags & O_NOFOLLOW || exclusive ? AT_SYMLINK_NOFOLLOW : 0;
	struct stat st;
	int fd, ret;

	if (sys.fstatat(dirfd, path, &st, at_flags))
		return -errno;
	if (exclusive)
		return -EEXIST;
	if (S_ISDIR(st.st_mode) && flags & O_CREAT)
		return -EISDIR;
	apply_found(found, &st);
	/* One that is open here is not to be opened and closed to find out: its record locks would go. */
	if (stub_maybe_unmarked(&st) && found->plain != st.st_ino && !is_open_stub(&st) &&
	    !can_look_later(flags))
		file_know_at(&st, dirfd, path, at_flags);
	if (!stub_marked(st.st_mode) || !nested_has_dev(st.st_dev))
		return open_plain(dirfd, path, flags, mode, &st, found);
	fd = kernel_open(dirfd, path, stub_flags(flags), 0);
	if (fd < 0)
		return fd;
	ret = stub_mark_in_use(fd);
	if (ret)
		return close_failed(fd, ret);
	/*
	 * Replaced in between by something else, or unlinked by a process that did or did not see that we
	 * have it open.
	 */
	if (sys.fstat(fd, &st))
		return close_failed(fd, -errno);
	apply_found(found, &st);
	if (unlikely(stub_maybe_unmarked(&st)))
		stub_know(&st, fd);
	if (!stub_marked(st.st_mode) || (!st.st_nlink && found->gone != st.st_ino)) {
		found->gone = st.st_ino;
		file_remove_unlinked(m, fd, &st);
		io_close(fd);
		return -EAGAIN;
	}
	return finish_open(m, fd, &st, flags, out, found);
}

/*
 * @fd, just made with the mark, is where all files are plain, on a file system that is mounted below the
 * backend or behind a link out of it: take the mark off, and open it the way that was asked for.
 */
static int make_plain(int fd, const struct stat *st, int dirfd, const char *path, int flags)
{
	int again;

	stub_unmark_in_use(fd);
	if (sys.fchmod(fd, st->st_mode & 06777))
		return close_failed(fd, -errno);
	again = kernel_open(dirfd, path, flags & ~(O_CREAT | O_EXCL | O_TRUNC), 0);
	if (again >= 0) { /* its mode may forbid it, then the descriptor can do more than it should */
		sys.dup3(again, fd, flags & O_CLOEXEC);
		io_close(again);
	}
	return fd;
}

static int create(struct plfs_mount *m, int dirfd, const char *path, int flags, mode_t mode,
		  struct found *found, struct plfs_file **out)
{
	bool log = mount_wants_log(m, path);
	struct stat st;
	int fd, ret;

	if (log)
		fd = kernel_open(dirfd, path, stub_flags(flags) | O_CREAT | O_EXCL,
				 (mode & 06777) | S_ISVTX);
	else /* O_EXCL as well: what is there may be a stub, which must not be truncated */
		fd = kernel_open(dirfd, path, flags | O_EXCL, mode & ~S_ISVTX);
	if (fd == -EEXIST && !(flags & O_EXCL))
		return -EAGAIN; /* another process was faster, or a dangling link */
	if (fd < 0 || !log)
		return fd;
	ret = stub_mark_in_use(fd);
	if (ret)
		return close_failed(fd, ret);
	if (sys.fstat(fd, &st))
		return close_failed(fd, -errno);
	/* unlinked before its mark, by a process that has removed the container others had made? */
	if (!st.st_nlink && st.st_size)
		return close_failed(fd, -EAGAIN);
	if (!nested_has_dev(st.st_dev) || mount_lacks_file(m, fd))
		return make_plain(fd, &st, dirfd, path, flags);
	if (!stub_marked(st.st_mode)) {
		if (dirs_time_ns(&st.st_ctim) != dirs_time_ns(&st.st_mtim)) /* flattened meanwhile */
			return flags & O_EXCL ? fd : close_failed(fd, -EAGAIN);
		msg_error("backend %s does not keep the sticky bit of a file: %s stays a plain file",
			  m->backend, path);
		return fd;
	}
	return finish_open(m, fd, &st, flags & ~O_TRUNC, out, found);
}

/* From here on calls on it are counted. */
static struct tally *count_file(struct plfs_file *f, int fd)
{
	struct inode *ino = f->ino;
	struct tally *t = observe_file(fd, true, &ino->lock);

	mutex_lock(&ino->lock);
	ino->tally = t;
	mutex_unlock(&ino->lock);
	return t;
}

static int open_file(struct plfs_mount *m, int dirfd, const char *path, int flags, mode_t mode,
		     struct plfs_file **out)
{
	int saved ERRNO_KEPT = errno;
	struct stat st;
	struct found found = { .below = dirfd == m->dirfd };
	int ret = -EAGAIN;

	*out = NULL;
	/* With a slash at the end nothing is made: the kernel says what of it all comes first. */
	if (is_special(flags) || (flags & O_CREAT && *path && path[strlen(path) - 1] == '/'))
		return kernel_open(dirfd, path, flags, mode & ~S_ISVTX);
	/* Whether it exists may change under us; each time round another process has got on. */
	if (flags & O_CREAT && flags & (O_EXCL | O_TRUNC)) /* most likely it does not */
		ret = create(m, dirfd, path, flags, mode, &found, out);
	for (int tries = 0; (ret == -EAGAIN && tries < 100) || (ret == -ESTALE && tries < 5); tries++) {
		ret = open_existing(m, dirfd, path, flags, mode, &found, out);
		if (ret == -ENOENT && flags & O_CREAT)
			ret = create(m, dirfd, path, flags, mode, &found, out);
		/* A symbolic link to nothing: the kernel makes what it points to. */
		if (ret == -EAGAIN && tries == 50 && !sys.fstatat(dirfd, path, &st, AT_SYMLINK_NOFOLLOW) &&
		    S_ISLNK(st.st_mode))
			return kernel_open(dirfd, path, flags & ~O_TRUNC, mode & ~S_ISVTX);
	}
	msg_debug(MSG_OPEN, "open %s flags %#x: %s %d", path, flags, *out ? "logical" : "plain", ret);
	return ret;
}

int plfs_open(struct plfs_mount *m, int dirfd, const char *path, int flags, mode_t mode,
	      struct plfs_file **out)
{
	uint64_t begin_ns = unlikely(observing) ? stamp_fine_ns() : 0;
	int ret = open_file(m, dirfd, path, flags, mode, out);

	if (unlikely(observing) && *out)
		seen_end_open(count_file(*out, ret), begin_ns, 0);
	else if (unlikely(observing) && ret >= 0)
		hooks_opened(ret, begin_ns);
	return ret;
}

/*
 * Whether this process may have record locks on the file, of before an exec. A lock of a description would be
 * in the way of those, and asking for it takes none.
 */
static bool may_have_locks(int fd)
{
	struct flock lk = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	return !sys.fcntl(fd, F_OFD_GETLK, &lk) && lk.l_type != F_UNLCK;
}

/* Whether the marked file is a stub of which nobody can say where it is, as /proc is not there. */
static bool has_lost_name(int fd, int flags)
{
	char name[PATH_MAX];

	if (flags < 0 || flags & (O_PATH | O_WRONLY)) /* a description of ours can be read */
		return false;
	return *stub_name(fd, name, sizeof(name)) != '/' && !stub_is_headless(fd);
}

int file_of(int fd, struct plfs_file **out)
{
	struct plfs_mount *m;
	struct stat st;
	int flags, ret;

	*out = NULL;
	if (sys.fstat(fd, &st))
		return -errno;
	if (!mount_has_dev(st.st_dev))
		return 0;
	if (!stub_marked(st.st_mode) && S_ISREG(st.st_mode) && may_have_locks(fd))
		stub_look_no_more();
	if (!stub_marked(st.st_mode) && !stub_maybe_unmarked(&st))
		return 0;
	m = mount_of_file(fd);
	flags = sys.fcntl(fd, F_GETFL);
	if (!m && stub_marked(st.st_mode) && has_lost_name(fd, flags))
		return -ENOENT;
	if (!m || flags < 0 || flags & O_PATH)
		return 0;
	if (!stub_marked(st.st_mode))
		stub_know(&st, fd);
	if (!stub_marked(st.st_mode))
		return 0;
	if (unlikely((flags & O_ACCMODE) == O_WRONLY))
		flags |= UNREADABLE;
	ret = doubt(fd, &st, file_new(nested_now(m, fd), fd, &st, flags, out), true, out);
	return ret > 0 ? 0 : ret;
}

int plfs_adopt(int fd, struct plfs_file **out)
{
	int saved ERRNO_KEPT = errno;
	int ret = file_of(fd, out);

	if (*out && unlikely(observing))
		count_file(*out, fd);
	if (*out) {
		/* a program that does not know us may have opened it */
		stub_mark_in_use(file_marked_fd(*out));
		(*out)->ino->shared = true;
	}
	return ret;
}

void plfs_disable(int fd)
{
	int saved ERRNO_KEPT = errno;
	int flags = sys.fcntl(fd, F_GETFD);

	if (mount_count() && flags >= 0)
		sys.dup3(mount_at(0)->dirfd, fd, flags & FD_CLOEXEC ? O_CLOEXEC : 0);
}

bool plfs_can_write(const struct plfs_file *f) { return f->writable; }

bool plfs_lifts_append(const struct plfs_file *f) { return f->lifted; }

static int end_writing(struct inode *ino, int fd)
{
	int ret = logged_close_writer(ino, fd), ret2 = release_end(ino, fd);

	ret = ret ? ret : ret2;
	return ret || !ino->anew_told ? ret : -EIO;
}

int plfs_close(struct plfs_file *f)
{
	int saved ERRNO_KEPT = errno;
	struct inode *ino = f->ino;
	struct seen call;
	int ret = 0;

	seen_begin(&call, ino->tally, SEEN_CLOSE);
	file_begin(f);
	/* most likely the last: close the log while the stub can be written to */
	if (ino->files == f && !f->next)
		ret = end_writing(ino, f->fd);
	else
		logged_commit(ino, f->fd);
	logged_publish_found(ino, f->fd);
	for (struct plfs_file **p = &ino->files; *p; p = &(*p)->next) {
		if (*p == f) {
			*p = f->next;
			break;
		}
	}
	file_end(f);
	/* before the inode goes, whose lock is that of the counters */
	seen_end(&call, 0, ret);
	inode_put(ino, f);
	mem_free(f);
	return ret;
}
