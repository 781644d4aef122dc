// SPDX-License-Identifier: BSD-3-Clause
/*
 * plfs flatten: make a plain file of a logical one, in its place or elsewhere. The bytes go to a temporary file
 * beside the result, which takes the name only when all of them are on stable storage; the container goes last. So
 * at any moment, and after any error, the name leads to a whole file.
 */
#include "progress.h"
#include "tool.h"

#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/xattr.h>

#define BUF_LEN ((size_t)4 << 20)
#define BLOCK_LEN 4096 /* zeros in what no log holds are left out in units of this */
#define IN_USE_BYTE 2  /* of a stub: locked by everybody who has the file open; plfs-format(5) */

static const char HELP[] =
	"usage: plfs flatten [-m MAP] FILE...\n"
	"       plfs flatten [-m MAP] -o OUT FILE\n"
	"\n"
	"Turn files into plain files, which need no library; or write one as a plain file elsewhere.\n"
	"\n"
	"  -m, --map=MAP     the mapping, as in PLFS_MAP\n"
	"  -o, --output=OUT  write OUT and leave FILE as it is\n"
	"  -h, --help\n";

struct flatten {
	struct target t;
	char to[PATH_MAX];       /* the name that the result gets */
	struct plfs_mount *to_m; /* or NULL: below no mapping */
	char temp[PATH_MAX];     /* the temporary file, "" while there is none */
	int fd;                  /* it */
	uint64_t start, end;     /* what is to be copied next: bytes of logs, side by side */
	char *buf;
	struct progress progress;
};

/* ---- the temporary file ---- */

static char doomed[PATH_MAX]; /* what a signal has to remove */

static void remove_and_die(int sig)
{
	if (*doomed)
		unlink(doomed);
	signal(sig, SIG_DFL);
	raise(sig);
}

static void block_signals(sigset_t *old)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, old);
}

static int make_temp(struct flatten *f)
{
	sigset_t old;
	int n = (int)(strrchr(f->to, '/') - f->to);
	int ret = 0;

	if (snprintf(f->temp, sizeof(f->temp), "%.*s/.plfs-flatten.XXXXXX", n, f->to) >= (int)sizeof(f->temp)) {
		*f->temp = '\0';
		return -ENAMETOOLONG;
	}
	block_signals(&old);
	f->fd = mkostemp(f->temp, O_CLOEXEC);
	if (f->fd < 0) {
		ret = -errno;
		*f->temp = '\0';
	}
	strcpy(doomed, f->temp);
	sigprocmask(SIG_SETMASK, &old, NULL);
	return ret;
}

static void drop_temp(struct flatten *f)
{
	if (*f->temp)
		unlink(f->temp);
	*f->temp = *doomed = '\0';
	if (f->fd >= 0)
		close(f->fd);
	f->fd = -1;
}

/* ---- bytes ---- */

static int put(struct flatten *f, const char *buf, size_t len, uint64_t off)
{
	while (len) {
		ssize_t n = pwrite(f->fd, buf, len, (off_t)off);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			int ret = n ? -errno : -ENOSPC;

			tool_error("%s: cannot write: %s", f->to, strerror(-ret));
			return ret;
		}
		buf += n;
		off += (uint64_t)n;
		len -= (size_t)n;
	}
	return 0;
}

static int get(struct flatten *f, size_t len, uint64_t off)
{
	ssize_t n = target_pread(&f->t, f->buf, len, off);

	if (n == (ssize_t)len)
		return 0;
	if (n < 0)
		tool_error("%s: cannot read byte %llu: %s", f->t.name, (unsigned long long)off, strerror((int)-n));
	else
		tool_error("%s: became shorter meanwhile", f->t.name);
	return n < 0 ? (int)n : -EAGAIN;
}

