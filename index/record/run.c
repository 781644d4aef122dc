/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a record grows by one write, and takes in the record after it. The open
 * record predicts where the next element begins; nothing older is ever looked at.
 */
#include "index/record/run.h"

/* @rec becomes @grown if that is possible at all (offsets can overflow). */
static bool take(struct index_record *rec, const struct index_record *grown)
{
	if (!index_record_valid(grown))
		return false;
	*rec = *grown;
	return true;
}

bool index_run_grow(struct index_record *rec, uint64_t logical_off, uint64_t len)
{
	struct index_record grown = *rec;

	if (rec->type != INDEX_WRITE || rec->count == 0 || rec->outer_count || len == 0)
		return false;
	if (rec->count == 1 && logical_off == rec->logical_off + rec->length) {
		grown.length += len;
		return take(rec, &grown);
	}
	if (len != rec->length)
		return false;
	if (rec->count == 1) {
		if (logical_off < rec->logical_off + rec->length)
			return false;
		grown.stride = logical_off - rec->logical_off;
	} else if (logical_off != rec->logical_off + rec->count * rec->stride) {
		return false;
	}
	grown.count++;
	return take(rec, &grown);
}

/*
 * @last is a run of the same shape as those of @prev, where the next of them would be, or the second of them.
 */
static bool nest(struct index_record *prev, const struct index_record *last)
{
	struct index_record grown = *prev;

	if (last->count != prev->count || last->stride != prev->stride ||
	    last->logical_off <= prev->logical_off)
		return false;
	if (!prev->outer_count) {
		grown.outer_stride = last->logical_off - prev->logical_off;
		grown.outer_count = 2;
	} else if (last->logical_off == prev->logical_off + prev->outer_count * prev->outer_stride) {
		grown.outer_count++;
	} else {
		return false;
	}
	return take(prev, &grown);
}

bool index_run_fold(struct index_record *prev, const struct index_record *last)
{
	struct index_record grown = *prev;

	if (prev->type != INDEX_WRITE || last->type != INDEX_WRITE || prev->count == 0 || last->count == 0 ||
	    last->outer_count || last->log_off != index_record_log_end(prev))
		return false;
	if (last->count == 1)
		return index_run_grow(prev, last->logical_off, last->length);
	if (last->length != prev->length)
		return false;
	if (prev->outer_count)
		return nest(prev, last);
	if (prev->count == 1)
		grown.stride = last->stride;
	if (last->stride != grown.stride ||
	    last->logical_off != prev->logical_off + prev->count * grown.stride)
		return nest(prev, last);
	if (__builtin_add_overflow(prev->count, last->count, &grown.count))
		return false;
	return take(prev, &grown);
}

bool index_run_goes_on(const struct index_record *rec, uint64_t logical_off)
{
	return rec->count <= 1 || logical_off == rec->logical_off + rec->count * rec->stride;
}
