/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names: unlink and rename. The kernel does each of them on the stub; here is what the container needs
 * besides.
 */
#include "core/file/file.h"

#include "core/dropping/owner.h"
#include "core/backend/nested.h"
#include "core/backend/stub_known.h"
#include "core/backend/stub_use.h"
#include "core/base/io.h"
#include "core/backend/writer_table.h"
#include "core/store/dirs.h"

#include <stdio.h>

/* A stub that is about to lose its last name. */
struct doomed {
	struct plfs_mount *m;
	int fd; /* negative: nothing to look after */
	bool open; /* by this process */
	bool closed_to_owner; /* who has no right to read it: @fd is a path */
};

/*
 * Look at the name @path before it goes away. A file on which this process has record locks is left to its
 * last close: opening and closing the stub once more would drop them.
 */
static void doomed_look(struct doomed *d, struct plfs_mount *m, int dirfd, const char *path)
{
	struct inode *ino;
	struct stat st;
	int fd;

	*d = (struct doomed){ .m = m, .fd = -1 };
	if (sys.fstatat(dirfd, path, &st, AT_SYMLINK_NOFOLLOW))
		return;
	if (stub_is_sparse(&st))
		file_know_at(&st, dirfd, path, AT_SYMLINK_NOFOLLOW);
	if (!stub_marked(st.st_mode) ||
	    st.st_nlink > 1 || !st.st_size || !nested_has_dev(st.st_dev))
		return;
	ino = inode_find(st.st_dev, st.st_ino);
	d->open = ino;
	if (ino)
		inode_put(ino, NULL);
	if (d->open && file_has_record_locks(&st))
		return;
	fd = io_openat(dirfd, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && errno == EACCES && st.st_uid == geteuid()) {
		d->closed_to_owner = true;
		fd = io_openat(dirfd, path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	}
	d->fd = sys_fd_hide_briefly(fd < 0 ? -errno : fd);
	if (d->fd < 0)
		msg_debug(MSG_PATH, "%s: cannot read the stub, its container stays: %s", path,
			  strerror(-d->fd));
	else
		d->m = nested_holding(m, d->fd, dirfd == m->dirfd); /* as long as it has a name */
}

/* Once it has no name, nobody but who has it open sees its mode, which is given back. */
static void open_for_owner(struct doomed *d)
{
	struct stat st;
	int fd = -ENOENT;

	if (!sys.fstat(d->fd, &st) && !st.st_nlink && !io_chmod_path(d->fd, st.st_mode | S_IRUSR)) {
		fd = stub_reopen(d->fd, O_RDONLY);
		io_chmod_path(d->fd, st.st_mode);
	}
	sys_fd_close(&d->fd);
	d->fd = fd;
}

static void doomed_finish(struct doomed *d)
{
	struct plfs_mount *m;
	struct container c;
	struct stub stub;
	struct stat st;

	if (d->fd >= 0 && d->closed_to_owner)
		open_for_owner(d);
	if (d->fd < 0)
		return;
	/*
	 * Looked at now, when no process can open it any more: it may have been claimed since it had a name.
	 */
	if (!stub_read(d->fd, &stub) && stub.has_container && !sys.fstat(d->fd, &st) && !st.st_nlink &&
	    !stub_is_copy(&stub, st.st_ino) && !stub_in_use(d->fd)) {
		m = nested_init_container(d->m, &c, d->fd, &stub, &st);
		writer_table_remove_container(m, &c, st.st_ino);
	}
	sys_fd_close(&d->fd);
}

int plfs_unlink(struct plfs_mount *m, int dirfd, const char *path)
{
	int saved ERRNO_KEPT = errno;
	bool section CRITICAL = critical_begin();
	struct doomed d;
	int ret;

	doomed_look(&d, m, dirfd, path);
	ret = sys.unlinkat(dirfd, path, 0) ? -errno : 0;
	doomed_finish(&d);
	return ret;
}

int plfs_rename(struct plfs_mount *m, int fromfd, const char *from, int tofd, const char *to, unsigned flags)
{
	int saved ERRNO_KEPT = errno;
	bool section CRITICAL = critical_begin();
	struct doomed d = { .fd = -1 };
	int ret;

	if (!nested_may_move(m, fromfd, from, tofd, to) ||
	    (flags & RENAME_EXCHANGE && !nested_may_move(m, tofd, to, fromfd, from)))
		return -EXDEV;
	if (!flags)
		doomed_look(&d, m, tofd, to);
	ret = flags ? sys.renameat2(fromfd, from, tofd, to, flags) : sys.renameat(fromfd, from, tofd, to);
	ret = ret ? -errno : 0;
	/* What a synced file consists of goes only when it is sure that it has lost its name. */
	if (!ret && !m->store.keeps_order &&
	    (d.open || d.closed_to_owner || (d.fd >= 0 && stub_is_synced(d.fd))))
		/* best effort: where a directory cannot be synced, nor can the program do it */
		dirs_sync_parent(tofd, to);
	doomed_finish(&d);
	return ret;
}

int plfs_link(struct plfs_mount *m, int fromfd, const char *from, int tofd, const char *to, int flags)
{
	int saved ERRNO_KEPT = errno;

	if (!nested_may_move(m, fromfd, from, tofd, to))
		return -EXDEV;
	return sys.linkat(fromfd, from, tofd, to, flags) ? -errno : 0;
}
