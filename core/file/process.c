/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All files of this process at once: sync(2), fork, exec and exit.
 */
#include "core/base/single.h"
#include "core/file/dispatch.h"
#include "core/file/file.h"
#include "core/file/logged.h"
#include "core/file/release.h"
#include "core/observe/hooks.h"
#include "core/write/exit_wait.h"

static void sync_one(struct inode *ino, int fd)
{
	ino->impatient = true; /* the file stays locked meanwhile */
	dispatch_sync(ino, fd);
}

void plfs_sync_all(void)
{
	int saved ERRNO_KEPT = errno;

	inode_each(sync_one);
}

static void commit_one(struct inode *ino, int fd)
{
	logged_commit(ino, fd);
	ino->shared = true;
}

void plfs_fork_prepare(void)
{
	int saved ERRNO_KEPT = errno;

	inode_each(commit_one);
	inode_lock_all();
	observe_fork_prepare();
	guard_freeze();
}

void plfs_fork_parent(void)
{
	guard_thaw();
	observe_fork_parent();
	inode_unlock_all();
}

/*
 * The parent goes on writing its logs; the child opens its own when it writes. Nothing is published for the
 * parent's sake.
 */
static void disown_one(struct inode *ino, int fd)
{
	(void)fd;
	if (ino->writing) {
		writer_forget(&ino->w);
		ino->writing = false;
		ino->counted = (struct counted){ 0 };
		reader_release(&ino->v.r); /* it lacks what the parent wrote since it last read */
	}
	logset_after_fork(&ino->v.r.logs);
	view_drop_end(&ino->v);
	if (ino->lock_h >= 0)
		store_close(&ino->m->store, &ino->lock_h);
	ino->v.touched = false;
	ino->record_locks = false;
	release_forget(ino);
}

void plfs_fork_child(void)
{
	int saved ERRNO_KEPT = errno;

	guard_thaw();
	inode_unlock_all();
	observe_fork_child();
	exit_wait_fork_child();
	inode_drop_threads();
	inode_each(disown_one);
}

static void close_one(struct inode *ino, int fd)
{
	logged_close_writer(ino, fd);
	release_end(ino, fd);
	if (ino->record_locks) /* our descriptors are closed by the kernel, and they go with that */
		msg_debug(MSG_REFUSE, "exec: the record locks of a file end with this image");
	ino->shared = true;
}

void plfs_exec_prepare(void)
{
	int saved ERRNO_KEPT = errno;

	inode_each(close_one);
}

void plfs_exit_prepare(void)
{
	int saved ERRNO_KEPT = errno;

	inode_exiting = true;
	inode_each(inode_finish);
	exit_wait();
	if (unlikely(observing)) {
		hooks_exit();
		observe_exit();
	}
}

/*
 * What is closed by the caller then is one descriptor of the file, with which the process loses its record
 * locks on it.
 */
int plfs_free_number(int fd)
{
	int saved ERRNO_KEPT = errno;
	struct stat st;
	int ret = sys.fstat(fd, &st) ? -errno : file_has_record_locks(&st) ? -EBUSY : sys_fd_move_away(fd);

	for (int i = 0; !ret && i < plfs_nr_roots; i++) {
		struct plfs_mount *m = plfs_roots[i].m;

		if (plfs_roots[i].dirfd == fd)
			plfs_roots[i].dirfd = m->dirfd = store_fd(&m->store, m->store.root);
	}
	return ret;
}

bool plfs_is_single_threaded(void) { return is_single_threaded(); }
