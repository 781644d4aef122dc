/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The power fails: at any call of processes that write and sync, with any part of what was not synced lost (power.h). A process
 * of another boot must find every synced byte. A byte that was written since then is as it was, as it was to be, zero, or cannot be read;
 * and the file goes on working.
 *
 * PLFS_TEST_TREES: so many failures are tried of each story (hundreds). PLFS_TEST_SEED: the seed, which a failure tells.
 */
#include "power.h"

#include "../core/container.h"
#include "../core/mount.h"

#include <criterion/criterion.h>

#define SIZE_MAX_TESTED (3 << 20)
#define BLOCK 64 /* all writes begin and end at multiples of this, unless they are small */

enum action {
	OPEN, OPEN_TRUNC, OPEN_OTHER, WRITE, APPEND, READ, TRUNCATE, SYNC, CLOSE, SYNC_DIR, RENAME, UNLINK, FLATTEN, MOVE, QUIT
};

struct step {
	enum action action;
	int proc;      /* 0 or 1: which process */
	long off, len; /* TRUNCATE: len */
	int file;      /* 0: "f" and what is renamed over it, 1: "t" */
};

static struct step steps[4000];
static int nr_steps;
static const char *options = "{small=0}";

static void add(int proc, enum action action, long off, long len)
{
	steps[nr_steps++] = (struct step){ action, proc, off, len, 0 };
}

static void add_to_other(enum action action, long off, long len)
{
	steps[nr_steps++] = (struct step){ action, 0, off, len, 1 };
}

static void add_irregular(int proc, int nr, long base)
{
	for (int i = 0; i < nr; i++)
		add(proc, WRITE, base + (i * 7919L % nr) * 2 * BLOCK, BLOCK);
}

/* ---- what is done ---- */

static void sync_root(void)
{
	int fd = open(scratch, O_RDONLY | O_DIRECTORY);

	if (fd < 0 || sys.fsync(fd))
		die("fsync %s", scratch);
	close(fd);
}

static void perform(struct lfile *l, int i)
{
	static char buf[SIZE_MAX_TESTED];
	const struct step *s = &steps[i];
	const char *name = s->file ? "t" : "f";
	char path[PATH_MAX];
	ssize_t n = 0;
	off_t end;
	int ret = 0;

	power_event(2 * i);
	switch (s->action) {
	case OPEN:
		l[s->file] = lopen(name, O_RDWR | O_CREAT);
		break;
	case OPEN_TRUNC:
		l[s->file] = lopen(name, O_RDWR | O_CREAT | O_TRUNC);
		break;
	case WRITE:
		n = lfill(&l[s->file], s->off, (size_t)s->len, (unsigned)i + 1) - s->len;
		break;
	case APPEND:
		pattern_fill(buf, (size_t)s->len, (uint64_t)s->off, (unsigned)i + 1);
		n = lappend(&l[s->file], buf, (size_t)s->len, &end) - s->len;
		break;
	case READ:
		n = plfs_pread(l[s->file].f, buf, sizeof(buf), 0) < 0;
		break;
	case TRUNCATE:
		ret = plfs_truncate(l[s->file].f, s->len);
		break;
	case SYNC:
		ret = plfs_sync(l[s->file].f);
		break;
	case CLOSE:
		ret = lclose(&l[s->file]);
		break;
	case SYNC_DIR:
		sync_root();
		break;
	case RENAME:
		ret = lrename("t", "f");
		break;
	case UNLINK:
		ret = lunlink("f");
		break;
	case FLATTEN:
		lpath("f", path);
		ret = plfs_flatten(AT_FDCWD, path, NULL);
		break;
	case MOVE:
		ret = plfs_in_body(l[s->file].f, PLFS_MAP_WRITE) == 1 ? 0 : -EIO;
		break;
	default:
		break;
	}
	errno = -ret;
	if (ret || n)
		die("step %d failed", i);
	power_event(2 * i + 1);
}

