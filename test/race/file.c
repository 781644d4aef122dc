/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many threads on one file and on many: writes, reads, appends, truncations, opens, closes, forks, unlinks,
 * all at once, for the thread sanitizer. A plain program, because Criterion's workers cannot run under that.
 * Exits 0, or says what went wrong.
 */
#include "test/lib/scratch.h"

#include <pthread.h>

#define NR_THREADS 32
#define OWN_LEN 20000
#define APPEND_LEN 24

static pthread_barrier_t barrier;
static int rounds = 60;

static void check(bool ok, const char *what, int no)
{
	errno = 0;
	if (!ok)
		die("race_file: thread %d: %s", no, what);
}

/* Each thread has a part of "shared" to itself, through descriptions of its own and through a common one. */
static struct lfile common;

static void *on_one_file(void *arg)
{
	int no = *(int *)arg;
	off_t base = (off_t)no * OWN_LEN;
	struct lfile own = lopen("shared", O_RDWR | O_CREAT);

	pthread_barrier_wait(&barrier);
	for (int i = 0; i < rounds; i++) {
		struct lfile *l = i % 3 ? &own : &common;
		size_t len = i % 17 == 5 ? OWN_LEN : 50 + (size_t)i % 40;
		off_t off = base + (len == OWN_LEN ? 0 : i * 97 % (OWN_LEN - 100));

		check(lfill(l, off, len, (unsigned)i) == (ssize_t)len, "short write", no);
		check(!lcheck(i % 2 ? &own : &common, off, len, (unsigned)i), "wrong bytes", no);
		check(plfs_size(l->f) >= off + (off_t)len, "file too small", no);
		if (i % 11 == 3)
			check(!plfs_commit(l->f), "commit", no);
		if (i % 23 == 7)
			check(!plfs_sync(l->f), "sync", no);
		if (i % 13 == 4)
			check(!plfs_refresh(l->f), "refresh", no);
		if (i % 7 == 2) {
			lclose(&own);
			own = lopen("shared", O_RDWR);
		}
	}
	check(lfill(&own, base, OWN_LEN, 1000) == OWN_LEN, "short write", no);
	lclose(&own);
	return NULL;
}

static void *appending(void *arg)
{
	int no = *(int *)arg;
	struct lfile own = lopen("log", O_RDWR | O_CREAT | O_APPEND);
	char line[64];

	pthread_barrier_wait(&barrier);
	for (int i = 0; i < rounds; i++) {
		off_t end;

		snprintf(line, sizeof(line), "%04d:%06d:xxxxxxxxxxx\n", no, i);
		check(lappend(&own, line, APPEND_LEN, &end) == APPEND_LEN, "short append", no);
		check(end % APPEND_LEN == 0, "torn append", no);
		check(plfs_pread(own.f, line, APPEND_LEN, end - APPEND_LEN) == APPEND_LEN, "short read", no);
		check(atoi(line) == no && atoi(line + 5) == i, "somebody else's line", no);
	}
	lclose(&own);
	return NULL;
}

/* Whatever they find is one of the states that the file had; nothing breaks. */
static void *truncating(void *arg)
{
	int no = *(int *)arg;
	char name[8], buf[3000];

	pthread_barrier_wait(&barrier);
	for (int i = 0; i < rounds; i++) {
		struct lfile l;

		snprintf(name, sizeof(name), "t%d", i % 3);
		l = lopen(name, O_RDWR | O_CREAT);
		check(lfill(&l, i * 31 % 5000, 300, 1) == 300, "short write", no);
		check(plfs_pread(l.f, buf, sizeof(buf), i * 57 % 5000) >= 0, "unreadable", no);
		if (i % 5 == no % 5)
			check(!plfs_truncate(l.f, i % 2 ? 0 : 1000), "truncate", no);
		check(plfs_size(l.f) >= 0, "no size", no);
		if (i % 9 == no % 9)
			lunlink(name);
		if (i % 9 == (no + 1) % 9)
			lrename(name, "t0");
		lclose(&l);
	}
	return NULL;
}

/*
 * What several processes wrote in turns, read by several threads with few descriptors, while one of them has
 * the map made anew.
 */
enum { NR_PARTS = 24, PART_BLOCKS = 40, BLOCK_LEN = 3000 };

static int write_part(void *arg)
{
	struct lfile l = lopen("parts", O_RDWR | O_CREAT);

	for (int i = 0; i < PART_BLOCKS; i++)
		if (lfill(&l, (off_t)(i * NR_PARTS + *(int *)arg) * BLOCK_LEN, BLOCK_LEN, 1) != BLOCK_LEN)
			return 1;
	lclose(&l);
	return 0;
}

