/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The model knows of each byte which steps may be seen. The process that looks compares, and goes on with the
 * files.
 */
#include "test/lib/power_model.h"

#include "core/backend/stub_lock.h"

/* ---- what may be found ---- */

struct span *power_spans;
static bool in_order; /* the failure is one of a file system that keeps the order of names */

void power_find_spans(void)
{
	power_spans = calloc((size_t)nr_power_steps, sizeof(*power_spans));
	for (int i = 0; i < nr_power_steps; i++)
		power_spans[i] = (struct span){ INT_MAX, INT_MAX };
	for (int i = 0; i < power->nr_ops; i++) {
		int no = power->ops[i].no;

		if (power->ops[i].kind == OP_EVENT && no % 2)
			power_spans[no / 2].end = i;
		else if (power->ops[i].kind == OP_EVENT)
			power_spans[no / 2].begin = i;
	}
}

/* A file of the model: not a name. */
struct file {
	unsigned char *sure;   /* what was synced */
	long sure_size, min_size, max_size;
	int nr_pending;
	int pending[4000];     /* steps that may be seen */
	bool promised;         /* something was synced */
};

static bool is_change(enum action action)
{
	return action == WRITE || action == APPEND || action == TRUNCATE || action == OPEN_TRUNC;
}

static void apply(const struct step *s, int i, unsigned char *data, long *size)
{
	long len = s->action == OPEN_TRUNC ? 0 : s->len;

	if (s->action == WRITE || s->action == APPEND) {
		if (data)
			pattern_fill(data + s->off, (size_t)s->len, (uint64_t)s->off, (unsigned)i + 1);
		if (s->off + s->len > *size)
			*size = s->off + s->len;
		return;
	}
	if (data && len < *size)
		memset(data + len, 0, (size_t)(*size - len));
	*size = len;
}

/* File @no of the model, when the power fails before operation @cut. */
static void foresee(struct file *f, int no, int cut)
{
	int synced = -1;
	long size;

	*f = (struct file){ .sure = calloc(1, SIZE_MAX_TESTED) };
	for (int i = 0; i < nr_power_steps; i++)
		if (power_steps[i].file == no && power_steps[i].action == SYNC && power_spans[i].end < cut)
			synced = i;
	f->promised = synced >= 0;
	for (int i = 0; i < nr_power_steps && power_spans[i].begin < cut; i++) {
		if (power_steps[i].file != no || !is_change(power_steps[i].action))
			continue;
		if (i < synced)
			apply(&power_steps[i], i, f->sure, &f->sure_size);
		else
			f->pending[f->nr_pending++] = i;
	}
	size = f->min_size = f->max_size = f->sure_size;
	for (int i = 0; i < f->nr_pending; i++) {
		apply(&power_steps[f->pending[i]], f->pending[i], NULL, &size);
		f->min_size = size < f->min_size ? size : f->min_size;
		f->max_size = size > f->max_size ? size : f->max_size;
	}
}

/*
 * Whether byte @off may be @c, or, @c -1, may be unreadable. What was not synced may be zero where the length
 * of a log came to the disk, and an index that speaks of it, but not the page: the library does not tell
 * these from zeros that were written. What is cut off may be zero before the size is less; on a file system
 * that keeps the order of names its log may have gone before the header says so.
 */
static bool may_be(const struct file *f, long off, int c)
{
	if (off >= f->sure_size ? c <= 0 : c == f->sure[off])
		return true;
	for (int i = 0; i < f->nr_pending; i++) {
		const struct step *s = &power_steps[f->pending[i]];

		if (s->action == WRITE || s->action == APPEND) {
			if (off >= s->off && off < s->off + s->len &&
			    (c <= 0 || c == pattern_byte((uint64_t)off, (unsigned)f->pending[i] + 1)))
				return true;
		} else if (off >= (s->action == OPEN_TRUNC ? 0 : s->len) && (c == 0 || (c < 0 && in_order))) {
			return true;
		}
	}
	return false;
}

static ssize_t read_of(struct lfile *l, unsigned char *buf, long off, long len)
{
	if (l->f)
		return plfs_pread(l->f, buf + off, (size_t)len, off);
	return pread(l->fd, buf + off, (size_t)len, off);
}

