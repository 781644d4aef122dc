/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Gathering a container whose logs are being closed. A log that is closed moves from its live file to its
 * node index, so one attempt may find it in neither. Each attempt has one such log less before it, hence
 * gathering is attempted again.
 *
 * A log that no index knows, and that has no live file, may have been closed after the indexes were read.
 * Then the next attempt finds it. A log that stays unknown is missed: from then on all logs are asked,
 * whichever log is unknown next.
 */
#ifndef PLFS_ATTEMPTS_H
#define PLFS_ATTEMPTS_H

#include "core/gather/gathered.h"

/* All zeros to begin with. */
struct attempts {
	enum gather_reason reason; /* why the last one did not complete */
	unsigned nr;
	unsigned nr_unknown;       /* so many have found @unknown since another log was the unknown one */
	char unknown[CONTAINER_PATH_LEN];
	char missed[CONTAINER_PATH_LEN]; /* "": none */
};

/* The flags for gather() in the next attempt. */
unsigned attempts_flags(const struct attempts *a);

/* An attempt did not complete because of @reason; @unknown: path of the log, for GATHER_UNKNOWN_LOG. */
void attempts_note(struct attempts *a, enum gather_reason reason, const char *unknown);

/* Whether another attempt is worthwhile after that. */
bool attempts_go_on(const struct attempts *a);

#endif
