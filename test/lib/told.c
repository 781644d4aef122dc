/* SPDX-License-Identifier: BSD-3-Clause */
#include "test/lib/told.h"

#include "test/lib/asked.h"
#include "test/lib/calls.h"
#include "test/lib/gc.h"
#include "test/lib/look.h"
#include "test/lib/near.h"
#include "test/lib/unchanged.h"

#include "core/backend/mount.h"

const char *const told_act_names[NR_ACTS] = { "open",	    "open to read", "pause",  "close",	  "write",
					      "append",	    "ftruncate",    "read",   "fstat",	  "stat",
					      "unlock",	    "lock",	    "fsync",  "compact",  "repair",
					      "repair -p",  "check",	    "stat, map", "gc",	  "drain",
					      "stage --to=home", "drain --to=home", "stage",
					      "stage --drop", "places --forget", "flatten",
					      "flatten -o", "kill",	    "lose near",  "unlink",	    "goes away", "comes back",
					      "is wiped",   "flip" };

const char *const told_hosts[TOLD_ALL] = { "one", "one", "two", "three", "one", "two" };

bool told_apart, told_local, told_once, told_near;

long (*told_here)(const struct told_order *o);
void (*told_begins)(void);

static struct lfile mine;

/* Damage may look like a later version. */
static bool is_lost(long ret) { return ret == -EIO || (told_here && ret == -EPROTONOSUPPORT); }

/* Bytes that are an error leave those beside them to be read. */
static long read_pieces(struct told_answer *a)
{
	off_t size = plfs_size(mine.f);

	if (size == -EIO) { /* no byte can be read */
		memset(a->fails, 1, sizeof(a->fails));
		return 0;
	}
	for (off_t at = 0; at < size; at += TOLD_PIECE) {
		ssize_t n = plfs_pread(mine.f, a->bytes + at, TOLD_PIECE, at);

		if (n < 0 && !is_lost(n))
			return n;
		if (n >= 0 && n < TOLD_PIECE && at + n < size)
			n = plfs_pread(mine.f, a->bytes + at + n, (size_t)(TOLD_PIECE - n), at + n);
		a->fails[at / TOLD_PIECE] = n < 0;
	}
	return size;
}

static long read_it(struct told_answer *a)
{
	long ret = plfs_pread(mine.f, a->bytes, TOLD_LEN, 0);

	return is_lost(ret) || (told_here && ret >= 0 && ret < plfs_size(mine.f)) ? read_pieces(a) : ret;
}

static long drain(struct plfs_drain d)
{
	int ret = ldrain("a", &d);

	return ret ? ret : (long)(d.nr_left + d.nr_lost);
}

static long stage(bool drops)
{
	struct plfs_drain d = { 0 };
	char path[PATH_MAX];
	struct plfs_mount *m = lpath("a", path);
	int ret = plfs_stage_file(m, AT_FDCWD, path, drops, &d);

	return ret ? ret : (long)d.nr_logs;
}

static void note_finding(void *arg, const struct plfs_finding *f)
{
	struct told_answer *a = arg;
	uint64_t end = min_u64(f->logical_off + f->len, TOLD_LEN);

	if (f->severity == PLFS_NOTED || f->severity == PLFS_REPAIRED)
		return;
	for (uint64_t at = f->logical_off; at < end; at++)
		a->fails[at / TOLD_PIECE] = true;
	if (!*a->damage)
		snprintf(a->damage, sizeof(a->damage), "%s: %s", f->code, f->text);
}

static long examine(enum told_act act, struct told_answer *a)
{
	struct plfs_check check = { .repair = act != CHECK, .partial = act == REPAIR_ALL,
				    .found = note_finding, .arg = a };
	char path[PATH_MAX];
	struct plfs_mount *m = lpath("a", path);

	return plfs_check(m, AT_FDCWD, path, &check);
}

/* One that nothing comes in the midst of. */
static long check_alone(struct told_answer *a)
{
	uint64_t before = all_that_is();
	long ret = examine(CHECK, a);

	if (all_that_is() != before)
		snprintf(a->damage, sizeof(a->damage), "it has changed something");
	return ret;
}

static long collect(void)
{
	struct plfs_gc g = { .age_ns = 0, .later_ns = HOUR_NS };
	int ret = gc(&g);

	return ret ? ret : (long)g.nr_removed;
}

static long forget(int backend)
{
	char path[PATH_MAX], other[100];
	struct plfs_mount *m = lpath("a", path);
	unsigned nr;
	int ret;

	snprintf(other, sizeof(other), "%s/%d", near_dir, backend);
	ret = plfs_places_forget(m, AT_FDCWD, path, backend ? other : "one", &nr);

	return ret ? ret : (long)nr;
}

