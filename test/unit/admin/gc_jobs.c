/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plfs gc again and again beside processes that create, write, rename, link, replace and remove files: none
 * of them loses a byte, and in the end nothing is left over.
 */
#include "test/lib/gc.h"

TestSuite(gc, .init = scratch_setup, .fini = scratch_remove);

#define JOBS 3
#define JOB_FILES 6
#define DIRS 3

/* What a job knows of a file of its own. */
struct job_file {
	unsigned round; /* 0: there is none */
	char name[40], link[40];
};

static unsigned job_random, job_rounds;

static unsigned rnd(unsigned below)
{
	job_random = job_random * 1103515245 + 12345;
	return (job_random >> 16) % below;
}

static void any_name(char *name, int job, const char *what)
{
	static unsigned nr;

	snprintf(name, 40, "d%u/%s.%d.%u", rnd(DIRS), what, job, ++nr);
}

static bool job_check(const struct job_file *f)
{
	struct lfile l = lopen(f->name, O_RDONLY);
	bool ok = !lcheck(&l, 0, 2000, f->round);

	return !lclose(&l) && ok;
}

static bool job_write(struct job_file *f, int flags)
{
	struct lfile l = lopen(f->name, O_RDWR | flags);
	bool ok = lfill(&l, 0, 2000, ++job_rounds) == 2000;

	f->round = job_rounds;
	return !lclose(&l) && ok;
}

static bool job_unlink(struct job_file *f)
{
	struct lfile l = { .fd = -1 };
	bool keep = rnd(2), ok = true;

	if (keep)
		l = lopen(f->name, O_RDONLY);
	if (*f->link)
		ok = !lunlink(f->link);
	ok = !lunlink(f->name) && ok;
	if (keep) {
		usleep(rnd(30000));
		ok = !lcheck(&l, 0, 2000, f->round) && !lclose(&l) && ok;
	}
	memset(f, 0, sizeof(*f));
	return ok;
}

static bool job_rename(struct job_file *f, int job)
{
	char to[40];
	int ret;

	any_name(to, job, "f");
	ret = lrename(f->name, to);
	strcpy(f->name, to);
	return !ret;
}

/* Another name, then only that. */
static bool job_link(struct job_file *f, int job)
{
	char from[PATH_MAX], to[PATH_MAX];

	if (*f->link) {
		bool ok = !lunlink(f->name);

		strcpy(f->name, f->link);
		*f->link = '\0';
		return ok;
	}
	any_name(f->link, job, "l");
	lpath(f->name, from);
	lpath(f->link, to);
	return !link(from, to);
}

static bool job_step(struct job_file *f, int job)
{
	if (!f->round) {
		any_name(f->name, job, "f");
		return job_write(f, O_CREAT | O_EXCL);
	}
	switch (rnd(12)) {
	case 0:
		return job_write(f, O_TRUNC);
	case 1:
		return job_write(f, 0);
	case 2:
		return job_unlink(f);
	case 3:
		return job_link(f, job);
	case 4:
		return job_check(f);
	default:
		return job_rename(f, job);
	}
}

/* Stubs, each once, however many names it has. */
static unsigned count_inodes(void)
{
	char *paths[] = { scratch, NULL };
	FTS *fts = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	double n = 0;

	for (FTSENT *e = fts_read(fts); e; e = fts_read(fts))
		if (e->fts_info == FTS_F && plfs_maybe_stub(e->fts_statp->st_mode) &&
		    strcmp(e->fts_name, "format"))
			n += 1.0 / (double)e->fts_statp->st_nlink;
	fts_close(fts);
	return (unsigned)(n + 0.5);
}

static volatile bool *jobs_end;

static int do_job(void *arg)
{
	struct job_file files[JOB_FILES] = { 0 };
	int job = *(int *)arg;

	job_random = (unsigned)job + (unsigned)time(NULL) * 10;
	job_rounds = (unsigned)job * 1000000;
	while (!*jobs_end) {
		struct job_file *f = &files[rnd(JOB_FILES)];

		if (!job_step(f, job)) {
			fprintf(stderr, "job %d: %s failed\n", job, f->name);
			return 1;
		}
		if (!rnd(8)) /* or the names never rest */
			usleep(50000 + rnd(100000));
	}
	for (int i = 0; i < JOB_FILES; i++)
		if (files[i].round && !job_check(&files[i]))
			return 2;
	return 0;
}

static unsigned seconds(void)
{
	const char *scale = getenv("SCALE");

	return 4 * (unsigned)(scale && atoi(scale) > 0 ? atoi(scale) : 1);
}

Test(gc, loses_nothing_of_jobs_that_go_on, .timeout = 4000)
{
	time_t end = time(NULL) + seconds();
	unsigned planted = 0, removed = 0, runs = 0;
	int numbers[JOBS];
	pid_t pids[JOBS];
	struct plfs_gc g;

	jobs_end = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < DIRS; i++)
		make_dir((char[]){ 'd', (char)('0' + i), 0 });
	for (int i = 0; i < JOBS; i++) {
		numbers[i] = i + 1;
		pids[i] = start_child(do_job, &numbers[i]);
	}
	while (time(NULL) < end) {
		make("orphan", 1);
		orphan("orphan");
		planted++;
		g = (struct plfs_gc){ .nr_threads = 1 + runs++ % 3 };
		cr_assert_eq(gc(&g), 0);
		cr_assert_eq(g.nr_troubles, 0, "%s", last_trouble);
		removed += (unsigned)g.nr_removed;
	}
	*jobs_end = true;
	for (int i = 0; i < JOBS; i++)
		cr_assert_eq(wait_child(pids[i]), 0);
	cr_assert_geq(removed, planted / 4, "%u of %u orphans went in %u runs", removed, planted, runs);
	g = gc_now();
	cr_assert_eq(g.nr_left + g.nr_troubles, 0);
	cr_assert_eq(g.nr_containers - g.nr_removed, count_inodes(), "each has its file");
	fprintf(stderr, "%u runs removed %u of %u orphans\n", runs, removed, planted);
}
