/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The calls of a store on a tree in memory (memory_tree.h): handles, bytes, mappings, locks and names, all
 * under one lock.
 */
#include "core/store/memory.h"

#include "core/base/critical.h"
#include "core/base/io.h"
#include "core/base/vec.h"
#include "core/store/memory_tree.h"

#define FIRST_HANDLE \
	(1 << 24) /* no kernel has such a descriptor: whoever takes a handle for one gets EBADF */

struct handle {
	struct memory_node *node; /* NULL: not in use */
	int flags;
};

struct memory {
	pthread_mutex_t lock; /* for all that follows */
	struct memory_tree tree;
	struct handle *handles;
	size_t nr_handles, cap_handles;
};

static struct memory *begin(struct store *s)
{
	struct memory *m = s->own;

	mutex_lock(&m->lock);
	return m;
}

static int end(struct memory *m, int ret)
{
	mutex_unlock(&m->lock);
	return ret;
}

static const char *tidy(const char *path)
{
	return !strcmp(path, ".") ? "" : path;
}

/* ---- handles ---- */

static struct handle *handle_of(struct memory *m, int h)
{
	size_t i = (size_t)(h - FIRST_HANDLE);

	return h >= FIRST_HANDLE && i < m->nr_handles && m->handles[i].node ? &m->handles[i] : NULL;
}

static int new_handle(struct memory *m, struct memory_node *n, int flags)
{
	struct handle *handles;
	size_t i = 0;

	while (i < m->nr_handles && m->handles[i].node)
		i++;
	handles = vec_room(m->handles, &m->cap_handles, i + 1, sizeof(*handles));
	if (!handles)
		return -ENOMEM;
	m->handles = handles;
	m->nr_handles = i < m->nr_handles ? m->nr_handles : i + 1;
	handles[i] = (struct handle){ n, flags };
	n->refs++;
	return FIRST_HANDLE + (int)i;
}

/* The file behind @h for bytes; with @writing, for changing them. */
static int file_of(struct memory *m, int h, bool writing, struct memory_node **out)
{
	struct handle *handle = handle_of(m, h);

	if (!handle || (writing && (handle->flags & O_ACCMODE) == O_RDONLY))
		return -EBADF;
	*out = handle->node;
	return S_ISREG(handle->node->mode) ? 0 : -EIO;
}

static int open_node(struct memory *m, const char *path, int flags, mode_t mode)
{
	bool writing = (flags & O_ACCMODE) != O_RDONLY, made = false;
	struct memory_node *n;
	int ret = memory_tree_look_up(&m->tree, path, &n);

	if ((flags & (O_CREAT | O_EXCL)) == O_CREAT)
		return -EINVAL;
	if (!ret && !n) {
		if (!(flags & O_CREAT))
			return -ENOENT;
		ret = memory_tree_add(&m->tree, path, S_IFREG | (mode & 07777), &n);
		made = true;
	} else if (n && flags & O_CREAT) {
		return -EEXIST;
	}
	if (ret == -ENOTDIR || ret == -EXDEV)
		return -EIO;
	if (ret)
		return ret;
	if (S_ISDIR(n->mode) ? writing || flags & O_CREAT : flags & O_DIRECTORY)
		return -EIO;
	ret = new_handle(m, n, flags);
	if (ret < 0 && made)
		memory_tree_take_name(&m->tree, n);
	else if (ret >= 0 && flags & O_TRUNC)
		n->len = n->size = 0;
	return ret;
}

static int memory_open(struct store *s, const char *path, int flags, mode_t mode)
{
	struct memory *m = begin(s);

	return end(m, open_node(m, tidy(path), flags, mode));
}

static int memory_close(struct store *s, int *h)
{
	struct memory *m = begin(s);
	struct handle *handle = handle_of(m, *h);

	if (handle) {
		struct memory_node *n = handle->node;

		handle->node = NULL;
		if (n->locked_by == *h)
			n->locked_by = 0;
		n->refs--;
		memory_tree_put(&m->tree, n);
	}
	*h = -1;
	return end(m, 0);
}

