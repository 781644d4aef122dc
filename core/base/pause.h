/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waiting by asking again and again, each time later. Who asks a server makes all wait that ask it, also
 * whoever is waited for: so a pause is longer where asking takes long.
 */
#ifndef PLFS_PAUSE_H
#define PLFS_PAUSE_H

#include "core/base/base.h"

/* One wait. Begins with zeros. */
struct pause {
	uint64_t begun_ns, woke_ns;
	uint64_t slept_ns; /* the pauses so far, without the asking */
};

void pause_before_asking(struct pause *p);

#endif
