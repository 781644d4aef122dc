/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Closing logs whose processes were killed, as they would have done it themselves.
 */
#ifndef PLFS_FINISH_H
#define PLFS_FINISH_H

#include "container.h"

/*
 * Close the log of the live file @live, relative to the container, that nobody writes any more: what is staged goes
 * to the log, with its checksums and its records; the records to the node index, the live file away, and space that
 * the log was given ahead back. Interrupted at any moment it leaves what is as readable as before, and can be done
 * again. *@unsummed: the checksums in the live file were caught in a change; the log has got new ones, of its bytes
 * as they are. -errno: the live file is there still; -EBADMSG: it is damaged; -ENODATA: the log was cut.
 *
 * Where the host was started anew since (stranded.h) @sure_len bytes of the log are certain, and no record of it may
 * go further, neither in the live file (then -ENODATA) nor, which is the caller's to see to, in an index. What the
 * log has behind these is of no use to anybody.
 */
int finish_log(const struct container *c, const char *live, uint64_t sure_len, bool *unsummed);

#endif
