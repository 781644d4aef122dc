/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What differs from the plain directory: whether a promise allows it, what is the shortest history that
 * differs so, and what is told of it. What a known shortest history is a part of, at the same call, is
 * counted with that one.
 */
#define _GNU_SOURCE
#include "histories.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sched.h>

#if !__GLIBC_PREREQ(2, 32)
#define strerrorname_np(err) strerror(err)
#endif

/* Few, and no others. */
static const struct {
	const char *item, *words;
} allowances[NR_ALLOWANCES] = {
	[A_PART_OF_A_WRITE] = { "After a write returns (a process that is killed)",
				"of an unfinished write any part may be there" },
};

enum { FINDINGS_MAX = 4000 };

struct finding {
	struct history h; /* its last step differs; the parts are named in their order */
	char want[160], got[160];
	uint32_t variants;
	unsigned long count;
	int of;    /* the finding with simpler calls that this one is counted with, or itself */
	bool once; /* it did not come again */
	int at; /* the step that differs */
	struct inner in; /* in.nr 0: nothing happened inside a step */
	char after[160];
};

enum kind { NONE, ERROR, SIZE, BYTES, MODE, SAID };

struct difference {
	int at; /* -1: none */
	enum kind kind;
	struct outcome want, got;
	char said[120];
};

static struct shared {
	struct tally tally;
	int locked, nr;
	struct finding findings[FINDINGS_MAX];
} *shared;

void judge_begin(void)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (shared == MAP_FAILED)
		abort();
}

struct tally *tally(void)
{
	return &shared->tally;
}

static void lock(void)
{
	while (__atomic_exchange_n(&shared->locked, 1, __ATOMIC_ACQUIRE))
		sched_yield();
}

static void unlock(void)
{
	__atomic_store_n(&shared->locked, 0, __ATOMIC_RELEASE);
}

static void add(unsigned long *count)
{
	__atomic_fetch_add(count, 1, __ATOMIC_RELAXED);
}

void allow(enum allowance allowance)
{
	add(&shared->tally.allowed[allowance]);
}

bool outcome_equal(const struct outcome *a, const struct outcome *b)
{
	if (a->ret != b->ret || a->err != b->err || a->extra != b->extra || a->nr_runs != b->nr_runs)
		return false;
	for (uint32_t i = 0; i < a->nr_runs && i < RUNS_MAX; i++)
		if (a->runs[i].len != b->runs[i].len || a->runs[i].byte != b->runs[i].byte)
			return false;
	return true;
}

static const char *error_text(int err)
{
	static const char *const own[] = { "no descriptor",	    "no map",  "no room", "SIGBUS",
					   "no answer, or a crash", "not done" };

	return err >= NO_FD ? own[err - NO_FD] : strerrorname_np(err);
}

void outcome_text(char *buf, size_t size, const struct outcome *o)
{
	size_t len = (size_t)(o->err ? snprintf(buf, size, "%s", error_text(o->err)) :
				       snprintf(buf, size, "%ld", (long)o->ret));

	if (o->extra)
		len += (size_t)snprintf(buf + len, size - len, ", mode %o, %u links", o->extra & 0xfffff,
					o->extra >> 20);
	for (uint32_t i = 0; i < o->nr_runs && i < RUNS_MAX && len < size; i++)
		len += (size_t)snprintf(buf + len, size - len,
					o->runs[i].byte < 32 ? " %u of \\%o" : " %u %c", o->runs[i].len,
					o->runs[i].byte);
}

/* ---- known ones ---- */

/* Whether @small is a part of @h, with its last step at @at; @names maps parts of @small to those of @h. */
static bool embeds(const struct history *small, const struct history *h, int at, const int *names)
{
	int k = small->nr - 1, i = at;

	for (; k >= 0 && i >= 0; i--) {
		if (h->steps[i].call == small->steps[k].call &&
		    h->steps[i].slot == names[small->steps[k].slot])
			k--;
		else if (i == at)
			return false;
	}
	return k < 0;
}

