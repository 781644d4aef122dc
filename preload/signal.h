/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Signal handlers of the program, which may call the library at any moment. A signal that arrives in a
 * critical section (core/base/critical.h) is blocked until the section ends. Then the kernel delivers it as
 * if it had just arrived.
 */
#ifndef PLFS_SIGNAL_H
#define PLFS_SIGNAL_H

#include "shim.h"

#include <signal.h>

/* sigaction(2), for all the calls that install a handler. -1 and errno. */
int signal_set(int sig, const struct sigaction *act, struct sigaction *old);

/* sigprocmask(2). -1 and errno. */
int signal_mask(int how, const sigset_t *set, sigset_t *old);

/*
 * Called at start. Bad addresses become EFAULT (core/base/usermem.h), whether the program handles faults or
 * not.
 */
void signal_guard_faults(void);

/* Around a fork: no thread is installing a handler in between. */
void signal_freeze(void);
void signal_thaw(void);

#endif
