/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Attributes: the times, and what stat shows. The kernel does each of them on the stub; here is what the
 * container needs besides. chmod and chown are in ownership.c.
 */
#include "core/file/file.h"

#include "core/file/acquire.h"
#include "core/file/logged.h"
#include "core/file/publish.h"
#include "core/base/io.h"
#include "core/backend/nested.h"
#include "core/backend/stub_known.h"
#include "core/backend/stub_use.h"
#include "core/backend/writer_table.h"

#include <limits.h>
#include <stdio.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static int stat_of(int dirfd, const char *path, struct stat *st, int at_flags)
{
	int ret = path ? sys.fstatat(dirfd, path, st, at_flags & (AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH)) :
		sys.fstat(dirfd, st);

	return ret ? -errno : 0;
}

void plfs_before_utimes(int dirfd, const char *path, int at_flags)
{
	int saved ERRNO_KEPT = errno;
	bool section CRITICAL = critical_begin();
	struct inode *ino;
	struct stat st;

	if (stat_of(dirfd, path, &st, at_flags) || !S_ISREG(st.st_mode))
		return;
	ino = inode_find(st.st_dev, st.st_ino);
	if (!ino)
		return;
	mutex_lock(&ino->lock);
	logged_commit(ino, inode_any_fd(ino));
	ino->v.dated_ns = 0; /* the next overwrite sets it anew */
	mutex_unlock(&ino->lock);
	inode_put(ino, NULL);
}

/*
 * The program's own writes up to now show in the times that it gets. @fd is a descriptor of @ino, whose lock
 * is held. The time of access stays what it was: we may have looked at the header just now.
 */
static void tell_times(struct inode *ino, int fd, struct stat *st)
{
	struct stat now;

	if (!ino->v.touched || fd < 0 || publish_size(ino, fd) || sys.fstat(fd, &now))
		return;
	st->st_mtim = now.st_mtim;
	st->st_ctim = now.st_ctim;
}

/* Whether @name leads to the file @st still. */
static bool still_leads_to(const struct plfs_name *name, const struct stat *st)
{
	struct stat now;

	return !*name->path ||
	       (!sys.fstatat(name->dirfd, name->path, &now, name->at_flags & AT_SYMLINK_NOFOLLOW) &&
		now.st_ino == st->st_ino && now.st_dev == st->st_dev);
}

/*
 * The stub @st, marked as in use: its container stays until it is closed. Unless *@marked, it is being made a
 * plain file, or somebody keeps it locked, and is looked at all the same: nobody writes it. -EAGAIN: @name
 * leads elsewhere by now. Another -errno: it cannot be read.
 */
static int open_to_ask(const struct plfs_name *name, const struct stat *st, bool *marked)
{
	int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, fd;
	struct plfs_mount *m;
	struct stat now;

	if (!*name->path)
		return stub_reopen(name->dirfd, flags);
	fd = io_openat(name->dirfd, name->path,
		       flags | (name->at_flags & AT_SYMLINK_NOFOLLOW ? O_NOFOLLOW : 0));
	fd = sys_fd_hide_briefly(fd < 0 ? -errno : fd);
	if (fd < 0)
		return still_leads_to(name, st) ? fd : -EAGAIN;
	if (!sys.fstat(fd, &now) && now.st_ino == st->st_ino && now.st_dev == st->st_dev) {
		*marked = stub_try_mark_in_use(fd);
		/* /proc/PID/fd is as good as a name */
		if (!sys.fstat(fd, &now) && (now.st_nlink || !st->st_nlink))
			return fd;
		m = mount_of_file(fd);
		if (m)
			file_remove_unlinked(m, fd, &now);
	}
	sys_fd_close(&fd);
	return -EAGAIN;
}

/*
 * The size of a file that another process may be writing, or was when it was killed: what the stub does not
 * say yet is in live files. @size stays what it is if the file cannot be read. False: another one has its
 * name by now, or none.
 */
static __attribute__((noinline, cold)) bool ask_live_files(const struct plfs_name *name,
							   const struct stat *st, uint64_t *size)
{
	struct plfs_file *f = NULL;
	bool marked = true;
	int fd = open_to_ask(name, st, &marked);
	bool again = fd == -EAGAIN;
	struct stat now;

	if (fd >= 0 && !file_of(fd, &f) && f) {
		off_t known = plfs_size(f);

		if (known >= 0)
			*size = (uint64_t)known;
	}
	if (unlikely(!marked) && fd >= 0 && !sys.fstat(fd, &now))
		again = !now.st_nlink && st->st_nlink; /* it became a plain file meanwhile */
	sys_fd_close(&fd);
	if (f)
		plfs_close(f);
	return !again;
}

/*
 * Whether the size of @ino, which seems to have no logs, is what the stub says. *@size is from attributes
 * taken before, and is brought up to date. Another process may have begun a log since the header was read:
 * the table of writers knows. A look at the header would move its time of access.
 */
static bool stub_says_it(struct inode *ino, int fd, const struct stat *st, uint64_t *size,
			 const struct plfs_name *name)
{
	struct stat now;

	if (ino->v.stub.in_body)
		return true;
	if (writer_table_may_have_begun(ino->m, st))
		return inode_look_bare(ino, fd) != 0;
	/* A log that has ended since the attributes were taken has published its size. */
	if ((!name || name->ended == WRITER_TABLE_UNKNOWN || name->ended != writer_table_ended()) &&
	    !sys.fstat(fd, &now))
		*size = stub_body_len(now.st_size);
	return true;
}

