/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process is killed at each of its system calls in turn, and in the middle of each write. After every kill a fresh
 * process must find what the dead one had been told is done: all bytes, the size, the names. What it
 * was doing when it died may be found done, undone, or, byte by byte, half done. The file must then go on working.
 */
#include "scratch.h"

#include "calls.h"

#include <criterion/criterion.h>
#include <sys/mman.h>

#define SIZE_MAX_TESTED (400 * 1024)

enum action { CREATE, OPEN, WRITE, APPEND, READ, TRUNCATE, SYNC, COMMIT, CLOSE, MOVE, RENAME, UNLINK };

struct step {
	enum action action;
	long off, len; /* TRUNCATE: len */
};

/* Files: 0 is "f", which all steps work on until it is renamed over 1, "g". */
struct model {
	bool exists[2];
	long size[2];
	unsigned char *data[2];
};

struct progress {
	int done;      /* steps that have returned */
	int committed; /* of them, those that were followed by a release */
};

static struct step steps[2000];
static int nr_steps;
static struct progress *progress;
static long calls_left;
static enum call only_call;
static bool half, all_calls;
static bool unshared;
static const char *options = "{small=0}";

static void add(enum action action, long off, long len)
{
	steps[nr_steps++] = (struct step){ action, off, len };
}

static void add_irregular(int nr, long base)
{
	for (int i = 0; i < nr; i++) {
		add(WRITE, base + i * 60 + i * i % 17, 20 + i % 3);
		if (i % 25 == 0)
			add(COMMIT, 0, 0);
	}
}

static void plan(void)
{
	add(CREATE, 0, 0);
	for (int i = 0; i < 5; i++)
		add(WRITE, i * 1000, 100);
	add(WRITE, 5000, 100000);
	add(WRITE, 2000, 3000);
	add(READ, 0, 0);
	add(WRITE, 5000, 10);
	add(SYNC, 0, 0);
	add(CLOSE, 0, 0);
	add(OPEN, 0, 0);
	add(WRITE, 100, 70000);
	add(TRUNCATE, 0, 50000);
	add(WRITE, 60000, 1000);
	add(READ, 0, 0);
	add(TRUNCATE, 0, 90000);
	add(APPEND, 0, 500);
	add(APPEND, 0, 70000);
	add(TRUNCATE, 0, 0);
	add(WRITE, 10, 100);
	add(APPEND, 0, 10);
	add_irregular(600, 100);
	add(COMMIT, 0, 0);
	for (int i = 0; i < 3; i++) {
		add(WRITE, i * 2000, 500);
		add(READ, 0, 0);
	}
	add(CLOSE, 0, 0);
	add(OPEN, 0, 0);
	add(TRUNCATE, 0, 0);
	add(CLOSE, 0, 0);
	add(OPEN, 0, 0);
	add(WRITE, 0, 3000);
	add(WRITE, 5000, 70000);
	add(MOVE, 0, 0);
	add(WRITE, 2500, 1000);
	add(APPEND, 0, 300);
	add(TRUNCATE, 0, 60000);
	add(TRUNCATE, 0, 62000);
	add(READ, 0, 0);
	add(CLOSE, 0, 0);
	add(OPEN, 0, 0);
	add(WRITE, 2600, 10);
	add(SYNC, 0, 0);
	add(CLOSE, 0, 0);
	add(RENAME, 0, 0);
	add(UNLINK, 0, 0);
}

static void apply(struct model *m, int i)
{
	const struct step *s = &steps[i];
	long off = s->action == APPEND ? m->size[0] : s->off;

	switch (s->action) {
	case CREATE:
		m->exists[0] = true;
		break;
	case WRITE:
	case APPEND:
		pattern_fill(m->data[0] + off, (size_t)s->len, (uint64_t)off, (unsigned)i + 10);
		if (off + s->len > m->size[0])
			m->size[0] = off + s->len;
		break;
	case TRUNCATE:
		if (s->len < m->size[0])
			memset(m->data[0] + s->len, 0, (size_t)(m->size[0] - s->len));
		m->size[0] = s->len;
		break;
	case RENAME:
		memcpy(m->data[1], m->data[0], SIZE_MAX_TESTED);
		m->size[1] = m->size[0];
		m->exists[0] = false;
		break;
	case UNLINK:
		m->exists[1] = false;
		break;
	default:
		break;
	}
}

static void model_init(struct model *m)
{
	memset(m, 0, sizeof(*m));
	for (int i = 0; i < 2; i++)
		m->data[i] = calloc(1, SIZE_MAX_TESTED);
	m->exists[1] = true;
	m->size[1] = 3000;
	pattern_fill(m->data[1], 3000, 0, 1);
}

