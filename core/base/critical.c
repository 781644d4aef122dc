/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The end of a critical section in which a signal came.
 */
#include "core/base/critical.h"

#include "core/base/sys.h"

#include <signal.h>

__thread struct critical critical __attribute__((tls_model("initial-exec")));

void critical_deliver(void)
{
	uint64_t pending = critical.pending;
	int saved ERRNO_KEPT = errno;
	sigset_t set;

	sigemptyset(&set);
	for (; pending; pending &= pending - 1)
		sigaddset(&set, __builtin_ctzll(pending) + 1);
	critical.pending = 0; /* before they run: a handler may never come back */
	sys.sigprocmask(SIG_UNBLOCK, &set, NULL);
}