/* The other process does its steps when it is told to. */
static int serve(int from, int to)
{
	struct lfile l[2] = { { .fd = -1 }, { .fd = -1 } };
	int i;

	while (read(from, &i, sizeof(i)) == sizeof(i)) {
		if (steps[i].action == QUIT)
			plfs_exit_prepare();
		else
			perform(l, i);
		if (write(to, &i, sizeof(i)) != sizeof(i))
			return 1;
	}
	_exit(0);
}

static void live_through(bool ordered)
{
	struct lfile l[2] = { { .fd = -1 }, { .fd = -1 } };
	int there[2], back[2], code;
	char path[PATH_MAX];
	pid_t pid;

	scratch_map(options);
	lpath("f", path)->store.keeps_order = ordered;
	be_single_threaded();
	power_record();
	if (pipe(there) || pipe(back))
		die("pipe");
	pid = fork_child();
	if (!pid) {
		close(there[1]);
		serve(there[0], back[1]);
	}
	for (int i = 0; i < nr_steps; i++) {
		if (!steps[i].proc)
			perform(l, i);
		else if (write(there[1], &i, sizeof(i)) != sizeof(i) || read(back[0], &code, sizeof(code)) != sizeof(code))
			die("the other process is gone in step %d", i);
	}
	close(there[1]);
	wait_child(pid);
	scratch_remove();
	_exit(0);
}

/* ---- what may be found ---- */

struct span {
	int begin, end; /* operations of the recording; INT_MAX: not yet */
};

static struct span *spans;

static void find_spans(void)
{
	spans = calloc((size_t)nr_steps, sizeof(*spans));
	for (int i = 0; i < nr_steps; i++)
		spans[i] = (struct span){ INT_MAX, INT_MAX };
	for (int i = 0; i < power->nr_ops; i++) {
		int no = power->ops[i].no;

		if (power->ops[i].kind == OP_EVENT && no % 2)
			spans[no / 2].end = i;
		else if (power->ops[i].kind == OP_EVENT)
			spans[no / 2].begin = i;
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
	for (int i = 0; i < nr_steps; i++)
		if (steps[i].file == no && steps[i].action == SYNC && spans[i].end < cut)
			synced = i;
	f->promised = synced >= 0;
	for (int i = 0; i < nr_steps && spans[i].begin < cut; i++) {
		if (steps[i].file != no || !is_change(steps[i].action))
			continue;
		if (i < synced)
			apply(&steps[i], i, f->sure, &f->sure_size);
		else
			f->pending[f->nr_pending++] = i;
	}
	size = f->min_size = f->max_size = f->sure_size;
	for (int i = 0; i < f->nr_pending; i++) {
		apply(&steps[f->pending[i]], f->pending[i], NULL, &size);
		f->min_size = size < f->min_size ? size : f->min_size;
		f->max_size = size > f->max_size ? size : f->max_size;
	}
}

/*
 * Whether byte @off may be @c, or, @c -1, may be unreadable. What was not synced may be zero where the length of a log came to the disk, and an index
 * that speaks of it, but not the page: the library does not tell these from zeros that were written.
 */
static bool may_be(const struct file *f, long off, int c)
{
	if (off >= f->sure_size ? c <= 0 : c == f->sure[off])
		return true;
	for (int i = 0; i < f->nr_pending; i++) {
		const struct step *s = &steps[f->pending[i]];

		if (s->action == WRITE || s->action == APPEND) {
			if (off >= s->off && off < s->off + s->len &&
			    (c <= 0 || c == pattern_byte((uint64_t)off, (unsigned)f->pending[i] + 1)))
				return true;
		} else if (off >= (s->action == OPEN_TRUNC ? 0 : s->len) && c <= 0) {
			return true;
		}
	}
	return false;
}

static ssize_t read_of(struct lfile *l, unsigned char *buf, long off, long len)
{
	return l->f ? plfs_pread(l->f, buf + off, (size_t)len, off) : pread(l->fd, buf + off, (size_t)len, off);
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
				die("wrong byte at %ld of %ld (%d, %ld synced)", i, size, buf[i], f->sure_size);
		}
		if (!read && !excused)
			die("cannot read [%ld, %ld) of %ld", off, off + len, size);
		if (off % 65536 + len >= 65536)
			step = 65536;
	}
}

