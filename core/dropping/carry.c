/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copying logs from near to home, and removing what has been copied.
 */
#include "core/dropping/carry.h"

#include "core/backend/names.h"
#include "core/backend/placed.h"
#include "core/backend/rebuilt.h"
#include "core/backend/staged.h"
#include "core/backend/twin.h"
#include "core/base/alloc.h"
#include "core/base/msg.h"
#include "core/base/sys.h"
#include "core/dropping/datalog.h"
#include "core/dropping/node_index.h"
#include "core/dropping/sums.h"

#include <stdio.h>
#include <unistd.h>

#define HEADER_LEN 4096 /* of a log, behind which a hole follows */
#define COPY_LEN ((size_t)1 << 20)

static_assert(COPY_LEN % INDEX_CHUNK_LEN == 0, "whole chunks are compared");

/* One log, near and at home. */
struct carried {
	const struct container *c;
	struct store home;
	const char *path; /* relative to the container */
	char full[CONTAINER_PATH_LEN];
	int near, from, to; /* near: the file there; from: with what home has of it (twin.h) */
	int other;     /* -1, or: a copy, for what is damaged in @from */
	bool reserves; /* space for a copy, before it is written */
	bool keeps;    /* what goes near, unless: */
	bool doubtful; /* bytes of it were wrong, or were not looked at */
	uint8_t *buf; /* COPY_LEN */
	bool quiet;   /* what is wrong gets no line */
	bool private; /* the copy is its owner's: no chmod() reaches it */
	bool restores; /* a log at home, of a copy */
	struct log_sums sums;
};

/* The directory near in which @full, the path of a log, is. */
static int enter_near(const struct container *c, const char *full, struct place_dir *near)
{
	const char *name = strrchr(full, '/') + 1, *host;
	char dir[CONTAINER_PATH_LEN];
	size_t len;

	host = name_host(name, &len);
	snprintf(dir, sizeof(dir), "%.*s", (int)(name - 1 - full), full);
	return host ? place_enter(c->store, dir, host, len, near) : -ENOENT;
}

/* The file near itself: what home has of a log would seem to be all if that could not be opened. */
static int open_near(struct carried *k)
{
	struct place_dir near;
	int ret = enter_near(k->c, k->full, &near);

	if (ret)
		return ret;
	k->near = store_open(&near.store, strrchr(k->full, '/') + 1, O_RDONLY | STORE_BRIEFLY, 0);
	place_leave(&near);
	return k->near < 0 ? k->near : 0;
}

/* -ENOENT: it is not near. */
static int begin(struct carried *k, const struct container *c, const char *path)
{
	int ret;

	*k = (struct carried){
		.c = c, .home = placed_home(c->store), .path = path,
		.near = -1, .from = -1, .other = -1, .to = -1
	};
	container_path(c, path, k->full);
	if (!placed_is_near(c->store, k->full))
		return -ENOENT;
	ret = open_near(k);
	if (ret)
		return ret;
	k->from = datalog_open(c, path, false);
	k->doubtful = twin_prefers_home(k->from);
	k->buf = k->from < 0 ? NULL : mem_alloc(COPY_LEN);
	return k->from < 0 ? k->from : k->buf ? 0 : -ENOMEM;
}

static void end(struct carried *k)
{
	if (k->near >= 0)
		store_close(&k->home, &k->near);
	if (k->from >= 0)
		store_close(k->c->store, &k->from);
	if (k->to >= 0)
		store_close(&k->home, &k->to);
	sums_release(&k->sums);
	mem_free(k->buf);
}

/* Make the file @full at home, with the mode and owner of the log near. */
static int make(struct carried *k, const char *full)
{
	struct stat st;
	int h, ret = k->c->store->ops->fstat(k->c->store, k->from, &st);

	if (ret)
		return ret;
	h = store_open(&k->home, full, O_RDWR | O_CREAT | O_EXCL | STORE_BRIEFLY,
		       k->private  ? S_IRUSR | S_IWUSR :
		       k->restores ? container_file_mode(k->c, false) :
				     st.st_mode & 0777);
	if (h >= 0 && st.st_uid != geteuid())
		store_give(&k->home, h, st.st_uid);
	return h;
}

