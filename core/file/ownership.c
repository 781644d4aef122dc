/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * chmod and chown. The kernel does each of them on the stub; here is what the container needs besides.
 */
#include "core/file/file.h"
#include "core/file/owned.h"
#include "core/base/io.h"
#include "core/base/msg.h"
#include "core/dropping/owner.h"
#include "core/backend/nested.h"
#include "core/backend/stub_known.h"
#include "core/backend/stub_lock.h"
#include "core/backend/writer_table.h"

#include <unistd.h>

static int stat_of(int dirfd, const char *path, struct stat *st, int at_flags)
{
	int ret = path ? sys.fstatat(dirfd, path, st, at_flags & (AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH)) :
		sys.fstat(dirfd, st);

	return ret ? -errno : 0;
}

/* The same, and the mark says whether it is a stub. */
static int stat_and_know(int dirfd, const char *path, struct stat *st, int at_flags)
{
	int ret = stat_of(dirfd, path, st, at_flags);

	if (!ret && stub_maybe_unmarked(st))
		file_know_at(st, dirfd, path ? path : "", at_flags);
	return ret;
}

/*
 * The container of a stub, by the inode that is open here or by its header. @changed: the stub has got the
 * attributes @st just now; who is giving it a container may not have seen that, and is waited for. False:
 * there is none, or it cannot be read.
 */
static bool find_container(int dirfd, const char *path, const struct stat *st, int at_flags, bool changed,
			   struct container *c)
{
	struct inode *ino = inode_find(st->st_dev, st->st_ino);
	bool found = false;
	int fd;