/* Copy what has gathered; with @all unset only whole buffers. */
static int flush(struct flatten *f, bool all)
{
	while (f->end - f->start >= (all ? 1 : BUF_LEN)) {
		size_t len = (size_t)min_u64(f->end - f->start, BUF_LEN);
		int ret = get(f, len, f->start);

		if (!ret)
			ret = put(f, f->buf, len, f->start);
		if (ret)
			return ret;
		f->start += len;
		progress_show(&f->progress, f->start);
	}
	return 0;
}

static bool is_zero(const char *p, size_t len)
{
	return !*p && !memcmp(p, p + 1, len - 1);
}

/* Copy [@from, @to) without its blocks of zeros. */
static int copy_sparse(struct flatten *f, uint64_t from, uint64_t to)
{
	while (from < to) {
		size_t len = (size_t)min_u64(to - from, BUF_LEN - from % BLOCK_LEN);
		int ret = get(f, len, from);

		for (size_t at = 0; at < len && !ret;) {
			size_t n = min_size(len - at, BLOCK_LEN - (from + at) % BLOCK_LEN);

			if (!is_zero(f->buf + at, n))
				ret = put(f, f->buf + at, n, from + at);
			at += n;
		}
		if (ret)
			return ret;
		from += len;
		progress_show(&f->progress, from);
	}
	return 0;
}

/* What no log holds lies in the open file itself, from @base on; mostly there is nothing. */
static int copy_body(struct flatten *f, uint64_t from, uint64_t to, uint64_t base)
{
	int ret = 0;

	while (from < to && !ret) {
		off_t data = lseek(f->t.fd, (off_t)(base + from), SEEK_DATA), hole;

		if (data < 0 && errno == ENXIO)
			break;
		if (data < 0)
			data = (off_t)(base + from);
		if ((uint64_t)data - base >= to)
			break;
		hole = lseek(f->t.fd, data, SEEK_HOLE);
		from = (uint64_t)data - base;
		data = hole;
		ret = copy_sparse(f, from, data < 0 ? to : min_u64((uint64_t)data - base, to));
		from = data < 0 ? to : (uint64_t)data - base;
	}
	return ret;
}

/* Where logs hold the file, side by side pieces are copied together, however small they are. */
static int copy_piece(void *arg, uint64_t logical_off, uint64_t len, const char *log, uint64_t log_off)
{
	struct flatten *f = arg;
	int ret = 0;

	(void)log_off;
	if (!log || f->end != logical_off) {
		ret = flush(f, true);
		f->start = f->end = logical_off;
	}
	if (ret)
		return ret;
	if (!log)
		return copy_body(f, logical_off, logical_off + len, PLFS_BODY_OFF);
	f->end += len;
	return flush(f, false);
}

static int copy_all(struct flatten *f)
{
	int ret;

	if (ftruncate(f->fd, (off_t)f->t.size)) {
		ret = -errno;
		tool_error("%s: cannot make it %llu bytes long: %s", f->to, (unsigned long long)f->t.size, strerror(-ret));
		return ret;
	}
	if (!f->t.file)
		return copy_body(f, 0, f->t.size, 0);
	ret = plfs_get_map(f->t.file, copy_piece, f);
	return ret ? ret : flush(f, true);
}

/* ---- attributes ---- */

/* Access control lists above all; labels that the system keeps are its own business. */
static int copy_xattrs(struct flatten *f)
{
	char names[65536], value[65536];
	ssize_t len = flistxattr(f->t.fd, names, sizeof(names)), n;

	for (const char *name = names; name < names + len; name += strlen(name) + 1) {
		if (!strncmp(name, "security.", 9) || !strncmp(name, "trusted.", 8))
			continue;
		n = fgetxattr(f->t.fd, name, value, sizeof(value));
		if (n < 0 || fsetxattr(f->fd, name, value, (size_t)n, 0)) {
			tool_error("%s: cannot keep its attribute %s: %s", f->t.name, name, strerror(errno));
			return -1;
		}
	}
	return 0;
}

