/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bytes on some storage: what core needs of the place where containers live, behind a table of functions. So
 * a store that is no POSIX file system can be added (the "I/O Store" of the PLFS extensibility poster);
 * memory.h is a small one.
 *
 * Paths are relative to the store's root. Functions return 0 or a count, -errno on failure. A store deals
 * with EINTR and with short transfers itself.
 *
 * A name says nothing of whose bytes it leads to: README.md has a table of what is checked before which use.
 *
 * A handle is a number >= 0 that only its own store understands. It is no descriptor of the kernel: code that
 * needs one asks for it by store_fd(), and has another way where there is none. test/unit/store/ runs the
 * contract on each store.
 */
#ifndef PLFS_STORE_H
#define PLFS_STORE_H

#include "core/base/base.h"
#include "core/store/dirs.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>

struct store {
	const struct store_ops *ops;
	int root;         /* handle of the root directory */
	void *own;        /* the store's own */
	uint64_t path_id; /* store_path_id() of the path by which it was opened; 0: it has none */
	bool remote;      /* other hosts may write to it; this host's kernel may have old bytes of a file */
	bool keeps_order; /* names and sizes reach stable storage in the order in which they changed */
	bool coherent;    /* all hosts see at once what one does to names, and to bytes by a call */
	bool flock_is_range; /* flock() may lock all bytes there, also against locks of single ones */
	int uncached;     /* open() flag to read past the kernel's cache what other hosts may write; or 0 */
	/* Of the store on a directory (posix.c) alone. */
	bool zeros_reserve, allocates_ahead;
	bool uncached_works; /* it has been tried */
	bool late_sizes;     /* a listing may tell the kernel an old size of what has grown */
	bool no_openat2;     /* the kernel has none */
	/* Of a store whose logs may lie in other places as well (backend/placed.h). */
	const struct store_ops *under;      /* the functions for what is at home; NULL: there are no places */
	const struct place_settings *near; /* where new logs are made; NULL: at home */
	const struct spare_settings *spares; /* copies of logs (backend/spare.h); NULL: none */
	/* Of one whose logs may lie in several backends (backend/spread.h). */
	const struct store_ops *base; /* the functions for this backend alone; NULL: there is no other */
	const struct spread_settings *spread; /* where new logs are made; NULL: here */
};

/*
 * The owner and group of a directory, and what each of them may do there and with what is made in it from
 * then on. @acl, as Linux has it in system.posix_acl_access, adds others; NULL: none, and what the directory
 * above passes on is taken off.
 */
struct store_grant {
	uid_t uid;
	gid_t gid;
	mode_t mode;
	const void *acl;
	size_t acl_len;
	bool made; /* just now, by the caller: what list it has it got from the directory above */
};

#define STORE_BRIEFLY (1 << 30) /* in the flags of open(): until the call of the program returns */

/*
 * A file: its length, its inode number, and @id: no other file has that or had it, nor has a copy or a
 * restored one.
 */
struct store_identity {
	uint64_t len, ino, id;
};

#define STORE_GONE ".gone"

/* A longer path is -ENAMETOOLONG, where one is put together: several are on a stack that may be small. */
#define STORE_PATH_LEN 512

struct store_ops {
	/* ---- the twelve that every store has ---- */

	/*
	 * Open @path with the flags of open(2). Follows no symbolic link and nothing that leads out of the
	 * store; never waits for the other end of a fifo. O_CREAT is given with O_EXCL alone: a new file gets
	 * @mode, whatever the umask, and one that was there keeps its own. A handle; -EIO: the name is of the
	 * wrong kind (a link, a directory, no directory); -EINVAL: O_CREAT without O_EXCL; -errno.
	 */
	int (*open)(struct store *s, const char *path, int flags, mode_t mode);
	/* Close *@h (-1 is ignored) and set it to -1, in any case. 0; -errno: written bytes are lost. */
	int (*close)(struct store *s, int *h);
	/* @len bytes; fewer: the end of the file; -errno. */
	ssize_t (*pread)(struct store *s, int h, void *buf, size_t len, uint64_t off);
	/* @len bytes; fewer: an error came after these; -errno. */
	ssize_t (*pwrite)(struct store *s, int h, const void *buf, size_t len, uint64_t off);
	/* A store without permissions gives the caller's user as the owner. */
	int (*fstat)(struct store *s, int h, struct stat *st);
	int (*truncate)(struct store *s, int h, uint64_t len);
	/* Put the file on stable storage, with the metadata needed to read it; @dir: @h is a directory. */
	int (*sync)(struct store *s, int h, bool dir);
	int (*stat)(struct store *s, const char *path, struct stat *st);
	/*
	 * Make a directory. It gets @mode, whatever the umask, and the group of the directory above if that
	 * passes its group on. 0; -EEXIST: there is one; -errno.
	 */
	int (*mkdir)(struct store *s, const char *path, mode_t mode);
	/* Remove a file's name. Open handles can go on reading and writing the file. */
	int (*unlink)(struct store *s, const char *path);
	/* Within one directory. A file @to is replaced; at any moment there is one of the two. */
	int (*rename)(struct store *s, const char *from, const char *to);
	/*
	 * Call @fn for each name in a directory but "." and "..", in no order. 0; the first non-zero that @fn
	 * returned, which ends the listing; -errno.
	 */
	int (*list)(struct store *s, const char *path, int (*fn)(void *arg, const char *name), void *arg);

