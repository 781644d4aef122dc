/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Node indexes as files: locked, appended to, read.
 *
 * All who may read the file can read its indexes, and hold a shared lock on them for ever. So who appends
 * takes a shared one: no such lock keeps him, nor do others that append, since each block is one write at the
 * end. Who collects or replaces an index has it alone, or does without.
 */
#include "core/dropping/node_index.h"

#include "core/base/bytes.h"
#include "core/backend/container_dirs.h"
#include "core/backend/names.h"
#include "core/base/alloc.h"
#include "core/base/io.h"
#include "core/base/msg.h"

/* Where a machine went down, the first bytes that were appended may be zeros. */
bool node_index_is_one(const struct container *c, const struct stat *st, const uint8_t *head, size_t len)
{
	(void)c;
	if (len >= 8 && !memcmp(head, INDEX_BLOCK_MAGIC, 8))
		return true;
	return container_is_unborn(st) && is_zero(head, len);
}

/* @path, from the store's root; a missing file is made. A handle or -errno. */
static int open_index(const struct container *c, const char *path)
{
	mode_t mode = container_file_mode(c, true) | CONTAINER_UNBORN;
	bool made;
	int h = store_open_or_make(c->store, path, O_RDWR | STORE_BRIEFLY, mode, &made);

	if (h >= 0 && made && c->give)
		store_give(c->store, h, c->uid);
	return h;
}

int node_index_own(struct store *s, int h, unsigned patience_ms)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	int ret = store_try_lock(s, h);

	for (unsigned ms = 0; ret == -EBUSY && ms < patience_ms; ms++) {
		io_nanosleep(&pause, NULL);
		ret = store_try_lock(s, h);
	}
	return ret;
}

enum how { SHARED, SHARED_MADE, ALONE_MADE };

#define PATIENCE_MS 1000 /* for processes that append, a few microseconds each */

/*
 * Open and lock it, and look at its attributes. With MADE a missing file is made, and a file that cannot be
 * locked will do. A handle or -errno.
 */
static int lock_index(const struct container *c, const char *path, enum how how, struct stat *st)
{
	struct store *s = c->store;
	bool make = how != SHARED;

	for (;;) {
		int h = make ? open_index(c, path) : store_open(s, path, O_RDWR | STORE_BRIEFLY, 0), ret = h;

		if (h >= 0)
			ret = how == ALONE_MADE ? node_index_own(s, h, PATIENCE_MS) : store_lock_shared(s, h);
		if (ret == -EOPNOTSUPP && make)
			ret = 0;
		if (!ret)
			ret = s->ops->fstat(s, h, st);
		if (!ret && st->st_nlink)
			return h;
		if (h >= 0)
			store_close(s, &h);
		if (ret) /* else it was collected or replaced while this process waited for the lock */
			return ret;
	}
}

int node_index_lock(const struct container *c)
{
	char index[CONTAINER_PATH_LEN], path[CONTAINER_PATH_LEN];
	struct stat st;

	name_index_here(c, index);
	container_path(c, index, path);
	return lock_index(c, path, SHARED, &st);
}

void node_index_unlock(const struct container *c, int h)
{
	store_unlock(c->store, h);
	store_close(c->store, &h);
}

static int lock_checked(const struct container *c, const char *index, enum how how, struct stat *st)
{
	char path[CONTAINER_PATH_LEN];
	int h, ret;

	container_path(c, index, path);
	h = lock_index(c, path, how, st);
	ret = h < 0 ? h : container_check_file(c, path, h, st, NULL);
	if (!ret)
		return h;
	if (h >= 0)
		node_index_unlock(c, h);
	return ret;
}

int node_index_lock_of(const struct container *c, const char *index, struct stat *st)
{
	return lock_checked(c, index, ALONE_MADE, st);
}

/* @n bytes were appended at @at and no more: take them away, unless others have appended behind them. */
static bool take_back(struct store *s, int h, uint64_t at, ssize_t n)
{
	struct stat st;

	return !store_try_lock(s, h) && !s->ops->fstat(s, h, &st) &&
	       (uint64_t)st.st_size == at + (uint64_t)n && !s->ops->truncate(s, h, at);
}

