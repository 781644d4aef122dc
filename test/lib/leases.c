/* SPDX-License-Identifier: BSD-3-Clause */
#include "test/lib/leases.h"

#include "test/lib/job.h"

void take_part(struct store *store, struct lease *l)
{
	bool made;
	int h = store_open_or_make(store, "notice", O_RDWR, 0644, &made);

	if (h < 0 || lease_open(l, store, h))
		die("a lease");
	store_close(store, &h);
}