static void look_at_bytes(const struct file *f, struct lfile *l, long size)
{
	static unsigned char buf[SIZE_MAX_TESTED];
	long step = size;

	for (long off = 0, len; off < size; off += len) {
		bool read, excused = false;

		len = (long)min_u64((uint64_t)(size - off), (uint64_t)step);
		read = read_of(l, buf, off, len) == len;
		if (!read && step > BLOCK) { /* in smaller pieces from here on */
			step = step > 65536 ? 65536 : step > 4096 ? 4096 : BLOCK;
			len = 0;
			continue;
		}
		for (long i = off; i < off + len; i++) {
			excused |= !read && may_be(f, i, -1);
			if (read && !may_be(f, i, buf[i]))
				die("wrong byte at %ld of %ld (%d, %ld synced)", i, size, buf[i],
					f->sure_size);
		}
		if (!read && !excused)
			die("cannot read [%ld, %ld) of %ld", off, off + len, size);
		if (off % 65536 + len >= 65536)
			step = 65536;
	}
}

/* ---- the process that looks ---- */

/* The file can be written on: one that has lost its container, once it is empty. */
static void go_on(const char *name, long size)
{
	struct lfile l = lopen(name, O_RDWR);
	char byte;

	if (!l.f) {
		close(l.fd);
		return;
	}
	if (size && plfs_pwrite(l.f, "", 1, size) == -EIO && plfs_pread(l.f, &byte, 1, 0) == -EIO) {
		if (plfs_truncate(l.f, 0))
			die("cannot be emptied");
		size = 0;
	}
	if (lfill(&l, size, 1000, 9999) != 1000 || lfill(&l, 100, 50, 9999) != 50 || plfs_sync(l.f) ||
	    lclose(&l))
		die("cannot write on");
	l = lopen(name, O_RDONLY);
	if (plfs_size(l.f) != (size < 150 ? 1000 + size : size + 1000) || lcheck(&l, 100, 50, 9999) ||
	    lcheck(&l, size + (size < 150 ? 150 - size : 0),
		   1000 - (size < 150 ? 150 - (size_t)size : 0), 9999))
		die("what was written on is not there");
	lclose(&l);
}

/* Whether @action was begun before @cut. */
static bool has_begun(enum action action, int cut)
{
	for (int i = 0; i < nr_power_steps; i++)
		if (power_steps[i].action == action && power_spans[i].begin < cut)
			return true;
	return false;
}

/* Whether it was through, and the directory synced afterwards. */
static bool is_sure(enum action action, int file, int cut)
{
	for (int i = 0, done = -1; i < nr_power_steps; i++) {
		if (power_steps[i].action == action && power_steps[i].file == file &&
		    power_spans[i].end < cut && done < 0)
			done = i;
		if (power_steps[i].action == SYNC_DIR && power_spans[i].end < cut && done >= 0)
			return true;
	}
	return false;
}

/* Which bytes are in it tells which file of the model has the name: but both may be empty. */
static void look_at_name(const char *name, int cut, bool renaming)
{
	bool both = renaming && !strcmp(name, "f"), sure = is_sure(RENAME, 0, cut);
	bool unlinking = has_begun(UNLINK, cut);
	int no = !strcmp(name, "t") || sure;
	static struct file f, other;
	struct lfile l;
	off_t size;
	int ret = ltry(&l, name, O_RDONLY);

	foresee(&f, no, cut);
	if (ret == -ENOENT) {
		errno = 0;
		if ((is_sure(OPEN, no, cut) || sure) && !unlinking && !(renaming && !strcmp(name, "t")))
			die("%s is gone", name);
		return;
	}
	size = ret ? ret : l.f ? plfs_size(l.f) : lseek(l.fd, 0, SEEK_END);
	errno = size < 0 ? (int)-size : 0;
	if (size < 0 && f.promised && !unlinking)
		die("%s cannot be opened", name);
	if (size < 0)
		return;
	errno = 0;
	if (both && !sure) { /* before it or after it */
		foresee(&other, 1, cut);
		f.min_size = f.min_size < other.min_size ? f.min_size : other.min_size;
		f.max_size = f.max_size > other.max_size ? f.max_size : other.max_size;
		if (size >= other.min_size && size <= other.max_size && size > f.sure_size)
			f = other;
	}
	if (unlinking)
		f.min_size = 0;
	if (size < f.min_size || size > f.max_size)
		die("%s has %ld bytes, not %ld to %ld (%ld synced)", name, (long)size, f.min_size, f.max_size,
			f.sure_size);
	look_at_bytes(&f, &l, size);
	lclose(&l);
	go_on(name, size);
}

