/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What plfs gc removes and, above all, what it leaves: whatever happens to names while it looks at them.
 */
#include "scratch.h"

#include "../core/gc.h"

#include <criterion/criterion.h>
#include <sched.h>
#include <sys/mount.h>

#define LEN 100000
#define HOUR_NS 3600000000000ULL

TestSuite(gc, .init = scratch_setup, .fini = scratch_remove);

/* ---- running it ---- */

static char last_why[256], last_trouble[PATH_MAX];
static enum plfs_gc_fate last_fate;

static void note_item(void *arg, const struct plfs_gc_item *item)
{
	(void)arg;
	last_fate = item->fate;
	snprintf(last_why, sizeof(last_why), "%s", item->why ? item->why : "");
}

static void note_trouble(void *arg, const char *path, const char *why)
{
	(void)arg, (void)why;
	snprintf(last_trouble, sizeof(last_trouble), "%s", path);
}

/* gc of the scratch backend; @gc: the options, and what came of it. */
static int gc(struct plfs_gc *g)
{
	char path[PATH_MAX];

	g->item = note_item;
	g->trouble = note_trouble;
	g->nr_threads = g->nr_threads ? g->nr_threads : 1;
	*last_trouble = *last_why = '\0';
	return plfs_gc(lpath("", path), g);
}

/* Removing whatever can go at once. */
static struct plfs_gc gc_now(void)
{
	struct plfs_gc g = { .age_ns = 0, .later_ns = HOUR_NS };

	cr_assert_eq(gc(&g), 0);
	return g;
}

/* ---- files ---- */

static void make_dir(const char *name)
{
	char path[PATH_MAX];

	lpath(name, path);
	cr_assert_eq(mkdir(path, 0755), 0);
}

static void make(const char *name, unsigned round)
{
	struct lfile l = made(name);

	cr_assert_eq(lfill(&l, 0, LEN, round), LEN);
	lclose(&l);
}

static void assert_whole(const char *name, unsigned round)
{
	struct lfile l = lopen(name, O_RDONLY);

	cr_assert_eq(lcheck(&l, 0, LEN, round), 0, "%s", name);
	lclose(&l);
}

/* As rm does without the library. */
static void orphan(const char *name)
{
	char path[PATH_MAX];

	lpath(name, path);
	cr_assert_eq(unlink(path), 0);
}

/* A file beside or in a container, that was last changed just now. */
static void touch_below(const char *format, const char *dir)
{
	char path[2 * PATH_MAX];

	snprintf(path, sizeof(path), format, dir);
	close(open(path, O_WRONLY | O_CREAT | O_EXCL, 0644));
	cr_assert_eq(access(path, F_OK), 0);
}

static void container_of_file(const char *name, char *dir)
{
	struct lfile l = lopen(name, O_RDONLY);
	struct plfs_info info;

	cr_assert_eq(plfs_get_info(l.f, &info), 0);
	strcpy(dir, info.container);
	lclose(&l);
}

/* ---- what goes ---- */

Test(gc, removes_what_no_file_leads_to_and_nothing_else)
{
	char path[PATH_MAX], other[PATH_MAX];
	struct plfs_gc g = { .age_ns = 0, .later_ns = HOUR_NS, .dry = true, .nr_threads = 3 };

	make_dir("d");
	make_dir("d/e");
	make("a", 1);
	make("d/b", 2);
	make("d/e/c", 3);
	make("d/e/orphan", 4);
	lpath("d/b", path);
	lpath("link", other);
	cr_assert(!link(path, other) && !unlink(path));
	orphan("d/e/orphan");
	cr_assert_eq(count_files("data."), 4);
	cr_assert_eq(gc(&g), 0);
	cr_assert_eq(g.nr_left, 1);
	cr_assert_eq(last_fate, PLFS_GC_WOULD_BE);
	cr_assert_eq(count_files("data."), 4, "a dry run");
	g = gc_now();
	cr_assert(g.nr_removed == 1 && g.nr_left == 0 && g.nr_files == 3 && g.nr_containers == 4);
	cr_assert_gt(g.removed_bytes, LEN);
	cr_assert_eq(count_files("data."), 3);
	assert_whole("a", 1);
	assert_whole("link", 2);
	assert_whole("d/e/c", 3);
	g = gc_now();
	cr_assert_eq(g.nr_removed + g.nr_left, 0);
}

