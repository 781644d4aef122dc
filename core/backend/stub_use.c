/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The mark of a file that is in use: a lock on byte 2 of its stub, owned by the open file description.
 */
#include "core/backend/stub_use.h"

#include "core/backend/stub.h"
#include "core/backend/stub_byte.h"
#include "core/base/io.h"
#include "core/base/msg.h"
#include "core/base/pause.h"
#include "core/base/stamp.h"
#include "core/base/sys.h"

#include <sys/file.h>
#include <unistd.h>

#define LOCK_IN_USE 2
#define LOCK_FLOCK 3

/* So long another user is waited for, whose lock may be one that he never gives back. */
#define PATIENCE_NS 5000000000ULL
/* So long after he has shown that he works: what he copied has to reach the disk. */
#define WORK_PATIENCE_NS 600000000000ULL
/* Who may write the file can always show work. Root's commands are not to be kept from all other files. */
uint64_t stub_roots_patience_ns = 60000000000ULL;
uint64_t stub_told_ns = 10000000000ULL; /* of pauses: on a busy machine that takes longer */
#define SHOWN_EVERY_NS 100000000ULL

bool stub_try_mark_in_use(int fd)
{
	return stub_byte_lock(fd, F_OFD_SETLK, LOCK_IN_USE, F_RDLCK) != -EBUSY;
}

static __attribute__((noinline, cold)) int tell_kept(int fd)
{
	char name[PATH_MAX];

	msg_error("%s: another process is making it a plain file, or keeps it locked as if it were: try again when that has ended",
		  stub_name(fd, name, sizeof(name)));
	return -EBUSY;
}

/* Waiting for who has the file for himself. */
struct wait {
	struct pause p;
	struct statx_timestamp ctime; /* of the stub, as it was seen last */
	uint64_t until_ns, most_ns; /* of pauses: when it is in vain; 0: never */
	bool told;
};

/* A client of NFS has an answer of its own for some time, in which nobody would seem to work. */
static bool look(int fd, struct statx *now)
{
	return !sys.statx(fd, "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, STATX_UID | STATX_CTIME, now);
}

static void begin_waiting(struct wait *w, int fd)
{
	struct statx now = { 0 };

	if (stub_is_ours_alone(fd))
		return;
	w->until_ns = PATIENCE_NS;
	look(fd, &now);
	w->ctime = now.stx_ctime;
	w->most_ns = geteuid() || !now.stx_uid ? UINT64_MAX : stub_roots_patience_ns;
}

static bool has_worked(struct wait *w, int fd)
{
	struct statx now;

	if (!look(fd, &now) ||
	    (now.stx_ctime.tv_sec == w->ctime.tv_sec && now.stx_ctime.tv_nsec == w->ctime.tv_nsec))
		return false;
	w->ctime = now.stx_ctime;
	return true;
}

/* It may be for as long as copying takes: one line says why this process stands still. */
static __attribute__((noinline, cold)) void tell_waiting(int fd)
{
	char name[PATH_MAX];

	msg_error("%s: another process is making it a plain file, or compacts it: waiting until that has ended",
		  stub_name(fd, name, sizeof(name)));
}

static bool is_in_vain(struct wait *w, int fd)
{
	if (!w->told && w->p.slept_ns >= stub_told_ns) {
		w->told = true;
		tell_waiting(fd);
	}
	if (w->until_ns && has_worked(w, fd))
		w->until_ns = w->p.slept_ns + WORK_PATIENCE_NS;
	if (w->until_ns && w->p.slept_ns >= min_u64(w->until_ns, w->most_ns))
		return true;
	pause_before_asking(&w->p);
	return false;
}

int stub_mark_in_use(int fd)
{
	struct wait w = { .told = false };

	if (likely(stub_try_mark_in_use(fd)))
		return 0;
	begin_waiting(&w, fd);
	while (!is_in_vain(&w, fd))
		if (stub_try_mark_in_use(fd))
			return 0;
	return tell_kept(fd);
}

/* The time of access is set to what it is, which the owner may and root: that moves ctime alone. */
void stub_show_work(int fd, uint64_t *shown_ns)
{
	uint64_t now_ns = stamp_fine_ns();
	struct stat st;

	if (now_ns - *shown_ns < SHOWN_EVERY_NS || sys.fstat(fd, &st))
		return;
	*shown_ns = now_ns;
	sys.futimens(fd, (struct timespec[2]){ st.st_atim, { .tv_nsec = UTIME_OMIT } });
}

void stub_unmark_in_use(int fd)
{
	stub_byte_lock(fd, F_OFD_SETLK, LOCK_IN_USE, F_UNLCK);
}

/* What others hold: F_RDLCK, F_WRLCK or F_UNLCK; @unknown where locks do not work. */
static short others(int fd, short unknown)
{
	return stub_byte_of_others(fd, F_OFD_GETLK, LOCK_IN_USE, unknown);
}

bool stub_in_use(int fd)
{
	return others(fd, F_UNLCK) != F_UNLCK;
}

bool stub_is_alone(int fd)
{
	return others(fd, F_RDLCK) == F_UNLCK;
}

int stub_wait_flattened(int fd)
{
	short type = others(fd, F_UNLCK);

	if (type != F_WRLCK)
		return type == F_RDLCK ? -EBUSY : 0;
	if (stub_mark_in_use(fd))
		return -ETIMEDOUT;
	stub_unmark_in_use(fd);
	return -EAGAIN;
}

int stub_lock_out(int fd)
{
	int ret = stub_byte_lock(fd, F_OFD_SETLK, LOCK_IN_USE, F_WRLCK);

	if (ret != -EBUSY) /* also without working locks */
		return 0;
	ret = stub_wait_flattened(fd);
	return !ret ? -EBUSY : ret == -EBUSY ? -EAGAIN : ret;
}

int stub_lock_alone(int fd)
{
	int ret = stub_byte_lock(fd, F_OFD_SETLK, LOCK_IN_USE, F_WRLCK);

	return !ret || ret == -EBUSY ? ret : -EOPNOTSUPP;
}

/* A signal may end the wait, as in flock(). */
int stub_flock(int fd, int op)
{
	short type = (op & ~LOCK_NB) == LOCK_SH ? F_RDLCK :
		     (op & ~LOCK_NB) == LOCK_EX ? F_WRLCK :
		     (op & ~LOCK_NB) == LOCK_UN ? F_UNLCK : -1;
	struct flock lk = { .l_type = type, .l_whence = SEEK_SET, .l_start = LOCK_FLOCK, .l_len = 1 };

	if (type < 0)
		return -EINVAL;
	if (!io_fcntl(fd, F_OFD_SETLK, &lk))
		return 0;
	if (!(op & LOCK_NB) && (errno == EAGAIN || errno == EACCES)) {
		/* as flock(): two that have it shared, and want it alone, would wait for each other */
		stub_byte_lock(fd, F_OFD_SETLK, LOCK_FLOCK, F_UNLCK);
		if (!io_fcntl(fd, F_OFD_SETLKW, &lk))
			return 0;
	}
	return errno == EACCES			      ? -EWOULDBLOCK :
	       errno == EINVAL || errno == ENOSYS ? -EOPNOTSUPP : -errno;
}
