/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One log while it is copied: the steps of a move and of a copy (carry.h), which are the caller's to order.
 */
#ifndef PLFS_CARRIED_H
#define PLFS_CARRIED_H

#include "core/backend/place.h"
#include "core/dropping/sums.h"

#define CARRIED_COPY_LEN ((size_t)1 << 20)
#define CARRIED_HEADER_LEN 4096 /* of a log, behind which a hole follows */

/* Options and results of a move. */
struct carry {
	/* NULL, or: so many bytes more were copied. 0; -errno ends the copy. */
	int (*copied)(void *arg, uint64_t len);
	void *arg;
	size_t piece;    /* bytes to copy at a time, whole chunks; 0: any number */
	bool direct;     /* past the page cache, if that works: less processor time, but no faster */
	bool keep;       /* what goes near stays there as a staged copy (core/backend/staged.h) */
	uint64_t bytes;  /* copied, of all logs */
	unsigned nr_logs; /* moved */
	bool stays;       /* the log is at home, and its place is read-only: it is there too */
};

/* One log, near and at home. */
struct carried {
	const struct container *c;
	struct store home;
	const char *path; /* relative to the container */
	char full[CONTAINER_PATH_LEN];
	int near, from, to; /* near: the file there; from: with what home has of it (twin.h) */
	int other;     /* -1, or: a copy, for what is damaged in @from */
	bool reserves; /* space for a copy, before it is written */
	bool keeps;    /* what goes near, unless: */
	bool doubtful; /* bytes of it were wrong, or were not looked at */
	uint8_t *buf; /* CARRIED_COPY_LEN; by carried_make_buf() */
	void *buf_mem;
	bool is_direct; /* k->to is written past the page cache now */
	bool quiet;   /* what is wrong gets no line */
	bool private; /* the copy is its owner's: no chmod() reaches it */
	bool restores; /* a log at home, of a copy */
	struct log_sums sums;
};

/* Close what is open, and free it. */
void carried_end(struct carried *k);

/* Make k->buf, of whole pages. 0; -ENOMEM. */
int carried_make_buf(struct carried *k);

/* Make the file @full in k->home, with the mode and owner that a log has there. A handle; -errno. */
int carried_make(struct carried *k, const char *full);

/* 0; -errno. */
int carried_copy_header(struct carried *k);

/* Whether a process writes it, or one that was killed has left its live file. */
bool carried_is_open(const struct carried *k);

/* Whether the log is still what was copied: of @len bytes, closed, and under its name. 0; -EBUSY; -errno. */
int carried_is_same(struct carried *k, off_t len);

/*
 * Copy the data area from @off up to @len to k->to, unless that is -1. @compares: with the log's checksums.
 * 0; -EIO: they differ (one line, unless k->quiet); -EBUSY: the log was cut or continued meanwhile; -errno.
 */
int carried_copy_data(struct carried *k, uint64_t off, uint64_t len, bool compares, struct carry *carry);

/*
 * Whether all @len bytes of the data area of the log @path, open at @h, match the checksums that it has, or
 * those at @other do (-1: none). 0; -EIO, without a line: they do not, or it has none; -errno.
 */
int carried_prove(const struct container *c, const char *path, int h, int other, uint64_t len);

/* Copy the whole log to the new file @tmp of k->home, compared and synced. *@len: of the log's file. */
int carried_copy_all(struct carried *k, const char *tmp, off_t *len, struct carry *carry);

/* The name, or path, @tmp (STORE_PATH_LEN) for a copy of @name under way. 0; -errno. */
int carried_name_tmp(const char *name, char *tmp);

/* Run @fn while nobody continues the log. Returns what it returns; -errno. */
int carried_alone(struct carried *k, int (*fn)(struct carried *k, const char *tmp, off_t len),
		  const char *tmp, off_t len);

/* The file @tmp takes the log's name at home, if the log is still what was copied. 0; -EBUSY; -errno. */
int carried_commit(struct carried *k, const char *tmp, off_t len);

/* The name k->full becomes durable at home. 0; -errno. */
int carried_sync_hostdir(struct carried *k);

#endif
