/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The part of a stats file that one process keeps while it runs, FILE.parts/HOST/PID.SEQ: a header, and the
 * counters of each file, in memory that is mapped from the part. A killed process needs to do nothing: the
 * kernel keeps the pages, and writes them back for other hosts.
 *
 * The counters are not in the live files of containers. A plain file has none; a live file goes with the last
 * close, long before the job ends; and there may be no container to write to.
 *
 * While its process lives it holds a lock on the whole part. So whoever comes later knows that a part without
 * a lock, or one that says "ended", changes no more.
 *
 *   off size field
 *     0   8  magic      "PLFSPRT1"
 *     8   4  version    1
 *    12   4  slot_len   4096: length of the header, and of each slot behind it, a struct counters
 *    16   4  ended      1: nothing is added any more
 *    20   4  nr_slots   in use
 *    24   8  start_ns   when the process began, CLOCK_REALTIME
 *    32   4  pid
 *    36   4  seq        of its name
 *    40   4  rank       -1: not known
 *    44   4  ranks      -1: not known
 *    48  64  host       NUL-padded, as the next two
 *   112  64  job
 *   176  64  program
 *   240   .  zeros
 *
 * The numbers are those of the processor: another one reads a part as damaged. It is no format to keep: parts
 * of another version are left to that version.
 */
#ifndef PLFS_PART_H
#define PLFS_PART_H

#include "core/observe/counters.h"
#include "core/observe/job.h"

#define PART_MAGIC "PLFSPRT1"
#define PART_VERSION 1
#define PART_SLOT_LEN 4096
#define PART_SLOTS 501 /* the first is that of files without one */
#define PART_DIR ".parts"

struct part_head {
	char magic[8];
	uint32_t version, slot_len, ended, nr_slots;
	uint64_t start_ns;
	int32_t pid;
	uint32_t seq;
	int32_t rank, ranks;
	char host[64], job[JOB_NAME_LEN], program[JOB_NAME_LEN];
};

static_assert(sizeof(struct part_head) == 240, "as in the table");
static_assert(sizeof(struct counters) <= PART_SLOT_LEN, "a slot has room for a file");

struct part {
	int fd;			/* hidden, locked; -1: there is none */
	struct part_head *head; /* mapped; NULL: there is none */
	uint32_t room;		/* slots that the file has */
};

/*
 * Make the part of this process, which began at @start_ns, for the stats file @file. 0; -errno: nothing is
 * left, and what failed is in @what (of PATH_MAX bytes).
 */
int part_open(struct part *p, const char *file, const struct job *j, uint64_t start_ns, char *what);

/* A slot for another file, zeros; the first one, if there are no more, or no space. */
struct counters *part_slot(struct part *p);

/* Whether it was cut, or its disk failed: what is counted from then on is lost. */
bool part_is_broken(const struct part *p);

/*
 * Nothing is added any more: its last word, and the lock, which goes. The memory stays mapped: another
 * thread may be counting there.
 */
void part_end(struct part *p);

/* Let go of the part of another process: the parent's, in the child of a fork. */
void part_forget(struct part *p);

/*
 * Read @len bytes of a part, @buf, into *@head, which is valid after 0 alone. 0; -EBADMSG: damaged, or not
 * whole; -EPROTONOSUPPORT: of another version.
 */
int part_decode(const uint8_t *buf, size_t len, const struct part_head **head);

/* Slot @i of it. */
static inline const struct counters *part_counters(const struct part_head *head, uint32_t i)
{
	return (const struct counters *)((const uint8_t *)head + (i + 1) * (size_t)PART_SLOT_LEN);
}

#endif
