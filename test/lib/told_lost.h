/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Backends of told_model.h that go away or do not answer, come back, or come back empty, and damage to logs:
 * what may be an error then. The first backend is the scratch directory; near_spread() has the others.
 */
#ifndef TEST_TOLD_LOST_H
#define TEST_TOLD_LOST_H

#include "test/lib/told_model.h"

enum lost_kind { LOST_SPREAD, LOST_PARITY, LOST_MIRROR };

/* Before told_start(). */
void lost_begin(enum lost_kind kind);

/* Collect what is in backends of files that were removed. False: something is left. */
bool lost_leaves_nothing(void);

/* Whether the process @who has logs in the backend. */
bool lost_has_logs(int backend, int who);

/* So many losses at a time, of backends or logs, lose nothing that parity covers: 1, or set before. */
extern unsigned lost_survives;

/* Whether it is away, and has no log that is open, or was when its process was killed. */
bool lost_may_be_forgotten(int backend);

/* Bits of the backends that are away. */
extern unsigned lost_away;

/* Set before: backends go in the midst of calls, and processes are killed there. */
extern bool lost_amid;

#endif
