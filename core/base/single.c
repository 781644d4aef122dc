/* SPDX-License-Identifier: BSD-3-Clause */
/* How many threads there are, with glibc before 2.32. */
#include "core/base/single.h"

#ifdef __libc_single_threaded

#include "core/base/sys.h"

signed char threads_seen;

bool is_single_threaded(void)
{
	signed char seen = __atomic_load_n(&threads_seen, __ATOMIC_RELAXED);
	int saved_errno = errno;
	struct stat st;
	bool others;

	if (seen)
		return seen < 0;
	/* ".", ".." and one thread */
	others = sys.stat("/proc/self/task", &st) || st.st_nlink != 3;
	if (others)
		__atomic_store_n(&threads_seen, 1, __ATOMIC_RELAXED);
	errno = saved_errno;
	return !others;
}

#endif
