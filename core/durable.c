/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Syncing what others have written as well: how far the node index has been synced is remembered beside it, so that each block,
 * and the log it speaks of, is synced once, by whoever comes first.
 */
#include "durable.h"

#include "alloc.h"
#include "bytes.h"
#include "log.h"

#include <fcntl.h>
#include <stdio.h>

#define OFF_MARK 8
#define MARK_LEN 24
#define MARK_MAGIC 0x3252554453464c50 /* "PLFSDUR2" */
#define COPY_LEN 65536

struct mark {
	uint64_t index_id, index_len; /* 0, 0: there is none */
};

static struct mark read_mark(struct store *s, int h)
{
	struct mark mark = { 0 };
	uint8_t buf[MARK_LEN];

	if (s->ops->pread(s, h, buf, sizeof(buf), OFF_MARK) == sizeof(buf) &&
	    get_le64(buf + 16) == (get_le64(buf) ^ get_le64(buf + 8) ^ MARK_MAGIC))
		mark = (struct mark){ get_le64(buf), get_le64(buf + 8) };
	return mark;
}

/* Best effort: without it the next sync does the same again. */
static void write_mark(struct store *s, int h, struct mark mark)
{
	uint8_t buf[MARK_LEN];

	put_le64(buf, mark.index_id);
	put_le64(buf + 8, mark.index_len);
	put_le64(buf + 16, mark.index_id ^ mark.index_len ^ MARK_MAGIC);
	s->ops->pwrite(s, h, buf, sizeof(buf), OFF_MARK);
}

static int sync_path(struct store *s, const char *path, bool dir)
{
	int h = store_open(s, path, O_RDONLY | STORE_BRIEFLY | (dir ? O_DIRECTORY : 0), 0);
	int ret = h < 0 ? h : s->ops->sync(s, h, dir);

	if (h >= 0)
		store_close(s, &h);
	return ret;
}

/* Each directory above @path. */
static int sync_parents(struct store *s, const char *path)
{
	char dir[CONTAINER_PATH_LEN];
	int ret = 0;

	snprintf(dir, sizeof(dir), "%s", path);
	for (char *slash = strrchr(dir, '/'); slash && !ret; slash = strrchr(dir, '/')) {
		*slash = '\0';
		ret = sync_path(s, dir, true);
	}
	return ret ? ret : sync_path(s, ".", true);
}

