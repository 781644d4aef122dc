/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The process that dies, the process that looks at what it left, and the loop that kills at one call after
 * the other.
 */
#include "test/lib/killed_at.h"

#include "test/lib/calls.h"
#include "test/lib/near.h"
#include "test/lib/turn.h"

#include <criterion/criterion.h>
#include <sys/mman.h>

static const char *const NAMES[NR_NAMES] = { "f", "g", "h" };

/* Shared by the process that dies and the process that looks. */
static struct {
	int done;      /* steps that have returned */
	int committed; /* of them, those that were followed by a release */
} *progress;

/* ---- the process that dies ---- */

static bool is_release(enum action action)
{
	return action == SYNC || action == COMMIT || action == CLOSE || action >= RENAME;
}

static int die_or_refuse(enum call call)
{
	if (call == CALL_MMAP && killing.unshared)
		return ENODEV;
	return killing.torn ? die_in_last_write(call) : die_at_last(call);
}

static char content[SIZE_MAX_TESTED];

static int on_names(const struct step *s)
{
	char from[PATH_MAX], to[PATH_MAX];

	lpath(NAMES[s->name], from);
	lpath(NAMES[s->to], to);
	switch (s->action) {
	case RENAME:
		return lrename(NAMES[s->name], NAMES[s->to]);
	case LINK:
		return link(from, to) ? -errno : 0;
	case UNLINK:
		return lunlink(NAMES[s->name]);
	default:
		return plfs_flatten(AT_FDCWD, from, NULL);
	}
}

static void perform(struct lfile *l, int i, long size)
{
	const struct step *s = &killed_steps[i];
	long off = s->action == APPEND ? size : s->off;
	ssize_t n = s->len;
	off_t end;
	int ret = 0;

	switch (s->action) {
	case CREATE:
	case OPEN:
	case OPEN_TRUNC:
		*l = lopen(NAMES[s->name], O_RDWR | O_CREAT | (s->action == OPEN_TRUNC ? O_TRUNC : 0));
		break;
	case WRITE:
		n = lfill(l, off, (size_t)s->len, (unsigned)i + 10);
		break;
	case APPEND:
		pattern_fill(content, (size_t)s->len, (uint64_t)off, (unsigned)i + 10);
		n = lappend(l, content, (size_t)s->len, &end);
		if (end != off + s->len)
			ret = -ERANGE;
		break;
	case READ:
		ret = plfs_pread(l->f, content, sizeof(content), 0) == size ? 0 : -EIO;
		break;
	case TRUNCATE:
		ret = plfs_truncate(l->f, s->len);
		break;
	case SYNC:
		ret = plfs_sync(l->f);
		break;
	case COMMIT:
		ret = plfs_commit(l->f);
		break;
	case CLOSE:
		ret = lclose(l);
		break;
	case MOVE:
		ret = plfs_in_body(l->f, PLFS_MAP_WRITE) == 1 ? 0 : -EIO;
		break;
	default:
		ret = on_names(s);
		break;
	}
	errno = -ret;
	if (ret || n != s->len)
		die("step %d failed: %zd", i, n);
}

static void run_steps(void)
{
	struct lfile l = { .fd = -1 };
	struct model m;

	model_init(&m);
	be_single_threaded();
	calls_intercept();
	on_call = die_or_refuse;
	for (int i = 0; i < nr_killed_steps; i++) {
		perform(&l, i, m.size[m.open]);
		progress->done = i + 1;
		if (is_release(killed_steps[i].action) || !killing.unshared)
			progress->committed = i + 1;
		model_apply(&m, i);
	}
	_exit(0);
}

/* ---- the process that looks ---- */

/* One name as a fresh process finds it. */
struct found {
	ssize_t size; /* -1: there is none */
	unsigned char *buf;
	bool plain;
};

