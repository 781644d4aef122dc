/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A table of pairs of handles, and the functions of a store that go to one of a pair or both.
 */
#include "core/backend/twin.h"

#include "core/backend/rebuilt.h"

#define FIRST (1 << 30) /* above all descriptors */
#define TWINS_MAX 512	/* of a process; a caller that is told EMFILE closes some */

enum { NEAR, HOME };

struct twin {
	bool used;
	bool staged; /* home has all of it, and may grow; near is a copy to read from */
	int h[2];
	uint64_t home_len; /* when it was opened: what comes later is near as well */
	unsigned preferred;
};

static struct twin twins[TWINS_MAX];
static void (*keep_one)(int *h);

static struct twin *twin_of(int h) { return unlikely(twin_is(h)) ? &twins[h - FIRST] : NULL; }

/* The handle for what is done with one file. */
static int one(int h)
{
	return unlikely(twin_is(h)) ? twins[h - FIRST].h[twins[h - FIRST].staged ? HOME : NEAR] : h;
}

static uint64_t len_of(struct store *s, int h)
{
	struct stat st;

	return s->under->fstat(s, h, &st) ? 0 : (uint64_t)st.st_size;
}

/* One of the table; NULL: there are too many. */
static struct twin *take(int near, int home, uint64_t home_len, bool staged)
{
	for (int i = 0; i < TWINS_MAX; i++) {
		struct twin *t = &twins[i];

		if (__atomic_exchange_n(&t->used, true, __ATOMIC_ACQ_REL))
			continue;
		t->h[NEAR] = near;
		t->h[HOME] = home;
		t->home_len = home_len;
		t->preferred = NEAR;
		t->staged = staged;
		return t;
	}
	return NULL;
}

int twin_make(struct store *s, int near, int home, bool at_home)
{
	struct twin *t = take(near, home, len_of(s, home), false);

	if (t) {
		t->preferred = at_home ? HOME : NEAR;
		return FIRST + (int)(t - twins);
	}
	s->under->close(s, &near);
	s->under->close(s, &home);
	return -EMFILE;
}

int twin_make_staged(int copy, int home)
{
	struct twin *t = take(copy, home, UINT64_MAX, true);

	return t ? FIRST + (int)(t - twins) : -EMFILE;
}

uint64_t twin_home_len(int h)
{
	struct twin *t = twin_of(h);

	return t && !t->staged ? t->home_len : 0;
}

bool twin_prefers_home(int h)
{
	struct twin *t = twin_of(h);

	return t && __atomic_load_n(&t->preferred, __ATOMIC_RELAXED) == HOME;
}

bool twin_turn(struct store *s, int h)
{
	struct twin *t = s->under ? twin_of(h) : NULL;

	if (t)
		__atomic_xor_fetch(&t->preferred, 1, __ATOMIC_RELAXED);
	return t;
}

static int twin_close(struct store *s, int *h)
{
	struct twin *t = twin_of(*h);
	int ret, ret2;

	if (likely(!t))
		return s->under->close(s, h);
	*h = -1;
	ret = s->under->close(s, &t->h[NEAR]);
	ret2 = s->under->close(s, &t->h[HOME]);
	__atomic_store_n(&t->used, false, __ATOMIC_RELEASE);
	return ret ? ret : ret2;
}

static void twin_keep(int *h)
{
	struct twin *t = twin_of(*h);

	if (unlikely(rebuilt_is(*h))) {
		rebuilt_keep(h);
		return;
	}
	keep_one(t ? &t->h[NEAR] : h);
	if (t)
		keep_one(&t->h[HOME]);
}

/* ---- bytes ---- */

/* What the preferred one has; then what only the other has. An error of one is none if the other has it. */
static ssize_t twin_pread(struct store *s, int h, void *buf, size_t len, uint64_t off)
{
	struct twin *t = twin_of(h);
	unsigned first;
	size_t done = 0;
	ssize_t n = 0, ret = 0;

	if (likely(!t))
		return s->under->pread(s, h, buf, len, off);
	first = __atomic_load_n(&t->preferred, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < 2 && done < len; i++) {
		size_t part = len - done;

		if ((first ^ i) == HOME) /* it may be growing: its end is near */
			part = (size_t)min_u64(part, t->home_len - min_u64(t->home_len, off + done));
		n = part ? s->under->pread(s, t->h[first ^ i], (char *)buf + done, part, off + done) : 0;
		done += n > 0 ? (size_t)n : 0;
		ret = n < 0 ? n : ret;
	}
	return done || !ret ? (ssize_t)done : ret;
}

