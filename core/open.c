/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Descriptions: opening, adopting and closing them. What a path leads to is decided here, and whether what is made
 * there is a logical file.
 */
#include "file.h"

#include "log.h"
#include "own.h"
#include "writers.h"

/* Whether this process has taken record locks on the stub. */
static bool has_record_locks(const struct stat *st)
{
	struct inode *ino = inode_find(st->st_dev, st->st_ino);
	bool has;

	if (!ino)
		return false;
	has = ino->record_locks;
	inode_put(ino, NULL);
	return has;
}

/*
 * A hidden descriptor of the stub beside the program's @fd. It shares the description, unless that appends: pwrite() on
 * such a one ignores its offset, so the header and the size need another. But to move that out of the program's way means to
 * close a descriptor of the file, which would take the process's record locks away: then O_APPEND is lifted for each call.
 */
static int hidden_fds(struct plfs_file *f, int fd, const struct stat *st, int flags)
{
	int other = -1;

	f->own_fd = -1;
	f->fd = sys_fd_dup(fd);
	if (f->fd < 0)
		return f->fd;
	if (flags & O_APPEND && !has_record_locks(st))
		other = stub_reopen(fd, f->writable ? O_RDWR : O_RDONLY);
	if (other >= 0) {
		f->own_fd = f->fd;
		f->fd = other;
	}
	f->append_flag = other < 0 && flags & O_APPEND && f->writable;
	return 0;
}

static int file_new(struct plfs_mount *m, int fd, const struct stat *st, int flags, struct plfs_file **out)
{
	struct plfs_file *f = mem_zalloc(sizeof(*f));
	int ret = -ENOMEM;

	if (!f)
		return ret;
	f->writable = (flags & O_ACCMODE) != O_RDONLY;
	ret = hidden_fds(f, fd, st, flags);
	if (!ret)
		ret = inode_get(m, f->fd, st, &f->ino);
	if (ret) {
		file_close_fds(f);
		mem_free(f);
		return ret;
	}
	mutex_lock(&f->ino->lock);
	if (f->ino->files)
		inode_refresh(f->ino); /* an open sees what was closed before it, though we have the file open already */
	f->next = f->ino->files;
	f->ino->files = f;
	mutex_unlock(&f->ino->lock);
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
	int fd = own_openat(dirfd, path, flags, mode);

	return fd < 0 ? -errno : fd;
}

/*
 * The flags that a stub is opened with: readable always, since the header must be read; truncated never, since the
 * header must stay.
 */
static int stub_flags(int flags)
{
	int access_mode = flags & (O_WRONLY | O_RDWR | O_TRUNC) ? O_RDWR : O_RDONLY;

	return (flags & ~(O_ACCMODE | O_CREAT | O_EXCL | O_TRUNC | O_DIRECT)) | access_mode;
}

static int close_failed(int fd, int ret)
{
	own_close(fd);
	return ret;
}

/* Give the kernel's descriptor @fd of a stub a description, or close it. */
static int finish_open(struct plfs_mount *m, int fd, const struct stat *st, int flags, struct plfs_file **out)
{
	int ret;

	ret = file_new(m, fd, st, flags & O_TRUNC ? flags | O_RDWR : flags, out);
	if (!ret && flags & O_TRUNC && st->st_size) {
		ret = plfs_truncate(*out, 0);
		if (ret)
			plfs_close(*out);
	}
	if (ret) {
		own_close(fd);
		*out = NULL;
		return ret;
	}
	sys.lseek(fd, PLFS_BODY_OFF, SEEK_SET);
	return fd;
}

/* Whoever unlinked the stub @fd may have left its container to us, who had just opened it. */
static void remove_unlinked(struct plfs_mount *m, int fd, const struct stat *st)
{
	struct container c;
	struct stub stub;

	if (!stub_marked(st->st_mode) || st->st_nlink || !st->st_size || stub_read(fd, &stub) || !stub.has_container ||
	    stub_is_copy(&stub, st->st_ino))
		return;
	stub_unmark_in_use(fd);
	if (stub_in_use(fd))
		return;
	container_init_for(&c, &m->store, stub.id, st);
	container_look_at_list(&c, fd);
	writers_remove_container(m, &c, st->st_ino);
}

/*
 * *@gone: the last file that was found without a name. Found twice, it was reached through /proc/self/fd, which is as
 * good as a name.
 */
static int open_existing(struct plfs_mount *m, int dirfd, const char *path, int flags, mode_t mode, ino_t *gone,
			 struct plfs_file **out)
{
	bool exclusive = (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL);
	struct stat st;
	int fd;

	if (sys.fstatat(dirfd, path, &st, flags & O_NOFOLLOW || exclusive ? AT_SYMLINK_NOFOLLOW : 0))
		return -errno;
	if (exclusive)
		return -EEXIST;
	if (S_ISDIR(st.st_mode) && flags & O_CREAT)
		return -EISDIR;
	if (!stub_marked(st.st_mode) || !mount_has_dev(st.st_dev)) {
		unsigned depth = critical_pause(); /* a fifo waits for its other end */

		fd = sys.openat(dirfd, path, flags & ~O_CREAT, mode); /* a cancellation point */
		fd = fd < 0 ? -errno : fd;
		critical_resume(depth);
		return fd;
	}
	fd = kernel_open(dirfd, path, stub_flags(flags), 0);
	if (fd < 0)
		return fd;
	stub_mark_in_use(fd);
	/* Replaced in between by something else, or unlinked by somebody who did or did not see that we have it open. */
	if (sys.fstat(fd, &st))
		return close_failed(fd, -errno);
	if (!stub_marked(st.st_mode) || (!st.st_nlink && *gone != st.st_ino)) {
		*gone = st.st_ino;
		remove_unlinked(m, fd, &st);
		own_close(fd);
		return -EAGAIN;
	}
	return finish_open(m, fd, &st, flags, out);
}