static void read_name(struct found *fd, const char *name)
{
	struct lfile l;
	off_t told = stat_size(name);
	struct stat st;
	ssize_t n;
	int ret = ltry(&l, name, O_RDONLY);

	fd->buf = calloc(1, SIZE_MAX_TESTED + 1);
	fd->size = -1;
	if (ret == -ENOENT)
		return;
	errno = -ret;
	if (ret)
		die("open %s", name);
	fd->plain = !l.f;
	fd->size = l.f ? plfs_size(l.f) : sys.fstat(l.fd, &st) ? -errno : st.st_size;
	if (fd->size < 0 || fd->size > SIZE_MAX_TESTED)
		die("size %zd of %s", fd->size, name);
	n = l.f ? plfs_pread(l.f, fd->buf, SIZE_MAX_TESTED, 0) : pread(l.fd, fd->buf, SIZE_MAX_TESTED, 0);
	if (n != fd->size)
		die("cannot read %zd bytes of %s", fd->size, name);
	if (told != fd->size && !killing.unshared) /* where nothing can be mapped stat() may be late */
		die("stat said that %s has %zd bytes, not %zd", name, (ssize_t)told, fd->size);
	lclose(&l);
}

static void read_all_names(struct found *fd)
{
	for (int name = 0; name < NR_NAMES; name++)
		read_name(&fd[name], NAMES[name]);
}

static long size_in(const struct model *m, int name)
{
	return m->of[name] < 0 ? -1 : m->size[m->of[name]];
}

static bool is_state(const struct found *fd, struct model *m, int name)
{
	return size_in(m, name) == fd->size &&
	       (fd->size < 0 || !memcmp(fd->buf, model_data(m, m->of[name]), (size_t)fd->size));
}

/* How a name as it was found compares with the states that may be. */
struct judged {
	long first, last;  /* the size in the first state, in the latest one */
	bool whole, size;  /* one of them is the same; has this size */
	bool *bytes;       /* for each byte: one of them has it */
};

/* @m is the next state; @step has led to it, NULL: it is the first. */
static void judge(struct judged *j, const struct found *fd, struct model *m, int name,
		  const struct step *step)
{
	bool write = step && step->action == WRITE;
	long size = size_in(m, name), from = write ? step->off : 0, to = fd->size;

	to = write && to > step->off + step->len ? step->off + step->len : to;
	j->whole |= is_state(fd, m, name);
	/* A longer write in pieces, each with its own record. */
	j->size |= size == fd->size || (fd->size >= 0 && j->last <= fd->size && fd->size <= size);
	j->last = size;
	for (long off = from; off < to && m->of[name] >= 0; off++)
		j->bytes[off] |= fd->buf[off] == model_data(m, m->of[name])[off];
}

static void give_verdict(const struct judged *j, const struct found *fd, int name, bool cut)
{
	errno = 0;
	if (cut && !j->whole) /* a truncation has happened, or has not */
		die("%s with its %zd bytes is neither as before step %d (%ld) nor as afterwards (%ld)",
		    NAMES[name], fd->size, progress->done, j->first, j->last);
	if (!j->size)
		die("%s has %zd bytes after %d steps (%d released), not %ld", NAMES[name], fd->size,
		    progress->done, progress->committed, j->first);
	for (long off = 0; off < fd->size; off++)
		if (!j->bytes[off])
			die("%s: wrong byte at %ld of %zd after %d steps (%d released)", NAMES[name], off,
			    fd->size, progress->done, progress->committed);
}

/* The states that may be found: after `committed` steps at least, after `done` and one more at most. */
static void look(void)
{
	int lo = progress->committed, hi = progress->done + 1;
	struct judged judged[NR_NAMES] = { 0 };
	struct found found[NR_NAMES] = { 0 };
	struct model m;
	bool cut;

	if (hi > nr_killed_steps)
		hi = nr_killed_steps;
	/* Without shared memory all is as at one moment. */
	cut = killing.unshared && !killing.torn;
	cut |= hi == lo + 1 &&
	      (killed_steps[lo].action == TRUNCATE || killed_steps[lo].action == OPEN_TRUNC);
	model_init(&m);
	for (int i = 0; i < lo; i++)
		model_apply(&m, i);
	read_all_names(found);
	for (int name = 0; name < NR_NAMES; name++) {
		judged[name].first = size_in(&m, name);
		judged[name].last = LONG_MAX;
		judged[name].bytes = calloc(1, SIZE_MAX_TESTED + 1);
	}
	for (int i = lo; i <= hi; i++) {
		for (int name = 0; name < NR_NAMES; name++)
			judge(&judged[name], &found[name], &m, name, i > lo ? &killed_steps[i - 1] : NULL);
		if (i < hi)
			model_apply(&m, i);
	}
	for (int name = 0; name < NR_NAMES; name++) {
		give_verdict(&judged[name], &found[name], name, cut);
		free(judged[name].bytes);
		free(found[name].buf);
	}
	model_free(&m);
}

