// SPDX-License-Identifier: BSD-3-Clause
/*
 * A statically linked program reads what it inherits by system calls of its own. At the offset where the kernel's
 * description stands there is the stub's body, which in a file that is kept as logs is empty: it would read zeros. So
 * such a file is moved into its body before the program starts. What is only written needs nothing: it lands in the
 * body, at its place.
 */
#include "stranger.h"

#include "fdtable.h"

#include <elf.h>

/* Whether the ELF file has no interpreter, the dynamic linker that would load us. What cannot be read is not asked. */
static bool is_static(int dirfd, const char *path)
{
	int fd = sys.openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	Elf64_Ehdr head;
	Elf64_Phdr part;
	bool found = false;
	int i;

	if (fd < 0)
		return false;
	if (sys.pread(fd, &head, sizeof(head), 0) != (ssize_t)sizeof(head) || memcmp(head.e_ident, ELFMAG, SELFMAG) ||
	    head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_phentsize != sizeof(part)) {
		sys.close(fd);
		return false;
	}
	for (i = 0; i < head.e_phnum && !found; i++) {
		if (sys.pread(fd, &part, sizeof(part), (off_t)(head.e_phoff + (size_t)i * sizeof(part))) != (ssize_t)sizeof(part))
			break;
		found = part.p_type == PT_INTERP;
	}
	sys.close(fd);
	return !found;
}

/* Call @fn, until it says so, for each logical file that the next image inherits to read. */
static bool each_inherited(bool (*fn)(struct ofile *f))
{
	unsigned fd, top = __atomic_load_n(&fdtable_top, __ATOMIC_RELAXED);
	bool stop = false;
	struct ofile *f;

	for (fd = 0; fd < top && !stop; fd++) {
		f = fd_get((int)fd);
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
		refused("a statically linked program that reads", -r);
	return false;
}

void stranger_prepare(int dirfd, const char *path)
{
	int saved = errno;

	if (each_inherited(is_one) && is_static(dirfd, path))
		each_inherited(move);
	errno = saved;
}
