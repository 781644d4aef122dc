/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One log and its copies.
 */
#include "core/admin/repair/heal.h"

#include "core/base/alloc.h"
#include "core/dropping/copies.h"
#include "core/dropping/parities.h"
#include "core/dropping/parities_make.h"

int heal_log(const struct container *c, const struct scan_log *log)
{
	struct carry carry = { .bytes = 0 };
	int ret;

	if (!log->heals) {
		ret = copies_refresh(c, log->path, &carry);
		return ret > 0 ? 1 : ret;
	}
	if (log->rebuilds)
		return parities_restore(c, log->path, max_u64(log->records_end, log->indexed_len), &carry);
	ret = copies_restore(c, log->path, max_u64(log->records_end, log->indexed_len), &carry);
	if (ret > 0) /* copies that were damaged as well; what fails, the next scan reports */
		copies_refresh(c, log->path, &carry);
	return ret;
}

/* Those of logs that are not there, or damaged, are made anew the next time. */
int heal_parity(const struct container *c, bool quick, unsigned *nr)
{
	struct carry carry = { .bytes = 0 };
	struct parity_groups gs;
	int ret = parity_read(c, &gs), unknown = 0;

	*nr = 0;
	for (size_t i = 0; i < gs.nr && !ret; i++) {
		int is = parities_look(c, &gs.v[i], !quick);

		if (is != -ENOENT && is != -EIO)
			continue;
		ret = parities_remake(c, &gs.v[i], &carry);
		*nr += !ret;
		if (ret == -ENXIO) {
			unknown = ret;
			ret = 0;
		}
	}
	parity_release(&gs);
	return ret ? ret : unknown;
}
