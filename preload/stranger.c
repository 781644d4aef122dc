/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program that the library does not reach (core/base/reach.h) reads what it inherits by system calls of
 * its own. At the offset where the kernel's description stands there is the stub's body, which in a file that
 * is kept as logs is empty: it would read zeros. So such a file is moved into its body before the program
 * starts. What is only written needs nothing: it lands in the body, at its place.
 */
#include "stranger.h"

#include "fdtable.h"

/* Call @fn, until it says so, for each logical file that the next image inherits to read. */
static bool each_inherited(bool (*fn)(struct ofile *f))
{
	unsigned fd, top = __atomic_load_n(&fdtable_top, __ATOMIC_RELAXED);
	bool stop = false;
	struct ofile *f;

	for (fd = 0; fd < top && !stop; fd++) {
		f = fd_find((int)fd);
		if (!f)
			continue;
		if (ofile_can_read(f) && !(sys.fcntl((int)fd, F_GETFD) & FD_CLOEXEC))
			stop = fn(f);
		fd_put(f);
	}
	return stop;
}

static bool is_one(struct ofile *f)
{
	(void)f;
	return true;
}

static bool move(struct ofile *f)
{
	int r = plfs_in_body(f->file, PLFS_MAP_WRITE);

	if (r < 0)
		refused("a statically linked or privileged program that reads", -r);
	return false;
}

bool stranger_inherits(int dirfd, const char *path)
{
	int saved = errno;
	bool does = each_inherited(is_one) && reach_of(dirfd, path, NULL) != REACH_FULL;

	errno = saved;
	return does;
}

void stranger_prepare(int dirfd, const char *path)
{
	int saved = errno;

	if (stranger_inherits(dirfd, path))
		each_inherited(move);
	errno = saved;
}