Test(gc, an_unused_backend_has_nothing)
{
	struct plfs_gc g = gc_now();

	cr_assert_eq(g.nr_removed + g.nr_left + g.nr_troubles, 0);
}

Test(gc, leaves_what_has_changed_within_the_age)
{
	struct plfs_gc g = { .age_ns = 24 * HOUR_NS };

	make("a", 1);
	orphan("a");
	cr_assert_eq(gc(&g), 0);
	cr_assert_eq(g.nr_left, 1);
	cr_assert(strstr(last_why, "changed 0 seconds ago"), "%s", last_why);
	g = (struct plfs_gc){ .age_ns = 24 * HOUR_NS, .later_ns = 23 * HOUR_NS };
	cr_assert_eq(gc(&g), 0);
	cr_assert_eq(g.nr_left, 1);
	cr_assert(strstr(last_why, "changed 23 hours ago"), "%s", last_why);
	cr_assert_eq(count_files("data."), 1);
	g = (struct plfs_gc){ .age_ns = 24 * HOUR_NS, .later_ns = 25 * HOUR_NS };
	cr_assert_eq(gc(&g), 0);
	cr_assert_eq(g.nr_removed, 1);
	cr_assert_eq(count_files("data."), 0);
}

Test(gc, removes_the_container_of_a_file_in_its_body_and_what_is_half_removed)
{
	char from[PATH_MAX], to[PATH_MAX + 10], dir[PATH_MAX];
	struct plfs_gc g;
	struct lfile l;

	make("a", 1);
	container_of_file("a", dir);
	snprintf(from, sizeof(from), "%s/.plfs", scratch);
	l = lopen("a", O_RDWR);
	/* As a kill before the removal leaves it. */
	snprintf(to, sizeof(to), "cp -a '%.900s' '%.900s.kept'", dir, dir);
	cr_assert_eq(system(to), 0);
	cr_assert_eq(plfs_in_body(l.f, PLFS_MAP_WRITE), 1);
	lclose(&l);
	snprintf(to, sizeof(to), "%.900s.kept", dir);
	cr_assert_eq(rename(to, dir), 0);
	make("b", 2);
	container_of_file("b", dir);
	orphan("b");
	find_file("index.", to);
	unlink(to);
	g = gc_now();
	cr_assert_eq(g.nr_removed, 2);
	assert_whole("a", 1);
}

Test(gc, old_temporary_files_go_and_young_ones_stay)
{
	char dir[PATH_MAX];
	struct plfs_gc g = { .age_ns = 2 * HOUR_NS };

	make("a", 1);
	container_of_file("a", dir);
	touch_below("%s/index.global.tmp.12345678", dir);
	touch_below("%s/.plfs-flatten.0123456789abcdef", dir);
	touch_below("%s/.plfs/format.tmp.12345678", scratch);
	touch_below("%s/.plfs/.plfs-flatten.0123456789abcdef", scratch);
	touch_below("%s/.plfs/something", scratch);
	cr_assert_eq(gc(&g), 0);
	cr_assert_eq(g.nr_removed + g.nr_left, 0);
	g = (struct plfs_gc){ .age_ns = 2 * HOUR_NS, .later_ns = 3 * HOUR_NS };
	cr_assert_eq(gc(&g), 0);
	cr_assert(g.nr_removed == 4 && g.nr_left == 0);
	cr_assert_eq(count_files("index.global.tmp"), 0);
	cr_assert_eq(count_files(".plfs-flatten"), 0);
	cr_assert_eq(count_files("format"), 1);
	cr_assert_eq(count_files("something"), 1, "nothing that we do not know");
	assert_whole("a", 1);
}

