/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The first steps of reclaim.h for a sweep: what was hidden before the newest logs were begun, and the little
 * that keeps it from going.
 */
#include "core/file/reclaim_hidden.h"

#include "core/backend/container_dirs.h"
#include "core/backend/stub_hosts.h"
#include "core/backend/stub_use.h"
#include "core/base/vec.h"
#include "core/file/acquire.h"
#include "core/file/logged.h"
#include "core/file/reclaim.h"
#include "core/gather/gather.h"
#include "core/read/logset.h"

#define COPY_LEN ((size_t)256 << 10)

/* A copy is worth it that gives back so many times what it takes, and is such a part of the file at most. */
#define PAYS_TIMES 4
#define COPY_PART 8

struct reclaim_past {
	struct gathered g; /* of records up to rc->stamp_ns */
	struct reclaim_pieces pieces;
};

/*
 * Up to which stamp all that this host has ever written has a live file by now, or is closed: later stamps
 * are behind the floor. Of hosts that cannot be seen, nobody writes.
 */
static int take_past(struct reclaim *rc)
{
	uint64_t now_ns, floor_ns;
	int ret = reclaim_take_f(rc, &now_ns, &floor_ns);

	if (!ret)
		ret = reclaim_check_clock(rc, now_ns);
	if (ret)
		return ret;
	if (!rc->alone && floor_ns < now_ns)
		return reclaim_lacks_floor(rc);
	rc->stamp_ns = rc->alone ? now_ns - RECLAIM_CLOCKS_NS : now_ns;
	return 0;
}

static int check_hosts(struct reclaim *rc)
{
	struct stub_hosts hosts;
	struct stub now;
	int ret = stub_hosts_read(rc->fd, &now, &hosts);

	if (!ret)
		ret = stub_hosts_saw_all(&hosts, &rc->ino->c);
	return ret ? ret : stub_hosts_missing(&hosts) ? -EIO : 0;
}

/* ---- the file as it was ---- */

static int by_end(struct reclaim_log *a, struct reclaim_log *b)
{
	return a->max_ns < b->max_ns ? -1 : a->max_ns > b->max_ns;
}

static int by_begin(struct reclaim_log *a, struct reclaim_log *b)
{
	return a->min_ns < b->min_ns ? -1 : a->min_ns > b->min_ns;
}

/* The logs in an order, mem_alloc()ed. */
static struct reclaim_log **in_order(struct reclaim *rc,
				     int (*compare)(struct reclaim_log *, struct reclaim_log *))
{
	struct reclaim_log **logs = mem_alloc((HASH_COUNT(rc->logs) + (size_t)1) * sizeof(*logs));
	size_t nr = 0;

	HASH_SORT(rc->logs, compare);
	for (struct reclaim_log *log = rc->logs; log && logs; log = log->hh.next)
		logs[nr++] = log;
	return logs;
}

/* Go back to before the newest logs, which together have most of the bytes that the file has. */
static void go_back(struct reclaim *rc, struct reclaim_log *const *by_end, uint64_t size)
{
	uint64_t written = 0;

	for (size_t i = HASH_COUNT(rc->logs); i-- > 0 && written < size / 4 * 3;) {
		if (by_end[i]->min_ns <= rc->stamp_ns)
			rc->stamp_ns = by_end[i]->min_ns - 1;
		written += by_end[i]->written;
	}
}

static int add_pieces(struct reclaim *rc)
{
	const struct gather_span span = { rc->ino->v.stub.generation_ns, rc->stamp_ns };
	struct reclaim_past *past = mem_zalloc(sizeof(*past));
	int ret = past ? gather_until(&past->g, &rc->ino->c, &span) : -ENOMEM;

	if (ret) {
		mem_free(past);
		return ret;
	}
	rc->past = past; /* reclaim_end_hidden() */
	ret = reclaim_begin_pieces(&past->pieces, rc, past->g.nr_logs);
	if (ret)
		return ret;
	for (uint32_t i = 0; i < past->g.nr_logs; i++)
		past->pieces.logs[i] = reclaim_log_of(rc, past->g.logs[i]);
	return index_map_each(&past->g.map, reclaim_add_piece, &past->pieces);
}

