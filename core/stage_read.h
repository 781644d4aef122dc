/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the parts of the reading side of live files have in common: stage_open.c, stage_load.c, stage_tail.c,
 * stage_mapped.c. Every byte is a stranger's, and may change while it is looked at.
 */
#ifndef PLFS_STAGE_READ_H
#define PLFS_STAGE_READ_H

#include "stage_layout.h"

/* Whether the owner of the live file @path is of another host. */
bool stage_is_foreign(const struct container *c, const char *path);

/*
 * Whether it is of a kernel that is no more, on a file system that only one has at a time. If that one lost its power
 * the pages need not belong together.
 */
bool stage_is_stranded(const struct container *c, const uint8_t *header);

/*
 * Open a live file and read its header, HEADER_LEN bytes; returns a handle. *@elsewhere, unless NULL: its owner is of
 * another host, and lives; if not, all its pages have been written back, and from here on are read as they are.
 * -ENODATA: its owner has just made it, its log has no bytes yet. -EBADMSG: damaged; -EPROTONOSUPPORT: of another
 * version (one line says so).
 */
int stage_open_header(const struct container *c, const char *path, int flags, uint8_t *header, bool *elsewhere);

/* Make numbers of the checked words of a header. -EBADMSG */
int stage_take_words(uint8_t *header);

/* The number in the checked word at @off of a mapping, as it is now. */
static inline uint64_t stage_load_number(const uint8_t *map, int off) { return stage_number(load_le64(map + off)); }

/* The record at @p; @sealed: it must have its checksum. -EBADMSG */
int stage_decode(struct index_record *rec, const uint8_t *p, bool sealed);

#endif
