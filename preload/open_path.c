/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * open(2) by path: where the path leads, the open itself, and the table.
 */
#include "open_path.h"

#include "fdtable.h"
#include "through.h"

int ofile_open(const struct where *w, int flags, mode_t mode, bool *logical)
{
	bool section CRITICAL = critical_begin();
	struct plfs_file *file = NULL;
	struct ofile *f = NULL;
	struct stat st;
	int fd, r = 0;

	if (logical)
		*logical = false;
	fd = plfs_open(w->m, w->dirfd, w->path, flags, mode, &file);
	if (fd < 0)
		return fd;
	if (file) {
		if (logical)
			*logical = true;
		f = ofile_new_file(file, flags & ~(O_CREAT | O_EXCL | O_NOCTTY | O_TRUNC | O_CLOEXEC), false);
		if (f && flags & O_DIRECT)
			ofile_set_direct(f, fd);
		r = f ? fd_install(fd, f) : -ENOMEM;
	} else if (!(flags & (O_WRONLY | O_RDWR | O_CREAT)) && !sys.fstat(fd, &st) && S_ISDIR(st.st_mode)) {
		f = ofile_new_dir(w->m, NULL);
		r = f ? fd_install(fd, f) : -ENOMEM;
	}
	msg_debug(MSG_OPEN, "open %s: descriptor %d, %s", w->path, fd,
	          file ? "logical file"
	          : f  ? "directory"
	               : "plain file");
	if (r < 0) {
		sys.close(fd);
		return r;
	}
	return fd;
}

int ofile_find_and_open(struct where *w, int dirfd, const char *path, int flags, mode_t mode, int r)
{
	int found;

	if (!path_is_undecided(r))
		return r;
	found = path_find_at(w, dirfd, path);
	if (!found && !w->m && r == -ENOSYS) {
		r = path_open_plain(w->dirfd, w->path, flags, mode);
		if (!path_is_undecided(r))
			return r;
	}
	if (!found && !w->m)
		found = path_look(w, flags);
	if (!found && !w->m)
		return PATH_NOT_OPENED;
	if (found < 0)
		return found;
	pthread_testcancel();
	return ofile_open(w, flags, mode, NULL);
}
