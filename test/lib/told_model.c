/* SPDX-License-Identifier: BSD-3-Clause */
#include "test/lib/told_model.h"

#include "core/base/bytes.h"

enum { VERSIONS = 64, BLOCKED_MS = 300 };

/* A write or a truncation, of which zeros are read. As its byte it has its number and one more. */
static struct version {
	size_t off, end;
	bool cuts, appends;
	int who;
	uint64_t before; /* bits of those that are earlier: seen by its process, or 20 ms older */
} versions[VERSIONS];
static int nr_versions;
static uint64_t knows[TOLD_ALL], released, older; /* bits of versions */
static uint64_t closed, opened[TOLD_ALL]; /* of those in closed files, and before the last open */
static uint64_t dead, home, lost;         /* of killed processes; no longer near, at home or not */
static uint64_t maybe;                    /* under way, or killed on it */
static bool forgotten;                    /* what is near: with it go checksums of what is home */
static bool untold[TOLD_ALL]; /* it only reads, and has acquired nothing since its host wrote first */
const struct model_backends *model_backends;
bool model_is_open[TOLD_ALL], model_only_reads[TOLD_ALL], model_at_once, model_comes_home;

static struct {
	int who, call; /* where @call of the one before was about to be made; 0: behind it */
	struct told_order o;
	long ret;
} history[MODEL_STEPS];
static int nr_steps;

static void show(void)
{
	for (int i = 0; i < nr_steps; i++) {
		const struct told_order *o = &history[i].o;

		fprintf(stderr, "  %d (%s): %s %ld+%zu (%d) -> %ld", history[i].who,
			told_hosts[history[i].who], told_act_names[o->act], (long)o->off, o->len, o->byte,
			history[i].ret);
		if (history[i].call)
			fprintf(stderr, ", at call %d of the one before", history[i].call);
		fprintf(stderr, "\n");
	}
}

static uint64_t all(void) { return nr_versions == 64 ? ~0ull : (1ull << nr_versions) - 1; }

/* Of these processes. */
static uint64_t versions_of(int from, int to)
{
	uint64_t bits = 0;

	for (int v = 0; v < nr_versions; v++)
		bits |= versions[v].who >= from && versions[v].who <= to ? 1ull << v : 0;
	return bits;
}

/* A truncation that it does not come behind may have taken it. */
static bool may_be_cut(int v)
{
	for (int cut = 0; cut < nr_versions; cut++)
		if (versions[cut].cuts && !(versions[v].before >> cut & 1))
			return true;
	return false;
}

/* What is cut off is not brought home, and may be in maps of before. */
static bool is_near(int v)
{
	return told_near && versions[v].who < 2 && (!(home >> v & 1) || may_be_cut(v));
}

static void release(int who)
{
	released |= versions_of(who, who) & ~dead & ~maybe;
	home |= model_comes_home ? released & ~lost : 0;
}

static bool are_together(int a, int b) { return model_at_once || !strcmp(told_hosts[a], told_hosts[b]); }

/* What was written on its host before it is seen as well, and from then on all that is. */
static void acquire(int who)
{
	knows[who] |= released;
	untold[who] = model_only_reads[who];
	for (int v = 0; v < nr_versions; v++) {
		if (!are_together(versions[v].who, who) || ((lost & ~released) | maybe) >> v & 1)
			continue;
		knows[who] |= 1ull << v;
		untold[who] &= versions[v].cuts;
	}
}

/* What is earlier than a write now. */
static uint64_t before(int who)
{
	uint64_t bits = opened[who];

	if (!told_apart)
		return knows[who] | older;
	for (int v = 0; v < nr_versions; v++)
		if (are_together(versions[v].who, who))
			bits |= knows[who] & 1ull << v;
	return bits;
}

/* ---- what may be read ---- */

/* Of @known versions, whether none that is later than version @v has byte @at. */
static bool is_newest(uint64_t known, int v, size_t at)
{
	for (int k = 0; k < nr_versions; k++)
		if (known >> k & 1 && versions[k].off <= at && at < versions[k].end && k != v &&
		    (v < 0 || versions[k].before >> v & 1))
			return false;
	return true;
}

