/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Following writers: records that live files of this host have and a reader's maps lack are added from the
 * watched mappings. Mostly that is a run that has grown, or a few records at the end of one. Where a live
 * file was full its records have moved to the node index, and the last of them are read there.
 *
 * The maps must give the same bytes as a merge of everything. So a record is put on top only if it is later
 * than all records in them, or lies in holes. All other cases are left to a merge.
 */
#include "core/read/reader.h"

#include "core/backend/names.h"
#include "core/base/alloc.h"
#include "core/dropping/live.h"
#include "core/dropping/node_index.h"
#include "core/base/stamp.h"
#include "core/base/vec.h"

#define NEWS_FEW 16       /* records of one live file at a time, mostly */
#define FOLLOWED_MAX 4096 /* records since the base was made */
#define ELEMENTS_MAX 4096 /* elements of one record that are looked up */
#define GROWN_MAX (1 << 20) /* bytes of the node index */

/*
 * @before has grown to @now. 1: *@more is the difference; 0: there is none; -1: they are not the same record.
 */
static int growth(const struct index_record *before, const struct index_record *now,
		  struct index_record *more)
{
	uint64_t have = before->count;

	if (now->type != INDEX_WRITE || before->type != INDEX_WRITE || now->stamp_ns != before->stamp_ns ||
	    now->logical_off != before->logical_off || now->log_off != before->log_off || now->count < have ||
	    now->length < before->length || (have > 1 && now->stride != before->stride))
		return -1;
	if (before->outer_count || now->outer_count)
		return now->outer_count == before->outer_count && now->count == have &&
		       now->length == before->length ? 0 : -1;
	*more = *now;
	if (now->length > before->length) {
		if (now->count > 1)
			return -1;
		more->logical_off += before->length;
		more->log_off += before->length;
		more->length -= before->length;
		return 1;
	}
	if (now->count == have)
		return 0;
	more->count -= have;
	more->logical_off += have * now->stride;
	more->log_off += have * now->length;
	if (more->count == 1)
		more->stride = 0;
	return 1;
}

/* Whether all elements of the record lie in holes of the maps. */
static bool fills_holes(struct reader *r, const struct index_record *rec)
{
	struct index_piece piece;

	if (rec->count > ELEMENTS_MAX || rec->outer_count)
		return false;
	for (uint64_t i = 0; i < rec->count; i++) {
		uint64_t at = rec->logical_off + i * rec->stride, end = at + rec->length;

		for (; at < end; at += piece.len) {
			reader_lookup(r, at, end - at, &piece);
			if (piece.log_no != INDEX_LOG_HOLE)
				return false;
		}
	}
	return true;
}

/* Whether the record may hide everything below it. */
static bool may_be_on_top(struct reader *r, const struct index_record *rec)
{
	return rec->type == INDEX_WRITE && rec->stamp_ns > r->generation_ns &&
	       (rec->stamp_ns > r->levels.max_stamp_ns || fills_holes(r, rec));
}

/* Records to be put on top. */
struct news {
	struct own_record *own; /* mem_alloc()ed */
	size_t nr, cap;
};

static bool add_news(struct news *news, const struct index_record *rec, uint32_t log_no)
{
	struct own_record *own = vec_room(news->own, &news->cap, news->nr + 1, sizeof(*own));

	if (!own)
		return false;
	news->own = own;
	own[news->nr++] = (struct own_record){ .rec = *rec, .log_no = log_no };
	return true;
}

/* @now, which was the last that was seen, may have grown. */
static bool add_growth(struct news *news, const struct live_seen *seen, const struct index_record *now)
{
	struct index_record more;
	int grown = growth(&seen->last, now, &more);

	return grown >= 0 && (!grown || add_news(news, &more, seen->log_no));
}

