/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copying a logical file's bytes into a plain one, holes left out. Which file that is, and what becomes of it, is
 * somebody else's.
 */
#include "copy.h"

#include "critical.h"
#include "log.h"
#include "sys.h"

#include <stdio.h>

#define BUF_LEN ((size_t)1 << 20)
#define BLOCK_LEN 4096 /* zeros in what no log holds are left out in units of this */

int watch_failed(struct plfs_watch *watch, int ret, const char *what)
{
	if (watch && !*watch->why)
		snprintf(watch->why, sizeof(watch->why), "%s: %s", what, strerror(-ret));
	return ret;
}

int watch_explained(struct plfs_watch *watch, int ret, const char *why)
{
	if (watch && !*watch->why)
		snprintf(watch->why, sizeof(watch->why), "%s", why);
	return ret;
}

struct copy {
	struct plfs_watch *watch;
	struct plfs_file *file; /* NULL: a plain file */
	int from, to;           /* the stub or plain file, and the result */
	uint64_t start, end;    /* what is to be copied next: bytes of logs, side by side */
	char *buf;
};

static int put(struct copy *c, const char *buf, size_t len, uint64_t off)
{
	while (len) {
		ssize_t n = own_pwrite_all(c->to, buf, len, off);

		if (n < 0)
			return watch_failed(c->watch, (int)n, "cannot write");
		buf += n;
		off += (uint64_t)n;
		len -= (size_t)n;
	}
	return 0;
}

static ssize_t pread_once(const struct copy *c, char *buf, size_t len, uint64_t off)
{
	ssize_t n = c->file ? plfs_pread(c->file, buf, len, (off_t)off) : own_pread(c->from, buf, len, (off_t)off);

	return n < 0 && !c->file ? -errno : n;
}

static int get(struct copy *c, size_t len, uint64_t off)
{
	size_t have = 0;

	while (have < len) {
		ssize_t n = pread_once(c, c->buf + have, len - have, off + have);
		char what[64];

		if (n == -EINTR)
			continue;
		snprintf(what, sizeof(what), "cannot read byte %llu", (unsigned long long)(off + have));
		if (n < 0)
			return watch_failed(c->watch, (int)n, what);
		if (!n)
			return watch_explained(c->watch, -EAGAIN, "became shorter meanwhile");
		have += (size_t)n;
	}
	return 0;
}

static void show(const struct copy *c, uint64_t done)
{
	if (c->watch && c->watch->progress)
		c->watch->progress(c->watch->arg, done);
}

/* Copy what has gathered; with @all unset only whole buffers. */
static int flush(struct copy *c, bool all)
{
	while (c->end - c->start >= (all ? 1 : BUF_LEN)) {
		size_t len = (size_t)min_u64(c->end - c->start, BUF_LEN);
		int ret = get(c, len, c->start);

		if (!ret)
			ret = put(c, c->buf, len, c->start);
		if (ret)
			return ret;
		c->start += len;
		show(c, c->start);
	}
	return 0;
}

static bool is_zero(const char *p, size_t len)
{
	return !*p && !memcmp(p, p + 1, len - 1);
}

/* Copy [@from, @to) without its blocks of zeros. */
static int copy_sparse(struct copy *c, uint64_t from, uint64_t to)
{
	while (from < to) {
		size_t len = (size_t)min_u64(to - from, BUF_LEN - from % BLOCK_LEN);
		int ret = get(c, len, from);

		for (size_t at = 0; at < len && !ret;) {
			size_t n = min_size(len - at, BLOCK_LEN - (from + at) % BLOCK_LEN);

			if (!is_zero(c->buf + at, n))
				ret = put(c, c->buf + at, n, from + at);
			at += n;
		}
		if (ret)
			return ret;
		from += len;
		show(c, from);
	}
	return 0;
}

/* What lies in the open file itself, from @base on. */
static int copy_body(struct copy *c, uint64_t from, uint64_t to, uint64_t base)
{
	int ret = 0;

	while (from < to && !ret) {
		off_t data = sys.lseek(c->from, (off_t)(base + from), SEEK_DATA), hole;

		if (data < 0 && errno == ENXIO)
			break;
		if (data < 0)
			data = (off_t)(base + from);
		if ((uint64_t)data - base >= to)
			break;
		hole = sys.lseek(c->from, data, SEEK_HOLE);
		from = (uint64_t)data - base;
		data = hole;
		ret = copy_sparse(c, from, data < 0 ? to : min_u64((uint64_t)data - base, to));
		from = data < 0 ? to : (uint64_t)data - base;
	}
	return ret;
}

/* Where logs hold the file, side by side pieces are copied together, however small they are. */
static int copy_piece(void *arg, uint64_t logical_off, uint64_t len, const char *log, uint64_t log_off)
{
	struct copy *c = arg;
	int ret = 0;

	(void)log_off;
	if (!log || log == plfs_in_stub || c->end != logical_off) {
		ret = flush(c, true);
		c->start = c->end = logical_off;
	}
	if (ret || !log)
		return ret;
	if (log == plfs_in_stub)
		return copy_body(c, logical_off, logical_off + len, PLFS_BODY_OFF);
	c->end += len;
	return flush(c, false);
}

int plfs_copy_out(struct plfs_file *f, int from, int to, uint64_t size, bool alone, struct plfs_watch *watch)
{
	int saved ERRNO_KEPT = errno;
	struct copy c = { .watch = watch, .file = f, .from = from, .to = to };
	int ret;

	if (sys.ftruncate(to, (off_t)size))
		return watch_failed(watch, -errno, "cannot give the result its size");
	c.buf = mem_alloc(BUF_LEN);
	if (!c.buf)
		return watch_failed(watch, -ENOMEM, "cannot copy");
	if (!f) {
		ret = copy_body(&c, 0, size, 0);
	} else if (!alone) {
		ret = copy_sparse(&c, 0, size);
	} else {
		ret = plfs_get_map(f, copy_piece, &c);
		ret = ret ? ret : flush(&c, true);
	}
	mem_free(c.buf);
	return ret;
}
