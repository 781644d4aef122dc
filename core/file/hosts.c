/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The hosts in the header, against what the container has.
 */
#include "core/file/hosts.h"

#include "core/backend/names.h"
#include "core/base/io.h"
#include "core/base/msg.h"
#include "core/base/sys.h"
#include "core/write/durable.h"

#include <stdio.h>

#define JUST_S 60
#define LOOKS_APART_NS 10000000
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
		stub_name(fd, name, sizeof(name)), stub_hosts_missing(hosts), stub_hosts_nr(hosts));
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

/* One by which the header can be written; NULL: there is none. */
static const struct plfs_file *writable(const struct inode *ino)
{
	const struct plfs_file *f = ino->files;

	while (f && !f->writable)
		f = f->next;
	return f;
}

/* A file, or a generation of it, that has just begun has nothing that a purge could take. */
static bool has_just_begun(const struct stub *stub)
{
	uint64_t began_ns = max_u64(stub->created_ns, stub->generation_ns);
	struct timespec now;

	return !sys.clock_gettime(CLOCK_REALTIME, &now) &&
	       (uint64_t)now.tv_sec < began_ns / 1000000000 + JUST_S;
}

/*
 * Looks twice: others may remove or replace what they have merged. What they made in its place is there. Who
 * removes the last of a host, none of which counts, has forgotten the host before (reclaim.c).
 */
static bool has_nothing(const struct inode *ino, int fd, const struct stub *stub, struct stub_hosts *hosts,
			const char *name)
{
	const struct timespec pause = { .tv_nsec = LOOKS_APART_NS };
	struct stub now;

	for (int looks = 0; looks < 2; looks++) {
		if (looks)
			io_nanosleep(&pause, NULL);
		if (stub_hosts_saw_all(hosts, &ino->c) || stub_hosts_find(hosts, name)->seen)
			return false;
	}
	return !stub_hosts_read(fd, &now, hosts) && now.has_container && !now.in_body &&
	       now.generation_ns == stub->generation_ns && stub_hosts_find(hosts, name);
}

/*
 * Not while a new generation comes that would not have the entry: a reclaim that carries the hosts over has
 * locked the container.
 */
static void enter_loss(struct inode *ino, int fd, struct stub_hosts *hosts, const char *name)
{
	bool locked = !inode_lock_end(ino);
	struct stub stub;

	if (!stub_hosts_read(fd, &stub, hosts) && stub_hosts_find(hosts, name)) {
		stub_hosts_saw_all(hosts, &ino->c); /* for the line */
		tell(fd, hosts);
		stub_hosts_enter_loss(fd, &stub, name);
	}
	if (locked)
		inode_unlock_end(ino);
}

/* Its own function: the table takes much of the stack. */
__attribute__((noinline)) void hosts_look_before_log(struct inode *ino)
{
	const struct plfs_file *f = writable(ino);
	char index[CONTAINER_PATH_LEN], path[CONTAINER_PATH_LEN];
	struct stub_hosts hosts;
	struct stub stub;
	struct stat st;

	/* Of logs in other places it is known where they were. */
	if (!f || has_just_begun(&ino->v.stub) || ino->v.stub.placed || ino->v.stub.spread ||
	    stub_hosts_read(f->fd, &stub, &hosts) || stub.in_body)
		return;
	name_index_here(&ino->c, index);
	container_path(&ino->c, index, path);
	if (stub_hosts_find(&hosts, name_of(index)) && ino->m->store.ops->stat(&ino->m->store, path, &st) &&
	    !may_be_late(ino, f->fd) && has_nothing(ino, f->fd, &stub, &hosts, name_of(index)))
		enter_loss(ino, f->fd, &hosts, name_of(index));
}

void hosts_enter(struct inode *ino)
{
	/* since the header was followed others may have begun one: before this log, or with a notice */
	uint64_t generation_ns = max_u64(ino->v.stub.generation_ns, ino->settled_ns);
	const struct plfs_file *f;
	struct stub stub;

	if (likely(ino->entered == generation_ns + 1))
		return;
	f = writable(ino);
	if (!f)
		return;
	if (!lease_host_is_entered(&ino->w.leased.lease, generation_ns)) {
		/* after a power failure it must not seem to have lost what never reached the disk */
		if (stub_is_synced(f->fd) && durable_sync_names(&ino->c))
			return;
		stub = ino->v.stub;
		stub.generation_ns = generation_ns;
		stub_hosts_enter(f->fd, &stub, ino->w.tail.log_name);
		lease_host_entered(&ino->w.leased.lease, generation_ns);
	}
	ino->entered = generation_ns + 1;
}
