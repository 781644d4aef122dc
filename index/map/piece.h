/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A piece of the file: the answer of a lookup in a map.
 */
#ifndef PLFS_PIECE_H
#define PLFS_PIECE_H

#include "core/base/base.h"

#define INDEX_LOG_HOLE UINT32_MAX       /* no record here: an older map has the bytes, or they are zeros */
#define INDEX_LOG_CUT (UINT32_MAX - 1)  /* cut off by a truncation: zeros, also where older maps have bytes */
#define INDEX_LOG_BAD (UINT32_MAX - 2)  /* the image is damaged: no log can have bytes there */

/* [logical_off, logical_off + len) lies at log_off of log log_no, in one piece. */
struct index_piece {
	uint64_t logical_off;
	uint64_t len;      /* never 0 */
	uint64_t log_off;  /* unless log_no is INDEX_LOG_HOLE or INDEX_LOG_CUT */
	uint32_t log_no;   /* as given to index_merge_add() */
};

#endif