Test(gc, a_temporary_file_among_the_files_is_told_of)
{
	struct plfs_gc g;

	make("a", 1);
	touch_below("%s/.plfs-flatten.0123456789abcdef", scratch);
	g = gc_now();
	cr_assert(g.nr_removed == 0 && g.nr_left == 1);
	cr_assert_eq(count_files(".plfs-flatten"), 1);
}

Test(gc, directories_and_strangers_in_the_container_directory_stay)
{
	char path[PATH_MAX];
	struct plfs_gc g;

	make("a", 1);
	orphan("a");
	snprintf(path, sizeof(path), "%s/.plfs/zz", scratch);
	mkdir(path, 0755);
	snprintf(path, sizeof(path), "%s/.plfs/ab", scratch);
	mkdir(path, 0755);
	strcat(path, "/cd000000000000000000000000000000"); /* not where it would belong */
	mkdir(path, 0755);
	g = gc_now();
	cr_assert_eq(g.nr_removed, 1);
	cr_assert_eq(access(path, F_OK), 0);
}

/* ---- what is not seen ---- */

Test(gc, a_damaged_stub_keeps_all_containers)
{
	char path[PATH_MAX];
	struct plfs_gc g;
	int fd;

	make("a", 1);
	make("b", 2);
	orphan("b");
	lpath("a", path);
	fd = open(path, O_RDWR);
	cr_assert_eq(pwrite(fd, "x", 1, 30), 1);
	close(fd);
	g = gc_now();
	cr_assert(g.nr_removed == 0 && g.nr_troubles == 1 && g.nr_unknown == 2);
	cr_assert_str_eq(last_trouble, "a");
	cr_assert_eq(count_files("data."), 2);
}

Test(gc, a_stub_that_has_lost_its_mark_keeps_its_container)
{
	char path[PATH_MAX];
	struct plfs_gc g;

	make("a", 1);
	lpath("a", path);
	cr_assert_eq(chmod(path, 0644), 0);
	g = gc_now();
	cr_assert_eq(g.nr_removed, 0);
	cr_assert_eq(chmod(path, 01644), 0);
	assert_whole("a", 1);
}

static int gc_as_nobody(void *arg)
{
	struct plfs_gc g = { .later_ns = HOUR_NS };

	(void)arg;
	if (setegid(65534) || seteuid(65534))
		return 2;
	return gc(&g) || g.nr_removed || g.nr_left || g.nr_troubles != 1 || strcmp(last_trouble, "closed");
}

Test(gc, a_directory_that_may_not_be_listed_keeps_all_containers)
{
	char command[PATH_MAX];

	if (geteuid())
		cr_skip_test("only root can become somebody else");
	make_dir("closed");
	make("closed/a", 1);
	make("b", 2);
	orphan("b");
	snprintf(command, sizeof(command), "chown -R 65534:65534 %s; chown 0:0 %s/closed; chmod 700 %s/closed", scratch, scratch,
		 scratch);
	cr_assert_eq(system(command), 0);
	cr_assert_eq(in_child(gc_as_nobody, NULL), 0);
	cr_assert_eq(count_files("data."), 2);
}

static bool may_mount;

static void mounted_setup(void)
{
	may_mount = !unshare(CLONE_NEWNS) && !mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL);
	scratch_setup();
}

TestSuite(gc_mounted, .init = mounted_setup, .fini = scratch_remove);

