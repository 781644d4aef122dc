/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Moving a file into its body, and the data calls on one that is there.
 */
#include "body.h"

#include "file.h"
#include "log.h"
#include "own.h"
#include "stamp.h"
#include "sys.h"

#define COPY_LEN (1024 * 1024)

/* ---- data ---- */

ssize_t body_read(int fd, void *buf, size_t len, uint64_t logical_off)
{
	ssize_t n;

	do { /* in one call: what comes behind a short one may be later */
		n = own_pread(fd, buf, len, (off_t)(PLFS_BODY_OFF + logical_off));
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

ssize_t body_write(int fd, const void *buf, size_t len, uint64_t logical_off)
{
	return own_pwrite_all(fd, buf, len, PLFS_BODY_OFF + logical_off);
}

/* The kernel finds the end: the body's is the stub's. It tells by the offset, which is the program's, and is put back. */
ssize_t body_append(int fd, const struct iovec *iov, int cnt, uint64_t *end)
{
	off_t before = sys.lseek(fd, 0, SEEK_CUR), off;
	ssize_t n = own_pwritev2(fd, iov, cnt, -1, RWF_APPEND);

	if (n < 0)
		return -errno;
	off = sys.lseek(fd, 0, SEEK_CUR);
	sys.lseek(fd, before, SEEK_SET);
	if (off < PLFS_BODY_OFF)
		return -EIO;
	*end = (uint64_t)off - PLFS_BODY_OFF;
	return n;
}

/* ---- moving ---- */

struct live_arg {
	const struct inode *ino;
	bool any, untold; /* untold: one whose owner cannot be told */
};

static int look_at_live(void *arg, const char *path, const char *name, enum dropping_kind kind)
{
	struct live_arg *la = arg;

	if (kind != DROPPING_LIVE)
		return 0;
	la->any = true;
	la->untold |= !dropping_live_is_ours(name) || stage_is_unmapped(&la->ino->c, path);
	return 0;
}

int body_is_written(const struct inode *ino)
{
	struct live_arg la = { .ino = ino };
	int ret;

	for (const struct plfs_file *f = ino->files; f; f = f->next)
		if (f->writable)
			return 1;
	if (!ino->stub.has_container)
		return 0;
	ret = container_list(&ino->c, look_at_live, &la);
	return ret ? ret : la.any;
}

void inode_enter_body(struct inode *ino, const struct stub *now)
{
	if (ino->writing)
		writer_abandon(&ino->w); /* what it has is in the body: an index would make the container anew */
	ino->writing = false;
	inode_not_counted(ino);
	reader_release(&ino->r);
	/*
	 * Or what we have made of it since he who moved the file removed it. The header must not be lost while the
	 * logs are.
	 */
	if (ino->stub.has_container && !own_fdatasync(file_any_fd(ino)))
		inode_remove_container(ino, false);
	ino->stub = *now;
	ino->own_end = 0;
	ino->end_lost = false;
	ino->touched = false;
	ino->acquired = false;
}

int inode_settle(struct inode *ino, int fd)
{
	struct stub now;
	int ret = ino->stub.in_body ? 0 : stub_settle(fd, &now);

	if (ret || ino->stub.in_body)
		return ret;
	if (now.in_body) {
		inode_enter_body(ino, &now);
	} else if (now.has_container) {
		ino->stub.cut_size = now.cut_size;
		ino->stub.cut_ns = now.cut_ns;
	}
	return 0;
}

int inode_look_for_move(struct inode *ino, int fd)
{
	struct stub now;
	int ret = stub_read(fd, &now);

	if (!ret && now.in_body)
		inode_enter_body(ino, &now);
	else if (!ret)
		ino->stub.moving = now.moving;
	return ret;
}

/*
 * Writers store their record and then load the notify word, without a fence between the two, which would cost each write. So
 * wait until no processor can hold a store back any more: they do for nanoseconds. (membarrier(2) would take 10 ms.)
 */
static void settle_memory(void)
{
	const struct timespec wait = { .tv_nsec = 1000000 };

	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	own_nanosleep(&wait, NULL);
}

/*
 * The header says that the file is being moved. Writers find that through the notify word (@any: there are some), readers
 * through the notice or the kept map that they watch. A reader that has found it looks at the header before each read, until
 * the move is over: so nothing need be said again then, and a mover that is killed leaves nobody with the logs.
 */
static void tell_users(struct inode *ino, bool any)
{
	global_revoke(&ino->c);
	if (any) {
		inode_notify(ino, stamp_next());
		settle_memory();
	} else {
		watch_raise(&ino->c);
	}
}

/* What a truncation has cut off is cut off the body as well. */
static bool is_in_body(const struct index_piece *piece)
{
	return piece->log_no == INDEX_LOG_HOLE || piece->log_no == INDEX_LOG_CUT;
}

/* Copy to @fd what logs have. */
static int copy_logs(struct inode *ino, int fd, uint64_t size)
{
	struct index_piece piece;
	int ret = 0;
	char *buf;

	buf = mem_alloc(COPY_LEN);
	if (!buf)
		return -ENOMEM;
	for (uint64_t off = 0; off < size && !ret; off += piece.len) {
		reader_lookup(&ino->r, off, min_u64(size - off, COPY_LEN), &piece);
		if (is_in_body(&piece))
			continue;
		ret = reader_read(&ino->r, NULL, fd, buf, piece.len, off);
		if (!ret) {
			ssize_t n = body_write(fd, buf, piece.len, off);

			ret = n < 0 ? (int)n : n < (ssize_t)piece.len ? -ENOSPC : 0;
		}
	}
	mem_free(buf);
	return !ret && reader_is_broken(&ino->r) ? -EIO : ret;
}

/* Give the space back that copy_logs() took: what the logs have is theirs again. */
static void uncopy_logs(struct inode *ino, int fd, uint64_t size)
{
	struct index_piece piece;

	for (uint64_t off = 0; off < size; off += piece.len) {
		reader_lookup(&ino->r, off, size - off, &piece);
		if (!is_in_body(&piece))
			own_fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)(PLFS_BODY_OFF + off),
				      (off_t)piece.len);
	}
}

