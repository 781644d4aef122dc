/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The knowledge of one scan: adding to it, and releasing it.
 */
#include "core/admin/scan/scan.h"

#include "core/backend/stub.h"
#include "core/base/vec.h"
#include "core/dropping/datalog.h"

bool scan_room(void **array, uint32_t nr, size_t *cap, size_t size)
{
	void *p = vec_room(*array, cap, (size_t)nr + 1, size);

	if (p)
		*array = p;
	return p;
}

struct scan_log *scan_log(struct scan *l, const char *path)
{
	size_t len = strlen(path);
	struct scan_log *log;

	HASH_FIND(hh, l->by_path, path, len, log);
	if (log || !SCAN_ROOM(l, logs))
		return log;
	log = mem_zalloc(sizeof(*log) + len + 1);
	if (!log)
		return NULL;
	memcpy(log->path, path, len);
	log->no = l->nr_logs;
	log->live = log->first_block = log->last_block = SCAN_NONE;
	HASH_ADD(hh, l->by_path, path, len, log);
	if (!log->hh.tbl) {
		mem_free(log);
		return NULL;
	}
	l->logs[l->nr_logs++] = log;
	return log;
}

void scan_take_record(struct scan *l, struct scan_log *log, const struct index_record *rec)
{
	if (rec->stamp_ns > l->stub.generation_ns && rec->type == INDEX_TRUNCATE)
		l->cut_ns = max_u64(l->cut_ns, rec->stamp_ns);
	if (rec->stamp_ns <= l->stub.generation_ns || rec->type != INDEX_WRITE)
		return;
	log->needed = true;
	log->records_end = max_u64(log->records_end, index_record_log_end(rec));
	l->write_end = max_u64(l->write_end, index_record_end(rec));
}

int scan_add_block(struct scan *l, uint32_t index, struct scan_log *log, const uint8_t *p, size_t len,
		   const struct index_block *block)
{
	struct index_cursor cur = { 0 };
	struct index_record rec;

	if (!SCAN_ROOM(l, blocks))
		return -ENOMEM;
	if (log->nr_blocks)
		l->blocks[log->last_block].next = l->nr_blocks;
	else
		log->first_block = l->nr_blocks;
	log->last_block = l->nr_blocks;
	log->nr_blocks++;
	log->indexed |= index != SCAN_NONE;
	log->indexed_len = max_u64(log->indexed_len, block->log_len);
	l->blocks[l->nr_blocks++] = (struct scan_block){ index, log->no, SCAN_NONE, p, len, *block, false };
	while (index_block_record(block, &cur, &rec) > 0)
		scan_take_record(l, log, &rec);
	return 0;
}

int scan_add_bad(struct scan *l, const struct scan_log *log, uint64_t log_off, uint64_t len,
		 const struct finding *finding)
{
	if (!finding || !SCAN_ROOM(l, bad))
		return -ENOMEM;
	l->bad[l->nr_bad++] = (struct scan_bad){ log->no, log_off, len, finding };
	return 0;
}

int scan_add_mend(struct scan *l, const char *path, uint64_t off, uint8_t is, uint8_t was)
{
	if (!SCAN_ROOM(l, mends))
		return -ENOMEM;
	l->mends[l->nr_mends] = (struct scan_mend){ mem_strdup(path), off, is, was,
		strstr(path, "/live.") != NULL };
	return l->mends[l->nr_mends++].path ? 0 : -ENOMEM;
}

int scan_add_log_mend(struct scan *l, const char *path, uint64_t log_off, uint8_t is, uint8_t was)
{
	uint64_t off;

	return datalog_fd_off(log_off, &off) ? 0 : scan_add_mend(l, path, off, is, was);
}

int scan_keep(struct scan *l, void *buf)
{
	if (!SCAN_ROOM(l, bufs)) {
		mem_free(buf);
		return -ENOMEM;
	}
	l->bufs[l->nr_bufs++] = buf;
	return 0;
}

void scan_release(struct scan *l)
{
	struct scan_log *log, *next;

	HASH_ITER(hh, l->by_path, log, next)
		HASH_DEL(l->by_path, log);
	for (uint32_t i = 0; i < l->nr_logs; i++)
		mem_free(l->logs[i]);
	for (uint32_t i = 0; i < l->nr_indexes; i++) {
		mem_free(l->indexes[i].path);
		mem_free(l->indexes[i].buf);
	}
	for (uint32_t i = 0; i < l->nr_lives; i++) {
		mem_free(l->lives[i].path);
		mem_free(l->lives[i].records);
	}
	for (uint32_t i = 0; i < l->nr_leftovers; i++)
		mem_free(l->leftovers[i].path);
	for (uint32_t i = 0; i < l->nr_bufs; i++)
		mem_free(l->bufs[i]);
	for (uint32_t i = 0; i < l->nr_mends; i++)
		mem_free(l->mends[i].path);
	mem_free(l->mends);
	mem_free(l->logs);
	mem_free(l->indexes);
	mem_free(l->blocks);
	mem_free(l->lives);
	mem_free(l->bad);
	mem_free(l->extras);
	mem_free(l->leftovers);
	mem_free(l->bufs);
	memset(l, 0, sizeof(*l));
}