/* What may be read of byte @at by whoever knows these. */
static bool allows(uint64_t known, size_t at, unsigned char byte)
{
	if (byte)
		return byte <= nr_versions && !versions[byte - 1].cuts && versions[byte - 1].off <= at &&
		       at < versions[byte - 1].end && is_newest(known, byte - 1, at);
	if (is_newest(known, -1, at))
		return true;
	for (int v = 0; v < nr_versions; v++)
		if (versions[v].cuts && versions[v].off <= at && is_newest(known, v, at))
			return true;
	return false;
}

/* Bytes that are near are an error elsewhere, and not older ones. */
static bool may_fail(int who, size_t at)
{
	size_t from = at / TOLD_PIECE * TOLD_PIECE, to = from + TOLD_PIECE;

	for (int v = 0; v < nr_versions; v++)
		if (is_near(v) && (who >= 2 || lost >> v & 1) && versions[v].off < to &&
		    from < versions[v].end)
			return true;
	return model_backends && model_backends->may_fail(who, from, to);
}

bool model_may_read(int who, int v, size_t from, size_t to)
{
	for (size_t at = max_u64(from, versions[v].off); at < to && at < versions[v].end; at++)
		if (is_newest(knows[who], v, at))
			return true;
	return false;
}

uint64_t model_all(void) { return all(); }
int model_writer(int v) { return versions[v].who; }

uint64_t model_at_rest(void)
{
	uint64_t bits = closed | dead;

	for (int i = 0; i < TOLD_PROCS; i++) /* which may go on with the log that it has closed */
		bits &= model_is_open[i] ? ~versions_of(i, i) | dead : ~0ull;
	return bits;
}

/* The size has at least what must be read of it. */
static bool is_read_well(int who, uint64_t known, const struct told_answer *a)
{
	for (size_t at = 0; at < TOLD_LEN; at++) {
		bool fails = a->fails[at / TOLD_PIECE];

		if (a->ret < 0 || (fails ? !may_fail(who, at) :
					   !allows(known, at, (long)at < a->ret ? a->bytes[at] : 0))) {
			fprintf(stderr, "%ld bytes, byte %zu is %d%s:\n", a->ret, at, a->bytes[at],
				fails ? ", an error" : "");
			return false;
		}
	}
	return true;
}

/* It is behind all that is known, and no other append has its bytes. */
static bool is_appended_well(int mine, uint64_t known)
{
	size_t off = versions[mine].off, end = versions[mine].end;

	for (size_t at = off; at < end; at++)
		if (!allows(known, at, 0))
			return false;
	for (int v = 0; v < nr_versions; v++)
		if (v != mine && !(maybe >> v & 1) && versions[v].appends && versions[v].off < end &&
		    off < versions[v].end && !may_be_cut(v))
			return false;
	return true;
}

/* A place of host one, as its other hosts see it. */
static bool is_elsewhere(int who) { return strcmp(told_hosts[who], "one"); }

/* What is damaged, or seems to be, where something is lost, or near on another host. */
static bool may_be_damaged(int who)
{
	bool may = model_backends || forgotten;

	for (int v = 0; v < nr_versions; v++)
		may |= is_near(v) && (is_elsewhere(who) || lost >> v & 1);
	return may;
}

static bool is_examined_well(int who, const struct told_answer *a)
{
	bool ok = (!a->ret && !*a->damage) || may_be_damaged(who);
	size_t at = 0;

	for (; at < TOLD_LEN && ok; at += TOLD_PIECE)
		ok = !a->fails[at / TOLD_PIECE] || may_fail(is_elsewhere(who) ? 2 : 0, at);
	if (!ok)
		fprintf(stderr, "%ld bytes from %zu on: %s\n", a->ret, at, a->damage);
	return ok;
}

/* It ends, too, where the file is cut meanwhile. */
static bool is_copied_well(int who, uint64_t known, const struct told_answer *a)
{
	bool is_cut = false;

	for (int v = 0; v < nr_versions; v++)
		is_cut |= versions[v].cuts;
	if (a->ret == -EIO || a->ret == -EAGAIN)
		return is_cut || may_be_damaged(who);
	return is_read_well(who, known, a);
}

