/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies of closed data logs in other backends (core/backend/spare.h): reading, proving and making them.
 */
#ifndef PLFS_COPIES_H
#define PLFS_COPIES_H

#include "core/backend/spare.h"
#include "core/dropping/carry.h"

/*
 * Open a copy of the log @path, relative to the container, for reading, by datalog_pread() with the
 * container's store. *@no: 0 for the first copy, and then as the last call left it, for the next one. @where
 * (PLACE_PATH_LEN): the directory of copies.HOST that it is in. Behind the copies come those that are made of
 * parity (parities.h): rebuilt_is(). Its header is that of the log; its bytes are
 * the caller's to check, and it may be shorter than the log is. >= 0: a handle; -ENOENT: there is none.
 */
int copies_open(const struct container *c, const char *path, unsigned *no, char *where);

/*
 * Whether the open log @h, of the name @path, is whole as far as it goes: every chunk has its checksum, and
 * matches. *@len: of its data area. 0; -EIO: it is not; -errno.
 */
int copies_prove(const struct container *c, const char *path, int h, uint64_t *len);

/* A copy as it was found. */
struct copies_one {
	const char *where; /* the directory of copies.HOST */
	int ret;           /* 0: whole; -ENOENT; -EIO: damaged; -errno */
	uint64_t len;      /* of its data area */
};

/*
 * Look for the copy of the log @path in the directory @top. With @proves its bytes are read; else its length
 * and header have to do.
 */
void copies_look(const struct container *c, const char *path, const char *top, bool proves,
		 struct copies_one *one);

/*
 * Have a copy of the closed log @path in the place @ps. One of the length of the log is taken for one; any
 * other is replaced. 0: there is one, and carry->nr_logs and ->bytes say whether it was made now; -EBUSY: the
 * log is written; -EIO: the log itself is damaged (one line); -ENOENT: there is no such log at home; -ENXIO:
 * the place is not there; -errno.
 */
int copies_make(const struct container *c, const char *path, const struct place_settings *ps,
		struct carry *carry);

/* All bytes of a log: those of @from, and those of @other (-1: none) where that is damaged. */
struct copies_source {
	int from, other; /* handles */
	uint64_t len;    /* of the data area */
	char where[PLACE_PATH_LEN]; /* the directory of the copy among them */
};

/*
 * Find a source of at least @least bytes of the log @path: the longest whole copy, or a copy and the log at
 * home of which each has what the other lacks. 0: copies_close() is to be called; -ENOENT: there is none.
 */
int copies_find(const struct container *c, const char *path, uint64_t least, struct copies_source *src);
void copies_close(const struct container *c, struct copies_source *src);

/*
 * Have the log @path at home again from such a source, in place of what is there. What is there is kept if it
 * is whole and no shorter. 1: done; 0: there was no need; -ENOENT: no copy is of use; -EBUSY: it is written;
 * -errno.
 */
int copies_restore(const struct container *c, const char *path, uint64_t least, struct carry *carry);

/*
 * Have each directory of copies.HOST that can be entered have a whole copy of the log @path, which is whole
 * itself. The number of copies that were made; -EIO: the log is not whole; -errno.
 */
int copies_refresh(const struct container *c, const char *path, struct carry *carry);

#endif