static long flatten(unsigned char *bytes)
{
	char path[PATH_MAX];
	long ret;
	int fd;

	lpath("a", path);
	ret = plfs_flatten(AT_FDCWD, path, NULL);
	if (ret)
		return ret;
	fd = open(path, O_RDONLY);
	ret = pread(fd, bytes, TOLD_LEN, 0);
	close(fd);
	return ret;
}

static long copy(unsigned char *bytes)
{
	struct lfile l;
	long ret = ltry(&l, "a", O_RDONLY);
	off_t size = ret ? ret : plfs_size(l.f);
	int to = memfd_create("copy", 0);

	if (ret)
		return ret;
	ret = size < 0 ? size : plfs_copy_out(l.f, l.fd, to, (uint64_t)size, true, NULL);
	lclose(&l);
	ret = ret ? ret : pread(to, bytes, TOLD_LEN, 0);
	close(to);
	return ret;
}

static long do_it(const struct told_order *o, struct told_answer *a)
{
	off_t end;
	long ret;

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
	case APPEND:
		memset(a->bytes, o->byte, TOLD_LEN);
		if (o->act == WRITE)
			return plfs_pwrite(mine.f, a->bytes, o->len, o->off);
		ret = lappend(&mine, a->bytes, o->len, &end);
		return ret == (long)o->len ? end - ret : ret; /* where it begins */
	case CUT:
		return plfs_truncate(mine.f, o->off);
	case READ:
		return read_it(a);
	case SIZE:
		return plfs_size(mine.f);
	case STAT:
		return stat_size("a");
	case COMMIT:
		return plfs_commit(mine.f);
	case REFRESH:
		return plfs_refresh(mine.f);
	case SYNC:
		return plfs_sync(mine.f);
	case COMPACT:
		return lcompact("a");
	case FLATTEN:
		return flatten(a->bytes);
	case COPY:
		return copy(a->bytes);
	case REPAIR:
	case REPAIR_ALL:
		return examine(o->act, a);
	case CHECK:
		return o->stop_at ? examine(CHECK, a) : check_alone(a);
	case LOOK:
		return look_at("a");
	case COLLECT:
		return collect();
	case DRAIN:
		return drain((struct plfs_drain){ 0 });
	case DRAIN_KEEP:
		return drain((struct plfs_drain){ .keep = true });
	case BRING:
		return drain((struct plfs_drain){ .to_home = true });
	case STAGE:
	case DROP:
		return stage(o->act == DROP);
	case FORGET:
		return forget((int)o->off);
	default:
		return lunlink("a");
	}
}

static void act(const void *order, void *answer)
{
	static const struct told_answer here = { .stopped = true };
	const struct told_order *o = order;
	struct told_answer *a = answer;

	memset(a, 0, sizeof(*a));
	asked_stop_at(o->stop_at, &here);
	a->ret = do_it(o, a);
	asked_stop_at(0, NULL);
}

static const int hours[TOLD_ALL] = { 0, 0, 1, 2, 0, 1 };

static void begin(int who)
{
	char path[PATH_MAX];

	be_host(told_hosts[who]);
	be_hours_ahead(told_apart ? hours[who] : 0);
	if (told_near && strcmp(told_hosts[who], "one"))
		near_go_elsewhere();
	lpath("a", path)->store.remote = !told_local;
	lpath("a", path)->store.coherent &= !told_once;
	calls_intercept();
	if (told_begins)
		told_begins();
}

static struct asked procs = { .nr = TOLD_ALL, .order_len = sizeof(struct told_order),
			      .answer_len = sizeof(struct told_answer), .begin = begin, .act = act };

void told_start(void) { asked_start(&procs); }
void told_end(void) { asked_end(&procs); }
pid_t told_pid(int who) { return procs.procs[who].pid; }

const struct told_answer *tell(int who, struct told_order o)
{
	static struct told_answer last;

	memset(&last, 0, sizeof(last));
	for (int i = 0; i < TOLD_ALL; i++)
		if ((o.act == KILL && i == who) || (o.act == LOSE && !strcmp(told_hosts[i], "one")))
			asked_kill(&procs, i);
	if (o.act == LOSE)
		near_lose();
	if (o.act >= AWAY)
		last.ret = told_here(&o);
	else if (o.act != KILL && o.act != LOSE)
		asked_ask(&procs, who, &o, &last);
	return &last;
}

bool told_begin(int who, struct told_order o, int call, struct told_answer *a)
{
	o.stop_at = call;
	asked_ask(&procs, who, &o, a);
	return a->stopped;
}

void told_go_on(int who, struct told_answer *a)
{
	struct told_order o = { .act = NR_ACTS };

	asked_ask(&procs, who, &o, a);
}

void told_order(int who, struct told_order o) { asked_order(&procs, who, &o); }

bool told_answer(int who, struct told_answer *a, int timeout_ms)
{
	return asked_answer(&procs, who, a, timeout_ms);
}
