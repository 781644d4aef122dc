/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Changes in several steps of a file that was small once, so that its stub has bytes below the logs: truncations above all, a claim, a move
 * into the body. At each system call of one the process is killed, or stands still, and others look: one that has had the file
 * open, one that opens it, and stat(). Each finds the file as it was before or as it is afterwards, size and bytes, and nobody
 * finds it as before when somebody has found it as afterwards.
 */
#include "scratch.h"

#include "calls.h"

#include <criterion/criterion.h>
#include <sys/mman.h>

#define FILE_MAX 200000
#define CLAIM_OFF 100000
#define CLAIM_LEN 100

TestSuite(crash_cut, .timeout = 300);

enum version { OLD, NEW, BOTH, WRONG };

static unsigned char image[2][FILE_MAX]; /* OLD, NEW */
static ssize_t size_of[2];
static long cut_to;
enum change { CUT, OPEN, CLAIM, MOVE };
static enum change change;
static enum version *seen; /* shared by all processes */

static enum version version_of_size(off_t size)
{
	if (size_of[OLD] != size_of[NEW])
		return size == size_of[OLD] ? OLD : size == size_of[NEW] ? NEW : WRONG;
	return size == size_of[OLD] ? BOTH : WRONG;
}

static enum version version_of(const unsigned char *buf, ssize_t n)
{
	bool old = n == size_of[OLD] && !memcmp(buf, image[OLD], (size_t)n);
	bool new = n == size_of[NEW] && !memcmp(buf, image[NEW], (size_t)n);

	return old && new ? BOTH : old ? OLD : new ? NEW : WRONG;
}

/* What is found must not be older than what has been. */
static bool found(const char *who, const char *what, enum version v, ssize_t n)
{
	enum version last = *seen;
	const char *const names[] = { "before", "afterwards", "either", "neither" };

	if (v == WRONG || (last == NEW && v == OLD)) {
		fprintf(stderr, "%s: %s (%zd) is that of %s; it was %s\n", who, what, n, names[v], names[last]);
		return false;
	}
	if (v == NEW)
		*seen = NEW;
	return true;
}

static bool look_at(const char *who, struct lfile *l)
{
	static unsigned char buf[FILE_MAX + 1];
	ssize_t n = plfs_pread(l->f, buf, sizeof(buf), 0);
	off_t size;

	if (!found(who, "the content", version_of(buf, n), n))
		return false;
	size = plfs_size(l->f);
	if (!found(who, "the size", version_of_size(size), size))
		return false;
	n = plfs_pread(l->f, buf, sizeof(buf), 0);
	return found(who, "the content again", version_of(buf, n), n);
}

static int look_newly(void *arg)
{
	off_t size = stat_size("f");
	struct lfile l;
	bool ok;

	if (!found("stat", "the size", version_of_size(size), size))
		return 1;
	l = lopen("f", arg ? O_RDWR : O_RDONLY);
	ok = look_at("newly opened", &l);
	lclose(&l);
	return !ok;
}

/* ---- processes that have the file open ---- */

struct looker {
	pid_t pid;
	int ask[2], answer[2];
	int flags;
	bool writes, ends;
};

static int look_when_asked(void *arg)
{
	struct looker *k = arg;
	struct lfile l = lopen("f", k->flags);
	char c = 0;

	if (k->writes && (lfill(&l, 90000, 5000, 5) != 5000 || plfs_commit(l.f) || lfill(&l, 95000, 5000, 5) != 5000))
		return 1;
	for (int i = 0; i < 2 && !k->writes; i++)
		if (!look_at("before", &l))
			return 1;
	do {
		if (write(k->answer[1], &c, 1) != 1 || read(k->ask[0], &c, 1) != 1)
			return 1;
		c = c == 'q' ? 'q' : !look_at(k->writes ? "who writes" : "opened before", &l);
	} while (c != 'q');
	if (k->writes && !k->ends && lfill(&l, 120000, 100, 6) != 100)
		return 1;
	return lclose(&l) ? 1 : 0;
}

