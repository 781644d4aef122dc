/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which containers the files of a backend lead to, while others create, rename and remove files.
 *
 * A file that is renamed while the names are listed can be missed: from a directory that has not been listed yet into
 * one that has. Every rename changes the time (ctime) of both directories. So all directories are looked at once
 * more, after the last has been listed, and those that have changed since just before they were listed are listed
 * again, and so on, until there is none. Then all of them were as they were listed at one moment, that before the
 * last look began: no file can have been anywhere else. Where that does not come about the names are restless, and
 * nobody can say.
 *
 * Times have a grain. A directory that changed shortly before it was listed may have changed again without another time: it
 * counts as changed.
 */
#include "backend_walk.h"
#include "gc.h"
#include "hash.h"
#include "tree.h"

#include <stdio.h>

#define ROUNDS_MAX 20
#define WAIT_MAX_MS 250
#define GRAIN_NS 20000000ULL           /* of times on a local file system: two ticks of the slowest kernel */
#define GRAIN_REMOTE_NS 2000000000ULL  /* some servers keep seconds */

static const char flatten_temp[] = ".plfs-flatten.";

struct dir {
	UT_hash_handle hh;
	ino_t number;
	struct timespec ctim; /* just before it was listed */
	uint64_t listed_ns;   /* when, by the file system's clock: at or after this */
	unsigned round;       /* in which it was listed */
	char path[];
};

struct names {
	struct gc_run *run;
	struct dir *dirs;
	unsigned round;
	uint64_t now_ns, grain_ns;
	const char **changed;
	size_t nr_changed, nr_dirs;
	bool gone; /* a directory has gone since it was listed */
};

/* ---- files ---- */

static bool all_zeros(const uint8_t *p, size_t len)
{
	return !len || (!*p && !memcmp(p, p + 1, len - 1));
}

/*
 * A plain file with a stub's header has lost its mark, to a chmod or a copy that knows nothing of us: it is not read
 * as a logical file, but it may get the mark back. *@leftover: of a flattening that was killed.
 */
static int look_at_open(struct names *n, int fd)
{
	uint8_t head[STUB_HEADER_LEN];
	struct stub stub;
	struct stat st;
	ssize_t len = own_pread_all(fd, head, sizeof(head), 0);
	int ret;

	if (len < 0)
		return (int)len;
	if (all_zeros(head, (size_t)len))
		return 0;
	if (sys.fstat(fd, &st))
		return -errno;
	if (!stub_marked(st.st_mode) && memcmp(head, STUB_MAGIC, min_size(sizeof(STUB_MAGIC) - 1, (size_t)len)))
		return 0;
	if (!stub_marked(st.st_mode) && stub_decode(&stub, head, (size_t)len) == -EIO)
		return 0; /* a text about us, say */
	ret = stub_look(fd, &stub);
	if (!ret && stub.has_container && !stub.in_body)
		gc_set_name(&n->run->set, stub.id);
	return ret;
}

static void tell_leftover(struct names *n, const struct walk_entry *e)
{
	struct plfs_gc_item item = { .kind = PLFS_GC_TEMP, .path = e->path, .fate = PLFS_GC_KEPT };
	struct stat st;

	if (n->round || sys.fstatat(e->dirfd, e->name, &st, AT_SYMLINK_NOFOLLOW) ||
	    tree_changed_ns(&st) + n->run->gc->age_ns > n->now_ns)
		return;
	item.bytes = (uint64_t)st.st_blocks * 512;
	item.age_ns = n->now_ns - tree_changed_ns(&st);
	item.why = "left by a flattening that was killed; remove it if the file beside it is whole";
	gc_tell(n->run, &item);
}

static void look_at_file(void *arg, const struct walk_entry *e)
{
	struct names *n = arg;
	int fd = walk_open(e), ret = fd;

	if (fd >= 0) {
		ret = look_at_open(n, fd);
		own_close(fd);
	}
	/* Else it has gone, and its directory has changed. */
	if (ret < 0 && ret != -ENOENT && ret != -ELOOP && ret != -ESTALE)
		gc_trouble(n->run, e->path, ret);
	if (!strncmp(e->name, flatten_temp, sizeof(flatten_temp) - 1))
		tell_leftover(n, e);
	mutex_lock(&n->run->lock);
	if (!n->round)
		n->run->gc->nr_files++;
	if (n->run->gc->progress)
		n->run->gc->progress(n->run->gc->arg, "files", n->run->gc->nr_files, 0);
	mutex_unlock(&n->run->lock);
}

/* ---- directories ---- */

static struct dir *find_dir(struct names *n, const char *path)
{
	struct dir *d;

	HASH_FIND(hh, n->dirs, path, strlen(path), d);
	return d;
}

