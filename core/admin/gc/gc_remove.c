/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Decides whether an unmarked container may be removed, and removes it; removes the temporary files of killed
 * processes.
 */
#include "core/admin/gc/gc_remove.h"

#include "core/backend/spread_tops.h"

#include "core/admin/gc/gc_proc.h"
#include "core/backend/container_dirs.h"
#include "core/backend/names.h"
#include "core/backend/stub_known.h"
#include "core/store/dirs.h"
#include "core/store/posix.h"

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
	const struct gc_container *c; /* the files are in this container; NULL: in .plfs */
	char dir[64];
};

static bool is_of_flatten(const char *name)
{
	return !strncmp(name, ".plfs-flatten.", sizeof(".plfs-flatten.") - 1);
}

static bool is_temp(const char *name) { return strstr(name, ".tmp.") || is_of_flatten(name); }

/*
 * Whether a temporary file is the stub of a file that has lost its name. A flattening exchanges the names of
 * the stub and of the plain file. Normally the stub then lies in its own container. The stub of another
 * container was renamed to the flattened name at the last moment, and the flattening was killed before it
 * undid the exchange.
 */
static bool is_lost(const struct temps_arg *ta, int fd, const char *name, const struct stat *st,
		    struct stub *stub)
{
	bool marked = stub_marked(st->st_mode), is = marked;
	int h, ret;

	/* a new format file has the mark too, while that is tried on it */
	if (!is_of_flatten(name) || (!marked && !stub_maybe_unmarked(st)))
		return false;
	h = io_openat(fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (h >= 0 && !marked)
		is = stub_is_by_header(h, st);
	ret = h < 0 ? -errno : is ? stub_look(h, stub) : 0;
	if (h >= 0)
		io_close(h);
	return is && (ret || (stub->has_container && !stub->in_body &&
		       (!ta->c || memcmp(stub->id, ta->c->id, STUB_ID_LEN))));
}

static int remove_temp(void *arg, int fd, const char *name, unsigned char type)
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
	item.age_ns = run->start_ns - min_u64(run->start_ns, dirs_changed_ns(&st));
	if (is_lost(ta, fd, name, &st, &stub)) {
		gc_set_name(&run->set, stub.id);
		if (ta->c) /* the container it lies in has to stay as well */
			gc_set_name(&run->set, ta->c->id);
		item.why = "the stub of a file that was renamed while another was flattened: give it a name "
			   "again, or remove it";
		item.fate = PLFS_GC_KEPT;
	} else if (dirs_changed_ns(&st) + run->gc->age_ns >= run->start_ns || (ta->c && !ta->c->named)) {
		return 0; /* its process may be running; or it goes with the container */
	} else if (run->gc->dry) {
		item.fate = PLFS_GC_WOULD_BE;
	} else if (!sys.unlinkat(fd, name, 0)) {
		item.fate = PLFS_GC_REMOVED;
	} else {
		snprintf(why, sizeof(why), "cannot be removed: %s", strerror(errno));
		item.why = why;
		item.fate = PLFS_GC_FAILED;
	}
	gc_report(run, &item);
	return 0;
}

void gc_remove_temps(struct gc_run *run)
{
	struct temps_arg ta = { .run = run };
	int fd = dirs_open(run->dir, ".");

	if (fd < 0)
		return;
	dirs_list(fd, remove_temp, &ta);
	io_close(fd);
}

void gc_remove_temps_in(struct gc_run *run, const struct gc_container *c)
{
	struct temps_arg ta = { .run = run, .c = c };
	int fd, ret;

	container_name(c, ta.dir);
	fd = dirs_open(run->dir, ta.dir);
	ret = fd < 0 ? fd : dirs_list(fd, remove_temp, &ta);
	if (ret && ret != -ENOENT && !c->named) { /* the stub of another file may be in it */
		char path[80];
		struct stat st;

		snprintf(path, sizeof(path), PLFS_DIR_NAME "/%s", ta.dir);
		if (!sys.fstatat(run->dir, ta.dir, &st, AT_SYMLINK_NOFOLLOW))
			gc_trouble_of(run, path, ret, st.st_uid);
		else if (errno != ENOENT)
			gc_trouble(run, path, ret);
	}
	if (fd >= 0)
		io_close(fd);
}

/* ---- live files ---- */

struct lives_arg {
	struct gc_run *run;
	char *why; /* WHY_LEN */
};

/*
 * Whether the owner of a live file may be alive. Where hosts share the file system, the owner holds a lock on
 * it.
 */