static int copy_header(struct carried *k)
{
	ssize_t n = k->c->store->ops->pread(k->c->store, k->from, k->buf, HEADER_LEN, 0);

	if (n == HEADER_LEN)
		n = k->home.ops->pwrite(&k->home, k->to, k->buf, HEADER_LEN, 0);
	return n == HEADER_LEN ? 0 : n < 0 ? (int)n : -ENOSPC;
}

/* Whether a process writes it, or one that was killed has left its live file. */
static bool is_open(const struct carried *k)
{
	char live[CONTAINER_PATH_LEN], full[CONTAINER_PATH_LEN];
	struct stat st;
	int ret;

	name_live_of_log(k->path, live);
	container_path(k->c, live, full);
	ret = k->c->store->ops->stat(k->c->store, full, &st);
	return ret != -ENOENT && (ret != -EREMOTE || !rebuilt_is(k->from)); /* of parity: it was closed */
}

/* Whether the bytes at @off of @h are right: they are then in @one. */
static bool is_right_at(struct store *s, int h, const struct iovec *one, uint64_t off,
			const struct sums_chunk *chunk)
{
	return datalog_pread(s, h, one->iov_base, one->iov_len, off) == (ssize_t)one->iov_len &&
	       sums_check(s, h, one, 1, off, chunk, NULL);
}

/*
 * Compare @len bytes at k->buf, from @off on, with the checksums of their chunks; if they are wrong, take
 * those that home has, or that only the log near has. A process that goes on with the log has moved its
 * checksums.
 */
static int compare(struct carried *k, size_t len, uint64_t off)
{
	struct sums_chunk chunks[COPY_LEN / INDEX_CHUNK_LEN] = { { 0 } };
	struct store *s = k->c->store;
	uint64_t bad = 0;
	int ret = 0;

	for (size_t i = 0; i * INDEX_CHUNK_LEN < len && !ret; i++)
		ret = sums_find(&k->sums, k->c, k->path, k->from, false, off / INDEX_CHUNK_LEN + i,
				(uint32_t)min_size(len - i * INDEX_CHUNK_LEN, INDEX_CHUNK_LEN), &chunks[i]);
	for (size_t i = 0; i * INDEX_CHUNK_LEN < len && !ret; i++) {
		size_t at = i * INDEX_CHUNK_LEN;
		const struct iovec one = { k->buf + at, min_size(len - at, INDEX_CHUNK_LEN) };
		bool is_home = datalog_place(off + at + one.iov_len) <= twin_home_len(k->from);

		bad = off / INDEX_CHUNK_LEN + i;
		if (k->sums.warned && !chunks[i].len && !is_home) /* its table is lost */
			ret = -EIO;
		if (ret || sums_check(s, k->from, &one, 1, off + at, &chunks[i], NULL))
			continue;
		k->doubtful = true;
		if (twin_turn(s, k->from) && is_right_at(s, k->from, &one, off + at, &chunks[i]))
			continue;
		if (k->other < 0 || !is_right_at(s, k->other, &one, off + at, &chunks[i]))
			ret = -EIO;
	}
	if (ret != -EIO || k->quiet)
		return ret;
	if (is_open(k))
		return -EBUSY;
	msg_error("%s: bytes %llu to %llu are not those that were written: it stays in its place; plfs check lists all damage",
		  k->full, (unsigned long long)(bad * INDEX_CHUNK_LEN),
		  (unsigned long long)((bad + 1) * INDEX_CHUNK_LEN - 1));
	return -EIO;
}

/* Copy the data area from @off up to @len. */
static int copy_data(struct carried *k, uint64_t off, uint64_t len, bool compares, struct carry *carry)
{
	size_t piece = carry && carry->piece ? min_size(carry->piece, COPY_LEN) : COPY_LEN;
	int ret = 0;

	while (off < len && !ret) {
		size_t part = (size_t)min_u64(piece, len - off);
		ssize_t done, n = datalog_pread(k->c->store, k->from, k->buf, part, off);

		if (n < 0 && k->other >= 0)
			n = datalog_pread(k->c->store, k->other, k->buf, part, off);
		if (n <= 0)
			return n < 0 ? (int)n : -EBUSY; /* it was cut meanwhile */
		ret = compares ? compare(k, (size_t)n, off) : 0;
		done = ret || k->to < 0 ? n : datalog_pwrite(&k->home, k->to, k->buf, (size_t)n, off);
		if (!ret && done != n)
			ret = done < 0 ? (int)done : -ENOSPC;
		off += (uint64_t)n;
		if (carry && !ret)
			carry->bytes += (uint64_t)n;
		if (carry && carry->copied && !ret)
			ret = carry->copied(carry->arg, (uint64_t)n);
	}
	return ret;
}

