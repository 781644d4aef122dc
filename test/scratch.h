/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the tests of core/ share: a directory of one's own mapped to /p, logical files opened in it, a fresh process to
 * look at them with, and the count of open descriptors. Only core's functions are used; a helper that cannot do its
 * work ends the process.
 */
#ifndef TEST_SCRATCH_H
#define TEST_SCRATCH_H

#include "../core/plfs.h"

#include "../core/newer.h"

#include "job.h"

#include <fts.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static char scratch[64];

/* Where it is made. In memory fsync() costs nothing: for the tests that make a file many times. */
static bool scratch_in_memory;

/* A logical file as a program holds it: the kernel's descriptor and the description. */
struct lfile {
	int fd;
	struct plfs_file *f;
};

__attribute__((unused)) static void scratch_remove(void)
{
	char *paths[] = { scratch, NULL };
	FTS *fts = *scratch ? fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL) : NULL;

	if (!fts)
		return;
	for (FTSENT *e = fts_read(fts); e; e = fts_read(fts)) {
		if (e->fts_info == FTS_D)
			chmod(e->fts_path, 0700);
		else
			remove(e->fts_path);
	}
	fts_close(fts);
	*scratch = '\0';
}

/* A directory of one's own, its path in @path of @len bytes. */
static void new_dir(char *path, size_t len)
{
	snprintf(path, len, "%s/plfs-test.XXXXXX", scratch_in_memory && !access("/dev/shm", W_OK) ? "/dev/shm" : "/tmp");
	if (!mkdtemp(path))
		die("mkdtemp %s", path);
}

/* The directory alone; module tests make their store on it. */
__attribute__((unused)) static void scratch_dir(void)
{
	sys_init();
	new_dir(scratch, sizeof(scratch));
}

/* The directory, mapped. @options: "" or "{...}". */
__attribute__((unused)) static void scratch_map(const char *options)
{
	char map[256];

	scratch_dir();
	snprintf(map, sizeof(map), "/p=%s%s", scratch, options);
	if (plfs_setup(map) != 1)
		die("plfs_setup %s", map);
}

/* Most tests are about logs: small files get theirs as well. */
__attribute__((unused)) static void scratch_setup(void)
{
	scratch_map("{small=0}");
}

/* And some are about small files. */
__attribute__((unused)) static void scratch_setup_small(void)
{
	scratch_map("");
}

/* Where "/p/NAME" leads. */
__attribute__((unused)) static struct plfs_mount *lpath(const char *name, char *path)
{
	struct plfs_mount *m = NULL;
	char logical[PATH_MAX];

	snprintf(logical, sizeof(logical), "/p/%s", name);
	if (plfs_path_map(logical, path, &m) != 1)
		die("%s is not mapped", logical);
	return m;
}

/* open(2). Returns 0 or -errno. */
__attribute__((unused)) static int ltry(struct lfile *l, const char *name, int flags)
{
	char path[PATH_MAX];
	struct plfs_mount *m = lpath(name, path);

	l->fd = plfs_open(m, AT_FDCWD, path, flags, 0644, &l->f);
	return l->fd < 0 ? l->fd : 0;
}

__attribute__((unused)) static struct lfile lopen(const char *name, int flags)
{
	struct lfile l;
	int ret = ltry(&l, name, flags);

	errno = -ret;
	if (ret)
		die("open /p/%s", name);
	return l;
}

/* One that may be new. */
__attribute__((unused)) static struct lfile made(const char *name)
{
	return lopen(name, O_RDWR | O_CREAT);
}

/* close(2) as the preload layer does it: the kernel's first. */
__attribute__((unused)) static int lclose(struct lfile *l)
{
	sys.close(l->fd);
	l->fd = -1;
	return l->f ? plfs_close(l->f) : 0;
}

/* The size by stat(), as the preload layer does it; -errno. */
__attribute__((unused)) static off_t stat_size(const char *name)
{
	char path[PATH_MAX];
	struct plfs_name n = { AT_FDCWD, path, 0, plfs_before_stat() };
	struct stat st;

	lpath(name, path);
	if (sys.fstatat(AT_FDCWD, path, &st, 0))
		return -errno;
	plfs_fix_stat(&st, &n);
	return st.st_size;
}

__attribute__((unused)) static int lunlink(const char *name)
{
	char path[PATH_MAX];
	struct plfs_mount *m = lpath(name, path);

	return plfs_unlink(m, AT_FDCWD, path);
}

