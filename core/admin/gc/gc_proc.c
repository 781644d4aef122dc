/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Searches /proc for stubs without a name, or with one outside the backend, and for live files, that
 * processes of this host have open.
 */
#include "core/admin/gc/gc_proc.h"
#include "core/backend/stub_known.h"
#include "core/base/mapped_by.h"
#include "core/store/dirs.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/sysmacros.h>

#define PROC "/proc"

struct proc_arg {
	struct gc_run *run;
	const char *name; /* of the file to be found */
	bool found;
};

static int open_proc(const char *path)
{
	int fd = io_open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* Also one that has lost its mark: then the header decides. */
static bool may_be_stub(const struct statx *stx)
{
	const struct stat st = { .st_mode = stx->stx_mode, .st_size = (off_t)stx->stx_size };

	return stub_marked(st.st_mode) || stub_maybe_unmarked(&st);
}

/* Descriptors of other file systems are not touched, since a call on them might block. */
static int scan_fd(void *arg, int fd, const char *name, unsigned char type)
{
	struct gc_run *run = ((struct proc_arg *)arg)->run;
	struct statx stx;
	char magic[sizeof(STUB_MAGIC) - 1];
	struct stub stub;
	int h;

	(void)type;
	if (sys.statx(fd, name, AT_STATX_DONT_SYNC, STATX_TYPE | STATX_MODE | STATX_SIZE, &stx) ||
	    !may_be_stub(&stx) ||
	    makedev(stx.stx_dev_major, stx.stx_dev_minor) != run->m->dev)
		return 0;
	h = io_openat(fd, name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (h < 0)
		return 0;
	if (io_pread_all(h, magic, sizeof(magic), 0) == sizeof(magic) &&
	    !memcmp(magic, STUB_MAGIC, sizeof(magic)) && !stub_look(h, &stub) && stub.has_container)
		gc_set_name(&run->set, stub.id);
	io_close(h);
	return 0;
}

static int scan_process(void *arg, int fd, const char *name, unsigned char type)
{
	char path[64];
	int fds;

	(void)fd, (void)type;
	if (*name < '1' || *name > '9' ||
	    snprintf(path, sizeof(path), PROC "/%.20s/fd", name) >= (int)sizeof(path))
		return 0;
	fds = open_proc(path);
	if (fds < 0)
		return 0;
	dirs_list(fds, scan_fd, arg);
	io_close(fds);
	return 0;
}

void gc_scan_processes(struct gc_run *run)
{
	struct proc_arg pa = { .run = run };
	int proc = open_proc(PROC);

	if (proc < 0)
		return;
	dirs_list(proc, scan_process, &pa);
	io_close(proc);
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

bool gc_process_has(unsigned long pid, const char *name)
{
	struct proc_arg pa = { .name = name };
	char path[64];
	int fd;

	if (mapped_by(pid, name))
		return true;
	snprintf(path, sizeof(path), PROC "/%lu/fd", pid);
	fd = open_proc(path);
	if (fd < 0)
		return fd != -ENOENT && fd != -ESRCH;
	dirs_list(fd, has_open, &pa);
	io_close(fd);
	return pa.found;
}
