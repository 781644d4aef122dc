/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plfs compact, or the sweep at a close (file/sweep.h), killed or stopped at its system calls (turn.h).
 * Processes that have the file open, with maps of before, and a new one, must read its bytes at every such
 * moment; one that begins to write then loses nothing; check finds no damage, but for a kept map of before
 * while compact stands still; and the next compact has the rest.
 */
#include "core/file/logged.h"
#include "core/file/sweep.h"
#include "test/lib/calls.h"
#include "test/lib/scratch.h"
#include "test/lib/turn.h"

#include <criterion/criterion.h>

#define LEN 400000
#define W_OFF 150000 /* what is written while it stands still */
#define W_LEN 3000

TestSuite(crash_compact, .timeout = 600);

static unsigned char image[LEN], with_write[LEN];
static bool is_written; /* in a child: inherited */

/* ---- the file ---- */

struct write {
	off_t off;
	size_t len;
	unsigned round;
	off_t cut; /* truncate to that first; 0: not */
	bool kill;
};

static int write_it(void *arg)
{
	const struct write *w = arg;
	struct lfile l = lopen("f", O_RDWR | O_CREAT);

	if (w->cut && plfs_truncate(l.f, w->cut))
		return 1;
	if (lfill(&l, w->off, w->len, w->round) != (ssize_t)w->len)
		return 2;
	if (w->kill)
		kill(getpid(), SIGKILL);
	return lclose(&l) ? 3 : 0;
}

static void one(struct write w)
{
	if (w.cut)
		memset(image + w.cut, 0, (size_t)(LEN - w.cut));
	pattern_fill(image + w.off, w.len, (uint64_t)w.off, w.round);
	cr_assert_eq(in_child(write_it, &w), w.kill ? 256 + SIGKILL : 0);
}

/* Each write in a log of its own; what a truncation cut off must not come back. */
static void make_file(bool whole, bool killed, bool many, bool grows)
{
	memset(image, 0, sizeof(image));
	one((struct write){ 0, grows ? LEN - 1000 : LEN, 1, 0, false });
	for (int i = 0; many && i < 8; i++) /* then a reader keeps its map */
		one((struct write){ i * 40000, 1000, 7, 0, false });
	if (whole) {
		one((struct write){ 0, LEN, 2, 0, killed });
	} else if (grows) {
		one((struct write){ LEN - 100000, 100000, 3, 0, killed });
	} else {
		one((struct write){ 1000, 100000, 2, 0, false });
		one((struct write){ 250000, 50000, 3, 200000, killed });
		one((struct write){ LEN - 100, 100, 4, 0, false });
	}
	memcpy(with_write, image, LEN);
	pattern_fill(with_write + W_OFF, W_LEN, W_OFF, 9);
	is_written = false;
}

static int remove_it(void *arg)
{
	(void)arg;
	return lunlink("f") ? 1 : 0;
}

/* ---- looking ---- */

static bool is_right(struct lfile *l, const char *who)
{
	static unsigned char buf[LEN + 1];
	const unsigned char *right = is_written ? with_write : image;
	ssize_t n;

	/* in pieces: some logs are met for the first time long after the map was made */
	for (off_t off = 0; off < LEN; off += n) {
		n = plfs_pread(l->f, buf, 60000, off);
		if (n > 0 && !memcmp(buf, right + off, (size_t)n))
			continue;
		fprintf(stderr, "%s: wrong bytes in what was read at %lld: %zd\n", who, (long long)off, n);
		return false;
	}
	return plfs_pread(l->f, buf, 1, LEN) == 0 && plfs_size(l->f) == LEN;
}

struct asked {
	int ask[2], answer[2];
	pid_t pid;
};

/* Reads a little at first, so that it has a map and one log; then whenever it is asked. */
static int serve(void *arg)
{
	struct asked *r = arg;
	struct lfile l = lopen("f", O_RDONLY);
	unsigned char buf[100];
	char c = plfs_pread(l.f, buf, sizeof(buf), 0) != sizeof(buf);

	do {
		if (write(r->answer[1], &c, 1) != 1 || read(r->ask[0], &c, 1) != 1)
			return 1;
		is_written = c == 'w' || c == 'W';
		c = c == 'q' ? 'q' : !is_right(&l, "who had it open");
	} while (c != 'q');
	return lclose(&l) ? 1 : 0;
}

static bool answers(struct asked *r)
{
	char c;

	return read(r->answer[0], &c, 1) == 1 && !c;
}

static void start_reader(struct asked *r)
{
	cr_assert(!pipe(r->ask) && !pipe(r->answer));
	r->pid = start_child(serve, r);
	cr_assert(answers(r));
}

static bool reads(struct asked *r) { return write(r->ask[1], is_written ? "w" : "r", 1) == 1 && answers(r); }

