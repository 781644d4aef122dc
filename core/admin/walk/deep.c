/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A tree of any depth. Each directory is opened in the one above, which stays open as long as there are more
 * in it; of too many the highest are closed. The way back to one of these is "..", once for each level, and
 * must lead to the directory that it was. Each such step can cost the kernel time in proportion to the depth.
 */
#include "core/admin/walk/deep.h"

#include "core/base/io.h"
#include "core/base/sys.h"
#include "core/base/vec.h"
#include "core/store/dirs.h"

/* A directory with others in it that are still to be visited. */
struct level {
	char *names; /* of them, a NUL behind each */
	size_t len, cap, next;
	uint64_t depth;
	ino_t ino;
	int fd; /* -1: closed */
};

struct way {
	const struct deep *d;
	struct deep_sum *sum;
	struct level *v; /* from the top down */
	size_t nr, cap;
	size_t nr_closed; /* the first ones */
	struct level now; /* the directory that is being visited */
};

static void trouble(const struct way *y, int err)
{
	if (err != -ENOENT && err != -ENOTDIR && err != -ELOOP) /* removed meanwhile */
		y->d->trouble(y->d->arg, err);
}

static void add_to_sum(struct deep_sum *sum, const struct stat *st)
{
	uint64_t x = (uint64_t)st->st_ino * 0x9e3779b97f4a7c15ULL + dirs_time_ns(&st->st_ctim);

	x = (x ^ x >> 31) * 0xbf58476d1ce4e5b9ULL;
	sum->mix += x ^ x >> 29;
	sum->nr++;
	sum->changed_ns = max_u64(sum->changed_ns, dirs_time_ns(&st->st_ctim));
}

static int found(void *arg, int fd, const char *name, unsigned char type)
{
	struct way *y = arg;
	struct level *l = &y->now;
	size_t len = strlen(name) + 1;
	struct stat st;
	char *names;

	if (type == DT_UNKNOWN) {
		if (sys.fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW)) {
			trouble(y, -errno);
			return 0;
		}
		type = S_ISDIR(st.st_mode) ? DT_DIR : S_ISREG(st.st_mode) ? DT_REG : DT_LNK;
	}
	if (type == DT_REG && y->d->file)
		y->d->file(y->d->arg, fd, name);
	if (type != DT_DIR || !y->d->enters(y->d->arg, fd, name))
		return 0;
	names = vec_room(l->names, &l->cap, l->len + len, 1);
	if (!names)
		return -ENOMEM;
	l->names = names;
	memcpy(names + l->len, name, len);
	l->len += len;
	return 0;
}

static void end(struct level *l)
{
	if (l->fd >= 0)
		io_close(l->fd);
	mem_free(l->names);
	*l = (struct level){ .fd = -1 };
}

/* Keep the directory of now, for the others in it. */
static int keep(struct way *y)
{
	struct level *v = vec_room(y->v, &y->cap, y->nr + 1, sizeof(*v));

	if (!v)
		return -ENOMEM;
	y->v = v;
	v[y->nr++] = y->now;
	y->now = (struct level){ .fd = -1 };
	if (y->nr - y->nr_closed >= y->d->max_open) {
		io_close(v[y->nr_closed].fd);
		v[y->nr_closed++].fd = -1;
	}
	return 0;
}

/* List the directory @fd, which becomes that of now. Unless it can be read, that stays. */
static void visit(struct way *y, int fd, uint64_t depth)
{
	struct stat st;
	int ret = fd < 0 ? fd : sys.fstat(fd, &st) ? -errno : 0;

	if (!ret && st.st_dev == y->d->dev) { /* else as in do_item() of walk.c */
		end(&y->now);
		y->now = (struct level){ .fd = fd, .ino = st.st_ino, .depth = depth };
		add_to_sum(y->sum, &st);
		ret = dirs_list(fd, found, y);
	} else if (fd >= 0) {
		io_close(fd);
	}
	if (ret)
		trouble(y, ret);
}

/* The last directory that was kept, opened again by way of the one of now if need be. -errno. */
static int go_back(struct way *y)
{
	struct level *l = &y->v[y->nr - 1];
	struct stat st;
	int fd;

	if (l->fd >= 0)
		return l->fd;
	for (; y->now.depth > l->depth; y->now.depth--) {
		fd = io_openat(y->now.fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0)
			return -errno;
		io_close(y->now.fd);
		y->now.fd = fd;
	}
	return sys.fstat(y->now.fd, &st) || st.st_dev != y->d->dev || st.st_ino != l->ino ? -ESTALE :
		y->now.fd;
}

/* All in the last directory is being visited: it is that of now, and the way back from there. */
static void leave(struct way *y)
{
	struct level *l = &y->v[--y->nr];

	if (l->fd < 0) {
		y->nr_closed--;
	} else {
		end(&y->now);
		y->now.fd = l->fd;
		y->now.depth = l->depth;
		l->fd = -1;
	}
	end(l);
}

/* Visit the next directory of the last that was kept. False: there is no way back to that. */
static bool go_on(struct way *y)
{
	int dir = go_back(y), fd;
	struct level *l = &y->v[y->nr - 1];
	const char *name = l->names + l->next;
	uint64_t depth = l->depth + 1;

	if (dir < 0)
		return false;
	l->next += strlen(name) + 1;
	fd = dirs_open(dir, name);
	if (l->next == l->len)
		leave(y);
	visit(y, fd, depth);
	return true;
}

void deep_visit(const struct deep *d, int fd, const char *name, struct deep_sum *sum)
{
	struct way y = { .d = d, .sum = sum, .now.fd = -1 };
	bool there = true;

	visit(&y, dirs_open(fd, name), 0);
	do {
		if (y.now.len && keep(&y)) {
			trouble(&y, -ENOMEM);
			y.now.len = 0;
		}
		there = !y.nr || go_on(&y);
	} while (there && (y.nr || y.now.len));
	if (!there)
		sum->changed_ns = UINT64_MAX;
	end(&y.now);
	while (y.nr)
		end(&y.v[--y.nr]);
	mem_free(y.v);
}
