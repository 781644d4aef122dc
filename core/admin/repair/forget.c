/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which hosts have nothing any more, and how that came.
 */
#include "core/admin/repair/forget.h"

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
	return ret ? ret : stub_hosts_forget_missing(fd, &hosts);
}
