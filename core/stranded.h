/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Live files of a kernel that is no more: their owners were killed, or the host lost its power, and of what was in
 * memory then any page may be missing. A record with its checksum is true whenever it is from. Of the bytes that it
 * speaks of, those are believed that have been synced, as the node index tells, and those that the checksums in the
 * live file vouch for.
 */
#ifndef PLFS_STRANDED_H
#define PLFS_STRANDED_H

#include "stage.h"

/*
 * How far, from @from on, the log @log has what its live file @h, with this header, has checksums of. All of these
 * are in one page with the length of the log, but those of whole chunks.
 */
uint64_t stranded_check_log(const struct container *c, int h, const uint8_t *header, const char *log, uint64_t from);

/*
 * The parts of @rec below @sure_len of the log, *@sure, and beyond, *@lost. Of runs these are whole elements. There
 * may be nothing of either: then false in *@has_sure, *@has_lost.
 */
void stranded_parts(const struct index_record *rec, uint64_t sure_len, struct index_record *sure, bool *has_sure,
		    struct index_record *lost, bool *has_lost);

#endif
