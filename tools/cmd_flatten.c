/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plfs flatten: make a plain file of a logical one. In its place that is core's work; elsewhere the bytes go to a
 * temporary file beside the result, which takes the name only when all of them are on stable storage.
 */
#include "progress.h"
#include "tool.h"

#include <getopt.h>
#include <signal.h>
#include <stdlib.h>

static const char HELP[] =
	"usage: plfs flatten [-m MAP] FILE...\n"
	"       plfs flatten [-m MAP] -o OUT FILE\n"
	"\n"
	"Turn files into plain files, which need no library; or write one as a plain file elsewhere.\n"
	"\n"
	"  -m, --map=MAP     the mapping, as in PLFS_MAP\n"
	"  -o, --output=OUT  write OUT and leave FILE as it is\n"
	"  -h, --help\n";

struct output {
	struct target t;
	char to[PATH_MAX];       /* the name that the result gets */
	struct plfs_mount *to_m; /* or NULL: below no mapping */
	char temp[PATH_MAX];     /* the temporary file, "" while there is none */
	int fd;                  /* it */
};

/* ---- while it is copied ---- */

static char doomed[PATH_MAX]; /* what a signal has to remove */
static volatile sig_atomic_t is_doomed;

static void remove_and_die(int sig)
{
	if (is_doomed)
		unlink(doomed);
	signal(sig, SIG_DFL);
	raise(sig);
}

static void temp_named(void *arg, const char *path)
{
	(void)arg;
	is_doomed = 0;
	if (!path)
		return;
	snprintf(doomed, sizeof(doomed), "%s", path);
	is_doomed = 1;
}

static void copied(void *arg, uint64_t done)
{
	progress_show(arg, done);
}

/* ---- in its place ---- */

static int flatten_in_place(const char *name)
{
	struct progress progress;
	struct plfs_watch watch = { .progress = copied, .temp = temp_named, .arg = &progress };
	struct target t;
	bool plain;
	int ret;

	if (!target_open(&t, name))
		return -1;
	plain = !t.file;
	target_close(&t);
	if (plain) {
		printf("%s is a plain file already\n", name);
		return 0;
	}
	progress_begin(&progress, name, t.size);
	ret = plfs_flatten(AT_FDCWD, t.path, &watch);
	progress_end(&progress);
	if (ret)
		tool_error("%s: %s%s", name, *watch.why ? watch.why : strerror(-ret),
			   ret == -EBUSY ? ": close it, or use -o" : ret == -EMLINK ? "; use -o" : "");
	return ret;
}

/* ---- elsewhere ---- */

static int make_temp(struct output *o)
{
	int n = (int)(strrchr(o->to, '/') - o->to);
	int ret = 0;
	sigset_t all, old;

	if (snprintf(o->temp, sizeof(o->temp), "%.*s/.plfs-flatten.XXXXXX", n, o->to) >= (int)sizeof(o->temp)) {
		*o->temp = '\0';
		return -ENAMETOOLONG;
	}
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &old);
	o->fd = mkostemp(o->temp, O_CLOEXEC);
	if (o->fd < 0) {
		ret = -errno;
		*o->temp = '\0';
	}
	temp_named(NULL, *o->temp ? o->temp : NULL);
	sigprocmask(SIG_SETMASK, &old, NULL);
	return ret;
}

static void drop_temp(struct output *o)
{
	if (*o->temp)
		unlink(o->temp);
	*o->temp = '\0';
	temp_named(NULL, NULL);
	if (o->fd >= 0)
		close(o->fd);
	o->fd = -1;
}