static int other_boot(const char *path, int flags, ...)
{
	va_list args;
	mode_t mode;
	int fd;

	va_start(args, flags);
	mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
	va_end(args);
	if (strcmp(path, "/proc/sys/kernel/random/boot_id"))
		return power_real.open(path, flags, mode);
	fd = memfd_create("boot", 0);
	if (fd < 0 || pwrite(fd, "another\n", 8, 0) != 8)
		die("memfd");
	return fd;
}

static void say(void *arg, const struct plfs_finding *f)
{
	(void)arg;
	fprintf(stderr, "%s: %s\n", f->path, f->text);
}

/*
 * What can be read before a repair can be read after it. What was never synced may be found damaged: so may a
 * near.HOST of which the disk has the name alone. Then the log of a killed process stays where it is until a
 * drain is told the place (test/unit/file/near_damage.c).
 */
static void repair_both(void)
{
	bool near = strstr(power_options, "near=");
	struct plfs_check check = { .repair = true, .found = say };
	char path[PATH_MAX];

	for (int i = 0; i < 2; i++) {
		struct plfs_mount *m = lpath(i ? "t" : "f", path);
		int ret = plfs_check(m, AT_FDCWD, path, &check);

		errno = ret < 0 ? -ret : 0;
		if (ret < 0 && ret != -ENOENT && !(near && ret == -EREMOTE))
			die("cannot repair %s", path);
	}
}

/* Nothing is damaged of a file of which all is synced. Returns whether it was looked at, and is there. */
static bool check_one(const char *name, int cut)
{
	struct plfs_check check = { .found = say };
	static struct file f;
	char path[PATH_MAX];
	struct plfs_mount *m = lpath(name, path);
	int ret;

	foresee(&f, *name == 't', cut);
	if (!f.promised || f.nr_pending || has_begun(RENAME, cut) || has_begun(UNLINK, cut) ||
	    has_begun(FLATTEN, cut) || has_begun(MOVE, cut))
		return false;
	ret = plfs_check(m, AT_FDCWD, path, &check);
	errno = ret < 0 ? -ret : 0;
	if (ret && ret != -ENOENT)
		die("%s is damaged, a check says", name);
	return !ret;
}

/*
 * Such a file can be compacted, also behind a repair. Its stub is a copy, in a tree that was made. But of a
 * log that was not closed the checksum of the last chunk may be later than its bytes, before a repair.
 */
static void compact_one(const char *name)
{
	struct plfs_progress watch = { .arg = NULL };
	struct plfs_compact k = { .dry = false };
	struct lfile l = lopen(name, O_RDWR);
	char path[PATH_MAX];
	struct stub stub;
	struct stat st;
	int ret;

	if (!l.f) {
		lclose(&l);
		return;
	}
	if (fstat(l.fd, &st) || stub_look(l.fd, &stub) ||
	    (stub.has_container && stub_set_number(l.fd, &stub, st.st_ino)))
		die("%s cannot be made the owner of its container", name);
	lclose(&l);
	lpath(name, path);
	ret = plfs_compact(path, &k, &watch);
	errno = ret < 0 ? -ret : 0;
	if (ret < 0 && !strstr(watch.why, "are not those that were written"))
		die("%s cannot be compacted: %s:", name, watch.why);
}

int power_look_after(const struct failure *f, const char *tree, bool repaired, FILE *err)
{
	pid_t pid = fork_child();
	bool sound;

	if (pid)
		return wait_child(pid);
	dup2(fileno(err), STDERR_FILENO);
	snprintf(scratch, sizeof(scratch), "%s", tree);
	sys_init();
	power_real = sys;
	sys.open = other_boot;
	be_single_threaded();
	{
		char map[256];

		snprintf(map, sizeof(map), "/p=%s%s", scratch, power_options);
		if (plfs_setup(map) != 1)
			die("plfs_setup");
	}
	in_order = f->ordered;
	sound = check_one("f", f->cut);
	check_one("t", f->cut);
	if (repaired)
		repair_both();
	if (sound && f->salt / 2 % 2)
		compact_one("f");
	look_at_name("f", f->cut, has_begun(RENAME, f->cut));
	look_at_name("t", f->cut, has_begun(RENAME, f->cut));
	_exit(0);
}
