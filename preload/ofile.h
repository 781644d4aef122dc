/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An open file description: what dup()ed descriptors share. For a logical file the plfs_file, the
 * status flags as the program asked for them (the kernel's descriptor is open for reading and writing), and
 * the offset.
 *
 * The offset is in user space while nobody outside this process can share it; once shared (a fork, an
 * exec, a descriptor sent or inherited) it is the kernel's own, shifted by PLFS_BODY_OFF, for ever.
 *
 * Descriptions are recycled, never freed: a lookup may touch one that has just gone.
 */
#ifndef PLFS_OFILE_H
#define PLFS_OFILE_H

#include "shim.h"

struct where;

enum ofile_kind { OFILE_FILE, OFILE_DIR };

struct ofile {
	unsigned refs; /* one for each slot, one for each call under way; 0: in the free list */
	enum ofile_kind kind;
	struct plfs_mount *m;   /* of a directory; NULL: it is above a mount, not in one */
	char *path;             /* of a directory above a mount: where it was when we looked */
	struct plfs_file *file; /* of a logical file */
	int flags;              /* as F_GETFL reports them */
	int told_heirs;         /* of its flags: see ofile_tell_heirs() */
	bool opened_append;     /* the kernel's description has, or may have, O_APPEND */
	pthread_mutex_t lock;   /* the offset, and which of read, write and seek comes first */
	off_t logical_off;      /* while !shared */
	bool shared;
	bool frozen; /* see fd_freeze(), whose lock guards both */
	struct ofile *next_frozen;
	struct ofile *next_free;
};

/* A description with one reference. They own @file; NULL (no memory) closes it. */
struct ofile *ofile_new_file(struct plfs_file *file, int flags, bool shared);
/* The same for the description of @fd that was inherited or received, with the flags that it had where it comes from. */
struct ofile *ofile_new_heir(struct plfs_file *file, int fd);
/* Let processes that get the shared description know those flags that the kernel's differ from. With its lock. */
void ofile_tell_heirs(struct ofile *f, int fd);
/* @path is copied if @m is NULL. */
struct ofile *ofile_new_dir(struct plfs_mount *m, const char *path);

/*
 * One more reference, unless the description is gone already. While there is one thread, which a signal handler cannot
 * get in between of, counting needs no atomic instructions.
 */
static inline bool ofile_try_get(struct ofile *f)
{
	unsigned refs = __atomic_load_n(&f->refs, __ATOMIC_RELAXED);

	if (likely(__libc_single_threaded)) {
		__atomic_store_n(&f->refs, refs + (refs != 0), __ATOMIC_RELAXED);
		return refs;
	}
	while (refs) {
		if (__atomic_compare_exchange_n(&f->refs, &refs, refs + 1, true, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return true;
	}
	return false;
}

/* What ofile_unref() does with the last one. */
int ofile_end(struct ofile *f);

/*
 * One reference less; for what fd_get() returned there is fd_put(). With the last one the file is closed: returns what
 * plfs_close() said, else 0.
 */
static inline int ofile_unref(struct ofile *f)
{
	unsigned refs;

	if (likely(__libc_single_threaded)) {
		refs = __atomic_load_n(&f->refs, __ATOMIC_RELAXED) - 1;
		__atomic_store_n(&f->refs, refs, __ATOMIC_RELAXED);
	} else {
		refs = __atomic_sub_fetch(&f->refs, 1, __ATOMIC_ACQ_REL);
	}
	return likely(refs) ? 0 : ofile_end(f);
}

/*
 * open(2) of a mapped path; puts logical files and directories into the table. Returns the
 * descriptor, or -errno. *@logical, unless NULL, says which of the two it is.
 */
int ofile_open(const struct where *w, int flags, mode_t mode, bool *logical);

/*
 * The whole of open(2): find out where the path leads, fill @w, and open it if it is ours or goes by no links. @r is
 * what path_open_plain() has said of it, or -ENOSYS. Returns the descriptor or -errno; PATH_NOT_OPENED: the real
 * call on (w->dirfd, w->path) is the caller's.
 */
int ofile_find_and_open(struct where *w, int dirfd, const char *path, int flags, mode_t mode, int r);

/*
 * Hand the offset to the kernel. ofile_freeze(), once for each descriptor, also keeps the lock until
 * ofile_thaw().
 */
void ofile_share(struct ofile *f, int fd);
void ofile_freeze(struct ofile *f, int fd);
void ofile_thaw(struct ofile *f);

/* The same for the free list: nothing is made or recycled in between. */
void ofile_freeze_list(void);
void ofile_thaw_list(void);

static inline bool ofile_can_read(const struct ofile *f) { return (f->flags & O_ACCMODE) != O_WRONLY; }
static inline bool ofile_can_write(const struct ofile *f) { return (f->flags & O_ACCMODE) != O_RDONLY; }

/*
 * The data calls. @fd is the descriptor that the program named, needed for a shared offset. Results as the
 * system calls', with -errno. The positional ones move no offset; a positional write with O_APPEND appends,
 * as Linux does.
 */
ssize_t ofile_readv(struct ofile *f, int fd, const struct iovec *iov, int cnt);
ssize_t ofile_writev(struct ofile *f, int fd, const struct iovec *iov, int cnt);
ssize_t ofile_preadv(struct ofile *f, const struct iovec *iov, int cnt, off_t logical_off);
ssize_t ofile_pwritev(struct ofile *f, const struct iovec *iov, int cnt, off_t logical_off);
/* At the end, as with O_APPEND. The offset follows unless @fd is -1. */
ssize_t ofile_appendv(struct ofile *f, int fd, const struct iovec *iov, int cnt);
off_t ofile_lseek(struct ofile *f, int fd, off_t off, int whence);
/* The offset now, or -errno. */
off_t ofile_tell(struct ofile *f, int fd);

#endif
