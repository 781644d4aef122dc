/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of who writes, see writer_table.h.
 */
#include "core/backend/writer_table.h"

#include "core/backend/container_dirs.h"
#include "core/backend/container_remove.h"
#include "core/backend/host.h"
#include "core/backend/names.h"
#include "core/base/alloc.h"
#include "core/base/guard.h"
#include "core/base/io.h"
#include "core/base/stamp.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <unistd.h>

#define TABLE_LEN 65536
#define MAGIC_OFF 16
#define MAGIC "PLFSWRT1"
#define MAGIC_LEN 8
#define SLOTS_OFF 64
#define NR_SLOTS ((TABLE_LEN - SLOTS_OFF) / 4)

#define RETRY_NS 100000 /* a reader looks so often for a table that was not there */

static uint64_t *ended_of(uint8_t *table)
{
	return (uint64_t *)table;
}

static uint32_t *found_of(uint8_t *table)
{
	return (uint32_t *)(table + 8);
}

static uint32_t *slot_of(uint8_t *table, ino_t number)
{
	return (uint32_t *)(table + SLOTS_OFF) + ((uint64_t)number * 0x9e3779b97f4a7c15u >> 32) % NR_SLOTS;
}

/* ---- which table ---- */

enum kind { OWNERS = 1, GROUPS, ALL }; /* 0: a free place */

/* Of a mount, as many as this process has had to do with. Places are taken in order, for good. */
#define NR_TABLES 128
struct writer_tables {
	struct table {
		uint64_t key;          /* of_key() */
		uint8_t *write, *seen; /* mapped to write and to read; NULL: not yet */
		uint64_t tried_ns;     /* the last try, in vain, to map it for reading */
		bool doubtful;         /* what that found was no table, or one that others can change */
	} tables[NR_TABLES];
};

static uint64_t of_key(enum kind kind, uint32_t id) { return (uint64_t)kind << 32 | id; }

static struct writer_tables *tables_of(struct plfs_mount *m)
{
	struct writer_tables *all = __atomic_load_n(&m->writers, __ATOMIC_ACQUIRE), *mine;

	if (likely(all != NULL))
		return all;
	mine = mem_zalloc(sizeof(*mine));
	if (!mine || __atomic_compare_exchange_n(&m->writers, &all, mine, false, __ATOMIC_ACQ_REL,
						 __ATOMIC_ACQUIRE))
		return mine;
	mem_free(mine);
	return all;
}

/* NULL: no memory, or there are too many. */
static struct table *table_of(struct plfs_mount *m, uint64_t key)
{
	struct writer_tables *all = tables_of(m);

	for (int i = 0; all && i < NR_TABLES; i++) {
		uint64_t there = __atomic_load_n(&all->tables[i].key, __ATOMIC_ACQUIRE);

		if (there == key || (!there && (__atomic_compare_exchange_n(&all->tables[i].key, &there, key,
									    false, __ATOMIC_ACQ_REL,
									    __ATOMIC_ACQUIRE) ||
						there == key)))
			return &all->tables[i];
	}
	return NULL;
}

/* ---- its file ---- */

static void path_of(uint64_t key, char *path)
{
	if (key >> 32 == ALL)
		snprintf(path, CONTAINER_PATH_LEN, PLFS_DIR_NAME "/writers.%s.all", host_name());
	else
		snprintf(path, CONTAINER_PATH_LEN, PLFS_DIR_NAME "/writers.%s.%c%u", host_name(),
			 key >> 32 == OWNERS ? 'u' : 'g', (unsigned)key);
}

/*
 * Whether only those can change the table who may write all files that it speaks of. Where a directory gives
 * its group to what anybody makes in it, that does not say who has made it.
 */
static bool is_right(struct store *s, uint64_t key, const struct stat *st)
{
	uint32_t id = (uint32_t)key;
	struct stat dir;

	if (!store_may_write(st) || st->st_size != TABLE_LEN)
		return false;
	if (key >> 32 == OWNERS)
		return st->st_uid == id && !(st->st_mode & 022);
	if (key >> 32 == GROUPS)
		return st->st_gid == id && !(st->st_mode & 02) && !s->ops->stat(s, PLFS_DIR_NAME, &dir) &&
		       (!(dir.st_mode & S_ISGID) || !(dir.st_mode & 02) || !st->st_uid ||
			st->st_uid == geteuid());
	return true;
}

