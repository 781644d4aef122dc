/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An open file description: the state that dup()ed descriptors share. For a logical file this is its
 * plfs_file, the status flags, and the offset. The flags are those of the program; the kernel's descriptor is
 * open for reading and writing.
 *
 * The offset is in user space while only this process has the description. A fork, an exec, or a descriptor
 * that is sent or inherited shares it. From then on the kernel keeps it, shifted by PLFS_BODY_OFF.
 *
 * Descriptions are recycled, never freed: a lookup may touch one that has just ended.
 */
#ifndef PLFS_OFILE_H
#define PLFS_OFILE_H

#include "shim.h"

enum ofile_kind { OFILE_FILE, OFILE_DIR };

struct ofile {
	unsigned refs; /* one for each slot, one for each call under way; 0: in the free list */
	enum ofile_kind kind;
	struct plfs_mount *m;   /* of a directory; NULL: it is above a mount, not in one */
	char *path;             /* of a directory above a mount: its path when it was entered */
	struct plfs_file *file; /* of a logical file */
	int flags;              /* as F_GETFL reports them */
	int heirs_mark;         /* as ofile_mark_for_heirs() has left it */
	int program_signal;     /* of the program's F_SETSIG; the kernel's is the mark */
	bool opened_append;     /* the kernel's description has, or may have, O_APPEND */
	pthread_mutex_t lock;   /* the offset, and which of read, write and seek comes first */
	off_t logical_off;      /* while !shared */
	bool shared;
	bool frozen; /* see fd_freeze(), whose lock guards both */
	struct ofile *next_frozen;
	struct ofile *next_free;
	/* With O_DIRECT (the kernel's description is without): masks of the bits that must be 0 */
	unsigned direct_mem; /* in an address */
	unsigned direct_len; /* in an offset and in a count */
};

/* A description with one reference. It owns @file. NULL: no memory; @file is closed. */
struct ofile *ofile_new_file(struct plfs_file *file, int flags, bool shared);
/* The same for the description of @fd, inherited or received. It has the flags that the sender had. */
struct ofile *ofile_new_heir(struct plfs_file *file, int fd);
/* f->flags has got O_DIRECT: ask the file system of @fd, a descriptor of the file, for its alignment. */
void ofile_set_direct(struct ofile *f, int fd);
/*
 * Leave a mark on the kernel's description for processes that get it: the flags that it lacks. Caller holds
 * f->lock.
 */
void ofile_mark_for_heirs(struct ofile *f, int fd);
/*
 * Take what a process that shares the description has made of the flags since: O_APPEND, O_DIRECT. One or two
 * system calls if the description is shared, else none. The second is for a caller that holds f->lock.
 */
void ofile_learn_flags(struct ofile *f, int fd);
void ofile_learn_locked(struct ofile *f, int fd);
/*
 * A directory of a backend, @m its mount; NULL: a directory above a mount, @path is copied. NULL: no memory.
 */
struct ofile *ofile_new_dir(struct plfs_mount *m, const char *path);

/*
 * Take a reference. false: the description has ended. A process with one thread counts without atomic
 * instructions: signal handlers are deferred meanwhile.
 */
static inline bool ofile_try_get(struct ofile *f)
{
	unsigned refs = __atomic_load_n(&f->refs, __ATOMIC_RELAXED);

	if (likely(__libc_single_threaded)) {
		__atomic_store_n(&f->refs, refs + (refs != 0), __ATOMIC_RELAXED);
		return refs;
	}
	while (refs) {
		if (__atomic_compare_exchange_n(&f->refs, &refs, refs + 1, true, __ATOMIC_ACQUIRE,
						__ATOMIC_RELAXED))
			return true;
	}
	return false;
}

/* The end of a description without references. Returns as ofile_unref(). */
int ofile_end(struct ofile *f);

/*
 * Drop a reference; fd_put() does so for one of fd_get(). The last one closes the file: returns the result of
 * plfs_close(), else 0.
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
 * Give the offset to the kernel. ofile_freeze(), called for each descriptor, also keeps the lock until
 * ofile_thaw().
 */
void ofile_share(struct ofile *f, int fd);
void ofile_freeze(struct ofile *f, int fd);
void ofile_thaw(struct ofile *f);

/* In the child of a fork: whoever has the lock is not there. */
void ofile_disown(struct ofile *f);

/* Lock and unlock the free list: no description is made or recycled in between. */
void ofile_freeze_list(void);
void ofile_thaw_list(void);

static inline bool ofile_can_read(const struct ofile *f) { return (f->flags & O_ACCMODE) != O_WRONLY; }
static inline bool ofile_can_write(const struct ofile *f) { return (f->flags & O_ACCMODE) != O_RDONLY; }

/*
 * The data calls. @fd is the program's descriptor, needed for a shared offset. Results as of the system
 * calls, with -errno. The positional calls move no offset. A positional write with O_APPEND appends, as on
 * Linux.
 */
ssize_t ofile_readv(struct ofile *f, int fd, const struct iovec *iov, int cnt);
ssize_t ofile_writev(struct ofile *f, int fd, const struct iovec *iov, int cnt);
ssize_t ofile_preadv(struct ofile *f, const struct iovec *iov, int cnt, off_t logical_off);
ssize_t ofile_pwritev(struct ofile *f, int fd, const struct iovec *iov, int cnt, off_t logical_off);
/* Write at the end, as with O_APPEND. The offset moves there too, unless @fd is -1. */
ssize_t ofile_appendv(struct ofile *f, int fd, const struct iovec *iov, int cnt);
off_t ofile_lseek(struct ofile *f, int fd, off_t off, int whence);
/* The offset; -errno. */
off_t ofile_tell(struct ofile *f, int fd);

#endif
