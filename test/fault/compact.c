/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plfs compact with the 1st, 2nd, 3rd... call of each kind failing, once or from there on. Whatever fails:
 * everybody reads the bytes afterwards, also who has a map of before; check finds no damage; no descriptor is
 * lost; and the next compact has the rest.
 */
#include "test/lib/calls.h"
#include "test/lib/scratch.h"
#include "test/lib/turn.h"

#include <criterion/criterion.h>

#define LEN 300000
#define CALL_ALLOC NR_CALLS /* of memory */
#define TIMEOUT_S 7200      /* with PLFS_FAULTS=all */
#define COARSE 1 /* one of the next n calls behind call n has its turn; with PLFS_FAULTS=all each */

static void map_scratch(void)
{
	scratch_in_memory = true;
	scratch_setup();
}

TestSuite(fault_compact, .init = map_scratch, .fini = scratch_remove, .timeout = TIMEOUT_S);

static enum call bad_call;
static int bad_errno, fired;
static bool persistent;
static unsigned char image[LEN];

static int maybe_fail(enum call call)
{
	if (call != bad_call || --calls_left > 0 || (calls_left < 0 && !persistent))
		return 0;
	fired++;
	return bad_errno;
}

static bool refuse_memory(void)
{
	int saved = errno;
	bool refused = on_call && maybe_fail(CALL_ALLOC);

	errno = saved;
	return refused;
}

/* ---- the file ---- */

struct write {
	off_t off;
	size_t len;
	unsigned round;
	bool kill;
};

static int write_it(void *arg)
{
	const struct write *w = arg;
	struct lfile l = lopen("f", O_RDWR | O_CREAT);

	if (lfill(&l, w->off, w->len, w->round) != (ssize_t)w->len)
		return 1;
	if (w->kill)
		kill(getpid(), SIGKILL);
	return lclose(&l) != 0;
}

static void one(struct write w)
{
	pattern_fill(image + w.off, w.len, (uint64_t)w.off, w.round);
	if (in_child(write_it, &w) != (w.kill ? 256 + SIGKILL : 0))
		die("cannot make the file");
}

enum file { COPIED, WHOLE, KILLED };

static void make_file(enum file file)
{
	one((struct write){ 0, LEN, 1, false });
	if (file == WHOLE)
		one((struct write){ 0, LEN, 2, false });
	else
		one((struct write){ 1000, 100000, 2, file == KILLED });
	one((struct write){ LEN - 100, 100, 3, false });
}

static bool is_right(struct lfile *l)
{
	static unsigned char buf[LEN + 1];

	return plfs_pread(l->f, buf, sizeof(buf), 0) == LEN && !memcmp(buf, image, LEN);
}

/* ---- who has it open ---- */

struct holder {
	int ask[2], answer[2];
	pid_t pid;
};

/* Has a map of before; reads when it is asked. */
static int hold(void *arg)
{
	struct holder *h = arg;
	struct lfile l = lopen("f", O_RDONLY);
	char c = !is_right(&l);

	if (write(h->answer[1], &c, 1) != 1 || read(h->ask[0], &c, 1) != 1)
		return 1;
	return !is_right(&l) || lclose(&l);
}

static bool start_holder(struct holder *h)
{
	char c = 1;

	if (pipe(h->ask) || pipe(h->answer))
		die("pipe");
	h->pid = start_child(hold, h);
	return read(h->answer[0], &c, 1) == 1 && !c;
}

static bool end_holder(struct holder *h)
{
	bool right = write(h->ask[1], "r", 1) == 1 && !wait_child(h->pid);

	for (int i = 0; i < 2; i++) {
		close(h->ask[i]);
		close(h->answer[i]);
	}
	return right;
}

/* ---- afterwards ---- */

static int look(void *arg)
{
	off_t size = stat_size("f");
	struct lfile l = lopen("f", O_RDONLY);

	(void)arg;
	return size != LEN || !is_right(&l) || lclose(&l);
}

