/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which containers the files of a backend lead to, while others create, rename and remove files.
 *
 * A listing misses a file that is renamed meanwhile from a directory that is not listed yet into one that is.
 * Every rename changes the ctime of both directories. So when all directories have been listed, those whose
 * ctime differs from the one just before their listing are listed again, until there are none. Then all
 * directories were as listed at one moment, the one before the last round began, and no file can have been
 * elsewhere. If that does not happen within ROUNDS_MAX rounds, the names in those that have changed are
 * restless. Who can write there may have moved a file there: then all containers of his stay.
 *
 * Times have a grain. A directory that changed shortly before its listing may change again without a new
 * ctime, so it counts as changed.
 */
#include "core/admin/gc/gc_names.h"

#include "core/backend/nested.h"
#include "core/backend/stub_known.h"
#include "core/base/bytes.h"
#include "core/admin/walk/walk.h"
#include "core/base/hash.h"
#include "core/store/dirs.h"

#include <stdio.h>

#define ROUNDS_MAX 20
#define WAIT_MAX_MS 250
#define GRAIN_NS 20000000ULL /* of a local file system: two ticks of the slowest kernel */
#define GRAIN_REMOTE_NS 2000000000ULL  /* some servers store seconds */

static const char flatten_temp[] = ".plfs-flatten.";

struct dir {
	UT_hash_handle hh;
	ino_t number;
	struct timespec ctim; /* just before it was listed */
	uint64_t listed_ns;   /* by the file system's clock; the listing was at this time or later */
	unsigned round;       /* of its last listing */
	struct deep_sum deep; /* at its listing, of what is in it and too deep for a path */
	bool deep_changed;    /* since then */
	uid_t uid;
	mode_t mode;
	char path[];
};

struct names {
	struct gc_run *run;
	/*
	 * The backend, without what is mounted below it. If it lies in others of the same user, the highest
	 * of these: a stub may have been moved out of it, to where no gc of the others knows its container.
	 */
	struct plfs_mount m;
	const char *below; /* the path of the backend below that; "": it is the backend */
	struct dir *dirs;
	unsigned round;
	uint64_t now_ns, grain_ns;
	const char **changed;
	size_t nr_changed, nr_dirs;
	bool gone; /* a directory was removed after its listing */
};

/* ---- files ---- */

/*
 * Mark the container of the file @fd. A stub that has lost its mark counts too; a marked file without a
 * header leads nowhere (stub_is_one()). 0; -errno: it cannot be read, or the stub is damaged.
 */
static int take_stub(struct names *n, int fd)
{
	uint8_t head[PLFS_BODY_OFF];
	struct stub stub;
	struct stat st;
	ssize_t len = io_pread_all(fd, head, sizeof(head), 0);
	int ret;

	if (len < 0)
		return (int)len;
	if (sys.fstat(fd, &st))
		return -errno;
	if (stub_marked(st.st_mode) && is_zero(head, min_size((size_t)len, STUB_CLAIM_OFF)))
		return stub_look_blank(n->run->m, fd, &st) < 0 ? -EIO : 0;
	if (is_zero(head, min_size((size_t)len, STUB_HEADER_LEN)))
		return 0;
	if (!stub_is_one(head, (size_t)len, stub_marked(st.st_mode)))
		return 0;
	ret = stub_look(fd, &stub);
	if (!ret && stub.has_container && !stub.in_body)
		gc_set_name(&n->run->set, stub.id);
	return ret;
}

/* Make *@path relative to the backend; in @buf (PATH_MAX) if it is outside. False: it is outside. */
static bool own_path(const struct names *n, const char **path, char *buf)
{
	size_t len = strlen(n->below), at = 0;

	if (!len)
		return true;
	if (!strncmp(*path, n->below, len) && ((*path)[len] == '/' || !(*path)[len])) {
		*path += len + ((*path)[len] == '/');
		return true;
	}
	for (const char *p = n->below; p && at + 4 < PATH_MAX; p = strchr(p + 1, '/'))
		at += (size_t)snprintf(buf + at, PATH_MAX - at, "../");
	snprintf(buf + at, PATH_MAX - at, "%s", *path);
	*path = buf;
	return false;
}

static void report_leftover(struct names *n, const struct walk_entry *e)
{
	struct plfs_gc_item item = { .kind = PLFS_GC_TEMP, .path = e->path, .fate = PLFS_GC_KEPT };
	char path[PATH_MAX];
	struct stat st;

	if (n->round || !own_path(n, &item.path, path) ||
	    sys.fstatat(e->dirfd, e->name, &st, AT_SYMLINK_NOFOLLOW) ||
	    dirs_changed_ns(&st) + n->run->gc->age_ns > n->now_ns)
		return;
	item.bytes = (uint64_t)st.st_blocks * 512;
	item.age_ns = n->now_ns - dirs_changed_ns(&st);
	item.why = "a killed flattening left it: remove it if the file beside it is complete";
	gc_report(n->run, &item);
}

