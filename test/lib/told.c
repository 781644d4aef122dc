/* SPDX-License-Identifier: BSD-3-Clause */
#include "test/lib/told.h"

#include "test/lib/asked.h"
#include "test/lib/near.h"

#include "core/backend/mount.h"

const char *const told_act_names[NR_ACTS] = { "open",   "open to read", "pause",  "close",
						"write",  "append",	  "ftruncate", "read",
						"unlock", "lock",	  "fsync",  "compact",
						"kill",	  "unlink" };

const char *const told_hosts[TOLD_PROCS] = { "one", "one", "two", "three" };

bool told_apart, told_local, told_near;

static struct lfile mine;

static long do_it(const struct told_order *o, unsigned char *bytes)
{
	off_t end;
	long ret;

	memset(bytes, o->byte, TOLD_LEN);
	switch (o->act) {
	case OPEN:
		return ltry(&mine, "a", O_RDWR | O_CREAT);
	case OPEN_READ:
		return ltry(&mine, "a", O_RDONLY);
	case PAUSE:
		return usleep((useconds_t)o->off);
	case CLOSE:
		ret = lclose(&mine);
		mine.f = NULL;
		return ret;
	case WRITE:
		return plfs_pwrite(mine.f, bytes, o->len, o->off);
	case APPEND:
		ret = lappend(&mine, bytes, o->len, &end);
		return ret == (long)o->len ? end - ret : ret; /* where it begins */
	case CUT:
		return plfs_truncate(mine.f, o->off);
	case READ:
		memset(bytes, 0, TOLD_LEN);
		return plfs_pread(mine.f, bytes, TOLD_LEN, 0);
	case COMMIT:
		return plfs_commit(mine.f);
	case REFRESH:
		return plfs_refresh(mine.f);
	case SYNC:
		return plfs_sync(mine.f);
	case COMPACT:
		return lcompact("a");
	default:
		return lunlink("a");
	}
}

static void act(const void *order, void *answer)
{
	struct told_answer *a = answer;

	a->ret = do_it(order, a->bytes);
}

static int hours;

static int clock_of_host(clockid_t clock, struct timespec *ts)
{
	int ret = clock_gettime(clock, ts);

	ts->tv_sec += clock == CLOCK_REALTIME ? hours * 3600 : 0;
	return ret;
}

static void begin(int who)
{
	char path[PATH_MAX];

	be_host(told_hosts[who]);
	hours = told_apart && who ? who - 1 : 0;
	sys.clock_gettime = clock_of_host;
	if (told_near && who >= 2)
		near_go_elsewhere();
	lpath("a", path)->store.remote = !told_local;
}

static struct asked procs = { .nr = TOLD_PROCS, .order_len = sizeof(struct told_order),
			      .answer_len = sizeof(struct told_answer), .begin = begin, .act = act };

void told_start(void) { asked_start(&procs); }
void told_end(void) { asked_end(&procs); }

const struct told_answer *tell(int who, struct told_order o)
{
	static struct told_answer last;

	last.ret = 0;
	if (o.act == KILL)
		asked_kill(&procs, who);
	else
		asked_ask(&procs, who, &o, &last);
	return &last;
}
