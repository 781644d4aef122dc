/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pauses of a read that waits.
 */
#include "core/file/patience.h"

#include "core/base/critical.h"
#include "core/base/io.h"

#include <time.h>

#define NS_A_SECOND 1000000000ULL
#define PAUSE_NS (NS_A_SECOND / 100)
#define PAUSE_MAX_NS NS_A_SECOND

static uint64_t now_ns(void)
{
	struct timespec now;

	sys.clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_A_SECOND + (uint64_t)now.tv_nsec;
}

void patience_wait(struct patience *p, unsigned wait_s)
{
	int saved ERRNO_KEPT = errno;
	uint64_t now = now_ns(), ns;
	struct timespec pause;
	unsigned depth;

	if (!p->until_ns) {
		p->until_ns = now + wait_s * NS_A_SECOND;
		p->pause_ns = PAUSE_NS;
	}
	p->over = now >= p->until_ns;
	if (p->over)
		return;
	ns = min_u64(p->pause_ns, p->until_ns - now);
	p->pause_ns = min_u64(2 * p->pause_ns, PAUSE_MAX_NS);
	pause.tv_sec = (time_t)(ns / NS_A_SECOND);
	pause.tv_nsec = (long)(ns % NS_A_SECOND);
	depth = critical_pause();
	io_nanosleep(&pause, NULL);
	critical_resume(depth);
}