/* *@at: the end that was seen last; afterwards where the bytes are. */
static ssize_t append_at(struct store *s, int h, const void *buf, size_t len, uint64_t *at)
{
	uint64_t end = *at;
	ssize_t n = store_append(s, h, buf, len, at);

	if (n != -EOPNOTSUPP)
		return n;
	*at = end; /* then there are no shared locks either */
	return s->ops->pwrite(s, h, buf, len, end);
}

#define APPEND_TRIES 10

/*
 * Append the block, or leave nothing. At another place than a multiple of 8 it is not found: then it is
 * appended once more. Only a process whose files are limited to an odd length leaves such an end.
 */
static int append_whole(struct store *s, int h, const void *block, size_t len, uint64_t end)
{
	static const uint8_t zeros[8];

	for (int tries = 0; tries < APPEND_TRIES; tries++) {
		bool pads = unlikely(end % 8);
		uint64_t at = end;
		ssize_t n = pads ? append_at(s, h, zeros, 8 - end % 8, &at) :
				   append_at(s, h, block, len, &at);

		if (n < 0)
			return (int)n;
		if (likely(!pads && n == (ssize_t)len && at % 8 == 0))
			return 0;
		end = at + (uint64_t)n;
		if (!pads && n < (ssize_t)len && take_back(s, h, at, n))
			end = at;
	}
	return -ENOSPC;
}

/* With @sync, on stable storage. A shared lock goes with the handle: a child's copy of that keeps nobody. */
static int append(const struct container *c, const char *index, const void *block, size_t len, bool sync)
{
	struct store *s = c->store;
	char path[CONTAINER_PATH_LEN];
	struct stat st;
	int ret, ret2, h = lock_checked(c, index, SHARED_MADE, &st);

	if (h < 0)
		return h;
	container_path(c, index, path);
	ret = container_check_file(c, path, h, &st, node_index_is_one);
	if (!ret)
		ret = append_whole(s, h, block, len, (uint64_t)st.st_size);
	if (!ret && sync)
		ret = s->ops->sync(s, h, false);
	if (!s->ops->lock_shared)
		store_unlock(s, h);
	ret2 = store_close(s, &h);
	return ret ? ret : ret2;
}

int node_index_append(const struct container *c, const void *block, size_t len)
{
	char index[CONTAINER_PATH_LEN];
	int ret;

	name_index_here(c, index);
	ret = append(c, index, block, len, false);
	if (ret == -ENOENT) {
		ret = container_add_hostdir(c, name_hostdir(c));
		if (!ret)
			ret = append(c, index, block, len, false);
	}
	return ret == -ENOENT || ret == -EIDRM ? -EIO : ret;
}

int node_index_append_to(const struct container *c, const char *index, const void *block, size_t len)
{
	return append(c, index, block, len, true);
}

/* Far above what all processes of a host can write of a file: a merge takes 2^32 records at most. */
#define NODE_INDEX_MAX (16ULL << 30)
/*
 * No block has so many zeros that a piece of the file is nothing else, which is what a hole in it looks like.
 */
#define NODE_INDEX_PIECE INDEX_BLOCK_MAX
#define NODE_INDEX_AT_ONCE (1ULL << 26) /* room that is made at first: what is not filled costs nothing */
#define NODE_INDEX_HOLE_MAX (1ULL << 26) /* more was not left by a machine that went down */

/*
 * Holes are left out: zeros at the end say nothing, and any before it are damage. So what a file takes in
 * memory, it takes on its disk.
 */
int node_index_read(struct node_index *idx, struct store *s, int h, uint64_t from, uint64_t size)
{
	uint64_t hole = 0;
	size_t cap = 0;
	ssize_t n = 0;

	if (size > NODE_INDEX_MAX) {
		msg_error("%s: damaged node index: %llu bytes, of which libplfs writes %llu at most",
			  idx->path, (unsigned long long)size, NODE_INDEX_MAX);
		return -EIO;
	}
	for (uint64_t at = from; at < size && !idx->damaged; at += (size_t)n) {
		size_t want = (size_t)min_u64(NODE_INDEX_PIECE, size - at);
		uint8_t *piece;

		if (idx->len + want > cap) {
			cap = (size_t)min_u64(max_u64(idx->len + want, cap ? 4 * cap : NODE_INDEX_AT_ONCE),
					      size - from);
			piece = mem_realloc(idx->buf, cap);
			if (!piece)
				return -ENOMEM;
			idx->buf = piece;
		}
		piece = (uint8_t *)idx->buf + idx->len;
		n = s->ops->pread(s, h, piece, want, at);
		if (n <= 0) /* cut meanwhile: what there was */
			return (int)n;
		if (is_zero(piece, (size_t)n) && (hole || (size_t)n == NODE_INDEX_PIECE))
			hole += (size_t)n;
		else if (!hole)
			idx->len += (size_t)n;
		if (hole > NODE_INDEX_HOLE_MAX || (hole && !is_zero(piece, (size_t)n))) {
			msg_error("%s: damaged node index: %llu bytes of zeros in front of byte %llu",
				  idx->path, (unsigned long long)hole, (unsigned long long)at);
			idx->damaged++;
		}
	}
	return 0;
}