static void end_reader(struct asked *r)
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

static bool kept_may_lag; /* in a child: inherited */
static int nr_bad;

/*
 * While compact stands still check may take the kept map of before for one that readers use. What they read
 * has been compared just before, and is right.
 */
static void found(void *arg, const struct plfs_finding *f)
{
	(void)arg;
	if (f->severity == PLFS_NOTED || f->severity == PLFS_REPAIRED ||
	    (kept_may_lag && !strcmp(f->code, "global-wrong")))
		return;
	nr_bad++;
	fprintf(stderr, "check: %s: %s: %s\n", f->code, f->path, f->text);
}

static int check(void *arg)
{
	struct plfs_check c = { .found = found };
	char path[PATH_MAX];
	struct plfs_mount *m = lpath("f", path);
	int ret = plfs_check(m, AT_FDCWD, path, &c);

	(void)arg;
	return ret == 1 && kept_may_lag ? nr_bad : ret;
}

static int repair(void *arg)
{
	struct plfs_check c = { .repair = true, .found = found };
	char path[PATH_MAX];
	struct plfs_mount *m = lpath("f", path);

	(void)arg;
	return plfs_check(m, AT_FDCWD, path, &c);
}

/* ---- compacting ---- */

static int compact(void *hook)
{
	struct plfs_progress watch = { .arg = NULL };
	struct plfs_compact k = { .dry = false };
	char path[PATH_MAX];
	int ret;

	lpath("f", path);
	if (hook) {
		calls_intercept();
		on_call = (int (*)(enum call))hook;
	}
	ret = plfs_compact(path, &k, &watch);
	if (ret < 0)
		fprintf(stderr, "compact: %s\n", *watch.why ? watch.why : strerror(-ret));
	return ret < 0 ? 100 : ret;
}

static int write_meanwhile(void *arg)
{
	struct lfile l = lopen("f", O_RDWR);

	(void)arg;
	return lfill(&l, W_OFF, W_LEN, 9) != W_LEN || lclose(&l);
}

static off_t swept_from; /* in a child: inherited */

/* The last run writes it all, or the last of many a part of it, and sweeps when it closes. */
static int sweep_it(void *hook)
{
	struct lfile l = lopen("f", O_RDWR);

	logged_least_len = 1 << 16;
	sweep_little_at = swept_from ? 2 : sweep_little_at;
	if (lfill(&l, swept_from, LEN - (size_t)swept_from, 8) != LEN - swept_from)
		return 101;
	calls_intercept();
	on_call = (int (*)(enum call))hook;
	return lclose(&l) ? 102 : 0;
}

/* ---- who writes meanwhile ---- */

/* A process that has closed a log of the file goes on with that log. */
static int write_again(void *arg)
{
	struct asked *r = arg;
	struct write w = { 350000, 1000, 5, 0, false };
	char c = (char)write_it(&w);

	if (write(r->answer[1], &c, 1) != 1 || read(r->ask[0], &c, 1) != 1)
		return 1;
	return c == 'w' ? write_meanwhile(NULL) : 0;
}

static void start_writer(struct asked *r)
{
	cr_assert(!pipe(r->ask) && !pipe(r->answer));
	pattern_fill(image + 350000, 1000, 350000, 5);
	pattern_fill(with_write + 350000, 1000, 350000, 5);
	r->pid = start_child(write_again, r);
	cr_assert(answers(r));
}

/* @pid ends while @stopped stands, or else when that has gone on. Its exit code; 256. */
static int end_beside(pid_t pid, pid_t stopped)
{
	int status;

	for (int i = 0; i < 100; i++) {
		if (waitpid(pid, &status, WNOHANG) == pid)
			return WIFEXITED(status) ? WEXITSTATUS(status) : 256;
		usleep(1000);
	}
	kill(stopped, SIGCONT);
	return wait_child(pid);
}

/* Who closes a log waits for who has the index locked, and stands still: that one goes on then. */
static int write_beside(struct asked *w, pid_t stopped)
{
	if (w)
		cr_assert_eq(write(w->ask[1], "w", 1), 1);
	return end_beside(w ? w->pid : start_child(write_meanwhile, NULL), stopped);
}

struct plan {
	bool whole;  /* the last writer has overwritten all: nothing is to be copied */
	bool killed; /* a writer was killed, and nobody has the file open */
	bool grows;  /* and it had just made the file longer */
	bool stops, writes;
	bool resumes; /* who writes has written before */
	bool many;    /* logs */
	bool repaired; /* before the next compact */
	bool sweeps;
	bool pinned; /* a little of the first log is visible, and is copied */
	bool little; /* many logs of little: all of them are */
};