static bool await(struct looker *k)
{
	char c;

	return read(k->answer[0], &c, 1) == 1 && !c;
}

static bool ask(struct looker *k)
{
	return write(k->ask[1], "l", 1) == 1 && await(k);
}

static void start_looker(struct looker *k)
{
	cr_assert(!pipe(k->ask) && !pipe(k->answer));
	k->pid = start_child(look_when_asked, k);
	cr_assert(await(k));
}

static void end_looker(struct looker *k)
{
	cr_assert_eq(write(k->ask[1], "q", 1), 1);
	cr_assert_eq(wait_child(k->pid), 0);
	for (int i = 0; i < 2; i++) {
		close(k->ask[i]);
		close(k->answer[i]);
	}
}

/* ---- the one who changes it ---- */

static int stop_at_last(enum call call)
{
	(void)call;
	if (!--calls_left)
		raise(SIGSTOP);
	return 0;
}

static int (*at_last)(enum call call);

static int change_file(void *arg)
{
	struct lfile l = { .fd = -1 };

	(void)arg;
	if (change != OPEN)
		l = lopen("f", O_RDWR);
	calls_intercept();
	on_call = at_last;
	if (change == OPEN)
		l = lopen("f", O_RDWR | O_TRUNC);
	if (change == CUT && plfs_truncate(l.f, cut_to))
		return 1;
	if (change == CLAIM && lfill(&l, CLAIM_OFF, CLAIM_LEN, 9) != CLAIM_LEN)
		return 1;
	if (change == MOVE && plfs_in_body(l.f, PLFS_MAP_WRITE) != 1)
		return 1;
	on_call = NULL;
	*seen = NEW;
	return lclose(&l) ? 1 : 0;
}

/* ---- the file ---- */

static void put(struct lfile *l, off_t off, size_t len, unsigned round)
{
	if (lfill(l, off, len, round) != (ssize_t)len)
		die("write");
	pattern_fill(image[OLD] + off, len, (uint64_t)off, round);
	size_of[OLD] = off + (ssize_t)len > size_of[OLD] ? off + (ssize_t)len : size_of[OLD];
}

static int make_file(void *arg)
{
	const char *kind = arg;
	struct lfile l = made("f");

	put(&l, 0, 3000, 1); /* into the stub, if small files are there */
	lclose(&l);
	if (change == CLAIM)
		return 0;
	l = lopen("f", O_RDWR);
	put(&l, 10000, 70000, 2);
	put(&l, 500, 1000, 3);
	put(&l, 2500, 1500, 4);
	if (strchr(kind, 'c')) { /* and cut before */
		if (plfs_truncate(l.f, 2000))
			die("truncate");
		put(&l, 2600, 100, 5);
		put(&l, 20000, 100, 5);
	}
	return lclose(&l) ? 1 : 0;
}

/* In memory as well, by the same steps. */
static void know_file(const char *kind, long to)
{
	unsigned char *p = image[OLD];

	memset(image, 0, sizeof(image));
	pattern_fill(p, 3000, 0, 1);
	if (change == CLAIM) {
		memcpy(image[NEW], p, 3000);
		pattern_fill(image[NEW] + CLAIM_OFF, CLAIM_LEN, CLAIM_OFF, 9);
		size_of[OLD] = 3000;
		size_of[NEW] = CLAIM_OFF + CLAIM_LEN;
		return;
	}
	pattern_fill(p + 10000, 70000, 10000, 2);
	pattern_fill(p + 500, 1000, 500, 3);
	pattern_fill(p + 2500, 1500, 2500, 4);
	size_of[OLD] = 80000;
	if (strchr(kind, 'c')) {
		memset(p + 2000, 0, FILE_MAX - 2000);
		pattern_fill(p + 2600, 100, 2600, 5);
		pattern_fill(p + 20000, 100, 20000, 5);
		size_of[OLD] = 20100;
	}
	if (strchr(kind, 'w')) {
		pattern_fill(p + 90000, 5000, 90000, 5);
		pattern_fill(p + 95000, 5000, 95000, 5);
		size_of[OLD] = 100000;
	}
	size_of[NEW] = change == MOVE ? size_of[OLD] : to;
	to = size_of[NEW];
	memcpy(image[NEW], p, (size_t)(to < size_of[OLD] ? to : size_of[OLD]));
}