/* Add the @nr records at @records. The first is the last that was seen, if there was one. */
static bool add_records(struct news *news, struct live_seen *seen, const struct index_record *records, int nr)
{
	int i = seen->nr_records != 0;

	if (i && (!nr || !add_growth(news, seen, &records[0])))
		return false;
	for (; i < nr; i++)
		if (!add_news(news, &records[i], seen->log_no))
			return false;
	if (nr)
		seen->last = records[nr - 1];
	seen->nr_records += (uint64_t)nr - (seen->nr_records != 0);
	return true;
}

/*
 * Add the records of the live file at @map that are not in @seen, and update @seen. False: the case is not
 * simple.
 */
static bool read_live(const uint8_t *map, struct live_seen *seen, struct news *news)
{
	struct index_record few[NEWS_FEW], *records = few;
	uint64_t first = seen->nr_records ? seen->nr_records - 1 : 0;
	int nr = live_mapped_records(map, first, few, NEWS_FEW);
	bool good;

	if (nr == -E2BIG) {
		records = mem_alloc(LIVE_RECORDS_CAP * sizeof(*records));
		nr = records ? live_mapped_records(map, first, records, LIVE_RECORDS_CAP) : -ENOMEM;
	}
	/*
	 * Without a last record to compare, only seq shows that records have come and gone to the node index
	 * since.
	 */
	good = nr >= 0 && seen->log_no != UINT32_MAX &&
	       (seen->nr_records || live_mapped_seq(map) == seen->seq) &&
	       add_records(news, seen, records, nr);
	if (records != few)
		mem_free(records);
	return good;
}

/* ---- records that have gone to the node index ---- */

/* The node index, as far as it has grown since the live file @no was loaded. 0; -errno. */
static int open_grown(const struct reader *r, uint32_t no, const char *path, struct node_index *idx,
		      uint64_t *from)
{
	struct store *s = r->c->store;
	struct stat st;
	uint32_t i = 0;
	int h, ret;

	while (i < r->inputs.nr_indexes && strcmp(r->inputs.indexes[i], path))
		i++;
	if (i == r->inputs.nr_indexes)
		return -ENOENT;
	*from = r->seen[no].index_off ? r->seen[no].index_off : r->inputs.sizes[i];
	container_path(r->c, path, idx->path);
	h = store_open(s, idx->path, O_RDONLY | STORE_BRIEFLY, 0);
	if (h < 0)
		return h;
	ret = s->ops->fstat(s, h, &st);
	if (!ret && (uint64_t)st.st_size - *from > GROWN_MAX) /* or shorter than it was */
		ret = -E2BIG;
	if (!ret)
		ret = node_index_read(idx, s, h, *from, (uint64_t)st.st_size);
	store_close(s, &h);
	return ret;
}

/* The block has all records that were in the live file. */
static bool read_block(const struct index_block *block, struct live_seen *seen, struct news *news)
{
	struct index_cursor cur = { 0 };
	struct index_record rec;
	uint64_t nr = 0;
	int ret;

	while ((ret = index_block_record(block, &cur, &rec)) > 0) {
		if (++nr == seen->nr_records && !add_growth(news, seen, &rec))
			return false;
		if (nr > seen->nr_records && !add_news(news, &rec, seen->log_no))
			return false;
		if (nr == block->nr_records)
			seen->last = rec;
	}
	return !ret && nr == block->nr_records && nr >= seen->nr_records;
}

/*
 * The same of a live file whose records have moved to the node index once since. Its owner appends them there
 * first. If there are two blocks of the log, one of them may be of a process that synced it.
 */
static bool read_moved(const struct reader *r, uint32_t no, struct live_seen *seen, struct news *news)
{
	const struct watched *live = &r->watch.lives[no];
	struct node_index idx = { .buf = NULL };
	char path[CONTAINER_PATH_LEN];
	struct index_block block;
	uint64_t seq = live_mapped_seq(live->map), from;
	uint32_t pid, nr = 0;
	bool good;

	name_index_here(r->c, path);
	if (strncmp(path, live->path, (size_t)(name_of(path) - path)))
		return false;
	name_log_numbers(name_of(live->path), &pid, &nr);
	good = seen->log_no != UINT32_MAX && !open_grown(r, no, path, &idx, &from);
	seen->index_off = 0;
	while (good && node_index_next(&idx, &block) > 0) {
		if (block.pid != pid || block.seq != nr || !block.nr_records)
			continue;
		good = !seen->index_off && read_block(&block, seen, news);
		seen->index_off = from + idx.pos;
	}
	good = good && seen->index_off && !idx.damaged;
	node_index_close(&idx);
	seen->nr_records = 0;
	seen->seq = seq;
	return good && read_live(live->map, seen, news) && live_mapped_seq(live->map) == seq;
}

