/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nodes in one list, looked up by their whole path. A file's bytes are in one block, which from its first
 * mapping on is an area that never moves.
 */
#include "core/store/memory_tree.h"

#include "core/base/sys.h"
#include "core/base/vec.h"

#include <stdio.h>
#include <sys/mman.h>

/* ---- nodes ---- */

/* The node of the first @len bytes of @path. */
static struct memory_node *find(const struct memory_tree *t, const char *path, size_t len)
{
	for (size_t i = 0; i < t->nr_nodes; i++) {
		const char *p = t->nodes[i]->path;

		if (p && !strncmp(p, path, len) && !p[len])
			return t->nodes[i];
	}
	return NULL;
}

int memory_tree_look_up(const struct memory_tree *t, const char *path, struct memory_node **out)
{
	const char *slash = strrchr(path, '/');
	struct memory_node *parent = find(t, path, slash ? (size_t)(slash - path) : 0);

	*out = NULL;
	if (*path == '/' || !strncmp(path, "../", 3) || !strcmp(path, "..") || strstr(path, "/../"))
		return -EXDEV;
	*out = find(t, path, strlen(path));
	if (*out)
		return 0;
	return !parent ? -ENOENT : S_ISDIR(parent->mode) ? 0 : -ENOTDIR;
}

void memory_node_touch(struct memory_node *n)
{
	sys.clock_gettime(CLOCK_REALTIME, &n->changed);
}

int memory_tree_add(struct memory_tree *t, const char *path, mode_t mode, struct memory_node **out)
{
	struct memory_node **nodes = vec_room(t->nodes, &t->cap_nodes, t->nr_nodes + 1, sizeof(*nodes));
	struct memory_node *n;

	if (!nodes)
		return -ENOMEM;
	t->nodes = nodes;
	n = mem_zalloc(sizeof(*n));
	if (n)
		n->path = mem_strdup(path);
	if (!n || !n->path) {
		mem_free(n);
		return -ENOMEM;
	}
	n->mode = mode;
	n->ino = ++t->last_ino;
	memory_node_touch(n);
	*out = nodes[t->nr_nodes++] = n;
	return 0;
}

static void free_node(struct memory_node *n)
{
	if (n->is_area)
		sys.munmap(n->buf, STORE_MEMORY_FILE_MAX);
	else
		mem_free(n->buf);
	mem_free(n->path);
	mem_free(n);
}

void memory_tree_put(struct memory_tree *t, struct memory_node *n)
{
	if (n->path || n->refs)
		return;
	for (size_t i = 0; i < t->nr_nodes; i++)
		if (t->nodes[i] == n) {
			t->nodes[i] = t->nodes[--t->nr_nodes];
			break;
		}
	free_node(n);
}

void memory_tree_take_name(struct memory_tree *t, struct memory_node *n)
{
	mem_free(n->path);
	n->path = NULL;
	memory_node_touch(n);
	memory_tree_put(t, n);
}

/* Whether @n is in the directory @dir, or below it. */
static bool is_below(const struct memory_node *n, const struct memory_node *dir)
{
	size_t len = strlen(dir->path);

	return n != dir && n->path && !strncmp(n->path, dir->path, len) && (!len || n->path[len] == '/');
}

static bool is_empty(const struct memory_tree *t, const struct memory_node *dir)
{
	for (size_t i = 0; i < t->nr_nodes; i++)
		if (is_below(t->nodes[i], dir))
			return false;
	return true;
}

void memory_tree_release(struct memory_tree *t)
{
	for (size_t i = 0; i < t->nr_nodes; i++)
		free_node(t->nodes[i]);
	mem_free(t->nodes);
}

/* ---- bytes ---- */

