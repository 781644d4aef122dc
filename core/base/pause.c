/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A quarter of the time that the wait has taken so far, within limits.
 */
#include "core/base/pause.h"

#include "core/base/io.h"
#include "core/base/stamp.h"

#define MIN_NS 20000
#define MAX_NS 2000000
#define ASKS 5 /* or so many times as long as asking takes */
#define SLOW_MAX_NS 50000000

void pause_before_asking(struct pause *p)
{
	uint64_t now_ns = stamp_fine_ns(), ask_ns = p->woke_ns ? now_ns - p->woke_ns : 0;
	uint64_t most_ns = min_u64(max_u64(ASKS * ask_ns, MAX_NS), SLOW_MAX_NS), ns;
	struct timespec pause = { 0 };

	if (!p->begun_ns)
		p->begun_ns = now_ns;
	ns = min_u64(max_u64((now_ns - p->begun_ns) / 4, MIN_NS), most_ns);
	pause.tv_nsec = (long)ns;
	io_nanosleep(&pause, NULL);
	p->slept_ns += ns;
	p->woke_ns = stamp_fine_ns();
}
