/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Moving a file into its body. The data calls on one that is there are body.c's.
 */
#include "core/file/move.h"

#include "core/backend/container_dirs.h"
#include "core/backend/stub_lock.h"
#include "core/dropping/notice.h"
#include "core/backend/names.h"
#include "core/backend/placed.h"
#include "core/file/acquire.h"
#include "core/file/body.h"
#include "core/file/logged.h"
#include "core/file/publish.h"
#include "core/base/as_owner.h"
#include "core/base/io.h"
#include "core/base/stamp.h"
#include "core/base/sys.h"

#define COPY_LEN (1024 * 1024)

struct live_arg {
	const struct inode *ino;
	bool any, deaf; /* deaf: one whose owner cannot be notified */
};

static int look_at_live(void *arg, const char *path, const char *name, enum dropping_kind kind)
{
	struct live_arg *la = arg;
	char full[CONTAINER_PATH_LEN];

	if (kind == DROPPING_NEAR) { /* what is written elsewhere is not seen here, and cannot be notified */
		container_path(&la->ino->c, path, full);
		la->deaf |= !placed_is_here(la->ino->c.store, full);
	}
	if (kind != DROPPING_LIVE)
		return 0;
	la->any = true;
	la->deaf |= !name_is_our_live(name) || live_is_unmapped(&la->ino->c, path);
	return 0;
}

int move_finds_writers(const struct inode *ino)
{
	struct live_arg la = { .ino = ino };
	int ret;

	for (const struct plfs_file *f = ino->files; f; f = f->next)
		if (f->writable)
			return 1;
	if (!ino->v.stub.has_container)
		return 0;
	ret = container_list_there(&ino->c, look_at_live, &la);
	return ret ? ret : la.any;
}

/*
 * Writers store their record and then load the notify word, without a fence between the two, which would cost
 * each write. So wait until no processor can hold a store back any more: they do for nanoseconds.
 * (membarrier(2) would take 10 ms.)
 */
static void settle_memory(void)
{
	const struct timespec wait = { .tv_nsec = 1000000 };

	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	io_nanosleep(&wait, NULL);
}

/*
 * The header says that the file is being moved. Writers find that through the notify word (@any: there are
 * some), readers through the notice or the kept map that they watch. A reader that has found it looks at the
 * header before each read, until the move is over. So no second notice is needed then, and a mover that is
 * killed leaves no reader with the logs.
 */
static void tell_users(struct inode *ino, bool any)
{
	kept_map_revoke(&ino->c);
	if (any) {
		inode_notify(ino, stamp_next());
		settle_memory();
	} else {
		notice_raise(&ino->c);
	}
}

/* What a truncation has cut off is cut off the body as well. */
static bool is_in_body(const struct index_piece *piece)
{
	return piece->log_no == INDEX_LOG_HOLE || piece->log_no == INDEX_LOG_CUT;
}

/*
 * Copy to @fd what logs have. *@end: what lies behind was not begun. The checksums end here: so what is
 * copied is compared, unless the user wants none.
 */
static int copy_logs(struct inode *ino, int fd, uint64_t size, uint64_t *end)
{
	struct logset *logs = &ino->v.r.logs;
	enum sums_verify before = logs->compared.how;
	struct index_piece piece;
	int ret = 0;
	char *buf;

	buf = mem_alloc(COPY_LEN);
	if (!buf)
		return -ENOMEM;
	if (before)
		logset_set_verify(logs, SUMS_ALWAYS);
	for (uint64_t off = 0; off < size && !ret; off += piece.len) {
		reader_lookup(&ino->v.r, off, min_u64(size - off, COPY_LEN), &piece);
		*end = off + piece.len;
		if (is_in_body(&piece))
			continue;
		ret = reader_read(&ino->v.r, NULL, fd, buf, piece.len, off);
		if (!ret) {
			ssize_t n = body_write(fd, buf, piece.len, off);

			ret = n < 0 ? (int)n : n < (ssize_t)piece.len ? -ENOSPC : 0;
		}
	}
	logset_set_verify(logs, before);
	mem_free(buf);
	return !ret && reader_is_broken(&ino->v.r) ? -EIO : ret;
}

