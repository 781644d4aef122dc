/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What can be done on any store with its table of functions alone, and what stands in for a capability that
 * it has not.
 */
#include "core/store/store.h"

#include "core/base/alloc.h"
#include "core/base/crc32c.h"
#include "core/base/sys.h"

/* @n bytes were moved by a call, behind @done: whether the next piece is to follow. */
static bool is_whole(ssize_t n, size_t len, size_t *done)
{
	*done += n > 0 ? (size_t)n : 0;
	return n == (ssize_t)len;
}

ssize_t store_preadv_by(struct store *s, int h, const struct iovec *iov, int cnt, uint64_t off,
			ssize_t (*pread)(struct store *s, int h, void *buf, size_t len, uint64_t off))
{
	size_t done = 0;
	ssize_t n = 0;

	for (int i = 0; i < cnt; i++) {
		n = pread(s, h, iov[i].iov_base, iov[i].iov_len, off + done);
		if (!is_whole(n, iov[i].iov_len, &done))
			break;
	}
	return n < 0 && !done ? n : (ssize_t)done;
}

ssize_t store_preadv(struct store *s, int h, struct iovec *iov, int cnt, uint64_t off)
{
	return s->ops->preadv ? s->ops->preadv(s, h, iov, cnt, off) :
				store_preadv_by(s, h, iov, cnt, off, s->ops->pread);
}

ssize_t store_pwrite2(struct store *s, int h, const void *buf, size_t len, const void *buf2, size_t len2,
		      uint64_t off)
{
	size_t done = 0;
	ssize_t n;

	if (s->ops->pwrite2)
		return s->ops->pwrite2(s, h, buf, len, buf2, len2, off);
	n = s->ops->pwrite(s, h, buf, len, off);
	if (is_whole(n, len, &done))
		n = s->ops->pwrite(s, h, buf2, len2, off + len);
	else
		return n;
	is_whole(n, len2, &done);
	return n < 0 && !done ? n : (ssize_t)done;
}

uint64_t store_path_id(const char *path)
{
	size_t len = strlen(path);

	return (uint64_t)crc32c(0, path, len) << 32 | crc32c(~0u, path, len);
}

int store_identify(struct store *s, int h, struct store_identity *id)
{
	struct stat st;
	int ret;

	if (s->ops->identify)
		return s->ops->identify(s, h, id);
	ret = s->ops->fstat(s, h, &st);
	if (!ret)
		*id = (struct store_identity){ .len = (uint64_t)st.st_size,
					       .ino = st.st_ino,
					       .id = st.st_ino };
	return ret;
}

int store_write_zeros(struct store *s, int h, uint64_t off, uint64_t len)
{
	static const char zeros[65536];

	for (uint64_t end = off + len; off < end; off += sizeof(zeros)) {
		size_t part = (size_t)min_u64(sizeof(zeros), end - off);
		ssize_t n = s->ops->pwrite(s, h, zeros, part, off);

		if (n != (ssize_t)part)
			return n < 0 ? (int)n : -ENOSPC;
	}
	return 0;
}

int store_reserve(struct store *s, int h, uint64_t off, uint64_t len)
{
	return s->ops->reserve ? s->ops->reserve(s, h, off, len) : store_write_zeros(s, h, off, len);
}

/* ---- removing a tree ---- */

#define TREE_DEPTH_MAX 2

struct remove_arg {
	struct store *s;
	dirs_known *known;
	const char *dir;
	int depth, ret;
};

static int remove_dir(struct store *s, const char *path, int depth, dirs_known *known);

static int remove_entry(void *arg, const char *name)
{
	struct remove_arg *ra = arg;
	char path[STORE_PATH_LEN];
	struct stat st;
	int ret = -ENAMETOOLONG;

	if (snprintf(path, sizeof(path), "%s/%s", ra->dir, name) < (int)sizeof(path))
		ret = ra->s->ops->stat(ra->s, path, &st);
	if (!ret && !ra->known(name, ra->depth, S_ISDIR(st.st_mode)))
		ret = -ENOTEMPTY;
	if (!ret)
		ret = S_ISDIR(st.st_mode) ? remove_dir(ra->s, path, ra->depth + 1, ra->known) :
					    ra->s->ops->unlink(ra->s, path);
	if (ret && ret != -ENOENT && !ra->ret)
		ra->ret = ret;
	return 0;
}

