/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How often gathering is attempted.
 */
#include "core/gather/attempts.h"

#include "core/gather/gather.h"

#include <stdio.h>

#define ATTEMPTS_MAX 1000

/* Once for a log that was closed meanwhile, and twice for luck. */
#define UNKNOWN_MAX 3

unsigned attempts_flags(const struct attempts *a)
{
	return *a->missed ? GATHER_LOGS : 0;
}

void attempts_note(struct attempts *a, enum gather_reason reason, const char *unknown)
{
	a->nr++;
	a->reason = reason;
	if (reason != GATHER_UNKNOWN_LOG)
		return;
	if (strcmp(a->unknown, unknown)) {
		snprintf(a->unknown, sizeof(a->unknown), "%s", unknown);
		a->nr_unknown = 0;
	}
	a->nr_unknown++;
	if (a->nr_unknown == UNKNOWN_MAX && !*a->missed)
		memcpy(a->missed, a->unknown, sizeof(a->missed));
}

/* The attempt after the last that counts has asked the logs: they do not say it either. */
bool attempts_go_on(const struct attempts *a)
{
	return a->nr < ATTEMPTS_MAX && (a->reason != GATHER_UNKNOWN_LOG || a->nr_unknown <= UNKNOWN_MAX);
}
