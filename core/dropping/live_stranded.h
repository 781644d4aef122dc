/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stranded live files: their owners ran under an earlier boot of the host. They were killed, or the host lost
 * its power, and any page that was in memory may be missing. A record with its checksum is true whenever it
 * was written. The bytes that it covers are believed in two cases: the node index says that they were synced,
 * or the checksums in the live file match.
 */
#ifndef PLFS_LIVE_STRANDED_H
#define PLFS_LIVE_STRANDED_H

#include "core/dropping/live.h"

/*
 * Compare the log @log, from position @from on, with the checksums of its live file, open at @h, with the
 * header @lh and the words @lw. Returns the position up to which they match. The checksum under way is in one
 * page with the length of the log; those of whole chunks are in other pages.
 */
uint64_t stranded_check_log(const struct container *c, int h, const struct live_header *lh,
			    const struct live_words *lw, const char *log, uint64_t from);

/*
 * Split @rec at position @sure_len of the log: *@sure is the part below, *@lost the part beyond. A run is
 * split between elements. *@has_sure, *@has_lost: whether there is such a part.
 */
void stranded_parts(const struct index_record *rec, uint64_t sure_len, struct index_record *sure,
		    bool *has_sure, struct index_record *lost, bool *has_lost);

#endif