static int remove_dir(struct store *s, const char *path, int depth, dirs_known *known)
{
	struct remove_arg ra = { .s = s, .known = known, .dir = path, .depth = depth };
	int ret = depth >= TREE_DEPTH_MAX ? -ENOTEMPTY : s->ops->list(s, path, remove_entry, &ra);

	if (!ret)
		ret = ra.ret;
	return ret ? ret : store_rmdir(s, path);
}

int store_remove_tree(struct store *s, const char *path, dirs_known *known)
{
	return s->ops->remove_tree ? s->ops->remove_tree(s, path, known) : remove_dir(s, path, 0, known);
}

/* ---- whole files ---- */

int store_open_or_make(struct store *s, const char *path, int flags, mode_t mode, bool *made)
{
	int h;

	*made = false;
	for (int tries = 0; tries < 100; tries++) { /* each time another process makes or removes it */
		h = store_open(s, path, flags, 0);
		if (h != -ENOENT)
			return h;
		h = store_open(s, path, flags | O_CREAT | O_EXCL, mode);
		*made = h >= 0;
		if (h != -EEXIST)
			return h;
	}
	return h;
}

int store_sync_path(struct store *s, const char *path, bool dir)
{
	int h = store_open(s, path, O_RDONLY | STORE_BRIEFLY | (dir ? O_DIRECTORY : 0), 0), ret;

	if (h < 0)
		return h;
	ret = s->ops->sync(s, h, dir);
	store_close(s, &h);
	return ret;
}

int store_sync_parents(struct store *s, const char *path)
{
	char dir[STORE_PATH_LEN];
	int ret = 0;

	snprintf(dir, sizeof(dir), "%s", path);
	for (char *slash = strrchr(dir, '/'); slash && !ret; slash = strrchr(dir, '/')) {
		*slash = '\0';
		ret = store_sync_path(s, dir, true);
	}
	return ret ? ret : store_sync_path(s, ".", true);
}

int store_read_file(struct store *s, const char *path, size_t max, void **buf, size_t *len)
{
	struct stat st;
	ssize_t n;
	int ret;
	int h = store_open(s, path, O_RDONLY | STORE_BRIEFLY | s->uncached, 0);

	if (h < 0)
		return h;
	*buf = NULL;
	ret = s->ops->fstat(s, h, &st);
	if (ret)
		goto out;
	ret = -EIO;
	if (!S_ISREG(st.st_mode))
		goto out;
	ret = -EFBIG;
	if ((uint64_t)st.st_size > max)
		goto out;
	ret = -ENOMEM;
	*buf = mem_alloc((size_t)st.st_size + 1);
	if (!*buf)
		goto out;
	n = s->ops->pread(s, h, *buf, (size_t)st.st_size, 0);
	ret = n < 0 ? (int)n : 0;
	*len = n < 0 ? 0 : (size_t)n;
	if (ret) {
		mem_free(*buf);
		*buf = NULL;
	}
out:
	store_close(s, &h);
	return ret;
}

int store_rename_new(struct store *s, const char *from, const char *to)
{
	struct stat st;
	int ret;

	if (s->ops->rename_new)
		return s->ops->rename_new(s, from, to);
	ret = s->ops->stat(s, to, &st);
	return ret == -ENOENT ? s->ops->rename(s, from, to) : ret ? ret : -EEXIST;
}

enum how { QUICKLY, DURABLY, DURABLY_NEW };