static ssize_t memory_pread(struct store *s, int h, void *buf, size_t len, uint64_t off)
{
	struct memory *m = begin(s);
	struct memory_node *n;
	size_t have;
	int ret = file_of(m, h, false, &n);

	if (ret || off > INT64_MAX)
		return end(m, ret ? ret : -EINVAL);
	len = off < n->size ? (size_t)min_u64(len, n->size - off) : 0;
	have = off < n->len ? min_size(len, n->len - (size_t)off) : 0;
	if (have)
		memcpy(buf, n->buf + off, have);
	memset((char *)buf + have, 0, len - have);
	end(m, 0);
	return (ssize_t)len;
}

static ssize_t memory_pwrite(struct store *s, int h, const void *buf, size_t len, uint64_t off)
{
	struct memory *m = begin(s);
	struct memory_node *n;
	int ret = file_of(m, h, true, &n);

	if (!ret && (off > STORE_MEMORY_FILE_MAX || len > STORE_MEMORY_FILE_MAX - off))
		ret = -EFBIG;
	if (!ret && len)
		ret = memory_node_hold(n, (size_t)off + len);
	if (!ret && len) {
		memcpy(n->buf + off, buf, len);
		n->size = max_u64(n->size, off + len);
		memory_node_touch(n);
	}
	end(m, 0);
	return ret ? ret : (ssize_t)len;
}

static int memory_truncate(struct store *s, int h, uint64_t len)
{
	struct memory *m = begin(s);
	struct memory_node *n;
	int ret = file_of(m, h, true, &n);

	if (!ret && len > INT64_MAX)
		ret = -EFBIG;
	if (ret)
		return end(m, ret);
	if (len < n->len) {
		memset(n->buf + len, 0, n->len - (size_t)len); /* it may be mapped */
		n->len = (size_t)len;
	}
	n->size = len;
	memory_node_touch(n);
	return end(m, n->is_area ? memory_node_hold(n, (size_t)min_u64(len, STORE_MEMORY_FILE_MAX)) : 0);
}

static int memory_sync(struct store *s, int h, bool dir)
{
	struct memory *m = begin(s);

	(void)dir;
	return end(m, handle_of(m, h) ? 0 : -EBADF);
}

static void fill_stat(const struct memory_node *n, struct stat *st)
{
	*st = (struct stat){
		.st_mode = n->mode,
		.st_nlink = n->path ? 1 : 0,
		.st_ino = n->ino,
		.st_size = (off_t)n->size,
		.st_uid = geteuid(),
		.st_gid = getegid(),
		.st_blksize = 4096,
		.st_blocks = (blkcnt_t)(n->len + 511) / 512,
		.st_mtim = n->changed,
		.st_ctim = n->changed,
	};
}

static int memory_fstat(struct store *s, int h, struct stat *st)
{
	struct memory *m = begin(s);
	struct handle *handle = handle_of(m, h);

	if (handle)
		fill_stat(handle->node, st);
	return end(m, handle ? 0 : -EBADF);
}

/* ---- mappings: the file's own bytes ---- */

static void *memory_map(struct store *s, int h, size_t len, bool writable)
{
	struct memory *m = begin(s);
	struct memory_node *n;
	int ret = file_of(m, h, writable, &n);

	if (!ret)
		ret = len > STORE_MEMORY_FILE_MAX ? -ENOMEM : memory_node_make_area(n);
	if (!ret)
		n->refs++;
	end(m, 0);
	return ret ? NULL : n->buf;
}

static void memory_unmap(struct store *s, void *p, size_t len)
{
	struct memory *m = begin(s);

	(void)len;
	for (size_t i = 0; i < m->tree.nr_nodes; i++)
		if (m->tree.nodes[i]->is_area && m->tree.nodes[i]->buf == p) {
			m->tree.nodes[i]->refs--;
			memory_tree_put(&m->tree, m->tree.nodes[i]);
			break;
		}
	end(m, 0);
}

/* ---- locks ---- */

static int memory_try_lock(struct store *s, int h)
{
	struct memory *m = begin(s);
	struct handle *handle = handle_of(m, h);

	if (!handle)
		return end(m, -EBADF);
	if (handle->node->locked_by && handle->node->locked_by != h)
		return end(m, -EBUSY);
	handle->node->locked_by = h;
	return end(m, 0);
}

static int memory_lock(struct store *s, int h)
{
	const struct timespec pause = { .tv_nsec = 100000 };
	int ret;

	while ((ret = memory_try_lock(s, h)) == -EBUSY)
		io_nanosleep(&pause, NULL);
	return ret;
}