/* The file can be written on. */
static void go_on(const char *name, long size)
{
	struct lfile l = lopen(name, O_RDWR);

	if (!l.f) {
		close(l.fd);
		return;
	}
	if (lfill(&l, size, 1000, 9999) != 1000 || lfill(&l, 100, 50, 9999) != 50 || plfs_sync(l.f) || lclose(&l))
		die("cannot write on");
	l = lopen(name, O_RDONLY);
	if (plfs_size(l.f) != (size < 150 ? 1000 + size : size + 1000) || lcheck(&l, 100, 50, 9999) ||
	    lcheck(&l, size + (size < 150 ? 150 - size : 0), 1000 - (size < 150 ? 150 - (size_t)size : 0), 9999))
		die("what was written on is not there");
	lclose(&l);
}

/* Whether @action was begun before @cut. */
static bool has_begun(enum action action, int cut)
{
	for (int i = 0; i < nr_steps; i++)
		if (steps[i].action == action && spans[i].begin < cut)
			return true;
	return false;
}

/* Whether it was through, and the directory synced afterwards. */
static bool is_sure(enum action action, int file, int cut)
{
	for (int i = 0, done = -1; i < nr_steps; i++) {
		if (steps[i].action == action && steps[i].file == file && spans[i].end < cut && done < 0)
			done = i;
		if (steps[i].action == SYNC_DIR && spans[i].end < cut && done >= 0)
			return true;
	}
	return false;
}

/* Which bytes are in it tells which file of the model has the name: but both may be empty. */
static void look_at_name(const char *name, int cut, bool renaming)
{
	bool both = renaming && !strcmp(name, "f"), sure = is_sure(RENAME, 0, cut), unlinking = has_begun(UNLINK, cut);
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
		die("%s has %ld bytes, not %ld to %ld (%ld synced)", name, (long)size, f.min_size, f.max_size, f.sure_size);
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

/* What can be read before a repair can be read after it. What was never synced may be found damaged. */
static void repair_both(void)
{
	struct plfs_check check = { .repair = true, .found = say };
	char path[PATH_MAX];

	for (int i = 0; i < 2; i++) {
		struct plfs_mount *m = lpath(i ? "t" : "f", path);
		int ret = plfs_check(m, AT_FDCWD, path, &check);

		errno = ret < 0 ? -ret : 0;
		if (ret < 0 && ret != -ENOENT)
			die("cannot repair %s", path);
	}
}

static int look_after(const char *tree, int cut, bool repaired, FILE *err)
{
	pid_t pid = fork_child();

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

		snprintf(map, sizeof(map), "/p=%s%s", scratch, options);
		if (plfs_setup(map) != 1)
			die("plfs_setup");
	}
	if (repaired)
		repair_both();
	look_at_name("f", cut, has_begun(RENAME, cut));
	look_at_name("t", cut, has_begun(RENAME, cut));
	_exit(0);
}

/* ---- trying ---- */

static uint64_t next_random(uint64_t *seed)
{
	return *seed = mix64(*seed);
}

static void try_one(const struct failure *f, uint64_t seed)
{
	char tree[64] = "/dev/shm/plfs-power.XXXXXX", line[4096] = "";
	FILE *err = tmpfile();
	int code;

	if (!err || !mkdtemp(tree))
		die("mkdtemp");
	power_fail(f, tree);
	code = look_after(tree, f->cut, f->salt % 2, err);
	snprintf(scratch, sizeof(scratch), "%s", tree);
	if (code) {
		const struct op *op = &power->ops[f->only >= 0 ? f->only : f->cut];
		off_t end = lseek(fileno(err), 0, SEEK_END);
		ssize_t n = pread(fileno(err), line, sizeof(line) - 1, end > 1000 ? end - 1000 : 0); /* what comes last tells why */

		line[n > 0 ? n : 0] = '\0';
		if (getenv("PLFS_TEST_KEEP"))
			*scratch = '\0';
		fprintf(stderr, "cut %d of %d, keep %u, only %d (kind %d, %s, page %d), salt %llx, %s, seed %llu, tree %s\n", f->cut,
			power->nr_ops, f->keep, f->only, op->kind, op->name, op->no, (unsigned long long)f->salt,
			f->ordered ? "ordered" : "unordered", (unsigned long long)seed, tree);
		for (int i = 0; i < nr_steps; i++)
			if (spans[i].begin < f->cut && (i + 1 == nr_steps || spans[i + 1].begin >= f->cut))
				fprintf(stderr, "in or after step %d (action %d)\n", i, steps[i].action);
	}
	scratch_remove();
	fclose(err);
	cr_assert_eq(code, 0, "%s", line);
}

