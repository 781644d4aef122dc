/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program that the library does not reach (linked statically, privileged by set-user-id, of another word size) reads
 * what it inherits by system calls of its own. At the offset where the kernel's description stands there is the stub's
 * body, which in a file that is kept as logs is empty: it would read zeros. So such a file is moved into its body before
 * the program starts. What is only written needs nothing: it lands in the body, at its place.
 */
#include "stranger.h"

#include "fdtable.h"
#include "script.h"

#include <elf.h>

#define DEPTH_MAX 5 /* interpreters of interpreters */

/* Whether it gets privileges that this process does not have: then the dynamic linker ignores LD_PRELOAD. */
static bool is_privileged(int fd)
{
	struct stat st;
	char caps;

	if (sys.fstat(fd, &st))
		return false;
	return (st.st_mode & S_ISUID && st.st_uid != getuid()) ||
	       ((st.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) && st.st_gid != getgid()) ||
	       (getuid() && (sys.fgetxattr(fd, "security.capability", &caps, 1) >= 0 || errno == ERANGE));
}

/* Whether @fd is an ELF file without an interpreter, the dynamic linker that would load us, or for one of other words. */
static bool is_static(int fd, const Elf64_Ehdr *head)
{
	Elf64_Phdr part;
	bool found = false;
	int i;

	if (head->e_ident[EI_CLASS] != ELFCLASS64)
		return true;
	if (head->e_phentsize != sizeof(part))
		return false;
	for (i = 0; i < head->e_phnum && !found; i++) {
		if (sys.pread(fd, &part, sizeof(part), (off_t)(head->e_phoff + (size_t)i * sizeof(part))) != (ssize_t)sizeof(part))
			break;
		found = part.p_type == PT_INTERP;
	}
	return !found;
}

/* Whether the program, or a script's interpreter, starts without us. What cannot be read is not asked. */
static bool is_stranger(int dirfd, const char *path, int depth)
{
	char head[SCRIPT_HEAD_LEN] __attribute__((aligned(8))) = "";
	struct script script;
	int fd = sys.openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	ssize_t len;
	bool is = false;

	if (fd < 0)
		return false;
	len = sys.pread(fd, head, sizeof(head), 0);
	if (len >= (ssize_t)sizeof(Elf64_Ehdr) && !memcmp(head, ELFMAG, SELFMAG))
		is = is_static(fd, (const Elf64_Ehdr *)head) || is_privileged(fd);
	else if (script_is(head, len) && !script_parse(&script, head) && depth)
		is = is_stranger(AT_FDCWD, script.interpreter, depth - 1);
	sys.close(fd);
	return is;
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
		refused("a statically linked or privileged program that reads", -r);
	return false;
}

bool stranger_inherits(int dirfd, const char *path)
{
	int saved = errno;
	bool does = each_inherited(is_one) && is_stranger(dirfd, path, DEPTH_MAX);

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
