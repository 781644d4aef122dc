/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hosts are forgotten, by the stub and by their notices.
 */
#include "core/dropping/entered.h"

#include "core/backend/container_dirs.h"
#include "core/dropping/lease.h"
#include "core/dropping/notice.h"

struct told_arg {
	const struct container *c;
	struct stub_hosts *hosts;
};

static bool is_notice_of(const struct container *c, int h)
{
	uint8_t head[CONTAINER_ID_OFF + STUB_ID_LEN];
	struct stat st;

	return !c->store->ops->fstat(c->store, h, &st) && store_may_write(&st) &&
	       c->store->ops->pread(c->store, h, head, sizeof(head), 0) == sizeof(head) &&
	       !memcmp(head, NOTICE_MAGIC, strlen(NOTICE_MAGIC)) &&
	       !memcmp(head + CONTAINER_ID_OFF, c->id, STUB_ID_LEN);
}

static int tell_notice(void *arg, const char *path, const char *name, enum dropping_kind kind)
{
	const struct told_arg *told = arg;
	const struct stub_host *host = stub_hosts_find_notice(told->hosts, name);
	char full[CONTAINER_PATH_LEN];
	int h;

	(void)kind;
	if (!host || host->seen)
		return 0;
	container_path(told->c, path, full);
	h = store_open(told->c->store, full, O_RDWR | STORE_BRIEFLY, 0);
	if (h >= 0 && is_notice_of(told->c, h))
		lease_host_forgotten(told->c->store, h);
	if (h >= 0)
		store_close(told->c->store, &h);
	return 0;
}

/* A notice that cannot be opened is of no use to its host either. */
int entered_forget_missing(const struct container *c, int fd, struct stub_hosts *hosts)
{
	struct told_arg told = { c, hosts };
	int ret = stub_hosts_missing(hosts) ? container_list_there(c, tell_notice, &told) : 0;

	return ret ? ret : stub_hosts_forget_missing(fd, hosts);
}