static bool has_effect(int op)
{
	return power->ops[op].kind != OP_EVENT && power->ops[op].kind != OP_SYNC;
}

static void try_many(bool ordered)
{
	const char *trees = getenv("PLFS_TEST_TREES"), *given = getenv("PLFS_TEST_SEED");
	int nr = trees ? atoi(trees) : 120, nr_cuts = 0;
	uint64_t seed = given ? strtoull(given, NULL, 10) : 1 + (uint64_t)time(NULL), random = seed;
	int *cuts = calloc(POWER_OPS, sizeof(*cuts));
	struct failure f = { .ordered = ordered };

	find_spans();
	for (int i = 1; i <= power->nr_ops; i++)
		cuts[nr_cuts++] = i;
	fprintf(stderr, "%s: %d operations, seed %llu\n", ordered ? "ordered" : "unordered", power->nr_ops, (unsigned long long)seed);
	for (int i = 0; i < nr; i++) {
		f.cut = cuts[next_random(&random) % (unsigned)nr_cuts];
		f.only = -1;
		f.salt = next_random(&random);
		f.keep = i % 6 == 0 || i % 6 == 1 ? 0 : i % 6 == 2 || i % 6 == 3 ? 16 : 1 + (unsigned)(next_random(&random) % 15);
		if (i % 6 == 1 || i % 6 == 3) { /* one alone, one of the latest mostly; names are told by their group */
			int back = 1 + (int)(next_random(&random) % 60);

			f.only = f.cut - back;
			if (f.only < 0 || !has_effect(f.only))
				f.only = -1;
			else if (power->ops[f.only].kind == OP_NAME)
				f.only = -2 - power->ops[f.only].no;
		}
		try_one(&f, seed);
	}
	/* After each sync, when nothing else is left. */
	for (int i = 1; i < power->nr_ops; i++)
		if (power->ops[i].kind == OP_EVENT && power->ops[i].no % 2 && steps[power->ops[i].no / 2].action == SYNC) {
			f = (struct failure){ .cut = i + 1, .ordered = ordered, .only = -1, .salt = (uint64_t)i };
			try_one(&f, seed);
		}
	free(cuts);
}

static void fail_anywhere_in(void (*story)(void))
{
	scratch_in_memory = true;
	story();
	for (int ordered = 0; ordered < 2; ordered++) {
		pid_t pid;

		power_new();
		pid = fork_child();
		if (!pid)
			live_through(ordered);
		cr_assert_eq(wait_child(pid), 0);
		try_many(ordered);
	}
}

/* ---- stories ---- */

static void begin(int proc)
{
	add(proc, OPEN, 0, 0);
	add(proc, SYNC_DIR, 0, 0);
}

static void strided(void)
{
	begin(0);
	for (int i = 0; i < 6; i++)
		add(0, WRITE, i * 256 * 1024L, 128 * 1024);
	add(0, SYNC, 0, 0);
	for (int i = 0; i < 6; i++)
		add(0, WRITE, 128 * 1024L + i * 256 * 1024L, 128 * 1024);
	add(0, WRITE, 4096, 4096);
	add(0, WRITE, 64, 192);
	add(0, SYNC, 0, 0);
	add(0, WRITE, 128 * 1024, 70016);
	add(0, CLOSE, 0, 0);
}

