/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stdio on logical files. The C library's streams read and write through calls inside the library, which
 * cannot be interposed; so a stream on a logical file is one made with fopencookie() whose functions call our
 * own read(), write() and lseek() on its descriptor. They work on any descriptor, so such a stream stays
 * right when its number is given to another file.
 */
#ifndef PLFS_STREAM_H
#define PLFS_STREAM_H

#include "shim.h"

struct stream;

/* An fopen() mode taken apart. */
struct stream_mode {
	int flags;    /* for open() */
	char mode[4]; /* "r", "w+" ...: what fopencookie() understands */
};

/* 0, or -EINVAL: nonsense, or ",ccs=", which asks for wide characters. */
int stream_parse_mode(const char *mode, struct stream_mode *out);

/*
 * A stream on the open descriptor @fd, which it owns from then on; NULL and errno, and @fd is still the
 * caller's.
 */
FILE *stream_open(int fd, const struct stream_mode *mode);

/* Whether @fp was made here, by a look at it. */
extern uint64_t stream_no_wide_data[];
static inline bool stream_is_ours(const FILE *fp) { return (const void *)fp->_wide_data == stream_no_wide_data; }

/* Its orientation, as fwide() tells it; with the stream locked. It holds until the stream is reopened. */
void stream_set_wide(FILE *fp);
bool stream_get_wide(FILE *fp);

/* Our own record of @fp, or NULL: not made here. */
struct stream *stream_find(FILE *fp);

/*
 * Put another file behind the stream, as freopen() does: flushes, then the description of @fd takes the
 * number that the stream has (0 to 2 stay 0 to 2). Owns @fd; -1: there is none, the stream is closed but can
 * be closed again.
 */
FILE *stream_reopen(struct stream *s, int fd, const struct stream_mode *mode);

/*
 * @fd, 0 to 2, has become a logical file: let the global stdin, stdout or stderr be a stream of ours. What
 * the program had written but not flushed moves along. The stream then stays there, whatever the descriptor
 * becomes.
 */
void stream_hook(int fd);

/*
 * Have the hooks made for what 0 to 2 are now, and from here on. Until our constructor calls this there are none: whoever
 * started us may be in the middle of an allocator's initialisation, and a stream is allocated by the program's.
 */
void stream_start(void);

/*
 * Whether @fp is the stream that stream_hook() put there; fclose() for it, which gives the C library its own
 * back.
 */
bool stream_is_hook(FILE *fp);
int stream_close_hook(FILE *fp);

/* In the child of a fork: nobody holds our locks. */
void stream_fork_child(void);

/* Our own functions, past whatever else is loaded. */
ssize_t shim_read(int fd, void *buf, size_t len);
ssize_t shim_write(int fd, const void *buf, size_t len);
off_t shim_lseek(int fd, off_t off, int whence);
int shim_close(int fd);
int shim_dup3(int from, int to, int flags);
int shim_fcntl(int fd, int cmd, ...);

#endif
