/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copying a logical file's bytes into a plain one, holes left out. The caller chooses the file and names it.
 * The plain file has no checksums, so what is wrong has to show here: every byte is compared with those of
 * its log.
 */
#include "core/plain/copy_out.h"

#include "core/backend/stub_use.h"
#include "core/base/bytes.h"
#include "core/base/critical.h"
#include "core/base/msg.h"
#include "core/base/sys.h"
#include "core/base/vec.h"
#include "core/plfs_admin.h"
#include "index/record/chunks.h"

#include <stdio.h>

#define BUF_LEN ((size_t)1 << 20)
#define SEND_LEN ((uint64_t)64 << 20)
#define BLOCK_LEN 4096 /* zeros in what no log holds are left out in units of this */

int progress_failed(struct plfs_progress *watch, int ret, const char *what)
{
	if (watch && !*watch->why)
		snprintf(watch->why, sizeof(watch->why), "%s: %s", what, strerror(-ret));
	return ret;
}

int progress_explained(struct plfs_progress *watch, int ret, const char *why)
{
	if (watch && !*watch->why)
		snprintf(watch->why, sizeof(watch->why), "%s", why);
	return ret;
}

/* From @off on, to the next part or to the end, the bytes of one log from @log_off on. */
struct part {
	uint64_t off, log_off;
};

struct copy {
	struct plfs_progress *watch;
	struct plfs_file *file; /* NULL: a plain file */
	int from, to;           /* the stub or plain file, and the result */
	int shown;              /* a stub whose lock others wait for, or -1 */
	uint64_t shown_ns, sent; /* to the disk, the latter, of the result */
	copy_sink *sink;        /* instead of @to, for what logs have alone; or NULL */
	void *sink_arg;
	uint64_t start, end;    /* what is to be copied next: bytes of logs, side by side */
	uint64_t logged;        /* bytes that logs had when their turn came */
	struct part *parts;     /* of these, in order; kept if the copy may be partial */
	size_t nr_parts, cap_parts;
	char *buf;
};

static int put(struct copy *c, const char *buf, size_t len, uint64_t off)
{
	if (c->sink) {
		int ret = c->sink(c->sink_arg, buf, len, off);

		return ret ? progress_failed(c->watch, ret, "cannot write") : 0;
	}
	while (len) {
		ssize_t n = io_pwrite_all(c->to, buf, len, off);

		if (n < 0)
			return progress_failed(c->watch, (int)n, "cannot write");
		buf += n;
		off += (uint64_t)n;
		len -= (size_t)n;
	}
	return 0;
}

static ssize_t pread_once(const struct copy *c, char *buf, size_t len, uint64_t off)
{
	ssize_t n =
		c->file ? plfs_pread(c->file, buf, len, (off_t)off) : io_pread(c->from, buf, len, (off_t)off);

	return n < 0 && !c->file ? -errno : n;
}

/* All of it. @why, of WHY_LEN: after an error, in words. -ENODATA: the file is shorter. */
#define WHY_LEN sizeof(((struct plfs_progress *)NULL)->why)
static int read_all(const struct copy *c, char *buf, size_t len, uint64_t off, char *why)
{
	size_t have = 0;
	ssize_t n = 1;

	*why = '\0';
	if (c->watch)
		msg_catch(why, WHY_LEN);
	while (have < len && n) {
		n = pread_once(c, buf + have, len - have, off + have);
		if (n < 0 && n != -EINTR)
			break;
		have += n > 0 ? (size_t)n : 0;
	}
	msg_catch(NULL, 0);
	if (have == len && *why) /* nothing that keeps the bytes from being read */
		msg_error("%s", why);
	if (n < 0 && !*why)
		snprintf(why, WHY_LEN, "cannot read byte %llu: %s", (unsigned long long)(off + have),
			 strerror((int)-n));
	return have == len ? 0 : n ? (int)n : -ENODATA;
}

/* ---- what cannot be read, or is not what was written ---- */