static int sync_hostdir(struct carried *k)
{
	char dir[CONTAINER_PATH_LEN];

	snprintf(dir, sizeof(dir), "%.*s", (int)(strrchr(k->full, '/') - k->full), k->full);
	return store_sync_path(&k->home, dir, true);
}

/* What leads to the rest of the log: without it that is not found after a power failure. */
static int sync_place(struct carried *k)
{
	char path[CONTAINER_PATH_LEN + 8];
	const char *name = strrchr(k->full, '/') + 1, *host;
	size_t len;
	int ret;

	host = name_host(name, &len);
	snprintf(path, sizeof(path), "%.*snear.%.*s", (int)(name - k->full), k->full, (int)len, host);
	ret = store_sync_path(&k->home, path, false);
	return ret == -ENOENT ? 0 : ret;
}

/* ---- a part ---- */

/* Open the copy at home. *@len: of its data area. Who makes it too writes the same header. */
static int open_copy(struct carried *k, uint64_t *len)
{
	struct stat st;
	bool made;
	int ret;

	k->to = make(k, k->full);
	made = k->to >= 0;
	if (k->to == -EEXIST)
		k->to = store_open(&k->home, k->full, O_RDWR | STORE_BRIEFLY, 0);
	ret = k->to < 0 ? k->to : k->home.ops->fstat(&k->home, k->to, &st);
	if (ret)
		return ret;
	*len = datalog_len(&st);
	if (!store_may_write(&st))
		return -EMLINK;
	if (st.st_size < HEADER_LEN)
		ret = copy_header(k);
	if (!ret && made)
		ret = sync_place(k);
	return ret || !made ? ret : sync_hostdir(k);
}

int carry_part(const struct container *c, const char *path, uint64_t len, bool durably)
{
	struct carried k;
	struct stat st;
	uint64_t have = 0;
	int ret = begin(&k, c, path);

	if (!ret)
		ret = c->store->ops->fstat(c->store, k.from, &st);
	if (!ret)
		ret = open_copy(&k, &have);
	if (!ret)
		ret = copy_data(&k, have, min_u64(len, datalog_len(&st)), false, NULL);
	if (!ret && durably)
		ret = k.home.ops->sync(&k.home, k.to, false);
	end(&k);
	return ret == -EREMOTE ? -EIO : ret; /* a place of ours that cannot be read just now */
}

/* ---- all of it ---- */

/* Whether the log near is still what was copied: of @len bytes, closed, and under its name. */
static int is_same(struct carried *k, off_t len)
{
	struct stat st;
	int ret = k->c->store->ops->fstat(k->c->store, k->from, &st);

	if (ret)
		return ret;
	return st.st_size != len || !st.st_nlink || is_open(k) ? -EBUSY : 0;
}

/* The file @tmp takes the log's name at home. */
static int commit(struct carried *k, const char *tmp, off_t len)
{
	int ret = is_same(k, len);

	return ret ? ret : k->home.ops->rename(&k->home, tmp, k->full);
}

/* The log near becomes a staged copy. */
static int keep(struct carried *k, const char *dir, struct place_dir *near, const char *name)
{
	struct store to;
	struct stat st;
	int ret = k->home.ops->fstat(&k->home, k->near, &st);

	if (ret)
		return ret;
	if (st.st_uid != geteuid()) /* the directory is called by the user's number */
		return -EPERM;
	ret = staged_enter(k->c->store, dir, &to);
	if (ret)
		return ret;
	ret = store_chmod(&near->store, k->near, S_IRUSR | S_IWUSR);
	if (!ret &&
	    sys.renameat(store_fd(&near->store, near->store.root), name, store_fd(&to, to.root), name))
		ret = -errno;
	store_close(&to, &to.root);
	return ret;
}

/* The log goes near: from here on it is at home alone. */
static int leave(struct carried *k, const char *tmp, off_t len)
{
	const char *slash = strrchr(k->full, '/');
	char dir[CONTAINER_PATH_LEN];
	struct place_dir near;
	int ret = is_same(k, len);

	(void)tmp;
	snprintf(dir, sizeof(dir), "%.*s", (int)(slash - k->full), k->full);
	if (!ret)
		ret = enter_near(k->c, k->full, &near);
	if (ret)
		return ret;
	if (!k->keeps || k->doubtful || keep(k, dir, &near, slash + 1))
		ret = near.store.ops->unlink(&near.store, slash + 1);
	place_leave(&near);
	return ret;
}

