/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Syncing what others have written as well: how far the node index has been synced is remembered beside it,
 * so that each block, and the log it speaks of, is synced once, by the first process that syncs.
 */
#include "core/write/durable.h"

#include "core/dropping/carry.h"
#include "core/dropping/datalog.h"
#include "core/dropping/node_index.h"
#include "core/dropping/notice.h"
#include "core/dropping/parities.h"
#include "core/backend/names.h"
#include "core/backend/spread.h"
#include "core/backend/host.h"
#include "core/base/bytes.h"
#include "core/base/msg.h"
#include "core/base/vec.h"

#include <fcntl.h>
#include <stdio.h>

#define COPY_LEN 65536

int durable_sync_way(const struct container *c)
{
	int ret = store_sync_path(c->store, c->dir, true);

	return ret ? ret : store_sync_parents(c->store, c->dir);
}

/* Why a process that may not write cannot note what it has synced. */
static bool may_only_read(int ret)
{
	return ret == -EACCES || ret == -EPERM || ret == -EROFS;
}

/* ---- what others have in their live files ---- */

/* The end, in the log, of what the records speak of. */
static uint64_t end_of(const struct index_record *records, uint64_t nr)
{
	uint64_t end = 0;

	for (uint64_t i = 0; i < nr; i++)
		if (records[i].type == INDEX_WRITE)
			end = max_u64(end, index_record_log_end(&records[i]));
	return end;
}

/*
 * Write the staged bytes up to @end, which records speak of, to where their owner will write them: what a
 * record speaks of is never changed, so any process may write it, and more than once.
 */
static int write_staged(const struct container *c, const char *live, const char *log, uint64_t from,
			uint64_t end)
{
	struct store *s = c->store;
	struct stat st;
	uint8_t *buf;
	ssize_t n = 1;
	int h, ret = 0;

	if (from >= end)
		return 0;
	h = datalog_open_to_write(c, log, STORE_BRIEFLY, &st);
	if (h < 0)
		return h == -EMLINK ? -EIO : h;
	buf = mem_alloc(COPY_LEN);
	ret = buf ? 0 : -ENOMEM;
	while (!ret && from < end && n > 0) { /* 0: its owner has written them meanwhile */
		n = live_load_bytes(c, live, from, buf, (size_t)min_u64(end - from, COPY_LEN));
		if (n > 0) {
			ssize_t done = datalog_pwrite(s, h, buf, (size_t)n, from);

			ret = done < 0 ? (int)done : done < n ? -ENOSPC : 0;
			from += (uint64_t)n;
		}
		if (n < 0 && n != -ENOENT)
			ret = (int)n;
	}
	mem_free(buf);
	store_close(s, &h);
	return ret;
}

/* Encode @block, and append it to the node index of this host. *@len grows by its length. 0; -errno. */
static int add_to_index(const struct container *c, struct index_block *block, uint64_t *len)
{
	void *buf = mem_alloc(index_block_max_len(block));
	size_t block_len = buf ? index_block_encode(block, buf) : 0;
	int ret = buf ? node_index_append(c, buf, block_len) : -ENOMEM;

	mem_free(buf);
	*len += ret ? 0 : block_len;
	return ret;
}

/* Say in the node index what the live file @path says, unless it is there already. */
static int adopt_live(const struct container *c, const char *path)
{
	struct index_block block = { 0 };
	struct index_record *records;
	struct live_state state;
	char log[CONTAINER_PATH_LEN];
	uint64_t digest, uncounted = 0;
	int ret = live_digest(c, path, &digest);

	if (!ret && live_adopted(c, path) == digest)
		return 0;
	if (!ret)
		ret = live_load(c, path, &state, &records);
	if (ret)
		/* damage was reported: nothing in it can be kept */
		return ret == -ENOENT || ret == -EBADMSG ? 0 : ret;
	if (state.nr_records) {
		name_beside(path, state.log_name, log);
		name_log_numbers(state.log_name, &block.pid, &block.seq);
		block.nr_records = (uint32_t)state.nr_records;
		block.records = records;
		block.log_len = end_of(records, state.nr_records);
		ret = write_staged(c, path, log, state.flushed_len, block.log_len);
		if (!ret)
			ret = add_to_index(c, &block, &uncounted);
		if (!ret)
			live_set_adopted(c, path, digest);
	}
	mem_free(records);
	return ret == -ENOENT ? 0 : ret;
}

