/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Closing the logs of killed writers, as the writers would have done.
 */
#ifndef PLFS_FINISH_H
#define PLFS_FINISH_H

#include "core/backend/container.h"

struct finished {
	/*
	 * The writer was killed while it changed the checksums in the live file; the log's are computed from
	 * its bytes as they are.
	 */
	bool unsummed;
	bool at_home; /* it was near, where there is no room for its end */
};

/*
 * Close the log of the live file @live (relative to the container), whose writer is dead: move the stage to
 * the log with its checksums and records, the records to the node index, give back space allocated ahead,
 * remove the live file. Interrupted at any moment it leaves the file as readable as before, and can be
 * repeated.
 *
 * If the live file is stranded (live_stranded.h), @sure_len bytes of the log are certain. No record of the
 * log may reach further: one in the live file gives -ENODATA, those in node indexes are the caller's to
 * check. The log is cut there.
 *
 * 0; -errno: the live file is still there. -EBADMSG: it is damaged; -ENODATA: the log is too short.
 */
int finish_log(const struct container *c, const char *live, uint64_t sure_len, struct finished *how);

#endif