static bool is_table(const uint8_t *head) { return !memcmp(head + MAGIC_OFF, MAGIC, MAGIC_LEN); }

/*
 * Give what was just made its magic, and its owner or group. A hole takes its space when it is mapped. A
 * second time, after one who was killed, changes nothing. Anything else may be a file of this user that
 * another has moved here.
 */
static int finish_table(struct store *s, int h, uint64_t key)
{
	uint8_t head[MAGIC_OFF + MAGIC_LEN] = { 0 };
	int fd = store_fd(s, h);
	struct stat st;
	ssize_t n;
	int ret = s->ops->fstat(s, h, &st);

	if (ret || st.st_size >= TABLE_LEN || !store_may_write(&st))
		return ret;
	n = s->ops->pread(s, h, head, sizeof(head), 0);
	if (n < 0 || !(is_table(head) || (!n && container_is_unborn(&st))))
		return n < 0 ? (int)n : -EIO;
	memcpy(head + MAGIC_OFF, MAGIC, MAGIC_LEN);
	if (!n && s->ops->pwrite(s, h, head, sizeof(head), 0) != sizeof(head))
		return -ENOSPC;
	if (key >> 32 == OWNERS && st.st_uid != (uint32_t)key)
		store_give(s, h, (uint32_t)key);
	if (key >> 32 == GROUPS && st.st_gid != (uint32_t)key &&
	    (fd < 0 || sys.fchown(fd, (uid_t)-1, (gid_t)(uint32_t)key)))
		return -EPERM;
	return s->ops->truncate(s, h, TABLE_LEN);
}

static int make_table(struct store *s, const char *path, uint64_t key)
{
	static const mode_t modes[] = { [OWNERS] = 0644, [GROUPS] = 0664, [ALL] = 0666 };
	mode_t mode = modes[key >> 32] | CONTAINER_UNBORN;
	int h = store_open(s, path, O_RDWR | O_CREAT | O_EXCL | STORE_BRIEFLY, mode);

	if (h == -EEXIST)
		return store_open(s, path, O_RDWR | STORE_BRIEFLY, 0);
	if (h >= 0 && finish_table(s, h, key)) {
		store_close(s, &h);
		s->ops->unlink(s, path);
		return -EPERM;
	}
	return h;
}

/*
 * Have space behind all of it: stores cannot fail from then on. Who has no space, or a table that is cut
 * meanwhile, has none.
 */
static uint8_t *map_whole(struct store *s, int h)
{
	uint8_t *table = store_map(s, h, TABLE_LEN, true);

	if (table && !is_table(table)) {
		store_unmap(s, table, TABLE_LEN);
		return NULL;
	}
	for (int at = 0; table && at < TABLE_LEN; at += 4096)
		__atomic_fetch_add((uint32_t *)(table + at + 12), 0, __ATOMIC_RELAXED);
	if (table && guard_is_broken(table)) {
		store_unmap(s, table, TABLE_LEN);
		table = NULL;
	}
	return table;
}

static uint8_t *map_to_read(struct store *s, int h)
{
	uint8_t *table = store_map(s, h, TABLE_LEN, false);

	if (table && is_table(table))
		return table;
	if (table)
		store_unmap(s, table, TABLE_LEN);
	return NULL;
}

/* *@doubtful: there is something, but it is not to be believed. Nothing is waited for. */
static uint8_t *map_table(struct plfs_mount *m, uint64_t key, bool make, bool *doubtful)
{
	struct store *s = &m->store;
	char path[CONTAINER_PATH_LEN];
	uint8_t *table = NULL;
	struct stat st;
	int h;

	path_of(key, path);
	/*
	 * Without O_CREAT first: in a directory of all users the kernel may refuse that for what somebody
	 * else has made.
	 */
	h = store_open(s, path, (make ? O_RDWR : O_RDONLY) | STORE_BRIEFLY, 0);
	*doubtful = h < 0 && h != -ENOENT;
	if (h == -ENOENT && make)
		h = make_table(s, path, key);
	if (h < 0)
		return NULL;
	if (make)
		finish_table(s, h, key);
	if (!s->ops->fstat(s, h, &st) && is_right(s, key, &st))
		table = make ? map_whole(s, h) : map_to_read(s, h);
	*doubtful = !table;
	store_close(s, &h);
	return table;
}

