/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One process publishes for all of its host. To publish is to make the stub say the size, and when the file
 * was written; where hosts share the stub that is several messages, and those of processes that do it at once
 * wait for each other. So they take turns, and who has the turn publishes what all released before it took
 * the turn. (As databases commit transactions in groups: DeWitt et al., "Implementation Techniques for Main
 * Memory Database Systems", SIGMOD 1984.)
 *
 *   publications               (from byte 128 of notice.HOST on; memory of a host, in its order of bytes)
 *   off size field
 *     0   8  turn           when it was taken, since the machine started, in ns; 0: it is free; odd: its
 *                           end is being written
 *     8   8  tick           how often it was taken
 *    16   8  begun          the last publication: tick when it began
 *    24   8  generation_ns  of the file then
 *    32   8  len            of the body, behind the publication
 *    40   8  ctime_ns       time of change of the stub, behind the publication; 0: nobody looked
 *    48   8  owner          of the stub then: its number, and that of the group times 2^32
 *    56   8  check          exclusive-or of the five fields before it and of "PLFSPUB1"
 *    64   8  seq            odd while the six fields before it change
 *
 * A process that is killed with the turn has it for a second. Nobody depends on turns: who has waited for
 * half a second publishes for itself.
 */
#ifndef PLFS_PUBLISHED_H
#define PLFS_PUBLISHED_H

#include "core/dropping/lease.h"

#define PUBLISHED_OFF 128

struct published {
	uint64_t begun, generation_ns, len, ctime_ns, owner;
	uint64_t turn; /* for published_end() */
};

enum published_by {
	PUBLISHED_BY_NONE,   /* the caller publishes for itself */
	PUBLISHED_BY_CALLER, /* the caller publishes for all, and calls published_end() */
	PUBLISHED_BY_OTHER,  /* another process has published what was released before the call: *@p */
};

/*
 * To be called when this process has released all that it publishes. Without @patient it does not wait. The
 * file's writer has the lease @l open.
 */
enum published_by published_take(struct lease *l, bool patient, struct published *p);

/*
 * The end of the turn @p, with begun and turn as published_take() left them, and the rest as it is now.
 * @done: all of it was published.
 */
void published_end(struct lease *l, const struct published *p, bool done);

#endif