static bool is_part_of(const struct history *small, const struct history *h, int at)
{
	int names[NR_SLOTS];

	for (int code = 0; code < 256; code++) {
		bool used[NR_SLOTS] = { false }, ok = true;

		for (int s = 0; s < NR_SLOTS; s++) {
			names[s] = code >> (2 * s) & 3;
			ok &= !used[names[s]];
			used[names[s]] = true;
		}
		if (ok && embeds(small, h, at, names))
			return true;
	}
	return false;
}

static int index_of(const struct variant *v)
{
	return (int)(v - variants);
}

static bool is_known(const struct variant *v, const struct history *h, int at)
{
	bool known = false;

	lock();
	for (int i = 0; i < shared->nr && !known; i++) {
		struct finding *f = &shared->findings[i];

		if (f->once || f->in.nr || !(f->variants & 1u << index_of(v)) ||
		    !is_part_of(&f->h, h, at))
			continue;
		shared->findings[f->of].count++;
		shared->findings[f->of].variants |= 1u << index_of(v);
		known = true;
	}
	unlock();
	return known;
}

static void name_parts(struct history *h)
{
	int names[NR_SLOTS] = { -1, -1, -1, -1 }, nr = 0;

	for (int i = 0; i < h->nr; i++)
		if (h->steps[i].call == BOTH) /* whose child is R */
			return;
	for (int i = 0; i < h->nr; i++) {
		int *name = &names[h->steps[i].slot];

		if (*name < 0)
			*name = nr++;
		h->steps[i].slot = (uint8_t)*name;
	}
}

static bool same(const struct history *a, const struct history *b)
{
	return a->nr == b->nr && !memcmp(a->steps, b->steps, (size_t)a->nr * sizeof(a->steps[0]));
}

/* The place of @h among the findings, which has it from now on; -1: there is no room. */
static int finding_of(const struct variant *v, const struct history *h, bool once, const struct difference *d)
{
	struct history named = *h;
	struct finding *f;
	int i;

	name_parts(&named);
	for (i = 0;
	     i < shared->nr && !(same(&shared->findings[i].h, &named) && shared->findings[i].once == once);
	     i++)
		;
	if (i == FINDINGS_MAX)
		return -1;
	f = &shared->findings[i];
	if (i == shared->nr) {
		shared->nr++;
		f->h = named;
		f->of = i;
		f->once = once;
		outcome_text(f->want, sizeof(f->want), &d->want);
		outcome_text(f->got, sizeof(f->got), &d->got);
		if (d->kind == SAID) {
			snprintf(f->want, sizeof(f->want), "nothing on standard error");
			snprintf(f->got, sizeof(f->got), "%s", d->said);
		}
	}
	f->variants |= 1u << index_of(v);
	return i;
}

/* ---- the shortest ---- */

static enum kind kind_of(const struct outcome *want, const struct outcome *got)
{
	if (outcome_equal(want, got))
		return NONE;
	if (want->err != got->err)
		return ERROR;
	if (want->ret != got->ret)
		return SIZE;
	return want->extra != got->extra ? MODE : BYTES;
}

static struct difference first_difference(const struct variant *v, const struct history *h,
					  const struct outcome *want, const struct outcome *got)
{
	struct difference d = { .at = -1 };
	bool said = drive_said(v, d.said, sizeof(d.said));

	for (int i = 0; i < h->nr; i++)
		if (!outcome_equal(&want[i], &got[i]))
			return (struct difference){ i, kind_of(&want[i], &got[i]), want[i], got[i], "" };
	if (said) {
		d.at = h->nr - 1;
		d.kind = SAID;
	}
	return d;
}

static struct difference try(const struct variant *v, const struct history *h)
{
	static struct outcome want[STEPS_MAX], got[STEPS_MAX];

	drive(&variants[0], h, want);
	drive(v, h, got);
	return first_difference(v, h, want, got);
}

/* @h is replaced by @shorter if that differs likewise. */
static bool take_if(const struct variant *v, struct history *h, struct history *shorter, struct difference *d)
{
	uint8_t call = shorter->steps[shorter->nr - 1].call;
	struct difference now = try(v, shorter);

	if (now.at < 0 || now.kind != d->kind || (d->kind != SAID && shorter->steps[now.at].call != call))
		return false;
	shorter->nr = now.at + 1;
	*h = *shorter;
	*d = now;
	return true;
}

