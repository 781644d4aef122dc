/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The operations on open file descriptions, and how one comes about.
 */
#ifndef PLFS_FILE_H
#define PLFS_FILE_H

#include "core/file/form.h"
#include "core/file/inode.h"
#include "core/plfs.h"

/*
 * Around an operation: take the inode's lock, and give it back. Returns the descriptor of the stub, fit for
 * writing if the description is.
 */
int file_begin(struct plfs_file *f);
void file_end(struct plfs_file *f);

/* The same at the end of what was to be stored. Returns @ret, or why it was not stored. */
ssize_t file_end_store(struct plfs_file *f, ssize_t ret);

/* plfs_pwrite() that no statistics count. */
ssize_t file_write_uncounted(struct plfs_file *f, const void *buf, size_t len, off_t logical_off);

/* Whether a file cannot have @len bytes at @logical_off. */
static inline bool file_bad_range(size_t len, off_t logical_off)
{
	return logical_off < 0 || len > FORM_SIZE_MAX || (uint64_t)logical_off > FORM_SIZE_MAX - len;
}

/*
 * Whether this process may hold record locks on the stub, which go when any descriptor of it is closed here.
 */
bool file_has_record_locks(const struct stat *st);

/*
 * A description of the stub @fd, whose own descriptor stays; *@out: NULL if it is none below a backend. 0 or
 * -errno.
 */
int file_of(int fd, struct plfs_file **out);

/*
 * stub_know_at() of a name below a mapping, without a look at a file that is open here: to close it again
 * would drop the program's record locks. Afterwards stub_marked() says whether it is a stub.
 */
void file_know_at(struct stat *st, int dirfd, const char *path, int at_flags);

/*
 * The process that unlinked the stub @fd may have left its container to us. @fd is marked as in use and has
 * no name. Takes the mark away.
 */
void file_remove_unlinked(struct plfs_mount *m, int fd, const struct stat *st);

#endif