static off_t stub_says(void)
{
	char path[PATH_MAX];
	struct stat st;

	lpath("f", path);
	if (stat(path, &st))
		die("stat");
	return st.st_size - 4096;
}

static bool word_is_set(void)
{
	char path[PATH_MAX], word[32], zeros[32] = { 0 };
	int fd;

	lpath("f", path);
	fd = open(path, O_RDONLY);
	if (pread(fd, word, sizeof(word), 480) != sizeof(word))
		die("the stub is short");
	close(fd);
	return memcmp(word, zeros, sizeof(word));
}

/* The next to have it open for writing puts it right: then the stub says it all. */
static int finish(void *arg)
{
	if (look_newly((void *)"w"))
		return 1;
	if (word_is_set()) {
		fprintf(stderr, "the truncation is not over\n");
		return 1;
	}
	if (!arg && !found("finished", "what the stub says", version_of_size(stub_says()), stub_says()))
		return 1;
	return look_newly(NULL);
}

static int remove_file(void *arg)
{
	(void)arg;
	return lunlink("f") ? 1 : 0;
}

/* What is found then stays: it is what appends go behind. */
static int go_on(void *arg)
{
	struct lfile l = lopen("f", O_RDWR);
	off_t size = plfs_size(l.f), end = 0;
	unsigned char *buf = calloc(1, FILE_MAX);
	ssize_t n = plfs_pread(l.f, buf, FILE_MAX, 0);
	bool same;

	(void)arg;
	if (n != size || lappend(&l, "end", 3, &end) != 3 || end != size + 3 || plfs_size(l.f) != end)
		return 1;
	lclose(&l);
	if (stat_size("f") != end)
		return 1;
	l = lopen("f", O_RDONLY);
	memcpy(image[OLD], buf, (size_t)n);
	same = plfs_pread(l.f, buf, FILE_MAX, 0) == n + 3 && !memcmp(buf, image[OLD], (size_t)n) && !memcmp(buf + n, "end", 3);
	lclose(&l);
	free(buf);
	return !same;
}

struct plan {
	const char *options, *kind;
	long to;
	enum change change;
	bool stops;
};

/* Returns whether the truncation has come to its end. */
static bool one(const struct plan *p, long nr)
{
	bool writes = strchr(p->kind, 'w');
	struct looker lookers[] = { { .flags = O_RDONLY }, { .flags = O_RDWR }, { .flags = O_RDWR, .writes = true } };
	int nr_lookers = writes ? 3 : 2, status;
	bool over;
	pid_t pid;

	know_file(p->kind, p->to);
	cr_assert_eq(in_child(make_file, (void *)p->kind), 0);
	*seen = OLD;
	for (int i = nr_lookers; i-- > 0;)
		start_looker(&lookers[i]);
	calls_left = nr;
	pid = start_child(change_file, NULL);
	cr_assert_eq(waitpid(pid, &status, WUNTRACED), pid);
	over = WIFEXITED(status);
	cr_assert(over ? !WEXITSTATUS(status) : p->stops ? WIFSTOPPED(status) : WIFSIGNALED(status));
	for (int i = 0; i < nr_lookers; i++)
		cr_assert(ask(&lookers[i]), "call %ld", nr);
	cr_assert_eq(in_child(look_newly, NULL), 0, "call %ld", nr);
	for (int i = 0; i < nr_lookers; i++)
		cr_assert(ask(&lookers[i]), "call %ld, after who has opened it", nr);
	if (p->stops && !over) {
		kill(pid, SIGCONT);
		cr_assert_eq(wait_child(pid), 0);
		cr_assert_eq(in_child(look_newly, NULL), 0, "call %ld, gone on with", nr);
		for (int i = 0; i < nr_lookers; i++)
			cr_assert(ask(&lookers[i]), "call %ld, gone on with", nr);
	}
	cr_assert_eq(in_child(finish, writes ? (void *)"w" : NULL), 0, "call %ld", nr);
	for (int i = 0; i < nr_lookers; i++)
		cr_assert(ask(&lookers[i]), "call %ld, finished", nr);
	if (!writes)
		cr_assert_eq(in_child(go_on, NULL), 0, "call %ld", nr);
	for (int i = 0; i < nr_lookers; i++)
		end_looker(&lookers[i]);
	cr_assert_eq(in_child(remove_file, NULL), 0);
	return over;
}