static int check_live(void *arg, int fd, const char *name, unsigned char type)
{
	struct lives_arg *la = arg;
	uint32_t pid, seq;
	int h;

	(void)type;
	if (!name_is_live(name))
		return 0;
	name_log_numbers(name, &pid, &seq);
	if (name_is_our_live(name) && gc_process_has(pid, name)) {
		snprintf(la->why, WHY_LEN, "process %u is writing it", pid);
		return 1;
	}
	if (!la->run->m->store.remote)
		return 0;
	h = io_openat(fd, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (h < 0 ? errno != ENOENT : store_posix_locked(h))
		snprintf(la->why, WHY_LEN, "a process of another host may be writing it (%.100s)", name);
	if (h >= 0)
		io_close(h);
	return *la->why != '\0';
}

static int check_hostdir(void *arg, int fd, const char *name, unsigned char type)
{
	int dir, ret;

	(void)type;
	if (strncmp(name, "hostdir.", 8))
		return 0;
	dir = dirs_open(fd, name);
	if (dir < 0)
		return dir == -ENOENT || dir == -ENOTDIR || dir == -ELOOP ? 0 : dir;
	ret = dirs_list(dir, check_live, arg);
	io_close(dir);
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

/*
 * Whether a file of one of @users may lead to the container @fd: it is of the same user, or was made for him
 * (container.h). Root may have given a file of its own away without the library.
 */
static bool may_be_led_to(const struct owners *users, int fd)
{
	char name[32];
	struct stat st;

	if (!users->all && !users->nr)
		return false;
	if (sys.fstat(fd, &st) || !st.st_uid || owners_have(users, st.st_uid))
		return true;
	for (size_t i = 0; i < users->nr; i++) {
		snprintf(name, sizeof(name), "for.%u", (unsigned)users->v[i]);
		if (!sys.fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) || errno != ENOENT)
			return true;
	}
	return false;
}

/*
 * 0: it may be removed; 1: it stays, for the reason in @why; *@young: which is its age; -errno: unknown.
 */
static int judge(struct gc_run *run, int fd, const struct dirs_sum *sum, char *why, bool *young)
{
	struct lives_arg la = { .run = run, .why = why };
	uint64_t now_ns = gc_now_ns(run);
	char age[40], least[40];

	if (may_be_led_to(&run->restless, fd)) {
		snprintf(why, WHY_LEN,
			 "files were renamed all the time while its file was searched for: try again later");
		return 1;
	}
	if (may_be_led_to(&run->unread, fd)) {
		snprintf(why, WHY_LEN, "a file that could not be read may lead to it");
		__atomic_add_fetch(&run->gc->nr_unknown, 1, __ATOMIC_RELAXED);
		return 1;
	}
	/* Not from now: since the command began it may have got a file. */
	if (sum->changed_ns + run->gc->age_ns >= run->start_ns) {
		say_time(now_ns - min_u64(now_ns, sum->changed_ns), age, sizeof(age));
		say_time(run->gc->age_ns, least, sizeof(least));
		*young = run->gc->age_ns;
		if (*young)
			snprintf(why, WHY_LEN, "changed %s ago, so it is younger than %s: -a 0 removes it now",
				 age, least);
		else
			snprintf(why, WHY_LEN, "changed %s ago", age);
		return 1;
	}
	return dirs_list(fd, check_hostdir, &la);
}

/* Only the age is checked: another process may be removing it now. */
void gc_remove_gone(struct gc_run *run, int fd, const char *parent, const char *name)
{
	char path[80], why[WHY_LEN] = "";
	struct plfs_gc_item item = { .kind = PLFS_GC_CONTAINER, .path = path, .why = why };
	struct dirs_sum sum;
	int ret = dirs_measure(fd, name, &sum);

	if (ret || sum.changed_ns + run->gc->age_ns >= run->start_ns)
		return;
	snprintf(path, sizeof(path), PLFS_DIR_NAME "/%s/%s", parent, name);
	item.bytes = sum.bytes;
	item.age_ns = run->start_ns - sum.changed_ns;
	item.fate = run->gc->dry ? PLFS_GC_WOULD_BE : PLFS_GC_REMOVED;
	ret = run->gc->dry ? 0 : dirs_remove(fd, name, false, container_has);
	if (ret) {
		snprintf(why, sizeof(why), "cannot be removed: %s", strerror(-ret));
		item.fate = PLFS_GC_FAILED;
	}
	gc_report(run, &item);
}

/*
 * A process may be claiming an empty container, so that one is removed only while it is empty. Any other is
 * renamed first: no reader may find a part of it.
 */
static int remove_it(struct gc_run *run, const char *dir, bool empty)
{
	char aside[64 + sizeof(STORE_GONE)];

	snprintf(aside, sizeof(aside), "%s" STORE_GONE, dir);
	return dirs_remove(run->dir, empty || sys.renameat(run->dir, dir, run->dir, aside) ? dir : aside,
			   empty, container_has);
}

void gc_remove_container(struct gc_run *run, const struct gc_container *c)
{
	char dir[64], path[80], why[WHY_LEN] = "";
	struct plfs_gc_item item = { .kind = PLFS_GC_CONTAINER, .path = path, .why = why };
	struct dirs_sum sum = { 0 };
	struct spread_tops *others;
	int fd, ret;

	container_name(c, dir);
	snprintf(path, sizeof(path), PLFS_DIR_NAME "/%s", dir);
	fd = dirs_open(run->dir, dir);
	if (fd == -ENOENT) /* its file was removed meanwhile */
		return;
	ret = fd < 0 ? fd : dirs_measure(run->dir, dir, &sum);
	if (!ret)
		ret = judge(run, fd, &sum, why, &item.young);
	if (fd >= 0)
		io_close(fd);
	item.bytes = sum.bytes;
	item.age_ns = run->start_ns - min_u64(run->start_ns, sum.changed_ns);
	if (ret > 0) {
		item.fate = PLFS_GC_KEPT;
	} else if (!ret && run->gc->dry) {
		item.fate = PLFS_GC_WOULD_BE;
	} else if (!ret) {
		others = spread_tops_open(&run->m->store, path);
		ret = remove_it(run, dir, !sum.nr_files);
		spread_tops_close(others, path, ret ? NULL : container_has);
		item.fate = PLFS_GC_REMOVED;
	}
	if (ret == -ENOTEMPTY && !sum.nr_files) {
		snprintf(why, sizeof(why), "a process has just begun to write in it");
		item.fate = PLFS_GC_KEPT;
	} else if (ret < 0) {
		snprintf(why, sizeof(why), "cannot be removed: %s", strerror(-ret));
		item.fate = PLFS_GC_FAILED;
	}
	gc_report(run, &item);
}