/* How many of the @len bytes at @off can be read, checked or not. Of the rest of a log none can. */
static size_t readable(const struct copy *c, char *buf, size_t len, uint64_t off)
{
	char why[WHY_LEN];
	size_t from = 0;

	if (!read_all(c, buf, len, off, why))
		return len;
	for (size_t to = len; to - from > 1;) {
		size_t mid = from + (to - from) / 2;

		if (read_all(c, buf, mid, off, why))
			to = mid;
		else
			from = mid;
	}
	memset(buf + from, 0, len - from);
	return from;
}

/* @len bytes of one chunk of one log. */
static int get_piece(struct copy *c, char *buf, size_t len, uint64_t off)
{
	char why[WHY_LEN];
	int ret = read_all(c, buf, len, off, why);
	size_t n;

	if (!ret)
		return 0;
	if (ret != -EIO)
		return progress_explained(c->watch, ret == -ENODATA ? -EAGAIN : ret, why);
	if (c->file)
		plfs_set_verify(c->file, false);
	n = readable(c, buf, len, off);
	if (c->file)
		plfs_set_verify(c->file, true);
	if (c->watch->lost && n)
		c->watch->lost(c->watch->arg, off, n, true, why);
	if (c->watch->lost && n < len)
		c->watch->lost(c->watch->arg, off + n, len - n, false, why);
	return 0;
}

/* The same of what read_all() could not read, chunk by chunk of each log. */
static int get_pieces(struct copy *c, size_t len, uint64_t off)
{
	uint64_t end = off + len, at = off, to;
	int ret = 0;

	for (size_t i = 0; at < end && !ret; at = to) {
		uint64_t stop = end, log_off = at;

		while (i + 1 < c->nr_parts && c->parts[i + 1].off <= at)
			i++;
		if (i + 1 < c->nr_parts)
			stop = min_u64(end, c->parts[i + 1].off);
		if (i < c->nr_parts)
			log_off = c->parts[i].log_off + (at - c->parts[i].off);
		to = min_u64(stop, at + (INDEX_CHUNK_LEN - log_off % INDEX_CHUNK_LEN));
		ret = get_piece(c, c->buf + (at - off), (size_t)(to - at), at);
	}
	return ret;
}

static int get(struct copy *c, size_t len, uint64_t off)
{
	char why[WHY_LEN];
	int ret = read_all(c, c->buf, len, off, why);

	if (ret == -ENODATA)
		return progress_explained(c->watch, -EAGAIN, "became shorter meanwhile");
	if (ret == -EIO && c->watch && c->watch->partial)
		return get_pieces(c, len, off);
	return ret ? progress_explained(c->watch, ret, why) : 0;
}

static int add_part(struct copy *c, uint64_t off, uint64_t log_off)
{
	struct part *parts = vec_room(c->parts, &c->cap_parts, c->nr_parts + 1, sizeof(*parts));

	if (!parts)
		return progress_failed(c->watch, -ENOMEM, "cannot copy");
	c->parts = parts;
	parts[c->nr_parts++] = (struct part){ off, log_off };
	return 0;
}

/* Those in front of c->start have been copied. */
static void drop_parts(struct copy *c)
{
	size_t nr = 0;

	while (nr + 1 < c->nr_parts && c->parts[nr + 1].off <= c->start)
		nr++;
	c->nr_parts -= nr;
	if (nr)
		memmove(c->parts, c->parts + nr, c->nr_parts * sizeof(*c->parts));
}

/* ---- copying ---- */

/* A sync shows nothing, so what is for the last one is on its way before. That one has the errors. */
static void show_others(struct copy *c, uint64_t done)
{
	stub_show_work(c->shown, &c->shown_ns);
	if (done - c->sent < SEND_LEN || c->sink)
		return;
	c->sent = done;
	sys.sync_file_range(c->to, 0, 0, SYNC_FILE_RANGE_WRITE);
}

static void show(struct copy *c, uint64_t done)
{
	if (c->shown >= 0)
		show_others(c, done);
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
		drop_parts(c);
		show(c, c->start);
	}
	return 0;
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