static ssize_t twin_preadv(struct store *s, int h, struct iovec *iov, int cnt, uint64_t off)
{
	return likely(!twin_is(h)) ? s->under->preadv(s, h, iov, cnt, off) :
				     store_preadv_by(s, h, iov, cnt, off, twin_pread);
}

static ssize_t twin_pwrite(struct store *s, int h, const void *buf, size_t len, uint64_t off)
{
	struct twin *t = twin_of(h);
	ssize_t n, both;

	if (likely(!t))
		return s->under->pwrite(s, h, buf, len, off);
	n = s->under->pwrite(s, t->h[NEAR], buf, len, off);
	if (n <= 0 || off >= t->home_len)
		return n;
	both = s->under->pwrite(s, t->h[HOME], buf, (size_t)min_u64((uint64_t)n, t->home_len - off), off);
	return both < 0 ? both : n;
}

static ssize_t twin_pwrite2(struct store *s, int h, const void *buf, size_t len, const void *buf2,
			    size_t len2, uint64_t off)
{
	ssize_t n, n2;

	if (likely(!twin_is(h)))
		return s->under->pwrite2(s, h, buf, len, buf2, len2, off);
	n = twin_pwrite(s, h, buf, len, off);
	if (n != (ssize_t)len || !len2)
		return n;
	n2 = twin_pwrite(s, h, buf2, len2, off + len);
	return n2 < 0 && !n ? n2 : n + (n2 > 0 ? n2 : 0);
}

/* ---- the file ---- */

static int twin_fstat(struct store *s, int h, struct stat *st)
{
	struct twin *t = twin_of(h);
	int ret = s->under->fstat(s, one(h), st);

	if (unlikely(t) && !t->staged && !ret)
		st->st_size = (off_t)max_u64((uint64_t)st->st_size, t->home_len);
	return ret;
}

static int twin_truncate(struct store *s, int h, uint64_t len)
{
	struct twin *t = twin_of(h);
	int ret = s->under->truncate(s, one(h), len);

	if (likely(!t) || ret || len >= t->home_len)
		return ret;
	ret = s->under->truncate(s, t->h[HOME], len);
	t->home_len = ret ? t->home_len : len;
	return ret;
}

static int twin_sync(struct store *s, int h, bool dir)
{
	struct twin *t = twin_of(h);
	int ret = s->under->sync(s, one(h), dir);

	return unlikely(t) && !ret ? s->under->sync(s, t->h[HOME], dir) : ret;
}

/* The preferred one may have a hole where the other has bytes. */
static uint64_t twin_next_data(struct store *s, int h, uint64_t off)
{
	return unlikely(twin_is(h)) || !s->under->next_data ? off : s->under->next_data(s, h, off);
}

static int twin_fd(struct store *s, int h) { return s->under->fd(s, one(h)); }

static int twin_chmod(struct store *s, int h, mode_t mode)
{
	struct twin *t = twin_of(h);
	int ret = s->under->chmod(s, one(h), mode);

	return unlikely(t) && !ret ? s->under->chmod(s, t->h[HOME], mode) : ret;
}

static int twin_chown(struct store *s, int h, uid_t uid, gid_t gid)
{
	struct twin *t = twin_of(h);
	int ret = s->under->chown(s, one(h), uid, gid);

	return unlikely(t) && !ret ? s->under->chown(s, t->h[HOME], uid, gid) : ret;
}

/* All that is done with a handle of a log; locks and mappings are of other droppings. */
void twin_set_ops(struct store_ops *ops)
{
	keep_one = ops->keep;
	ops->close = twin_close;
	ops->keep = twin_keep;
	ops->pread = twin_pread;
	ops->preadv = twin_preadv;
	ops->pwrite = twin_pwrite;
	ops->pwrite2 = twin_pwrite2;
	ops->fstat = twin_fstat;
	ops->truncate = twin_truncate;
	ops->sync = twin_sync;
	ops->fd = twin_fd;
	ops->next_data = twin_next_data;
	ops->chmod = twin_chmod;
	ops->chown = twin_chown;
}
