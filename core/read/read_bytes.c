/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From a reader's maps to bytes: some are read under the lock, the rest without it.
 */
#include "core/read/reader.h"

#include "core/base/alloc.h"
#include "core/dropping/datalog.h"
#include "core/base/msg.h"
#include "core/base/io.h"
#include "core/base/usermem.h"

/* Pieces that are shorter are not gathered; see logset.c. */
#define SMALL_PIECE 1024

/* The program's memory is probed this much at a time. */
#define TOUCH_LEN 16384

/* More than this is compared with PLFS_VERIFY=always alone: a map of it would be read for it at once. */
#define EXTENT_COMPARED_MAX ((uint64_t)1 << 30)

ssize_t reader_extent(struct reader *r, uint64_t logical_off, uint64_t len, int *fd, uint64_t *fd_off)
{
	struct index_piece piece;
	struct stat st;
	int h, ret;

	*fd = -1;
	reader_lookup(r, logical_off, len, &piece);
	if (piece.log_no >= r->logs.nr)
		return (ssize_t)piece.len;
	h = logset_open(&r->logs, piece.log_no);
	if (h == -ENOENT) /* removed since the map was made, perhaps: a read makes another */
		return (ssize_t)piece.len;
	ret = h < 0 ? h : r->c->store->ops->fstat(r->c->store, h, &st);
	if (ret)
		return ret;
	if (datalog_fd_off(piece.log_off, fd_off)) /* no range of the file has these bytes */
		return (ssize_t)piece.len;
	if (piece.log_off + piece.len > datalog_len(&st)) /* its end is in a stage */
		return (ssize_t)piece.len;
	/* the caller reads past the checksums */
	if (r->logs.compared.how == SUMS_ALWAYS || (r->logs.compared.how && len <= EXTENT_COMPARED_MAX))
		ret = logset_verify(&r->logs, piece.log_no, piece.log_off, piece.len);
	if (!ret) /* it may have turned to a copy */
		ret = h = logset_open(&r->logs, piece.log_no);
	if (ret < 0)
		return ret;
	*fd = h;
	return (ssize_t)piece.len;
}

void reader_log_missing(const struct reader *r)
{
	msg_error("%s/%s: the data log is missing", r->c->dir,
		  r->logs.missing < r->logs.nr ? r->logs.logs[r->logs.missing].path : "");
}

bool reader_body_is_doubtful(const struct reader *r)
{
	const struct watch *w = &r->watch;

	return (w->word && __atomic_load_n(w->word, __ATOMIC_ACQUIRE) != w->seen) || watch_is_revoked(w);
}

static int read_body(struct reader *r, int stub_fd, void *buf, size_t len, uint64_t logical_off)
{
	uint64_t end = reader_body_end(r);
	ssize_t n = 0;

	if (unlikely(r->lacks_hosts))
		return -EIO;
	if (logical_off < end)
		n = io_pread_all(stub_fd, buf, (size_t)min_u64(len, end - logical_off),
				 PLFS_BODY_OFF + logical_off);
	if (n < 0)
		return (int)n;
	r->took_body = true;
	memset((char *)buf + n, 0, len - (size_t)n);
	return 0;
}

/* How many of the @len bytes at @log_off are in the log. The rest of this process's own log is staged. */
static size_t len_in_log(const struct reader *r, const struct writer *w, uint32_t log_no, uint64_t log_off,
			 size_t len)
{
	uint64_t flushed;

	if (!w || log_no != r->own_log)
		return len;
	flushed = w->tail.live.flushed_len;
	return flushed <= log_off ? 0 : (size_t)min_u64(len, flushed - log_off);
}

