/* SPDX-License-Identifier: BSD-3-Clause */
#include "test/lib/told.h"

#include "test/lib/near.h"

#include "core/backend/mount.h"

#include <criterion/criterion.h>

const char *const told_act_names[NR_ACTS] = { "open",   "open to read", "pause",  "close",
						"write",  "append",	  "ftruncate", "read",
						"unlock", "lock",	  "fsync",  "compact",
						"kill",	  "unlink" };

const char *const told_hosts[TOLD_PROCS] = { "one", "one", "two", "three" };

static struct {
	int order[2], answer[2];
	pid_t pid;
} procs[TOLD_PROCS];

bool told_apart, told_local, told_near;

static long act(struct lfile *mine, const struct told_order *o, unsigned char *bytes)
{
	off_t end;
	long ret;

	memset(bytes, o->byte, TOLD_LEN);
	switch (o->act) {
	case OPEN:
		return ltry(mine, "a", O_RDWR | O_CREAT);
	case OPEN_READ:
		return ltry(mine, "a", O_RDONLY);
	case PAUSE:
		return usleep((useconds_t)o->off);
	case CLOSE:
		ret = lclose(mine);
		mine->f = NULL;
		return ret;
	case WRITE:
		return plfs_pwrite(mine->f, bytes, o->len, o->off);
	case APPEND:
		ret = lappend(mine, bytes, o->len, &end);
		return ret == (long)o->len ? end - ret : ret; /* where it begins */
	case CUT:
		return plfs_truncate(mine->f, o->off);
	case READ:
		memset(bytes, 0, TOLD_LEN);
		return plfs_pread(mine->f, bytes, TOLD_LEN, 0);
	case COMMIT:
		return plfs_commit(mine->f);
	case REFRESH:
		return plfs_refresh(mine->f);
	case SYNC:
		return plfs_sync(mine->f);
	case COMPACT:
		return lcompact("a");
	default:
		return lunlink("a");
	}
}

static int hours;

static int clock_of_host(clockid_t clock, struct timespec *ts)
{
	int ret = clock_gettime(clock, ts);

	ts->tv_sec += clock == CLOCK_REALTIME ? hours * 3600 : 0;
	return ret;
}

static int obey(void *arg)
{
	int who = *(int *)arg;
	static struct told_answer a;
	struct lfile mine = { .f = NULL };
	char path[PATH_MAX];
	struct told_order o;

	for (int i = 0; i < TOLD_PROCS; i++)
		if (procs[i].order[1])
			close(procs[i].order[1]);
	be_host(told_hosts[who]);
	hours = told_apart && who ? who - 1 : 0;
	sys.clock_gettime = clock_of_host;
	if (told_near && who >= 2)
		near_go_elsewhere();
	lpath("a", path)->store.remote = !told_local;
	while (read(procs[who].order[0], &o, sizeof(o)) == sizeof(o)) {
		a.ret = act(&mine, &o, a.bytes);
		if (write(procs[who].answer[1], &a, sizeof(a)) != sizeof(a))
			return 1;
	}
	return 0;
}

static void start(int who)
{
	cr_assert(!pipe(procs[who].order) && !pipe(procs[who].answer));
	procs[who].pid = start_child(obey, &who);
}

void told_start(void)
{
	for (int who = 0; who < TOLD_PROCS; who++)
		start(who);
}

/* Another comes in its place. */
static long kill_and_start(int who)
{
	long ret;

	kill(procs[who].pid, SIGKILL);
	ret = wait_child(procs[who].pid) - 256 - SIGKILL;
	for (int i = 0; i < 2; i++) {
		close(procs[who].order[i]);
		close(procs[who].answer[i]);
	}
	start(who);
	return ret;
}

void told_end(void)
{
	for (int who = 0; who < TOLD_PROCS; who++)
		close(procs[who].order[1]);
	for (int who = 0; who < TOLD_PROCS; who++)
		cr_assert_eq(wait_child(procs[who].pid), 0);
}

static struct told_answer last;

const struct told_answer *tell(int who, struct told_order o)
{
	if (o.act == KILL) {
		last.ret = kill_and_start(who);
		return &last;
	}
	if (write(procs[who].order[1], &o, sizeof(o)) != sizeof(o))
		die("write");
	for (size_t have = 0; have < sizeof(last);) {
		ssize_t n = read(procs[who].answer[0], (char *)&last + have, sizeof(last) - have);

		if (n <= 0)
			die("read");
		have += (size_t)n;
	}
	return &last;
}