/*
 * @fd, just made with the mark, is on a file system that is mounted below the backend, where all files are plain: take
 * the mark off, and open it the way that was asked for.
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
		own_close(again);
	}
	return fd;
}

static int create(struct plfs_mount *m, int dirfd, const char *path, int flags, mode_t mode, struct plfs_file **out)
{
	bool log = mount_wants_log(m, path);
	struct stat st;
	int fd;

	if (log)
		fd = kernel_open(dirfd, path, stub_flags(flags) | O_RDWR | O_CREAT | O_EXCL, (mode & 06777) | S_ISVTX);
	else /* O_EXCL as well: what is there may be a stub, which must not be truncated */
		fd = kernel_open(dirfd, path, flags | O_EXCL, mode & ~S_ISVTX);
	if (fd == -EEXIST && !(flags & O_EXCL))
		return -EAGAIN; /* somebody was faster, or a dangling link */
	if (fd < 0 || !log)
		return fd;
	stub_mark_in_use(fd);
	if (sys.fstat(fd, &st))
		return close_failed(fd, -errno);
	if (!st.st_nlink && st.st_size) /* unlinked before its mark, by who has removed the container that others had made? */
		return close_failed(fd, -EAGAIN);
	if (!mount_has_dev(st.st_dev))
		return make_plain(fd, &st, dirfd, path, flags);
	if (!stub_marked(st.st_mode)) {
		log_error("backend %s does not keep the sticky bit of a file: %s stays a plain file", m->backend, path);
		return fd;
	}
	return finish_open(m, fd, &st, flags & ~O_TRUNC, out);
}

int plfs_open(struct plfs_mount *m, int dirfd, const char *path, int flags, mode_t mode, struct plfs_file **out)
{
	int saved ERRNO_KEPT = errno;
	struct stat st;
	ino_t gone = 0;
	int ret = -EAGAIN;

	*out = NULL;
	/* With a slash at the end nothing is made: the kernel says what of it all comes first. */
	if (is_special(flags) || (flags & O_CREAT && *path && path[strlen(path) - 1] == '/'))
		return kernel_open(dirfd, path, flags, mode & ~S_ISVTX);
	/* Whether it exists may change under us; each time round somebody else has got on. */
	if (flags & O_CREAT && flags & (O_EXCL | O_TRUNC)) /* most likely it does not */
		ret = create(m, dirfd, path, flags, mode, out);
	for (int tries = 0; (ret == -EAGAIN && tries < 100) || (ret == -ESTALE && tries < 5); tries++) {
		ret = open_existing(m, dirfd, path, flags, mode, &gone, out);
		if (ret == -ENOENT && flags & O_CREAT)
			ret = create(m, dirfd, path, flags, mode, out);
		/* A symbolic link to nothing: the kernel makes what it points to. */
		if (ret == -EAGAIN && tries == 50 && !sys.fstatat(dirfd, path, &st, AT_SYMLINK_NOFOLLOW) &&
		    S_ISLNK(st.st_mode))
			return kernel_open(dirfd, path, flags & ~O_TRUNC, mode & ~S_ISVTX);
	}
	log_debug(LOG_OPEN, "open %s flags %#x: %s %d", path, flags, *out ? "logical" : "plain", ret);
	return ret;
}

int file_of(int fd, struct plfs_file **out)
{
	char name[PATH_MAX];
	struct plfs_mount *m;
	struct stat st;
	int flags;

	*out = NULL;
	if (sys.fstat(fd, &st))
		return -errno;
	if (!stub_marked(st.st_mode) || !mount_has_dev(st.st_dev))
		return 0;
	m = mount_of_backend_path(stub_name(fd, name, sizeof(name)));
	flags = sys.fcntl(fd, F_GETFL);
	if (!m || flags < 0 || flags & O_PATH)
		return 0;
	return file_new(m, fd, &st, flags, out);
}

int plfs_adopt(int fd, struct plfs_file **out)
{
	int saved ERRNO_KEPT = errno;
	int ret = file_of(fd, out);

	if (*out) {
		stub_mark_in_use(fd); /* a program that does not know us may have opened it */
		(*out)->ino->shared = true;
	}
	return ret;
}

int plfs_close(struct plfs_file *f)
{
	int saved ERRNO_KEPT = errno;
	struct inode *ino = f->ino;
	int ret = 0;

	file_begin(f);
	if (ino->files == f && !f->next) /* most likely the last: close the log while the stub can be written to */
		ret = inode_close_writer(ino, f->fd);
	else
		inode_commit(ino, f->fd);
	inode_publish_found(ino, f->fd);
	for (struct plfs_file **p = &ino->files; *p; p = &(*p)->next) {
		if (*p == f) {
			*p = f->next;
			break;
		}
	}
	file_end(f);
	inode_put(ino, f);
	mem_free(f);
	return ret;
}
