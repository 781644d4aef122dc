/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names on the command line: which are places, what is in them, and the settings that all need.
 */
#include "places.h"

#include "options.h"
#include "tool.h"

#include <ftw.h>
#include <stdlib.h>

struct tops {
	struct top *v;
	size_t nr;
	bool failed;
};

static int add_top(void *arg, const char *path, const char *home)
{
	struct tops *tops = arg;
	struct top *v = realloc(tops->v, (tops->nr + 1) * sizeof(*v));

	if (!v)
		return -ENOMEM;
	tops->v = v;
	v[tops->nr].path = strdup(path);
	v[tops->nr].home = strdup(home);
	return v[tops->nr].path && v[tops->nr].home ? (tops->nr++, 0) : -ENOMEM;
}

static bool is_dir(const char *name)
{
	struct stat st;

	return !stat(name, &st) && S_ISDIR(st.st_mode);
}

/* ---- files, and directories of them ---- */

/* nftw() has no argument for its function. */
static struct {
	struct places *p;
	struct plfs_mount *m;
	int ret;
} below;

static int visit(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	int one = 0;

	if (type == FTW_D && !strcmp(path + ftw->base, PLFS_DIR_NAME))
		return FTW_SKIP_SUBTREE;
	if (type == FTW_NS && errno == ENOENT)
		return FTW_CONTINUE; /* removed meanwhile */
	if (type == FTW_NS || type == FTW_DNR) {
		tool_error("%s: %s", path, strerror(errno));
		one = -EIO;
	} else if (S_ISREG(st->st_mode)) {
		one = below.p->file(below.p->arg, path, path, below.m);
	}
	below.ret = below.ret ? below.ret : one;
	return FTW_CONTINUE;
}

static int each_below(struct places *p, const char *name, const char *path, struct plfs_mount *m)
{
	if (!p->recursive) {
		tool_error("%s: a directory on a backend, and no place: use -r for all files below it", name);
		return -EISDIR;
	}
	below.p = p;
	below.m = m;
	below.ret = 0;
	p->walks = true;
	if (nftw(path, visit, 20, FTW_PHYS | FTW_MOUNT | FTW_ACTIONRETVAL) < 0) {
		tool_error("%s: %s", path, strerror(errno));
		below.ret = -EIO;
	}
	p->walks = false;
	return below.ret;
}

/* What is no place. */
static int each_file(struct places *p, const char *name, bool given)
{
	struct plfs_mount *m;
	char path[PATH_MAX];

	if (!target_follow(name, path, &m))
		return -EINVAL;
	if (m)
		return is_dir(path) ? each_below(p, name, path, m) : p->file(p->arg, name, path, m);
	if (is_dir(name) && !p->recursive) {
		if (given && !opt.quiet) /* as after the last drain */
			tool_error("%s: a directory with nothing of libplfs in it", name);
		return 0;
	}
	tool_error("%s: %s", name, access(path, F_OK) ? strerror(errno) : "not on a backend");
	return -EINVAL;
}

/* ---- all ---- */

/* The places among the names into @tops, and the backends of all into @settings. Their number; -errno. */
static int find_tops(const struct places *p, struct tops *tops, bool *has_tops, char ***settings)
{
	char **more;
	int nr = 0;

	for (int i = 0; i < p->nr; i++) {
		size_t before = tops->nr;

		if (is_dir(p->names[i]) && plfs_places_in(p->names[i], add_top, tops))
			tops->failed = has_tops[i] = true;
		has_tops[i] |= tops->nr > before;
		more = realloc(*settings, ((size_t)p->nr + tops->nr + 1) * sizeof(**settings));
		if (!more)
			return -ENOMEM;
		*settings = more;
		for (size_t k = before; k < tops->nr; k++)
			more[nr++] = tops->v[k].home;
		if (!has_tops[i])
			more[nr++] = p->names[i];
	}
	return nr;
}

int places_each(struct places *p)
{
	bool *has_tops = calloc((size_t)p->nr + 1, sizeof(*has_tops));
	char **settings = NULL, path[PATH_MAX];
	struct tops tops = { .nr = 0 };
	struct plfs_mount *m;
	int ret = has_tops ? find_tops(p, &tops, has_tops, &settings) : -ENOMEM, one;

	if (ret < 0)
		goto out;
	target_setup(opt.map, settings, ret);
	ret = 0;
	for (size_t k = 0; k < tops.nr; k++) {
		bool found = target_find(tops.v[k].home, path, &m) && m;

		found = found && !strcmp(plfs_backend(m), tops.v[k].home);
		one = p->top(p->arg, &tops.v[k], found ? m : NULL);
		ret = ret ? ret : one;
	}
	for (int i = 0; i < p->nr; i++) {
		one = has_tops[i] ? 0 : each_file(p, p->names[i], i < p->nr_given);
		ret = ret ? ret : one;
	}
out:
	for (size_t k = 0; k < tops.nr; k++) {
		free(tops.v[k].path);
		free(tops.v[k].home);
	}
	free(tops.v);
	free(settings);
	free(has_tops);
	return tops.failed && !ret ? -EIO : ret;
}