/*
 * *@out: the logical size of a stub, from the inode if it is open here. @name: where it was found, or NULL.
 * False: it is there no more.
 */
static bool size_of(struct stat *st, const struct plfs_name *name, uint64_t *out)
{
	int saved ERRNO_KEPT = errno;
	bool section CRITICAL = critical_begin();
	struct inode *ino = inode_find(st->st_dev, st->st_ino);
	uint64_t size = stub_body_len(st->st_size);
	struct stat now = *st;
	bool there = true, in_body;
	int fd;

	if (ino) {
		mutex_lock(&ino->lock);
		fd = inode_any_fd(ino);
		in_body = ino->v.stub.in_body;
		if (!ino->v.stub.has_container &&
		    (fd < 0 || !st->st_size || stub_says_it(ino, fd, st, &size, name)))
			fd = -1;
		/*
		 * @st may be older than what another thread has written or cut since, or than a move: that
		 * is no news of others.
		 */
		if ((size != ino->v.told_len || ino->v.stub.in_body != in_body) && fd >= 0 &&
		    sys.fstat(fd, &now))
			now = *st;
		if (fd >= 0)
			acquire_size(ino, fd, &now, &size);
		tell_times(ino, fd, st);
		mutex_unlock(&ino->lock);
		inode_put(ino, NULL);
	} else if (name && st->st_size && writer_table_may_be(st, name->ended)) {
		there = ask_live_files(name, st, &size);
	}
	*out = size;
	return there;
}

/* Blocks of a file that is all there: what a program expects that looks for holes. */
static uint64_t blocks_of(uint64_t size)
{
	return (size + 4095) / 4096 * 8;
}

uint64_t plfs_before_stat(void)
{
	return writer_table_before();
}

/* What fix() has found. */
enum fixed { SAME, STUB, GONE };

static enum fixed fix(struct stat *st, const struct plfs_name *name)
{
	uint64_t size;

	if (S_ISREG(st->st_mode) &&
	    (mount_has_dev(st->st_dev) || (stub_marked(st->st_mode) && nested_has_dev(st->st_dev)))) {
		if (name)
			file_know_at(st, name->dirfd, name->path, name->at_flags);
		if (!stub_marked(st->st_mode))
			return SAME;
		if (!size_of(st, name, &size))
			return GONE;
		st->st_size = (off_t)size;
		st->st_blocks = (blkcnt_t)blocks_of(size);
		st->st_mode &= ~(mode_t)S_ISVTX;
		return STUB;
	}
	if (S_ISDIR(st->st_mode) && st->st_nlink > 2 && mount_has_containers(st->st_dev, st->st_ino))
		st->st_nlink--;
	return SAME;
}

bool plfs_fix_stat(struct stat *st, const struct plfs_name *name) { return fix(st, name) != GONE; }

bool plfs_fix_statx(struct statx *stx, const struct plfs_name *name)
{
	struct stat st = {
		.st_mode = stx->stx_mode,
		.st_dev = makedev(stx->stx_dev_major, stx->stx_dev_minor),
		.st_ino = stx->stx_ino,
		.st_size = (off_t)stx->stx_size,
		.st_blocks = (blkcnt_t)stx->stx_blocks,
		.st_nlink = stx->stx_nlink,
		.st_uid = stx->stx_uid,
		.st_gid = stx->stx_gid,
		.st_mtim = { stx->stx_mtime.tv_sec, stx->stx_mtime.tv_nsec },
		.st_ctim = { stx->stx_ctime.tv_sec, stx->stx_ctime.tv_nsec },
	};
	enum fixed fixed = fix(&st, name);

	if (fixed == GONE)
		return false;
	stx->stx_nlink = (uint32_t)st.st_nlink;
	stx->stx_mode = (uint16_t)st.st_mode;
	if (fixed == SAME)
		return true;
	stx->stx_size = (uint64_t)st.st_size;
	stx->stx_blocks = (uint64_t)st.st_blocks;
	stx->stx_mtime.tv_sec = st.st_mtim.tv_sec, stx->stx_mtime.tv_nsec = (uint32_t)st.st_mtim.tv_nsec;
	stx->stx_ctime.tv_sec = st.st_ctim.tv_sec, stx->stx_ctime.tv_nsec = (uint32_t)st.st_ctim.tv_nsec;
	return true;
}

bool plfs_is_stub(struct stat *st, int dirfd, const char *path, int at_flags)
{
	int saved ERRNO_KEPT = errno;

	file_know_at(st, dirfd, path, at_flags);
	return stub_marked(st->st_mode);
}

/* Its own function: the name takes 4 KiB of the stack. */
static __attribute__((noinline)) int stat_parent(int dirfd, const char *path, struct stat *st)
{
	const char *slash = strrchr(path, '/');
	char dir[PATH_MAX];

	if (slash && slash - path >= PATH_MAX - 1)
		return -ENAMETOOLONG;
	snprintf(dir, sizeof(dir), "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
	return stat_of(dirfd, dir, st, 0);
}

bool plfs_would_make(const struct plfs_mount *m, int dirfd, const char *path)
{
	int saved ERRNO_KEPT = errno;
	struct stat st;

	if (!*path || path[strlen(path) - 1] == '/' || !mount_wants_log(m, path))
		return false;
	return stat_of(dirfd, path, &st, AT_SYMLINK_NOFOLLOW) == -ENOENT && !stat_parent(dirfd, path, &st) &&
	       nested_has_dev(st.st_dev);
}

void plfs_note_plain_lock(void) { stub_look_no_more(); }