/* With everything locked and the header marked: tell who uses the logs, and copy what was written. */
static int move_locked(struct inode *ino, int fd)
{
	struct live_arg la = { .ino = ino };
	struct stat st;
	int ret = inode_finish_cut(ino, fd);

	if (!ret)
		ret = container_list(&ino->c, look_at_live, &la);
	if (!ret && la.untold)
		ret = -EBUSY;
	if (!ret) {
		tell_users(ino, la.any);
		ret = inode_load(ino);
	}
	if (!ret && sys.fstat(fd, &st))
		ret = -errno;
	if (ret)
		return ret;
	ino->body_len = stub_body_len(st.st_size);
	ret = inode_extend(ino, fd, inode_known_size(ino));
	if (!ret)
		ret = copy_logs(ino, fd, inode_known_size(ino));
	/* What had been synced in a log must not depend on a body that is not. */
	if (!ret && own_fdatasync(fd))
		ret = -errno;
	if (ret)
		uncopy_logs(ino, fd, inode_known_size(ino));
	return ret;
}

/* With @locked, nobody appends; -EAGAIN: that is needed, the stub has got a container. */
static int move(struct inode *ino, int fd, bool locked)
{
	struct stub now;
	struct stat st;
	int ret = stub_begin_move(fd, &now), ret2;

	if (!ret && now.in_body) {
		inode_enter_body(ino, &now);
		return 0;
	}
	if (!ret && now.has_container) { /* perhaps since just now, or truncated: what that made void must not be copied */
		ino->stub = now;
		if (!sys.fstat(fd, &st))
			inode_adopt_container(ino, &st);
	}
	if (!ret && now.has_container)
		ret = locked ? move_locked(ino, fd) : -EAGAIN;
	if (!ret && now.moving && sys.fstat(fd, &st)) /* what was empty is as long as the header that was written just now */
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

/* A descriptor of the stub that can be written to, and does not append. */
static int fd_to_move(struct inode *ino)
{
	for (const struct plfs_file *f = ino->files; f; f = f->next)
		if (f->writable && !f->append_flag)
			return f->fd;
	if (ino->move_fd < 0 && ino->record_locks)
		return -EACCES; /* a descriptor of our own would take them away when it is moved out of the way */
	if (ino->move_fd < 0)
		ino->move_fd = stub_reopen(file_any_fd(ino), O_RDWR);
	return ino->move_fd;
}

int body_move(struct inode *ino)
{
	int fd, ret = -EAGAIN;

	if (ino->stub.in_body)
		return 0;
	fd = fd_to_move(ino);
	if (fd < 0)
		return fd;
	inode_close_writer(ino, fd);
	for (int tries = 0; tries < 10 && ret == -EAGAIN; tries++) {
		bool locked = ino->stub.has_container;

		ret = locked ? inode_lock_end(ino) : 0;
		if (ret && ret != -ENOENT) /* no container: somebody has just moved it */
			break;
		locked = locked && !ret;
		ret = move(ino, fd, locked);
		if (locked)
			inode_unlock_end(ino);
	}
	return ret;
}

void body_move_unseen(struct inode *ino, int fd)
{
	struct stat before, now;

	if (sys.fstat(fd, &before) || body_move(ino) || sys.fstat(fd, &now))
		return;
	if (stub_body_len(now.st_size) == stub_body_len(before.st_size))
		sys.futimens(fd, (struct timespec[]){ { .tv_nsec = UTIME_OMIT }, before.st_mtim });
}
