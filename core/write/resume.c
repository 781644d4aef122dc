/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ends of closed logs. A writer that continues a log takes its end out, so no two writers have it. The
 * child of a fork uses none of its parent's.
 */
#include "core/write/resume.h"

#include "core/dropping/datalog.h"
#include "core/dropping/node_index.h"
#include "core/backend/names.h"
#include "core/write/tail.h"
#include "core/base/crc32c.h"
#include "core/base/critical.h"
#include "core/base/sys.h"

#include <stdio.h>

#define NR_ENDS 8

/* A log has got much of its bytes the last time if that was more than this, and no less than a fourth. */
#define MUCH_LEN 65536
#define MUCH_PART 4

struct log_end {
	pid_t pid; /* 0: none */
	uint8_t id[STUB_ID_LEN];
	char log_name[INDEX_LOG_NAME_LEN];
	struct live_start start;
	bool much; /* of it was written the last time */
	bool again; /* that was not the first time */
};

/* Only tried, never waited for: a thread may hold it during a fork, and the child goes without ends then. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct log_end ends[NR_ENDS];
static unsigned next_end;

/*
 * The last table has a checksum of the part of a chunk. The next table has the whole chunk, with the piece in
 * it.
 */
static void sum_up_piece(struct live_start *start, uint32_t crc, const struct trailer_piece *piece)
{
	size_t done = 0;

	start->first_chunk = piece->at / INDEX_CHUNK_LEN;
	while (done < piece->len) {
		uint64_t at = piece->at + done;
		size_t part = min_size(piece->len - done, INDEX_CHUNK_LEN - at % INDEX_CHUNK_LEN);

		crc = crc32c(crc, piece->buf + done, part);
		done += part;
		if ((at + part) % INDEX_CHUNK_LEN == 0) {
			start->whole[start->nr_whole++] = crc;
			crc = 0;
		}
	}
	start->chunk_crc = crc;
}

void resume_remember(const struct tail *t, const struct trailer_piece *piece, uint64_t added)
{
	struct log_end end = { .pid = sys.getpid() };

	/* Other hosts must not take a new live file for the removed one of the same name. */
	if ((t->c->store->remote && !t->c->store->coherent) || piece->len > INDEX_CHUNK_LEN)
		return;
	memcpy(end.id, t->c->id, STUB_ID_LEN);
	memcpy(end.log_name, t->log_name, sizeof(end.log_name));
	sum_up_piece(&end.start, t->summed.crc, piece);
	end.start.flushed_len = piece->at + piece->len;
	end.much = added > MUCH_LEN && added >= end.start.flushed_len / MUCH_PART;
	end.again = t->resumed;
	end.start.last_trailer = t->last_trailer;
	end.start.last_table = t->last_table;
	if (!mutex_trylock(&lock))
		return;
	ends[next_end++ % NR_ENDS] = end;
	mutex_unlock(&lock);
}

static bool take(const struct container *c, struct log_end *end)
{
	bool found = false;
	pid_t pid = 0;

	if (!mutex_trylock(&lock))
		return false;
	for (unsigned i = 0; i < NR_ENDS && !found; i++) {
		if (!ends[i].pid || memcmp(ends[i].id, c->id, STUB_ID_LEN))
			continue;
		pid = pid ? pid : sys.getpid();
		found = ends[i].pid == pid;
		*end = ends[i];
		ends[i].pid = 0;
	}
	mutex_unlock(&lock);
	return found;
}

/* Whether there is an end of @c; @again: of a log that was gone on with. @unknown: it cannot be told. */
static bool has_end(const struct container *c, bool again, bool unknown)
{
	bool has = false;

	if (!mutex_trylock(&lock))
		return unknown;
	for (unsigned i = 0; i < NR_ENDS; i++)
		has |= ends[i].pid && (!again || ends[i].again) && !memcmp(ends[i].id, c->id, STUB_ID_LEN);
	mutex_unlock(&lock);
	return has;
}

bool resume_may(const struct container *c) { return has_end(c, false, true); }

bool resume_again(const struct container *c) { return has_end(c, true, false); }

void resume_overwrite(const struct container *c, uint64_t most)
{
	if (!mutex_trylock(&lock))
		return;
	for (unsigned i = 0; i < NR_ENDS; i++)
		if (ends[i].pid && (ends[i].much || ends[i].start.flushed_len > most) &&
		    !memcmp(ends[i].id, c->id, STUB_ID_LEN))
			ends[i].pid = 0;
	mutex_unlock(&lock);
}

void resume_forget(const struct container *c)
{
	struct log_end end;

	while (take(c, &end))
		;
}

/*
 * The lock on the node index keeps other processes from collecting the log (collect_void()); later its live
 * file does.
 */
static int open_locked(struct tail *t, const struct log_end *end)
{
	struct store *s = t->c->store;
	struct stat st;
	int ret;

	t->log = datalog_open_to_write(t->c, t->log_path, 0, &st);
	if (t->log < 0)
		return t->log;
	store_keep(s, &t->log);
	/* Else it is damaged: a reader will report it. */
	ret = datalog_len(&st) == end->start.flushed_len ? 0 : -ENOENT;
	if (!ret)
		ret = tail_continue(t, &end->start);
	if (ret)
		store_close(s, &t->log);
	return ret;
}

int resume_open(struct tail *t, const struct container *c)
{
	struct log_end end;
	int h, ret;

	if (!take(c, &end))
		return -ENOENT;
	h = node_index_lock(c);
	if (h < 0)
		return -ENOENT;
	t->c = c;
	memcpy(t->log_name, end.log_name, sizeof(t->log_name));
	name_here(c, t->log_name, t->log_path);
	ret = open_locked(t, &end);
	node_index_unlock(c, h);
	if (ret)
		return -ENOENT;
	t->summed.crc = end.start.chunk_crc;
	t->last_trailer = end.start.last_trailer;
	t->last_table = end.start.last_table;
	t->resumed = true;
	return 0;
}
