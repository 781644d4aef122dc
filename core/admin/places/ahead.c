/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/admin/places/ahead.h"

#include "core/backend/names.h"
#include "core/backend/stub_lock.h"
#include "core/base/io.h"
#include "core/base/sys.h"
#include "core/dropping/node_index.h"
#include "core/store/dirs.h"

#include <fcntl.h>

static int find_last(void *arg, const struct index_block *block)
{
	uint64_t *last_ns = arg;

	*last_ns = max_u64(*last_ns, block->max_stamp_ns);
	return 0;
}

void ahead_tell(const struct container *c, int fd, struct stub *stub)
{
	char index[CONTAINER_PATH_LEN], full[CONTAINER_PATH_LEN];
	uint64_t last_ns = 0;
	unsigned damaged = 0;
	struct stat st;
	int h;

	if (!c->store->remote || stub->clocks)
		return;
	name_index_here(c, index);
	container_path(c, index, full);
	if (node_index_each(c, index, find_last, &last_ns, &damaged) ||
	    c->store->ops->stat(c->store, full, &st))
		return;
	if (last_ns <= dirs_time_ns(&st.st_ctim))
		return;
	h = stub_reopen(fd, O_RDWR);
	if (h >= 0)
		stub_set_clocks(h, stub);
	sys_fd_close(&h);
}