/* ---- steps ---- */

/* One that is under way. */
struct pending {
	int who, v; /* the version that it makes, or -1 */
	struct told_order o;
	uint64_t known, closed, dead, near; /* when it began; near: of the first host, and whole */
};

static int add_version(int who, const struct told_order *o)
{
	struct version *new = &versions[nr_versions];
	size_t off = (size_t)o->off;

	*new = (struct version){ off, off + o->len, .who = who, .before = before(who) };
	new->cuts = o->act == CUT;
	new->appends = o->act == APPEND;
	if (new->appends) /* anywhere, as long as it is under way */
		new->off = 0;
	if (new->cuts || new->appends)
		new->end = TOLD_LEN;
	maybe |= 1ull << nr_versions;
	return nr_versions++;
}

static struct pending begin_step(int who, enum told_act act, size_t off, size_t len)
{
	struct told_order o = { .act = act, .off = (off_t)off, .len = len };
	struct pending p = { .who = who, .v = -1, .o = o };

	p.o.byte = (unsigned char)(nr_versions + 1);
	if (act == OPEN || act == OPEN_READ) {
		model_only_reads[who] = act == OPEN_READ;
		opened[who] = closed;
	}
	if (act == COPY) /* a new process each time */
		knows[who] = 0;
	if (act == OPEN || act == OPEN_READ || act == REFRESH || act == SYNC || act == COPY)
		acquire(who);
	p.known = knows[who];
	p.closed = closed;
	for (int i = 0; i < TOLD_PROCS; i++) /* which may go on with the log that it has closed */
		p.closed &= model_is_open[i] ? ~versions_of(i, i) : ~0ull;
	p.dead = dead & ~maybe;
	p.near = versions_of(0, 1) & ~maybe;
	if (act == WRITE || act == APPEND || act == CUT)
		p.v = add_version(who, &p.o);
	return p;
}

static void forget(int who) { model_is_open[who] = false; }

static void end_version(const struct pending *p, long ret)
{
	uint64_t bit = 1ull << p->v;

	if (ret < 0 && p->o.act == CUT) /* it may have been done, or not */
		return;
	if (p->o.act == APPEND) {
		versions[p->v].off = ret < 0 ? 0 : (size_t)ret;
		versions[p->v].end = ret < 0 ? 0 : versions[p->v].off + p->o.len;
	}
	maybe &= ~bit;
	for (int i = 0; i < TOLD_PROCS; i++)
		if (are_together(i, p->who) && !untold[i])
			knows[i] |= bit;
}

static void killed(int who)
{
	if (!told_near || who >= 2)
		release(who);
	dead |= versions_of(who, who);
	forget(who);
}

/* What was not released need not be an error. */
static void lose(void)
{
	dead |= versions_of(0, 1);
	for (int v = 0; v < nr_versions; v++)
		lost |= is_near(v) ? 1ull << v : 0;
	for (int i = 0; i < TOLD_PROCS; i++)
		knows[i] &= ~(lost & ~released);
	forget(0);
	forget(1);
}

/* An error is of what its host has written. */
static bool synced(const struct pending *p, long ret)
{
	if (ret == -EIO && (model_backends || (p->who < 2 && lost)))
		return true;
	release(p->who);
	home |= p->who < 2 ? p->near & ~lost : 0; /* of all processes of the host */
	return ret == 0;
}

/* What is near here; of killed processes too, unless it is open elsewhere. */
static bool drained(const struct pending *p, long ret)
{
	bool is_here = p->who == TOLD_PROCS;

	home |= is_here ? (ret ? p->closed : p->closed | p->dead) & ~lost : 0;
	released |= is_here && !ret ? p->dead & ~lost : 0;
	return ret >= 0;
}

