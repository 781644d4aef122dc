/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One log while it is copied.
 */
#include "core/dropping/carried.h"

#include "core/backend/names.h"
#include "core/backend/placed.h"
#include "core/backend/rebuilt.h"
#include "core/backend/twin.h"
#include "core/base/alloc.h"
#include "core/base/msg.h"
#include "core/base/sys.h"
#include "core/dropping/datalog.h"
#include "core/dropping/node_index.h"

#include <stdio.h>
#include <unistd.h>

#define PAGE_LEN 4096

static_assert(CARRIED_COPY_LEN % INDEX_CHUNK_LEN == 0, "whole chunks are compared");

void carried_end(struct carried *k)
{
	if (k->near >= 0)
		store_close(&k->home, &k->near);
	if (k->from >= 0)
		store_close(k->c->store, &k->from);
	if (k->to >= 0)
		store_close(&k->home, &k->to);
	sums_release(&k->sums);
	mem_free(k->buf_mem);
}

int carried_make_buf(struct carried *k)
{
	k->buf_mem = mem_alloc(CARRIED_COPY_LEN + PAGE_LEN);
	if (!k->buf_mem)
		return -ENOMEM;
	k->buf = (uint8_t *)(((uintptr_t)k->buf_mem + PAGE_LEN - 1) & ~(uintptr_t)(PAGE_LEN - 1));
	return 0;
}

int carried_make(struct carried *k, const char *full)
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

int carried_copy_header(struct carried *k)
{
	ssize_t n = k->c->store->ops->pread(k->c->store, k->from, k->buf, CARRIED_HEADER_LEN, 0);

	if (n == CARRIED_HEADER_LEN)
		n = k->home.ops->pwrite(&k->home, k->to, k->buf, CARRIED_HEADER_LEN, 0);
	return n == CARRIED_HEADER_LEN ? 0 : n < 0 ? (int)n : -ENOSPC;
}

bool carried_is_open(const struct carried *k)
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
	struct sums_chunk chunks[CARRIED_COPY_LEN / INDEX_CHUNK_LEN] = { { 0 } };
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
	if (carried_is_open(k))
		return -EBUSY;
	msg_error("%s: bytes %llu to %llu are not those that were written: it stays in its place; plfs check lists all damage",
		  k->full, (unsigned long long)(bad * INDEX_CHUNK_LEN),
		  (unsigned long long)((bad + 1) * INDEX_CHUNK_LEN - 1));
	return -EIO;
}

static void set_direct(struct carried *k, bool direct)
{
	int fd = store_fd(&k->home, k->to), flags;

	if (k->is_direct == direct || fd < 0)
		return;
	flags = sys.fcntl(fd, F_GETFL);
	if (flags >= 0 && !sys.fcntl(fd, F_SETFL, direct ? flags | O_DIRECT : flags & ~O_DIRECT))
		k->is_direct = direct;
}

/* At the end of a log there may be less than a page. */
static ssize_t put(struct carried *k, size_t len, uint64_t off, struct carry *carry)
{
	ssize_t n;

	set_direct(k, carry && carry->direct && !(len % PAGE_LEN) && !(off % PAGE_LEN));
	n = datalog_pwrite(&k->home, k->to, k->buf, len, off);
	if (n >= 0 || !k->is_direct || (n != -EINVAL && n != -EOPNOTSUPP))
		return n;
	carry->direct = false;
	set_direct(k, false);
	return datalog_pwrite(&k->home, k->to, k->buf, len, off);
}

int carried_copy_data(struct carried *k, uint64_t off, uint64_t len, bool compares, struct carry *carry)
{
	size_t piece = carry && carry->piece ? min_size(carry->piece, CARRIED_COPY_LEN) : CARRIED_COPY_LEN;
	int ret = 0;

	while (off < len && !ret) {
		size_t part = (size_t)min_u64(piece, len - off);
		ssize_t done, n = datalog_pread(k->c->store, k->from, k->buf, part, off);

		if (n < 0 && k->other >= 0)
			n = datalog_pread(k->c->store, k->other, k->buf, part, off);
		if (n <= 0)
			return n < 0 ? (int)n : -EBUSY; /* it was cut meanwhile */
		ret = compares ? compare(k, (size_t)n, off) : 0;
		done = ret || k->to < 0 ? n : put(k, (size_t)n, off, carry);
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

int carried_prove(const struct container *c, const char *path, int h, int other, uint64_t len)
{
	struct carried k = { .c = c, .path = path, .near = -1, .from = h, .other = other, .to = -1,
			     .quiet = true, .sums.quiet = true };
	int ret;

	ret = carried_make_buf(&k);
	if (!ret)
		ret = carried_copy_data(&k, 0, len, true, NULL);
	k.from = -1; /* the caller's */
	carried_end(&k);
	return ret == -EBUSY || ret == -EBADMSG ? -EIO : ret;
}

int carried_sync_hostdir(struct carried *k)
{
	char dir[CONTAINER_PATH_LEN];

	snprintf(dir, sizeof(dir), "%.*s", (int)(strrchr(k->full, '/') - k->full), k->full);
	return store_sync_path(&k->home, dir, true);
}

int carried_is_same(struct carried *k, off_t len)
{
	struct stat st;
	int ret = k->c->store->ops->fstat(k->c->store, k->from, &st);

	if (ret)
		return ret;
	return st.st_size != len || !st.st_nlink || carried_is_open(k) ? -EBUSY : 0;
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

int carried_alone(struct carried *k, int (*fn)(struct carried *k, const char *tmp, off_t len),
		  const char *tmp, off_t len)
{
	struct step s = { k, tmp, len, fn };

	return node_index_alone(k->c, k->path, true, do_step, &s);
}

/* The file @tmp takes the log's name at home. */
static int commit(struct carried *k, const char *tmp, off_t len)
{
	int ret = carried_is_same(k, len);

	return ret ? ret : k->home.ops->rename(&k->home, tmp, k->full);
}

int carried_commit(struct carried *k, const char *tmp, off_t len)
{
	return carried_alone(k, commit, tmp, len);
}

int carried_copy_all(struct carried *k, const char *tmp, off_t *len, struct carry *carry)
{
	struct stat st;
	int ret = k->c->store->ops->fstat(k->c->store, k->from, &st);

	if (ret)
		return ret;
	*len = st.st_size;
	k->to = carried_make(k, tmp);
	ret = k->to < 0 ? k->to : 0;
	if (!ret && k->reserves)
		ret = placed_reserve(k->c->store, k->to, 0, (uint64_t)st.st_size);
	if (!ret)
		ret = carried_copy_header(k);
	if (!ret)
		ret = carried_copy_data(k, 0, datalog_len(&st), true, carry);
	if (!ret)
		ret = k->home.ops->sync(&k->home, k->to, false);
	return ret;
}

int carried_name_tmp(const char *name, char *tmp)
{
	uint64_t salt;

	if (sys.getrandom(&salt, sizeof(salt), 0) != sizeof(salt))
		return -EIO;
	return snprintf(tmp, STORE_PATH_LEN, "%s.tmp.%016llx", name, (unsigned long long)salt) <
			       CONTAINER_PATH_LEN ?
		       0 :
		       -ENAMETOOLONG;
}
