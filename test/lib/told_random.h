/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What random histories of a file have in common (told_model.h, rounds.h).
 */
#ifndef TEST_TOLD_RANDOM_H
#define TEST_TOLD_RANDOM_H

#include "test/lib/told_model.h"

/* Process @who does @act, somewhere. Now and then it pauses instead. */
struct model_act told_random_act(int who, enum told_act act);

/* The same act, or another where the process cannot do it now. Now and then the process is killed instead. */
struct model_act told_random_possible(struct model_act a);

#endif