/* In the result they are a hole. */
static int lose(struct copy *c, uint64_t off, uint64_t len)
{
	static const char why[] = "may be lost: nothing is left of what a host wrote";

	if (!c->watch || !c->watch->partial)
		return progress_explained(c->watch, -EIO, why);
	if (c->watch->lost)
		c->watch->lost(c->watch->arg, off, len, false, why);
	return 0;
}

/* Where logs hold the file, side by side pieces are copied together, however small they are. */
static int copy_piece(void *arg, uint64_t logical_off, uint64_t len, const char *log, uint64_t log_off)
{
	struct copy *c = arg;
	int ret = 0;

	if (!log || log == plfs_in_stub || log == plfs_lost || c->end != logical_off) {
		ret = flush(c, true);
		c->start = c->end = logical_off;
		c->nr_parts = 0;
	}
	if (ret || !log)
		return ret;
	if (log == plfs_lost)
		return lose(c, logical_off, len);
	if (log == plfs_in_stub && c->sink)
		return 0;
	if (log == plfs_in_stub)
		return copy_body(c, logical_off, logical_off + len, PLFS_BODY_OFF);
	if (c->watch && c->watch->partial)
		ret = add_part(c, logical_off, log_off);
	c->logged += len;
	c->end += len;
	return ret ? ret : flush(c, false);
}

static int add_logged(void *arg, uint64_t logical_off, uint64_t len, const char *log, uint64_t log_off)
{
	uint64_t *logged = arg;

	(void)logical_off, (void)log_off;
	if (log && log != plfs_in_stub && log != plfs_lost)
		*logged += len;
	return 0;
}

/*
 * All that a host wrote may go between the map and a read: what is below it was read then, which may be a
 * hole. Then less is in logs than there was. So it is, too, if a program cuts the file off meanwhile: such a
 * copy would not be the file of any moment.
 */
static int look_again(const struct copy *c)
{
	uint64_t logged = 0;
	int ret = plfs_get_map(c->file, add_logged, &logged);

	if (ret || logged >= c->logged)
		return ret;
	return progress_explained(c->watch, -EIO, "a log has gone while it was copied, or was cut off");
}

int copy_logs(struct plfs_file *f, int shown, copy_sink *sink, void *arg, struct plfs_progress *watch)
{
	struct copy c = { .watch = watch, .file = f, .shown = shown, .sink = sink, .sink_arg = arg,
			  .buf = mem_alloc(BUF_LEN) };
	int ret;

	if (!c.buf)
		return progress_failed(watch, -ENOMEM, "cannot copy");
	plfs_set_verify(f, true);
	ret = plfs_get_map(f, copy_piece, &c);
	ret = ret ? ret : flush(&c, true);
	mem_free(c.parts);
	mem_free(c.buf);
	return ret;
}

static int copy_out(struct copy *c, uint64_t size, bool alone)
{
	int ret;

	if (sys.ftruncate(c->to, (off_t)size))
		return progress_failed(c->watch, -errno, "cannot give the result its size");
	c->buf = mem_alloc(BUF_LEN);
	if (!c->buf)
		return progress_failed(c->watch, -ENOMEM, "cannot copy");
	if (c->file)
		plfs_set_verify(c->file, true);
	if (!c->file) {
		ret = copy_body(c, 0, size, 0);
	} else if (!alone && !(c->watch && c->watch->partial)) {
		ret = copy_sparse(c, 0, size);
	} else {
		ret = plfs_get_map(c->file, copy_piece, c);
		ret = ret ? ret : flush(c, true);
		ret = ret ? ret : look_again(c);
	}
	mem_free(c->parts);
	mem_free(c->buf);
	return ret;
}

int plfs_copy_out(struct plfs_file *f, int from, int to, uint64_t size, bool alone,
		  struct plfs_progress *watch)
{
	int saved ERRNO_KEPT = errno;
	struct copy c = { .watch = watch, .file = f, .from = from, .to = to, .shown = -1 };

	return copy_out(&c, size, alone);
}

int copy_locked(struct plfs_file *f, int from, int to, uint64_t size, struct plfs_progress *watch)
{
	struct copy c = { .watch = watch, .file = f, .from = from, .to = to, .shown = from };

	return copy_out(&c, size, true);
}
