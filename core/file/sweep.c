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

#include <sys/resource.h>
#include <unistd.h>

uint64_t sweep_little_at = 128;

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

/* So many new logs of little are worth the same look: RECLAIM_LITTLE bytes of the file for each, at most. */
static uint64_t worth_logs(const struct inode *ino)
{
	return max_u64(sweep_little_at, view_known_size(&ino->v) / RECLAIM_LITTLE);
}

static int carry_out(struct reclaim *rc, int ret)
{
	uint64_t nr_left;

	if (!ret && rc->moves)
		ret = reclaim_copy_hidden(rc);
	if (!ret)
		ret = reclaim_sync(rc);
	if (!ret)
		ret = reclaim_commit(rc, &nr_left);
	msg_debug(MSG_WRITE, "%s: sweep: %s; %llu of %llu logs go%s%s", rc->ino->c.dir,
		  ret > 0 ? "nothing to do" : ret ? strerror(-ret) : "done", (unsigned long long)rc->nr_goes,
		  (unsigned long long)rc->nr_logs, *rc->why ? ": " : "", rc->why);
	reclaim_end_hidden(rc);
	return ret;
}

/* What could not be done the next to close tries again. */
static void sweep_hidden(struct reclaim *rc, int h, uint64_t least)
{
	uint64_t again = least / SWEEP_AT * SWEEP_AGAIN;
	struct store *s = &rc->ino->m->store;

	if (lease_take_written(s, h, least, least - again) &&
	    carry_out(rc, reclaim_begin_hidden(rc, view_known_size(&rc->ino->v))) < 0)
		lease_add_written(s, h, again);
}

/* What could not be done is tried again only half as many closes later: each look is at all logs. */
static void sweep_little(struct reclaim *rc, int h, uint64_t least)
{
	struct store *s = &rc->ino->m->store;

	if (lease_take_closed(s, h, least) && carry_out(rc, reclaim_begin_little(rc)) < 0)
		lease_add_closed(s, h, least / 2);
}

/* With the notice @h open. @little, @hidden: so much is due; 0: none is. */
static void take_turn(struct inode *ino, int fd, int marked, int h, uint64_t little, uint64_t hidden)
{
	struct reclaim rc = { .ino = ino, .fd = fd, .marked = marked, .alone = ino->m->store.remote };

	if (rc.alone && (marked < 0 || stub_lock_alone(marked)))
		return;
	if (little)
		sweep_little(&rc, h, little);
	else
		sweep_hidden(&rc, h, hidden);
	if (rc.alone)
		stub_try_mark_in_use(marked);
}

/* What has copies elsewhere, or is home, is not to become what has none yet, or lies near. */
static uint64_t little_due(const struct inode *ino, uint64_t closed)
{
	uint64_t least;

	if (likely(closed < sweep_little_at) || ino->m->store.near || ino->v.stub.placed ||
	    ino->m->store.spares || ino->v.stub.copied)
		return 0;
	least = worth_logs(ino);
	return closed >= least ? least : 0;
}

static uint64_t hidden_due(const struct inode *ino, int fd, uint64_t written)
{
	uint64_t least = written < logged_least_len / STUB_HOSTS_NR ? 0 : worth(ino, fd);

	return written >= least ? least : 0;
}

/* A log may be as long as all of the file. To meet the limit would be a signal, in a close(). */
static bool is_limited(void)
{
	struct rlimit limit;

	return sys.getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur != RLIM_INFINITY;
}

void sweep(struct inode *ino, int fd, int marked)
{
	struct lease_sums sums = ino->w.host;
	uint64_t little, hidden;
	struct stat st;
	int h;

	ino->w.host = (struct lease_sums){ 0 };
	if (ino->v.stub.in_body || ino->w.lost)
		return;
	little = little_due(ino, sums.closed);
	hidden = little ? 0 : hidden_due(ino, fd, sums.written);
	if (likely(!little && !hidden) || sys.fstat(fd, &st) || !is_owners_alone(ino, &st) || is_limited())
		return;
	h = notice_open(&ino->c, O_RDWR);
	if (h < 0)
		return;
	take_turn(ino, fd, marked, h, little, hidden);
	store_close(&ino->m->store, &h);
}
