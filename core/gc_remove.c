/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What speaks against removing a container to which nothing leads, and its removal; and the temporary files that
 * killed processes leave.
 */
#include "dropping.h"
#include "gc.h"
#include "tree.h"

#include <stdio.h>

#define WHY_LEN 200

/* The container's directory below .plfs, "3f/3fa9...", into @name of 64 bytes. */
static void container_name(const struct gc_container *gc, char *name)
{
	struct container c;

	container_init(&c, NULL, gc->id, 0);
	memcpy(name, c.dir + sizeof(PLFS_DIR_NAME), sizeof("3f/") + 2 * STUB_ID_LEN);
}

/* ---- temporary files ---- */

struct temps_arg {
	struct gc_run *run;
	const struct gc_container *c; /* that they are in, or NULL */
	char dir[64];
};

static bool is_temp(const char *name)
{
	return strstr(name, ".tmp.") || !strncmp(name, ".plfs-flatten.", sizeof(".plfs-flatten.") - 1);
}

/*
 * A stub among temporary files has exchanged its name with the plain file that was made of it. Mostly it is that of
 * the container it is in. If it is another's, that was renamed there at the last moment, and the exchange was to be
 * undone.
 */
static bool is_lost(const struct temps_arg *ta, int fd, const char *name, const struct stat *st, struct stub *stub)
{
	int h, ret;

	if (!stub_marked(st->st_mode))
		return false;
	h = own_openat(fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	ret = h < 0 ? -errno : stub_look(h, stub);
	if (h >= 0)
		own_close(h);
	return ret || (stub->has_container && !stub->in_body && (!ta->c || memcmp(stub->id, ta->c->id, STUB_ID_LEN)));
}

static int look_at_temp(void *arg, int fd, const char *name, unsigned char type)
{
	struct temps_arg *ta = arg;
	struct gc_run *run = ta->run;
	char why[WHY_LEN], path[PATH_MAX];
	struct plfs_gc_item item = { .kind = PLFS_GC_TEMP, .path = path };
	struct stub stub = { 0 };
	struct stat st;

	(void)type;
	if (!is_temp(name) || sys.fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
		return 0;
	snprintf(path, sizeof(path), PLFS_DIR_NAME "/%s%s%s", ta->dir, *ta->dir ? "/" : "", name);
	item.bytes = (uint64_t)st.st_blocks * 512;
	item.age_ns = run->start_ns - min_u64(run->start_ns, tree_changed_ns(&st));
	if (is_lost(ta, fd, name, &st, &stub)) {
		gc_set_name(&run->set, stub.id);
		if (ta->c) /* what it is in has to stay as well */
			gc_set_name(&run->set, ta->c->id);
		item.why = "the stub of a file that was renamed while another was made plain: give it a name again, or remove it";
		item.fate = PLFS_GC_KEPT;
	} else if (tree_changed_ns(&st) + run->gc->age_ns >= run->start_ns || (ta->c && !ta->c->named)) {
		return 0; /* somebody may be at it; or it goes with the container */
	} else if (run->gc->dry) {
		item.fate = PLFS_GC_WOULD_BE;
	} else if (!sys.unlinkat(fd, name, 0)) {
		item.fate = PLFS_GC_REMOVED;
	} else {
		snprintf(why, sizeof(why), "cannot be removed: %s", strerror(errno));
		item.why = why;
		item.fate = PLFS_GC_FAILED;
	}
	gc_tell(run, &item);
	return 0;
}

void gc_look_for_temps(struct gc_run *run)
{
	struct temps_arg ta = { .run = run };
	int fd = tree_open(run->dir, ".");

	if (fd < 0)
		return;
	tree_list(fd, look_at_temp, &ta);
	own_close(fd);
}

void gc_look_for_temps_in(struct gc_run *run, const struct gc_container *c)
{
	struct temps_arg ta = { .run = run, .c = c };
	int fd, ret;

	container_name(c, ta.dir);
	fd = tree_open(run->dir, ta.dir);
	ret = fd < 0 ? fd : tree_list(fd, look_at_temp, &ta);
	if (ret && ret != -ENOENT && !c->named) { /* another's stub may be in it */
		char path[80];

		snprintf(path, sizeof(path), PLFS_DIR_NAME "/%s", ta.dir);
		gc_trouble(run, path, ret);
	}
	if (fd >= 0)
		own_close(fd);
}

/* ---- live files ---- */

struct lives_arg {
	struct gc_run *run;
	char *why; /* WHY_LEN */
};

/* Whether the owner of a live file lives: where hosts share the file system he holds a lock on it. */
static int look_at_live(void *arg, int fd, const char *name, unsigned char type)
{
	struct lives_arg *la = arg;
	struct store *s = &la->run->m->store;
	uint32_t pid, seq;
	int h;

	(void)type;
	if (strncmp(name, "live.", 5))
		return 0;
	dropping_log_numbers(name, &pid, &seq);
	if (dropping_live_is_ours(name) && gc_process_has(pid, name)) {
		snprintf(la->why, WHY_LEN, "process %u is writing it", pid);
		return 1;
	}
	if (!s->remote)
		return 0;
	h = own_openat(fd, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (h < 0 ? errno != ENOENT : s->ops->locked(s, h))
		snprintf(la->why, WHY_LEN, "a process of another host may be writing it (%.100s)", name);
	if (h >= 0)
		own_close(h);
	return *la->why != '\0';
}

static int look_at_hostdir(void *arg, int fd, const char *name, unsigned char type)
{
	int dir, ret;

	(void)type;
	if (strncmp(name, "hostdir.", 8))
		return 0;
	dir = tree_open(fd, name);
	if (dir < 0)
		return dir == -ENOENT || dir == -ENOTDIR || dir == -ELOOP ? 0 : dir;
	ret = tree_list(dir, look_at_live, arg);
	own_close(dir);
	return ret;
}

/* ---- removing ---- */

/* "2 hours" */
static void say_time(uint64_t ns, char *out, size_t len)
{
	static const struct {
		unsigned s;
		const char *unit;
	} units[] = { { 86400, "day" }, { 3600, "hour" }, { 60, "minute" }, { 1, "second" } };
	uint64_t s = ns / 1000000000, n;
	size_t i = 0;

	while (i < ARRAY_SIZE(units) - 1 && s < units[i].s)
		i++;
	n = s / units[i].s;
	snprintf(out, len, "%llu %s%s", (unsigned long long)n, units[i].unit, n == 1 ? "" : "s");
}

/* Whether something speaks against it: that is in @why. -errno: it cannot be told. */
static int judge(struct gc_run *run, int fd, const struct tree_sum *sum, char *why)
{
	struct lives_arg la = { .run = run, .why = why };
	uint64_t now_ns = gc_now_ns(run);
	char age[40];

	if (run->restless) {
		snprintf(why, WHY_LEN, "names kept changing while its file was looked for; try again when less is renamed");
		return 1;
	}
	/* Not "now": it may have got a file since it was looked for. */
	if (sum->changed_ns + run->gc->age_ns >= run->start_ns) {
		say_time(now_ns - min_u64(now_ns, sum->changed_ns), age, sizeof(age));
		snprintf(why, WHY_LEN, "changed %s ago", age);
		return 1;
	}
	return tree_list(fd, look_at_hostdir, &la);
}

/* Whether something speaks against it is asked no more: but for who may be at it. */
void gc_remove_gone(struct gc_run *run, int fd, const char *parent, const char *name)
{
	char path[80], why[WHY_LEN] = "";
	struct plfs_gc_item item = { .kind = PLFS_GC_CONTAINER, .path = path, .why = why };
	struct tree_sum sum;
	int ret = tree_measure(fd, name, &sum);

	if (ret || sum.changed_ns + run->gc->age_ns >= run->start_ns)
		return;
	snprintf(path, sizeof(path), PLFS_DIR_NAME "/%s/%s", parent, name);
	item.bytes = sum.bytes;
	item.age_ns = run->start_ns - sum.changed_ns;
	item.fate = run->gc->dry ? PLFS_GC_WOULD_BE : PLFS_GC_REMOVED;
	ret = run->gc->dry ? 0 : tree_remove(fd, name, false);
	if (ret) {
		snprintf(why, sizeof(why), "cannot be removed: %s", strerror(-ret));
		item.fate = PLFS_GC_FAILED;
	}
	gc_tell(run, &item);
}

/*
 * An empty one may be about to be given to a file, whose first log then must not go with it. Of others nobody is to
 * find a part.
 */
static int remove_it(struct gc_run *run, const char *dir, bool empty)
{
	char aside[64 + sizeof(STORE_GONE)];

	snprintf(aside, sizeof(aside), "%s" STORE_GONE, dir);
	return tree_remove(run->dir, empty || sys.renameat(run->dir, dir, run->dir, aside) ? dir : aside, empty);
}

void gc_remove_container(struct gc_run *run, const struct gc_container *c)
{
	char dir[64], path[80], why[WHY_LEN] = "";
	struct plfs_gc_item item = { .kind = PLFS_GC_CONTAINER, .path = path, .why = why };
	struct tree_sum sum = { 0 };
	int fd, ret;

	container_name(c, dir);
	snprintf(path, sizeof(path), PLFS_DIR_NAME "/%s", dir);
	fd = tree_open(run->dir, dir);
	if (fd == -ENOENT) /* its file was removed meanwhile */
		return;
	ret = fd < 0 ? fd : tree_measure(run->dir, dir, &sum);
	if (!ret)
		ret = judge(run, fd, &sum, why);
	if (fd >= 0)
		own_close(fd);
	item.bytes = sum.bytes;
	item.age_ns = run->start_ns - min_u64(run->start_ns, sum.changed_ns);
	if (ret > 0) {
		item.fate = PLFS_GC_KEPT;
	} else if (!ret && run->gc->dry) {
		item.fate = PLFS_GC_WOULD_BE;
	} else if (!ret) {
		ret = remove_it(run, dir, !sum.nr_files);
		item.fate = PLFS_GC_REMOVED;
	}
	if (ret < 0) {
		snprintf(why, sizeof(why), "cannot be removed: %s", strerror(-ret));
		item.fate = PLFS_GC_FAILED;
	}
	gc_tell(run, &item);
}
