/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The hosts in the header, against what the container has.
 */
#include "core/file/hosts.h"

#include "core/backend/names.h"
#include "core/base/msg.h"
#include "core/base/sys.h"
#include "core/write/durable.h"

#include <stdio.h>

#define LISTS_LATE_S 120 /* on a store that is not coherent a listing may be older than the header */

static void saw_all(const struct inode *ino, struct stub_hosts *hosts)
{
	const struct reader *r = &ino->v.r;
	char path[CONTAINER_PATH_LEN];
	const char *end, *line = r->global.base ? kept_map_inputs(&r->global, &end) : NULL, *stop;

	for (uint32_t i = 0; i < r->inputs.nr_indexes; i++)
		stub_hosts_saw(hosts, name_of(r->inputs.indexes[i]));
	for (; line && line < end && (stop = memchr(line, ' ', (size_t)(end - line))); line = stop + 1) {
		snprintf(path, sizeof(path), "%.*s", (int)(stop - line), line);
		if (strchr(path, '/'))
			stub_hosts_saw(hosts, name_of(path));
		stop = memchr(stop, '\n', (size_t)(end - stop));
		if (!stop)
			break;
	}
	for (uint32_t i = 0; i < r->inputs.nr_lives && stub_hosts_missing(hosts); i++)
		stub_hosts_saw(hosts, name_of(r->inputs.lives[i]));
	for (uint32_t i = 0; i < r->logs.nr && stub_hosts_missing(hosts); i++)
		stub_hosts_saw(hosts, name_of(r->logs.logs[i].path));
	if (ino->writing)
		stub_hosts_saw(hosts, ino->w.tail.log_name);
}

/* Whether another host may have entered itself after the directories that this one sees. */
static bool may_be_late(const struct inode *ino, int fd)
{
	struct timespec now;
	struct stat st;

	if (ino->m->store.coherent)
		return false;
	return sys.fstat(fd, &st) || sys.clock_gettime(CLOCK_REALTIME, &now) ||
	       now.tv_sec - st.st_mtim.tv_sec < LISTS_LATE_S;
}

/* Its own function: the name takes 4 KiB of the stack. */
static __attribute__((noinline, cold)) void tell(int fd, const struct stub_hosts *hosts)
{
	char name[PATH_MAX];

	msg_error(
		"%s: nothing is left of what %u of %u hosts wrote (a purge of old files, or a copy of a part?): what no other host wrote cannot be read; bring the missing files back, or give them up with: plfs repair --partial",
		stub_name(fd, name, sizeof(name)), stub_hosts_missing(hosts), hosts->nr);
}

void hosts_look(struct inode *ino, int fd, struct stub_hosts *hosts)
{
	bool before = ino->v.r.lacks_hosts;

	ino->v.r.lacks_hosts = false;
	if (!hosts->nr)
		return;
	saw_all(ino, hosts);
	if (likely(!stub_hosts_missing(hosts)))
		return;
	/* One that has come since the maps were loaded was there when it entered itself: it is listed now. */
	if (stub_hosts_saw_all(hosts, &ino->c) || !stub_hosts_missing(hosts) || may_be_late(ino, fd))
		return;
	ino->v.r.lacks_hosts = true;
	if (!before)
		tell(fd, hosts);
}

void hosts_enter(struct inode *ino)
{
	uint64_t generation_ns = ino->v.stub.generation_ns;
	const struct plfs_file *f = ino->files;

	if (likely(ino->entered == generation_ns + 1))
		return;
	while (f && (!f->writable || f->append_flag))
		f = f->next;
	if (!f)
		return;
	if (!lease_host_is_entered(&ino->w.leased.lease, generation_ns)) {
		/* after a power failure it must not seem to have lost what never reached the disk */
		if (stub_is_synced(f->fd) && durable_sync_names(&ino->c))
			return;
		stub_hosts_enter(f->fd, &ino->v.stub, ino->w.tail.log_name);
		lease_host_entered(&ino->w.leased.lease, generation_ns);
	}
	ino->entered = generation_ns + 1;
}