int reader_read(struct reader *r, const struct writer *w, int stub_fd, void *buf, size_t len,
		uint64_t logical_off)
{
	uint8_t *p = buf;

	while (len) {
		struct index_piece piece;
		int ret = 0;

		reader_lookup(r, logical_off, len, &piece);
		if (piece.log_no == INDEX_LOG_HOLE || piece.log_no == INDEX_LOG_CUT) {
			ret = read_body(r, stub_fd, p, piece.len, logical_off);
		} else if (piece.log_no >= r->logs.nr) {
			msg_error(
				"%s: byte %llu is in a log that does not exist: index.global is damaged, remove it",
				r->c->dir, (unsigned long long)logical_off);
			ret = -EIO;
		} else {
			size_t in_log = len_in_log(r, w, piece.log_no, piece.log_off, piece.len);

			if (in_log)
				ret = logset_read(&r->logs, piece.log_no, p, in_log, piece.log_off);
			if (!ret && in_log < piece.len)
				ret = tail_read_staged(&w->tail, p + in_log, piece.len - in_log,
						       piece.log_off + in_log);
		}
		if (ret)
			return ret;
		p += piece.len;
		logical_off += piece.len;
		len -= piece.len;
	}
	return 0;
}

/* ---- with a rest for which the lock is not needed ---- */

/* The whole request is one piece of one log. */
static ssize_t begin_one(struct reader *r, void *buf, const struct index_piece *piece, struct read_rest *rd)
{
	int ret = logset_take(&r->logs, piece->log_no, piece->log_off, piece->len, 1, &rd->handle);

	rd->buf = buf;
	rd->len = piece->len;
	rd->log_off = piece->log_off;
	rd->log_no = piece->log_no;
	if (ret > 0) {
		ret = logset_sums(&r->logs, piece->log_no, piece->log_off, piece->len, &rd->sums);
		ret = ret ? ret : 1;
		rd->compares = rd->sums;
	}
	if (!ret) {
		ret = user_writable(buf, piece->len) < piece->len ? -EFAULT : 0;
		ret = ret ? ret : logset_read(&r->logs, piece->log_no, buf, piece->len, piece->log_off);
	}
	return ret < 0 ? ret : (ssize_t)piece->len;
}

/* How far the memory at @buf has been found to be writable. */
struct writable {
	uint8_t *buf;
	size_t len;
};

static int check_writable(struct writable *m, size_t len)
{
	if (len > m->len)
		m->len += user_writable(m->buf + m->len, len - m->len);
	return len > m->len ? -EFAULT : 0;
}

/* Groups that are too small for a call of their own come from windows. */
static int read_small_groups(struct reader *r, struct scatter *s, struct writable *m, size_t len,
			     struct read_rest *rd)
{
	for (unsigned i = 0; i < s->nr_groups; i++) {
		struct scatter_group *g = &s->groups[i];
		uint64_t log_off = g->log_off;
		int ret = logset_take(&r->logs, g->log_no, log_off, g->len, g->nr_pieces, &g->handle);

		if (ret > 0) {
			ret = logset_sums(&r->logs, g->log_no, log_off, g->len, &g->sums);
			rd->compares |= g->sums != NULL;
			if (!ret)
				continue;
		}
		if (!ret)
			ret = check_writable(m, len);
		for (unsigned k = 0, at = g->first; !ret && k < g->nr_pieces; k++, at = s->pieces[at].next) {
			ret = logset_read(&r->logs, g->log_no, s->pieces[at].buf, s->pieces[at].len, log_off);
			log_off += s->pieces[at].len;
		}
		if (ret)
			return ret;
	}
	return 0;
}

