/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The age of a tree is that of its newest file.
 */
#include "core/admin/places/young.h"

#include "core/base/sys.h"
#include "core/store/dirs.h"

bool young_tree(int dir, const char *name, uint64_t age_ns)
{
	struct dirs_sum sum;
	struct timespec now;
	uint64_t now_ns;

	if (!age_ns)
		return false;
	sys.clock_gettime(CLOCK_REALTIME, &now);
	now_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	return dirs_measure(dir, name, &sum) || sum.changed_ns > now_ns - min_u64(age_ns, now_ns);
}
