/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Following writers: records that live files of this host have and a reader's maps lack are added from the
 * watched mappings. Mostly that is a run that has grown, or a few records at the end of one.
 *
 * The maps must give the same bytes as a merge of everything. So a record is put on top only if it is later
 * than all records in them, or lies in holes. All other cases are left to a merge.
 */
#include "core/read/reader.h"

#include "core/base/alloc.h"
#include "core/dropping/live.h"
#include "core/base/stamp.h"

#define NEWS_MAX 16       /* records of one live file at a time */
#define FOLLOWED_MAX 4096 /* records since the base was made */
#define ELEMENTS_MAX 4096 /* elements of one record that are looked up */

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
	       (rec->stamp_ns > r->max_stamp_ns || fills_holes(r, rec));
}

/*
 * Copy the records of the live file at @map that are not in @seen to @own (NEWS_MAX + 1), and update @seen.
 * Returns the number of records; -1: the case is not simple.
 */
static int read_news(const uint8_t *map, struct live_seen *seen, struct reader_own *own)
{
	struct index_record records[NEWS_MAX], more;
	uint64_t first = seen->nr_records ? seen->nr_records - 1 : 0;
	int nr = live_mapped_records(map, first, records, NEWS_MAX), i = 0, nr_own = 0;

	if (nr < 0 || seen->log_no == UINT32_MAX || (seen->nr_records && !nr))
		return -1;
	/*
	 * Without a last record to compare, only seq shows that records have come and gone to the node index
	 * since.
	 */
	if (!seen->nr_records && live_mapped_seq(map) != seen->seq)
		return -1;
	if (seen->nr_records) {
		int grown = growth(&seen->last, &records[i++], &more);

		if (grown < 0)
			return -1;
		if (grown)
			own[nr_own++] = (struct reader_own){ .rec = more, .log_no = seen->log_no };
	}
	for (; i < nr; i++)
		own[nr_own++] = (struct reader_own){ .rec = records[i], .log_no = seen->log_no };
	if (nr)
		seen->last = records[nr - 1];
	seen->nr_records = first + (uint64_t)nr;
	return nr_own;
}

/* The digests are taken before the records are read: later records are found the next time. */
static bool follow_one(struct reader *r, uint32_t no, uint64_t digest)
{
	struct reader_own own[NEWS_MAX + 1];
	const uint8_t *map = r->watch.lives[no].map;
	struct live_seen seen = r->seen[no];
	uint64_t file_digest = live_mapped_file_digest(map);
	int nr = read_news(map, &seen, own);

	if (nr < 0)
		return false;
	for (int i = 0; i < nr; i++)
		if (!may_be_on_top(r, &own[i].rec))
			return false;
	if (nr && reader_put(r, own, (size_t)nr))
		return false;
	stamp_seen(r->max_stamp_ns);
	r->seen[no] = seen;
	r->watch.lives[no].digest = digest;
	r->inputs.digests[no] = file_digest;
	return true;
}

/* The watched files are those of the inputs, in the same order, if there are as many. */
static bool all_are_watched(const struct reader *r)
{
	return r->loaded && r->seen && r->watch.word && !watch_is_revoked(&r->watch) &&
	       r->watch.nr_lives == r->inputs.nr_lives &&
	       __atomic_load_n(r->watch.word, __ATOMIC_ACQUIRE) == r->watch.seen;
}

bool reader_follow(struct reader *r)
{
	if (!all_are_watched(r) || r->nr_own > FOLLOWED_MAX)
		return false;
	if (unlikely(guard_nr_broken)) /* rare: not worth finding out which one */
		return false;
	for (uint32_t i = 0; i < r->watch.nr_lives; i++) {
		uint64_t digest = live_mapped_digest(r->watch.lives[i].map);

		if (digest != r->watch.lives[i].digest && !follow_one(r, i, digest))
			return false;
	}
	return true;
}
