/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rules of near=auto.
 */
#include "core/backend/auto_place.h"

#include <string.h>

/* File systems on a disk of one node. All that is not known may be shared, or slow. */
static const char *const DISKS[] = { "ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "zfs", "bcachefs", "jfs" };

/* Block devices that are elsewhere, or files of another file system. */
static const char *const NO_DISKS[] = { "/dev/rbd", "/dev/nbd", "/dev/drbd", "/dev/loop" };

enum auto_medium auto_medium(const char *fs, const char *source)
{
	if (!strcmp(fs, "tmpfs"))
		return AUTO_MEMORY;
	for (size_t i = 0; i < ARRAY_SIZE(NO_DISKS); i++)
		if (!strncmp(source, NO_DISKS[i], strlen(NO_DISKS[i])))
			return AUTO_OTHER;
	for (size_t i = 0; i < ARRAY_SIZE(DISKS); i++)
		if (!strcmp(fs, DISKS[i]))
			return AUTO_DISK;
	return AUTO_OTHER;
}

/* What is free of a disk, besides the tenth that stays. */
static uint64_t disk_room(const struct auto_candidate *c)
{
	return c->free - min_u64(c->free, c->size / 10);
}

/* Half of what there is: the program needs more memory as well, and so may others. */
static uint64_t share(uint64_t room) { return room / 2; }

static const char *why_not(struct auto_candidate *c, enum auto_medium medium, uint64_t memory)
{
	if (medium == AUTO_OTHER)
		return strncmp(c->source, "/dev/", 5) ? "not known as a file system of this node alone" :
							"its device may be elsewhere, or a file";
	if (!c->exists)
		return "not there";
	if (c->read_only)
		return "read-only";
	if (!c->writable)
		return "not writable";
	if (c->may_lose)
		return "neither this user's, nor sticky as /tmp is";
	if (c->is_home)
		return "the backend is on the same file system";
	if (medium == AUTO_MEMORY) {
		c->max = share(min_u64(c->free, memory));
		return c->max < AUTO_MEMORY_ROOM ? "the job has too little memory left" : NULL;
	}
	c->max = c->is_root ? share(disk_room(c)) : 0;
	return disk_room(c) < AUTO_DISK_ROOM ? "too little space" : NULL;
}

/* Lower is better. */
static int rank(const struct auto_candidate *c, enum auto_medium medium)
{
	return medium == AUTO_MEMORY ? 2 : *c->from ? 0 : 1;
}

int auto_choose(struct auto_candidate *c, int nr, uint64_t memory)
{
	int best = -1, best_rank = 0;

	for (int i = 0; i < nr; i++) {
		enum auto_medium medium = auto_medium(c[i].fs, c[i].source);
		int here = rank(&c[i], medium);

		c[i].why = why_not(&c[i], medium, memory);
		if (c[i].why)
			continue;
		if (best < 0 || here < best_rank ||
		    (here == best_rank && here == 1 && c[i].size > c[best].size)) {
			best = i;
			best_rank = here;
		}
	}
	return best;
}