struct adopt_arg {
	const struct container *c;
	const char *hostdir, *own; /* own: name of the log whose live file is left out, or "" */
	bool all; /* else those of another user are left out as well */
	int ret;
};

static int adopt_entry(void *arg, const char *name)
{
	struct adopt_arg *aa = arg;
	char path[CONTAINER_PATH_LEN];
	int ret;

	if (!name_is_our_live(name) || name_is_live_of(name, aa->own) ||
	    snprintf(path, sizeof(path), "%s/%s", aa->hostdir, name) >= (int)sizeof(path))
		return 0;
	ret = adopt_live(aa->c, path);
	if (!aa->all && may_only_read(ret))
		ret = 0;
	aa->ret = aa->ret ? aa->ret : ret;
	return 0;
}

static int adopt(const struct container *c, const struct writer *own, bool all)
{
	struct store *s = c->store;
	char hostdir[32], path[CONTAINER_PATH_LEN];
	struct adopt_arg aa = {
		.c = c, .hostdir = hostdir, .own = own ? own->tail.log_name : "", .all = all,
	};
	int ret;

	snprintf(hostdir, sizeof(hostdir), "hostdir.%u", name_hostdir(c));
	container_path(c, hostdir, path);
	ret = s->ops->list(s, path, adopt_entry, &aa);
	/* no log is open in a backend that is not there */
	return ret && ret != -EREMOTE ? ret : aa.ret;
}

int durable_adopt(const struct container *c, const struct writer *own) { return adopt(c, own, true); }

/* ---- what the node index says ---- */

struct synced_log {
	uint32_t pid, seq;
	uint64_t len; /* as the index says */
};

/* Take @block into @logs, of which there are *@nr, with room for one more. */
static struct synced_log *note_log(struct synced_log *logs, size_t *nr, const struct index_block *block)
{
	size_t i = *nr;

	while (i > 0 && (logs[i - 1].pid != block->pid || logs[i - 1].seq != block->seq))
		i--;
	if (!i) {
		logs[(*nr)++] = (struct synced_log){ .pid = block->pid, .seq = block->seq };
		i = *nr;
	}
	logs[i - 1].len = max_u64(logs[i - 1].len, block->log_len);
	return &logs[i - 1];
}

/* The logs that the @len bytes of a node index at @buf speak of, mem_alloc()ed. */
static int find_logs(const struct container *c, const char *index, void *buf, size_t len,
		     struct synced_log **logs, size_t *nr)
{
	struct node_index idx = { .buf = buf, .len = len };
	struct index_block block;
	struct synced_log *p;
	size_t cap = 0;

	container_path(c, index, idx.path);
	while (node_index_next(&idx, &block) > 0) {
		if (block.synced)
			continue;
		p = vec_room(*logs, &cap, *nr + 1, sizeof(*p));
		if (!p)
			return -ENOMEM;
		*logs = p;
		note_log(p, nr, &block);
	}
	return 0;
}

/* The log is at home with @len bytes or more, or gone. */
static int sync_home(const struct container *c, const char *path, uint64_t len)
{
	struct store home = placed_home(c->store);
	struct stat st;
	int h = store_open(&home, path, O_RDONLY | STORE_BRIEFLY, 0), ret;

	if (h < 0)
		return h;
	ret = home.ops->fstat(&home, h, &st);
	if (!ret && datalog_len(&st) < len)
		ret = -EIO;
	if (!ret)
		ret = home.ops->sync(&home, h, false);
	store_close(&home, &h);
	return ret;
}

/*
 * With places: no error may make a log near look like one at home. A part of that may be there, of which a
 * sync would say that it is all.
 */
static int sync_placed(const struct container *c, const char *log, const char *path, uint64_t len)
{
	int near = placed_near(c->store, path), ret = -ENOENT;

	if (near < 0 && near != -EREMOTE)
		return near;
	if (near > 0)
		ret = place_syncs_near(c->store) ? place_sync_file(c->store, path) :
						   carry_part(c, log, len, true);
	if (ret == -EREMOTE)
		return -EIO;
	if (ret != -ENOENT) /* else it has been moved */
		return ret;
	/* what was not synced before this host was started need not be there any more */
	ret = sync_home(c, path, near == -EREMOTE && name_is_ours(name_of(path)) ? len : 0);
	return ret == -ENOENT && near == -EREMOTE ? -EREMOTE : ret;
}

