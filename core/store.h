/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bytes on some storage: what core needs of the place where containers live, behind a table of
 * functions, so that a store which is no POSIX file system can be added (the "I/O Store" of the PLFS extensibility
 * poster). Paths are relative to the store's root. A handle is a small number, as a descriptor is.
 * Functions return 0 or a count, -errno on failure; EINTR and short transfers are dealt with here.
 */
#ifndef PLFS_STORE_H
#define PLFS_STORE_H

#include "base.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>

struct store {
	const struct store_ops *ops;
	int root; /* handle of the root directory */
	bool zeros_reserve, allocates_ahead; /* see store_posix.c */
	bool remote; /* other hosts may write to it, and what this one's kernel remembers of a file may be out of date */
	bool keeps_order; /* of what is done to names: what came before a change that survives a power failure has survived it as well */
	bool coherent; /* what one host does to names, and to bytes by a call, is seen by all at once: listed, found, and not found any more */
	int uncached; /* flag to open with what other hosts may be writing at the same time, so that nothing is remembered of it; 0: none */
	bool uncached_works; /* it has been tried */
	bool no_openat2;     /* the kernel has none */
};

/*
 * Whom a directory is for, and what is made in it from then on: the owner and group that it gets as far as we may give it away, and
 * whoever @acl names besides, as Linux has it in system.posix_acl_access (NULL: nobody; what a default list of the directory
 * above has added is taken off).
 */
struct store_grant {
	uid_t uid;
	gid_t gid;
	mode_t mode;
	const void *acl;
	size_t acl_len;
};

#define STORE_BRIEFLY (1 << 30) /* in the flags of open(): until the call of the program returns */

/* A file: its length, its inode number, and that with the time of its birth: no other file has that or had it, nor has it copied or restored. */
struct store_identity {
	uint64_t len, ino, id;
};

#define STORE_GONE ".gone"