static bool is_done_well(const struct pending *p, const struct told_answer *a)
{
	const struct told_order *o = &p->o;
	bool is_busy = a->ret == -EBUSY || a->ret == -EAGAIN;

	if (p->v >= 0)
		end_version(p, a->ret);
	if (o->act >= AWAY)
		return true;
	switch (o->act) {
	case WRITE:
		return a->ret == (long)o->len;
	case APPEND:
		return a->ret >= 0 && is_appended_well(p->v, p->known);
	case READ:
		return is_read_well(p->who, p->known, a);
	case SYNC:
		return synced(p, a->ret);
	case CLOSE:
		release(p->who);
		closed |= versions_of(p->who, p->who) & ~maybe;
		forget(p->who);
		return a->ret == 0;
	case COMMIT:
		release(p->who);
		return a->ret == 0;
	case KILL:
		killed(p->who);
		return true;
	case LOSE:
		lose();
		return true;
	case COPY:
		return is_copied_well(p->who, p->known, a);
	case LOOK:
		return a->ret == 0 || (a->ret == -EIO && may_be_damaged(p->who));
	case COLLECT:
		return a->ret >= 0;
	case DRAIN:
	case DRAIN_KEEP:
	case BRING:
		return drained(p, a->ret);
	case STAGE: /* host two has no place */
	case DROP:
		return a->ret >= 0 || (p->who != TOLD_PROCS && a->ret == -ENOENT);
	case CHECK:
		return is_examined_well(p->who, a);
	case REPAIR:
	case REPAIR_ALL:
		return is_busy || is_examined_well(p->who, a);
	case FORGET:
		forgotten |= a->ret > 0;
		return a->ret >= 0 || is_busy;
	case COMPACT:
		return a->ret >= 0 || is_busy || (a->ret == -EIO && told_near);
	case PAUSE:
		older |= o->off > 20000 ? all() & ~maybe : 0;
		return true;
	case OPEN:
	case OPEN_READ:
		model_is_open[p->who] = a->ret == 0;
		return a->ret == 0;
	default:
		return a->ret == 0;
	}
}

static int note(const struct pending *p, int call)
{
	history[nr_steps].who = p->who;
	history[nr_steps].call = call;
	history[nr_steps].o = p->o;
	history[nr_steps].ret = -EINPROGRESS;
	return nr_steps++;
}

static bool end_step(const struct pending *p, int nr, const struct told_answer *a)
{
	bool ok = is_done_well(p, a);

	history[nr].ret = a->ret;
	if (model_backends)
		ok = model_backends->done(p->who, &p->o, p->v, a->ret, ok);
	if (ok)
		return true;
	show();
	return false;
}

bool model_step(int who, enum told_act act, size_t off, size_t len)
{
	struct pending p = begin_step(who, act, off, len);
	int nr = note(&p, 0);

	return end_step(&p, nr, tell(who, p.o));
}

/* ---- two at a time ---- */

/* It may have been done, or not. */
static bool kill_there(const struct pending *a)
{
	static const struct told_answer none;
	struct pending k = begin_step(a->who, KILL, 0, 0);

	tell(a->who, k.o);
	return end_step(&k, note(&k, 1), &none);
}

/* @b does its act while another stands. 1: done; 0: differs; -1: it waits for that one. */
static int step_beside(int call, struct model_act b, struct pending *q, int *nr)
{
	static struct told_answer of_b;

	if (b.act >= AWAY || b.act == KILL || b.act == LOSE) /* by this process */
		return model_step(b.who, b.act, b.off, b.len);
	*q = begin_step(b.who, b.act, b.off, b.len);
	*nr = note(q, call);
	told_order(b.who, q->o);
	if (!told_answer(b.who, &of_b, BLOCKED_MS))
		return -1;
	return end_step(q, *nr, &of_b);
}

/* The rest of @others, behind the call. */
static bool go_on(const struct model_act *others, int nr)
{
	bool ok = true;

	for (int i = 0; i < nr && ok; i++)
		ok = others[i].act == KILL ||
		     model_step(others[i].who, others[i].act, others[i].off, others[i].len);
	return ok;
}

