/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The scratch directory, its files, and child processes: plain steps on top of core.
 */
#include "test/lib/scratch.h"

#include "core/dropping/datalog.h"

char scratch[64];

bool scratch_in_memory;

void scratch_clear(void)
{
	char *paths[] = { scratch, NULL };
	FTS *fts = *scratch ? fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL) : NULL;

	if (!fts)
		return;
	for (FTSENT *e = fts_read(fts); e; e = fts_read(fts)) {
		if (e->fts_info == FTS_D)
			chmod(e->fts_path, 0700);
		else if (e->fts_level > 0)
			remove(e->fts_path);
	}
	fts_close(fts);
}

void scratch_remove(void)
{
	scratch_clear();
	if (*scratch)
		rmdir(scratch);
	*scratch = '\0';
}

void new_dir(char *path, size_t len)
{
	bool in_memory = scratch_in_memory && !access("/dev/shm", W_OK);

	snprintf(path, len, "%s/plfs-test.XXXXXX", in_memory ? "/dev/shm" : "/tmp");
	if (!mkdtemp(path))
		die("mkdtemp %s", path);
}

void scratch_dir(void)
{
	sys_init();
	new_dir(scratch, sizeof(scratch));
}

void scratch_map(const char *options)
{
	char map[256];

	scratch_dir();
	snprintf(map, sizeof(map), "/p=%s%s", scratch, options);
	if (plfs_setup(map) != 1)
		die("plfs_setup %s", map);
}

void scratch_setup(void)
{
	scratch_map("{small=0}");
}

void scratch_setup_small(void)
{
	scratch_map("");
}

struct plfs_mount *lpath(const char *name, char *path)
{
	struct plfs_mount *m = NULL;
	char logical[PATH_MAX];

	snprintf(logical, sizeof(logical), "/p/%s", name);
	if (plfs_path_map(logical, path, &m) != 1)
		die("%s is not mapped", logical);
	return m;
}

int ltry(struct lfile *l, const char *name, int flags)
{
	char path[PATH_MAX];
	struct plfs_mount *m = lpath(name, path);

	l->fd = plfs_open(m, AT_FDCWD, path, flags, 0644, &l->f);
	return l->fd < 0 ? l->fd : 0;
}

struct lfile lopen(const char *name, int flags)
{
	struct lfile l;
	int ret = ltry(&l, name, flags);

	errno = -ret;
	if (ret)
		die("open /p/%s", name);
	return l;
}

struct lfile made(const char *name)
{
	return lopen(name, O_RDWR | O_CREAT);
}

int lcompact(const char *name)
{
	struct plfs_compact out = { .dry = false };
	struct plfs_progress watch = { .why = "" };
	char path[PATH_MAX];

	lpath(name, path);
	return plfs_compact(path, &out, &watch);
}

static void ignore(void *arg, const struct plfs_finding *finding)
{
	(void)arg, (void)finding;
}

int lexamine(const char *name, bool repair)
{
	struct plfs_check check = { .repair = repair, .found = ignore };
	char path[PATH_MAX];
	struct plfs_mount *m = lpath(name, path);

	return plfs_check(m, AT_FDCWD, path, &check);
}

int ldrain(const char *name, struct plfs_drain *d)
{
	char path[PATH_MAX];
	struct plfs_mount *m = lpath(name, path);

	return plfs_drain_file(m, AT_FDCWD, path, d);
}

int lclose(struct lfile *l)
{
	sys.close(l->fd);
	l->fd = -1;
	return l->f ? plfs_close(l->f) : 0;
}

off_t stat_size(const char *name)
{
	char path[PATH_MAX];
	struct plfs_name n = { AT_FDCWD, path, 0, plfs_before_stat() };
	struct stat st;

	lpath(name, path);
	do {
		if (sys.fstatat(AT_FDCWD, path, &st, 0))
			return -errno;
	} while (!plfs_fix_stat(&st, &n));
	return st.st_size;
}

