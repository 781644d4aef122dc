/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One log and its copies.
 */
#include "core/admin/repair/heal.h"

#include "core/dropping/copies.h"

int heal_log(const struct container *c, const struct scan_log *log)
{
	struct carry carry = { .bytes = 0 };
	int ret;

	if (!log->heals) {
		ret = copies_refresh(c, log->path, &carry);
		return ret > 0 ? 1 : ret;
	}
	ret = copies_restore(c, log->path, max_u64(log->records_end, log->indexed_len), &carry);
	if (ret > 0) /* copies that were damaged as well; what fails, the next scan reports */
		copies_refresh(c, log->path, &carry);
	return ret;
}
