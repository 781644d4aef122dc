/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Listing the inputs of a map, in the order of their names.
 */
#include "core/gather/inputs.h"

#include "core/backend/container_dirs.h"
#include "core/backend/names.h"
#include "core/base/crc32c.h"
#include "core/base/msg.h"
#include "core/base/vec.h"
#include "core/dropping/live.h"

#include <stdlib.h>

/* A path and its size or digest at the end of a list. */
static int append(char ***paths, uint64_t **values, uint32_t *nr, size_t *cap, const char *path,
		  uint64_t value)
{
	size_t want = *nr + (size_t)1, cap_paths = *cap;
	void *p = vec_room(*paths, &cap_paths, want, sizeof(**paths));

	if (!p)
		return -ENOMEM;
	*paths = p;
	p = vec_room(*values, cap, want, sizeof(**values));
	if (!p)
		return -ENOMEM;
	*values = p;
	(*paths)[*nr] = mem_strdup(path);
	if (!(*paths)[*nr])
		return -ENOMEM;
	(*values)[(*nr)++] = value;
	return 0;
}

static void swap(char **paths, uint64_t *values, size_t a, size_t b)
{
	char *path = paths[a];
	uint64_t value = values[a];

	paths[a] = paths[b];
	values[a] = values[b];
	paths[b] = path;
	values[b] = value;
}

/* Where row @i belongs in the heap of the first @nr rows, whose largest path is the first. */
static void sift_down(char **paths, uint64_t *values, size_t nr, size_t i)
{
	for (size_t child = 2 * i + 1; child < nr; child = 2 * i + 1) {
		if (child + 1 < nr && strcmp(paths[child], paths[child + 1]) < 0)
			child++;
		if (strcmp(paths[i], paths[child]) >= 0)
			return;
		swap(paths, values, i, child);
		i = child;
	}
}

/* A heap sort: qsort() may allocate from the program's heap. */
static void sort(char **paths, uint64_t *values, size_t nr)
{
	for (size_t i = nr / 2; i-- > 0;)
		sift_down(paths, values, nr, i);
	while (nr > 1) {
		swap(paths, values, 0, --nr);
		sift_down(paths, values, nr, 0);
	}
}

struct inputs_arg {
	struct index_inputs *in;
	const struct container *c;
	const char *skip;
};

uint64_t index_log_digest(const char *path, size_t len)
{
	return (1ULL << 32) + crc32c(0, path, len);
}

static bool is_log_of(const char *path, const char *live)
{
	char log[CONTAINER_PATH_LEN];

	name_log_of_live(live, log);
	return !strcmp(path, log);
}

static int list_input(void *arg, const char *path, const char *name, enum dropping_kind kind)
{
	struct inputs_arg *ia = arg;
	struct index_inputs *in = ia->in;
	uint64_t digest;
	int ret = 0;

	(void)name;
	if (kind == DROPPING_DATA && (!ia->skip || !is_log_of(path, ia->skip)))
		in->logs_digest += index_log_digest(path, strlen(path));
	if (kind == DROPPING_LIVE && (!ia->skip || strcmp(path, ia->skip))) {
		ret = live_digest(ia->c, path, &digest);
		if (ret == -EBADMSG || ret == -EIO)
			msg_error("%s/%s: damaged live index", ia->c->dir, path);
		if (!ret)
			ret = append(&in->lives, &in->digests, &in->nr_lives, &in->cap_lives, path, digest);
	} else if (kind == DROPPING_INDEX) {
		ret = append(&in->indexes, &in->sizes, &in->nr_indexes, &in->cap_indexes, path, 0);
	}
	return ret == -ENOENT ? 0 : ret == -EBADMSG ? -EIO : ret;
}

int index_input_size(const struct container *c, const char *path, uint64_t *size)
{
	char full[CONTAINER_PATH_LEN];
	struct stat st;
	int ret;

	container_path(c, path, full);
	ret = c->store->ops->stat(c->store, full, &st);
	*size = ret ? 0 : (uint64_t)st.st_size;
	return ret == -ENOENT ? 0 : ret;
}

int index_inputs_list(struct index_inputs *in, const struct container *c, const char *skip)
{
	struct inputs_arg ia = { .in = in, .c = c, .skip = skip };
	int ret;

	memset(in, 0, sizeof(*in));
	ret = container_list_there(c, list_input, &ia);
	/* After the list: a live file that went before it could be listed has left its records there. */
	for (uint32_t i = 0; i < in->nr_indexes && !ret; i++)
		ret = index_input_size(c, in->indexes[i], &in->sizes[i]);
	sort(in->indexes, in->sizes, in->nr_indexes);
	sort(in->lives, in->digests, in->nr_lives);
	if (ret)
		index_inputs_release(in);
	return ret;
}

int index_inputs_grow(struct index_inputs *in, const char *path, uint64_t len)
{
	int ret;

	for (uint32_t i = 0; i < in->nr_indexes; i++)
		if (!strcmp(in->indexes[i], path)) {
			in->sizes[i] += len;
			return 0;
		}
	ret = append(&in->indexes, &in->sizes, &in->nr_indexes, &in->cap_indexes, path, len);
	if (!ret)
		sort(in->indexes, in->sizes, in->nr_indexes);
	return ret;
}

static bool lists_equal(char **a, const uint64_t *av, uint32_t na, char **b, const uint64_t *bv, uint32_t nb)
{
	if (na != nb)
		return false;
	for (uint32_t i = 0; i < na; i++)
		if (av[i] != bv[i] || strcmp(a[i], b[i]))
			return false;
	return true;
}

bool index_inputs_equal(const struct index_inputs *a, const struct index_inputs *b)
{
	return a->logs_digest == b->logs_digest &&
	       lists_equal(a->indexes, a->sizes, a->nr_indexes, b->indexes, b->sizes, b->nr_indexes) &&
	       lists_equal(a->lives, a->digests, a->nr_lives, b->lives, b->digests, b->nr_lives);
}

void index_inputs_release(struct index_inputs *in)
{
	for (uint32_t i = 0; i < in->nr_indexes; i++)
		mem_free(in->indexes[i]);
	for (uint32_t i = 0; i < in->nr_lives; i++)
		mem_free(in->lives[i]);
	mem_free(in->indexes);
	mem_free(in->sizes);
	mem_free(in->lives);
	mem_free(in->digests);
	memset(in, 0, sizeof(*in));
}

static int compare_path(const void *path, const void *other)
{
	return strcmp(path, *(char *const *)other);
}

bool path_is_among(const char *path, char *const *paths, uint32_t nr)
{
	return nr && bsearch(path, paths, nr, sizeof(*paths), compare_path);
}
