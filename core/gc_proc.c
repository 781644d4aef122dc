/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the processes of this host have open: stubs that have no name any more, or one outside the backend, and live files.
 */
#include "gc.h"
#include "tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/sysmacros.h>

#define PROC "/proc"

struct proc_arg {
	struct gc_run *run;
	const char *name; /* of a file that is looked for */
	bool found;
};

static int open_proc(const char *path)
{
	int fd = own_open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* A descriptor may be of anything: of no other file system is anything asked that could wait for it. */
static int look_at_fd(void *arg, int fd, const char *name, unsigned char type)
{
	struct gc_run *run = ((struct proc_arg *)arg)->run;
	struct statx stx;
	struct stub stub;
	int h;

	(void)type;
	if (sys.statx(fd, name, AT_STATX_DONT_SYNC, STATX_TYPE | STATX_MODE, &stx) || !stub_marked(stx.stx_mode) ||
	    makedev(stx.stx_dev_major, stx.stx_dev_minor) != run->m->dev)
		return 0;
	h = own_openat(fd, name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (h < 0)
		return 0;
	if (!stub_look(h, &stub) && stub.has_container)
		gc_set_name(&run->set, stub.id);
	own_close(h);
	return 0;
}

static int look_at_process(void *arg, int fd, const char *name, unsigned char type)
{
	char path[64];
	int fds;

	(void)fd, (void)type;
	if (*name < '1' || *name > '9' || snprintf(path, sizeof(path), PROC "/%.20s/fd", name) >= (int)sizeof(path))
		return 0;
	fds = open_proc(path);
	if (fds < 0)
		return 0;
	tree_list(fds, look_at_fd, arg);
	own_close(fds);
	return 0;
}

void gc_look_at_processes(struct gc_run *run)
{
	struct proc_arg pa = { .run = run };
	int proc = open_proc(PROC);

	if (proc < 0)
		return;
	tree_list(proc, look_at_process, &pa);
	own_close(proc);
}

static int has_open(void *arg, int fd, const char *name, unsigned char type)
{
	struct proc_arg *pa = arg;
	char target[PATH_MAX];
	ssize_t n = sys.readlinkat(fd, name, target, sizeof(target) - 1);

	(void)type;
	target[n > 0 ? n : 0] = '\0';
	pa->found = strstr(target, pa->name);
	return pa->found;
}

/* Whether the text of the file @fd has @name in it. */
static bool has_text(int fd, const char *name)
{
	char buf[8192 + 256];
	size_t len = strlen(name), have = 0;
	ssize_t n;

	if (len > 255)
		return false;
	while ((n = own_read(fd, buf + have, 8192)) > 0) {
		have += (size_t)n;
		if (memmem(buf, have, name, len))
			return true;
		if (have > len) {
			memmove(buf, buf + have - len, len);
			have = len;
		}
	}
	return false;
}

bool gc_process_has(unsigned long pid, const char *name)
{
	struct proc_arg pa = { .name = name };
	char path[64];
	int fd;

	snprintf(path, sizeof(path), PROC "/%lu/maps", pid);
	fd = own_open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno != ENOENT && errno != ESRCH;
	pa.found = has_text(fd, name);
	own_close(fd);
	if (pa.found)
		return true;
	snprintf(path, sizeof(path), PROC "/%lu/fd", pid);
	fd = open_proc(path);
	if (fd < 0)
		return fd != -ENOENT && fd != -ESRCH;
	tree_list(fd, has_open, &pa);
	own_close(fd);
	return pa.found;
}