/* Give the space back that copy_logs() took before @end: what the logs have is theirs again. */
static void uncopy_logs(struct inode *ino, int fd, uint64_t end)
{
	struct index_piece piece;

	for (uint64_t off = 0; off < end; off += piece.len) {
		reader_lookup(&ino->v.r, off, end - off, &piece);
		if (!is_in_body(&piece))
			io_fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				     (off_t)(PLFS_BODY_OFF + off), (off_t)piece.len);
	}
}

/* With everything locked and the header marked: notify the users of the logs, and copy what was written. */
static int move_locked(struct inode *ino, int fd)
{
	struct live_arg la = { .ino = ino };
	struct stat st;
	uint64_t end = 0;
	int ret = logged_finish_cut(ino, fd);

	if (!ret)
		ret = container_list_there(&ino->c, look_at_live, &la);
	if (!ret && la.deaf)
		ret = -EBUSY;
	if (!ret) {
		tell_users(ino, la.any);
		ret = acquire_load(ino);
	}
	if (!ret && sys.fstat(fd, &st))
		ret = -errno;
	if (ret)
		return ret;
	ino->v.told_len = stub_body_len(st.st_size);
	ret = publish_known(ino, fd);
	if (!ret)
		ret = copy_logs(ino, fd, view_known_size(&ino->v), &end);
	/* What had been synced in a log must not depend on a body that is not. */
	if (!ret && io_fdatasync(fd))
		ret = -errno;
	if (ret)
		uncopy_logs(ino, fd, end);
	return ret;
}

/* With @locked, no process appends; -EAGAIN: that is needed, or the stub has just got a container. */
static int move(struct inode *ino, int fd, bool locked)
{
	struct stub now = { .moving = false };
	struct stat st;
	int ret = stub_begin_move(fd, &now, locked), ret2;

	if (ret == -EBUSY) { /* the header cannot be locked: with a container that is not needed */
		ret = logged_claim(ino, fd);
		return ret && ret != -EREMCHG ? ret : -EAGAIN;
	}
	if ((!ret || ret == -EAGAIN) && now.has_container && sys.fstat(fd, &st))
		ret = -errno;
	/* Claimed or truncated perhaps since the last look: what is void must not be copied. */
	if ((!ret || ret == -EAGAIN) && (now.in_body || now.has_container))
		inode_follow(ino, &now, &st);
	if (!ret && now.in_body)
		return 0;
	if (!ret && now.has_container)
		ret = move_locked(ino, fd);
	/* the lock of the header was lost meanwhile, and another process has moved the file */
	if (ret == -EREMCHG)
		ret = -EAGAIN;
	/* what was empty is as long as the header that was written just now */
	if (!ret && now.moving && sys.fstat(fd, &st))
		ret = -errno;
	if (!ret && now.moving)
		ret = stub_fill_header(fd, &st);
	if (now.moving) {
		ret2 = stub_end_move(fd, &now, !ret);
		ret = ret ? ret : ret2;
	}
	if (ret)
		return ret;
	inode_enter_body(ino, &now);
	return 0;
}

/* A descriptor of the stub that can be written to. */
static int fd_to_move(struct inode *ino)
{
	for (const struct plfs_file *f = ino->files; f; f = f->next)
		if (f->writable)
			return f->fd;
	if (ino->move_fd < 0 && ino->record_locks)
		/* a descriptor of our own would take them away when it is moved out of the way */
		return -EACCES;
	if (ino->move_fd < 0)
		ino->move_fd = stub_reopen(inode_any_fd(ino), O_RDWR);
	sys_fd_own(&ino->move_fd);
	return ino->move_fd;
}

