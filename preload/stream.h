/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stdio on logical files. The C library's own streams make their system calls inside the C library, where no
 * wrapper sees them. So a stream on a logical file is made by fopencookie(), and its functions call the
 * wrappers of read(), write() and lseek() on its descriptor. These work on any descriptor: the stream stays
 * right when its number is given to another file.
 */
#ifndef PLFS_STREAM_H
#define PLFS_STREAM_H

#include "shim.h"

struct stream;

/* A parsed fopen() mode. */
struct stream_mode {
	int flags;    /* of open() */
	char mode[4]; /* "r", "w+" ...: of fopencookie() */
};

/* 0; -EINVAL: no valid mode, or ",ccs=", which asks for a character set. */
int stream_parse_mode(const char *mode, struct stream_mode *out);

/*
 * A stream on the open descriptor @fd, which it owns from then on. @sought: @fd appended already, and stays
 * where it is. NULL and errno: @fd is still the caller's.
 */
FILE *stream_open(int fd, const struct stream_mode *mode, bool sought);

/* Whether @fp was made here, seen from its own memory. */
extern uint64_t stream_no_wide_data[];
static inline bool stream_is_ours(const FILE *fp)
{
	return (const void *)fp->_wide_data == stream_no_wide_data;
}

/* Its orientation, as of fwide(); with the stream locked. It stays until the stream is reopened. */
void stream_set_wide(FILE *fp);
bool stream_get_wide(FILE *fp);

/* The record of @fp; NULL: it was not made here. */
struct stream *stream_find(FILE *fp);

/*
 * Put another file behind the stream, as freopen() does. The stream is flushed; then the description of @fd
 * gets the stream's own number (0 to 2 stay 0 to 2). Owns @fd; -1: no file, the stream's descriptor is
 * closed, and fclose() is still due.
 */
FILE *stream_reopen(struct stream *s, int fd, const struct stream_mode *mode);

/*
 * @fd, 0 to 2, has become a logical file: the global stdin, stdout or stderr becomes a stream made here, the
 * hook. Bytes not flushed yet move along. The hook stays there, whatever the descriptor becomes.
 */
void stream_hook(int fd);

/*
 * Make the hooks for descriptors 0 to 2, now and from here on. Before the library's constructor calls this
 * there are none: a stream is allocated by the program's allocator, which may still be initialising when the
 * library starts.
 */
void stream_start(void);

/* Whether @fp is a hook; and fclose() for it, which puts the C library's own stream back. */
bool stream_is_hook(FILE *fp);
int stream_close_hook(FILE *fp);

/* In the child of a fork: no thread holds the locks of this file. */
void stream_fork_child(void);

/* The library's own functions, whatever else is loaded. */
ssize_t shim_read(int fd, void *buf, size_t len);
ssize_t shim_write(int fd, const void *buf, size_t len);
off_t shim_lseek(int fd, off_t off, int whence);
int shim_close(int fd);
int shim_dup3(int from, int to, int flags);
int shim_fcntl(int fd, int cmd, ...);

#endif
