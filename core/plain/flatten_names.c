/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/plain/flatten_names.h"

#include "core/backend/names.h"
#include "core/base/io.h"
#include "core/plain/copy_out.h"
#include "core/store/dirs.h"

#include <stdio.h>

/* ---- the temporary file ---- */

static void tell_temp(const struct flatten *f, const char *dir)
{
	char path[PATH_MAX];

	if (!f->watch || !f->watch->temp)
		return;
	snprintf(path, sizeof(path), "%s/%s", dir, f->temp);
	f->watch->temp(f->watch->arg, *f->temp ? path : NULL);
}

static int make_in(struct flatten *f)
{
	int fd = io_openat(f->temp_dir, f->temp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);

	f->to = sys_fd_hide(fd < 0 ? -errno : fd);
	if (f->to < 0)
		return f->to;
	return sys.fstat(f->to, &f->made) ? -errno : f->made.st_dev == f->st.st_dev ? 0 : -EXDEV;
}

/* In the directory @fd, hidden, which this takes, or whose error it is; @dir: its name. */
static int try_temp(struct flatten *f, int fd, const char *dir)
{
	uint64_t random = 0;

	if (fd < 0)
		return fd;
	f->temp_dir = fd;
	if (sys.getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return -EIO;
	snprintf(f->temp, sizeof(f->temp), ".plfs-flatten.%016llx", (unsigned long long)random);
	tell_temp(f, dir);
	return make_in(f);
}

void flatten_drop_temp(struct flatten *f)
{
	sys_fd_close(&f->to);
	if (*f->temp)
		sys.unlinkat(f->temp_dir, f->temp, 0);
	*f->temp = '\0';
	sys_fd_close(&f->temp_dir);
	tell_temp(f, "");
}

/* A directory that the owner may not write to is none in which he could exchange names. */
int flatten_make_temp(struct flatten *f)
{
	const struct inode *ino = f->file->ino;
	const struct plfs_mount *m = f->m;
	char dir[PATH_MAX], rest[sizeof(ino->c.dir)];
	int ret;

	file_begin(f->file);
	if (ino->v.stub.has_container)
		m = ino->m;
	snprintf(rest, sizeof(rest), "%s", ino->v.stub.has_container ? ino->c.dir : PLFS_DIR_NAME);
	file_end(f->file);
	ret = -ENAMETOOLONG;
	if (snprintf(dir, sizeof(dir), "%s/%s", m->backend, rest) < (int)sizeof(dir))
		ret = try_temp(f, sys_fd_hide(dirs_open(m->dirfd, rest)), dir);
	if (!ret)
		return 0;
	flatten_drop_temp(f);
	snprintf(dir, sizeof(dir), "%.*s", (int)(strrchr(f->name, '/') - f->name), f->name);
	ret = try_temp(f, sys_fd_dup(f->dir), dir);
	if (ret == -EACCES && f->owner.is) {
		as_owner_end(&f->owner);
		ret = make_in(f);
		as_owner_begin(&f->owner, f->st.st_uid, f->st.st_gid);
	}
	return ret ? progress_failed(f->watch, ret, "cannot make a file beside it") : 0;
}

/* ---- its name, and the stub's ---- */

/* Whether nothing that was copied from the stub has changed since, and @st is the stub. */
static bool is_unchanged(const struct flatten *f, const struct stat *st)
{
	return st->st_dev == f->st.st_dev && st->st_ino == f->st.st_ino && st->st_nlink == 1 &&
	       st->st_size == f->st.st_size && st->st_mode == f->st.st_mode && st->st_uid == f->st.st_uid &&
	       st->st_gid == f->st.st_gid && st->st_mtim.tv_sec == f->st.st_mtim.tv_sec &&
	       st->st_mtim.tv_nsec == f->st.st_mtim.tv_nsec;
}

bool flatten_has_stub(const struct flatten *f, int dir, const char *name)
{
	struct stat st;

	return !sys.fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) && is_unchanged(f, &st);
}

/* f->pin keeps its number from being given again. */
static bool has_made(const struct flatten *f, int dir, const char *name, struct stat *st)
{
	return !sys.fstatat(dir, name, st, AT_SYMLINK_NOFOLLOW) && st->st_dev == f->made.st_dev &&
	       st->st_ino == f->made.st_ino;
}

/* -EACCES, -EPERM of the owner: the directory is not his to change, and root may. */
static int rename_temp(struct flatten *f, unsigned flags)
{
	int ret;

	for (;;) {
		if (flags)
			ret = sys.renameat2(f->temp_dir, f->temp, f->dir, f->base, flags);
		else
			ret = sys.renameat(f->temp_dir, f->temp, f->dir, f->base);
		ret = ret ? -errno : 0;
		if ((ret != -EACCES && ret != -EPERM) || !f->owner.is)
			return ret;
		as_owner_end(&f->owner);
	}
}

/*
 * Whether the exchange gave each name what it was to have. Who opens the file from then on has the plain one,
 * and may write to it, cut it off, replace or remove it. Only where the owner could have put nothing there
 * himself is the name looked at again: root is not to give it to what the owner has exchanged.
 */
static bool is_exchanged(const struct flatten *f)
{
	struct stat st;

	return flatten_has_stub(f, f->temp_dir, f->temp) &&
	       (as_owner_uid() == f->st.st_uid || has_made(f, f->dir, f->base, &st));
}

/* Whether others have written to the plain file since it got its name, or cut it off. */
static bool is_changed(const struct flatten *f)
{
	struct stat st;

	return has_made(f, f->dir, f->base, &st) &&
	       (st.st_size != (off_t)f->size || st.st_mtim.tv_sec != f->st.st_mtim.tv_sec ||
		st.st_mtim.tv_nsec != f->st.st_mtim.tv_nsec);
}

/* The stub, whatever its attributes are by now. */
static bool has_stub_still(const struct flatten *f)
{
	struct stat st;

	return !sys.fstatat(f->temp_dir, f->temp, &st, AT_SYMLINK_NOFOLLOW) && st.st_dev == f->st.st_dev &&
	       st.st_ino == f->st.st_ino;
}

/* As before the exchange; but what another process has given the name since then has it. */
static void exchange_back(struct flatten *f)
{
	struct stat st;

	if (!rename_temp(f, RENAME_EXCHANGE) && as_owner_uid() == f->st.st_uid &&
	    !has_made(f, f->temp_dir, f->temp, &st))
		rename_temp(f, RENAME_EXCHANGE);
}

int flatten_take_name(struct flatten *f)
{
	struct stat st;
	int ret;

	if (!flatten_has_stub(f, f->dir, f->base) || !has_made(f, f->temp_dir, f->temp, &st) ||
	    st.st_size != (off_t)f->size)
		return -EAGAIN;
	ret = rename_temp(f, RENAME_EXCHANGE);
	if (ret == -EINVAL || ret == -ENOSYS) {
		ret = rename_temp(f, 0);
		if (!ret)
			*f->temp = '\0';
		return ret ? progress_failed(f->watch, ret, "cannot replace it") : 0;
	}
	if (ret)
		return ret == -ENOENT ? -EAGAIN : progress_failed(f->watch, ret, "cannot replace it");
	if (is_exchanged(f) || (has_stub_still(f) && is_changed(f))) /* bytes count more than a mode */
		return 0;
	exchange_back(f);
	return -EAGAIN;
}