	if (ino) {
		mutex_lock(&ino->lock);
		fd = inode_any_fd(ino);
		if (fd >= 0 && changed && !ino->v.stub.has_container)
			stub_wait_claimed(fd);
		if (fd >= 0) /* others may have made it since we looked */
			inode_look_bare(ino, fd);
		found = ino->v.stub.has_container;
		if (found)
			*c = ino->c;
		container_look_at_group(c, fd);
		mutex_unlock(&ino->lock);
		if (found && st->st_uid != c->uid)
			container_set_stub(c, st);
		if (found)
			c->checked = 0; /* the container may have another owner as well by now */
		inode_put(ino, NULL);
		return found;
	}
	if (path && (changed || st->st_size)) {
		struct plfs_mount *m;
		struct stub stub;
		struct stat now;

		fd = io_openat(dirfd, path,
			       O_RDONLY | O_CLOEXEC | (at_flags & AT_SYMLINK_NOFOLLOW ? O_NOFOLLOW : 0));
		fd = sys_fd_hide(fd < 0 ? -errno : fd);
		if (fd < 0)
			return false;
		m = mount_of_file(fd);
		if (changed)
			stub_wait_claimed(fd);
		found = m && !sys.fstat(fd, &now) && now.st_size && !stub_read(fd, &stub) &&
			stub.has_container;
		if (found)
			nested_init_container(m, c, fd, &stub, st);
		container_look_at_group(c, fd);
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
	if (ino->v.stub.has_container && !stat_of(dirfd, path, &st, at_flags) && st.st_ino == before->st_ino)
		container_set_stub(&ino->c, &st);
	mutex_unlock(&ino->lock);
	inode_put(ino, NULL);
}

/*
 * The stub has been changed, and the container, if there was one, as @done has it: c.uid and the like. Others
 * may be changing either at the same time: the process that makes the container, or that changes the stub
 * too. Each of them first does its own to the stub or makes what follows the stub, and then looks at the stub
 * until that is as the container was left. So whoever is the last at the container leaves it as the stub is.
 * @ret: what came of the container's change. An error counts if nobody else has changed the stub since.
 */
static int agree(struct container *c, bool found, int dirfd, const char *path, int at_flags,
		 const struct stat *before, const struct stat *done, int ret)
{
	struct stat was = found ? *done : *before, now;

	for (int tries = 0; tries < OWNED_TRIES; tries++) {
		if (stat_of(dirfd, path, &now, at_flags) || now.st_ino != before->st_ino ||
		    now.st_dev != before->st_dev || (found && owned_is_same(&now, &was)))
			break;
		if (!found)
			found = find_container(dirfd, path, &now, at_flags, true, c);
		if (!found)
			break;
		ret = container_follow(c, &was, &now);
		was = now;
		remember_stub(dirfd, path, at_flags, &now);
	}
	return ret;
}

/*
 * Whether the container may be changed. Users count who may write the file before and after: a container that
 * is closed to some of its writers can be mended by taking their right away.
 */
static int check_container(struct container *c, mode_t mode)
{
	mode_t before = c->mode;
	int ret;

	c->mode &= mode;
	ret = container_check(c, CONTAINER_CHANGE);
	c->mode = before;
	return ret;
}

/*
 * A change of the stub's owner, group or mode. Before it, logs that are open begin to count where a stat
 * looks afterwards.
 */
struct recount {
	struct inode *ino; /* if it is open here, a reference */
	struct counted next;
	struct stat before, after;
	bool carried;
};

static void recount_begin(struct recount *r, const struct stat *before, const struct stat *after)
{
	struct inode *ino = inode_find(before->st_dev, before->st_ino);

	*r = (struct recount){ .ino = ino, .before = *before, .after = *after };
	if (ino)
		mutex_lock(&ino->lock);
	if (ino && ino->counted.in[0])
		r->next = inode_count_as(ino, after);
	r->carried = writer_table_carry(before, after, ino ? ino->counted.in : NULL);
	if (ino)
		mutex_unlock(&ino->lock);
}

/* A log that was counted since recount_begin() may have looked at the owner before the change. */
static void recount_end(struct recount *r, bool changed)
{
	struct inode *ino = r->ino;

	if (ino) {
		mutex_lock(&ino->lock);
		if (changed && ino->counted.in[0]) {
			inode_uncount(ino, &ino->counted);
			ino->counted = r->next;
		} else {
			inode_uncount(ino, &r->next);
		}
		mutex_unlock(&ino->lock);
		inode_put(ino, NULL);
	}
	if (changed && !r->carried)
		writer_table_carry(&r->before, &r->after, NULL);
}

static int chmod_stub(int dirfd, const char *path, mode_t mode, int at_flags)
{
	int ret = path ? sys.fchmodat(dirfd, path, mode, at_flags) : sys.fchmod(dirfd, mode);

	return ret ? -errno : 0;
}

/*
 * The container's mode is changed before the stub's: what cannot be closed there is not to seem closed. And
 * behind it again, for what was made meanwhile. After an error all is as before.
 */
static int chmod_both(struct container *c, int dirfd, const char *path, const struct stat *st, mode_t mode,
		      int at_flags)
{
	mode_t before = st->st_mode & 07777, was = c->mode;
	int ret = check_container(c, mode), done;

	if (ret)
		return ret;
	ret = container_chmod(c, mode);
	done = ret ? ret : chmod_stub(dirfd, path, mode, at_flags);
	if (!done) {
		remember_stub(dirfd, path, at_flags, st);
		c->mode = was; /* by which others' files are judged: they may be as open as that allowed */
		ret = container_chmod(c, mode);
	}
	if (ret == -EPERM)
		msg_error(
			"%s: another user made this container, or an index in it, and keeps that open to more users than mode %03o: copy the file, then remove it",
			c->dir, mode & 0777);
	if (!ret && !done)
		return 0;
	c->told = true;
	if (!done && !chmod_stub(dirfd, path, before, at_flags))
		remember_stub(dirfd, path, at_flags, st);
	container_chmod(c, before);
	return ret ? ret : done;
}

/* Of the stub @st, as @after has it. */
static int chmod_file(int dirfd, const char *path, const struct stat *st, const struct stat *after,
		      int at_flags)
{
	mode_t mode = after->st_mode & 07777;
	uid_t me = geteuid();
	struct container c;
	bool found = find_container(dirfd, path, st, at_flags, false, &c);
	int ret;

	if (found && (!me || me == st->st_uid)) {
		ret = chmod_both(&c, dirfd, path, st, mode, at_flags);
	} else {
		ret = chmod_stub(dirfd, path, mode, at_flags);
		if (!ret)
			remember_stub(dirfd, path, at_flags, st);
		if (!ret && found)
			ret = container_chmod(&c, mode);
	}
	return ret ? ret : agree(&c, found, dirfd, path, at_flags, st, after, 0);
}

int plfs_chmod(int dirfd, const char *path, mode_t mode, int at_flags)
{
	int saved ERRNO_KEPT = errno;
	bool section CRITICAL = critical_begin();
	struct stat st, after;
	struct recount r;
	int ret = stat_and_know(dirfd, path, &st, at_flags);

	if (ret)
		return ret;
	if (S_ISREG(st.st_mode) && nested_has_dev(st.st_dev)) /* a plain file must not look like a stub */
		mode = stub_marked(st.st_mode) ? mode | S_ISVTX : mode & ~(mode_t)S_ISVTX;
	if (!stub_marked(st.st_mode) || !nested_has_dev(st.st_dev))
		return chmod_stub(dirfd, path, mode, at_flags);
	after = st;
	after.st_mode = (st.st_mode & S_IFMT) | (mode & 07777);
	recount_begin(&r, &st, &after);
	ret = chmod_file(dirfd, path, &st, &after, at_flags);
	recount_end(&r, !ret);
	return ret;
}

/* All has followed; also what a chown that was killed has left. */
static void end_giving(const struct container *c, const struct stat *before, const struct stat *after)
{
	container_end_giving(c, after->st_uid);
	if (before->st_uid != after->st_uid)
		container_end_giving(c, before->st_uid);
}

int plfs_chown(int dirfd, const char *path, uid_t uid, gid_t gid, int at_flags)
{
	int saved ERRNO_KEPT = errno;
	bool section CRITICAL = critical_begin();
	bool stub, found = false, giving = false;
	struct stat st, after;
	struct container c;
	struct recount r;
	int ret = stat_and_know(dirfd, path, &st, at_flags);

	if (ret)
		return ret;
	after = st;
	after.st_uid = uid == (uid_t)-1 ? st.st_uid : uid;
	after.st_gid = gid == (gid_t)-1 ? st.st_gid : gid;
	stub = stub_marked(st.st_mode) && mount_has_dev(st.st_dev);
	if (stub) {
		found = find_container(dirfd, path, &st, at_flags, false, &c);
		giving = found && container_begin_giving(&c, &after);
		recount_begin(&r, &st, &after);
	}
	ret = path ? sys.fchownat(dirfd, path, uid, gid, at_flags) : sys.fchown(dirfd, uid, gid);
	ret = ret ? -errno : 0;
	if (!ret && found)
		remember_stub(dirfd, path, at_flags, &st);
	if (stub)
		recount_end(&r, !ret);
	if (ret && giving)
		container_end_giving(&c, after.st_uid);
	if (ret || !stub)
		return ret;
	ret = found ? container_chown(&c, uid, gid) : 0;
	ret = agree(&c, found, dirfd, path, at_flags, &st, &after, ret);
	if (!ret && found)
		end_giving(&c, &st, &after);
	return ret;
}