/* What a sweep finds: two runs, and its own. */
static void make_runs(bool pinned, bool killed)
{
	memset(image, 0, sizeof(image));
	one((struct write){ 0, LEN, 1, 0, killed });
	one((struct write){ pinned ? 1000 : 0, pinned ? LEN - 1000 : LEN, 2, 0, false });
	if (killed) /* that run has not been counted */
		one((struct write){ 0, LEN, 3, 0, false });
	swept_from = 0;
}

/* A part in each log; some is cut off. The last is to come. */
static void make_little(bool killed)
{
	memset(image, 0, sizeof(image));
	for (int i = 0; i < 8; i++)
		one((struct write){ i * 50000, 50000, 1, 0, killed && i == 3 });
	one((struct write){ 250000, 50000, 3, 220000, false });
	swept_from = 360000;
}

static void make_swept(const struct plan *p)
{
	if (p->little)
		make_little(p->killed);
	else
		make_runs(p->pinned, p->killed);
	pattern_fill(image + swept_from, LEN - (size_t)swept_from, (uint64_t)swept_from, 8);
	memcpy(with_write, image, LEN);
	pattern_fill(with_write + W_OFF, W_LEN, W_OFF, 9);
	is_written = false;
}

/* Returns whether compact came to its end. */
static bool at_call(const struct plan *p, long nr)
{
	struct asked r, w;
	int status;
	bool over;
	pid_t pid;

	if (p->sweeps)
		make_swept(p);
	else
		make_file(p->whole, p->killed, p->many, p->grows);
	if (p->resumes)
		start_writer(&w);
	if (!p->killed)
		start_reader(&r);
	calls_left = nr;
	pid = start_child(p->sweeps ? sweep_it : compact, (void *)(p->stops ? stop_at_last : die_at_last));
	cr_assert_eq(waitpid(pid, &status, WUNTRACED), pid);
	over = WIFEXITED(status);
	cr_assert(over ? !WEXITSTATUS(status) : p->stops ? WIFSTOPPED(status) : WIFSIGNALED(status),
		  "call %ld", nr);
	cr_assert_eq(in_child(look_newly, NULL), 0, "call %ld", nr);
	cr_assert(p->killed || reads(&r), "call %ld", nr);
	kept_may_lag = p->many && !over;
	cr_assert_eq(in_child(check, NULL), 0, "call %ld: check", nr);
	kept_may_lag = false;
	if (p->writes) {
		cr_assert_eq(write_beside(p->resumes ? &w : NULL, pid), 0, "call %ld", nr);
		is_written = true;
		cr_assert_eq(in_child(look_newly, NULL), 0, "call %ld, written", nr);
		cr_assert(p->killed || reads(&r), "call %ld, written", nr);
	}
	if (p->stops && !over) {
		kill(pid, SIGCONT);
		status = wait_child(pid);
		cr_assert(!status || (p->writes && status == 100 && !p->sweeps), "call %ld: %d", nr, status);
		cr_assert_eq(in_child(look_newly, NULL), 0, "call %ld, gone on with", nr);
		cr_assert(p->killed || reads(&r), "call %ld, gone on with", nr);
	}
	if (!p->killed)
		end_reader(&r);
	for (int i = 0; p->resumes && i < 2; i++) {
		close(w.ask[i]);
		close(w.answer[i]);
	}
	if (p->repaired) {
		cr_assert_eq(in_child(repair, NULL), 0, "call %ld: repair", nr);
		cr_assert_eq(in_child(look_newly, NULL), 0, "call %ld, repaired", nr);
		cr_assert_eq(count_files("live."), 0, "call %ld, repaired", nr);
	}
	if (over && p->sweeps)
		cr_assert_eq(count_logs(), (p->little ? 1 : 2) + p->pinned + p->writes, "call %ld: no sweep",
			     nr);
	status = in_child(compact, NULL);
	cr_assert(!status || status == 1, "call %ld: the next compact: %d", nr, status);
	cr_assert_eq(in_child(look_newly, NULL), 0, "call %ld, compacted", nr);
	cr_assert_eq(in_child(check, NULL), 0, "call %ld: check, compacted", nr);
	cr_assert_eq(count_files("live."), 0, "call %ld", nr);
	cr_assert_leq(count_logs(), p->writes ? 2 : 1, "call %ld: logs are left", nr);
	cr_assert_eq(in_child(remove_it, NULL), 0);
	cr_assert_eq(count_files("data."), 0);
	return over;
}

static void at_each_call(struct plan p)
{
	struct turn turn = turn_begin(31);

	scratch_in_memory = true;
	scratch_setup();
	while (!at_call(&p, turn.nr))
		turn.nr += turn.step;
	cr_assert_gt(turn.nr, 100);
	cr_log_info("%ld calls\n", turn.nr);
	scratch_remove();
}

Test(crash_compact, the_bytes_are_there_whichever_call_was_the_last)
{
	at_each_call((struct plan){ 0 });
}

