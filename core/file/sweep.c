/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When to sweep, and by whom. What is hidden, and how it goes, is reclaim.h's.
 */
#include "core/file/sweep.h"

#include "core/backend/stub_hosts.h"
#include "core/backend/stub_use.h"
#include "core/base/msg.h"
#include "core/base/sys.h"
#include "core/dropping/lease.h"
#include "core/dropping/notice.h"
#include "core/file/logged.h"
#include "core/file/reclaim.h"
#include "core/file/reclaim_hidden.h"

#include <unistd.h>

#define SWEEP_AT 9    /* quarters of the size, in all logs of the file */
#define SWEEP_AGAIN 3 /* quarters that are written until the next look */

/* Of so many bytes by this host the file is worth a look. What several have written is alike, about. */
static uint64_t worth(const struct inode *ino, int fd)
{
	uint64_t size = max_u64(view_known_size(&ino->v), logged_least_len);
	struct stub_hosts hosts;
	struct stub now;

	if (!ino->m->store.remote || stub_hosts_read(fd, &now, &hosts) || !hosts.nr)
		hosts.nr = 1;
	return size / 4 * SWEEP_AT / hosts.nr;
}

static bool is_owners_alone(const struct inode *ino, const struct stat *st)
{
	return st->st_nlink && st->st_uid == geteuid() && (!ino->m->store.remote || !(st->st_mode & 022));
}

static int carry_out(struct inode *ino, int fd, int marked)
{
	struct reclaim rc = { .ino = ino, .fd = fd, .marked = marked, .alone = ino->m->store.remote };
	uint64_t nr_left;
	int ret = reclaim_begin_hidden(&rc, view_known_size(&ino->v));

	if (!ret && rc.moves)
		ret = reclaim_copy_hidden(&rc);
	if (!ret)
		ret = reclaim_sync(&rc);
	if (!ret)
		ret = reclaim_commit(&rc, &nr_left);
	msg_debug(MSG_WRITE, "%s: sweep: %s; %llu of %llu logs were hidden%s%s", ino->c.dir,
		  ret > 0 ? "nothing to do" : ret ? strerror(-ret) : "done", (unsigned long long)rc.nr_goes,
		  (unsigned long long)rc.nr_logs, *rc.why ? ": " : "", rc.why);
	reclaim_end_hidden(&rc);
	return ret;
}

/* With the notice @h open. */
static void take_turn(struct inode *ino, int fd, int marked, int h, uint64_t least)
{
	struct store *s = &ino->m->store;
	uint64_t again = least / SWEEP_AT * SWEEP_AGAIN;

	if (s->remote && (marked < 0 || stub_lock_alone(marked)))
		return;
	if (lease_take_written(s, h, least, least - again) && carry_out(ino, fd, marked) < 0)
		lease_add_written(s, h, again); /* the next to close tries again */
	if (s->remote)
		stub_try_mark_in_use(marked);
}

void sweep(struct inode *ino, int fd, int marked)
{
	uint64_t written = ino->w.host_written, least;
	struct stat st;
	int h;

	ino->w.host_written = 0;
	if (likely(written < logged_least_len / STUB_HOSTS_NR) || ino->v.stub.in_body || ino->w.lost)
		return;
	least = worth(ino, fd);
	if (written < least || sys.fstat(fd, &st) || !is_owners_alone(ino, &st))
		return;
	h = notice_open(&ino->c, O_RDWR);
	if (h < 0)
		return;
	take_turn(ino, fd, marked, h, least);
	store_close(&ino->m->store, &h);
}