static void model_copy(struct model *to, const struct model *from)
{
	for (int i = 0; i < 2; i++) {
		to->exists[i] = from->exists[i];
		to->size[i] = from->size[i];
		memcpy(to->data[i], from->data[i], SIZE_MAX_TESTED);
	}
}

/* ---- the process that dies ---- */

static bool is_release(enum action action)
{
	return action == SYNC || action == COMMIT || action == CLOSE;
}

static int die_at_last(enum call call)
{
	if (call == CALL_MMAP && unshared)
		return ENODEV;
	if (!all_calls && call != only_call)
		return 0;
	if (--calls_left)
		return 0;
	if (half)
		return CALL_SHORT;
	kill(getpid(), SIGKILL);
	return 0;
}

/* The write after the shortened one is the rest of it. */
static int die_after_half(enum call call)
{
	if (!calls_left && call == CALL_PWRITE)
		kill(getpid(), SIGKILL);
	return die_at_last(call);
}

static char content[SIZE_MAX_TESTED];

static void perform(struct lfile *l, int i, long size)
{
	const struct step *s = &steps[i];
	long off = s->action == APPEND ? size : s->off;
	ssize_t n = s->len;
	off_t end;
	int ret = 0;

	switch (s->action) {
	case CREATE:
	case OPEN:
		*l = lopen("f", O_RDWR | O_CREAT);
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
	case RENAME:
		ret = lrename("f", "g");
		break;
	case UNLINK:
		ret = lunlink("g");
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
	on_call = half ? die_after_half : die_at_last;
	for (int i = 0; i < nr_steps; i++) {
		perform(&l, i, m.size[0]);
		progress->done = i + 1;
		if (is_release(steps[i].action) || !unshared)
			progress->committed = i + 1;
		apply(&m, i);
	}
	_exit(0);
}

/* ---- the process that looks ---- */

static bool matches(const struct model *m, const unsigned char *buf, const ssize_t *size, int name, long off)
{
	if (!m->exists[name])
		return false;
	return off < size[name] && buf[off] == m->data[name][off];
}

/* Read both files; size -1: there is none. */
static void read_both(unsigned char **buf, ssize_t *size)
{
	for (int name = 0; name < 2; name++) {
		struct lfile l;
		int ret = ltry(&l, name ? "g" : "f", O_RDONLY);

		buf[name] = calloc(1, SIZE_MAX_TESTED + 1);
		size[name] = -1;
		if (ret == -ENOENT)
			continue;
		errno = -ret;
		if (ret)
			die("open %d", name);
		size[name] = plfs_size(l.f);
		if (size[name] < 0 || size[name] > SIZE_MAX_TESTED)
			die("size %zd of %d", size[name], name);
		if (plfs_pread(l.f, buf[name], SIZE_MAX_TESTED, 0) != size[name])
			die("cannot read %zd bytes of %d", size[name], name);
		lclose(&l);
	}
}

/* The states that may be found: after `committed` steps at least, after `done` and one more at most. */
static void look(void)
{
	int lo = progress->committed, hi = progress->done + 1, nr = 0;
	struct model states[64];
	unsigned char *buf[2];
	ssize_t size[2];
	bool zeros_from_truncation = false;

	if (hi > nr_steps)
		hi = nr_steps;
	model_init(&states[0]);
	for (int i = 0; i < lo; i++)
		apply(&states[0], i);
	for (nr = 1; lo + nr <= hi && nr < 64; nr++) {
		model_init(&states[nr]);
		model_copy(&states[nr], &states[nr - 1]);
		apply(&states[nr], lo + nr - 1);
		zeros_from_truncation |= steps[lo + nr - 1].action == TRUNCATE;
	}
	read_both(buf, size);
	for (int name = 0; name < 2; name++) {
		bool ok = false;

		for (int k = 0; k < nr; k++)
			ok |= states[k].exists[name] ? states[k].size[name] == size[name] : size[name] < 0;
		if (!ok && size[name] >= 0) /* a longer write in pieces, each with its own record */
			for (int k = 1; k < nr; k++)
				ok |= states[k - 1].size[name] <= size[name] && size[name] <= states[k].size[name];
		errno = 0;
		if (!ok)
			die("%s has %zd bytes after %d steps (%d released), not %ld", name ? "g" : "f", size[name], hi - 1,
			    lo, states[0].size[name]);
		for (long off = 0; off < size[name]; off++) {
			ok = zeros_from_truncation && !buf[name][off];
			for (int k = 0; k < nr && !ok; k++)
				ok = matches(&states[k], buf[name], size, name, off);
			if (!ok)
				die("%s: wrong byte at %ld of %zd after %d steps (%d released)", name ? "g" : "f", off,
				    size[name], hi - 1, lo);
		}
	}
}

/* A second life: the file is written, appended to and read, and nothing of what was there is lost. */
static void go_on(void)
{
	unsigned char *before[2], *after[2];
	ssize_t size[2], size2[2];
	struct lfile l;
	off_t end;

	read_both(before, size);
	l = lopen("f", O_RDWR | O_CREAT);
	if (size[0] < 0)
		size[0] = 0;
	if (progress->done < nr_steps && steps[progress->done].action == TRUNCATE) { /* it is not known how far that got */
		if (plfs_truncate(l.f, 0))
			die("truncate");
		size[0] = 0;
	}
	if (lappend(&l, "end", 3, &end) != 3 || end != size[0] + 3)
		die("append");
	if (plfs_pwrite(l.f, "begin", 5, 0) != 5)
		die("write");
	lclose(&l);
	read_both(after, size2);
	memcpy(before[0] + size[0], "end", 3);
	size[0] += 3;
	memcpy(before[0], "begin", 5);
	if (size[0] < 5)
		size[0] = 5;
	for (int name = 0; name < 2; name++)
		if (size[name] != size2[name] || (size[name] > 0 && memcmp(before[name], after[name], (size_t)size[name])))
			die("file %d is not as it was: %zd bytes, %zd before", name, size2[name], size[name]);
	if (lunlink("f"))
		die("unlink");
	if (!ltry(&l, "f", O_RDONLY))
		die("unlinked and still there");
}

static int look_and_go_on(void *arg)
{
	(void)arg;
	look();
	go_on();
	return 0;
}

static int make_g(void *arg)
{
	struct lfile l = lopen("g", O_RDWR | O_CREAT);

	(void)arg;
	if (lfill(&l, 0, 3000, 1) != 3000)
		return 1;
	return lclose(&l) ? 1 : 0;
}

static void clear_scratch(bool with_g)
{
	char cmd[300], g[PATH_MAX];

	lpath("g", g);
	if (access(g, F_OK) == 0 && lunlink("g"))
		die("unlink g");
	snprintf(cmd, sizeof(cmd), "rm -rf %s/.plfs %s/f %s/g", scratch, scratch, scratch);
	if (system(cmd))
		die("rm");
	if (with_g && in_child(make_g, NULL))
		die("making g");
}

/*
 * Kill at the 1st, 2nd, 3rd... call until there are no more; with @stride not at every one, unless PLFS_TEST_STRIDE
 * says so.
 */
static void kill_at_each(int stride)
{
	const char *setting = getenv("PLFS_TEST_STRIDE");
	long nr = 1;
	int code;

	if (setting)
		stride = atoi(setting);

	scratch_in_memory = true;
	scratch_map(options);
	plan();
	progress = mmap(NULL, sizeof(*progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (;; nr += stride) {
		pid_t pid;

		clear_scratch(true);
		memset(progress, 0, sizeof(*progress));
		calls_left = nr;
		pid = fork_child();
		if (!pid)
			run_steps();
		code = wait_child(pid);
		cr_assert(code == 0 || code == 256 + SIGKILL, "call %ld: exit code %d", nr, code);
		cr_assert_eq(in_child(look_and_go_on, NULL), 0, "killed at call %ld, in step %d", nr, progress->done);
		if (!code)
			break;
	}
	cr_assert_gt(nr, 50);
	cr_log_info("%ld calls\n", nr);
	scratch_remove();
}

Test(crash_calls, every_acknowledged_byte_is_there_whichever_call_was_the_last, .timeout = 300)
{
	all_calls = true;
	kill_at_each(13);
}

Test(crash_calls, every_acknowledged_byte_is_there_whichever_write_was_torn, .timeout = 300)
{
	only_call = CALL_PWRITE;
	half = true;
	kill_at_each(1);
}

Test(crash_calls, every_released_byte_is_there_where_nothing_can_be_mapped, .timeout = 300)
{
	unshared = all_calls = true;
	kill_at_each(29);
}

Test(crash_calls, every_released_byte_is_there_where_nothing_can_be_mapped_and_a_write_was_torn, .timeout = 300)
{
	unshared = half = true;
	only_call = CALL_PWRITE;
	kill_at_each(5);
}

Test(crash_calls, every_acknowledged_byte_of_a_file_that_was_small_is_there_whichever_call_was_the_last, .timeout = 300)
{
	options = "";
	all_calls = true;
	kill_at_each(17);
}

Test(crash_calls, every_acknowledged_byte_of_a_small_file_is_there_whichever_write_was_torn, .timeout = 300)
{
	options = "{small=1M}";
	only_call = CALL_PWRITE;
	half = true;
	kill_at_each(3);
}