void reclaim_end_hidden(struct reclaim *rc)
{
	if (rc->past) {
		gather_drop(&rc->past->g, &rc->ino->c);
		mem_free(rc->past->pieces.logs);
		mem_free(rc->past);
	}
	rc->past = NULL;
	reclaim_end(rc);
}

/* ---- what goes ---- */

/* What voiding all up to a stamp takes away, and what has to be copied before. */
struct bargain {
	uint64_t nr, bytes, copied;
};

static bool pays(const struct bargain *b, uint64_t size)
{
	return b->bytes && b->copied <= b->bytes / PAYS_TIMES && b->copied <= size / COPY_PART;
}

static bool pays_little(const struct bargain *b)
{
	return b->nr > 1 && b->copied <= b->nr * RECLAIM_LITTLE;
}

/*
 * Whether the log is of a killed writer and visible. It stays, for by its live file a stat knows the size. Of
 * logs of little it is copied like any other: the size has been published (publish_found()). That its process
 * does not run is certain on this host alone.
 */
static bool is_left(const struct reclaim *rc, const struct reclaim_log *log, uint64_t size)
{
	char live[CONTAINER_PATH_LEN];

	if (!log->open || !log->used)
		return false;
	name_live_of_log(log->path, live);
	return size || rc->alone || name_is_running(name_of(live));
}

/* The largest stamp up to which it pays to void all. @size: of the file; 0: logs of little. */
static uint64_t best_stamp(const struct reclaim *rc, struct reclaim_log *const *by_end,
			   struct reclaim_log *const *by_begin, uint64_t size)
{
	struct bargain b = { 0 };
	uint64_t best_ns = 0;
	size_t nr = HASH_COUNT(rc->logs), begun = 0;
	bool stays = false;

	for (size_t i = 0; i < nr && by_end[i]->max_ns < rc->stamp_ns && !stays; i++) {
		uint64_t stamp_ns = by_end[i]->max_ns;

		b.nr += by_end[i]->listed;
		b.bytes += by_end[i]->len;
		for (; begun < nr && by_begin[begun]->min_ns <= stamp_ns; begun++) {
			b.copied += by_begin[begun]->used;
			stays |= is_left(rc, by_begin[begun], size);
		}
		if (!stays && (size ? pays(&b, size) : pays_little(&b)))
			best_ns = stamp_ns;
	}
	return best_ns;
}

static void choose(struct reclaim *rc, uint64_t best_ns)
{
	uint64_t oldest = rc->stamp_ns;

	for (struct reclaim_log *log = rc->logs; log; log = log->hh.next) {
		log->goes = log->max_ns <= best_ns && (log->indexed || log->open);
		log->moves = log->used && log->min_ns <= best_ns;
		rc->nr_goes += log->goes && log->listed;
		rc->moves |= log->moves;
		if (log->moves)
			log->used = 0;
		else if (log->used)
			oldest = min_u64(oldest, log->min_ns);
	}
	rc->void_ns = max_u64(best_ns, rc->ino->v.stub.generation_ns);
	rc->next_ns = max_u64(oldest - 1, rc->void_ns);
}

static int look_back(struct reclaim *rc, uint64_t size)
{
	struct reclaim_log **by_ends = in_order(rc, by_end), **by_begins = NULL;
	int ret = by_ends ? 0 : -ENOMEM;

	if (!ret && size)
		go_back(rc, by_ends, size);
	if (!ret && rc->stamp_ns <= rc->ino->v.stub.generation_ns)
		ret = 1;
	if (!ret)
		ret = add_pieces(rc);
	if (!ret)
		by_begins = in_order(rc, by_begin);
	if (!ret)
		ret = by_begins ? 0 : -ENOMEM;
	if (!ret)
		choose(rc, best_stamp(rc, by_ends, by_begins, size));
	mem_free(by_ends);
	mem_free(by_begins);
	return ret;
}

/* If a killed writer has left a log: what it wrote last is in the stub's length before its live file goes. */
static int publish_found(struct reclaim *rc)
{
	struct inode *ino = rc->ino;
	bool left = false;
	int ret;

	for (struct reclaim_log *log = rc->logs; log; log = log->hh.next)
		left |= log->open;
	if (!left)
		return 0;
	ret = inode_still_logged(ino, acquire_load(ino));
	if (ret)
		return ret;
	logged_publish_found(ino, rc->fd);
	return view_known_size(&ino->v) > ino->v.told_len ?
		       reclaim_refuse(rc, -EBUSY, "the size that a killed process gave it cannot be published") :
		       inode_still_logged(ino, 0);
}

