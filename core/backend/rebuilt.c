/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A table of sets of handles, and the functions of a store that make one file of a set.
 */
#include "core/backend/rebuilt.h"

#include "core/base/alloc.h"
#include "core/base/gf256.h"

#define FIRST (1 << 29) /* above all descriptors, below twins (twin.h) */
#define SETS_MAX 512 /* of a process; a caller that is told EMFILE closes some */
#define PIECE ((size_t)128 * 1024)

struct set {
	bool used;
	unsigned nr;
	struct rebuilt_part parts[PARITY_LOGS_MAX];
	uint64_t len;
	mode_t mode;
};

static struct set sets[SETS_MAX];
static const struct store_ops *one; /* the functions for a single file */

static struct set *set_of(int h) { return unlikely(rebuilt_is(h)) ? &sets[h - FIRST] : NULL; }

int rebuilt_make(struct store *s, const struct rebuilt_part *parts, unsigned nr, uint64_t len, mode_t mode)
{
	for (int i = 0; i < SETS_MAX; i++) {
		struct set *set = &sets[i];

		if (__atomic_exchange_n(&set->used, true, __ATOMIC_ACQ_REL))
			continue;
		memcpy(set->parts, parts, nr * sizeof(*parts));
		set->nr = nr;
		set->len = len;
		set->mode = mode;
		return FIRST + i;
	}
	for (unsigned i = 0; i < nr; i++) {
		int each = parts[i].h;

		one->close(s, &each);
	}
	return -EMFILE;
}

static int rebuilt_close(struct store *s, int *h)
{
	struct set *set = set_of(*h);

	if (likely(!set))
		return one->close(s, h);
	*h = -1;
	for (unsigned i = 0; i < set->nr; i++)
		one->close(s, &set->parts[i].h);
	__atomic_store_n(&set->used, false, __ATOMIC_RELEASE);
	return 0;
}

void rebuilt_keep(int *h)
{
	struct set *set = set_of(*h);

	if (!set)
		one->keep(h);
	for (unsigned i = 0; set && i < set->nr; i++)
		one->keep(&set->parts[i].h);
}

/* ---- bytes ---- */

/* Add the bytes at @off of one part. What it has no more is an error: it would count as zeros. */
static int add(struct store *s, const struct rebuilt_part *p, uint8_t *buf, uint8_t *part, size_t len,
	       uint64_t off)
{
	ssize_t n;

	if (off >= p->len)
		return 0;
	len = (size_t)min_u64(len, p->len - off);
	n = one->pread(s, p->h, part, len, p->at + off);
	if (n != (ssize_t)len)
		return n < 0 ? (int)n : -EIO;
	gf256_add_times(buf, part, p->times, len);
	return 0;
}

static ssize_t rebuild(struct store *s, const struct set *set, uint8_t *buf, size_t len, uint64_t off)
{
	uint8_t *part = mem_alloc(min_size(len, PIECE));
	int ret = part ? 0 : -ENOMEM;

	memset(buf, 0, len);
	for (size_t at = 0; at < len && !ret; at += PIECE)
		for (unsigned i = 0; i < set->nr && !ret; i++)
			ret = add(s, &set->parts[i], buf + at, part, min_size(len - at, PIECE), off + at);
	mem_free(part);
	return ret ? ret : (ssize_t)len;
}

static ssize_t rebuilt_pread(struct store *s, int h, void *buf, size_t len, uint64_t off)
{
	struct set *set = set_of(h);

	if (likely(!set))
		return one->pread(s, h, buf, len, off);
	len = (size_t)min_u64(len, set->len - min_u64(set->len, off));
	return len ? rebuild(s, set, buf, len, off) : 0;
}

static ssize_t rebuilt_preadv(struct store *s, int h, struct iovec *iov, int cnt, uint64_t off)
{
	return likely(!rebuilt_is(h)) ? one->preadv(s, h, iov, cnt, off) :
					store_preadv_by(s, h, iov, cnt, off, rebuilt_pread);
}

/* ---- the file ---- */

static int rebuilt_fstat(struct store *s, int h, struct stat *st)
{
	struct set *set = set_of(h);
	int ret = one->fstat(s, set ? set->parts[0].h : h, st);

	if (unlikely(set) && !ret) {
		st->st_size = (off_t)set->len;
		st->st_mode = S_IFREG | set->mode;
	}
	return ret;
}

/* There is no descriptor from which the kernel could read it. */
static int rebuilt_fd(struct store *s, int h)
{
	return unlikely(rebuilt_is(h)) ? -EOPNOTSUPP : one->fd(s, h);
}

static uint64_t rebuilt_next_data(struct store *s, int h, uint64_t off)
{
	return unlikely(rebuilt_is(h)) ? off : one->next_data(s, h, off);
}

void rebuilt_set_ops(struct store_ops *ops)
{
	static struct store_ops single;

	single = *ops;
	one = &single;
	ops->close = rebuilt_close;
	ops->keep = rebuilt_keep;
	ops->pread = rebuilt_pread;
	ops->preadv = rebuilt_preadv;
	ops->fstat = rebuilt_fstat;
	ops->fd = rebuilt_fd;
	ops->next_data = rebuilt_next_data;
}