static int memory_unlock(struct store *s, int h)
{
	struct memory *m = begin(s);
	struct handle *handle = handle_of(m, h);

	if (handle && handle->node->locked_by == h)
		handle->node->locked_by = 0;
	return end(m, handle ? 0 : -EBADF);
}

static bool memory_locked(struct store *s, int h)
{
	struct memory *m = begin(s);
	struct handle *handle = handle_of(m, h);

	return end(m, !handle || (handle->node->locked_by && handle->node->locked_by != h));
}

/* ---- names ---- */

static int memory_stat(struct store *s, const char *path, struct stat *st)
{
	struct memory *m = begin(s);
	struct memory_node *n;
	int ret = memory_tree_look_up(&m->tree, tidy(path), &n);

	if (!ret && n)
		fill_stat(n, st);
	return end(m, ret ? ret : n ? 0 : -ENOENT);
}

static int memory_mkdir(struct store *s, const char *path, mode_t mode)
{
	struct memory *m = begin(s);
	struct memory_node *n;
	int ret = memory_tree_look_up(&m->tree, tidy(path), &n);

	if (!ret)
		ret = n ? -EEXIST : memory_tree_add(&m->tree, path, S_IFDIR | (mode & 07777), &n);
	return end(m, ret);
}

static int memory_unlink(struct store *s, const char *path)
{
	struct memory *m = begin(s);

	return end(m, memory_tree_remove(&m->tree, tidy(path), false));
}

static int memory_rmdir(struct store *s, const char *path)
{
	struct memory *m = begin(s);

	return end(m, memory_tree_remove(&m->tree, tidy(path), true));
}

static int memory_rename(struct store *s, const char *from, const char *to)
{
	struct memory *m = begin(s);

	return end(m, memory_tree_rename(&m->tree, tidy(from), tidy(to)));
}

static int memory_list(struct store *s, const char *path, int (*fn)(void *arg, const char *name), void *arg)
{
	struct memory *m = begin(s);
	char *names = NULL;
	size_t len = 0;
	struct memory_node *n;
	int ret = memory_tree_look_up(&m->tree, tidy(path), &n);

	if (!ret && !n)
		ret = -ENOENT;
	if (ret == -ENOTDIR || (!ret && !S_ISDIR(n->mode)))
		ret = -EIO;
	if (!ret)
		ret = memory_tree_names(&m->tree, n, &names, &len);
	end(m, 0);
	for (size_t at = 0; at < len && !ret; at += strlen(names + at) + 1)
		ret = fn(arg, names + at);
	mem_free(names);
	return ret;
}

static const struct store_ops memory_ops = {
	.open = memory_open,
	.close = memory_close,
	.pread = memory_pread,
	.pwrite = memory_pwrite,
	.fstat = memory_fstat,
	.truncate = memory_truncate,
	.sync = memory_sync,
	.stat = memory_stat,
	.mkdir = memory_mkdir,
	.unlink = memory_unlink,
	.rename = memory_rename,
	.list = memory_list,

	.rmdir = memory_rmdir,
	.map = memory_map,
	.unmap = memory_unmap,
	.lock = memory_lock,
	.try_lock = memory_try_lock,
	.unlock = memory_unlock,
	.locked = memory_locked,
};

int store_memory_open(struct store *s)
{
	struct memory *m = mem_zalloc(sizeof(*m));
	struct memory_node *root;
	int ret = m ? memory_tree_add(&m->tree, "", S_IFDIR | 0755, &root) : -ENOMEM;

	*s = (struct store){
		.ops = &memory_ops, .root = -1, .own = m, .keeps_order = true, .coherent = true
	};
	if (!ret)
		s->root = new_handle(m, root, O_RDONLY);
	if (!ret && s->root < 0)
		ret = s->root;
	if (m)
		pthread_mutex_init(&m->lock, NULL);
	if (ret)
		store_memory_close(s);
	return ret;
}

void store_memory_close(struct store *s)
{
	struct memory *m = s->own;

	if (m) {
		memory_tree_release(&m->tree);
		mem_free(m->handles);
	}
	mem_free(m);
	s->own = NULL;
	s->root = -1;
}
