/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Kill a process at its system calls (turn.h), or in the middle of each of its writes. The process
 * carries out a plan of steps on a few names (killed_plan.h), and dies. A fresh process must find all that
 * had returned by then: names and bytes, and the sizes by stat() before anything has been opened. The step
 * under way may be done, undone, or half done byte by byte. A repair, each second time, changes nothing of
 * that. Then the file must go on working, and when all names are removed nothing may be left.
 */
#ifndef TEST_KILLED_AT_H
#define TEST_KILLED_AT_H

#include "test/lib/killed_plan.h"

/* Kill at one call of every @how.stride (turn.h), until the plan comes to its end. */
void kill_at_each(struct killing how);

#endif