static void begin(struct plan p)
{
	scratch_in_memory = true;
	scratch_map(p.options);
	seen = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cut_to = p.to;
	change = p.change;
	at_last = p.stops ? stop_at_last : die_at_last;
}

static void at_each_call(struct plan p)
{
	long nr = 1;

	begin(p);
	while (!one(&p, nr))
		nr++;
	cr_assert_gt(nr, 10);
	cr_log_info("%ld calls\n", nr);
	scratch_remove();
}

/* ---- what others do with it ---- */

static bool is_as_seen(void)
{
	unsigned char *buf = calloc(1, FILE_MAX);
	off_t told = stat_size("f");
	struct lfile l = lopen("f", O_RDONLY);
	ssize_t n = l.f ? plfs_pread(l.f, buf, FILE_MAX, 0) : pread(l.fd, buf, FILE_MAX, 0);
	bool same = n == size_of[*seen] && !memcmp(buf, image[*seen], (size_t)n) && told == n;

	if (!same)
		fprintf(stderr, "it has %zd bytes, stat() says %lld\n", n, (long long)told);
	lclose(&l);
	free(buf);
	return same;
}

static bool truncate_again(void)
{
	struct lfile l = lopen("f", O_RDWR);
	bool ok = !plfs_truncate(l.f, 2000);

	lclose(&l);
	memset(image[*seen] + 2000, 0, FILE_MAX - 2000);
	size_of[*seen] = 2000;
	return ok;
}

static bool make_longer(void)
{
	struct lfile l = lopen("f", O_RDWR);
	bool ok = !plfs_fallocate(l.f, 0, 0, 160000);

	lclose(&l);
	size_of[*seen] = 160000;
	return ok;
}

static bool move_into_body(void)
{
	struct lfile l = lopen("f", O_RDWR);
	bool ok = plfs_in_body(l.f, PLFS_MAP_WRITE) == 1;

	lclose(&l);
	return ok;
}

static bool make_plain(void)
{
	char path[PATH_MAX];

	lpath("f", path);
	return !plfs_flatten(AT_FDCWD, path, NULL);
}

static unsigned nr_notes, nr_repairs, nr_bad;

static void take_finding(void *arg, const struct plfs_finding *f)
{
	(void)arg;
	nr_notes += f->severity == PLFS_NOTED && !strcmp(f->code, "truncation");
	nr_repairs += f->severity == PLFS_REPAIRED && !strcmp(f->code, "truncation");
	nr_bad += f->severity == PLFS_DAMAGED || f->severity == PLFS_REMAINS || f->severity == PLFS_FAILED;
}

/* Told of if, and only if, there is something to finish, and finished. */
static bool check_and_repair(void)
{
	struct plfs_check check = { .found = take_finding }, repair = { .found = take_finding, .repair = true };
	char path[PATH_MAX];
	struct plfs_mount *m = lpath("f", path);
	bool due = word_is_set(), ok;

	ok = !plfs_check(m, AT_FDCWD, path, &check) && nr_notes == due;
	ok &= !plfs_check(m, AT_FDCWD, path, &repair) && nr_repairs == due && !word_is_set() && !count_files("live.");
	nr_notes = 0;
	ok &= !plfs_check(m, AT_FDCWD, path, &check) && !nr_notes && !nr_bad && stub_says() == size_of[*seen];
	if (!ok)
		fprintf(stderr, "due %d, notes %u, repairs %u, bad %u\n", due, nr_notes, nr_repairs, nr_bad);
	return ok;
}