static ssize_t begin_many(struct reader *r, const struct writer *w, int stub_fd, void *buf, size_t len,
			  uint64_t logical_off, struct read_rest *rd)
{
	struct scatter *s = rd->scatter;
	struct writable m = { .buf = buf };
	struct index_piece piece;
	unsigned nr_small = 0;
	size_t done = 0;
	int ret = 0;

	for (; done < len && !ret; done += ret ? 0 : piece.len) {
		uint8_t *p = m.buf + done;
		size_t in_log = 0;

		reader_lookup(r, logical_off + done, len - done, &piece);
		nr_small = piece.len < SMALL_PIECE ? nr_small + 1 : 0;
		if (piece.log_no < r->logs.nr) {
			in_log = len_in_log(r, w, piece.log_no, piece.log_off, piece.len);
			if (in_log && nr_small <= 2 &&
			    !scatter_add(s, piece.log_no, piece.log_off, p, in_log))
				break;
			if (in_log == piece.len && nr_small <= 2)
				continue;
		}
		ret = check_writable(&m, min_size(len, round_up_u64(done + piece.len, TOUCH_LEN)));
		if (!ret && in_log && nr_small > 2) /* one of many: in the order of memory, which is faster */
			ret = logset_read(&r->logs, piece.log_no, p, in_log, piece.log_off);
		if (ret)
			break;
		if (in_log == piece.len)
			continue;
		if (piece.log_no < r->logs.nr)
			ret = tail_read_staged(&w->tail, p + in_log, piece.len - in_log,
					       piece.log_off + in_log);
		else if (piece.log_no == INDEX_LOG_HOLE || piece.log_no == INDEX_LOG_CUT)
			ret = read_body(r, stub_fd, p, piece.len, logical_off + done);
		else
			ret = -EIO;
	}
	if (!ret)
		ret = read_small_groups(r, s, &m, done, rd);
	return ret ? ret : (ssize_t)done;
}

ssize_t reader_begin(struct reader *r, const struct writer *w, int stub_fd, void *buf, size_t len,
		     uint64_t logical_off, struct read_rest *rd)
{
	size_t part = min_size(len, READ_REST_MAX);
	uint32_t at_once = logset_at_once(&r->logs);
	struct index_piece piece;
	ssize_t n;

	*rd = (struct read_rest){ .logs_age = r->logs.age };
	if (unlikely(!at_once))
		return -EAGAIN;
	if (r->logs.crowded)
		r->logs.crowded--;
	reader_lookup(r, logical_off, part, &piece);
	if (piece.len == part && piece.log_no < r->logs.nr &&
	    len_in_log(r, w, piece.log_no, piece.log_off, part) == part) {
		n = begin_one(r, buf, &piece, rd);
	} else {
		rd->scatter = __atomic_exchange_n(&r->spare, NULL, __ATOMIC_ACQUIRE);
		if (!rd->scatter)
			rd->scatter = mem_alloc(sizeof(*rd->scatter));
		if (!rd->scatter)
			return -ENOMEM;
		scatter_init(rd->scatter, at_once);
		n = begin_many(r, w, stub_fd, buf, part, logical_off, rd);
	}
	if (n < 0 && read_rest_end(r, rd))
		logset_bury(&r->logs);
	rd->more = n > 0 && (size_t)n < len;
	return n;
}

bool read_rest_run(struct read_rest *rd, struct store *store)
{
	struct iovec iov = { .iov_base = rd->buf, .iov_len = rd->len }, part[3];

	if (rd->sums)
		return sums_read(store, rd->handle->h, &iov, 1, part, rd->log_off, rd->sums);
	if (rd->handle)
		return datalog_pread(store, rd->handle->h, rd->buf, rd->len, rd->log_off) ==
		       (ssize_t)rd->len;
	return !rd->scatter || scatter_run(rd->scatter, store);
}

void reader_compared(struct reader *r, const struct read_rest *rd)
{
	const struct scatter *s = rd->scatter;

	if (rd->logs_age != r->logs.age)
		return;
	if (rd->sums)
		logset_compared(&r->logs, rd->log_no, rd->log_off, rd->len, rd->sums);
	for (unsigned i = 0; s && i < s->nr_groups; i++)
		if (s->groups[i].sums)
			logset_compared(&r->logs, s->groups[i].log_no, s->groups[i].log_off, s->groups[i].len,
					s->groups[i].sums);
}

bool read_rest_end(struct reader *r, struct read_rest *rd)
{
	struct scatter *s = rd->scatter;
	bool last = rd->handle && log_handle_put(rd->handle);

	for (unsigned i = 0; s && i < s->nr_groups; i++) {
		if (s->groups[i].handle && log_handle_put(s->groups[i].handle))
			last = true;
		mem_free(s->groups[i].sums);
	}
	mem_free(rd->sums);
	if (s)
		mem_free(__atomic_exchange_n(&r->spare, s, __ATOMIC_ACQ_REL));
	*rd = (struct read_rest){ 0 };
	return last;
}