/* Find @out's place; the result may not be the file itself. */
static int find_output(struct output *o, const char *out)
{
	char path[PATH_MAX];
	struct stat st;

	if (!target_find(out, path, &o->to_m))
		return -1;
	if (!stat(path, &st)) { /* through symbolic links, as cp would write */
		if (S_ISREG(st.st_mode) && st.st_dev == o->t.st.st_dev && st.st_ino == o->t.st.st_ino) {
			tool_error("%s: the same file as %s; without -o it is flattened in place", out, o->t.name);
			return -1;
		}
		if (!S_ISREG(st.st_mode)) {
			tool_error("%s: %s", out, S_ISDIR(st.st_mode) ? "a directory" : "no regular file");
			return -1;
		}
		if (realpath(path, o->to))
			return 0;
	}
	strcpy(o->to, path);
	return 0;
}

/* The container is there; and whether somebody may still be writing. */
static int check_source(const struct target *t)
{
	struct plfs_info info = { 0 };
	int ret = t->file ? plfs_get_info(t->file, &info) : 0;

	if (!ret && *info.container && access(info.container, F_OK))
		ret = -errno;
	if (ret)
		tool_error("%s: its container %s: %s", t->name, info.container, strerror(-ret));
	else if (info.nr_writers && info.in_use)
		tool_error("warning: %s: some of its writers are still at work: "
			   "it is copied as it is now", t->name);
	return ret;
}

static int copy(struct output *o)
{
	struct progress progress;
	struct plfs_watch watch = { .progress = copied, .arg = &progress };
	int ret;

	progress_begin(&progress, o->t.name, o->t.size);
	ret = plfs_copy_out(o->t.file, o->t.fd, o->fd, o->t.size, true, &watch);
	progress_end(&progress);
	if (ret)
		tool_error("%s: %s", o->t.name, watch.why);
	return ret;
}

/* The result is ours, as with cp; nothing changed while we copied, as far as the size tells. */
static int finish(struct output *o)
{
	off_t size = o->t.file ? plfs_size(o->t.file) : o->t.st.st_size;
	mode_t mask = umask(0);

	umask(mask);
	if (fchmod(o->fd, o->t.st.st_mode & 0777 & ~mask)) {
		tool_error("%s: cannot set its mode: %s", o->to, strerror(errno));
		return -1;
	}
	if (fsync(o->fd)) {
		tool_error("%s: cannot write: %s", o->to, strerror(errno));
		return -1;
	}
	if (size < 0 || (uint64_t)size != o->t.size) {
		tool_error("%s: its size changed meanwhile", o->t.name);
		return -1;
	}
	return 0;
}

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

/* Give the result its name; a logical file that had it loses its container. */
static int take_name(struct output *o)
{
	int ret;

	if (o->to_m)
		ret = plfs_rename(o->to_m, AT_FDCWD, o->temp, AT_FDCWD, o->to, 0);
	else
		ret = rename(o->temp, o->to) ? -errno : 0;
	if (ret) {
		tool_error("%s: cannot replace it: %s", o->to, strerror(-ret));
		return ret;
	}
	*o->temp = '\0';
	ret = sync_dir_of(o->to);
	if (ret)
		tool_error("warning: %s: its directory could not be synced: %s", o->to, strerror(-ret));
	return 0;
}

static int make_output(struct output *o)
{
	int ret = make_temp(o);

	if (ret) {
		tool_error("%s: cannot make a file beside it: %s", o->to, strerror(-ret));
		return ret;
	}
	ret = copy(o);
	if (!ret)
		ret = finish(o);
	return ret ? ret : take_name(o);
}

static int flatten_elsewhere(const char *name, const char *out)
{
	struct output o = { .fd = -1 };
	int ret;

	if (!target_open(&o.t, name))
		return -1;
	ret = find_output(&o, out);
	if (!ret)
		ret = check_source(&o.t);
	if (!ret)
		ret = make_output(&o);
	drop_temp(&o);
	target_close(&o.t);
	return ret;
}

/* ---- the command ---- */

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
		default:
			return tool_other_option("flatten", c, argv, HELP);
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
		if (out ? flatten_elsewhere(names[i], out) : flatten_in_place(names[i]))
			rc = TOOL_FAILED;
	free(names);
	return tool_finish(rc);
}