Test(gc_mounted, what_is_mounted_below_the_backend_keeps_all_containers)
{
	char path[PATH_MAX];
	struct plfs_gc g;

	if (!may_mount)
		cr_skip_test("needs a mount namespace of its own");
	make_dir("m");
	make("m/a", 1);
	make("b", 2);
	orphan("b");
	lpath("m", path);
	cr_assert_eq(mount("none", path, "tmpfs", 0, NULL), 0);
	g = gc_now();
	cr_assert(g.nr_removed == 0 && g.nr_troubles == 1);
	cr_assert_str_eq(last_trouble, "m");
	cr_assert_eq(umount(path), 0);
	g = gc_now();
	cr_assert_eq(g.nr_removed, 1);
	assert_whole("m/a", 1);
}

/* ---- links ---- */

Test(gc, no_symbolic_link_in_the_container_directory_leads_out)
{
	char precious[sizeof(scratch) + 20], link_name[PATH_MAX], dir[PATH_MAX];
	struct plfs_gc g;

	make("a", 1);
	container_of_file("a", dir);
	orphan("a");
	snprintf(precious, sizeof(precious), "%s/precious", scratch);
	mkdir(precious, 0755);
	touch_below("%s/file", precious);
	touch_below("%s/x.tmp.x", precious);
	snprintf(link_name, sizeof(link_name), "%.1000s/hostdir.99", dir); /* in a container that goes */
	cr_assert_eq(symlink(precious, link_name), 0);
	snprintf(link_name, sizeof(link_name), "%s/.plfs/77", scratch); /* in place of a directory */
	cr_assert_eq(symlink(precious, link_name), 0);
	snprintf(dir, sizeof(dir), "%s/77000000000000000000000000000000", precious);
	mkdir(dir, 0755);
	snprintf(link_name, sizeof(link_name), "%s/.plfs/78", scratch);
	mkdir(link_name, 0755);
	strcat(link_name, "/78000000000000000000000000000000"); /* in place of a container */
	cr_assert_eq(symlink(precious, link_name), 0);
	g = gc_now();
	cr_assert_eq(g.nr_removed, 1);
	cr_assert_eq(access(dir, F_OK), 0);
	cr_assert_eq(count_files("file"), 1);
	cr_assert_eq(count_files("x.tmp.x"), 1);
}

/* ---- files in use ---- */

static int pipes[4];

/* Has the file open, tells, and looks at it when it is told to. */
static int hold_open(void *arg)
{
	struct lfile l = lopen(arg, O_RDWR);
	char c;
	int ret;

	if (write(pipes[1], "o", 1) != 1 || read(pipes[2], &c, 1) != 1)
		return 2;
	ret = lcheck(&l, 0, LEN, 1);
	if (!ret && lfill(&l, LEN, LEN, 1) != LEN)
		ret = 3;
	if (!ret)
		ret = lcheck(&l, 0, 2 * LEN, 1);
	return lclose(&l) ? 4 : ret;
}

static pid_t start_holder(const char *name)
{
	pid_t pid;
	char c;

	cr_assert(!pipe(pipes) && !pipe(pipes + 2));
	pid = start_child(hold_open, (void *)name);
	cr_assert_eq(read(pipes[0], &c, 1), 1);
	return pid;
}

static int end_holder(pid_t pid)
{
	cr_assert_eq(write(pipes[3], "g", 1), 1);
	return wait_child(pid);
}

Test(gc, a_file_that_is_open_without_a_name_keeps_its_container)
{
	struct plfs_gc g;
	pid_t pid;

	make("a", 1);
	pid = start_holder("a");
	orphan("a");
	g = gc_now();
	cr_assert_eq(g.nr_removed, 0);
	cr_assert_eq(end_holder(pid), 0);
	cr_assert_eq(count_files("data."), 0, "he removes it");
}

/* Where what others have open may not be looked at, a live file tells of its owner. */
Test(gc, a_process_is_known_by_what_it_maps)
{
	struct lfile l = made("a");
	char path[PATH_MAX];

	cr_assert_eq(lfill(&l, 0, 100, 1), 100);
	cr_assert(find_file("live.", path));
	cr_assert(gc_process_has((unsigned long)getpid(), strrchr(path, '/') + 1));
	cr_assert(!gc_process_has((unsigned long)getpid(), "live.nowhere.1.1"));
	cr_assert(!gc_process_has((unsigned long)getppid(), strrchr(path, '/') + 1));
	lclose(&l);
}