int lunlink(const char *name)
{
	char path[PATH_MAX];
	struct plfs_mount *m = lpath(name, path);

	return plfs_unlink(m, AT_FDCWD, path);
}

int lrename(const char *from, const char *to)
{
	char a[PATH_MAX], b[PATH_MAX];
	struct plfs_mount *m = lpath(from, a);

	lpath(to, b);
	return plfs_rename(m, AT_FDCWD, a, AT_FDCWD, b, 0);
}

ssize_t lappend(struct lfile *l, const void *buf, size_t len, off_t *end)
{
	struct iovec iov = { .iov_base = (void *)buf, .iov_len = len };

	return plfs_appendv(l->f, &iov, 1, end);
}

ssize_t lfill(struct lfile *l, off_t off, size_t len, unsigned round)
{
	void *buf = malloc(len);
	ssize_t n;

	pattern_fill(buf, len, (uint64_t)off, round);
	n = plfs_pwrite(l->f, buf, len, off);
	free(buf);
	return n;
}

int lcheck(struct lfile *l, off_t off, size_t len, unsigned round)
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

bool lzeros(struct lfile *l, off_t off, size_t len)
{
	char *buf = calloc(1, len);
	bool ok = plfs_pread(l->f, buf, len, off) == (ssize_t)len;

	for (size_t i = 0; i < len && ok; i++)
		ok = !buf[i];
	free(buf);
	return ok;
}

pid_t fork_child(void)
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (!pid)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

void be_single_threaded(void)
{
#ifndef __libc_single_threaded
	__libc_single_threaded = 1;
#else
	threads_seen = -1;
#endif
}

void be_threaded(void)
{
#ifndef __libc_single_threaded
	__libc_single_threaded = 0;
#else
	threads_seen = 1;
#endif
}

void shell(const char *fmt, ...)
{
	char cmd[2 * PATH_MAX];
	va_list args;

	va_start(args, fmt);
	vsnprintf(cmd, sizeof(cmd), fmt, args);
	va_end(args);
	if (system(cmd))
		die("%s", cmd);
}

static char host[64];

static int name_elsewhere(char *name, size_t len)
{
	snprintf(name, len, "%s", host);
	return 0;
}

void scratch_put_back(const char *saved)
{
	shell("rm -rf %s/.plfs && cp -a %s/.plfs %s && cp %s/f %s/f", scratch, saved, scratch, saved,
	      scratch);
}

void be_host(const char *name)
{
	snprintf(host, sizeof(host), "%s", name);
	sys.gethostname = name_elsewhere;
}

static int hours;

static int clock_ahead(clockid_t clock, struct timespec *ts)
{
	int ret = clock_gettime(clock, ts);

	ts->tv_sec += clock == CLOCK_REALTIME ? hours * 3600 : 0;
	return ret;
}

void be_hours_ahead(int by)
{
	hours = by;
	sys.clock_gettime = clock_ahead;
}

pid_t start_child(int (*fn)(void *arg), void *arg)
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

int wait_child(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			die("waitpid");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

int in_child(int (*fn)(void *arg), void *arg)
{
	return wait_child(start_child(fn, arg));
}

int count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n;
}

static int count_longer(const char *prefix, off_t len)
{
	char *paths[] = { scratch, NULL };
	FTS *fts = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	int n = 0;

	for (FTSENT *e = fts_read(fts); e; e = fts_read(fts))
		n += e->fts_info == FTS_F && !strncmp(e->fts_name, prefix, strlen(prefix)) &&
		     e->fts_statp->st_size > len;
	fts_close(fts);
	return n;
}

int count_files(const char *prefix) { return count_longer(prefix, -1); }
int count_logs(void) { return count_longer("data.", DATALOG_DATA_OFF); }

bool find_file(const char *prefix, char *path)
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

bool has_openat2(void)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC };
	int fd = sys.openat2(AT_FDCWD, "/", &how, sizeof(how));

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}
