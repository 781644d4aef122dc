/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which hosts have nothing any more, and how that came.
 */
#include "core/admin/repair/forget.h"

#include "core/backend/names.h"
#include "core/base/io.h"
#include "core/dropping/entered.h"

static bool was_missing(const struct stub_hosts *before, uint32_t host)
{
	for (unsigned i = 0; i < before->nr; i++)
		if (before->hosts[i].host == host)
			return !before->hosts[i].seen;
	return false;
}

int forget_hosts_of(const struct scan *l, int fd, bool give_up)
{
	struct stub_hosts hosts;
	struct stub now;
	int ret = stub_hosts_read(fd, &now, &hosts);

	for (unsigned i = 0; i < hosts.nr && !give_up; i++)
		hosts.hosts[i].seen |= was_missing(&l->hosts, hosts.hosts[i].host);
	if (!ret)
		ret = stub_hosts_saw_all(&hosts, l->c);
	return ret ? ret : entered_forget_missing(l->c, fd, &hosts);
}

/* Whether something that counts may be in the log. A log without an index may have lost it. */
static bool may_count(const struct scan *l, const struct scan_log *log)
{
	const struct scan_live *live = log->live == SCAN_NONE ? NULL : &l->lives[log->live];
	bool counts = log->listed && !log->indexed && !live && log->len;
	uint32_t next = log->nr_blocks ? log->first_block : SCAN_NONE;

	for (; next != SCAN_NONE && !counts; next = l->blocks[next].next)
		counts = l->blocks[next].block.max_stamp_ns > l->stub.generation_ns;
	for (uint64_t i = 0; live && i < live->state.nr_records && !counts; i++)
		counts = !live->records || live->records[i].stamp_ns > l->stub.generation_ns;
	return counts || (live && live->ret && live->ret != -ENODATA);
}

int forget_hosts_of_void(const struct scan *l, int fd)
{
	struct stub_hosts hosts;
	struct stub now;
	int ret = stub_hosts_read(fd, &now, &hosts);

	if (ret || !hosts.nr)
		return ret;
	for (unsigned i = 0; i < hosts.nr; i++)
		hosts.hosts[i].seen = was_missing(&l->hosts, hosts.hosts[i].host);
	for (uint32_t i = 0; i < l->nr_logs; i++)
		if (may_count(l, l->logs[i]))
			stub_hosts_saw(&hosts, name_of(l->logs[i]->path));
	if (!stub_hosts_missing(&hosts))
		return 0;
	ret = entered_forget_missing(l->c, fd, &hosts);
	return !ret && io_fsync(fd) ? -errno : ret;
}