Test(crash_compact, the_bytes_are_there_whichever_call_was_the_last_where_nothing_is_copied)
{
	at_each_call((struct plan){ .whole = true });
}

Test(crash_compact, the_bytes_of_a_killed_writer_are_there_whichever_call_was_the_last)
{
	at_each_call((struct plan){ .killed = true });
}

Test(crash_compact, the_size_by_a_killed_writer_is_there_whichever_call_was_the_last)
{
	at_each_call((struct plan){ .killed = true, .grows = true });
}

Test(crash_compact, the_bytes_are_there_after_a_repair_whichever_call_was_the_last)
{
	at_each_call((struct plan){ .repaired = true });
}

Test(crash_compact, what_is_written_meanwhile_is_there_whichever_call_it_met)
{
	at_each_call((struct plan){ .stops = true, .writes = true });
}

Test(crash_compact, what_is_written_meanwhile_is_there_whichever_call_it_met_where_nothing_is_copied)
{
	at_each_call((struct plan){ .stops = true, .writes = true, .whole = true });
}

Test(crash_compact, what_is_written_meanwhile_by_who_has_written_before_is_there)
{
	at_each_call((struct plan){ .stops = true, .writes = true, .resumes = true });
}

Test(crash_compact, a_reader_with_a_kept_map_reads_the_bytes_at_each_call)
{
	at_each_call((struct plan){ .stops = true, .many = true });
}

Test(crash_compact, the_bytes_are_read_at_each_call)
{
	at_each_call((struct plan){ .stops = true });
}

Test(crash_compact, the_bytes_are_there_whichever_call_of_a_sweep_was_the_last)
{
	at_each_call((struct plan){ .sweeps = true });
}

Test(crash_compact, the_bytes_are_there_whichever_call_of_a_sweep_with_a_copy_was_the_last)
{
	at_each_call((struct plan){ .sweeps = true, .pinned = true });
}

Test(crash_compact, the_bytes_are_there_whichever_call_of_a_sweep_behind_a_killed_writer_was_the_last)
{
	at_each_call((struct plan){ .sweeps = true, .killed = true });
}

Test(crash_compact, what_is_written_meanwhile_is_there_whichever_call_of_a_sweep_it_met)
{
	at_each_call((struct plan){ .sweeps = true, .pinned = true, .stops = true, .writes = true });
}

Test(crash_compact, the_bytes_are_read_at_each_call_of_a_sweep)
{
	at_each_call((struct plan){ .sweeps = true, .stops = true });
}

Test(crash_compact, the_bytes_are_there_whichever_call_of_a_sweep_of_little_was_the_last)
{
	at_each_call((struct plan){ .sweeps = true, .little = true });
}

Test(crash_compact, the_bytes_of_a_killed_writer_are_there_whichever_call_of_a_sweep_of_little_was_the_last)
{
	at_each_call((struct plan){ .sweeps = true, .little = true, .killed = true });
}

Test(crash_compact, what_is_written_meanwhile_is_there_whichever_call_of_a_sweep_of_little_it_met)
{
	at_each_call((struct plan){ .sweeps = true, .little = true, .stops = true, .writes = true });
}

/* ---- a small file ---- */

static int write_round(void *round)
{
	struct lfile l = lopen("f", O_RDWR | O_CREAT);
	size_t len = *(unsigned *)round == 1 ? 100 : LEN;

	return lfill(&l, 0, len, *(unsigned *)round) != (ssize_t)len || lclose(&l);
}

/* False: it makes fewer calls. */
static bool gets_logs_at(long nr)
{
	int status;
	pid_t pid;

	cr_assert_eq(in_child(write_round, &(unsigned){ 1 }), 0);
	calls_left = nr;
	pid = start_child(compact, (void *)stop_at_last);
	cr_assert_eq(waitpid(pid, &status, WUNTRACED), pid);
	if (WIFSTOPPED(status)) {
		cr_assert_eq(end_beside(start_child(write_round, &(unsigned){ 2 }), pid), 0, "call %ld", nr);
		kill(pid, SIGCONT);
		cr_assert_lt(wait_child(pid), 256, "call %ld", nr);
		cr_assert_eq(in_child(look_newly, NULL), 0, "call %ld", nr);
	}
	cr_assert_eq(in_child(remove_it, NULL), 0);
	return WIFSTOPPED(status);
}

Test(crash_compact, a_small_file_that_gets_logs_meanwhile_is_whole_whichever_call_it_met)
{
	long nr = 1;

	scratch_in_memory = true;
	scratch_setup_small();
	pattern_fill(image, LEN, 0, 2);
	while (gets_logs_at(nr))
		nr++;
	cr_assert_gt(nr, 10);
	scratch_remove();
}