/* In place, everything but the bytes' home stays; elsewhere the result is ours, as with cp. */
static int copy_attributes(struct flatten *f, bool in_place)
{
	const struct stat *st = &f->t.st;
	struct timespec times[2] = { st->st_atim, st->st_mtim };
	mode_t mode = st->st_mode & 0777, mask = umask(0);

	umask(mask);
	if (!in_place) {
		if (fchmod(f->fd, mode & ~mask)) {
			tool_error("%s: cannot set its mode: %s", f->to, strerror(errno));
			return -1;
		}
		return 0;
	}
	if (fchown(f->fd, st->st_uid, st->st_gid)) {
		tool_error("%s: cannot keep its owner: %s", f->t.name, strerror(errno));
		return -1;
	}
	if (copy_xattrs(f))
		return -1;
	if (fchmod(f->fd, mode) || futimens(f->fd, times)) {
		tool_error("%s: cannot keep its mode and times: %s", f->t.name, strerror(errno));
		return -1;
	}
	return 0;
}

/* ---- whether it can be done ---- */

/* Whether another process has the file open: 1, 0, or -1 where the file system has no locks to tell. */
static int in_use(const struct target *t)
{
	struct flock lk = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = IN_USE_BYTE, .l_len = 1 };

	if (fcntl(t->fd, F_OFD_GETLK, &lk))
		return -1;
	return lk.l_type != F_UNLCK;
}

static int check_source(const struct flatten *f, bool in_place)
{
	struct plfs_info info = { 0 };
	const struct target *t = &f->t;
	int used = t->file ? in_use(t) : 0;
	int ret = t->file ? plfs_get_info(t->file, &info) : 0;

	if (!ret && *info.container && access(info.container, F_OK))
		ret = -errno;
	if (ret) {
		tool_error("%s: its container %s: %s", t->name, info.container, strerror(-ret));
		return ret;
	}
	if (in_place && t->st.st_nlink > 1) {
		tool_error("%s: has %lu names (hard links), which would become two files; use -o", t->name,
			   (unsigned long)t->st.st_nlink);
		return -1;
	}
	if (in_place && used > 0) {
		tool_error("%s: another process has it open; what it writes would be lost: close it, or use -o", t->name);
		return -1;
	}
	if (used && info.nr_writers)
		tool_error("warning: %s: some of its writers are still at work or were killed: "
			   "it is copied as it is now", t->name);
	return 0;
}

/* Nothing changed while we copied, as far as sizes and open descriptors tell. */
static int check_result(const struct flatten *f, bool in_place)
{
	struct stat st;
	off_t size = f->t.file ? plfs_size(f->t.file) : f->t.st.st_size;

	if (size < 0 || (uint64_t)size != f->t.size) {
		tool_error("%s: its size changed meanwhile", f->t.name);
		return -1;
	}
	if (fstat(f->fd, &st) || (uint64_t)st.st_size != f->t.size) {
		tool_error("%s: came out with another size", f->to);
		return -1;
	}
	return in_place ? check_source(f, true) : 0;
}

/* ---- the whole ---- */

static int sync_dir_of(const char *path)
{
	char dir[PATH_MAX];
	int ret, fd;

	snprintf(dir, sizeof(dir), "%.*s", (int)(strrchr(path, '/') - path) + 1, path);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ret = fd < 0 || fsync(fd) ? -errno : 0;
	if (fd >= 0)
		close(fd);
	return ret;
}

/* Give the result its name. The stub that had it is open here, so its container lives until that is closed. */
static int take_name(struct flatten *f)
{
	sigset_t old;
	int ret;

	block_signals(&old);
	if (f->to_m)
		ret = plfs_rename(f->to_m, AT_FDCWD, f->temp, AT_FDCWD, f->to, 0);
	else
		ret = rename(f->temp, f->to) ? -errno : 0;
	if (!ret)
		*f->temp = *doomed = '\0';
	sigprocmask(SIG_SETMASK, &old, NULL);
	if (ret) {
		tool_error("%s: cannot replace it: %s", f->to, strerror(-ret));
		return ret;
	}
	ret = sync_dir_of(f->to);
	if (ret)
		tool_error("warning: %s: its directory could not be synced: %s", f->to, strerror(-ret));
	return 0;
}