/* A file that cannot be read. */
static void report_unread(struct names *n, const struct walk_entry *e, int err)
{
	const char *path = e->path;
	char buf[PATH_MAX];
	struct stat st;

	own_path(n, &path, buf);
	if (!sys.fstatat(e->dirfd, e->name, &st, AT_SYMLINK_NOFOLLOW))
		gc_trouble_of(n->run, path, err, st.st_uid);
	else if (errno != ENOENT)
		gc_trouble(n->run, path, err);
}

static void scan_file(void *arg, const struct walk_entry *e)
{
	struct names *n = arg;
	int fd = walk_open(e), ret = fd;

	if (fd >= 0) {
		ret = take_stub(n, fd);
		io_close(fd);
	}
	/* After one of these errors the file is gone, and its directory has changed. */
	if (ret < 0 && ret != -ENOENT && ret != -ELOOP && ret != -ESTALE)
		report_unread(n, e, ret);
	if (!strncmp(e->name, flatten_temp, sizeof(flatten_temp) - 1))
		report_leftover(n, e);
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
	return d->number != st->st_ino || d->ctim.tv_sec != st->st_ctim.tv_sec ||
	       d->ctim.tv_nsec != st->st_ctim.tv_nsec ||
	       dirs_time_ns(&d->ctim) + n->grain_ns > d->listed_ns;
}

/* Each round lists a directory at most once, and only if it is new or has changed. */
static bool enter_dir(void *arg, const char *path, const struct stat *st)
{
	struct names *n = arg;
	struct dir *d;
	bool enter;

	mutex_lock(&n->run->lock);
	d = find_dir(n, path);
	enter = !d || (d->round != n->round && (has_changed(n, d, st) || d->deep_changed));
	if (!d)
		d = add_dir(n, path);
	if (d && enter) {
		d->number = st->st_ino;
		d->ctim = st->st_ctim;
		d->uid = st->st_uid;
		d->mode = st->st_mode;
		d->listed_ns = n->now_ns;
		d->round = n->round;
		d->deep = (struct deep_sum){ 0 };
		d->deep_changed = false;
	}
	mutex_unlock(&n->run->lock);
	if (!d)
		gc_trouble(n->run, path, -ENOMEM);
	return enter;
}

static void take_deep(void *arg, const char *path, const struct deep_sum *sum)
{
	struct names *n = arg;
	struct dir *d;

	mutex_lock(&n->run->lock);
	d = find_dir(n, path);
	if (d)
		d->deep = *sum;
	mutex_unlock(&n->run->lock);
}

static void report_trouble(void *arg, const char *path, int err)
{
	struct names *n = arg;
	char buf[PATH_MAX];

	own_path(n, &path, buf);
	gc_trouble(n->run, path, err);
}

/* The cached attributes of a remote directory may be old unless it is opened. */
static int stat_dir(const struct names *n, const char *path, struct stat *st)
{
	const struct plfs_mount *m = &n->m;
	int fd, ret;

	if (!m->store.remote)
		return sys.fstatat(m->dirfd, *path ? path : ".", st, AT_SYMLINK_NOFOLLOW) ? -errno : 0;
	fd = walk_open_dir(m, path);
	if (fd < 0)
		return fd;
	ret = sys.fstat(fd, st) ? -errno : 0;
	io_close(fd);
	return ret;
}

static struct walk walk_of(struct names *n)
{
	return (struct walk){
		.m = &n->m, .nr_threads = n->run->gc->nr_threads, .dir = enter_dir, .file = scan_file,
		.deep = take_deep, .trouble = report_trouble, .arg = n,
	};
}

static bool has_changed_deep(struct names *n, const struct dir *d)
{
	const struct walk w = walk_of(n);
	struct deep_sum sum;
	int fd;

	if (!d->deep.nr)
		return false;
	fd = walk_open_dir(&n->m, d->path);
	if (fd < 0)
		return true;
	walk_sum_deep(&w, fd, d->path, &sum);
	io_close(fd);
	return sum.nr != d->deep.nr || sum.mix != d->deep.mix ||
	       sum.changed_ns > UINT64_MAX - n->grain_ns || sum.changed_ns + n->grain_ns > d->listed_ns;
}