static int begin(struct reclaim *rc, uint64_t size)
{
	int ret = reclaim_check_file(rc);

	if (!ret)
		ret = take_past(rc);
	if (!ret)
		ret = reclaim_check_writers(rc);
	if (!ret)
		ret = check_hosts(rc);
	if (!ret)
		ret = container_list(&rc->ino->c, reclaim_add_dropping, rc);
	if (!ret && !size)
		ret = publish_found(rc);
	if (!ret)
		ret = look_back(rc, size);
	if (!ret)
		ret = rc->nr_goes ? reclaim_check_logs(rc) : 1;
	return ret == -EREMCHG ? 1 : ret;
}

int reclaim_begin_hidden(struct reclaim *rc, uint64_t size) { return size ? begin(rc, size) : 1; }
int reclaim_begin_little(struct reclaim *rc) { return begin(rc, 0); }

/* ---- the copy ---- */

struct copy {
	struct reclaim *rc;
	struct logset logs;
	struct index_record *records;
	size_t nr, cap;
	char *buf;
	uint64_t shown_ns;
};

static int copy_part(struct copy *k, uint32_t no, uint64_t logical_off, uint64_t from, size_t len)
{
	struct inode *ino = k->rc->ino;
	struct index_record *records = vec_room(k->records, &k->cap, k->nr + 1, sizeof(*records));
	uint64_t log_off;
	ssize_t n;
	int ret;

	if (!records)
		return -ENOMEM;
	k->records = records;
	if (k->rc->alone)
		stub_show_work(k->rc->marked, &k->shown_ns);
	ret = logset_read(&k->logs, no, k->buf, len, from);
	if (ret)
		return ret;
	n = writer_put(&ino->w, k->buf, len, &log_off);
	if (n != (ssize_t)len || live_is_broken(&ino->w.tail.live))
		return n < 0 ? (int)n : -ENOSPC;
	records[k->nr++] = (struct index_record){ .type = INDEX_WRITE, .logical_off = logical_off,
						  .length = len, .count = 1, .log_off = log_off };
	return 0;
}

static int copy_piece(void *arg, const struct index_piece *piece)
{
	struct copy *k = arg;
	const struct reclaim_pieces *p = &k->rc->past->pieces;
	int ret = 0;

	if (piece->log_no >= p->nr || !p->logs[piece->log_no]->moves)
		return 0;
	for (uint64_t done = 0, len; done < piece->len && !ret; done += len) {
		len = min_u64(piece->len - done, COPY_LEN);
		ret = copy_part(k, piece->log_no, piece->logical_off + done, piece->log_off + done,
				(size_t)len);
	}
	return ret;
}

static int copy_pieces(struct copy *k)
{
	struct gathered *g = &k->rc->past->g;
	const struct reclaim_pieces *pieces = &k->rc->past->pieces;
	int ret = 0;

	logset_init(&k->logs, &k->rc->ino->c);
	logset_set_verify(&k->logs, SUMS_ALWAYS);
	for (uint32_t i = 0; i < g->nr_logs && ret >= 0; i++) {
		char *path = mem_strdup(g->logs[i]);

		ret = path ? logset_add(&k->logs, path) : -ENOMEM;
		if (ret >= 0)
			k->logs.logs[i].growing = pieces->logs[i] && pieces->logs[i]->open;
	}
	if (ret >= 0)
		ret = index_map_each(&g->map, copy_piece, k);
	logset_release(&k->logs);
	return ret;
}

int reclaim_copy_hidden(struct reclaim *rc)
{
	struct copy k = { .rc = rc, .buf = mem_alloc(COPY_LEN) };
	int ret = k.buf ? reclaim_begin_copy(rc) : -ENOMEM;

	if (!ret) {
		ret = copy_pieces(&k); /* makes the records */
		ret = reclaim_end_copy(rc, k.records, k.nr, ret);
	}
	mem_free(k.records);
	mem_free(k.buf);
	return ret;
}