/* @look, unless NULL: as in store_write_looked_at(). *@gone: the temporary file has gone. */
static int try_to_replace(struct store *s, const char *path, mode_t mode, const void *buf, size_t len,
			  const void *buf2, size_t len2, enum how how, int (*look)(void *arg, int h),
			  void *arg, bool *gone)
{
	char tmp[STORE_PATH_LEN];
	uint64_t salt = 0;
	ssize_t n;
	int h, ret;

	if (sys.getrandom(&salt, sizeof(salt), 0) != sizeof(salt))
		return -EIO;
	if (snprintf(tmp, sizeof(tmp), "%s.tmp.%016llx", path, (unsigned long long)salt) >= (int)sizeof(tmp))
		return -ENAMETOOLONG;
	h = store_open(s, tmp, O_RDWR | O_CREAT | O_EXCL | STORE_BRIEFLY, mode);
	if (h < 0)
		return h;
	n = store_pwrite2(s, h, buf, len, buf2, len2, 0);
	ret = n < 0 ? (int)n : (size_t)n < len + len2 ? -ENOSPC : 0;
	if (!ret && look)
		ret = look(arg, h);
	if (!ret && how != QUICKLY)
		ret = s->ops->sync(s, h, false);
	if (!ret)
		ret = how == DURABLY_NEW ? store_rename_new(s, tmp, path) : s->ops->rename(s, tmp, path);
	if (!ret)
		return h;
	*gone = ret == -ENOENT;
	store_close(s, &h);
	s->ops->unlink(s, tmp);
	return ret;
}

#define REPLACE_TRIES 10

/* plfs gc -a 0 may take the temporary file away: then it is written anew. */
static int replace_file(struct store *s, const char *path, mode_t mode, const void *buf, size_t len,
			const void *buf2, size_t len2, enum how how, int (*look)(void *arg, int h), void *arg)
{
	bool gone = true;
	int h = -ENOENT;

	for (int tries = 0; gone && tries < REPLACE_TRIES; tries++) {
		gone = false;
		h = try_to_replace(s, path, mode, buf, len, buf2, len2, how, look, arg, &gone);
	}
	return h;
}

int store_replace_file(struct store *s, const char *path, mode_t mode, const void *buf, size_t len,
		       const void *buf2, size_t len2)
{
	return replace_file(s, path, mode, buf, len, buf2, len2, QUICKLY, NULL, NULL);
}

static int write_looked_at(struct store *s, const char *path, mode_t mode, const void *buf, size_t len,
			   enum how how, int (*look)(void *arg, int h), void *arg)
{
	int h = replace_file(s, path, mode, buf, len, NULL, 0, how, look, arg);

	if (h < 0)
		return h;
	store_close(s, &h);
	return 0;
}

int store_write_looked_at(struct store *s, const char *path, mode_t mode, const void *buf, size_t len,
			  int (*look)(void *arg, int h), void *arg)
{
	return write_looked_at(s, path, mode, buf, len, DURABLY, look, arg);
}

int store_make_looked_at(struct store *s, const char *path, mode_t mode, const void *buf, size_t len,
			 int (*look)(void *arg, int h), void *arg)
{
	return write_looked_at(s, path, mode, buf, len, DURABLY_NEW, look, arg);
}

int store_write_file(struct store *s, const char *path, mode_t mode, const void *buf, size_t len,
		     const void *buf2, size_t len2)
{
	int h = replace_file(s, path, mode, buf, len, buf2, len2, DURABLY, NULL, NULL);

	if (h < 0)
		return h;
	store_close(s, &h);
	return 0;
}

struct give_arg {
	struct store *s;
	uid_t uid;
};

static int give_it(void *arg, int h)
{
	struct give_arg *ga = arg;

	if (ga->uid != STORE_NOBODY)
		store_give(ga->s, h, ga->uid);
	return 0;
}

int store_replace_durably(struct store *s, const char *path, mode_t mode, uid_t uid, const void *buf,
			  size_t len)
{
	const char *slash = strrchr(path, '/');
	char dir[STORE_PATH_LEN];
	struct give_arg ga = { s, uid };
	int h = replace_file(s, path, mode, buf, len, NULL, 0, DURABLY, give_it, &ga);

	if (h < 0)
		return h;
	store_close(s, &h);
	snprintf(dir, sizeof(dir), "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
	return store_sync_path(s, dir, true);
}

int store_make_dirs(struct store *s, const char *path, mode_t mode)
{
	char part[STORE_PATH_LEN];
	int ret = 0;

	for (const char *p = path; p && !ret;) {
		p = strchr(p, '/');
		snprintf(part, sizeof(part), "%.*s", p ? (int)(p - path) : (int)strlen(path), path);
		ret = s->ops->mkdir(s, part, mode);
		ret = ret == -EEXIST ? 0 : ret;
		p = p ? p + 1 : NULL;
	}
	return ret;
}