/* "f" is written and appended to, and nothing of what was there is lost. */
static void go_on(void)
{
	struct found before[NR_NAMES] = { 0 }, after = { 0 };
	struct lfile l;
	off_t end;

	read_all_names(before);
	if (before[F].plain)
		return;
	l = lopen("f", O_RDWR | O_CREAT);
	if (before[F].size < 0)
		before[F].size = 0;
	if (lappend(&l, "end", 3, &end) != 3 || end != before[F].size + 3)
		die("append");
	if (plfs_pwrite(l.f, "begin", 5, 0) != 5)
		die("write");
	lclose(&l);
	memcpy(before[F].buf + before[F].size, "end", 3);
	before[F].size += 3;
	memcpy(before[F].buf, "begin", 5);
	if (before[F].size < 5)
		before[F].size = 5;
	read_name(&after, "f");
	if (before[F].size != after.size || memcmp(before[F].buf, after.buf, (size_t)after.size))
		die("f is not as it was: %zd bytes, %zd before", after.size, before[F].size);
}

static int nr_left(void)
{
	int there = *near_dir ? near_count("data.") + near_count("live.") : 0;

	return there + count_files("data.") + count_files("live.") + count_files(".plfs-flatten");
}

/* What a killed removal has left in other backends. One killed early may not have said whose they are. */
static int remove_orphans(void *arg, const char *top, const char *home)
{
	struct plfs_drain d = { 0 };

	(void)arg, (void)home;
	return plfs_drain_place(plfs_mount_at(0), top, true, &d);
}

static void gc_others(void)
{
	char path[100];

	for (int i = 2; *near_dir && i < 4; i++) {
		snprintf(path, sizeof(path), "%s/%d", near_dir, i);
		plfs_places_in(path, remove_orphans, NULL);
	}
}

/*
 * Whether a kill at this moment may leave a container to which no name leads, or a temporary file: they are
 * gc's.
 */
static bool may_leave_something(void)
{
	enum action action = progress->done < nr_killed_steps ? killed_steps[progress->done].action : CREATE;
	struct model m;
	bool named = false;

	model_init(&m);
	m.open = -1;
	for (int i = 0; i < progress->done; i++) {
		model_apply(&m, i);
		if (killed_steps[i].action == CLOSE)
			m.open = -1;
	}
	for (int name = 0; name < NR_NAMES; name++)
		named |= m.of[name] == m.open;
	model_free(&m);
	return (m.open >= 0 && !named) || action == MOVE || action >= RENAME;
}

static void remove_all(void)
{
	struct plfs_gc gc = { .age_ns = 0, .nr_threads = 1, .later_ns = 3600000000000u };
	char path[PATH_MAX];
	struct lfile l;

	for (int name = 0; name < NR_NAMES; name++) {
		lpath(NAMES[name], path);
		errno = 0;
		if (access(path, F_OK) == 0 && lunlink(NAMES[name]))
			die("unlink %s", NAMES[name]);
		if (!ltry(&l, NAMES[name], O_RDONLY))
			die("unlinked and still there");
	}
	errno = 0;
	if (nr_left() && !may_leave_something())
		die("%d files are left when all names are gone", nr_left());
	if (nr_left() && plfs_gc(lpath("", path), &gc))
		die("gc");
	gc_others();
	errno = 0;
	if (nr_left() || (*near_dir && near_count("spread.")))
		die("%d files are left after gc", nr_left());
}