/* The log is closed, and its backend is not there. Parity of it has been synced. */
static int sync_gone(const struct container *c, const char *log, uint64_t len)
{
	char path[CONTAINER_PATH_LEN];

	if (parities_cover(c, log, len))
		return 0;
	container_path(c, log, path);
	spread_tell_gone_of(c->store, path);
	return -EIO;
}

/*
 * Sync one log, unless it is that of @own, and note that in the index: after a power failure a reader
 * believes the log as far as the note says. A log that is gone was voided by a truncation. *@others: it is
 * not that of @own. Maps need no note of a log that this process writes: it counts as a block of @own.
 */
static int sync_log(const struct container *c, const char *index, const struct synced_log *log,
		    struct writer *own, bool *others)
{
	struct index_block block = { .pid = log->pid, .seq = log->seq, .log_len = log->len, .synced = true };
	char rest[CONTAINER_PATH_LEN], path[CONTAINER_PATH_LEN];
	uint32_t pid = 0, seq = 0;
	uint64_t uncounted = 0, *indexed_len = &uncounted;
	int ret;

	if (own)
		name_log_numbers(own->tail.log_name, &pid, &seq);
	if (own && pid == log->pid && seq == log->seq) {
		tail_note_sum(&own->tail, &block);
		indexed_len = &own->indexed_len;
	} else {
		*others = true;
		name_log_of_block(index, &block, rest);
		container_path(c, rest, path);
		ret = c->store->under ? sync_placed(c, rest, path, log->len) :
					store_sync_path(c->store, path, false);
		if (ret == -EREMOTE)
			return sync_gone(c, rest, log->len);
		if (ret)
			return ret == -ENOENT ? 0 : ret;
	}
	ret = add_to_index(c, &block, indexed_len);
	/* Who may only read cannot note it. The bytes are safe all the same, and their checksums tell so. */
	return !own && may_only_read(ret) ? 0 : ret;
}

/* Returns whether there were any. */
static int sync_logs(const struct container *c, const char *index, void *buf, size_t len,
		     struct writer *own, bool *others)
{
	struct synced_log *logs = NULL;
	size_t nr = 0;
	int ret = find_logs(c, index, buf, len, &logs, &nr);

	for (size_t i = 0; i < nr && !ret; i++)
		ret = sync_log(c, index, &logs[i], own, others);
	mem_free(logs);
	return ret ? ret : nr > 0;
}

/*
 * What was synced near alone has the id's complement in the mark: a process that syncs home begins again.
 */
static bool is_marked(const struct container *c, const struct notice_mark *mark, uint64_t id)
{
	return mark->index_id == id || (place_syncs_near(c->store) && mark->index_id == ~id);
}

/* From where on the index at @h has not been synced, up to @mark->index_len, which is its length now. */
static int sync_index(const struct container *c, const char *index, int h, struct notice_mark *mark,
		      struct writer *own, bool *others)
{
	struct store *s = c->store;
	struct store_identity id;
	struct node_index idx = { 0 };
	uint64_t from;
	int ret = store_identify(s, h, &id); /* a later one may well have the inode of one that was removed */

	if (ret)
		return ret;
	from = is_marked(c, mark, id.id) && mark->index_len <= round_up_u64(id.len, 8) ? mark->index_len : 0;
	if (!is_marked(c, mark, id.id))
		*others = true; /* its name is new */
	mark->index_id = place_syncs_near(c->store) ? ~id.id : id.id;
	if (id.len <= from)
		return 0;
	container_path(c, index, idx.path);
	ret = node_index_read(&idx, s, h, from, id.len);
	if (!ret)
		ret = idx.damaged ? -EIO : sync_logs(c, index, idx.buf, idx.len, own, others);
	node_index_close(&idx);
	if (ret > 0)
		ret = s->ops->sync(s, h, false);
	mark->index_len = round_up_u64(id.len, 8);
	return ret;
}

