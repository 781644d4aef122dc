/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ends of logs that were closed. One is taken out to be gone on with, so no two writers ever have it; the
 * children of a fork have none of their parent's.
 */
#include "resume.h"

#include "append.h"
#include "crc32c.h"
#include "critical.h"
#include "sys.h"

#include <stdio.h>

#define NR_ENDS 8

struct log_end {
	pid_t pid; /* 0: none */
	uint8_t id[STUB_ID_LEN];
	char log_name[INDEX_LOG_NAME_LEN];
	struct stage_start start;
};

/* Never waited for: then a fork beside a thread that holds it costs the child nothing but this. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct log_end ends[NR_ENDS];
static unsigned next_end;

/* The chunk under way was cut off in the last table. In the next one it is whole, and so has the piece in it. */
static void sum_up_piece(struct stage_start *start, uint32_t crc, const struct trailer_piece *piece)
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

void resume_remember(const struct writer *w, const struct trailer_piece *piece)
{
	struct log_end end = { .pid = sys.getpid() };

	/* A live file by the same name must not be taken for the one that is gone. */
	if ((w->c->store->remote && !w->c->store->coherent) || piece->len > INDEX_CHUNK_LEN)
		return;
	memcpy(end.id, w->c->id, STUB_ID_LEN);
	memcpy(end.log_name, w->log_name, sizeof(end.log_name));
	sum_up_piece(&end.start, w->summed.crc, piece);
	end.start.flushed_len = piece->at + piece->len;
	end.start.last_trailer = w->last_trailer;
	end.start.last_table = w->last_table;
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

/* With the node index locked nobody collects the log (collect_void()), and afterwards there is its live file. */
static int open_locked(struct writer *w, const struct log_end *end)
{
	struct store *s = w->c->store;
	char path[CONTAINER_PATH_LEN];
	struct stat st;
	int ret;

	container_path(w->c, w->log_path, path);
	w->log = store_open(s, path, O_RDWR, 0);
	if (w->log < 0)
		return w->log;
	ret = s->ops->fstat(s, w->log, &st);
	if (!ret && ((uint64_t)st.st_size != DROPPING_DATA_OFF + end->start.flushed_len || !store_may_write(&st)))
		ret = -ENOENT; /* somebody has damaged it: let him who reads it say so */
	if (!ret)
		ret = stage_create(&w->stage, w->c, w->log_name, &end->start);
	if (ret)
		store_close(s, &w->log);
	return ret;
}

int resume_open(struct writer *w)
{
	struct log_end end;
	int h, ret;

	if (!take(w->c, &end))
		return -ENOENT;
	h = dropping_lock_index(w->c);
	if (h < 0)
		return -ENOENT;
	memcpy(w->log_name, end.log_name, sizeof(w->log_name));
	snprintf(w->log_path, sizeof(w->log_path), "hostdir.%u/%s", dropping_hostdir(w->c), w->log_name);
	ret = open_locked(w, &end);
	dropping_unlock_index(w->c, h);
	if (ret)
		return -ENOENT;
	w->summed.crc = end.start.chunk_crc;
	w->last_trailer = end.start.last_trailer;
	w->last_table = end.start.last_table;
	return 0;
}
