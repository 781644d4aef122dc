/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of who writes, see writers.h.
 */
#include "writers.h"

#include "dropping.h"
#include "mapping.h"
#include "stamp.h"

#include <fcntl.h>
#include <stdio.h>

#define TABLE_LEN 65536
#define SLOTS_OFF 64
#define NR_SLOTS ((TABLE_LEN - SLOTS_OFF) / 4)

#define RETRY_NS 4000000 /* a reader looks so often for a table that was not there */

static uint64_t *ended_of(uint8_t *table)
{
	return (uint64_t *)table;
}

static uint32_t *slot_of(uint8_t *table, ino_t number)
{
	return (uint32_t *)(table + SLOTS_OFF) + ((uint64_t)number * 0x9e3779b97f4a7c15u >> 32) % NR_SLOTS;
}

/* Without O_CREAT first: in a directory of all users the kernel may refuse that for what somebody else has made. */
static int open_table(struct plfs_mount *m, bool make)
{
	struct store *s = &m->store;
	char path[CONTAINER_PATH_LEN];
	struct stat st;
	int h, ret;

	snprintf(path, sizeof(path), PLFS_DIR_NAME "/writers.%s", dropping_host());
	h = store_open(s, path, (make ? O_RDWR : O_RDONLY) | STORE_BRIEFLY, 0);
	if (h != -ENOENT || !make)
		return h;
	ret = s->ops->stat(s, PLFS_DIR_NAME, &st);
	if (ret)
		return ret;
	h = store_open(s, path, O_RDWR | O_CREAT | O_EXCL | STORE_BRIEFLY, (st.st_mode & 0666) | S_IRUSR | S_IWUSR);
	return h == -EEXIST ? store_open(s, path, O_RDWR | STORE_BRIEFLY, 0) : h;
}

/* Nobody counts in a table that has not its whole length, and only one gives it that. */
static int reserve_table(struct store *s, int h)
{
	struct stat st;
	int ret = s->ops->lock(s, h);

	if (ret)
		return ret;
	ret = s->ops->fstat(s, h, &st);
	if (!ret && st.st_size < TABLE_LEN)
		ret = s->ops->reserve(s, h, 0, TABLE_LEN);
	s->ops->unlock(s, h);
	return ret;
}

static uint8_t *map_table(struct plfs_mount *m, bool make)
{
	struct store *s = &m->store;
	int h = open_table(m, make), ret;
	uint8_t *table = NULL;
	struct stat st;

	if (h < 0)
		return NULL;
	ret = s->ops->fstat(s, h, &st);
	if (!ret && !store_may_write(&st))
		ret = -EMLINK;
	if (!ret && st.st_size < TABLE_LEN)
		ret = make ? reserve_table(s, h) : -ENODATA;
	if (!ret)
		table = s->ops->map(s, h, TABLE_LEN, make);
	store_close(s, &h);
	return table;
}