static int make_result(struct flatten *f, bool in_place)
{
	int ret = make_temp(f);

	if (ret) {
		tool_error("%s: cannot make a file beside it: %s", f->to, strerror(-ret));
		return ret;
	}
	progress_begin(&f->progress, f->t.name, f->t.size);
	ret = copy_all(f);
	progress_end(&f->progress);
	if (!ret)
		ret = copy_attributes(f, in_place);
	if (!ret && fsync(f->fd)) {
		ret = -errno;
		tool_error("%s: cannot write: %s", f->to, strerror(-ret));
	}
	if (!ret)
		ret = check_result(f, in_place);
	return ret ? ret : take_name(f);
}

/* Find @out's place; the result may not be the file itself. */
static int find_output(struct flatten *f, const char *out)
{
	char path[PATH_MAX];
	struct stat st;

	if (!target_find(out, path, &f->to_m))
		return -1;
	if (!stat(path, &st)) { /* through symbolic links, as cp would write */
		if (S_ISREG(st.st_mode) && st.st_dev == f->t.st.st_dev && st.st_ino == f->t.st.st_ino) {
			tool_error("%s: the same file as %s; without -o it is flattened in place", out, f->t.name);
			return -1;
		}
		if (!S_ISREG(st.st_mode)) {
			tool_error("%s: %s", out, S_ISDIR(st.st_mode) ? "a directory" : "no regular file");
			return -1;
		}
		if (realpath(path, f->to))
			return 0;
	}
	strcpy(f->to, path);
	return 0;
}

static int flatten(const char *name, const char *out)
{
	struct flatten f = { .fd = -1 };
	int ret = -1;

	if (!target_open(&f.t, name))
		return TOOL_FAILED;
	if (!out && !f.t.file) {
		printf("%s is a plain file already\n", name);
		target_close(&f.t);
		return TOOL_OK;
	}
	strcpy(f.to, f.t.path);
	f.to_m = f.t.m;
	f.buf = malloc(BUF_LEN);
	if (!f.buf)
		tool_error("%s: %s", name, strerror(ENOMEM));
	else if (!out || !find_output(&f, out))
		ret = check_source(&f, !out);
	if (!ret)
		ret = make_result(&f, !out);
	drop_temp(&f);
	free(f.buf);
	target_close(&f.t);
	return ret ? TOOL_FAILED : TOOL_OK;
}

static void watch_signals(void)
{
	static const int signals[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE };

	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		if (signal(signals[i], remove_and_die) == SIG_IGN)
			signal(signals[i], SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* the limit on file sizes: an error of the write */
}

int cmd_flatten(int argc, char **argv)
{
	static const struct option options[] = {
		{ "map", required_argument, NULL, 'm' },
		{ "output", required_argument, NULL, 'o' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	const char *map = NULL, *out = NULL;
	char **names;
	int c, nr, rc = TOOL_OK;

	opterr = 0;
	while ((c = getopt_long(argc, argv, "m:o:h", options, NULL)) != -1) {
		switch (c) {
		case 'm':
			map = optarg;
			break;
		case 'o':
			out = optarg;
			break;
		case 'h':
			fputs(HELP, stdout);
			return tool_finish(TOOL_OK);
		default:
			return tool_misuse("flatten", "bad option or missing value: %s", argv[optind - 1]);
		}
	}
	nr = argc - optind;
	if (!nr)
		return tool_misuse("flatten", "no file given");
	if (out && nr > 1)
		return tool_misuse("flatten", "-o takes one file");
	names = calloc((size_t)nr + 1, sizeof(*names));
	if (!names)
		return TOOL_FAILED;
	memcpy(names, argv + optind, (size_t)nr * sizeof(*names));
	names[nr] = (char *)out;
	target_setup(map, names, nr + (out != NULL));
	watch_signals();
	for (int i = 0; i < nr; i++)
		if (flatten(names[i], out))
			rc = TOOL_FAILED;
	free(names);
	return tool_finish(rc);
}