int durable_sync_way(const struct container *c)
{
	int ret = sync_path(c->store, c->dir, true);

	return ret ? ret : sync_parents(c->store, c->dir);
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
 * Write the staged bytes up to @end, which records speak of, to where their owner will write them: what a record speaks of is
 * never changed, so it does not matter who does it, nor how often.
 */
static int write_staged(const struct container *c, const char *live, const char *log, uint64_t from, uint64_t end)
{
	struct store *s = c->store;
	char path[CONTAINER_PATH_LEN];
	struct stat st;
	uint8_t *buf;
	ssize_t n = 1;
	int h, ret = 0;

	if (from >= end)
		return 0;
	container_path(c, log, path);
	h = store_open(s, path, O_RDWR | STORE_BRIEFLY, 0);
	if (h < 0)
		return h;
	buf = mem_alloc(COPY_LEN);
	ret = buf ? s->ops->fstat(s, h, &st) : -ENOMEM;
	if (!ret && !store_may_write(&st))
		ret = -EIO;
	while (!ret && from < end && n > 0) { /* 0: its owner has written them meanwhile */
		n = stage_load_bytes(c, live, from, buf, (size_t)min_u64(end - from, COPY_LEN));
		if (n > 0) {
			ssize_t done = s->ops->pwrite(s, h, buf, (size_t)n, DROPPING_DATA_OFF + from);

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

/* Encode @block, and append it to the node index of this host. */
static int add_to_index(const struct container *c, struct index_block *block)
{
	void *buf = mem_alloc(index_block_max_len(block));
	int ret = buf ? dropping_append_index(c, buf, index_block_encode(block, buf)) : -ENOMEM;

	mem_free(buf);
	return ret;
}

/* Say in the node index what the live file @path says, unless it is there already. */
static int adopt_live(const struct container *c, const char *path)
{
	struct index_block block = { 0 };
	struct index_record *records;
	struct stage_state state;
	char log[CONTAINER_PATH_LEN];
	uint64_t digest;
	int ret = stage_digest(c, path, &digest);

	if (!ret && stage_adopted(c, path) == digest)
		return 0;
	if (!ret)
		ret = stage_load(c, path, &state, &records);
	if (ret)
		return ret == -ENOENT || ret == -EBADMSG ? 0 : ret; /* damage was told of: nothing in it can be kept */
	if (state.nr_records) {
		snprintf(log, sizeof(log), "%.*s%s", (int)(strchr(path, '/') + 1 - path), path, state.log_name);
		dropping_log_numbers(state.log_name, &block.pid, &block.seq);
		block.nr_records = (uint32_t)state.nr_records;
		block.records = records;
		block.log_len = end_of(records, state.nr_records);
		ret = write_staged(c, path, log, state.flushed_len, block.log_len);
		if (!ret)
			ret = add_to_index(c, &block);
		if (!ret)
			stage_set_adopted(c, path, digest);
	}
	mem_free(records);
	return ret == -EACCES || ret == -EPERM || ret == -ENOENT ? 0 : ret;
}

struct adopt_arg {
	const struct container *c;
	const char *hostdir, *own; /* own: name of the live file to leave out */
	int ret;
};

static int adopt_entry(void *arg, const char *name)
{
	struct adopt_arg *aa = arg;
	char path[CONTAINER_PATH_LEN];
	int ret;

	if (!dropping_live_is_ours(name) || !strcmp(name + 5, aa->own) ||
	    snprintf(path, sizeof(path), "%s/%s", aa->hostdir, name) >= (int)sizeof(path))
		return 0;
	ret = adopt_live(aa->c, path);
	aa->ret = aa->ret ? aa->ret : ret;
	return 0;
}

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
static int find_logs(const struct container *c, const char *index, void *buf, size_t len, struct synced_log **logs, size_t *nr)
{
	struct node_index idx = { .buf = buf, .len = len };
	struct index_block block;
	size_t cap = 0;

	container_path(c, index, idx.path);
	while (node_index_next(&idx, &block) > 0) {
		if (block.synced)
			continue;
		if (*nr == cap) {
			void *p = mem_realloc(*logs, (cap = cap ? 2 * cap : 16) * sizeof(**logs));

			if (!p)
				return -ENOMEM;
			*logs = p;
		}
		note_log(*logs, nr, &block);
	}
	return 0;
}

/*
 * Sync one, unless it is @own, and say so in the index, where whoever finds it after a power failure learns that he need not doubt. One that
 * has gone was voided by a truncation. *@others: it is not @own.
 */
static int sync_log(const struct container *c, const char *index, const struct synced_log *log, const struct writer *own, bool *others)
{
	struct index_block block = { .pid = log->pid, .seq = log->seq, .log_len = log->len, .synced = true };
	char rest[CONTAINER_PATH_LEN], path[CONTAINER_PATH_LEN];
	uint32_t pid = 0, seq = 0;
	int ret;

	if (own)
		dropping_log_numbers(own->log_name, &pid, &seq);
	if (!own || pid != log->pid || seq != log->seq) {
		*others = true;
		dropping_log_path(index, &block, rest);
		container_path(c, rest, path);
		ret = sync_path(c->store, path, false);
		if (ret)
			return ret == -ENOENT ? 0 : ret;
	}
	return add_to_index(c, &block);
}

/* Returns whether there were any. */
static int sync_logs(const struct container *c, const char *index, void *buf, size_t len, const struct writer *own, bool *others)
{
	struct synced_log *logs = NULL;
	size_t nr = 0;
	int ret = find_logs(c, index, buf, len, &logs, &nr);

	for (size_t i = 0; i < nr && !ret; i++)
		ret = sync_log(c, index, &logs[i], own, others);
	mem_free(logs);
	return ret ? ret : nr > 0;
}

/* From where on the index at @h has not been synced, up to @mark->index_len, which is its length now. */
static int sync_index(const struct container *c, const char *index, int h, struct mark *mark, const struct writer *own, bool *others)
{
	struct store *s = c->store;
	struct store_identity id;
	struct node_index idx = { 0 };
	uint64_t from;
	int ret = s->ops->identify(s, h, &id); /* a later one may well have the inode of one that was removed */

	if (ret)
		return ret;
	from = mark->index_id == id.id && mark->index_len <= round_up_u64(id.len, 8) ? mark->index_len : 0;
	if (mark->index_id != id.id)
		*others = true; /* its name is new */
	mark->index_id = id.id;
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

/* With the notice's lock, if that can be had: two that sync do not do the same work. */
static int sync_locked(const struct container *c, struct writer *own, struct mark *mark)
{
	struct store *s = c->store;
	char hostdir[32], index[CONTAINER_PATH_LEN], path[CONTAINER_PATH_LEN];
	struct adopt_arg aa = { .c = c, .hostdir = hostdir, .own = own ? own->log_name + 5 : "" };
	bool first = !mark->index_id, names = own && !own->names_synced;
	int h, ret;

	snprintf(hostdir, sizeof(hostdir), "hostdir.%u", dropping_hostdir(c));
	container_path(c, hostdir, path);
	ret = s->ops->list(s, path, adopt_entry, &aa);
	ret = ret ? ret : aa.ret;
	if (ret)
		return ret;
	snprintf(index, sizeof(index), "%s/index.%s", hostdir, dropping_host());
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
		ret = sync_path(s, path, true);
	if (!ret && first)
		ret = durable_sync_way(c);
	else if (!ret && names)
		ret = sync_path(s, c->dir, true);
	if (!ret && own)
		own->names_synced = true;
	return ret ? ret : first;
}

static int open_notice(const struct container *c, int flags)
{
	char rest[CONTAINER_PATH_LEN], path[CONTAINER_PATH_LEN];

	snprintf(rest, sizeof(rest), "hostdir.%u/notice.%s", dropping_hostdir(c), dropping_host());
	container_path(c, rest, path);
	return store_open(c->store, path, O_RDWR | flags | STORE_BRIEFLY, container_file_mode(c, true));
}

int durable_sync(const struct container *c, struct writer *own, bool *insist)
{
	struct store *s = c->store;
	struct mark mark = { 0 };
	bool locked = false;
	int h = open_notice(c, O_CREAT), ret;

	if (h == -ENOENT) /* nobody of this host has written */
		return 0;
	if (h >= 0) { /* else without its help */
		ret = s->ops->try_lock(s, h);
		if (ret == -EBUSY && !*insist) {
			store_close(s, &h);
			return ret;
		}
		locked = !ret;
		*insist = ret == -EBUSY;
		mark = read_mark(s, h);
	}
	ret = sync_locked(c, own, &mark);
	if (h < 0)
		return ret;
	if (ret >= 0)
		write_mark(s, h, mark);
	if (locked)
		s->ops->unlock(s, h);
	store_close(s, &h);
	return ret;
}

bool durable_is_busy(const struct container *c)
{
	int h = open_notice(c, 0);
	bool busy = h >= 0 && c->store->ops->locked(c->store, h);

	if (h >= 0)
		store_close(c->store, &h);
	return busy;
}