/* A live file that has changed: what is remembered of it when its records are in the maps. */
struct changed {
	uint32_t no; /* among the watched ones */
	uint64_t digest, file_digest;
	struct live_seen seen;
};

/* Add the records of the live file that are not in the maps. False: the case is not simple. */
static bool take_news(const struct reader *r, struct changed *n, struct news *news)
{
	const uint8_t *map = r->watch.lives[n->no].map;
	size_t before = news->nr;

	n->file_digest = live_mapped_file_digest(map);
	n->seen = r->seen[n->no];
	if (read_live(map, &n->seen, news))
		return true;
	news->nr = before;
	n->seen = r->seen[n->no];
	return read_moved(r, n->no, &n->seen, news);
}

/*
 * Add what the @nr live files at @changed have. Their records go on top together, ordered by their stamps:
 * what one writer wrote may be later than what the next has, and both later than the maps.
 */
static bool follow_all(struct reader *r, struct changed *changed, uint32_t nr, struct news *news)
{
	for (uint32_t i = 0; i < nr; i++)
		if (!take_news(r, &changed[i], news))
			return false;
	for (size_t i = 0; i < news->nr; i++)
		if (!may_be_on_top(r, &news->own[i].rec))
			return false;
	if (news->nr && reader_put(r, news->own, news->nr))
		return false;
	stamp_seen(r->levels.max_stamp_ns);
	for (uint32_t i = 0; i < nr; i++) {
		r->seen[changed[i].no] = changed[i].seen;
		r->watch.lives[changed[i].no].digest = changed[i].digest;
		r->inputs.digests[changed[i].no] = changed[i].file_digest;
	}
	return true;
}

/* The watched files are those of the inputs, in the same order, if there are as many. */
static bool all_are_watched(const struct reader *r)
{
	return r->loaded && r->seen && r->watch.word && !watch_is_revoked(&r->watch) &&
	       r->watch.nr_lives == r->inputs.nr_lives &&
	       __atomic_load_n(r->watch.word, __ATOMIC_ACQUIRE) == r->watch.seen;
}

/*
 * @nr: so many of the watched files have changed; those that change later are left to the next look. The
 * digests are taken before the records are read: later records are found the next time.
 */
static bool follow_changed(struct reader *r, uint32_t nr)
{
	struct changed *changed = mem_alloc(nr * sizeof(*changed));
	struct news news = { .own = NULL };
	uint32_t found = 0;
	bool done;

	for (uint32_t i = 0; changed && i < r->watch.nr_lives && found < nr; i++) {
		uint64_t digest = live_mapped_digest(r->watch.lives[i].map);

		if (digest != r->watch.lives[i].digest)
			changed[found++] = (struct changed){ .no = i, .digest = digest };
	}
	done = changed && follow_all(r, changed, found, &news);
	mem_free(changed);
	mem_free(news.own);
	return done;
}

bool reader_follow(struct reader *r)
{
	uint32_t nr = 0;

	if (!all_are_watched(r) || r->levels.nr_own > FOLLOWED_MAX)
		return false;
	if (unlikely(guard_nr_broken)) /* rare: not worth finding out which one */
		return false;
	for (uint32_t i = 0; i < r->watch.nr_lives; i++)
		nr += live_mapped_digest(r->watch.lives[i].map) != r->watch.lives[i].digest;
	return !nr || follow_changed(r, nr);
}
