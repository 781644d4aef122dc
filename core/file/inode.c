/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The state of a logical file in this process: its container, its form, and what makes the one or the other
 * change. What is known of its size and its bytes is view.c's.
 */
#include "core/file/inode.h"

#include "core/file/end_wait.h"
#include "core/base/io.h"
#include "core/base/msg.h"
#include "core/base/settle.h"
#include "core/base/stamp.h"
#include "core/base/sys.h"
#include "core/backend/names.h"
#include "core/backend/placed.h"
#include "core/backend/nested.h"
#include "core/backend/container_dirs.h"
#include "core/backend/container_remove.h"
#include "core/backend/stub_lock.h"
#include "core/dropping/notice.h"
#include "core/backend/writer_table.h"
#include "core/store/posix.h"
#include "core/store/posix_acl.h"

bool inode_posix;
bool inode_exiting;

void inode_init_container(struct plfs_mount *m, struct container *c, const uint8_t *id, const struct stat *st)
{
	container_init_for(c, &m->store, id, st);
	if (m->spec->nr_hostdirs)
		c->nr_hostdirs = m->spec->nr_hostdirs;
}

void inode_follow(struct inode *ino, const struct stub *now, const struct stat *st)
{
	if (now->in_body) {
		inode_enter_body(ino, now);
		return;
	}
	ino->v.stub = *now;
	placed_enable_by(&ino->m->store, now);
	if (now->has_container && !ino->c.store) {
		inode_init_container(ino->m, &ino->c, now->id, st);
		ino->c.maker = now->has_maker ? now->maker : CONTAINER_ANYBODY;
	}
	ino->c.copied = now->copied;
	stamp_seen(now->generation_ns); /* what is written from here on is later than the truncation */
}

int inode_read_header(struct inode *ino, int fd, const struct stat *st)
{
	struct stub now;
	int ret = stub_read_known(fd, &ino->v.stub, &now);

	if (!ret)
		inode_follow(ino, &now, st);
	return ret;
}

int inode_set_feature(struct inode *ino, int fd, int (*set)(int fd, struct stub *stub))
{
	struct stub now = ino->v.stub;
	int ret = set(fd, &now);

	if (ret || !now.has_container)
		return ret;
	ino->v.stub.clocks = now.clocks;
	ino->v.stub.placed = now.placed;
	ino->v.stub.spread = now.spread;
	return 0;
}

static bool take_mount(struct inode *ino, struct plfs_mount *m)
{
	if (!m)
		return false;
	ino->found = ino->m;
	ino->m = m;
	ino->c.store = &m->store;
	placed_enable_by(&m->store, &ino->v.stub);
	return true;
}

bool inode_find_elsewhere(struct inode *ino, int fd)
{
	return !ino->found && fd >= 0 && take_mount(ino, nested_find(ino->m, &ino->c, fd));
}

void inode_seek_container(struct inode *ino, int fd)
{
	if (!container_check(&ino->c, CONTAINER_CHANGE) && !container_is_checked(&ino->c, CONTAINER_CHANGE))
		inode_find_elsewhere(ino, fd);
}

/*
 * Root may be giving the stub and the container to another user just now, one after the other; or the owner
 * changes the mode, or has changed it since this process opened the file.
 */
static int check_while_given(struct inode *ino, int fd, enum container_use use)
{
	struct settle settle = {};
	struct stat st;
	int ret;

	if (likely(!container_try_check(&ino->c, use)))
		return 0;
	do {
		if (!sys.fstat(fd, &st)) {
			inode_heed_owner(ino, &st);
			ino->c.mode &= st.st_mode & 0777; /* whom it kept out it may keep out still */
		}
		ret = container_try_check(&ino->c, use);
		if (ret != -EIO && ret != -EACCES)
			break;
	} while (settle_wait(&settle));
	return container_check(&ino->c, use);
}

int inode_check_container(struct inode *ino, enum container_use use)
{
	int fd = inode_any_fd(ino), ret;

	if (fd >= 0)
		container_look_at_list(&ino->c, fd);
	if (unlikely(stub_is_copy(&ino->v.stub, ino->key.ino)) && !ino->c.checked && !ino->found && fd >= 0)
		take_mount(ino, nested_find_below(ino->m, &ino->c, fd));
	ret = fd < 0 ? container_check(&ino->c, use) : check_while_given(ino, fd, use);
	if (unlikely(!ret && !container_is_checked(&ino->c, use)) && inode_find_elsewhere(ino, fd))
		ret = container_check(&ino->c, use);
	return ret;
}

