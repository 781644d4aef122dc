/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is known of a container's logs and groups, while groups are made (grouping.h).
 */
#ifndef PLFS_GROUPED_H
#define PLFS_GROUPED_H

#include "core/backend/parity.h"
#include "core/admin/places/listed.h"

#define GROUPED_TOPS_MAX 64

struct grouped_log {
	const char *path;
	uint64_t len;  /* of the file */
	unsigned top;  /* where it is, in grouped.tops; 0: home */
	int ret;       /* 0; -EREMOTE: its backend is not there; -EBUSY: it is written; -errno */
	unsigned covered; /* by so many parity files of one group: so many losses it survives */
};

/* A parity file of "parity", and its logs. */
enum grouped_state {
	GROUPED_GOOD,
	GROUPED_DEAD,  /* it covers nothing */
	GROUPED_AWAY,  /* it covers, but its parity or a log is not there: another cannot be made */
	GROUPED_NEEDED /* a log is missing that has records: it is made anew of this */
};

struct grouped {
	const struct container *c;
	unsigned wanted; /* parity files for each log */
	struct listed listed;
	struct grouped_log *logs; /* listed.nr, by their paths */
	struct parity_groups groups;
	enum grouped_state *states; /* of the groups */
	char *tops[GROUPED_TOPS_MAX]; /* directories of backends */
	unsigned nr_tops;
	bool any_open; /* a log has a live file */
};

/*
 * Of a backend that is not there the logs are those that a node index names. 0; -EIO: it may have open ones
 * (one line), or an index is damaged; -errno. To be released in any case.
 */
int grouped_take(struct grouped *g, const struct container *c, unsigned wanted);
void grouped_release(struct grouped *g);

/*
 * Look at all groups, and set which logs they cover. Records stamped at or before @void_ns count for nothing.
 * @waits: also those of which something is in a backend
 * that is not there; else logs that are there get other parity.
 */
void grouped_judge(struct grouped *g, uint64_t void_ns, bool waits);

/* The log; NULL: there is none. */
struct grouped_log *grouped_find(const struct grouped *g, const char *path);

/* The place of the backend in which @top is, "" for home, in g->tops. 0 also if there are too many. */
unsigned grouped_top(struct grouped *g, const char *top);

/* Another parity file. -ENOMEM. */
int grouped_add(struct grouped *g, const struct parity_group *group);

/* Whether another group behind number @no, of which all is there, covers as much of the log, as well. */
bool grouped_is_again(const struct grouped *g, size_t no, const struct parity_log *log);

/* Whether each log of the parity file number @no is covered by a later group, or has gone for good. */
bool grouped_is_spare(const struct grouped *g, size_t no);

#endif