__attribute__((unused)) static int lrename(const char *from, const char *to)
{
	char a[PATH_MAX], b[PATH_MAX];
	struct plfs_mount *m = lpath(from, a);

	lpath(to, b);
	return plfs_rename(m, AT_FDCWD, a, AT_FDCWD, b, 0);
}

__attribute__((unused)) static ssize_t lappend(struct lfile *l, const void *buf, size_t len, off_t *end)
{
	struct iovec iov = { .iov_base = (void *)buf, .iov_len = len };

	return plfs_appendv(l->f, &iov, 1, end);
}

/* Write and check the pattern of @round. */
__attribute__((unused)) static ssize_t lfill(struct lfile *l, off_t off, size_t len, unsigned round)
{
	void *buf = malloc(len);
	ssize_t n;

	pattern_fill(buf, len, (uint64_t)off, round);
	n = plfs_pwrite(l->f, buf, len, off);
	free(buf);
	return n;
}

/* 0 if [off, off + len) holds the pattern, 1 if not (and a line), -errno if it cannot be read. */
__attribute__((unused)) static int lcheck(struct lfile *l, off_t off, size_t len, unsigned round)
{
	char *buf = malloc(len + 1);
	ssize_t n = plfs_pread(l->f, buf, len, off);
	size_t good = n > 0 ? pattern_check(buf, (size_t)n, (uint64_t)off, round) : 0;
	int ret = n < 0 ? (int)n : good != len;

	if (ret)
		fprintf(stderr, "[%lld, +%zu): read %zd, right up to %zu\n", (long long)off, len, n, good);
	free(buf);
	return ret;
}

/* Whether [off, off + len) is all zeros. */
__attribute__((unused)) static bool lzeros(struct lfile *l, off_t off, size_t len)
{
	char *buf = calloc(1, len);
	bool ok = plfs_pread(l->f, buf, len, off) == (ssize_t)len;

	for (size_t i = 0; i < len && ok; i++)
		ok = !buf[i];
	free(buf);
	return ok;
}

/* fork(2), and the child ends with its parent: a failed assertion must not leave it behind. */
__attribute__((unused)) static pid_t fork_child(void)
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (!pid)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

/*
 * Tests are in processes with threads, whose children have none; the C library does not know that, and files are appended to in
 * another way (bare.h).
 */
__attribute__((unused)) static void be_single_threaded(void)
{
#ifndef __libc_single_threaded
	__libc_single_threaded = 1;
#endif
}

/* Start @fn in a child made as the preload layer makes one; the caller waits for it. */
__attribute__((unused)) static pid_t start_child(int (*fn)(void *arg), void *arg)
{
	pid_t pid;

	plfs_fork_prepare();
	pid = fork_child();
	if (!pid) {
		int ret;

		plfs_fork_child();
		ret = fn(arg);
		plfs_exit_prepare();
		_exit(ret);
	}
	plfs_fork_parent();
	return pid;
}

/* Its exit code, or 256 + signal. */
__attribute__((unused)) static int wait_child(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			die("waitpid");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

/* Both. */
__attribute__((unused)) static int in_child(int (*fn)(void *arg), void *arg)
{
	return wait_child(start_child(fn, arg));
}

__attribute__((unused)) static int count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n;
}

/* Count files below the scratch directory whose names begin with @prefix. */
__attribute__((unused)) static int count_files(const char *prefix)
{
	char *paths[] = { scratch, NULL };
	FTS *fts = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	int n = 0;

	for (FTSENT *e = fts_read(fts); e; e = fts_read(fts))
		n += e->fts_info == FTS_F && !strncmp(e->fts_name, prefix, strlen(prefix));
	fts_close(fts);
	return n;
}

/* The path of a file below the scratch directory whose name begins with @prefix; false if there is none. */
__attribute__((unused)) static bool find_file(const char *prefix, char *path)
{
	char *paths[] = { scratch, NULL };
	FTS *fts = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	bool found = false;

	for (FTSENT *e = fts_read(fts); e && !found; e = fts_read(fts)) {
		found = (e->fts_info == FTS_F || e->fts_info == FTS_D) && e->fts_level > 0 &&
			!strncmp(e->fts_name, prefix, strlen(prefix));
		if (found)
			snprintf(path, PATH_MAX, "%s", e->fts_path);
	}
	fts_close(fts);
	return found;
}

#endif