static int do_and_look(void *arg)
{
	bool (**what)(void) = arg;

	return !(*what)() || !is_as_seen();
}

static void kill_and(bool (*what)(void), long to)
{
	int code = 1;

	begin((struct plan){ .options = "", .to = to });
	for (long nr = 1; code; nr++) {
		know_file("", to);
		cr_assert_eq(in_child(make_file, ""), 0);
		*seen = OLD;
		calls_left = nr;
		code = in_child(change_file, NULL);
		cr_assert(!code || code == 256 + SIGKILL);
		cr_assert_eq(in_child(look_newly, NULL), 0, "call %ld", nr);
		cr_assert_eq(in_child(do_and_look, &what), 0, "call %ld", nr);
		cr_assert_eq(in_child(remove_file, NULL), 0);
	}
	scratch_remove();
}

static bool do_nothing(void) { return true; }

/* A writer that was told of a truncation that has not happened, or has, closes the file: the size is known all the same. */
static void kill_beside_a_writer(long to)
{
	bool (*what)(void) = do_nothing;
	int code = 1;

	begin((struct plan){ .options = "", .to = to });
	for (long nr = 1; code; nr++) {
		struct looker writer = { .flags = O_RDWR, .writes = true, .ends = true };

		know_file("w", to);
		cr_assert_eq(in_child(make_file, ""), 0);
		*seen = OLD;
		start_looker(&writer);
		calls_left = nr;
		code = in_child(change_file, NULL);
		cr_assert_eq(in_child(look_newly, NULL), 0, "call %ld", nr);
		end_looker(&writer);
		cr_assert_eq(in_child(do_and_look, &what), 0, "call %ld", nr);
		cr_assert_eq(in_child(remove_file, NULL), 0);
	}
	scratch_remove();
}

Test(crash_cut, left_unfinished_and_closed_by_a_writer) { kill_beside_a_writer(700); }
Test(crash_cut, left_unfinished_to_nothing_and_closed_by_a_writer) { kill_beside_a_writer(0); }
Test(crash_cut, left_unfinished_that_makes_it_longer_and_closed_by_a_writer) { kill_beside_a_writer(150000); }

