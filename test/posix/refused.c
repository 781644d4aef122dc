/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls that may be refused on a log-structured file: each is served with the right bytes or fails with an
 * errno that makes programs fall back, and leaves the file alone. What is printed is the same either way.
 */
#include "posix.h"
#include <ftw.h>
#include <fts.h>
#include <glob.h>
#include <limits.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/loop.h>
#include <pthread.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <wchar.h>

static const char text[] = "0123456789abcdefghijklmnopqrstuvwxyz";

static int given(const char *name)
{
	make(name, text);
	return rw(name);
}

/* One of these says "do it another way". */
static bool falls_back(int err)
{
	return err == EINVAL || err == ENOSYS || err == EOPNOTSUPP || err == EXDEV || err == ENODEV ||
	       err == EBADF || err == ENOTTY;
}

static void outcome(const char *what, bool served, bool right, int err)
{
	if (served ? right : falls_back(err))
		say("%s: served or refused\n", what);
	else
		say("%s: %s %s\n", what, served ? "wrong bytes" : "wrong errno",
		    served ? "" : strerrorname_np(err));
}

CASE(lease)
{
	char buf[8] = "";
	int fd = given("f"), r;

	close(fd);
	fd = open(at("f"), O_RDONLY);
	errno = 0;
	r = fcntl(fd, F_SETLEASE, F_RDLCK);
	outcome("lease", r == 0, fcntl(fd, F_GETLEASE) == F_RDLCK, errno);
	fcntl(fd, F_SETLEASE, F_UNLCK);
	T(read(fd, buf, 4));
	say("%s\n", buf);
}

CASE(a_stream_with_an_encoding)
{
	FILE *fp;

	close(given("f"));
	errno = 0;
	fp = fopen(at("f"), "r,ccs=UTF-8");
	outcome("fopen", fp, fp && fgetwc(fp) == L'0', errno);
	show("f");
}

CASE(a_stream_of_another_file_reopened)
{
	FILE *fp = fopen("/dev/null", "r");

	close(given("f"));
	errno = 0;
	fp = freopen(at("f"), "r", fp);
	outcome("freopen", fp, fp && fgetc(fp) == '0', errno);
	show("f");
}

/* A refusal makes no file, and closes the stream as any failure does. */
CASE(a_stream_of_another_file_reopened_on_a_new_one)
{
	FILE *fp = fopen("/dev/null", "w"), *again;
	int fd = fileno(fp), err;

	errno = 0;
	again = freopen(at("f"), "w", fp);
	err = errno;
	V(!again == (access(at("f"), F_OK) != 0));
	outcome("freopen", again, again && fputs(text, again) >= 0 && !fclose(again), err);
	V(fcntl(fd, F_GETFD) == -1);
	unlink(at("f"));
	V(freopen(at("none/f"), "w", fopen("/dev/null", "w")) == NULL && errno == ENOENT);
	symlink("g", at("l"));
	fp = freopen(at("l"), "w", fopen("/dev/null", "w"));
	V(fp && fputs(text, fp) >= 0 && !fclose(fp));
	show("g");
}

CASE(pages_remapped)
{
	int fd = rw("f"), r;
	char *m;

	T(ftruncate(fd, 3 * 4096));
	T(pwrite(fd, "third", 5, 2 * 4096));
	m = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	r = remap_file_pages(m, 4096, 0, 2, 0);
	outcome("remap_file_pages", r == 0, !memcmp(m, "third", 5), errno);
	show("f");
}

/* Between the question for a free device and its use another test may have taken it. */
static int attach_free_loop(int control, int fd, int *loop)
{
	char name[32];
	int r;

	do {
		snprintf(name, sizeof name, "/dev/loop%d", ioctl(control, LOOP_CTL_GET_FREE));
		*loop = open(name, O_RDWR);
		errno = EBADF; /* where there is none */
		r = *loop < 0 ? -1 : ioctl(*loop, LOOP_SET_FD, fd);
	} while (r && errno == EBUSY && !close(*loop));
	return r;
}

CASE(loop_device)
{
	int control = open("/dev/loop-control", O_RDWR), fd = given("f"), loop, r;

	T(ftruncate(fd, 8192));
	r = attach_free_loop(control, fd, &loop);
	outcome("loop device", r == 0, true, errno);
	if (!r)
		ioctl(loop, LOOP_CLR_FD, 0);
	show("f");
}