static struct dir *add_dir(struct names *n, const char *path)
{
	size_t len = strlen(path);
	struct dir *d = mem_zalloc(sizeof(*d) + len + 1);

	if (!d)
		return NULL;
	memcpy(d->path, path, len + 1);
	HASH_ADD(hh, n->dirs, path[0], len, d);
	if (!d->hh.tbl) {
		mem_free(d);
		return NULL;
	}
	n->nr_dirs++;
	return d;
}

static bool has_changed(const struct names *n, const struct dir *d, const struct stat *st)
{
	return d->number != st->st_ino || d->ctim.tv_sec != st->st_ctim.tv_sec || d->ctim.tv_nsec != st->st_ctim.tv_nsec ||
	       tree_time_ns(&d->ctim) + n->grain_ns > d->listed_ns;
}

/* In each round a directory is listed once, and only if it is new or has changed. */
static bool enter_dir(void *arg, const char *path, const struct stat *st)
{
	struct names *n = arg;
	struct dir *d;
	bool enter;

	mutex_lock(&n->run->lock);
	d = find_dir(n, path);
	enter = !d || (d->round != n->round && has_changed(n, d, st));
	if (!d)
		d = add_dir(n, path);
	if (d && enter) {
		d->number = st->st_ino;
		d->ctim = st->st_ctim;
		d->listed_ns = n->now_ns;
		d->round = n->round;
	}
	mutex_unlock(&n->run->lock);
	if (!d)
		gc_trouble(n->run, path, -ENOMEM);
	return enter;
}

static void tell_trouble(void *arg, const char *path, int err)
{
	struct names *n = arg;

	gc_trouble(n->run, path, err);
}

/* What a host remembers of a directory may be old, unless it opens it. */
static int stat_dir(const struct names *n, const char *path, struct stat *st)
{
	struct plfs_mount *m = n->run->m;
	int fd, ret;

	if (!m->store.remote)
		return sys.fstatat(m->store.root, *path ? path : ".", st, AT_SYMLINK_NOFOLLOW) ? -errno : 0;
	fd = backend_open_dir(m, path);
	if (fd < 0)
		return fd;
	ret = sys.fstat(fd, st) ? -errno : 0;
	own_close(fd);
	return ret;
}

/* Which have changed since they were listed. */
static void find_changed(struct names *n)
{
	struct dir *d, *tmp;
	struct stat st;
	int ret;

	n->nr_changed = 0;
	n->gone = false;
	HASH_ITER(hh, n->dirs, d, tmp) {
		ret = stat_dir(n, d->path, &st);
		if (ret) {
			if (ret != -ENOENT && ret != -ENOTDIR && ret != -ELOOP)
				gc_trouble(n->run, d->path, ret);
			n->gone = true; /* perhaps after the one above it was looked at: nothing is known of what it had */
			HASH_DEL(n->dirs, d);
			mem_free(d);
			n->nr_dirs--;
		} else if (has_changed(n, d, &st)) {
			n->changed[n->nr_changed++] = d->path;
		}
	}
}

static bool grow_changed(struct names *n)
{
	const char **grown = mem_realloc(n->changed, (n->nr_dirs + 1) * sizeof(*grown));

	if (!grown)
		return false;
	n->changed = grown;
	return true;
}

static void walk(struct names *n, const char *const *starts, size_t nr)
{
	struct backend_walk w = {
		.m = n->run->m, .nr_threads = n->run->gc->nr_threads, .dir = enter_dir, .file = look_at_file,
		.trouble = tell_trouble, .arg = n,
	};

	n->now_ns = gc_now_ns(n->run);
	backend_walk(&w, starts, nr);
}

static void settle(struct names *n)
{
	unsigned wait_ms = (unsigned)(n->grain_ns / 1000000);

	while (!n->run->blind) {
		if (!grow_changed(n)) {
			gc_trouble(n->run, "", -ENOMEM);
			return;
		}
		find_changed(n);
		if (!n->nr_changed && !n->gone)
			return;
		if (++n->round == ROUNDS_MAX) {
			n->run->restless = true;
			return;
		}
		gc_wait(wait_ms);
		wait_ms = wait_ms + wait_ms / 4 < WAIT_MAX_MS ? wait_ms + wait_ms / 4 : wait_ms;
		walk(n, n->changed, n->nr_changed);
	}
}

void gc_look_at_names(struct gc_run *run)
{
	struct names n = { .run = run, .grain_ns = run->m->store.remote ? GRAIN_REMOTE_NS : GRAIN_NS };
	static const char *const root[] = { "" };
	struct dir *d, *tmp;

	walk(&n, root, 1);
	if (gc_set_nr_unnamed(&run->set) && !run->blind)
		settle(&n);
	HASH_ITER(hh, n.dirs, d, tmp) {
		HASH_DEL(n.dirs, d);
		mem_free(d);
	}
	mem_free(n.changed);
}