int memory_node_hold(struct memory_node *n, size_t len)
{
	uint8_t *buf = n->buf;

	if (len <= n->len)
		return 0;
	if (len > STORE_MEMORY_FILE_MAX)
		return -EFBIG;
	if (!n->is_area) {
		buf = vec_room(buf, &n->cap, len, 1);
		if (!buf)
			return -ENOMEM;
		n->buf = buf;
	}
	memset(buf + n->len, 0, len - n->len);
	n->len = len;
	return 0;
}

int memory_node_make_area(struct memory_node *n)
{
	uint8_t *area;
	int ret = memory_node_hold(n, (size_t)min_u64(n->size, STORE_MEMORY_FILE_MAX));

	if (ret || n->is_area)
		return ret;
	area = sys.mmap(NULL, STORE_MEMORY_FILE_MAX, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (area == MAP_FAILED)
		return -ENOMEM;
	if (n->len)
		memcpy(area, n->buf, n->len);
	mem_free(n->buf);
	n->buf = area;
	n->is_area = true;
	return 0;
}

/* ---- changes of names ---- */

int memory_tree_remove(struct memory_tree *t, const char *path, bool dir)
{
	struct memory_node *n;
	int ret = memory_tree_look_up(t, path, &n);

	if (ret || !n)
		return ret ? ret : -ENOENT;
	if (S_ISDIR(n->mode) != dir)
		return dir ? -ENOTDIR : -EISDIR;
	if (dir && !is_empty(t, n))
		return -ENOTEMPTY;
	memory_tree_take_name(t, n);
	return 0;
}

/* @n and what is in it; all names that are wanted are made before the first is changed. */
static int give_name(struct memory_tree *t, struct memory_node *n, const char *to)
{
	size_t old_len = strlen(n->path);
	char **names = mem_zalloc(t->nr_nodes * sizeof(*names));
	bool ok = names;

	for (size_t i = 0; i < t->nr_nodes && ok; i++) {
		struct memory_node *k = t->nodes[i];
		size_t len;

		if (k != n && !is_below(k, n))
			continue;
		len = strlen(to) + strlen(k->path + old_len) + 1;
		names[i] = mem_alloc(len);
		ok = names[i];
		if (ok)
			snprintf(names[i], len, "%s%s", to, k->path + old_len);
	}
	for (size_t i = 0; names && i < t->nr_nodes; i++)
		if (names[i]) {
			char *out = ok ? t->nodes[i]->path : names[i];

			t->nodes[i]->path = ok ? names[i] : t->nodes[i]->path;
			mem_free(out);
		}
	mem_free(names);
	return ok ? 0 : -ENOMEM;
}

int memory_tree_rename(struct memory_tree *t, const char *from, const char *to)
{
	struct memory_node *n, *old;
	int ret = memory_tree_look_up(t, from, &n);

	if (!ret)
		ret = n ? memory_tree_look_up(t, to, &old) : -ENOENT;
	if (ret || old == n)
		return ret;
	if (old && S_ISDIR(old->mode) != S_ISDIR(n->mode))
		return S_ISDIR(old->mode) ? -EISDIR : -ENOTDIR;
	if (old && S_ISDIR(old->mode) && !is_empty(t, old))
		return -ENOTEMPTY;
	ret = give_name(t, n, to);
	if (!ret && old)
		memory_tree_take_name(t, old);
	return ret;
}

int memory_tree_names(const struct memory_tree *t, const struct memory_node *dir, char **names,
		      size_t *names_len)
{
	size_t dir_len = strlen(dir->path), cap = 0;

	for (size_t i = 0; i < t->nr_nodes; i++) {
		const struct memory_node *n = t->nodes[i];
		const char *name;
		size_t len;
		char *p;

		if (!is_below(n, dir))
			continue;
		name = n->path + dir_len + (dir_len != 0);
		if (strchr(name, '/'))
			continue;
		len = strlen(name) + 1;
		p = vec_room(*names, &cap, *names_len + len, 1);
		if (!p)
			return -ENOMEM;
		*names = p;
		memcpy(p + *names_len, name, len);
		*names_len += len;
	}
	return 0;
}