/* Keep the one that was first, if two threads have mapped it at once: for good. */
static uint8_t *keep_table(struct plfs_mount *m, uint8_t **known, uint8_t *mine)
{
	uint8_t *other = NULL;

	if (!mine ||
	    __atomic_compare_exchange_n(known, &other, mine, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return mine;
	store_unmap(&m->store, mine, TABLE_LEN);
	return other;
}

/*
 * Whether the file was cut, or failed, under the mapping @table, which is not used from here on then. Its
 * memory stays: other threads may be at it.
 */
static bool is_gone(uint8_t **known, uint8_t *table)
{
	if (likely(!guard_is_broken(table)))
		return false;
	if (__atomic_compare_exchange_n(known, &table, NULL, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		guard_remove(table);
	return true;
}

/* Whoever may have made the table can be gone by now: each that finds it so new waits. */
static void wait_for_readers(uint8_t *table)
{
	struct timespec left = { .tv_nsec = 2 * RETRY_NS };

	if (__atomic_load_n(found_of(table), __ATOMIC_ACQUIRE))
		return;
	while (io_nanosleep(&left, &left) && errno == EINTR)
		;
	__atomic_store_n(found_of(table), 1, __ATOMIC_RELEASE);
}

static uint8_t *table_to_write(struct plfs_mount *m, uint64_t key)
{
	struct table *t = m->store.remote ? NULL : table_of(m, key);
	uint8_t *table = t ? __atomic_load_n(&t->write, __ATOMIC_ACQUIRE) : NULL;
	bool doubtful;

	if (table && is_gone(&t->write, table))
		table = NULL;
	if (table || !t)
		return table;
	table = map_table(m, key, true, &doubtful);
	if (table)
		wait_for_readers(table);
	return keep_table(m, &t->write, table);
}

/* A look counts from its beginning, and only when it is over: another thread may be at it. */
static __attribute__((noinline, cold)) uint8_t *look_for_table(struct plfs_mount *m, struct table *t)
{
	int saved ERRNO_KEPT = errno;
	uint64_t now = stamp_fine_ns();
	uint8_t *table;
	bool doubtful;

	if (m->store.remote || now - __atomic_load_n(&t->tried_ns, __ATOMIC_ACQUIRE) < RETRY_NS)
		return NULL;
	table = keep_table(m, &t->seen, map_table(m, t->key, false, &doubtful));
	__atomic_store_n(&t->doubtful, doubtful && !table, __ATOMIC_RELEASE);
	if (!table)
		__atomic_store_n(&t->tried_ns, now, __ATOMIC_RELEASE);
	return table;
}

static inline uint8_t *table_to_read(struct plfs_mount *m, struct table *t)
{
	uint8_t *table = __atomic_load_n(&t->seen, __ATOMIC_ACQUIRE);

	return likely(table != NULL) ? table : look_for_table(m, t);
}

/* The tables that who writes the file of @st may count in. Returns their number. */
static int keys_of(const struct stat *st, uint64_t *keys)
{
	int nr = 0;

	keys[nr++] = of_key(OWNERS, st->st_uid);
	if (st->st_mode & S_IWGRP)
		keys[nr++] = of_key(GROUPS, st->st_gid);
	if (st->st_mode & S_IWOTH)
		keys[nr++] = of_key(ALL, 0);
	return nr;
}

/* The owner's, which none of the file's modes hides, for the owner and root; else the narrowest. */
static uint8_t *table_for(struct plfs_mount *m, const struct container *c)
{
	uid_t owner = c->uid == CONTAINER_ANYBODY ? geteuid() : c->uid;
	uid_t me = c->caller == owner ? owner : geteuid();
	uint8_t *table = NULL;

	if (me == owner || !me)
		table = table_to_write(m, of_key(OWNERS, owner));
	if (!table && c->mode & S_IWGRP)
		table = table_to_write(m, of_key(GROUPS, c->gid));
	if (!table && c->mode & S_IWOTH)
		table = table_to_write(m, of_key(ALL, 0));
	return table;
}

void *writer_table_begin(struct plfs_mount *m, const struct container *c, ino_t number)
{
	for (int tries = 0; tries < 3; tries++) {
		uint8_t *table = table_for(m, c);

		if (!table)
			return NULL;
		__atomic_fetch_add(slot_of(table, number), 1, __ATOMIC_SEQ_CST);
		if (likely(!guard_is_broken(table)))
			return table;
	}
	return NULL;
}

/*
 * In this order: who finds the slot empty that was not when he looked at the stub finds that a log has ended.
 */
static void end_many(uint8_t *table, ino_t number, uint32_t nr)
{
	uint32_t *slot = slot_of(table, number), count = __atomic_load_n(slot, __ATOMIC_RELAXED);

	__atomic_fetch_add(ended_of(table), 1, __ATOMIC_SEQ_CST);
	while (count && !__atomic_compare_exchange_n(slot, &count, count - (nr < count ? nr : count), false,
						     __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		;
}

void writer_table_end(void *table, ino_t number)
{
	end_many(table, number, 1);
}

void writer_table_gone(struct plfs_mount *m, const struct container *c, ino_t number, unsigned nr)
{
	uid_t me = geteuid(), owner = c->uid == CONTAINER_ANYBODY ? me : c->uid;
	uint8_t *table = nr && (me == owner || !me) ? table_to_write(m, of_key(OWNERS, owner)) : NULL;

	if (table)
		end_many(table, number, nr);
}

bool writer_table_is_owners(const struct container *c, const char *live)
{
	struct stat st;

	return c->uid == CONTAINER_ANYBODY ||
	       (!c->store->ops->stat(c->store, live, &st) && st.st_uid == c->uid);
}

struct count_arg {
	const struct container *c;
	unsigned nr;
};

static int count_live(void *arg, const char *path, const char *name, enum dropping_kind kind)
{
	struct count_arg *ca = arg;
	char full[CONTAINER_PATH_LEN];

	if (kind != DROPPING_LIVE || !name_is_our_live(name))
		return 0;
	container_path(ca->c, path, full);
	ca->nr += writer_table_is_owners(ca->c, full);
	return 0;
}

int writer_table_remove_container(struct plfs_mount *m, const struct container *c, ino_t number)
{
	uid_t owner = c->uid == CONTAINER_ANYBODY ? geteuid() : c->uid;
	struct table *t = m->store.remote ? NULL : table_of(m, of_key(OWNERS, owner));
	uint8_t *table = t ? table_to_read(m, t) : NULL;
	struct count_arg ca = { .c = c };
	int ret;

	if (table && __atomic_load_n(slot_of(table, number), __ATOMIC_RELAXED))
		container_list_there(c, count_live, &ca);
	ret = container_remove(c);
	if (!ret)
		writer_table_gone(m, c, number, ca.nr);
	return ret;
}

/* Whether a log that @own does not name counts in the table @key, or may. */
static bool counts_in(struct plfs_mount *m, uint64_t key, ino_t number, void *const *own)
{
	struct table *t = table_of(m, key);
	uint8_t *table = t ? table_to_read(m, t) : NULL;
	uint32_t count, mine = 0;

	if (!t || (!table && __atomic_load_n(&t->doubtful, __ATOMIC_ACQUIRE)))
		return true;
	if (!table)
		return false;
	count = __atomic_load_n(slot_of(table, number), __ATOMIC_SEQ_CST);
	for (int i = 0; own && i < 2; i++)
		mine += own[i] && own[i] == __atomic_load_n(&t->write, __ATOMIC_ACQUIRE);
	return count > mine || is_gone(&t->seen, table);
}

static bool carry(struct plfs_mount *m, const struct stat *before, const struct stat *after,
		  void *const *own)
{
	uint64_t old[3], new[3];
	int nr_old = keys_of(before, old), nr_new = keys_of(after, new);
	bool found = false;
	uint8_t *table;

	for (int i = 0; i < nr_old && !found; i++) {
		bool stays = false;

		for (int k = 0; k < nr_new; k++)
			stays |= old[i] == new[k];
		found = !stays && counts_in(m, old[i], before->st_ino, own);
	}
	table = found ? table_to_write(m, of_key(OWNERS, after->st_uid)) : NULL;
	if (table)
		__atomic_fetch_add(slot_of(table, before->st_ino), 1, __ATOMIC_SEQ_CST);
	return found;
}

bool writer_table_carry(const struct stat *before, const struct stat *after, void *const *own)
{
	bool found = false;

	for (int i = 0; i < mount_count(); i++) {
		struct plfs_mount *m = mount_at(i);

		if (m->dev == before->st_dev && !m->store.remote)
			found |= carry(m, before, after, own);
	}
	return found;
}

static uint64_t ended_in(struct plfs_mount *m, bool *gone)
{
	struct writer_tables *all = __atomic_load_n(&m->writers, __ATOMIC_ACQUIRE);
	uint64_t ended = 0;

	for (int i = 0; all && i < NR_TABLES && __atomic_load_n(&all->tables[i].key, __ATOMIC_ACQUIRE); i++) {
		struct table *t = &all->tables[i];
		uint8_t *table = __atomic_load_n(&t->seen, __ATOMIC_ACQUIRE);

		ended += table ? __atomic_load_n(ended_of(table), __ATOMIC_ACQUIRE) : 0;
		*gone |= table && is_gone(&t->seen, table);
	}
	return ended;
}

uint64_t writer_table_ended(void)
{
	uint64_t ended = 0;
	bool gone = false;

	for (int i = 0; i < mount_count(); i++)
		ended += ended_in(mount_at(i), &gone);
	return gone ? WRITER_TABLE_UNKNOWN - 1 : ended;
}

uint64_t writer_table_before(void)
{
	uint32_t me = (uint32_t)getauxval(AT_EUID); /* without a call; most files are this user's */

	for (int i = 0; i < mount_count(); i++) {
		struct table *t = table_of(mount_at(i), of_key(OWNERS, me));

		if (t)
			table_to_read(mount_at(i), t);
	}
	return writer_table_ended();
}

/* Whether one of the file's tables says so, or may have said so when it was mapped just now. */
static bool may_be_in(struct plfs_mount *m, const struct stat *st)
{
	uint64_t keys[3];
	int nr = keys_of(st, keys);

	for (int i = 0; i < nr; i++) {
		struct table *t = table_of(m, keys[i]);
		uint8_t *table = t ? table_to_read(m, t) : NULL;

		if (!t || (!table && __atomic_load_n(&t->doubtful, __ATOMIC_ACQUIRE)))
			return true;
		if (table && (__atomic_load_n(slot_of(table, st->st_ino), __ATOMIC_ACQUIRE) ||
			      is_gone(&t->seen, table)))
			return true;
	}
	return false;
}

bool writer_table_may_be(const struct stat *st, uint64_t ended)
{
	for (int i = 0; i < mount_count(); i++) {
		struct plfs_mount *m = mount_at(i);

		if (m->dev == st->st_dev && !m->store.remote && may_be_in(m, st))
			return true;
	}
	return ended != WRITER_TABLE_UNKNOWN && writer_table_ended() != ended;
}

bool writer_table_may_have_begun(struct plfs_mount *m, const struct stat *st)
{
	return m->store.remote || may_be_in(m, st);
}

void writer_table_each(const struct stat *st, void (*fn)(void *arg, const char *path), void *arg)
{
	char path[CONTAINER_PATH_LEN];
	uint64_t keys[3];
	int nr = keys_of(st, keys);

	for (int i = 0; i < nr; i++) {
		path_of(keys[i], path);
		fn(arg, path);
	}
}