static bool leave_out(const struct variant *v, struct history *h, struct difference *d, int first, int nr)
{
	struct history shorter = *h;

	memmove(&shorter.steps[first], &shorter.steps[first + nr],
		(size_t)(h->nr - first - nr) * sizeof(h->steps[0]));
	shorter.nr -= nr;
	return take_if(v, h, &shorter, d);
}

static bool rename_part(const struct variant *v, struct history *h, struct difference *d, int from, int to)
{
	struct history fewer = *h;
	bool any = false;

	for (int i = 0; i < h->nr; i++)
		if (fewer.steps[i].slot == from) {
			fewer.steps[i].slot = (uint8_t)to;
			any = true;
		}
	return any && take_if(v, h, &fewer, d);
}

static void shorten(const struct variant *v, struct history *h, struct difference *d)
{
	bool shorter = true;

	while (shorter) {
		shorter = false;
		for (int nr = 2; nr; nr--)
			for (int i = h->nr - nr; i >= 0; i--)
				shorter |= i + nr < h->nr + (d->kind == SAID) && leave_out(v, h, d, i, nr);
		for (int from = NR_SLOTS - 1; from > 0; from--)
			for (int to = 0; to < from; to++)
				shorter |= rename_part(v, h, d, from, to);
	}
}

static int simpler(enum call call)
{
	switch (call) {
	case RDONLY: case APPEND: case TRUNC: case EXCL:
		return OPEN;
	case W50: case WFAR: case WRITE:
		return W0;
	case CUT70: case FCUT200:
		return call == CUT70 ? CUT0 : FCUT30;
	case FCUT30:
		return CUT70;
	case STAT: case END:
		return FSTAT;
	case READ: case LOOK:
		return PREAD;
	case EXIT:
		return KILL;
	case LOOK_G:
		return LOOK;
	default:
		return -1;
	}
}

/* Another call of the same kind, where the difference stays. */
static bool simplify(const struct variant *v, struct history *h, struct difference *d)
{
	bool any = false;

	for (int i = 0; i < h->nr; i++) {
		struct history other = *h;
		int call = simpler((enum call)h->steps[i].call);

		if (call < 0)
			continue;
		other.steps[i].call = (uint8_t)call;
		any |= take_if(v, h, &other, d);
	}
	return any;
}

/*
 * Adds what differs so to what is known, in its exact form as well, so that the next like it needs not be
 * tried again.
 */
static void keep(const struct variant *v, const struct history *exact, const struct difference *exact_d,
		 bool again)
{
	struct history simple = *exact;
	struct difference d = *exact_d;
	int i, of;

	while (again && simplify(v, &simple, &d))
		shorten(v, &simple, &d);
	lock();
	of = finding_of(v, &simple, !again, &d);
	i = finding_of(v, exact, !again, exact_d);
	if (i >= 0 && of >= 0) {
		shared->findings[i].of = shared->findings[of].of;
		shared->findings[shared->findings[i].of].count++;
		shared->findings[shared->findings[i].of].variants |= 1u << index_of(v);
	}
	unlock();
}

void judge(const struct variant *v, const struct history *h, const struct outcome *want,
	   const struct outcome *got)
{
	struct difference d = first_difference(v, h, want, got), again;
	struct history shortest = *h;

	if (d.at < 0)
		return;
	add(&shared->tally.differences);
	if (is_known(v, h, d.at)) {
		add(&shared->tally.explained);
		return;
	}
	shortest.nr = d.at + 1;
	again = try(v, &shortest);
	if (again.at < 0) {
		drive_anew();
		again = try(v, &shortest);
	}
	if (again.at < 0) {
		add(&shared->tally.not_again);
	} else {
		shortest.nr = again.at + 1;
		d = again;
		shorten(v, &shortest, &d);
	}
	keep(v, &shortest, &d, again.at >= 0);
}

