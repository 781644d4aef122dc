/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The state of the sweep (sweep.h): its input, and how far it is. The sweep, its zones and its grids work on
 * it.
 */
#ifndef PLFS_SWEEP_STATE_H
#define PLFS_SWEEP_STATE_H

#include "index/map/extents.h"
#include "index/map/image.h"

struct sweep {
	/* the input */
	struct extents *extents;
	struct image_layer *runs; /* count > 1, stride > length; and one for each box */
	size_t nr_runs, cap_runs;
	struct image_layer *nested;
	size_t nr_nested, cap_nested;

	/* where the sweep is */
	struct image *img;
	struct grid_box *boxes;            /* of the nested runs, see grid.h */
	size_t nr_boxes;
	size_t next_begin, next_end;
	struct overlay_keys begins, ends;  /* runs by where they begin and end */
	struct overlay_list top;           /* heap of extents that have begun */
	/* heap of runs that have begun, as pieces; see sweep_run_piece() */
	struct overlay_list top_run;
	uint32_t *active, *active_pos;     /* runs that reach over x, and where in active a run is */
	size_t nr_active, nr_active_boxes;
	struct overlay_keys elements;      /* heap: where an active run may have its next element */
	uint64_t density;                  /* elements of active runs per SWEEP_UNIT bytes of file */
	uint64_t set[2];                   /* a name for the set of active runs */
	struct zone_table *cache;          /* tables by set */
	int64_t spent;                     /* elements written out singly while the set was spent_set */
	uint64_t spent_set[2];
	int64_t credit;                    /* rows that may still be spent, see zone.c */
	struct image_layer *layers;        /* extents under the runs of mixed panels of this region */
	size_t nr_layers, cap_layers;
	size_t first_run, first_panel;     /* of this region */
	bool mixed;                        /* this region has mixed panels */
	/* Bits of runs, by seq, that lookups would search too long; NULL: none. The caller's. */
	uint8_t *single;
	size_t nr_singles;                 /* room for so many; 0: they are not asked for */
	struct overlay overlay;
	struct overlay_list pieces;
};

/*
 * Whole numbers: a division of floating point raises "inexact" in the caller, which a program may trap. A run
 * whose elements are further apart counts as none.
 */
#define SWEEP_UNIT ((uint64_t)1 << 32)

void sweep_init(struct sweep *sw, struct extents *extents);
void sweep_release(struct sweep *sw);
/* Make room for so many runs, which are not to be copied again and again. Returns 0 or -ENOMEM. */
int sweep_reserve_runs(struct sweep *sw, size_t nr);
int sweep_add_run(struct sweep *sw, const struct image_layer *run);
int sweep_add_nested(struct sweep *sw, const struct image_layer *nested);

/* Append @layer to the @n of @v, which grows. Returns 0 or -ENOMEM. */
int sweep_add_layer(struct image_layer **v, size_t *n, size_t *cap, const struct image_layer *layer);

/* A run as a piece, to compare it with others; step is its number. */
static inline struct overlay_piece sweep_run_piece(const struct sweep *sw, uint32_t idx)
{
	const struct image_layer *run = &sw->runs[idx];

	return (struct overlay_piece){
		.lo = run->logical_off,
		.hi = run->hi,
		.step = idx,
		.stamp_ns = run->stamp_ns,
		.log_no = run->log_no,
		.seq = run->seq,
	};
}

#endif