static void found(void *arg, const struct plfs_finding *f)
{
	(void)arg;
	if (f->severity != PLFS_NOTED)
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

static int compact(void)
{
	struct plfs_progress watch = { .arg = NULL };
	struct plfs_compact k = { .dry = false };
	char path[PATH_MAX];

	lpath("f", path);
	return plfs_compact(path, &k, &watch);
}

static int compact_again(void *arg)
{
	int ret = compact();

	(void)arg;
	return ret != 0 && ret != 1;
}

/* ---- one fault ---- */

/* 10: a call has failed; 0: none. */
static int compact_with_fault(void *arg)
{
	int fds = count_fds();

	(void)arg;
	be_single_threaded();
	calls_intercept();
	mem_refuses = refuse_memory;
	on_call = maybe_fail;
	compact();
	on_call = NULL;
	if (count_fds() != fds)
		die("%d descriptors, %d before", count_fds(), fds);
	if (look(NULL))
		die("the process reads something else");
	return fired ? 10 : 0;
}

static int remove_it(void *arg)
{
	(void)arg;
	return lunlink("f") != 0;
}

/* 10: a call has failed, and all was well; 0: none. */
static int one_run(enum file file)
{
	struct holder h;
	int code;

	make_file(file);
	if (file != KILLED && !start_holder(&h)) /* that one nobody has open */
		return 1;
	code = in_child(compact_with_fault, NULL);
	if (code != 10 && code)
		return code;
	if (in_child(look, NULL))
		return 2;
	if (file != KILLED && !end_holder(&h))
		return 3;
	if (in_child(check, NULL))
		return 4;
	if (in_child(compact_again, NULL) || in_child(look, NULL) || in_child(check, NULL))
		return 5;
	if (count_files("live.") || count_logs() > (file == WHOLE ? 2 : 1))
		return 6;
	return in_child(remove_it, NULL) || count_files("data.") ? 7 : code;
}

static void sweep(enum file file, enum call call, int err, bool from_there_on)
{
	bool all = getenv("PLFS_FAULTS") && !strcmp(getenv("PLFS_FAULTS"), "all");
	long from = 1;
	int code = 10;

	bad_call = call;
	bad_errno = err;
	persistent = from_there_on;
	while (code == 10) {
		long nr = turn_coarse(&from, COARSE, all);

		calls_left = nr;
		code = one_run(file);
		cr_assert(code == 0 || code == 10, "file %d: %s number %ld failing with %s%s: %d", file,
			  call == CALL_ALLOC ? "allocation" : CALL_NAMES[call], nr,
			  err > 0 ? strerror(err) : "half a transfer", from_there_on ? " from there on" : "",
			  code);
	}
}

static void fail_all(int err, const enum call *calls, size_t nr)
{
	for (enum file file = COPIED; file <= KILLED; file++)
		for (size_t i = 0; i < nr; i++) {
			sweep(file, calls[i], err, false);
			sweep(file, calls[i], err, true);
		}
}

#define FAIL_ALL(err, ...) \
	fail_all(err, (const enum call[]){ __VA_ARGS__ }, sizeof((int[]){ __VA_ARGS__ }) / sizeof(int))

Test(fault_compact, a_full_disk_loses_nothing)
{
	FAIL_ALL(ENOSPC, CALL_PWRITE, CALL_FALLOCATE, CALL_FTRUNCATE, CALL_OPENAT, CALL_FDATASYNC, CALL_FSYNC,
		 CALL_RENAMEAT);
}

Test(fault_compact, a_device_that_fails_loses_nothing)
{
	FAIL_ALL(EIO, CALL_PWRITE, CALL_PREAD, CALL_FALLOCATE, CALL_FTRUNCATE, CALL_OPENAT, CALL_FDATASYNC,
		 CALL_FSYNC, CALL_FSTAT, CALL_FSTATAT, CALL_GETDENTS, CALL_UNLINKAT, CALL_RENAMEAT,
		 CALL_FUTIMENS, CALL_LSEEK);
}

Test(fault_compact, short_transfers_lose_nothing)
{
	FAIL_ALL(CALL_SHORT, CALL_PWRITE, CALL_PREAD);
}

Test(fault_compact, memory_that_is_refused_loses_nothing)
{
	FAIL_ALL(ENOMEM, CALL_ALLOC, CALL_MMAP);
}

Test(fault_compact, a_process_without_descriptors_loses_nothing)
{
	FAIL_ALL(EMFILE, CALL_OPENAT, CALL_OPEN, CALL_FCNTL);
}

Test(fault_compact, a_file_system_without_locks_loses_nothing)
{
	FAIL_ALL(ENOLCK, CALL_FCNTL);
}