/* Keep the one that was first, if two threads have mapped it at once: for good. */
static uint8_t *keep_table(struct plfs_mount *m, uint8_t **known, uint8_t *mine)
{
	uint8_t *other = NULL;

	if (!mine || __atomic_compare_exchange_n(known, &other, mine, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return mine;
	m->store.ops->unmap(&m->store, mine, TABLE_LEN);
	return other;
}

/*
 * Whether the file was cut, or failed, under the mapping @table, which is not used from here on then. Its memory
 * stays: other threads may be at it.
 */
static bool is_gone(uint8_t **known, uint8_t *table)
{
	if (likely(!mapping_is_broken(table)))
		return false;
	if (__atomic_compare_exchange_n(known, &table, NULL, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		mapping_remove(table);
	return true;
}

static uint8_t *table_to_write(struct plfs_mount *m)
{
	uint8_t *table = __atomic_load_n(&m->writers, __ATOMIC_ACQUIRE);

	if (table && is_gone(&m->writers, table))
		table = NULL;
	return table || m->store.remote ? table : keep_table(m, &m->writers, map_table(m, true));
}

static __attribute__((noinline, cold)) uint8_t *look_for_table(struct plfs_mount *m)
{
	int saved ERRNO_KEPT = errno;
	uint64_t now = stamp_coarse_ns();

	if (m->store.remote || now - __atomic_load_n(&m->writers_tried_ns, __ATOMIC_RELAXED) < RETRY_NS)
		return NULL;
	__atomic_store_n(&m->writers_tried_ns, now, __ATOMIC_RELAXED);
	return keep_table(m, &m->writers_seen, map_table(m, false));
}

static inline uint8_t *table_to_read(struct plfs_mount *m)
{
	uint8_t *table = __atomic_load_n(&m->writers_seen, __ATOMIC_ACQUIRE);

	return likely(table != NULL) ? table : look_for_table(m);
}

bool writers_begin(struct plfs_mount *m, ino_t number)
{
	uint8_t *table = table_to_write(m);

	for (int tries = 0; table && tries < 3; tries++) {
		__atomic_fetch_add(slot_of(table, number), 1, __ATOMIC_SEQ_CST);
		if (!is_gone(&m->writers, table))
			return true;
		table = table_to_write(m);
	}
	return false;
}

/* In this order: who finds the slot empty that was not when he looked at the stub finds that a log has ended. */
static void end_many(uint8_t *table, ino_t number, uint32_t nr)
{
	uint32_t *slot = slot_of(table, number), count = __atomic_load_n(slot, __ATOMIC_RELAXED);

	__atomic_fetch_add(ended_of(table), 1, __ATOMIC_SEQ_CST);
	while (count && !__atomic_compare_exchange_n(slot, &count, count - (nr < count ? nr : count), false,
						     __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		;
}

void writers_end(struct plfs_mount *m, ino_t number)
{
	uint8_t *table = table_to_write(m);

	if (table)
		end_many(table, number, 1);
}

void writers_gone(struct plfs_mount *m, ino_t number, unsigned nr)
{
	uint8_t *table = nr ? table_to_write(m) : NULL;

	if (table)
		end_many(table, number, nr);
}

static int count_live(void *arg, const char *path, const char *name, enum dropping_kind kind)
{
	(void)path;
	*(uint32_t *)arg += kind == DROPPING_LIVE && dropping_live_is_ours(name);
	return 0;
}

int writers_remove_container(struct plfs_mount *m, const struct container *c, ino_t number)
{
	uint8_t *table = table_to_read(m);
	uint32_t nr = 0;
	int ret;

	if (table && __atomic_load_n(slot_of(table, number), __ATOMIC_RELAXED))
		container_list(c, count_live, &nr);
	ret = container_remove(c);
	if (!ret)
		writers_gone(m, number, nr);
	return ret;
}

uint64_t writers_ended(void)
{
	uint64_t ended = 0;

	for (int i = 0; i < mount_count(); i++) {
		struct plfs_mount *m = mount_at(i);
		uint8_t *table = table_to_read(m);

		ended += table ? __atomic_load_n(ended_of(table), __ATOMIC_ACQUIRE) : 0;
		if (table && is_gone(&m->writers_seen, table))
			return WRITERS_UNKNOWN - 1;
	}
	return ended;
}

bool writers_may_be(dev_t dev, ino_t number, uint64_t ended)
{
	for (int i = 0; i < mount_count(); i++) {
		struct plfs_mount *m = mount_at(i);
		uint8_t *table = m->dev == dev ? table_to_read(m) : NULL;

		if (table && (__atomic_load_n(slot_of(table, number), __ATOMIC_ACQUIRE) || is_gone(&m->writers_seen, table)))
			return true;
	}
	return ended != WRITERS_UNKNOWN && writers_ended() != ended;
}

bool writers_may_have_begun(struct plfs_mount *m, ino_t number)
{
	uint8_t *table = __atomic_load_n(&m->writers_seen, __ATOMIC_ACQUIRE);

	if (!table && !m->store.remote) {
		int h = open_table(m, false);

		if (h == -ENOENT) /* it is made before the first log */
			return false;
		if (h >= 0)
			store_close(&m->store, &h);
		table = keep_table(m, &m->writers_seen, map_table(m, false));
	}
	return !table || __atomic_load_n(slot_of(table, number), __ATOMIC_ACQUIRE) || is_gone(&m->writers_seen, table);
}