int move_into_body(struct inode *ino)
{
	int fd, ret = -EAGAIN;

	if (ino->v.stub.in_body)
		return 0;
	fd = fd_to_move(ino);
	if (fd < 0)
		return fd;
	logged_close_writer(ino, fd);
	for (int tries = 0; tries < 10 && ret == -EAGAIN; tries++) {
		bool locked = ino->v.stub.has_container;

		ret = locked ? inode_lock_end(ino) : 0;
		if (ret == -ENOENT && container_is_purged(&ino->c) && !inode_look_for_move(ino, fd) &&
		    !ino->v.stub.in_body && inode_container_gone(ino, fd))
			return -EIO;
		if (ret && ret != -ENOENT) /* no container: another process has just moved it */
			break;
		locked = locked && !ret;
		ret = move(ino, fd, locked);
		if (locked)
			inode_unlock_end(ino);
	}
	return ret;
}

static bool is_in_group(gid_t gid)
{
	gid_t groups[256]; /* more, or an error: as good as none */
	int nr = getgroups(256, groups);

	for (int i = 0; i < nr; i++)
		if (groups[i] == gid)
			return true;
	return getegid() == gid;
}

/* Whether @uid has the rights @need. A list may say otherwise: then a file is moved for nothing. */
static bool may(const struct stat *st, uid_t uid, mode_t need)
{
	if (!uid || st->st_uid == uid) /* who can give himself any */
		return true;
	if (is_in_group(st->st_gid))
		need <<= 3;
	return (st->st_mode & need) == need;
}

/* Directories of the backend may keep that user from the logs, whatever the file's mode. */
static bool may_reach(const struct inode *ino, uid_t uid)
{
	struct store *s = ino->c.store;
	uid_t before = as_owner_set_uid(uid);
	int h = store_open(s, ino->c.dir, O_RDONLY | O_DIRECTORY | STORE_BRIEFLY, 0);

	as_owner_set_uid(before);
	if (h >= 0)
		store_close(s, &h);
	return h != -EACCES;
}

/* Make the container of a file that has none: as mount_prepare() asks. */
static bool may_make(struct inode *ino, uid_t uid)
{
	struct store *s = &ino->m->store;
	struct stat st;
	int ret = s->ops->stat(s, PLFS_DIR_NAME, &st);

	if (ret == -ENOENT)
		ret = s->ops->stat(s, ".", &st);
	return ret || (may(&st, uid, 03) && (!st.st_uid || st.st_uid == ino->m->uid || st.st_uid == uid));
}

int move_before_user(struct inode *ino, int fd, uid_t uid, bool write)
{
	struct stat st;
	int ret = sys.fstat(fd, &st) ? -errno : 0;

	if (!ret && may(&st, uid, write ? 06 : 04)) {
		ret = inode_look_bare(ino, fd);
		if (ret >= 0 && (ino->v.stub.has_container ? may_reach(ino, uid) :
							     !write || may_make(ino, uid)))
			return 0;
	}
	if (ret < 0)
		return ret;
	ret = inode_settle(ino, fd);
	if (!ret && inode_look_bare(ino, fd) > 0 && (!write || may_make(ino, uid)))
		return 0; /* a descriptor is enough, and for a log its user makes the container */
	if (!ret && !ino->v.stub.in_body)
		ret = move_into_body(ino);
	if (!ret)
		sys.futimens(fd, (struct timespec[]){ { .tv_nsec = UTIME_OMIT }, st.st_mtim });
	return ret;
}

void move_unseen(struct inode *ino, int fd)
{
	struct stat before, now;

	if (sys.fstat(fd, &before) || move_into_body(ino) || sys.fstat(fd, &now))
		return;
	if (stub_body_len(now.st_size) == stub_body_len(before.st_size))
		sys.futimens(fd, (struct timespec[]){ { .tv_nsec = UTIME_OMIT }, before.st_mtim });
}
