/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names and attributes: unlink, rename, chmod, chown, and what stat shows. The kernel does each of them on the stub; here is
 * what the container needs besides.
 */
#include "file.h"

#include "bare.h"
#include "own.h"
#include "writers.h"

#include <stdio.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* A stub that is about to lose its last name. */
struct doomed {
	int fd; /* negative: nothing to look after */
	bool open; /* by this process */
};

/*
 * Look at the name @path before it goes away. A file that this process has open is left to its last
 * close: opening and closing the stub once more would drop the program's own fcntl() locks.
 */
static void doomed_look(struct doomed *d, int dirfd, const char *path)
{
	struct inode *ino;
	struct stat st;
	int fd;

	*d = (struct doomed){ .fd = -1 };
	if (sys.fstatat(dirfd, path, &st, AT_SYMLINK_NOFOLLOW) || !stub_marked(st.st_mode) || st.st_nlink > 1 ||
	    !st.st_size || !mount_has_dev(st.st_dev))
		return;
	ino = inode_find(st.st_dev, st.st_ino);
	if (ino) {
		d->open = true;
		inode_put(ino, NULL);
		return;
	}
	fd = own_openat(dirfd, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	d->fd = sys_fd_hide_briefly(fd < 0 ? -errno : fd);
	if (d->fd < 0)
		log_debug(LOG_PATH, "%s: cannot read the stub, its container stays: %s", path, strerror(-d->fd));
}

static void doomed_finish(struct doomed *d, struct plfs_mount *m)
{
	struct container c;
	struct stub stub;
	struct stat st;

	if (d->fd < 0)
		return;
	/* Looked at now, when nobody can open it any more: it may have been claimed since it had a name. */
	if (!stub_read(d->fd, &stub) && stub.has_container && !sys.fstat(d->fd, &st) && !st.st_nlink &&
	    !stub_is_copy(&stub, st.st_ino) && !stub_in_use(d->fd)) {
		container_init_for(&c, &m->store, stub.id, &st);
		container_look_at_list(&c, d->fd);
		writers_remove_container(m, &c, st.st_ino);
	}
	sys_fd_close(&d->fd);
}

int plfs_unlink(struct plfs_mount *m, int dirfd, const char *path)
{
	int saved ERRNO_KEPT = errno;
	bool section CRITICAL = critical_begin();
	struct doomed d;
	int ret;

	doomed_look(&d, dirfd, path);
	ret = sys.unlinkat(dirfd, path, 0) ? -errno : 0;
	doomed_finish(&d, m);
	return ret;
}

/* Best effort: where a directory cannot be synced, nor can the program do it. */
static void sync_dir_of(int dirfd, const char *path)
{
	const char *slash = strrchr(path, '/');
	char dir[PATH_MAX] = ".";
	int fd;

	if (slash)
		snprintf(dir, sizeof(dir), "%.*s", (int)(slash - path) + 1, path);
	fd = sys_fd_hide_briefly(own_openat(dirfd, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	if (fd >= 0)
		own_fsync(fd);
	sys_fd_close(&fd);
}

int plfs_rename(struct plfs_mount *m, int fromfd, const char *from, int tofd, const char *to, unsigned flags)
{
	int saved ERRNO_KEPT = errno;
	bool section CRITICAL = critical_begin();
	struct doomed d = { .fd = -1 };
	int ret;

	if (!flags)
		doomed_look(&d, tofd, to);
	ret = flags ? sys.renameat2(fromfd, from, tofd, to, flags) : sys.renameat(fromfd, from, tofd, to);
	ret = ret ? -errno : 0;
	/* What a synced file consists of goes only when it is sure that it has lost its name. */
	if (!ret && !m->store.keeps_order && (d.open || (d.fd >= 0 && stub_is_synced(d.fd))))
		sync_dir_of(tofd, to);
	doomed_finish(&d, m);
	return ret;
}

/* ---- attributes ---- */

static int stat_of(int dirfd, const char *path, struct stat *st, int at_flags)
{
	int ret = path ? sys.fstatat(dirfd, path, st, at_flags & (AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH)) :
		sys.fstat(dirfd, st);

	return ret ? -errno : 0;
}

/* The container of a stub, by the inode that is open here or by its header. False: there is none, or it cannot be read. */
static bool find_container(int dirfd, const char *path, const struct stat *st, int at_flags, struct container *c)
{
	struct inode *ino = inode_find(st->st_dev, st->st_ino);
	bool found = false;
	int fd;

	if (ino) {
		mutex_lock(&ino->lock);
		fd = file_any_fd(ino);
		if (fd >= 0) /* others may have made it since we looked */
			bare_look(ino, fd);
		found = ino->stub.has_container;
		if (found)
			*c = ino->c;
		mutex_unlock(&ino->lock);
		inode_put(ino, NULL);
		return found;
	}
	if (path && st->st_size) {
		char name[PATH_MAX];
		struct plfs_mount *m;
		struct stub stub;

		fd = own_openat(dirfd, path, O_RDONLY | O_CLOEXEC | (at_flags & AT_SYMLINK_NOFOLLOW ? O_NOFOLLOW : 0));
		fd = sys_fd_hide(fd < 0 ? -errno : fd);
		if (fd < 0)
			return false;
		m = mount_of_backend_path(stub_name(fd, name, sizeof(name)));
		found = m && !stub_read(fd, &stub) && stub.has_container;
		if (found) {
			container_init_for(c, &m->store, stub.id, st);
			container_look_at_list(c, fd);
		}
		sys_fd_close(&fd);
	}
	return found;
}

/* What droppings made from now on follow, in the inode that is open here. */
static void remember_stub(int dirfd, const char *path, int at_flags, const struct stat *before)
{
	struct inode *ino = inode_find(before->st_dev, before->st_ino);
	struct stat st;

	if (!ino)
		return;
	mutex_lock(&ino->lock);
	if (ino->stub.has_container && !stat_of(dirfd, path, &st, at_flags) && st.st_ino == before->st_ino)
		container_set_stub(&ino->c, &st);
	mutex_unlock(&ino->lock);
	inode_put(ino, NULL);
}

/* What takes permissions away comes first to the container: what cannot be closed there is not to seem closed. */
static int close_container(struct container *c, const struct stat *st, mode_t mode)
{
	uid_t me = geteuid();

	if (!(st->st_mode & ~mode & 077) || (me && me != st->st_uid))
		return 0;
	return container_chmod(c, mode) == -EPERM ? -EPERM : 0;
}

int plfs_chmod(int dirfd, const char *path, mode_t mode, int at_flags)
{
	int saved ERRNO_KEPT = errno;
	bool section CRITICAL = critical_begin();
	struct container c;
	struct stat st;
	bool stub, found = false;
	int ret = stat_of(dirfd, path, &st, at_flags);

	if (ret)
		return ret;
	stub = stub_marked(st.st_mode) && mount_has_dev(st.st_dev);
	if (stub) {
		found = find_container(dirfd, path, &st, at_flags, &c);
		if (found)
			ret = close_container(&c, &st, mode);
		mode |= S_ISVTX;
	} else if (S_ISREG(st.st_mode) && mount_has_dev(st.st_dev)) {
		mode &= ~(mode_t)S_ISVTX; /* a plain file must not look like a stub */
	}
	if (ret) {
		log_error("%s: another user made it, and keeps it open to more users than mode %03o: copy the file, and remove it", c.dir, mode & 0777);
		return ret;
	}
	ret = path ? sys.fchmodat(dirfd, path, mode, at_flags) : sys.fchmod(dirfd, mode);
	if (ret)
		return -errno;
	if (stub)
		remember_stub(dirfd, path, at_flags, &st);
	return found ? container_chmod(&c, mode) : 0;
}

int plfs_chown(int dirfd, const char *path, uid_t uid, gid_t gid, int at_flags)
{
	int saved ERRNO_KEPT = errno;
	bool section CRITICAL = critical_begin();
	struct container c;
	struct stat st;
	bool found = false;
	int ret = stat_of(dirfd, path, &st, at_flags);

	if (ret)
		return ret;
	if (stub_marked(st.st_mode) && mount_has_dev(st.st_dev))
		found = find_container(dirfd, path, &st, at_flags, &c);
	ret = path ? sys.fchownat(dirfd, path, uid, gid, at_flags) : sys.fchown(dirfd, uid, gid);
	if (ret)
		return -errno;
	if (found)
		remember_stub(dirfd, path, at_flags, &st);
	return found ? container_chown(&c, uid, gid) : 0;
}

void plfs_before_utimes(int dirfd, const char *path, int at_flags)
{
	int saved ERRNO_KEPT = errno;
	bool section CRITICAL = critical_begin();
	struct inode *ino;
	struct stat st;

	if (stat_of(dirfd, path, &st, at_flags) || !stub_marked(st.st_mode))
		return;
	ino = inode_find(st.st_dev, st.st_ino);
	if (!ino)
		return;
	mutex_lock(&ino->lock);
	inode_commit(ino, file_any_fd(ino));
	mutex_unlock(&ino->lock);
	inode_put(ino, NULL);
}

/*
 * What this process has written so far shows in the times that it is told. @fd is a descriptor of @ino, whose lock is
 * held. The time of access stays what it was: we may have looked at the header just now.
 */
static void tell_times(struct inode *ino, int fd, struct stat *st)
{
	struct stat now;

	if (!ino->touched || fd < 0 || inode_publish(ino, fd) || sys.fstat(fd, &now))
		return;
	st->st_mtim = now.st_mtim;
	st->st_ctim = now.st_ctim;
}

/*
 * The size of a file that somebody may be writing, or was when he was killed: what the stub does not say yet is in
 * live files. @size stays what it is if the file cannot be read, or another one has its name by now.
 */
static __attribute__((noinline, cold)) void ask_live_files(const struct plfs_name *name, const struct stat *st,
							   uint64_t *size)
{
	int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
	struct plfs_file *f = NULL;
	struct stat now;
	int fd;

	if (*name->path) {
		fd = own_openat(name->dirfd, name->path, flags | (name->at_flags & AT_SYMLINK_NOFOLLOW ? O_NOFOLLOW : 0));
		fd = sys_fd_hide_briefly(fd < 0 ? -errno : fd);
	} else {
		fd = stub_reopen(name->dirfd, flags);
	}
	if (fd >= 0 && !sys.fstat(fd, &now) && now.st_ino == st->st_ino && now.st_dev == st->st_dev &&
	    !file_of(fd, &f) && f) {
		off_t known = plfs_size(f);

		if (known >= 0)
			*size = (uint64_t)known;
	}
	sys_fd_close(&fd);
	if (f)
		plfs_close(f);
}

/*
 * Whether the size of @ino, which seems to have no logs, is what the stub says. *@size is from attributes taken before, and
 * is brought up to date. Another process may have begun a log since the header was read: the table of writers tells. A
 * look at the header would move its time of access.
 */
static bool stub_says_it(struct inode *ino, int fd, uint64_t *size, const struct plfs_name *name)
{
	struct stat now;

	if (ino->stub.in_body)
		return true;
	if (writers_may_have_begun(ino->m, ino->key.ino))
		return bare_look(ino, fd) != 0;
	/* A log that has ended since the attributes were taken has published its size. */
	if ((!name || name->ended == WRITERS_UNKNOWN || name->ended != writers_ended()) && !sys.fstat(fd, &now))
		*size = stub_body_len(now.st_size);
	return true;
}

/* The logical size of a stub, from the inode if it is open here. @name: where it was found, or NULL. */
static uint64_t size_of(struct stat *st, const struct plfs_name *name)
{
	int saved ERRNO_KEPT = errno;
	bool section CRITICAL = critical_begin();
	struct inode *ino = inode_find(st->st_dev, st->st_ino);
	uint64_t size = stub_body_len(st->st_size);
	struct stat now = *st;
	int fd;

	if (ino) {
		mutex_lock(&ino->lock);
		fd = file_any_fd(ino);
		if (!ino->stub.has_container && (fd < 0 || !st->st_size || stub_says_it(ino, fd, &size, name)))
			fd = -1;
		/* @st may be older than what another thread has written or cut since: that is no news of others. */
		if (size != ino->body_len && fd >= 0 && sys.fstat(fd, &now))
			now = *st;
		if (fd >= 0)
			inode_size(ino, fd, &now, &size);
		tell_times(ino, fd, st);
		mutex_unlock(&ino->lock);
		inode_put(ino, NULL);
	} else if (name && st->st_size && writers_may_be(st->st_dev, st->st_ino, name->ended)) {
		ask_live_files(name, st, &size);
	}
	return size;
}

/* Blocks of a file that is all there: what a program expects that looks for holes. */
static uint64_t blocks_of(uint64_t size)
{
	return (size + 4095) / 4096 * 8;
}

uint64_t plfs_before_stat(void)
{
	return writers_ended();
}

void plfs_fix_stat(struct stat *st, const struct plfs_name *name)
{
	if (stub_marked(st->st_mode) && mount_has_dev(st->st_dev)) {
		uint64_t size = size_of(st, name);

		st->st_size = (off_t)size;
		st->st_blocks = (blkcnt_t)blocks_of(size);
		st->st_mode &= ~(mode_t)S_ISVTX;
	} else if (S_ISDIR(st->st_mode) && st->st_nlink > 2 && mount_has_containers(st->st_dev, st->st_ino)) {
		st->st_nlink--;
	}
}

void plfs_fix_statx(struct statx *stx, const struct plfs_name *name)
{
	struct stat st = {
		.st_mode = stx->stx_mode,
		.st_dev = makedev(stx->stx_dev_major, stx->stx_dev_minor),
		.st_ino = stx->stx_ino,
		.st_size = (off_t)stx->stx_size,
		.st_nlink = stx->stx_nlink,
		.st_mtim = { stx->stx_mtime.tv_sec, stx->stx_mtime.tv_nsec },
		.st_ctim = { stx->stx_ctime.tv_sec, stx->stx_ctime.tv_nsec },
	};
	bool stub = stub_marked(st.st_mode);

	plfs_fix_stat(&st, name);
	stx->stx_nlink = (uint32_t)st.st_nlink;
	if (!stub || stub_marked(st.st_mode))
		return;
	stx->stx_mode = (uint16_t)st.st_mode;
	stx->stx_size = (uint64_t)st.st_size;
	stx->stx_blocks = (uint64_t)st.st_blocks;
	stx->stx_mtime.tv_sec = st.st_mtim.tv_sec, stx->stx_mtime.tv_nsec = (uint32_t)st.st_mtim.tv_nsec;
	stx->stx_ctime.tv_sec = st.st_ctim.tv_sec, stx->stx_ctime.tv_nsec = (uint32_t)st.st_ctim.tv_nsec;
}
