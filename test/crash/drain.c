/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plfs drain killed or stopped at its system calls (turn.h). Processes that have the file open, with maps of
 * before, and a new one, must read its bytes at every such moment; one that writes, truncates or removes it
 * then finds what it finds on a plain file; check finds no damage; and the next drain brings all home.
 */
#include "test/lib/calls.h"
#include "test/lib/scratch.h"
#include "test/lib/turn.h"

#include <criterion/criterion.h>

#include <ftw.h>

#define LEN 400000
#define W_OFF 150000 /* what is written while it stands still */
#define W_LEN 3000

TestSuite(crash_drain, .timeout = 1200);

static unsigned char image[LEN];
static char near[64];

/* ---- the file ---- */

static int write_piece(off_t off, size_t len, unsigned round, bool killed)
{
	struct lfile l = lopen("f", O_RDWR | O_CREAT);

	if (lfill(&l, off, len, round) != (ssize_t)len)
		return 1;
	if (killed)
		kill(getpid(), SIGKILL);
	return lclose(&l) ? 2 : 0;
}

static void note(off_t off, size_t len, unsigned round)
{
	pattern_fill(image + off, len, (uint64_t)off, round);
}

static int write_first(void *arg) { return (void)arg, write_piece(0, LEN, 1, false); }
static int write_second(void *arg) { return (void)arg, write_piece(100000, 200000, 2, false); }
static int write_and_die(void *arg) { return (void)arg, write_piece(300000, 100000, 3, true); }

static int write_synced(void *arg)
{
	struct lfile l = lopen("f", O_RDWR);

	(void)arg;
	if (lfill(&l, 300000, 50000, 3) != 50000 || plfs_sync(l.f) ||
	    lfill(&l, 350000, 50000, 3) != 50000)
		return 1;
	return lclose(&l) ? 2 : 0;
}

static void make_file(bool killed)
{
	cr_assert_eq(in_child(write_first, NULL), 0);
	note(0, LEN, 1);
	cr_assert_eq(in_child(write_second, NULL), 0);
	note(100000, 200000, 2);
	cr_assert_eq(in_child(killed ? write_and_die : write_synced, NULL), killed ? 256 + SIGKILL : 0);
	note(300000, 100000, 3);
}

/* ---- what is near ---- */

static unsigned nr_near;

static int count_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	nr_near += type == FTW_F && strcmp(path + ftw->base, "home") && strncmp(path + ftw->base, "near.", 5);
	return 0;
}