static void staged(void)
{
	begin(0);
	for (int i = 0; i < 8; i++)
		add(0, WRITE, i * 640L, 640);
	add(0, SYNC, 0, 0);
	for (int i = 0; i < 8; i++)
		add(0, WRITE, 1280 + i * 1280L, 640);
	add(0, SYNC, 0, 0);
	for (int i = 0; i < 100; i++)
		add(0, WRITE, i * 6400L, 6400);
	add(0, WRITE, 0, 64);
	add(0, CLOSE, 0, 0);
	add(0, OPEN, 0, 0);
	add(0, WRITE, 64, 640);
	add(0, SYNC, 0, 0);
	add(0, CLOSE, 0, 0);
}

/* More records than the live file has room for, twice, and what was synced among them. */
static void spilled(void)
{
	begin(0);
	add_irregular(0, 300, 0);
	add(0, SYNC, 0, 0);
	add_irregular(0, 600, 64);
	add_irregular(0, 600, 0);
	add(0, SYNC, 0, 0);
	add_irregular(0, 300, 64);
	add(0, CLOSE, 0, 0);
}

/* One syncs what the other has written: staged, spilled, and closed. */
static void by_another(void)
{
	begin(0);
	add(0, WRITE, 0, 3200);
	add(0, WRITE, 6400, 640);
	add(1, OPEN, 0, 0);
	add(1, SYNC, 0, 0);
	add(0, WRITE, 64, 640);
	add(0, WRITE, 12800, 128000);
	add(1, WRITE, 200000, 640);
	add(1, SYNC, 0, 0);
	add_irregular(0, 600, 1280);
	add(1, SYNC, 0, 0);
	add(0, WRITE, 64, 64);
	add(0, CLOSE, 0, 0);
	add(1, SYNC, 0, 0);
	add(0, OPEN, 0, 0);
	add(0, WRITE, 640, 64000);
	add(1, WRITE, 640, 640);
	add(0, CLOSE, 0, 0);
	add(1, CLOSE, 0, 0);
	add(1, OPEN, 0, 0);
	add(1, SYNC, 0, 0);
	add(1, CLOSE, 0, 0);
}

/* A reader keeps a map of what is there, and is told when there is more. */
static void mapped(void)
{
	begin(0);
	add(0, CLOSE, 0, 0);
	for (int i = 0; i < 10; i++) {
		add(0, OPEN, 0, 0);
		add(0, WRITE, i * 6400L, 6400);
		if (i == 4)
			add(0, SYNC, 0, 0);
		add(0, CLOSE, 0, 0);
	}
	add(1, OPEN, 0, 0);
	add(1, READ, 0, 0);
	add(0, OPEN, 0, 0);
	add(0, WRITE, 1280, 6400);
	add(0, SYNC, 0, 0);
	add(0, CLOSE, 0, 0);
	add(1, READ, 0, 0);
	add(1, CLOSE, 0, 0);
}

/* The way to write a checkpoint: another file, synced, takes the name. */
static void renamed(void)
{
	begin(0);
	add(0, WRITE, 0, 64000);
	add(0, WRITE, 128000, 6400);
	add(0, SYNC, 0, 0);
	add(0, CLOSE, 0, 0);
	add_to_other(OPEN, 0, 0);
	add_to_other(WRITE, 0, 64000);
	add_to_other(WRITE, 64000, 128000);
	add_to_other(SYNC, 0, 0);
	add_to_other(CLOSE, 0, 0);
	add(0, RENAME, 0, 0);
	add(0, SYNC_DIR, 0, 0);
}

static void truncated(void)
{
	begin(0);
	add(0, WRITE, 0, 128000);
	add(0, SYNC, 0, 0);
	add(0, TRUNCATE, 0, 64000);
	add(0, WRITE, 96000, 6400);
	add(0, SYNC, 0, 0);
	add(0, TRUNCATE, 0, 32000);
	add(0, TRUNCATE, 0, 128000);
	add(0, SYNC, 0, 0);
	add(0, TRUNCATE, 0, 0);
	add(0, WRITE, 640, 6400);
	add(0, SYNC, 0, 0);
	add(0, CLOSE, 0, 0);
}

