/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which files are stubs where the mark does not say so: chmod, cp, rsync, unzip and tar take the mark away; a
 * program without the library leaves it on what it writes anew. The header decides then (stub_is_one()), and
 * who may change the mode puts the mark right.
 *
 * A stub with its mark costs nothing more. Of other files those below a mapping are looked at that have a
 * header's length: once, for the answer is remembered by device, inode number and time of change.
 */
#ifndef PLFS_STUB_KNOWN_H
#define PLFS_STUB_KNOWN_H

#include "core/backend/mount.h"
#include "core/backend/stub.h"

/* Whether a file of these attributes may be a stub that has lost its mark. A claimed one may end there. */
static inline bool stub_maybe_unmarked(const struct stat *st)
{
	return (st->st_mode & (S_IFMT | S_ISVTX)) == S_IFREG && st->st_size >= STUB_SYNCED_OFF;
}

/* Whether it has fewer blocks than bytes as well, as a stub has but few other files. */
static inline bool stub_is_sparse(const struct stat *st)
{
	return stub_maybe_unmarked(st) && (uint64_t)st->st_blocks * 512 < (uint64_t)st->st_size;
}

/*
 * Make the mark in the attributes @st, which are those of (dirfd, path) below a mapping or of @fd, say
 * whether the file is a stub. The mark of the file itself is put right as well if this process may do that; a
 * line says so if it is taken off. What cannot be read stays what its mark says. Leaves all but regular files
 * on a backend's file system alone. @fd: as for stub_look_blank() if @st has the mark.
 */
void stub_know_at(struct stat *st, int dirfd, const char *path, int at_flags);
void stub_know(struct stat *st, int fd);

/* The same from memory alone. False: the answer is not known. */
bool stub_is_known(struct stat *st);

/* The same without touching the file, for a check. @fd is readable. */
bool stub_is_by_header(int fd, const struct stat *st);

/*
 * What a marked file is whose header may be blank (stub_is_blank()) though it has a body. 0: it is not, or a
 * file without a container, of an older version or written by a program that inherited it open, for all that
 * can be known; 1: a plain file that begins with zeros, all written; -EIO: a stub whose header was lost. It
 * seeks in the description @fd, which nobody else may use. @m: its mount; NULL: by its name.
 */
int stub_look_blank(struct plfs_mount *m, int fd, const struct stat *st);

/*
 * @fd has the mark, and the header is no header: take the mark off, if this process may, and say so in one
 * line. True: it is a plain file; false: it is a stub, sound or damaged.
 */
bool stub_make_plain(int fd);

/*
 * Before something is written into the stub @fd without a look at its header, which @known is: 0; -EIO: a
 * program without the library has written it anew since, and one line says so, unless *@told. A header that
 * is damaged counts as the same one.
 */
int stub_check_still(int fd, const struct stub *known, bool *told);

/*
 * The program holds record locks on a plain file. They would go if a descriptor of that file were closed
 * here, so from now on files are only looked at through descriptors that the program opens itself.
 */
void stub_look_no_more(void);

#endif
