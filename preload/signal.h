/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Signal handlers of the program, which may call us at any moment. One that comes while its thread is in a critical
 * section (core/critical.h) waits until the section ends; the kernel does the waiting and delivers it then as if it had
 * come just now.
 */
#ifndef PLFS_SIGNAL_H
#define PLFS_SIGNAL_H

#include "shim.h"

#include <signal.h>

/* sigaction(2), for all the calls that install a handler. -1 and errno. */
int signal_set(int sig, const struct sigaction *act, struct sigaction *old);

/* sigprocmask(2). -1 and errno. */
int signal_mask(int how, const sigset_t *set, sigset_t *old);

/* At start: bad addresses become EFAULT (core/usermem.h), whether the program handles faults or not. */
void signal_guard_faults(void);

/* Around a fork: nobody is installing a handler. */
void signal_freeze(void);
void signal_thaw(void);

#endif
