/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lists of hostdirs whose logs may be in several backends.
 */
#include "core/backend/spread_list.h"

#include "core/backend/names.h"
#include "core/backend/spread_enter.h"
#include "core/backend/spread_open.h"
#include "core/base/alloc.h"
#include "core/base/vec.h"

/* A directory in another backend of which the logs of a host are in the list already. */
struct had {
	dev_t dev;
	ino_t ino;
	const char *host; /* in a name that outlives it */
	size_t host_len;
};

/* What is found in other backends. */
struct there {
	struct name_list names;
	const char *host; /* whose names are wanted */
	size_t host_len;
	const struct store *in; /* where directories of hosts and processes are looked into */
	struct had *had;
	size_t nr_had, cap_had;
};

static void there_release(struct there *n)
{
	name_list_release(&n->names);
	mem_free(n->had);
}

/* 1: two numbers of the host lead to one directory, and this is the second; 0; -errno. */
static int has_had(struct there *n, struct store *s)
{
	struct had *had;
	struct stat st;
	int ret = s->ops->fstat(s, s->root, &st);

	for (size_t i = 0; i < n->nr_had && !ret; i++)
		if (n->had[i].ino == st.st_ino && n->had[i].dev == st.st_dev &&
		    n->had[i].host_len == n->host_len && !memcmp(n->had[i].host, n->host, n->host_len))
			return 1;
	had = ret ? NULL : vec_room(n->had, &n->cap_had, n->nr_had + 1, sizeof(*had));
	if (!had)
		return ret ? ret : -ENOMEM;
	n->had = had;
	had[n->nr_had++] = (struct had){ st.st_dev, st.st_ino, n->host, n->host_len };
	return 0;
}

static int add_log(void *arg, const char *name)
{
	struct there *n = arg;
	const char *as = spread_undamaged(name), *host;
	enum dropping_kind kind = name_kind(as);
	size_t len;

	host = kind == DROPPING_DATA || kind == DROPPING_LIVE ? name_host(as, &len) : NULL;
	return host && len == n->host_len && !memcmp(host, n->host, len) ? name_list_add(&n->names, name) : 0;
}

/* "own.HOST" and "own.HOST.PID" of the host. */
static bool is_own_dir_of(const char *name, const struct there *n)
{
	return name_is_own_dir(name) && !strncmp(name + 4, n->host, n->host_len) &&
	       (!name[4 + n->host_len] || name[4 + n->host_len] == '.');
}

static int add_there(void *arg, const char *name)
{
	struct there *n = arg;
	struct store *in = (struct store *)n->in;
	int ret;

	if (!is_own_dir_of(name, n))
		return add_log(n, name);
	ret = in->ops->list(in, name, add_log, n);
	return ret == -ENOENT ? 0 : ret;
}

/* What the spread.N.HOST called @file leads to. */
static int list_there(struct store *s, const char *dir, const char *file, struct there *there)
{
	struct place_dir to;
	int ret = spread_enter(s, dir, file, NULL, &to);

	there->host = name_host(file, &there->host_len);
	if (ret)
		return ret;
	there->in = &to.store;
	ret = has_had(there, &to.store);
	if (!ret)
		ret = to.store.ops->list(&to.store, ".", add_there, there);
	place_leave(&to);
	return ret > 0 ? 0 : ret;
}

int spread_list(struct store *s, const char *dir, const char *file, struct name_list *names)
{
	struct there there = { .in = NULL };
	int ret = list_there(s, dir, file, &there);

	*names = there.names;
	mem_free(there.had);
	return ret;
}

/* -EREMOTE: that backend is not there, and has no live files; -EIO: it may have some. */
static int list_one(struct store *s, const char *dir, const char *file, struct there *there)
{
	int ret = list_there(s, dir, file, there);

	if (ret != -EREMOTE)
		return ret == -ENOENT ? 0 : ret;
	if (!spread_has_open(s, dir, file, NULL))
		return -EREMOTE;
	spread_tell_gone(s, dir, file);
	return -EIO;
}

static int list_all(struct store *s, const char *dir, const struct name_list *home, struct there *there,
		    bool *any)
{
	int ret = 0;

	for (size_t i = 0; i < home->nr; i++)
		if (name_spread_slot(home->v[i])) {
			int one = list_one(s, dir, home->v[i], there);

			*any = true;
			ret = ret && ret != -EREMOTE ? ret : one ? one : ret;
		}
	return ret;
}

/* Only a command that brings logs home leaves one twice. */
static bool is_twice(const struct name_list *there, const char *name)
{
	enum dropping_kind kind = name_kind(name);

	return (kind == DROPPING_DATA || kind == DROPPING_LIVE) && spread_slot_of(name) &&
	       name_list_has(there, name);
}

/* Home is listed last, once more: a log that was brought home meanwhile is there by then. */
static int list_hostdir(struct store *s, const char *path, int (*fn)(void *arg, const char *name), void *arg)
{
	struct name_list home = { .nr = 0 };
	struct there there = { .in = NULL };
	int ret = s->base->list(s, path, name_list_add, &home), gone = 0, told = 0;
	bool any = false;

	if (!ret)
		gone = list_all(s, path, &home, &there, &any);
	if (gone && gone != -EIO && gone != -EREMOTE)
		ret = gone;
	if (any && !ret) {
		name_list_release(&home);
		ret = s->base->list(s, path, name_list_add, &home);
	}
	for (size_t i = 0; i < there.names.nr && !ret && !told; i++)
		told = fn(arg, there.names.v[i]);
	for (size_t i = 0; i < home.nr && !ret && !told; i++)
		told = is_twice(&there.names, home.v[i]) ? 0 : fn(arg, home.v[i]);
	name_list_release(&home);
	there_release(&there);
	return ret ? ret : told ? told : gone;
}

int spread_list_path(struct store *s, const char *path, int (*fn)(void *arg, const char *name), void *arg)
{
	const char *slash = strrchr(path, '/');

	return slash && !strncmp(slash + 1, "hostdir.", 8) ? list_hostdir(s, path, fn, arg) :
							     s->base->list(s, path, fn, arg);
}