int node_index_open(struct node_index *idx, const struct container *c, const char *path)
{
	struct store *s = c->store;
	struct stat st;
	int h, ret;

	memset(idx, 0, sizeof(*idx));
	container_path(c, path, idx->path);
	h = store_open(s, idx->path, O_RDONLY | STORE_BRIEFLY | s->uncached, 0);
	if (h < 0)
		return h;
	ret = s->ops->fstat(s, h, &st);
	if (!ret) {
		ret = node_index_read(idx, s, h, 0, (uint64_t)st.st_size);
		if (ret)
			msg_error("%s: the node index cannot be read: %s", idx->path, strerror(-ret));
	}
	if (ret)
		node_index_close(idx);
	store_close(s, &h);
	return ret;
}

void node_index_close(struct node_index *idx)
{
	mem_free(idx->buf);
	idx->buf = NULL;
}

/*
 * Each of many false blocks may claim to reach to the end of the file: a megabyte of them would take a
 * second, a gigabyte weeks. Blocks that writers leave behind do not overlap like that.
 */
bool node_index_is_hopeless(struct node_index *idx, const uint8_t *p, size_t left)
{
	idx->in_vain += min_size(index_block_claims(p, left), left);
	return idx->in_vain > 16 * (uint64_t)idx->len + (1 << 20);
}

int node_index_next(struct node_index *idx, struct index_block *block)
{
	while (idx->pos < idx->len) {
		const uint8_t *p = (const uint8_t *)idx->buf + idx->pos;
		size_t left = idx->len - idx->pos;
		ssize_t n = index_block_parse(block, p, left);

		if (n > 0) {
			idx->pos += (size_t)n;
			return 1;
		}
		if (n == -EPROTONOSUPPORT) {
			msg_error("%s: index block at byte %zu is of another version than this library's",
				  idx->path, idx->pos);
			return (int)n;
		}
		if (n != -ENODATA && !index_block_is_torn(p, left) && !idx->damaged++)
			msg_error("%s: damaged index block at byte %zu", idx->path, idx->pos);
		if (node_index_is_hopeless(idx, p, left)) {
			msg_error("%s: damaged index blocks, one over the other, from byte %zu on", idx->path,
				  idx->pos);
			idx->damaged++;
			idx->pos = idx->len;
			break;
		}
		idx->pos += index_block_skip(p, left);
	}
	return 0;
}

int node_index_each(const struct container *c, const char *path,
			int (*fn)(void *arg, const struct index_block *block), void *arg, unsigned *damaged)
{
	struct index_block block;
	struct node_index idx;
	int ret = node_index_open(&idx, c, path);

	if (ret)
		return ret;
	while ((ret = node_index_next(&idx, &block)) > 0) {
		ret = fn(arg, &block);
		if (ret)
			break;
	}
	*damaged += idx.damaged;
	node_index_close(&idx);
	return ret;
}

#define ALONE_PATIENCE_MS 1000

int node_index_alone(const struct container *c, const char *path, bool tries, int (*fn)(void *arg), void *arg)
{
	char index[CONTAINER_PATH_LEN], full[CONTAINER_PATH_LEN];
	struct store home = store_bare(c->store);
	int h, ret;

	name_index_of(path, index);
	container_path(c, index, full);
	h = store_open(&home, full, O_RDWR | STORE_BRIEFLY, 0);
	ret = h < 0 ? h : node_index_own(&home, h, ALONE_PATIENCE_MS);
	if ((ret == -EOPNOTSUPP && tries) || h == -ENOENT)
		ret = 0;
	if (!ret)
		ret = fn(arg);
	if (h >= 0)
		node_index_unlock(c, h);
	return ret;
}
