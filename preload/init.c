/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Start and end of the library in a process. The start is lazy: whoever needs us first, starts us.
 * A constructor makes sure that descriptors 0 to 2 have been looked at before main().
 */
#include "adopt.h"
#include "bynumber.h"
#include "env.h"
#include "fdtable.h"
#include "path.h"
#include "proc.h"
#include "raw.h"
#include "signal.h"
#include "stream.h"

#include <dlfcn.h>
#include <sched.h>

/* For strings(1): which library is this? */
__attribute__((used)) static const char version[] = "libplfs " PLFS_VERSION;

static void report_version(void)
{
	Dl_info info;

	if (msg_mask & MSG_VERSION)
		msg_line(MSG_VERSION, PLFS_VERSION ", %s", dladdr(version, &info) ? info.dli_fname : "?");
}

enum { NOT_STARTED, STARTING, STARTED };
static int state;
static bool constructing; /* or have been */

/*
 * Set in the thread that is starting us: what it calls meanwhile passes through, for it would wait for
 * itself.
 */
static __thread bool starting __attribute__((tls_model("initial-exec")));

static void start(void)
{
	/* what a handler calls now would pass through, and harm stubs */
	bool section CRITICAL = critical_begin();
	int r, saved = errno;
	bool has_table, observes;

	starting = true;
	mmap_start();
	has_table = !fdtable_init(); /* setup hides the backends' descriptors */
	r = plfs_setup(NULL);
	report_version();
	if (!has_table)
		msg_die_config(
			"no memory for the table of descriptors: raise the limit of address space (ulimit -v)");
	fdtable_start();
	observes = plfs_observe(); /* before raw_init(), which looks at the sys table */
	if (observes && r <= 0) { /* then plain files are all there is */
		proc_watch_forks();
		signal_guard_faults();
		shim_observes = true;
	}
	if (r > 0) {
		plfs_enable_helpers();
		raw_init();
		env_remember();
		proc_watch_forks();
		signal_guard_faults();
		path_cwd_changed();
		shim_active = true;
		fd_adopt_inherited();
	}
	__atomic_store_n(&shim_ready, 1, __ATOMIC_RELEASE);
	starting = false;
	errno = saved;
}

void shim_init(void)
{
	int old = NOT_STARTED;

	if (starting || __atomic_load_n(&shim_ready, __ATOMIC_ACQUIRE))
		return;
	sys_init();
	/*
	 * A sanitizer in the program starts before the C library has found the environment, and we do not
	 * know our settings either.
	 */
	if (!environ && !constructing)
		return;
	if (__atomic_compare_exchange_n(&state, &old, STARTING, false, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) {
		start();
		__atomic_store_n(&state, STARTED, __ATOMIC_RELEASE);
		return;
	}
	while (__atomic_load_n(&state, __ATOMIC_ACQUIRE) != STARTED)
		sched_yield();
}

/* Only here, not in start(): the hooks of standard streams must find us working, and allocate. */
__attribute__((constructor(101))) static void shim_constructor(void)
{
	constructing = true;
	if (shim_on())
		stream_start();
}

/* The C library flushes its streams after this: core then closes each write as soon as it is made. */
__attribute__((destructor(101))) static void shim_destructor(void)
{
	if (shim_on() || shim_observes)
		plfs_exit_prepare();
}
