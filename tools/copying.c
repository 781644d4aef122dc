/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The helper of mirror=: the queue, its lock, and when to look, to wait and to end.
 */
#include "copying.h"

#include "background.h"
#include "options.h"
#include "places.h"
#include "tool.h"

#define LOCK_FD 3
#define LOOK_MS 200
#define GROUP_MS 1000    /* so long logs wait for partners (parity=) */
#define IDLE_MS 1000     /* so long nothing to do: the end */
#define BACK_OFF_MS 500  /* after a failure, twice that after the next */

struct copying {
	struct plfs_mount *m;
	char path[PATH_MAX]; /* of the queue */
	uint64_t end;        /* bytes of it that are done */
	uint64_t rate;    /* bytes a second; 0: no limit */
	unsigned writers; /* processes that copy at a time; 0: as the mapping says */
};

/* Who starts a helper has the lock already, and leaves it to this process with the descriptor. */
static bool open_queue(const struct copying *c)
{
	struct flock lk = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };
	struct stat st, given;
	int fd;

	if (lstat(c->path, &st) || !S_ISREG(st.st_mode))
		return false;
	if (fstat(LOCK_FD, &given) || st.st_ino != given.st_ino || st.st_dev != given.st_dev) {
		fd = open(c->path, O_RDWR | O_NOFOLLOW | O_NONBLOCK);
		if (fd < 0)
			return false;
		if (fd != LOCK_FD) {
			dup2(fd, LOCK_FD);
			close(fd);
		}
	}
	fcntl(LOCK_FD, F_SETFD, FD_CLOEXEC);
	return !fcntl(LOCK_FD, F_OFD_SETLK, &lk);
}

/* True: all that the queue has is done. */
static bool pass(struct copying *c, struct plfs_drain *d, bool patient)
{
	*d = (struct plfs_drain){ .closed_only = true, .rate = c->rate, .writers = c->writers,
				  .patient = patient };
	return !plfs_drain_queue(c->m, LOCK_FD, &c->end, d) && !d->nr_left && !d->nr_waiting;
}

static bool has_more(const struct copying *c)
{
	struct stat st;

	return !fstat(LOCK_FD, &st) && (uint64_t)st.st_size != c->end;
}

/* Until nothing was there for a while: true; or nothing can be done: false. */
static bool work(struct copying *c, unsigned patience_ms)
{
	unsigned idle_ms = 0, failed_ms = 0, wait_ms = BACK_OFF_MS;
	bool again = true, patient = true;
	struct plfs_drain d;

	background_sleep(LOOK_MS); /* mostly the other ranks of the job are closing the file at this moment */
	while (idle_ms < IDLE_MS && failed_ms < patience_ms) {
		if (!again && !has_more(c)) {
			background_sleep(LOOK_MS);
			idle_ms += LOOK_MS;
			continue;
		}
		again = !pass(c, &d, patient);
		idle_ms = 0;
		patient = !d.nr_waiting;
		if (d.nr_waiting) { /* for a moment: more may be closed */
			background_sleep(GROUP_MS);
			patient = has_more(c);
			continue;
		}
		if (!again || d.nr_copies || d.nr_parity) {
			failed_ms = 0;
			wait_ms = BACK_OFF_MS;
		} else {
			background_sleep(wait_ms);
			failed_ms += wait_ms;
			wait_ms *= 2;
		}
	}
	return idle_ms >= IDLE_MS;
}

int copying_run(const char *backend, unsigned patience_s, const struct plfs_drain *limits)
{
	struct copying c = { .rate = limits->rate, .writers = limits->writers };
	char *names[] = { (char *)backend };
	struct plfs_drain d;
	char path[PATH_MAX];

	background_detach();
	target_setup(opt.map, names, 1);
	if (!target_find(backend, path, &c.m) || !c.m)
		return DRAIN_LEFT;
	plfs_queue_path(c.m, c.path);
	if (!open_queue(&c))
		return TOOL_OK; /* another does it, or there is nothing to do */
	if (!work(&c, patience_s * 1000))
		return DRAIN_LEFT; /* the queue stays: the next helper begins with it */
	unlink(c.path);
	/* Who has added a line before that relies on this look. */
	return !has_more(&c) || pass(&c, &d, false) ? TOOL_OK : DRAIN_LEFT;
}