static void *reading(void *arg)
{
	static const size_t lens[] = { 100, 2000, 4096, 50000, 300000 };
	const long size = (long)NR_PARTS * PART_BLOCKS * BLOCK_LEN;
	struct lfile own = lopen("parts", O_RDWR);
	unsigned seed = (unsigned)*(int *)arg;

	pthread_barrier_wait(&barrier);
	for (int i = 0; i < 4 * rounds; i++) {
		size_t len = lens[i % 5];
		off_t off = rand_r(&seed) % (size - (long)len);

		check(!lcheck(&own, off, len, 1), "wrong bytes of others", *(int *)arg);
		if (*(int *)arg == 0 && i % 10 == 0) {
			check(lfill(&own, off, len, 1) == (ssize_t)len, "short write", 0);
			check(!plfs_refresh(own.f), "refresh", 0);
		}
		if (*(int *)arg == 1 && i % 50 == 0)
			plfs_exec_prepare();
	}
	lclose(&own);
	return NULL;
}

static void *stating(void *arg)
{
	char path[PATH_MAX];
	struct stat st;

	pthread_barrier_wait(&barrier);
	lpath("shared", path);
	for (int i = 0; i < 2 * rounds; i++) {
		check(!sys.stat(path, &st), "stat", *(int *)arg);
		plfs_fix_stat(&st, NULL);
		check(st.st_size >= 0, "size", *(int *)arg);
		if (i % 20 == 0)
			plfs_sync_all();
		if (i % 20 == 10)
			check(!plfs_chmod(AT_FDCWD, path, i % 40 == 10 ? 0600 : 0644, 0), "chmod",
			      *(int *)arg);
		plfs_before_utimes(AT_FDCWD, path, 0);
	}
	return NULL;
}

static int life_of_a_child(void *arg)
{
	(void)arg;
	if (lfill(&common, NR_THREADS * OWN_LEN, 1000, 5) != 1000 ||
	    lcheck(&common, NR_THREADS * OWN_LEN, 1000, 5))
		return 1;
	return 0;
}

static void *forking(void *arg)
{
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < 6; i++)
		check(in_child(life_of_a_child, NULL) == 0, "a child failed", *(int *)arg);
	return NULL;
}

static void run(void *(*const *fns)(void *), int nr)
{
	pthread_t thread[NR_THREADS + 2];
	int no[NR_THREADS + 2];

	pthread_barrier_init(&barrier, NULL, (unsigned)nr);
	for (int i = 0; i < nr; i++) {
		no[i] = i;
		check(!pthread_create(&thread[i], NULL, fns[i], &no[i]), "no thread", i);
	}
	for (int i = 0; i < nr; i++)
		pthread_join(thread[i], NULL);
	pthread_barrier_destroy(&barrier);
}

static void few_descriptors(void)
{
	struct rlimit limit;

	check(!getrlimit(RLIMIT_NOFILE, &limit), "getrlimit", -1);
	limit.rlim_cur = 128;
	check(!setrlimit(RLIMIT_NOFILE, &limit), "setrlimit", -1);
}

static void check_lines(void)
{
	struct lfile l = lopen("log", O_RDONLY);
	int next[NR_THREADS + 2] = { 0 };
	char line[APPEND_LEN + 1] = "";
	off_t size = plfs_size(l.f);

	for (off_t off = 0; off < size; off += APPEND_LEN) {
		int no;

		check(plfs_pread(l.f, line, APPEND_LEN, off) == APPEND_LEN, "short read of the log", 0);
		no = atoi(line);
		check(no >= 0 && no < NR_THREADS + 2 && atoi(line + 5) == next[no]++, "a line is lost", no);
	}
	lclose(&l);
}

int main(int argc, char **argv)
{
	void *(*fns[NR_THREADS + 2])(void *);
	int fds;

	if (argc > 1)
		rounds = atoi(argv[1]);
	scratch_setup();
	fds = count_fds();
	common = lopen("shared", O_RDWR | O_CREAT);

	for (int i = 0; i < NR_THREADS; i++)
		fns[i] = on_one_file;
	fns[NR_THREADS] = stating;
	fns[NR_THREADS + 1] = forking;
	run(fns, NR_THREADS + 2);
	check(!lcheck(&common, 0, (size_t)NR_THREADS * OWN_LEN, 1000), "wrong bytes at the end", -1);

	for (int i = 0; i < NR_THREADS; i++)
		fns[i] = i % 2 ? appending : truncating;
	fns[NR_THREADS] = stating;
	run(fns, NR_THREADS + 1);
	check_lines();

	for (int i = 0; i < NR_PARTS; i++)
		check(!in_child(write_part, &i), "a child failed", i);
	few_descriptors();
	for (int i = 0; i < NR_THREADS; i++)
		fns[i] = reading;
	fns[NR_THREADS] = forking;
	run(fns, NR_THREADS + 1);

	lclose(&common);
	check(count_fds() == fds, "descriptors are lost", -1);
	common = lopen("shared", O_RDONLY);
	check(!lcheck(&common, 0, (size_t)NR_THREADS * OWN_LEN, 1000), "wrong bytes after close", -1);
	lclose(&common);
	scratch_remove();
	return 0;
}