	/* ---- capabilities: NULL where the store has none; "None:" is what store_X() does then ---- */

	/* The kernel's descriptor of a file or directory; the handle keeps it open. None: -EOPNOTSUPP. */
	int (*fd)(struct store *s, int h);

	/*
	 * The handle stands at @h until close(), and is in use after the program's call has returned: between
	 * two calls of the program the store may change it there. None: nothing.
	 */
	void (*keep)(int *h);

	/* Several pieces by one call. @iov, at most IOV_MAX, is used up. None: one piece after the other. */
	ssize_t (*preadv)(struct store *s, int h, struct iovec *iov, int cnt, uint64_t off);
	/* @len bytes at @buf and @len2 at @buf2 behind them. */
	ssize_t (*pwrite2)(struct store *s, int h, const void *buf, size_t len, const void *buf2, size_t len2,
			   uint64_t off);

	/* None: the inode number is the id. */
	int (*identify)(struct store *s, int h, struct store_identity *id);

	/*
	 * As rename(), but a file @to stays, for good: -EEXIST. None: rename(), after a look whether there is
	 * one.
	 */
	int (*rename_new)(struct store *s, const char *from, const char *to);

	/* Remove an empty directory. None: 0; a directory goes with its last file. */
	int (*rmdir)(struct store *s, const char *path);
	/*
	 * Remove a directory as dirs_remove() does. It is first renamed, to a name that ends in
	 * STORE_GONE, so that its own name is free at once; what a killed process leaves stays there. 0;
	 * -errno: the first error, after which the rest is removed all the same. None: name by name, in
	 * its place.
	 */
	int (*remove_tree)(struct store *s, const char *path, dirs_known *known);

	/*
	 * Make the file reach to @off + @len at least, and give these bytes real space: stores through a
	 * mapping cannot fail then. They are beyond the end, or were never written. None: zeros are written.
	 */
	int (*reserve)(struct store *s, int h, uint64_t off, uint64_t len);
	/*
	 * Give @len bytes from @off on, beyond the end of the file, space before they are written. truncate()
	 * to the file's length takes it back. 0; -EOPNOTSUPP: it makes writing no faster here; -ENOSPC: there
	 * is not plenty. None: -EOPNOTSUPP.
	 */
	int (*allocate_ahead)(struct store *s, int h, uint64_t off, uint64_t len);
	/* The first byte from @off on that may be in no hole; UINT64_MAX: there is none. None: @off. */
	uint64_t (*next_data)(struct store *s, int h, uint64_t off);

	/*
	 * Shared memory: @len bytes of the file, for reading and, with @writable, writing; every process and
	 * every call of this host sees the same bytes. The mapping may break under its user (guard.h). None:
	 * NULL, as for each error, and errno is ENODEV where no file of the file system can be mapped.
	 */
	void *(*map)(struct store *s, int h, size_t len, bool writable);
	void (*unmap)(struct store *s, void *p, size_t len);
	/* What was stored through a mapping of the first @len bytes is for other hosts to see. None: 0. */
	int (*expose)(struct store *s, int h, uint64_t len);
	/* Other hosts may have changed bytes of the file: the next read asks for them. None: nothing. */
	void (*forget)(struct store *s, int h);

	/*
	 * Append all by one write, wherever the end is then, though others append at the same time. *@at:
	 * where that was. @len bytes; fewer: an error came after these; -errno. None: -EOPNOTSUPP.
	 */
	ssize_t (*append)(struct store *s, int h, const void *buf, size_t len, uint64_t *at);