bool model_stands(struct model_act a, int call, const struct model_act *others, int nr)
{
	static struct told_answer of_a, of_b;
	struct pending p = begin_step(a.who, a.act, a.off, a.len), q;
	int nr_a = note(&p, 0), nr_b, ok = 1, i = 0;

	if (!told_begin(a.who, p.o, call, &of_a))
		return end_step(&p, nr_a, &of_a) && go_on(others, nr);
	if (others[0].act == KILL && others[0].who == a.who)
		return kill_there(&p);
	for (i = 0; i < nr && ok > 0; i++)
		ok = step_beside(call, others[i], &q, &nr_b);
	told_go_on(a.who, &of_a);
	if (!end_step(&p, nr_a, &of_a))
		return false;
	if (ok >= 0)
		return ok;
	told_answer(others[i - 1].who, &of_b, -1);
	return end_step(&q, nr_b, &of_b) && go_on(others + i, nr - i);
}

bool model_beside(struct model_act a, int call, struct model_act b)
{
	if (b.act == KILL)
		b.who = a.who;
	return model_stands(a, call, &b, 1);
}

/* ---- the end ---- */

/* Of damage one process may meet more than another: a part of a chunk, or the whole. */
static bool is_same_piece(const struct told_answer *a, const struct told_answer *b, size_t i)
{
	if (model_backends && (a->fails[i] || b->fails[i]))
		return true;
	return a->fails[i] == b->fails[i] &&
	       !memcmp(a->bytes + i * TOLD_PIECE, b->bytes + i * TOLD_PIECE, TOLD_PIECE);
}

static bool is_same(const struct told_answer *a, const struct told_answer *b)
{
	bool same = a->ret == b->ret;

	for (size_t i = 0; i < ARRAY_SIZE(a->fails); i++)
		same &= is_same_piece(a, b, i);
	if (same)
		return true;
	fprintf(stderr, "not the same for all in the end:\n");
	show();
	return false;
}

static bool fails(const struct told_answer *a)
{
	return !is_zero((const char *)a->fails, sizeof(a->fails));
}

static bool is_read_by(int who, struct told_answer *first)
{
	struct pending p;
	int nr;

	if (!model_step(who, OPEN, 0, 0))
		return false;
	p = begin_step(who, READ, 0, 0);
	nr = note(&p, 0);
	if (who)
		return end_step(&p, nr, tell(who, p.o)) && is_same(first, tell(who, p.o));
	*first = *tell(who, p.o);
	return end_step(&p, nr, first);
}

/* All is at rest: what is named as lost is what cannot be read. */
static bool is_checked(const struct told_answer *read)
{
	struct pending p = begin_step(TOLD_PROCS, CHECK, 0, 0);
	int nr = note(&p, 0);
	const struct told_answer *a = tell(TOLD_PROCS, p.o);

	if (!end_step(&p, nr, a))
		return false;
	if (model_backends || !memcmp(a->fails, read->fails, sizeof(a->fails)))
		return true;
	fprintf(stderr, "not what cannot be read is named as lost:\n");
	show();
	return false;
}

bool model_ends(int flattened)
{
	static struct told_answer first;
	const struct told_answer *plain;
	bool ok = true;

	for (int who = 0; who < TOLD_PROCS && ok; who++)
		ok = !model_is_open[who] || model_step(who, CLOSE, 0, 0);
	ok = ok && (!told_near || model_step(TOLD_PROCS, DRAIN, 0, 0));
	for (int who = 0; who < TOLD_PROCS && ok; who++)
		ok = is_read_by(who, &first);
	for (int who = 0; who < TOLD_PROCS; who++)
		if (model_is_open[who])
			tell(who, (struct told_order){ .act = CLOSE });
	ok = ok && is_checked(&first);
	if (!ok || flattened < 0)
		return ok;
	plain = tell(TOLD_PROCS + flattened, (struct told_order){ .act = FLATTEN });
	return plain->ret == -EIO ? fails(&first) : is_same(&first, plain);
}

void model_begin(void)
{
	nr_versions = nr_steps = 0;
	forgotten = false;
	released = older = closed = dead = home = lost = maybe = 0;
	memset(knows, 0, sizeof(knows));
	memset(opened, 0, sizeof(opened));
	memset(model_is_open, 0, sizeof(model_is_open));
	memset(untold, 0, sizeof(untold));
	if (model_backends)
		model_backends->begin();
}