#define LEFT(name, what) \
	Test(crash_cut, left_unfinished_##name) { kill_and(what, 700); } \
	Test(crash_cut, left_unfinished_to_nothing_##name) { kill_and(what, 0); } \
	Test(crash_cut, left_unfinished_that_makes_it_longer_##name) { kill_and(what, 150000); }

LEFT(is_repaired, check_and_repair)
LEFT(and_truncated_again, truncate_again)
LEFT(and_made_longer, make_longer)
LEFT(and_moved_into_its_body, move_into_body)
LEFT(and_made_plain, make_plain)

/* ---- a whole truncation at each call of who reads ---- */

static int to_cutter[2], from_cutter[2];

static int cut_when_asked(void *arg)
{
	struct lfile l = lopen("f", O_RDWR);
	char c;

	(void)arg;
	while (write(from_cutter[1], "d", 1) == 1 && read(to_cutter[0], &c, 1) == 1 && c == 'c')
		if (plfs_truncate(l.f, cut_to))
			return 1;
	return lclose(&l) ? 1 : 0;
}

static int cut_at_last(enum call call)
{
	char c;

	(void)call;
	if (!--calls_left && (write(to_cutter[1], "c", 1) != 1 || read(from_cutter[0], &c, 1) != 1))
		die("cutter");
	return 0;
}

enum reader { HAS_WRITTEN, OPENS, WATCHES_NOTHING };

/* 2: it came to its end before the truncation. */
static int look_meanwhile(void *arg)
{
	enum reader reader = *(enum reader *)arg;
	bool newly = reader == OPENS;
	struct lfile l = { .fd = -1 };
	bool ok;

	if (!newly) {
		l = lopen("f", reader == HAS_WRITTEN ? O_RDWR : O_RDONLY);
		if (!look_at("first", &l))
			return 1;
	}
	calls_intercept();
	on_call = cut_at_last;
	if (newly)
		l = lopen("f", O_RDONLY);
	ok = look_at("meanwhile", &l) && (calls_left > 0 || look_at("afterwards", &l));
	on_call = NULL;
	ok &= calls_left > 0 || *seen == NEW;
	lclose(&l);
	return !ok ? 1 : calls_left > 0 ? 2 : 0;
}

static void remove_notice(void)
{
	char path[PATH_MAX];

	cr_assert(find_file("notice.", path));
	cr_assert_eq(unlink(path), 0);
}

static void cut_at_each(long to, enum reader reader)
{
	int code = 0;
	long nr = 1;
	pid_t pid;
	char c;

	begin((struct plan){ .options = "", .to = to });
	cr_assert(!pipe(to_cutter) && !pipe(from_cutter));
	for (; !code; nr++) {
		know_file("", to);
		cr_assert_eq(in_child(make_file, ""), 0);
		*seen = OLD;
		calls_left = nr;
		if (reader == WATCHES_NOTHING)
			remove_notice(); /* as if another host had written it */
		pid = start_child(cut_when_asked, NULL);
		cr_assert_eq(read(from_cutter[0], &c, 1), 1);
		code = in_child(look_meanwhile, &reader);
		cr_assert(code == 0 || code == 2, "call %ld", nr);
		cr_assert_eq(write(to_cutter[1], "q", 1), 1);
		cr_assert_eq(wait_child(pid), 0);
		cr_assert_eq(in_child(remove_file, NULL), 0);
	}
	cr_assert_gt(nr, 3);
	scratch_remove();
}

#define MEANWHILE(name, to) \
	Test(crash_cut, name##_at_each_call_of_who_reads) { cut_at_each(to, HAS_WRITTEN); } \
	Test(crash_cut, name##_at_each_call_of_who_opens) { cut_at_each(to, OPENS); } \
	Test(crash_cut, name##_at_each_call_of_who_watches_nothing) { cut_at_each(to, WATCHES_NOTHING); }

MEANWHILE(to_nothing, 0)
MEANWHILE(below_what_is_in_the_stub, 700)
MEANWHILE(into_a_hole, 9000)
MEANWHILE(that_makes_it_longer, 150000)

/* ---- at each call ---- */

#define CHANGE(name, ...) \
	Test(crash_cut, name##_is_there_or_not_whichever_call_was_the_last) { at_each_call((struct plan){ __VA_ARGS__, false }); } \
	Test(crash_cut, name##_is_seen_or_not_at_each_call) { at_each_call((struct plan){ __VA_ARGS__, true }); }

CHANGE(to_nothing, "", "", 0, CUT)
CHANGE(to_nothing_by_open, "", "", 0, OPEN)
CHANGE(below_what_is_in_the_stub, "", "", 700, CUT)
CHANGE(behind_what_is_in_the_stub, "", "", 3500, CUT)
CHANGE(into_a_hole, "", "", 9000, CUT)
CHANGE(that_makes_it_longer, "", "", 150000, CUT)
CHANGE(after_another, "", "c", 2300, CUT)
CHANGE(to_nothing_after_another, "", "c", 0, CUT)
CHANGE(without_bytes_in_the_stub, "{small=0}", "", 700, CUT)
CHANGE(to_nothing_without_bytes_in_the_stub, "{small=0}", "", 0, CUT)
CHANGE(beside_a_writer, "", "w", 700, CUT)
CHANGE(to_nothing_beside_a_writer, "", "w", 0, CUT)
CHANGE(that_makes_it_longer_beside_a_writer, "", "w", 150000, CUT)
CHANGE(a_write_that_claims_it, "", "", 0, CLAIM)

/* Whoever reads waits for a mover who lives. */
Test(crash_cut, a_move_into_its_body_is_seen_by_nobody_whichever_call_was_the_last)
{
	at_each_call((struct plan){ .options = "", .kind = "", .change = MOVE });
}

Test(crash_cut, a_move_into_its_body_after_a_truncation_is_seen_by_nobody_whichever_call_was_the_last)
{
	at_each_call((struct plan){ .options = "", .kind = "c", .change = MOVE });
}