struct store_ops {
	/*
	 * @flags as of open(2). No symbolic link is followed, nor anything that leads out of the store, and nothing waits for the other end of a
	 * fifo: -EIO. What is made here can be used by whom @mode says, whatever the umask. With O_CREAT the handle is of a
	 * regular file with one name, or with none any more: who put something else there (-EIO) could lead our bytes elsewhere. Returns a handle.
	 */
	int (*open)(struct store *s, const char *path, int flags, mode_t mode);
	/* Close *@h (-1 is ignored) and set it to -1. -errno if bytes that were written to it did not arrive; it is closed all the same. */
	int (*close)(struct store *s, int *h);
	/* All @len bytes, fewer only at the end of the file. */
	ssize_t (*pread)(struct store *s, int h, void *buf, size_t len, uint64_t off);
	/* The same into several places, at most IOV_MAX; @iov is used up. */
	ssize_t (*preadv)(struct store *s, int h, struct iovec *iov, int cnt, uint64_t off);
	/* All @len bytes; fewer if an error came after some were written, else -errno. */
	ssize_t (*pwrite)(struct store *s, int h, const void *buf, size_t len, uint64_t off);
	/* The same of @len bytes at @buf and @len2 at @buf2 behind them. */
	ssize_t (*pwrite2)(struct store *s, int h, const void *buf, size_t len, const void *buf2, size_t len2, uint64_t off);
	int (*fstat)(struct store *s, int h, struct stat *st);
	int (*identify)(struct store *s, int h, struct store_identity *id);
	int (*truncate)(struct store *s, int h, uint64_t len);
	/* On stable storage, with the metadata needed to find it; @dir: @h is a directory. */
	int (*sync)(struct store *s, int h, bool dir);
	/* Let the file reach to @off + @len, in bytes that are zeros and have real space: stores through a mapping cannot fail. */
	int (*reserve)(struct store *s, int h, uint64_t off, uint64_t len);
	/*
	 * Give @len bytes from @off on space ahead of their being written, beyond the end of the file, if that makes writing
	 * faster here and there is plenty; else -EOPNOTSUPP, -ENOSPC. truncate() to the file's length takes it back.
	 */
	int (*allocate_ahead)(struct store *s, int h, uint64_t off, uint64_t len);
	/*
	 * Map @len bytes shared, for reading and, with @writable, writing; NULL if this store cannot. It may break under its user
	 * (mapping.h).
	 */
	void *(*map)(struct store *s, int h, size_t len, bool writable);
	void (*unmap)(struct store *s, void *p, size_t len);
	/* Exclusive advisory lock on the whole file, owned by the handle: waits. -EOPNOTSUPP if there are none. */
	int (*lock)(struct store *s, int h);
	/* The same without waiting. -EBUSY: another handle holds it. */
	int (*try_lock)(struct store *s, int h);
	int (*unlock)(struct store *s, int h);
	/* Where the first byte at or behind @off is that is not certainly in a hole: UINT64_MAX if there is none. */
	uint64_t (*next_data)(struct store *s, int h, uint64_t off);
	/* Whether another handle, of this or another host, holds that lock; true where that cannot be told. */
	bool (*locked)(struct store *s, int h);
	/* What was stored through a mapping of the first @len bytes is for other hosts to see. Where there are none: nothing. */
	int (*expose)(struct store *s, int h, uint64_t len);
	/* Other hosts may have changed bytes of the file: the next read is to ask for them. Where there are none: nothing. */
	void (*forget)(struct store *s, int h);
	int (*stat)(struct store *s, const char *path, struct stat *st);
	/* -EEXIST if it exists. @mode is what it gets, whatever the umask; the group is that of the directory above if that passes it on. */
	int (*mkdir)(struct store *s, const char *path, mode_t mode);
	/*
	 * Give a directory that this process has just made away. Where the group cannot be set nobody is to gain by being in the one that it
	 * has: group and others then have what both have in @g->mode.
	 */
	int (*grant)(struct store *s, const char *path, const struct store_grant *g);
	/* Best effort: let a file that this process has made, as root, be @uid's. */
	void (*give)(struct store *s, int h, uid_t uid);
	/* Of a directory, or of a file that has no other name. */
	int (*chmod)(struct store *s, const char *path, mode_t mode);
	int (*chown)(struct store *s, const char *path, uid_t uid, gid_t gid);
	int (*unlink)(struct store *s, const char *path);
	int (*rmdir)(struct store *s, const char *path);
	int (*rename)(struct store *s, const char *from, const char *to); /* in one directory */
	/*
	 * Remove a directory with all that is in it: all at once, for whoever looks by its name. It is renamed first, to one with STORE_GONE behind
	 * it, where what a killed process has not removed stays. The first error is returned, the rest is removed all the same.
	 */
	int (*remove_tree)(struct store *s, const char *path);
	/* @fn for each name in a directory but "." and "..", in no order; stops at and returns a non-zero. */
	int (*list)(struct store *s, const char *path, int (*fn)(void *arg, const char *name), void *arg);
};

/* A store on the directory @path of a mounted file system. -ENOENT, -ENOTDIR, ... */
int store_posix_open(struct store *s, const char *path);

/* forget() the first @len bytes (0: all) of a file that was opened past the store: nothing while no store here is remote. */
void store_posix_forget(int fd, off_t len);

/* fcntl() of @wait_cmd, F_SETLKW or F_OFD_SETLKW, so that who is killed meanwhile leaves no lock behind; for files opened past the store as well. */
int store_posix_lock(int fd, int wait_cmd, struct flock *lk);

static inline int store_open(struct store *s, const char *path, int flags, mode_t mode) { return s->ops->open(s, path, flags, mode); }
static inline int store_close(struct store *s, int *h) { return s->ops->close(s, h); }

/* Read a whole small file: mem_alloc()ed *@buf of *@len bytes. -EFBIG above @max. */
int store_read_file(struct store *s, const char *path, size_t max, void **buf, size_t *len);

/*
 * Create or replace @path with @len bytes at @buf and @len2 at @buf2 behind them, atomically, by way of a temporary name beside it. Returns
 * a handle of the file, to read and write.
 */
int store_replace_file(struct store *s, const char *path, mode_t mode, const void *buf, size_t len, const void *buf2, size_t len2);

/* The same without a handle, and with the bytes on stable storage before they get the name: 0 or -errno. */
int store_write_file(struct store *s, const char *path, mode_t mode, const void *buf, size_t len, const void *buf2, size_t len2);

/*
 * Whether it is a file that may be written to: what has another name as well may be somebody else's, who has not asked for it.
 */
static inline bool store_may_write(const struct stat *st) { return S_ISREG(st->st_mode) && st->st_nlink <= 1; }

static inline int store_remove_tree(struct store *s, const char *path) { return s->ops->remove_tree(s, path); }

#endif