	/*
	 * Exclusive advisory lock on the whole file, owned by the handle. lock() waits; try_lock(): -EBUSY.
	 * Who may only read a file can hold a shared lock on it for ever: lock() is for files that only those
	 * can open who may write. None: -EOPNOTSUPP.
	 */
	int (*lock)(struct store *s, int h);
	int (*try_lock)(struct store *s, int h);
	/*
	 * Shared with others that do the same; waits while a handle has the exclusive one, which only those
	 * can have who may write the file. None: lock().
	 */
	int (*lock_shared)(struct store *s, int h);
	int (*unlock)(struct store *s, int h);
	/*
	 * Whether another handle, of this or another host, holds the exclusive lock; true where that is not
	 * known. None: true.
	 */
	bool (*locked)(struct store *s, int h);

	/* Permissions. None of these: 0; the store has one user. */

	/*
	 * Give the directory @h, whose attributes are @now, away, as far as this process may. If the group
	 * cannot be set, nobody gains by being in the one that the directory has: group and others get
	 * what both have in @g->mode.
	 */
	int (*grant)(struct store *s, int h, const struct stat *now, const struct store_grant *g);
	/* Best effort: let a file that this process has made, as root, be @uid's. */
	void (*give)(struct store *s, int h, uid_t uid);
	/* By a handle: the caller has looked at what it is of. A name says nothing of that. */
	int (*chmod)(struct store *s, int h, mode_t mode);
	int (*chown)(struct store *s, int h, uid_t uid, gid_t gid);
};

/* The same directory by itself: without places and other backends. */
static inline struct store store_bare(const struct store *s)
{
	struct store bare = *s;

	bare.ops = s->base ? s->base : s->under ? s->under : s->ops;
	bare.under = bare.base = NULL;
	bare.near = NULL;
	bare.spread = NULL;
	bare.spares = NULL;
	return bare;
}

static inline int store_open(struct store *s, const char *path, int flags, mode_t mode)
{
	return s->ops->open(s, path, flags, mode);
}
static inline int store_close(struct store *s, int *h) { return s->ops->close(s, h); }

static inline void store_keep(struct store *s, int *h)
{
	if (s->ops->keep)
		s->ops->keep(h);
}
static inline int store_fd(struct store *s, int h) { return s->ops->fd ? s->ops->fd(s, h) : -EOPNOTSUPP; }

ssize_t store_preadv(struct store *s, int h, struct iovec *iov, int cnt, uint64_t off);
/* The same by a @pread for each place of @iov. */
ssize_t store_preadv_by(struct store *s, int h, const struct iovec *iov, int cnt, uint64_t off,
			ssize_t (*pread)(struct store *s, int h, void *buf, size_t len, uint64_t off));
ssize_t store_pwrite2(struct store *s, int h, const void *buf, size_t len, const void *buf2, size_t len2,
		      uint64_t off);
int store_identify(struct store *s, int h, struct store_identity *id);
/* Each directory of @path in turn, those that are missing. */
int store_make_dirs(struct store *s, const char *path, mode_t mode);
int store_remove_tree(struct store *s, const char *path, dirs_known *known);
int store_reserve(struct store *s, int h, uint64_t off, uint64_t len);
/* reserve() by writing zeros. */
int store_write_zeros(struct store *s, int h, uint64_t off, uint64_t len);

int store_rename_new(struct store *s, const char *from, const char *to);

static inline int store_rmdir(struct store *s, const char *path)
{
	return s->ops->rmdir ? s->ops->rmdir(s, path) : 0;
}

static inline int store_allocate_ahead(struct store *s, int h, uint64_t off, uint64_t len)
{
	return s->ops->allocate_ahead ? s->ops->allocate_ahead(s, h, off, len) : -EOPNOTSUPP;
}

static inline uint64_t store_next_data(struct store *s, int h, uint64_t off)
{
	return s->ops->next_data ? s->ops->next_data(s, h, off) : off;
}

static inline void *store_map(struct store *s, int h, size_t len, bool writable)
{
	if (s->ops->map)
		return s->ops->map(s, h, len, writable);
	errno = ENODEV;
	return NULL;
}

static inline void store_unmap(struct store *s, void *p, size_t len) { s->ops->unmap(s, p, len); }