void inode_remove_container(const struct inode *ino, bool alone)
{
	if (stub_is_copy(&ino->v.stub, ino->key.ino))
		return;
	if (alone)
		writer_table_remove_container(ino->m, &ino->c, ino->key.ino);
	else
		container_remove(&ino->c);
}

int inode_any_fd(const struct inode *ino)
{
	const struct plfs_file *best = ino->files;

	for (const struct plfs_file *f = best; f; f = f->next)
		if (f->writable)
			return f->fd;
	return best ? best->fd : -1;
}

int inode_marked_fd(const struct inode *ino, int fd)
{
	for (const struct plfs_file *f = ino->files; f; f = f->next)
		if (f->fd == fd)
			return file_marked_fd(f);
	return fd;
}

void file_close_fds(struct plfs_file *f)
{
	sys_fd_close(&f->own_fd);
	sys_fd_close(&f->fd);
}

/* ---- its form ---- */

int inode_look_bare(struct inode *ino, int fd)
{
	struct stub now;
	struct stat st;
	int ret;

	if (!inode_seems_bare(ino))
		return 0;
	ret = stub_settle_bare(fd, &now);
	if (!ret && ino->m->store.remote)
		store_posix_forget(fd, 0);
	if (!ret && now.has_container && sys.fstat(fd, &st))
		ret = -errno;
	if (ret)
		return ret;
	ino->explained = now.explained; /* whoever wrote the header anew may have taken it away */
	if (now.in_body || now.has_container)
		inode_follow(ino, &now, &st);
	if (!now.in_body && now.has_container)
		inode_refresh(ino);
	return inode_seems_bare(ino);
}

int inode_explain(struct inode *ino, int fd)
{
	int ret = likely(ino->explained) ? 0 : stub_explain(fd);

	ino->explained = !ret;
	return ret;
}

void inode_enter_body(struct inode *ino, const struct stub *now)
{
	if (ino->writing)
		/* what it has is in the body: an index would make the container anew */
		writer_abandon(&ino->w);
	ino->writing = false;
	inode_not_counted(ino);
	/*
	 * This may also remove what this process has made of it since the mover removed it. The header must
	 * not be lost while the logs are.
	 */
	if (ino->v.stub.has_container && !io_fdatasync(inode_any_fd(ino)))
		inode_remove_container(ino, false);
	view_enter_body(&ino->v, now);
}

/* The mover has the container's lock. With that here the mover has finished, or died. */
static int settle_logged(struct inode *ino, int fd, struct stub *now)
{
	int ret = inode_lock_end(ino);

	if (ret == -EACCES || ret == -EPERM || ret == -EROFS) /* can only read: looks before each read */
		return 0;
	if (ret)
		return ret == -ENOENT ? stub_read(fd, now) : ret; /* the mover has removed it */
	ret = stub_clear_moving(fd, now);
	inode_unlock_end(ino);
	return ret == -EBADF ? 0 : ret;
}

