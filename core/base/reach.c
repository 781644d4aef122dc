/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the head of an ELF file, and its permissions, say about LD_PRELOAD.
 */
#include "core/base/reach.h"

#include "core/base/bytes.h"
#include "core/base/io.h"
#include "core/base/script.h"
#include "core/base/sys.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define DEPTH_MAX 5 /* interpreters of interpreters */
#define NOTES_LEN 1024

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

/* Whether a note is Go's: its build id, which each of its programs has. */
static bool has_go(int fd, const Elf64_Phdr *part)
{
	char notes[NOTES_LEN] __attribute__((aligned(8)));
	ssize_t len = io_pread(fd, notes, (size_t)min_u64(sizeof(notes), part->p_filesz),
				(off_t)part->p_offset);
	size_t align = part->p_align == 8 ? 8 : 4;

	for (size_t at = 0; len > 0 && at + sizeof(Elf64_Nhdr) + 4 <= (size_t)len;) {
		Elf64_Nhdr note;

		memcpy(&note, notes + at, sizeof(note));
		if (note.n_namesz == 4 && !memcmp(notes + at + sizeof(note), "Go\0", 4))
			return true;
		at += sizeof(note);
		at += round_up_u64(note.n_namesz, 4);
		at = (size_t)round_up_u64(at + note.n_descsz, align);
	}
	return false;
}

static enum reach reach_of_elf(int fd, const Elf64_Ehdr *head)
{
	bool linked = false, go = false;
	Elf64_Phdr part;

	if (head->e_ident[EI_CLASS] != (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32))
		return REACH_OTHER_WORDS;
	if (is_privileged(fd))
		return REACH_PRIVILEGED;
	if (head->e_phentsize != sizeof(part))
		return REACH_FULL;
	for (int i = 0; i < head->e_phnum; i++) {
		if (io_pread(fd, &part, sizeof(part), (off_t)(head->e_phoff + (size_t)i * sizeof(part))) !=
		    (ssize_t)sizeof(part))
			break;
		linked |= part.p_type == PT_INTERP;
		go |= part.p_type == PT_NOTE && has_go(fd, &part);
	}
	return !linked ? REACH_STATIC : go ? REACH_GO : REACH_FULL;
}

static enum reach look(int dirfd, const char *path, char *file, int depth)
{
	char head[SCRIPT_HEAD_LEN] __attribute__((aligned(8))) = "";
	enum reach reach = REACH_FULL;
	struct script script;
	int fd = io_openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	ssize_t len;

	if (fd < 0)
		return REACH_FULL;
	len = io_pread(fd, head, sizeof(head), 0);
	if (file)
		snprintf(file, PATH_MAX, "%s", path);
	if (len >= (ssize_t)sizeof(Elf64_Ehdr) && !memcmp(head, ELFMAG, SELFMAG))
		reach = reach_of_elf(fd, (const Elf64_Ehdr *)head);
	else if (script_is(head, len) && !script_parse(&script, head) && depth)
		reach = look(AT_FDCWD, script.interpreter, file, depth - 1);
	io_close(fd);
	return reach;
}

enum reach reach_of(int dirfd, const char *path, char *file)
{
	int saved = errno;
	enum reach reach = look(dirfd, path, file, DEPTH_MAX);

	errno = saved;
	return reach;
}