static int look_and_go_on(void *arg)
{
	(void)arg;
	look();
	go_on();
	return 0;
}

static int remove_all_names(void *arg)
{
	(void)arg;
	remove_all();
	return 0;
}

static void show(void *arg, const struct plfs_finding *f)
{
	(void)arg;
	if (getenv("PLFS_TEST_SHOW"))
		fprintf(stderr, "%d %s %s %s\n", f->severity, f->code, f->path, f->text);
}

/* A repair closes the log of the process that died, and takes nothing from what is there. */
static int look_and_repair(void *arg)
{
	char path[PATH_MAX];

	(void)arg;
	look();
	for (int name = 0; name < NR_NAMES; name++) {
		struct plfs_check check = { .repair = true, .found = show };
		struct plfs_mount *m = lpath(NAMES[name], path);
		int ret = access(path, F_OK) ? 0 : plfs_check(m, AT_FDCWD, path, &check);

		errno = -ret;
		if (ret < 0)
			die("repair of %s", NAMES[name]);
	}
	return 0;
}

/* The process beside: it writes, stops itself, and writes again when it is continued. */
static int write_beside(void *arg)
{
	struct lfile l = made("f");

	(void)arg;
	if (lfill(&l, BESIDE_OFF, BESIDE_LEN, 5) != BESIDE_LEN)
		return 1;
	raise(SIGSTOP);
	if (lfill(&l, BESIDE_OFF, BESIDE_LEN, 5) != BESIDE_LEN || lcheck(&l, BESIDE_OFF, BESIDE_LEN, 5))
		return 1;
	return lclose(&l) ? 1 : 0;
}

static int make_g(void *arg)
{
	struct lfile l = lopen("g", O_RDWR | O_CREAT);

	(void)arg;
	if (lfill(&l, 0, 3000, 1) != 3000)
		return 1;
	return lclose(&l) ? 1 : 0;
}

static void clear_all(void)
{
	char cmd[100];

	scratch_clear();
	snprintf(cmd, sizeof(cmd), "rm -rf %s/?/plfs.*", near_dir);
	if (*near_dir && system(cmd))
		die("rm");
	if (in_child(make_g, NULL))
		die("making g");
}

void kill_at_each(struct killing how)
{
	struct turn turn = turn_begin(how.stride);
	bool repairs = false; /* each second time */
	long nr;
	int code;

	killing = how;
	scratch_in_memory = true;
	scratch_map(how.options ? how.options : "{small=0}");
	how.plan();
	progress = mmap(NULL, sizeof(*progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (nr = how.from ? how.from : turn.nr;; nr += turn.step) {
		pid_t pid, other = 0;

		clear_all();
		if (how.beside) {
			other = start_child(write_beside, NULL);
			cr_assert_eq(waitpid(other, &code, WUNTRACED), other);
			cr_assert(WIFSTOPPED(code));
		}
		memset(progress, 0, sizeof(*progress));
		calls_left = nr;
		pid = fork_child();
		if (!pid)
			run_steps();
		code = wait_child(pid);
		cr_assert(code == 0 || code == 256 + SIGKILL, "call %ld: exit code %d", nr, code);
		if (repairs)
			cr_assert_eq(in_child(look_and_repair, NULL), 0,
				     "killed at call %ld, in step %d, repaired", nr, progress->done);
		repairs = !repairs;
		cr_assert_eq(in_child(look_and_go_on, NULL), 0, "killed at call %ld, in step %d", nr,
			progress->done);
		if (how.beside) {
			kill(other, SIGCONT);
			cr_assert_eq(wait_child(other), 0,
				"killed at call %ld, in step %d: the other process", nr, progress->done);
		}
		cr_assert_eq(in_child(remove_all_names, NULL), 0, "killed at call %ld, in step %d", nr,
			progress->done);
		if (!code)
			break;
	}
	cr_assert_gt(nr, 20);
	cr_log_info("%ld calls\n", nr);
	scratch_remove();
}