/* The same call is disturbed (by the same), and the same shows it. */
static bool is_alike(const struct finding *f, const struct history *h, int last, int at)
{
	return f->h.steps[f->in.last].call == h->steps[last].call &&
	       f->h.steps[f->at].call == h->steps[at].call &&
	       (f->in.what == KILLED || f->h.steps[f->in.last + 1].call == h->steps[last + 1].call);
}

/* One example of each call that is killed and each that shows it. */
void inner_found(const struct variant *v, const struct history *h, struct inner in, int at,
		 const struct outcome *before, const struct outcome *after, const struct outcome *got)
{
	struct finding *f;
	int i;

	add(&shared->tally.differences);
	lock();
	for (i = 0; i < shared->nr; i++) {
		f = &shared->findings[i];
		if (f->in.nr && f->in.what == in.what && (f->variants & 1u << index_of(v)) &&
		    is_alike(f, h, in.last, at))
			break;
	}
	f = &shared->findings[i < FINDINGS_MAX ? i : FINDINGS_MAX - 1];
	if (i == shared->nr && i < FINDINGS_MAX) {
		*f = (struct finding){ .h = *h,
				       .of = i,
				       .in = in,
				       .variants = 1u << index_of(v) };
		f->at = at;
		f->h.nr = (at > in.last ? at : in.last + 1) + 1;
		outcome_text(f->want, sizeof(f->want), before);
		outcome_text(f->after, sizeof(f->after), after);
		outcome_text(f->got, sizeof(f->got), got);
		shared->nr++;
	}
	f->count++;
	unlock();
}

/* ---- the report ---- */

static int shorter_first(const void *a, const void *b)
{
	const struct finding *x = *(struct finding *const *)a, *y = *(struct finding *const *)b;

	if (x->once != y->once)
		return x->once - y->once;
	if (x->h.nr != y->h.nr)
		return x->h.nr - y->h.nr;
	return x->count < y->count ? 1 : x->count > y->count ? -1 : 0;
}

static void tell(const struct finding *f)
{
	char text[1024];

	history_text(text, sizeof(text), &f->h);
	printf("\n%s\n   %lu times%s, mapped as", text, f->count,
	       f->once ? " but not again when tried by itself" : "");
	for (int i = 1; i < nr_variants; i++)
		if (f->variants & 1u << i)
			printf(" %s", variants[i].name);
	printf("\n");
	for (int i = 0; i < f->h.nr; i++) {
		call_text(text, sizeof(text), f->h.steps[i], i);
		printf("\t/* %c */ %s;\n", "PQRS"[f->h.steps[i].slot], text);
	}
	if (f->in.nr) {
		bool killed = f->in.what == KILLED;

		printf("\t/* step %d differs: %s the system call %d of \"%s\"", f->at + 1,
		       killed ? "killed at" : "the next step came at", f->in.nr,
		       call_word((enum call)f->h.steps[f->in.last].call));
		if (f->in.what == CROSSED)
			printf(", and stood at its own %d till that had ended", f->in.nr_next);
		printf("; plain %s: %s, %s: %s\n\t   libplfs: %s */\n",
		       killed ? "without it" : "if it comes before", f->want, killed ? "with it" : "after",
		       f->after, f->got);
	} else {
		printf("\t/* plain: %s\n\t   libplfs: %s */\n", f->want, f->got);
	}
}

unsigned long judge_report(int examples)
{
	static struct finding *sorted[FINDINGS_MAX];

	int nr = 0;

	for (int i = 0; i < shared->nr; i++)
		if (shared->findings[i].of == i)
			sorted[nr++] = &shared->findings[i];
	qsort(sorted, (size_t)nr, sizeof(sorted[0]), shorter_first);
	for (int i = 0; i < nr && i < examples; i++)
		tell(sorted[i]);
	if (nr > examples)
		printf("\nand %d more\n", nr - examples);
	for (int i = 0; i < NR_ALLOWANCES; i++)
		if (shared->tally.allowed[i])
			printf("allowed %lu times by \"%s\": %s\n", shared->tally.allowed[i],
			       allowances[i].item, allowances[i].words);
	return shared->tally.differences;
}
