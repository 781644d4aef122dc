/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Open file descriptions: struct plfs_file, one for each open() of a logical file in this process.
 */
#ifndef PLFS_FILE_H
#define PLFS_FILE_H

#include "inode.h"
#include "plfs.h"

struct plfs_file {
	struct inode *ino;
	struct plfs_file *next; /* of the same inode */
	int fd;                 /* hidden descriptor of the stub */
	int own_fd;             /* of the program's description, where @fd is of another; else -1 */
	bool writable;
	bool append_flag;       /* @fd shares O_APPEND with the program's, which must be lifted to write to the stub */
};

/*
 * Around an operation: take the inode's lock, and give it back. Returns the descriptor of the stub, fit for writing if the
 * description is.
 */
int file_begin(struct plfs_file *f);
void file_end(struct plfs_file *f);

/*
 * The mark that the file is in use lives on the program's own description, which processes inherit and pass on. This is a
 * descriptor of that, to ask whether others have a mark, and to take this one away. The same for @fd, the descriptor of
 * one of ino->files.
 */
static inline int file_marked_fd(const struct plfs_file *f) { return f->own_fd >= 0 ? f->own_fd : f->fd; }
int file_marked_fd_of(const struct inode *ino, int fd);

/* Close the hidden descriptors. */
void file_close_fds(struct plfs_file *f);

/* A descriptor of @ino's stub for core's own use, writable if there is one. */
int file_any_fd(const struct inode *ino);

/* A description of the stub @fd, whose own descriptor stays; *@out: NULL if it is none below a backend. 0 or -errno. */
int file_of(int fd, struct plfs_file **out);

#endif