static inline int store_expose(struct store *s, int h, uint64_t len)
{
	return s->ops->expose ? s->ops->expose(s, h, len) : 0;
}

static inline void store_forget(struct store *s, int h)
{
	if (s->ops->forget)
		s->ops->forget(s, h);
}

static inline ssize_t store_append(struct store *s, int h, const void *buf, size_t len, uint64_t *at)
{
	return s->ops->append ? s->ops->append(s, h, buf, len, at) : -EOPNOTSUPP;
}
static inline int store_lock(struct store *s, int h)
{
	return s->ops->lock ? s->ops->lock(s, h) : -EOPNOTSUPP;
}
static inline int store_try_lock(struct store *s, int h)
{
	return s->ops->try_lock ? s->ops->try_lock(s, h) : -EOPNOTSUPP;
}
static inline int store_lock_shared(struct store *s, int h)
{
	return s->ops->lock_shared ? s->ops->lock_shared(s, h) : store_lock(s, h);
}
static inline int store_unlock(struct store *s, int h)
{
	return s->ops->unlock ? s->ops->unlock(s, h) : -EOPNOTSUPP;
}
static inline bool store_locked(struct store *s, int h)
{
	return s->ops->locked ? s->ops->locked(s, h) : true;
}

static inline int store_grant(struct store *s, int h, const struct stat *now, const struct store_grant *g)
{
	return s->ops->grant ? s->ops->grant(s, h, now, g) : 0;
}

static inline void store_give(struct store *s, int h, uid_t uid)
{
	if (s->ops->give)
		s->ops->give(s, h, uid);
}

static inline int store_chmod(struct store *s, int h, mode_t mode)
{
	return s->ops->chmod ? s->ops->chmod(s, h, mode) : 0;
}

static inline int store_chown(struct store *s, int h, uid_t uid, gid_t gid)
{
	return s->ops->chown ? s->ops->chown(s, h, uid, gid) : 0;
}

/* ---- on any store ---- */

/* A number for the path of a store's root. */
uint64_t store_path_id(const char *path);

/*
 * Open @path, or make it with @mode if it is missing. @flags: O_RDWR and the like, neither O_CREAT nor
 * O_EXCL. *@made: this call has made it. Who made one that was there is not known: the caller looks at it
 * before it writes. As open().
 */
int store_open_or_make(struct store *s, const char *path, int flags, mode_t mode, bool *made);

/* Read a whole small file: mem_alloc()ed *@buf of *@len bytes. -EFBIG above @max. */
int store_read_file(struct store *s, const char *path, size_t max, void **buf, size_t *len);

/*
 * Create or replace @path with @len bytes at @buf and @len2 at @buf2 behind them, atomically, by way of a
 * temporary name beside it. Returns a handle of the file, to read and write.
 */
int store_replace_file(struct store *s, const char *path, mode_t mode, const void *buf, size_t len,
		       const void *buf2, size_t len2);

/* The same without a handle, and with the bytes on stable storage before they get the name: 0 or -errno. */
int store_write_file(struct store *s, const char *path, mode_t mode, const void *buf, size_t len,
		     const void *buf2, size_t len2);

/* The same; @look is called with the handle before that: what it returns but 0 ends it. */
int store_write_looked_at(struct store *s, const char *path, mode_t mode, const void *buf, size_t len,
			  int (*look)(void *arg, int h), void *arg);

/* The same, but a file that is there stays: -EEXIST. */
int store_make_looked_at(struct store *s, const char *path, mode_t mode, const void *buf, size_t len,
			 int (*look)(void *arg, int h), void *arg);

/*
 * store_write_file() with the name on stable storage as well, and given to @uid before it gets the name
 * (STORE_NOBODY: the caller keeps it). 0; -errno: the old file is still there, unless only the directory
 * could not be synced.
 */
#define STORE_NOBODY ((uid_t)-1)
int store_replace_durably(struct store *s, const char *path, mode_t mode, uid_t uid, const void *buf,
			  size_t len);

/* Put the file @path, or with @dir the names in that directory, on stable storage. */
int store_sync_path(struct store *s, const char *path, bool dir);

/* The same of each directory above @path, up to the root. */
int store_sync_parents(struct store *s, const char *path);

/* Whether a file may be written to. A second name may be another user's, who has not asked for it. */
static inline bool store_may_write(const struct stat *st)
{
	return S_ISREG(st->st_mode) && st->st_nlink <= 1;
}

#endif