static unsigned count_near(void)
{
	nr_near = 0;
	nftw(near, count_one, 16, FTW_PHYS);
	return nr_near;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

/* ---- looking ---- */

static bool is_right(struct lfile *l, const char *who)
{
	static unsigned char buf[LEN + 1];
	ssize_t n;

	for (off_t off = 0; off < LEN; off += n) {
		n = plfs_pread(l->f, buf, 60000, off);
		if (n > 0 && !memcmp(buf, image + off, (size_t)n))
			continue;
		fprintf(stderr, "%s: wrong bytes in what was read at %lld: %zd\n", who, (long long)off, n);
		return false;
	}
	return plfs_pread(l->f, buf, 1, LEN) == 0 && plfs_size(l->f) == LEN;
}

struct asked {
	int ask[2], answer[2];
	pid_t pid;
	bool writes;
};

/*
 * Reads a little at first, so that it has a map and one log; then all. One that writes goes on with its log.
 */
static int serve(void *arg)
{
	struct asked *r = arg;
	struct lfile l = lopen("f", r->writes ? O_RDWR : O_RDONLY);
	unsigned char buf[100];
	char c = plfs_pread(l.f, buf, sizeof(buf), 0) != sizeof(buf);

	if (r->writes) {
		c |= lfill(&l, 0, 1000, 1) != 1000 || lclose(&l);
		l = lopen("f", O_RDWR);
	}
	do {
		if (write(r->answer[1], &c, 1) != 1 || read(r->ask[0], &c, 1) != 1)
			return 1;
		if (c == 'w') {
			c = lfill(&l, W_OFF, W_LEN, 9) != W_LEN;
			note(W_OFF, W_LEN, 9);
		} else if (c != 'q') {
			c = !is_right(&l, "who had it open");
		}
	} while (c != 'q');
	return lclose(&l) ? 1 : 0;
}

static bool ask(struct asked *r, char what)
{
	char c;

	return write(r->ask[1], &what, 1) == 1 && read(r->answer[0], &c, 1) == 1 && !c;
}

static void start(struct asked *r, bool writes)
{
	char c;

	r->writes = writes;
	cr_assert(!pipe(r->ask) && !pipe(r->answer));
	r->pid = start_child(serve, r);
	cr_assert(read(r->answer[0], &c, 1) == 1 && !c);
}

static void end(struct asked *r)
{
	cr_assert_eq(write(r->ask[1], "q", 1), 1);
	cr_assert_eq(wait_child(r->pid), 0);
	for (int i = 0; i < 2; i++) {
		close(r->ask[i]);
		close(r->answer[i]);
	}
}

static int look_newly(void *arg)
{
	off_t size = stat_size("f");
	struct lfile l;

	(void)arg;
	if (size != LEN) {
		fprintf(stderr, "its size is %lld\n", (long long)size);
		return 1;
	}
	l = lopen("f", O_RDONLY);
	return !is_right(&l, "who has opened it now") || lclose(&l);
}

static void found(void *arg, const struct plfs_finding *f)
{
	(void)arg;
	if (f->severity != PLFS_NOTED && f->severity != PLFS_REPAIRED)
		fprintf(stderr, "check: %s: %s: %s\n", f->code, f->path, f->text);
}

static int check(void *arg)
{
	struct plfs_check c = { .found = found };
	char path[PATH_MAX];
	struct plfs_mount *m = lpath("f", path);

	(void)arg;
	return plfs_check(m, AT_FDCWD, path, &c);
}

/* ---- draining ---- */

static void trouble(void *arg, const char *path, const char *why)
{
	(void)arg;
	fprintf(stderr, "drain: %s: %s\n", path, why);
}

static int drain_top(void *arg, const char *top, const char *home)
{
	struct plfs_mount *m = plfs_mount_at(0);

	return strcmp(home, plfs_backend(m)) ? -ENOENT : plfs_drain_place(m, top, false, arg);
}

struct drained {
	int (*hook)(enum call call);
	bool place; /* all of it, instead of the file */
	bool helper; /* what is closed, as a helper does */
};

/* 75 as the command: something stays. */
static int drain(void *arg)
{
	struct drained *how = arg;
	struct plfs_drain d = { .trouble = how->hook ? NULL : trouble, .closed_only = how->helper };
	char path[PATH_MAX];
	struct plfs_mount *m = lpath("f", path);
	int ret;

	if (how->hook) {
		calls_intercept();
		on_call = how->hook;
	}
	ret = how->place ? plfs_places_in(near, drain_top, &d) : plfs_drain_file(m, AT_FDCWD, path, &d);
	if (ret && !how->hook)
		fprintf(stderr, "drain: %s\n", strerror(-ret));
	return d.nr_lost ? 1 : ret || d.nr_left ? 75 : 0;
}

enum meanwhile { NOTHING, WRITES, TRUNCATES, REMOVES };

struct plan {
	bool killed; /* a writer was killed, and nobody has the file open */
	bool place, helper;
	enum meanwhile meanwhile; /* it is stopped, and this is done */
};

static int write_newly(void *arg) { return (void)arg, write_piece(W_OFF, W_LEN, 9, false); }
static int remove_it(void *arg) { return (void)arg, lunlink("f") ? 1 : 0; }

static int empty_and_fill(void *arg)
{
	struct lfile l = lopen("f", O_RDWR | O_TRUNC);

	(void)arg;
	return lfill(&l, 0, LEN, 7) != LEN || lclose(&l);
}

/* What waits for who stands still, with a lock on the index, goes on when that does. */
static void do_beside(int (*fn)(void *arg), pid_t stopped, long nr)
{
	pid_t pid = start_child(fn, NULL);
	int status;

	for (int i = 0; i < 200; i++) {
		if (waitpid(pid, &status, WNOHANG) == pid) {
			cr_assert(WIFEXITED(status) && !WEXITSTATUS(status), "call %ld: %x", nr, status);
			return;
		}
		usleep(1000);
	}
	kill(stopped, SIGCONT);
	cr_assert_eq(wait_child(pid), 0, "call %ld", nr);
}

static void meanwhile(const struct plan *p, struct asked *w, pid_t stopped, long nr)
{
	if (p->meanwhile == WRITES) {
		do_beside(write_newly, stopped, nr);
		note(W_OFF, W_LEN, 9);
		kill(stopped, SIGCONT);
		cr_assert(ask(w, 'w'), "call %ld: who goes on with its log", nr);
	} else if (p->meanwhile == TRUNCATES) {
		do_beside(empty_and_fill, stopped, nr);
		note(0, LEN, 7);
	} else {
		do_beside(remove_it, stopped, nr);
	}
}

static void drain_the_rest(const struct plan *p, long nr)
{
	struct drained how = { .place = p->place, .helper = p->helper };

	cr_assert_eq(in_child(drain, &how), 0, "call %ld: the next drain", nr);
	cr_assert_eq(count_near(), 0, "call %ld: something is left near", nr);
	cr_assert_eq(count_files("near."), 0, "call %ld", nr);
	cr_assert_eq(count_files("live."), 0, "call %ld", nr);
}

/* Returns whether drain came to its end. */
static bool at_call(const struct plan *p, long nr)
{
	struct drained how = { .hook = p->meanwhile ? stop_at_last : die_at_last,
			       .place = p->place,
			       .helper = p->helper };
	struct asked r, w;
	int status;
	bool over;
	pid_t pid;

	make_file(p->killed);
	if (!p->killed)
		start(&r, false);
	if (p->meanwhile == WRITES)
		start(&w, true);
	cr_assert_gt(count_near(), 2);
	calls_left = nr;
	pid = start_child(drain, &how);
	cr_assert_eq(waitpid(pid, &status, WUNTRACED), pid);
	over = WIFEXITED(status);
	cr_assert(over ? !WEXITSTATUS(status) : p->meanwhile ? WIFSTOPPED(status) : WIFSIGNALED(status),
		  "call %ld: %x", nr, status);
	cr_assert_eq(in_child(look_newly, NULL), 0, "call %ld", nr);
	cr_assert(p->killed || ask(&r, 'r'), "call %ld", nr);
	cr_assert_eq(in_child(check, NULL), 0, "call %ld: check", nr);
	if (p->meanwhile) {
		meanwhile(p, &w, pid, nr);
		if (!over) {
			kill(pid, SIGCONT);
			status = wait_child(pid);
			cr_assert(!status || status == 75, "call %ld: %d", nr, status);
		}
	}
	if (p->meanwhile == WRITES) {
		cr_assert(ask(&w, 'r'), "call %ld: who writes", nr);
		end(&w);
	}
	if (!p->killed) {
		if (p->meanwhile != REMOVES && p->meanwhile != TRUNCATES)
			cr_assert(p->meanwhile == WRITES || ask(&r, 'r'), "call %ld", nr);
		end(&r);
	}
	if (p->meanwhile != REMOVES) {
		cr_assert_eq(in_child(look_newly, NULL), 0, "call %ld, gone on with", nr);
		drain_the_rest(p, nr);
		cr_assert_eq(in_child(look_newly, NULL), 0, "call %ld, drained", nr);
		cr_assert_eq(in_child(check, NULL), 0, "call %ld: check, drained", nr);
		cr_assert_eq(in_child(remove_it, NULL), 0);
	} else {
		drain_the_rest(&(struct plan){ .place = true }, nr);
	}
	cr_assert_eq(count_files("data."), 0, "call %ld: logs of a file that was removed", nr);
	return over;
}

static void make_scratch(void)
{
	scratch_in_memory = true;
	new_dir(near, sizeof(near));
	setenv("PLFS_TEST_NEAR", near, 1);
	scratch_map("{small=0,near=$PLFS_TEST_NEAR}");
}

static void remove_scratch(void)
{
	scratch_remove();
	nftw(near, remove_one, 16, FTW_PHYS | FTW_DEPTH);
}

static void at_each_call(struct plan p)
{
	struct turn turn = turn_begin(41);

	make_scratch();
	while (!at_call(&p, turn.nr))
		turn.nr += turn.step;
	cr_assert_gt(turn.nr, 100);
	cr_log_info("%ld calls\n", turn.nr);
	remove_scratch();
}

Test(crash_drain, the_bytes_are_there_whichever_call_was_the_last)
{
	at_each_call((struct plan){ .killed = false });
}

Test(crash_drain, the_bytes_are_there_whichever_call_was_the_last_of_a_whole_place)
{
	at_each_call((struct plan){ .place = true });
}

Test(crash_drain, the_bytes_are_there_whichever_call_was_the_last_of_a_helper)
{
	at_each_call((struct plan){ .place = true, .helper = true });
}

Test(crash_drain, the_bytes_of_a_killed_writer_are_there_whichever_call_was_the_last)
{
	at_each_call((struct plan){ .killed = true });
}

Test(crash_drain, the_bytes_of_a_killed_writer_are_there_whichever_call_was_the_last_of_a_whole_place)
{
	at_each_call((struct plan){ .killed = true, .place = true });
}

Test(crash_drain, what_is_written_meanwhile_is_there_whichever_call_it_met)
{
	at_each_call((struct plan){ .meanwhile = WRITES });
}

Test(crash_drain, a_truncation_meanwhile_holds_whichever_call_it_met)
{
	at_each_call((struct plan){ .meanwhile = TRUNCATES });
}

Test(crash_drain, a_file_removed_meanwhile_leaves_nothing_whichever_call_it_met)
{
	at_each_call((struct plan){ .meanwhile = REMOVES });
}

/* ---- removed while it is repaired ---- */

static struct asked remover;

/* A process of its own: this one has locks. */
static int remove_when_asked(void *arg)
{
	char c;

	(void)arg;
	if (read(remover.ask[0], &c, 1) != 1)
		return 1;
	c = lunlink("f") != 0;
	return write(remover.answer[1], &c, 1) != 1;
}

static int remove_at_last(enum call call)
{
	(void)call;
	if (!--calls_left && !ask(&remover, 'r'))
		_exit(3);
	return 0;
}

/* Returns whether drain came to its end before. */
static bool removed_at_call(long nr)
{
	struct drained how = { .hook = remove_at_last };
	struct drained rest = { .place = true };
	char path[PATH_MAX];
	pid_t pid;
	int status;
	bool over;

	make_file(true);
	cr_assert(!pipe(remover.ask) && !pipe(remover.answer));
	remover.pid = start_child(remove_when_asked, NULL);
	calls_left = nr;
	pid = start_child(drain, &how);
	status = wait_child(pid);
	cr_assert(!status || status == 75, "call %ld: %d", nr, status);
	lpath("f", path);
	over = !access(path, F_OK);
	if (over)
		cr_assert_eq(write(remover.ask[1], "r", 1), 1);
	cr_assert_eq(wait_child(remover.pid), 0);
	for (int i = 0; i < 2; i++) {
		close(remover.ask[i]);
		close(remover.answer[i]);
	}
	cr_assert_eq(in_child(drain, &rest), 0, "call %ld", nr);
	cr_assert_eq(count_near(), 0, "call %ld: something is left near", nr);
	cr_assert_eq(count_files("data.") + count_files("index."), 0, "call %ld: something is left", nr);
	return over;
}

Test(crash_drain, a_file_removed_while_its_killed_writers_log_is_closed_leaves_nothing)
{
	struct turn turn = turn_begin(97);

	make_scratch();
	while (!removed_at_call(turn.nr))
		turn.nr += turn.step;
	cr_assert_gt(turn.nr, 100);
	remove_scratch();
}