static int (*real_mkdirat)(int dirfd, const char *path, mode_t mode);
static struct plfs_gc in_claim;

static int gc_after_mkdir(int dirfd, const char *path, mode_t mode)
{
	int ret = real_mkdirat(dirfd, path, mode);

	if (!ret && strstr(path, "hostdir.")) {
		sys.mkdirat = real_mkdirat;
		in_claim = gc_now();
	}
	return ret;
}

Test(gc, a_container_that_goes_while_it_is_claimed_is_made_anew)
{
	struct lfile l = made("a");

	real_mkdirat = sys.mkdirat;
	sys.mkdirat = gc_after_mkdir;
	cr_assert_eq(lfill(&l, 0, LEN, 1), LEN);
	lclose(&l);
	cr_assert_eq(in_claim.nr_removed, 1, "with the age 0, and an hour later");
	assert_whole("a", 1);
}

static int (*real_unlinkat)(int dirfd, const char *path, int flags);
static char hostdir[PATH_MAX];

static int write_before_rmdir(int dirfd, const char *path, int flags)
{
	if (flags & AT_REMOVEDIR && *hostdir) {
		touch_below("%s/data.just.1.1", hostdir);
		*hostdir = '\0';
	}
	return real_unlinkat(dirfd, path, flags);
}

Test(gc, an_empty_container_that_gets_a_log_meanwhile_stays)
{
	struct plfs_gc g;

	make("a", 1);
	cr_assert_eq(lunlink("a"), 0);
	snprintf(hostdir, sizeof(hostdir), "%s/.plfs/ab", scratch);
	mkdir(hostdir, 0755);
	strcat(hostdir, "/ab000000000000000000000000000000");
	mkdir(hostdir, 0755);
	strcat(hostdir, "/hostdir.1");
	mkdir(hostdir, 0755);
	real_unlinkat = sys.unlinkat;
	sys.unlinkat = write_before_rmdir;
	g = gc_now();
	sys.unlinkat = real_unlinkat;
	cr_assert(g.nr_removed == 0 && g.nr_failed == 1, "%s", last_why);
	cr_assert_eq(count_files("data.just"), 1);
}

Test(gc, the_stub_of_another_that_an_exchange_left_in_a_container_keeps_both)
{
	char path[PATH_MAX], dir[PATH_MAX], to[PATH_MAX + 50];
	struct plfs_gc g;

	make("a", 1);
	make("b", 2);
	container_of_file("a", dir);
	lpath("b", path);
	snprintf(to, sizeof(to), "%s/.plfs-flatten.0123456789abcdef", dir);
	cr_assert_eq(rename(path, to), 0);
	orphan("a");
	g = gc_now();
	cr_assert(g.nr_removed == 0 && g.nr_left == 1 && strstr(last_why, "stub"));
	cr_assert_eq(rename(to, path), 0);
	assert_whole("b", 2);
	g = gc_now();
	cr_assert_eq(g.nr_removed, 1);
	assert_whole("b", 2);
}

/* ---- jobs that go on ---- */

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
		if (e->fts_info == FTS_F && plfs_maybe_stub(e->fts_statp->st_mode) && strcmp(e->fts_name, "format"))
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

/* ---- names that change while they are listed ---- */

static ssize_t (*real_getdents64)(int fd, void *buf, size_t len);
static char places[2][PATH_MAX];
static int at, moves_left, nr_moves;

/*
 * The worst that a file can do: whenever one of two directories has been listed, and it was not there, it goes there before the other is
 * listed.
 */