int carry_leave(const struct container *c, const char *path)
{
	char full[CONTAINER_PATH_LEN];
	struct place_dir near;
	int ret;

	container_path(c, path, full);
	ret = enter_near(c, full, &near);
	if (ret)
		return ret;
	ret = near.store.ops->unlink(&near.store, name_of(path));
	place_leave(&near);
	return ret;
}

struct step {
	struct carried *k;
	const char *tmp;
	off_t len;
	int (*fn)(struct carried *k, const char *tmp, off_t len);
};

static int do_step(void *arg)
{
	const struct step *s = arg;

	return s->fn(s->k, s->tmp, s->len);
}

static int alone(struct carried *k, int (*fn)(struct carried *k, const char *tmp, off_t len), const char *tmp,
		 off_t len)
{
	struct step s = { k, tmp, len, fn };

	return node_index_alone(k->c, k->path, true, do_step, &s);
}

static int copy_all(struct carried *k, const char *tmp, off_t *len, struct carry *carry)
{
	struct stat st;
	int ret = k->c->store->ops->fstat(k->c->store, k->from, &st);

	if (ret)
		return ret;
	*len = st.st_size;
	k->to = make(k, tmp);
	ret = k->to < 0 ? k->to : 0;
	if (!ret && k->reserves)
		ret = placed_reserve(k->c->store, k->to, 0, (uint64_t)st.st_size);
	if (!ret)
		ret = copy_header(k);
	if (!ret)
		ret = copy_data(k, 0, datalog_len(&st), true, carry);
	if (!ret)
		ret = k->home.ops->sync(&k->home, k->to, false);
	return ret;
}

static int name_tmp(const char *name, char *tmp)
{
	uint64_t salt;

	if (sys.getrandom(&salt, sizeof(salt), 0) != sizeof(salt))
		return -EIO;
	return snprintf(tmp, STORE_PATH_LEN, "%s.tmp.%016llx", name, (unsigned long long)salt) <
			       CONTAINER_PATH_LEN ?
		       0 :
		       -ENAMETOOLONG;
}

/*
 * Whether a process has the log open, or is making it: until it has made the live file it holds the lock of
 * the place, and nothing is in the log.
 */
static bool is_being_made(struct carried *k)
{
	struct stat st;

	if (k->near >= 0 && !k->home.ops->fstat(&k->home, k->near, &st) && !datalog_len(&st) &&
	    placed_is_held(k->c->store, k->full))
		return true;
	return is_open(k);
}

int carry_log(const struct container *c, const char *path, struct carry *carry)
{
	char tmp[STORE_PATH_LEN] = "";
	struct carried k;
	off_t len = 0;
	int ret = begin(&k, c, path);

	if (!ret || ret == -EIO)
		ret = is_being_made(&k) ? -EBUSY : ret;
	k.keeps = carry->keep;
	if (!ret)
		ret = name_tmp(k.full, tmp);
	if (!ret) {
		ret = copy_all(&k, tmp, &len, carry);
		if (!ret)
			ret = alone(&k, commit, tmp, len);
		if (ret)
			k.home.ops->unlink(&k.home, tmp);
	}
	if (!ret)
		ret = sync_hostdir(&k);
	if (!ret)
		ret = alone(&k, leave, NULL, len);
	carry->nr_logs += !ret;
	end(&k);
	return ret;
}

/* ---- a staged copy ---- */

static int remove_tmp(void *arg, const char *name)
{
	struct store *to = arg;

	if (strstr(name, ".tmp."))
		to->ops->unlink(to, name);
	return 0;
}

/* Into the directory of copies, k->home: under a temporary name. Those of processes that were killed go. */
static int stage(struct carried *k, const char *name, struct carry *carry)
{
	char tmp[STORE_PATH_LEN];
	off_t len;
	int ret = name_tmp(name, tmp);

	if (ret)
		return ret;
	k->home.ops->list(&k->home, ".", remove_tmp, &k->home);
	ret = copy_all(k, tmp, &len, carry);
	if (!ret)
		ret = is_same(k, len);
	if (!ret)
		ret = k->home.ops->rename(&k->home, tmp, name);
	if (ret)
		k->home.ops->unlink(&k->home, tmp);
	return ret ? ret : store_sync_path(&k->home, ".", true);
}