static void rewritten(void)
{
	begin(0);
	add(0, WRITE, 0, 128000);
	add(0, SYNC, 0, 0);
	add(0, CLOSE, 0, 0);
	add(0, OPEN_TRUNC, 0, 0);
	add(0, WRITE, 0, 96000);
	add(0, SYNC, 0, 0);
	add(0, CLOSE, 0, 0);
	add(1, OPEN, 0, 0);
	add(1, WRITE, 640, 640);
	add(0, OPEN_TRUNC, 0, 0);
	add(0, WRITE, 0, 6400);
	add(0, CLOSE, 0, 0);
	add(1, CLOSE, 0, 0);
}

static void flattened(void)
{
	begin(0);
	add(0, WRITE, 0, 128000);
	add(0, SYNC, 0, 0);
	add(0, CLOSE, 0, 0);
	add(0, FLATTEN, 0, 0);
}

static void moved(void)
{
	begin(0);
	add(0, WRITE, 640, 128000);
	add(1, OPEN, 0, 0);
	add(1, WRITE, 200000, 6400);
	add(0, SYNC, 0, 0);
	add(1, WRITE, 0, 1280);
	add(0, MOVE, 0, 0);
	add(1, WRITE, 6400, 1280);
	add(0, WRITE, 12800, 64000);
	add(0, SYNC, 0, 0);
	add(0, WRITE, 12800, 640);
	add(1, CLOSE, 0, 0);
	add(0, CLOSE, 0, 0);
}

static void bare(void)
{
	options = "";
	begin(0);
	add(0, WRITE, 0, 6400);
	add(0, SYNC, 0, 0);
	add(0, WRITE, 640, 640);
	add(0, APPEND, 6400, 1280);
	add(0, SYNC, 0, 0);
	add(0, TRUNCATE, 0, 1280);
	add(0, SYNC, 0, 0);
	add(0, CLOSE, 0, 0);
}

static void no_longer_bare(void)
{
	options = "";
	begin(0);
	add(0, WRITE, 0, 6400);
	add(0, SYNC, 0, 0);
	add(0, WRITE, 640, 640);
	add(0, WRITE, 12800, 256000);
	add(0, WRITE, 64, 640);
	add(0, SYNC, 0, 0);
	add(1, OPEN, 0, 0);
	add(1, WRITE, 6400, 640);
	add(0, CLOSE, 0, 0);
	add(1, CLOSE, 0, 0);
}

/* Nothing is synced but by the way: whoever comes after must be able to go on. */
static void never_synced(void)
{
	begin(0);
	add(0, WRITE, 0, 128000);
	add(1, OPEN, 0, 0);
	add(1, WRITE, 128000, 6400);
	add(0, WRITE, 64000, 1280);
	add(1, CLOSE, 0, 0);
	add(0, CLOSE, 0, 0);
	add(1, OPEN, 0, 0);
	add(1, WRITE, 0, 64000);
	add(1, CLOSE, 0, 0);
	add(0, UNLINK, 0, 0);
}

Test(power, strided_writes_and_syncs, .timeout = 900) { fail_anywhere_in(strided); }
Test(power, small_writes_that_are_staged, .timeout = 900) { fail_anywhere_in(staged); }
Test(power, more_records_than_the_live_file_holds, .timeout = 900) { fail_anywhere_in(spilled); }
Test(power, a_sync_by_another_process, .timeout = 900) { fail_anywhere_in(by_another); }
Test(power, a_map_that_a_reader_keeps, .timeout = 900) { fail_anywhere_in(mapped); }
Test(power, a_synced_file_renamed_over_another, .timeout = 900) { fail_anywhere_in(renamed); }
Test(power, truncations, .timeout = 900) { fail_anywhere_in(truncated); }
Test(power, a_file_that_is_written_anew, .timeout = 900) { fail_anywhere_in(rewritten); }
Test(power, a_file_that_becomes_a_plain_one, .timeout = 900) { fail_anywhere_in(flattened); }
Test(power, a_file_that_is_moved_into_its_body, .timeout = 900) { fail_anywhere_in(moved); }
Test(power, a_small_file, .timeout = 900) { fail_anywhere_in(bare); }
Test(power, a_small_file_that_grows, .timeout = 900) { fail_anywhere_in(no_longer_bare); }
Test(power, a_file_that_is_never_synced, .timeout = 900) { fail_anywhere_in(never_synced); }