int inode_settle(struct inode *ino, int fd)
{
	struct stub now;
	int ret = ino->v.stub.in_body ? 0 : stub_settle_bare(fd, &now);

	if (!ret && !ino->v.stub.in_body && now.moving && ino->v.stub.has_container)
		ret = settle_logged(ino, fd, &now);
	if (ret || ino->v.stub.in_body)
		return ret;
	if (now.in_body) {
		inode_enter_body(ino, &now);
	} else if (now.has_container) {
		ino->v.stub.cut_size = now.cut_size;
		ino->v.stub.cut_ns = now.cut_ns;
		ino->settled_ns = now.generation_ns;
		stamp_seen(now.generation_ns);
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
		ino->v.stub.moving = now.moving;
	return ret;
}

/* Processes with the same settings look at the table of the name's mapping; removers at the other. */
static struct counted count_by(struct inode *ino, const struct container *c)
{
	struct counted counted = { { writer_table_begin(ino->m, c, ino->key.ino), NULL } };

	if (unlikely(ino->found) && !mount_prepare(ino->found))
		counted.in[1] = writer_table_begin(ino->found, c, ino->key.ino);
	return counted;
}

struct counted inode_count(struct inode *ino) { return count_by(ino, &ino->c); }

struct counted inode_count_as(struct inode *ino, const struct stat *st)
{
	struct container c = ino->c;

	container_set_stub(&c, st);
	return count_by(ino, &c);
}

/*
 * The mode stays: it may be less than the stub's (container_check()), and a chown leaves it. The owner of the
 * container stays known as well: droppings may still have that owner.
 */
static __attribute__((noinline, cold)) void take_owner(struct inode *ino, const struct stat *st)
{
	mode_t mode = ino->c.mode;

	container_set_stub(&ino->c, st);
	ino->c.mode = mode;
	ino->owner_due |= ino->writing;
	if (ino->counted.in[0] || ino->counted.in[1]) {
		struct counted next = inode_count(ino);

		inode_uncount(ino, &ino->counted);
		ino->counted = next;
	}
}

void inode_heed_owner(struct inode *ino, const struct stat *st)
{
	if (unlikely(st->st_uid != ino->c.uid || st->st_gid != ino->c.gid) && ino->v.stub.has_container &&
	    ino->c.uid != CONTAINER_ANYBODY)
		take_owner(ino, st);
}

void inode_uncount(struct inode *ino, struct counted *counted)
{
	for (size_t i = 0; i < ARRAY_SIZE(counted->in); i++)
		if (counted->in[i])
			writer_table_end(counted->in[i], ino->key.ino);
	*counted = (struct counted){ 0 };
}

void inode_not_counted(struct inode *ino)
{
	inode_uncount(ino, &ino->counted);
}

void inode_stop_writing(struct inode *ino)
{
	ino->writing = false;
	ino->counted = (struct counted){ 0 };
	view_lose_end(&ino->v);
}

int inode_make_container(struct inode *ino, int fd)
{
	uint8_t acl[ACL_LEN_MAX];
	int ret = mount_prepare(ino->m); /* what had them all may have gone as well */
	ssize_t n = ret ? ret : acl_get(fd, acl);

	if (n < 0)
		return (int)n;
	ino->c.acl = acl;
	ino->c.acl_len = (size_t)n;
	ret = container_make(&ino->c, name_hostdir(&ino->c));
	ino->c.acl = NULL;
	ino->c.acl_len = 0;
	return ret;
}

static __attribute__((noinline, cold)) int tell_gone(const struct inode *ino, int fd)
{
	char name[PATH_MAX];

	msg_error(
		"%s: its container %s is missing or empty, so what was written to it is lost (a purge of old files?): restore both from a backup, or empty the file; until then nothing can be written to it",
		stub_name(fd, name, sizeof(name)), ino->c.dir);
	return -EIO;
}

int inode_container_gone(struct inode *ino, int fd)
{
	struct stat st;

	/* what this process has in a log is lost, though nobody was told of it */
	if (!ino->writing && !sys.fstat(fd, &st) && !stub_body_len(st.st_size)) {
		ino->c.filled = false;
		return 0;
	}
	return tell_gone(ino, fd);
}

int inode_mend(struct inode *ino)
{
	int ret = 0, sync_error;

	if (ino->writing && live_is_broken(&ino->w.tail.live)) {
		char path[CONTAINER_PATH_LEN];

		name_live_of_log(ino->w.tail.log_path, path);
		ret = writer_give_up(&ino->w, &sync_error);
		inode_stop_writing(ino); /* it stays in the table, as a killed process's log does */
		if (!ino->sync_error)
			ino->sync_error = sync_error;
		if (ret != -ENOSPC && ret != -EDQUOT)
			msg_error(
				"%s/%s: the live file was truncated, or its file system failed (%s): what it still holds stays readable; a new log begins",
				ino->c.dir, path, strerror(-ret));
	}
	reader_release(&ino->v.r);
	return ret;
}

void inode_refresh(struct inode *ino)
{
	if (ino->writing)
		writer_break(&ino->w);
	ino->v.acquired = true;
}
/* ---- others ---- */

struct notify_arg {
	struct inode *ino;
	uint64_t stamp_ns;
	unsigned nr_others;
};

static int notify_live(void *arg, const char *path, const char *name, enum dropping_kind kind)
{
	struct notify_arg *na = arg;
	const struct inode *ino = na->ino;

	if (kind != DROPPING_LIVE)
		return 0;
	live_notify(&ino->c, path, na->stamp_ns);
	na->nr_others += !ino->writing || !name_is_live_of(name, ino->w.tail.log_name);
	return 0;
}

unsigned inode_notify_writers(struct inode *ino, uint64_t stamp_ns)
{
	struct notify_arg na = { .ino = ino, .stamp_ns = stamp_ns };

	container_list_there(&ino->c, notify_live, &na);
	return na.nr_others;
}

void inode_notify(struct inode *ino, uint64_t stamp_ns)
{
	inode_notify_writers(ino, stamp_ns);
	notice_raise(&ino->c);
}
/* ---- one at a time: appending and cutting ---- */

/* Make it anew: what a purge has left. */
static int make_lock(const struct inode *ino)
{
	int fd = ino->c.listed ? inode_any_fd(ino) : -1;
	struct container c = ino->c;
	uint8_t acl[ACL_LEN_MAX];
	ssize_t n = fd < 0 ? 0 : acl_get(fd, acl);

	c.acl = acl;
	c.acl_len = n < 0 ? 0 : (size_t)n;
	return n < 0 ? (int)n : container_open_lock(&c, 0, true);
}

static int open_lock(struct inode *ino)
{
	int h = container_open_lock(&ino->c, 0, false);

	ino->c.filled = ino->v.told_len > 0;
	return h == -ENOENT && !container_is_purged(&ino->c) ? make_lock(ino) : h;
}

/* The open lock file, of which the inode has none. */
static void keep_lock(struct inode *ino, int h)
{
	ino->lock_h = h;
	store_keep(&ino->m->store, &ino->lock_h);
}

/* Others lock the file that has the name by now: a purge has taken this one, or a repair. True: have that. */
static bool is_another_lock(struct inode *ino)
{
	struct store *s = &ino->m->store;
	struct stat st;
	int h;

	if (likely(s->ops->fstat(s, ino->lock_h, &st) || st.st_nlink))
		return false;
	h = open_lock(ino);
	if (h < 0) /* nothing is left to be locked */
		return false;
	store_close(s, &ino->lock_h);
	keep_lock(ino, h);
	return true;
}

static int lock_end(struct inode *ino, bool waits)
{
	struct store *s;
	int ret;

	if (ino->end_locks) {
		ino->end_locks++;
		return 0;
	}
	if (ino->lock_h < 0) {
		ret = inode_check_container(ino, CONTAINER_CHANGE);
		if (ret)
			return ret;
		ret = open_lock(ino);
		if (ret < 0)
			return ret;
		keep_lock(ino, ret);
	}
	s = &ino->m->store;
	do {
		ret = waits ? end_wait(&ino->c, ino->lock_h, inode_any_fd(ino)) :
			      store_try_lock(s, ino->lock_h);
	} while (!ret && is_another_lock(ino));
	if (ret && ret != -EOPNOTSUPP)
		return ret;
	ino->end_locks = 1;
	return 0;
}

int inode_lock_end(struct inode *ino) { return lock_end(ino, true); }
int inode_try_lock_end(struct inode *ino) { return lock_end(ino, false); }

void inode_unlock_end(struct inode *ino)
{
	if (!--ino->end_locks)
		store_unlock(&ino->m->store, ino->lock_h);
}

int inode_heed_notice(struct inode *ino, int fd)
{
	uint64_t notified_ns;
	int ret;

	if (likely(!inode_is_notified(ino)))
		return 0;
	notified_ns = live_notified(&ino->w.tail.live);
	inode_heed_cut(ino);
	ret = inode_settle(ino, fd);
	if (!ret)
		ino->v.notified_ns = notified_ns;
	return inode_still_logged(ino, ret);
}

bool inode_mark_synced(struct inode *ino, int fd)
{
	int flags = sys.fcntl(fd, F_GETFL);
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT } };
	struct stat st;

	if ((flags & O_ACCMODE) == O_RDONLY || flags & O_APPEND || ino->v.stub.in_body ||
	    (!ino->v.stub.has_container && !ino->v.told_len))
		return false;
	if (stub_is_synced(fd) || sys.fstat(fd, &st) || inode_check_stub(ino, fd))
		return false;
	times[1] = st.st_mtim;
	if (!stub_mark_synced(fd))
		sys.futimens(fd, times);
	return true;
}
