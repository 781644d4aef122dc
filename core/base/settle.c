/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/base/settle.h"

#include "core/base/io.h"

#include <time.h>

#define WAITS 9
#define WAITS_AFTER_VAIN 4
#define VAIN_S 10

static time_t vain_until_s;

static time_t now_s(void)
{
	struct timespec now;

	sys.clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

bool settle_wait(struct settle *s)
{
	bool hopeful = now_s() >= __atomic_load_n(&vain_until_s, __ATOMIC_RELAXED);
	struct timespec pause = { .tv_nsec = 1000000 };

	if (s->waits < (hopeful ? WAITS : WAITS_AFTER_VAIN)) {
		pause.tv_nsec <<= s->waits++;
		io_nanosleep(&pause, NULL);
		return true;
	}
	__atomic_store_n(&vain_until_s, now_s() + VAIN_S, __ATOMIC_RELAXED);
	return false;
}
