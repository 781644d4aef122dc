/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The calls of the sys table that are cancellation points, for the library's own use: a thread that is cancelled must not
 * end in one of them, with our locks held. It ends in the program's next call of a function that is one.
 */
#ifndef PLFS_OWN_H
#define PLFS_OWN_H

#include "sys.h"

#include <pthread.h>

#define OWN(call)                                                                  \
	({                                                                         \
		int own_state;                                                     \
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &own_state);        \
		__typeof__(call) own_ret = call;                                   \
		pthread_setcancelstate(own_state, NULL);                           \
		own_ret;                                                           \
	})

#define own_open(...) OWN(sys.open(__VA_ARGS__))
#define own_openat(...) OWN(sys.openat(__VA_ARGS__))
#define own_openat2(...) OWN(sys.openat2(__VA_ARGS__))
#define own_close(...) OWN(sys.close(__VA_ARGS__))
#define own_read(...) OWN(sys.read(__VA_ARGS__))
#define own_write(...) OWN(sys.write(__VA_ARGS__))
#define own_pread(...) OWN(sys.pread(__VA_ARGS__))
#define own_preadv(...) OWN(sys.preadv(__VA_ARGS__))
#define own_pwrite(...) OWN(sys.pwrite(__VA_ARGS__))
#define own_pwritev(...) OWN(sys.pwritev(__VA_ARGS__))
#define own_pwritev2(...) OWN(sys.pwritev2(__VA_ARGS__))
#define own_fcntl(...) OWN(sys.fcntl(__VA_ARGS__)) /* F_SETLKW */
#define own_fsync(...) OWN(sys.fsync(__VA_ARGS__))
#define own_fdatasync(...) OWN(sys.fdatasync(__VA_ARGS__))
#define own_fallocate(...) OWN(sys.fallocate(__VA_ARGS__))
#define own_nanosleep(...) OWN(sys.nanosleep(__VA_ARGS__))

/* All @len bytes; fewer only at the end of the file. -errno. */
ssize_t own_pread_all(int fd, void *buf, size_t len, uint64_t off);

/* The same into several places; @iov is used up. */
ssize_t own_preadv_all(int fd, struct iovec *iov, int cnt, uint64_t off);

/* All @len bytes; fewer if an error came after some were written, else -errno. */
ssize_t own_pwrite_all(int fd, const void *buf, size_t len, uint64_t off);

#endif