int carry_stage(const struct container *c, const char *path, struct carry *carry)
{
	struct carried k = { .c = c, .path = path, .near = -1, .from = -1, .other = -1, .to = -1,
			     .reserves = true, .private = true };
	char dir[CONTAINER_PATH_LEN];
	struct store to;
	struct stat st;
	uint64_t len;
	int ret;

	container_path(c, path, k.full);
	if (placed_is_near(c->store, k.full))
		return -EALREADY;
	snprintf(dir, sizeof(dir), "%.*s", (int)(strrchr(k.full, '/') - k.full), k.full);
	k.from = datalog_open(c, path, false);
	ret = k.from < 0 ? k.from : c->store->ops->fstat(c->store, k.from, &st);
	if (!ret && staged_find(c->store, k.full, &len) && len == (uint64_t)st.st_size)
		ret = -EALREADY;
	k.buf = ret ? NULL : mem_alloc(COPY_LEN);
	if (!ret)
		ret = !k.buf ? -ENOMEM : is_open(&k) ? -EBUSY : staged_enter(c->store, dir, &to);
	if (!ret) {
		k.home = to;
		ret = stage(&k, strrchr(k.full, '/') + 1, carry);
	}
	carry->nr_logs += !ret;
	end(&k);
	if (k.home.ops)
		store_close(&to, &to.root);
	return ret;
}

/* ---- copies elsewhere ---- */

/* k->from is open: copy it to k->home under the name k->full, beside which others are put first. */
static int copy_to(struct carried *k, struct carry *carry)
{
	char tmp[STORE_PATH_LEN] = "";
	off_t len = 0;
	int ret = name_tmp(k->full, tmp);

	k->buf = mem_alloc(COPY_LEN);
	if (!k->buf)
		return -ENOMEM;
	if (!ret)
		ret = is_open(k) ? -EBUSY : 0;
	if (ret)
		return ret;
	ret = copy_all(k, tmp, &len, carry);
	if (!ret)
		ret = alone(k, commit, tmp, len);
	if (ret)
		k->home.ops->unlink(&k->home, tmp);
	return ret;
}

/* From the log itself, or from @from, which stays open. */
static int copy_there(const struct container *c, const char *path, int from, struct place_dir *to,
		      struct carry *carry)
{
	struct carried k = { .c = c, .home = to->store, .path = path, .near = -1, .other = -1, .to = -1,
			     .private = from < 0, .restores = from >= 0 };
	int ret;

	snprintf(k.full, sizeof(k.full), "%s", name_of(path));
	k.from = from < 0 ? datalog_open(c, path, false) : from;
	ret = k.from < 0 ? k.from : copy_to(&k, carry);
	if (!ret)
		ret = to->store.ops->sync(&to->store, to->store.root, true);
	carry->nr_logs += !ret;
	k.from = from < 0 ? k.from : -1;
	end(&k);
	return ret;
}

int carry_copy(const struct container *c, const char *path, struct place_dir *to, struct carry *carry)
{
	return copy_there(c, path, -1, to, carry);
}

int carry_there(const struct container *c, const char *path, int from, struct place_dir *to,
		struct carry *carry)
{
	return copy_there(c, path, from, to, carry);
}

int carry_back(const struct container *c, const char *path, int from, int other, struct carry *carry)
{
	struct carried k = { .c = c, .home = placed_home(c->store), .path = path, .near = -1, .from = from,
			     .other = other, .to = -1, .restores = true };
	int ret;

	container_path(c, path, k.full);
	ret = copy_to(&k, carry);
	if (!ret)
		ret = sync_hostdir(&k);
	carry->nr_logs += !ret;
	k.from = -1; /* the caller's */
	end(&k);
	return ret;
}

int carry_prove(const struct container *c, const char *path, int h, int other, uint64_t len)
{
	struct carried k = { .c = c, .path = path, .near = -1, .from = h, .other = other, .to = -1,
			     .quiet = true, .sums.quiet = true };
	int ret;

	k.buf = mem_alloc(COPY_LEN);
	ret = k.buf ? copy_data(&k, 0, len, true, NULL) : -ENOMEM;
	k.from = -1; /* the caller's */
	end(&k);
	return ret == -EBUSY || ret == -EBADMSG ? -EIO : ret;
}
