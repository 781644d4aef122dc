/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared by the parts of the reading side of live files: live_open.c, live_load.c, live_tail.c,
 * live_mapped.c. No byte is trusted, and each may change while it is read.
 */
#ifndef PLFS_LIVE_READ_H
#define PLFS_LIVE_READ_H

#include "core/dropping/live.h"

/* The header as live_open_header() read it. */
struct live_head {
	struct live_header fixed;
	struct live_words words;
	bool words_damaged; /* one of the checked words */
	uint64_t adopted;
};

/*
 * Whether the owner ran under an earlier boot of the host, on a file system that one host alone uses. After a
 * power failure the pages of the live file may be from different moments.
 */
bool live_is_stranded(const struct container *c, const struct live_header *lh);

/*
 * Open a live file and read its header. *@elsewhere, unless NULL: whether its owner lives, on another host.
 * If it does not, all pages of the file have been written back, and later reads see them. With O_RDWR in
 * @flags its header has its own name, and it has no other. >= 0: a handle; -ENODATA: the file has just
 * been made, its log has no bytes yet; -EBADMSG: damaged;
 * -EPROTONOSUPPORT: of another version, or with unknown features (one line says so).
 */
int live_open_header(const struct container *c, const char *path, int flags, struct live_head *head,
		     bool *elsewhere);

/* The words as they are now. 0; -errno: -EBADMSG if a checked word is damaged or the file ends before. */
int live_read_words(struct store *s, int h, struct live_words *lw);

/* The number in the checked word at @off of a mapping. One load. */
static inline uint64_t live_load_number(const uint8_t *map, int off)
{
	return live_number(load_le64(map + off));
}

/* Decode the record at @p; @sealed: its checksum must be right. 0; -EBADMSG. */
int live_decode(struct index_record *rec, const uint8_t *p, bool sealed);

#endif
