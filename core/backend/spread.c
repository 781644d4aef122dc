/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Choosing a backend for a new log, of those of the mapping.
 */
#include "core/backend/spread.h"

void spread_setup(struct spread_settings *ss, unsigned rule, const char *home, char *const *others)
{
	ss->rule = rule;
	for (ss->nr = 0; ss->nr < SPREAD_SLOTS && others[ss->nr]; ss->nr++) {
		struct place_settings *ps = &ss->others[ss->nr];

		*ps = (struct place_settings){ .near = others[ss->nr], .home = home, .log_max = PLACE_LOG_MAX };
		place_settings_init(ps);
	}
}