static ssize_t dodge(int fd, void *buf, size_t len)
{
	ssize_t n = real_getdents64(fd, buf, len);
	char link_name[64], name[PATH_MAX] = "";
	int other = 1 - at;

	snprintf(link_name, sizeof(link_name), "/proc/self/fd/%d", fd);
	if (n || !moves_left || readlink(link_name, name, sizeof(name) - 1) < 0)
		return n;
	if (strlen(name) < strlen(places[other]) && !strncmp(name, places[other], strlen(name)) &&
	    !strcmp(places[other] + strlen(name), "/file")) {
		moves_left--;
		nr_moves++;
		if (rename(places[at], places[other]))
			die("rename");
		at = other;
	}
	return n;
}

static struct plfs_gc gc_while_dodging(int moves)
{
	struct plfs_gc g;

	moves_left = moves;
	nr_moves = 0;
	real_getdents64 = sys.getdents64;
	sys.getdents64 = dodge;
	g = gc_now();
	sys.getdents64 = real_getdents64;
	return g;
}

static void make_dodger(void)
{
	make_dir("one");
	make_dir("two");
	make("one/file", 1);
	make("orphan", 2);
	orphan("orphan");
	lpath("one/file", places[0]);
	lpath("two/file", places[1]);
}

Test(gc, a_file_that_moves_while_names_are_listed_keeps_its_container, .timeout = 60)
{
	int dodged = 0;

	make_dodger();
	for (int moves = 1; moves <= 5; moves++) {
		struct plfs_gc g = gc_while_dodging(moves);

		dodged += nr_moves;
		cr_assert_eq(g.nr_removed, moves == 1, "the orphan, once");
		assert_whole(at ? "two/file" : "one/file", 1);
	}
	cr_assert_geq(dodged, 5);
}

static int no_sleep(const struct timespec *want, struct timespec *left)
{
	(void)want, (void)left;
	return 0;
}

Test(gc, where_names_never_rest_all_containers_stay, .timeout = 60)
{
	struct plfs_gc g;

	make_dodger();
	sys.nanosleep = no_sleep;
	g = gc_while_dodging(1000);
	cr_assert_gt(nr_moves, 5);
	cr_assert(g.nr_removed == 0 && g.nr_left >= 1 && strstr(last_why, "names kept changing"));
	assert_whole(at ? "two/file" : "one/file", 1);
}

static int disappear_left;
static char from_dir[PATH_MAX], to_dir[PATH_MAX];

/* A directory goes from where nobody has looked yet to where all has been looked at. */
static ssize_t move_dir(int fd, void *buf, size_t len)
{
	ssize_t n = real_getdents64(fd, buf, len);
	char link_name[64], name[PATH_MAX] = "";

	snprintf(link_name, sizeof(link_name), "/proc/self/fd/%d", fd);
	if (!n && disappear_left && readlink(link_name, name, sizeof(name) - 1) > 0 && !strcmp(name, to_dir)) {
		disappear_left = 0;
		strcat(name, "/sub");
		if (rename(from_dir, name))
			die("rename");
	}
	return n;
}

Test(gc, a_directory_that_moves_while_names_are_listed_keeps_the_containers_below, .timeout = 60)
{
	struct plfs_gc g;

	make_dir("one");
	make_dir("two");
	for (int turn = 0; turn < 2; turn++) { /* either is listed first */
		char name[40];

		snprintf(name, sizeof(name), "%s/sub", turn ? "two" : "one");
		if (!turn) {
			make_dir(name);
			make("one/sub/file", 1);
		}
		lpath(name, from_dir);
		lpath(turn ? "one" : "two", to_dir);
		disappear_left = 1;
		real_getdents64 = sys.getdents64;
		sys.getdents64 = move_dir;
		g = gc_now();
		sys.getdents64 = real_getdents64;
		cr_assert_eq(g.nr_removed, 0);
		cr_assert(!disappear_left);
		assert_whole(turn ? "one/sub/file" : "two/sub/file", 1);
	}
}