/* All logs that this host's index names are there, or covered by parity. 0; -EIO, with one line; -errno. */
static int check_logs(const struct container *c)
{
	char index[CONTAINER_PATH_LEN], rest[CONTAINER_PATH_LEN], path[CONTAINER_PATH_LEN];
	struct synced_log *logs = NULL;
	struct node_index idx;
	struct stat st;
	size_t nr = 0;
	int ret;

	name_index_here(c, index);
	ret = node_index_open(&idx, c, index);
	if (ret)
		return ret == -ENOENT ? 0 : ret;
	ret = find_logs(c, index, idx.buf, idx.len, &logs, &nr);
	for (size_t i = 0; i < nr && !ret; i++) {
		struct index_block block = { .pid = logs[i].pid, .seq = logs[i].seq };

		name_log_of_block(index, &block, rest);
		container_path(c, rest, path);
		if (c->store->ops->stat(c->store, path, &st) == -EREMOTE)
			ret = sync_gone(c, rest, logs[i].len);
	}
	mem_free(logs);
	node_index_close(&idx);
	return ret;
}

/* Those of a backend that is not there were of logs that nobody needs, or that parity has. */
static int sync_spread_names(const struct container *c, const char *dir)
{
	int ret = spread_sync_names(c->store, dir);

	return ret == -EREMOTE ? check_logs(c) : ret;
}

int durable_sync_names(const struct container *c)
{
	char hostdir[32], path[CONTAINER_PATH_LEN];
	int ret;

	snprintf(hostdir, sizeof(hostdir), "hostdir.%u", name_hostdir(c));
	container_path(c, hostdir, path);
	ret = sync_spread_names(c, path);
	if (!ret)
		ret = store_sync_path(c->store, path, true);
	return ret ? ret : store_sync_path(c->store, c->dir, true);
}

/* The names in the hostdir @dir, near too if its logs are synced there. */
static int sync_hostdir(const struct container *c, const char *dir)
{
	struct store *s = c->store;
	int ret = place_syncs_near(s) ? place_sync_names(s, dir, host_name(), strlen(host_name())) : -ENOENT;

	if (ret == -ENOENT)
		ret = sync_spread_names(c, dir);
	if (ret)
		return ret == -EREMOTE ? -EIO : ret;
	return store_sync_path(s, dir, true);
}

/* With the notice's lock, if that can be had: two that sync do not do the same work. */
static int sync_locked(const struct container *c, struct writer *own, struct notice_mark *mark)
{
	struct store *s = c->store;
	char hostdir[32], index[CONTAINER_PATH_LEN], path[CONTAINER_PATH_LEN];
	bool first = !mark->index_id, names = own && !own->names_synced;
	int h, ret = adopt(c, own, false);

	if (ret)
		return ret;
	snprintf(hostdir, sizeof(hostdir), "hostdir.%u", name_hostdir(c));
	name_index_here(c, index);
	container_path(c, index, path);
	h = store_open(s, path, O_RDONLY | STORE_BRIEFLY, 0);
	if (h == -ENOENT)
		return 0;
	ret = h < 0 ? h : sync_index(c, index, h, mark, own, &names);
	if (h >= 0)
		store_close(s, &h);
	/* The names of new logs, and that of a kept map that they took away. */
	container_path(c, hostdir, path);
	if (!ret && names)
		ret = sync_hostdir(c, path);
	if (!ret && first)
		ret = durable_sync_way(c);
	else if (!ret && names)
		ret = store_sync_path(s, c->dir, true);
	if (!ret && own)
		own->names_synced = true;
	return ret ? ret : first;
}

int durable_sync(const struct container *c, struct writer *own, bool *insist)
{
	struct store *s = c->store;
	struct notice_mark mark = { 0 };
	bool locked = false;
	int h = notice_open(c, O_RDWR | O_CREAT), ret;

	if (h == -ENOENT || h == -EIDRM) /* no process of this host has written, or nothing is left of that */
		return 0;
	if (h >= 0) { /* else without its help */
		ret = store_try_lock(s, h);
		if (ret == -EBUSY && !store_locked(s, h)) /* by one who only reads: no process is syncing */
			ret = -EOPNOTSUPP;
		if (ret == -EBUSY && !*insist) {
			store_close(s, &h);
			return ret;
		}
		locked = !ret;
		*insist = ret == -EBUSY;
		mark = notice_read_mark(s, h);
	}
	ret = sync_locked(c, own, &mark);
	if (h < 0)
		return ret;
	if (ret >= 0)
		notice_write_mark(s, h, mark);
	if (locked)
		store_unlock(s, h);
	store_close(s, &h);
	return ret;
}

bool durable_is_busy(const struct container *c)
{
	int h = notice_open(c, O_RDWR);
	bool busy = h >= 0 && store_locked(c->store, h);

	if (h >= 0)
		store_close(c->store, &h);
	return busy;
}