/* Collect in n->changed the directories that have changed since their listing. */
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
			/* the one above may have been scanned before: its files could be anywhere */
			n->gone = true;
			if (n->round + 1 == ROUNDS_MAX)
				gc_never_rests(n->run, d->path, d->uid, d->mode);
			HASH_DEL(n->dirs, d);
			mem_free(d);
			n->nr_dirs--;
			continue;
		}
		d->deep_changed = has_changed_deep(n, d);
		if (has_changed(n, d, &st) || d->deep_changed)
			n->changed[n->nr_changed++] = d->path;
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
	const struct walk w = walk_of(n);

	n->now_ns = gc_now_ns(n->run);
	walk_run(&w, starts, nr);
}

static void give_up(struct names *n)
{
	for (size_t i = 0; i < n->nr_changed; i++) {
		struct dir *d = find_dir(n, n->changed[i]);

		gc_never_rests(n->run, d->path, d->uid, d->mode);
	}
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
			give_up(n);
			return;
		}
		gc_wait(wait_ms);
		wait_ms = wait_ms + wait_ms / 4 < WAIT_MAX_MS ? wait_ms + wait_ms / 4 : wait_ms;
		walk(n, n->changed, n->nr_changed);
	}
}

#define MOUNTS_MAX (1 << 20) /* bytes of mountinfo */

/* The mount point in a line of mountinfo, its escapes replaced: false: it is not below the directory @top. */
static bool mount_below(char *line, const char *top, char **point)
{
	size_t len = strlen(top);
	char *p = line, *to;

	for (int field = 1; field < 5 && p; field++)
		p = (p = strchr(p, ' ')) ? p + 1 : NULL;
	if (!p)
		return false;
	*point = to = p;
	for (; *p && *p != ' '; p++) {
		if (*p == '\\' && p[1] && p[2] && p[3]) {
			*to++ = (char)((p[1] - '0') << 6 | (p[2] - '0') << 3 | (p[3] - '0'));
			p += 3;
		} else {
			*to++ = *p;
		}
	}
	*to = '\0';
	return !strncmp(*point, top, len) && (*point)[len] == '/';
}

/*
 * Whether a directory below has been mounted from the same file system: the library makes stubs there too, of
 * which only the mounted view knows. True also where that cannot be told.
 */
static bool has_own_mounts(const struct plfs_mount *m)
{
	char top[PATH_MAX], *text = mem_alloc(MOUNTS_MAX + 1), *point, *end;
	int fd = io_open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	ssize_t n = text && fd >= 0 ? io_pread_all(fd, text, MOUNTS_MAX, 0) : -1;
	bool has = n <= 0 || n == MOUNTS_MAX;
	struct stat st;

	if (fd >= 0)
		io_close(fd);
	stub_name(m->dirfd, top, sizeof(top));
	has |= *top != '/';
	if (!has)
		text[n] = '\0';
	for (char *line = text; !has && *line; line = end) {
		end = strchrnul(line, '\n');
		if (*end)
			*end++ = '\0';
		has = mount_below(line, top, &point) && !sys.fstatat(AT_FDCWD, point, &st, 0) &&
		      st.st_dev == m->dev;
	}
	mem_free(text);
	return has;
}

/*
 * The backend's directory without what is mounted below it: any user may be able to mount something over a
 * directory of his. As it is, so that a mount is trouble, where the kernel does not let this process look
 * beneath, and where a mount can hold stubs. To be closed.
 */
static int open_beneath(const struct plfs_mount *m)
{
	int fd = has_own_mounts(m) ? -1 : (int)sys.syscall(SYS_open_tree, m->dirfd, "",
				  AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

	return fd < 0 ? dirs_open(m->dirfd, ".") : fd;
}

void gc_scan_names(struct gc_run *run)
{
	const struct plfs_mount *top = nested_top(run->m);
	struct names n = {
		.run = run, .m = *top, .grain_ns = run->m->store.remote ? GRAIN_REMOTE_NS : GRAIN_NS,
		.below = run->m->backend + top->backend_len + (top != run->m),
	};
	static const char *const root[] = { "" };
	struct dir *d, *tmp;

	n.m.dirfd = open_beneath(top);
	if (n.m.dirfd < 0) {
		gc_trouble(run, "", n.m.dirfd);
		return;
	}
	walk(&n, root, 1);
	if (gc_set_nr_unnamed(&run->set) && !run->blind)
		settle(&n);
	HASH_ITER(hh, n.dirs, d, tmp) {
		HASH_DEL(n.dirs, d);
		mem_free(d);
	}
	mem_free(n.changed);
	io_close(n.m.dirfd);
}
