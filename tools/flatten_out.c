/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A plain copy in another place. The bytes go to a temporary file beside the result, which takes the name
 * only when all of them are on stable storage. A killed command leaves that file; a later one that writes to
 * the same directory removes it.
 */
#include "flatten_out.h"

#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/random.h>

#define TEMP ".plfs-flatten."
#define LEFT_S 600 /* a file that is written changes all the time */

struct output {
	struct target t;
	char to[PATH_MAX];       /* the name that the result gets */
	struct plfs_mount *to_m; /* or NULL: below no mapping */
	int dir;                 /* that the result gets into; all names from there on are in it */
	char temp[40];           /* the temporary file, "" while there is none */
	int fd;                  /* of the temporary file */
	struct watched w;
};

static const char *base_of(const struct output *o) { return strrchr(o->to, '/') + 1; }

/* Once: its owner may exchange it meanwhile. */
static int open_dir(struct output *o)
{
	char dir[PATH_MAX];

	snprintf(dir, sizeof(dir), "%.*s", (int)(base_of(o) - o->to), o->to);
	o->dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (o->dir < 0 && errno == EACCES)
		o->dir = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return o->dir < 0 ? -errno : 0;
}

static int make_temp(struct output *o)
{
	char path[PATH_MAX];
	uint64_t random;
	sigset_t all, old;
	int ret = open_dir(o);

	if (!ret && getrandom(&random, sizeof(random), 0) != sizeof(random))
		ret = -EIO;
	if (ret)
		return ret;
	snprintf(o->temp, sizeof(o->temp), TEMP "%016llx", (unsigned long long)random);
	if (snprintf(path, sizeof(path), "%.*s%s", (int)(base_of(o) - o->to), o->to, o->temp) >=
	    (int)sizeof(path)) {
		*o->temp = '\0';
		return -ENAMETOOLONG;
	}
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &old);
	o->fd = openat(o->dir, o->temp, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (o->fd < 0) {
		ret = -errno;
		*o->temp = '\0';
	}
	flatten_temp_named(NULL, *o->temp ? path : NULL);
	sigprocmask(SIG_SETMASK, &old, NULL);
	return ret;
}

static void drop_temp(struct output *o)
{
	if (*o->temp)
		unlinkat(o->dir, o->temp, 0);
	*o->temp = '\0';
	flatten_temp_named(NULL, NULL);
	if (o->fd >= 0)
		close(o->fd);
	if (o->dir >= 0)
		close(o->dir);
	o->fd = o->dir = -1;
}

/* ---- what killed commands have left ---- */

static bool take_lock(int fd)
{
	struct flock lk = { .l_type = F_WRLCK };

	return !fcntl(fd, F_OFD_SETLK, &lk);
}

/* A temporary file of ours that no process has locked, and that has not changed for a while. */
static bool is_left(int fd, const struct stat *mine)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == mine->st_uid &&
	       st.st_mtime + LEFT_S < mine->st_mtime && take_lock(fd);
}

static void remove_left(const struct output *o)
{
	int dir = openat(o->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = dir < 0 ? NULL : fdopendir(dir);
	struct dirent *entry;
	struct stat mine;

	if (!list && dir >= 0)
		close(dir);
	if (!list || fstat(o->fd, &mine) || !take_lock(o->fd)) { /* without locks none can be known for one */
		if (list)
			closedir(list);
		return;
	}
	while ((entry = readdir(list))) {
		int fd = -1;

		if (!strncmp(entry->d_name, TEMP, strlen(TEMP)) && strlen(entry->d_name) == strlen(TEMP) + 16)
			fd = openat(o->dir, entry->d_name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
		if (fd >= 0 && is_left(fd, &mine))
			unlinkat(o->dir, entry->d_name, 0);
		if (fd >= 0)
			close(fd);
	}
	closedir(list);
}

/* Find the path of @out, which may not be the file itself. */
static int find_output(struct output *o, const char *out)
{
	char path[PATH_MAX];
	struct stat st;

	if (!target_find(out, path, &o->to_m))
		return -1;
	if (!stat(path, &st)) { /* through symbolic links, as cp would write */
		if (S_ISREG(st.st_mode) && st.st_dev == o->t.st.st_dev && st.st_ino == o->t.st.st_ino) {
			tool_error("%s: the same file as %s: to flatten it in place, leave out -o", out,
				   o->t.name);
			return -1;
		}
		if (!S_ISREG(st.st_mode)) {
			tool_error("%s: %s", out, S_ISDIR(st.st_mode) ? "a directory" : "not a regular file");
			return -1;
		}
		if (realpath(path, o->to))
			return 0;
	}
	strcpy(o->to, path);
	return 0;
}

/* Fails if the container is missing, and warns if processes may still be writing. */
static int check_source(const struct target *t)
{
	struct plfs_info info = { 0 };
	int ret = t->file ? plfs_get_info(t->file, &info) : 0;

	if (!ret && *info.container && access(info.container, F_OK))
		ret = -errno;
	if (ret)
		tool_error("%s: its container %s: %s", t->name, info.container, strerror(-ret));
	else if (info.nr_writers && info.in_use)
		tool_error("warning: %s: processes are still writing it: the copy has what they wrote so far",
			   t->name);
	return ret;
}

static int copy(struct output *o)
{
	int ret;

	flatten_watch(&o->w, &o->t);
	ret = plfs_copy_out(o->t.file, o->t.fd, o->fd, o->t.size, true, &o->w.watch);
	return flatten_unwatch(&o->w, o->t.name, ret, "");
}

/* Give the copy its mode, as cp does, and check that the size of the source has not changed meanwhile. */
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
		tool_error("%s: a process changed its size meanwhile: try again when nothing writes it",
			   o->t.name);
		return -1;
	}
	return 0;
}

/* Give the result its name; a logical file that had it loses its container. */
static int take_name(struct output *o)
{
	int ret;

	if (o->to_m)
		ret = plfs_rename(o->to_m, o->dir, o->temp, o->dir, base_of(o), 0);
	else
		ret = renameat(o->dir, o->temp, o->dir, base_of(o)) ? -errno : 0;
	if (ret) {
		tool_error("%s: cannot replace it: %s", o->to, strerror(-ret));
		return ret;
	}
	*o->temp = '\0';
	if (fsync(o->dir))
		tool_error("warning: %s: its directory could not be synced: %s", o->to, strerror(errno));
	return 0;
}

static int make_output(struct output *o)
{
	int ret = make_temp(o);

	if (ret) {
		tool_error("%s: cannot make a temporary file beside it: %s", o->to, strerror(-ret));
		return ret;
	}
	remove_left(o);
	ret = copy(o);
	if (ret < 0 || finish(o) || take_name(o))
		return -1;
	return ret;
}

int flatten_elsewhere(const char *name, const char *out, uint64_t *bytes)
{
	struct output o = { .fd = -1, .dir = -1 };
	int ret;

	if (!target_open(&o.t, name))
		return -1;
	ret = find_output(&o, out);
	if (!ret)
		ret = check_source(&o.t);
	if (!ret)
		ret = make_output(&o);
	drop_temp(&o);
	if (!ret)
		*bytes += o.t.size;
	target_close(&o.t);
	return ret;
}