CASE(private_map)
{
	int fd = given("f");
	char *p = mmap(NULL, sizeof text, PROT_READ, MAP_PRIVATE, fd, 0);

	outcome("private", p != MAP_FAILED, p != MAP_FAILED && !strcmp(p, text), errno);
	p = mmap(NULL, sizeof text, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	outcome("private, written", p != MAP_FAILED,
		p != MAP_FAILED && (p[0] = 'X') && !strcmp(p + 1, text + 1), errno);
	show("f");
}

CASE(shared_map)
{
	int fd = given("f");
	char *p = mmap(NULL, sizeof text, PROT_READ, MAP_SHARED, fd, 0);

	outcome("shared", p != MAP_FAILED, p != MAP_FAILED && !strcmp(p, text), errno);
	p = mmap(NULL, sizeof text, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED) {
		outcome("shared, written", false, false, errno);
		pwrite(fd, "X", 1, 3);
	} else {
		p[3] = 'X';
		msync(p, sizeof text, MS_SYNC);
		outcome("shared, written", true, !strncmp(p, "012X", 4), 0);
	}
	show("f");
}

static void *take_apart(void *arg)
{
	int fd = *(int *)arg, n = unshare(CLONE_FILES);

	outcome("descriptors of a thread's own", n >= 0, true, errno);
	if (n >= 0)
		close(fd);
	return NULL;
}

CASE(a_thread_with_descriptors_of_its_own)
{
	int fd = given("f");
	char buf[64] = "";
	pthread_t thread;

	pthread_create(&thread, NULL, take_apart, &fd);
	pthread_join(thread, NULL);
	T(pread(fd, buf, 36, 0));
	say("%s\n", buf);
	T(pwrite(fd, "main", 4, 0));
	T(close(fd));
	show("f");
}

CASE(clones_and_extents)
{
	int in = given("in"), out = rw("out");
	struct {
		struct fiemap map;
		struct fiemap_extent extents[4];
	} u = {.map = {.fm_length = 36, .fm_extent_count = 4}};
	struct file_clone_range range = {.src_fd = in};
	char buf[64] = "";
	int n;

	n = ioctl(out, FICLONE, in);
	outcome("clone", n >= 0, pread(out, buf, 36, 0) == 36 && !memcmp(buf, text, 36), errno);
	n = ioctl(out, FICLONERANGE, &range);
	outcome("clone of a range", n >= 0, pread(out, buf, 36, 0) == 36 && !memcmp(buf, text, 36), errno);
	n = ioctl(in, FS_IOC_FIEMAP, &u);
	outcome("extents", n >= 0, true, errno);
	unlink(at("out"));
	show("in");
}

CASE(ranges_taken_out_and_put_in)
{
	int fd = given("f"), ret;
	struct stat st;

	ret = fallocate(fd, FALLOC_FL_COLLAPSE_RANGE, 0, 4096);
	outcome("collapse", ret == 0, false, errno);
	ret = fallocate(fd, FALLOC_FL_INSERT_RANGE, 0, 1 << 16);
	fstat(fd, &st);
	outcome("insert", ret == 0, st.st_size == (1 << 16) + 36, errno);
	if (ret)
		say("%s", st.st_size == 36 ? "" : "refused, but changed\n");
	unlink(at("f"));
}

CASE(flags_and_extents)
{
	int fd = given("f"), flags = 0, ret;

	ret = ioctl(fd, FS_IOC_GETFLAGS, &flags);
	outcome("flags", ret == 0, true, errno);
	ret = ioctl(fd, FIONREAD, &flags);
	outcome("bytes to read", ret == 0, flags == 36, errno);
}

static int visited;
static int visit(const char *path, const struct stat *st, int flag, struct FTW *f)
{
	(void)flag;
	visited++;
	if (access(path, F_OK) || (S_ISREG(st->st_mode) && st->st_size != 5) || f->level > 2)
		visited = -100;
	return 0;
}

CASE(tree_walks)
{
	char dir[PATH_MAX], pattern[PATH_MAX], *roots[2] = {dir, NULL};
	FTS *fts;
	FTSENT *e;
	glob_t g = {0};
	int ret, n = 0;

	snprintf(dir, sizeof dir, "%s", at("d"));
	T(mkdir(at("d"), 0755));
	T(mkdir(at("d/e"), 0755));
	make("d/e/f", "hello");
	ret = nftw(dir, visit, 5, FTW_PHYS);
	outcome("nftw", ret == 0, visited == 3, errno);
	fts = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	ret = errno;
	while (fts && (e = fts_read(fts)))
		n += !access(e->fts_accpath, F_OK) && (e->fts_info != FTS_F || e->fts_statp->st_size == 5);
	outcome("fts", fts != NULL, n == 5, ret);
	snprintf(pattern, sizeof pattern, "%s/*/f", dir);
	ret = glob(pattern, 0, NULL, &g);
	outcome("glob", ret == 0, g.gl_pathc == 1 && !access(g.gl_pathv[0], F_OK),
		ret == GLOB_ABORTED || ret == GLOB_NOSPACE ? errno : 0);
}

CASE(big_copies_by_tools)
{
	T(system(
		"seq 1 300000 >$P/a; cp $P/a $P/b; cat $P/a >$P/c; cp --reflink=auto $P/a $P/d; mv $P/d $P/e; "
		"tar -C $P -cf - a | tar -C $P -xf - --transform=s/a/f/; cat <$P/a | cat >$P/g; "
		"/usr/bin/python3 -c 'import shutil,os; p=os.environ[\"P\"]; shutil.copyfile(p+\"/a\",p+\"/h\")'"));
}

/* Whether it is served or not: a file that cannot be opened so keeps what it has. */
CASE(reopened_stream_that_was_refused)
{
	FILE *fp = fopen("/dev/null", "w");
	int fd = given("f");

	close(fd);
	if (freopen(at("f"), "w", fp)) {
		fputs(text, fp);
		fclose(fp);
	}
	show("f");
}
