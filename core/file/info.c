/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A logical file from outside, for the plfs command: what it consists of, and where its bytes lie.
 */
#include "core/plfs_admin.h"

#include "core/backend/container_dirs.h"
#include "core/backend/names.h"
#include "core/backend/stub_use.h"
#include "core/dropping/datalog.h"
#include "core/dropping/node_index.h"
#include "core/base/hash.h"
#include "core/base/io.h"
#include "core/file/file.h"

#include <stdio.h>

#define BATCH_MIN 64
#define BATCH_MAX 4096
#define PIECES_MAX (1u << 20) /* of a file that are counted one by one: somebody may forge an endless index */

struct counted_log {
	UT_hash_handle hh;
	uint64_t end; /* of its bytes that are counted */
	char path[];
};

struct info_arg {
	struct plfs_info *info;
	const struct container *c;
	const char *index;        /* whose blocks are being read */
	struct counted_log *logs; /* those of which anything is counted */
	uint64_t generation_ns;   /* records from before it are void */
	uint64_t end;             /* of all records */
	bool asks_map;            /* for the size: records alone do not tell it */
};

/* NULL: no memory. */
static struct counted_log *log_of(struct info_arg *ia, const char *path)
{
	struct counted_log *log;
	size_t len = strlen(path);

	HASH_FIND(hh, ia->logs, path, len, log);
	if (log)
		return log;
	log = mem_zalloc(sizeof(*log) + len + 1);
	if (!log)
		return NULL;
	memcpy(log->path, path, len + 1);
	HASH_ADD(hh, ia->logs, path, len, log);
	if (log->hh.tbl)
		return log;
	mem_free(log);
	return NULL;
}

static void release_logs(struct info_arg *ia)
{
	struct counted_log *log, *next;

	HASH_ITER(hh, ia->logs, log, next) {
		HASH_DEL(ia->logs, log);
		mem_free(log);
	}
}

/*
 * Records come in the order of their log. Some come twice: a process that syncs puts into the index what
 * others have in their live files (write/durable.c), and they do it again.
 */
static void add_record(struct info_arg *ia, struct counted_log *log, const struct index_record *rec)
{
	uint64_t end = index_record_log_end(rec);

	if (rec->type != INDEX_WRITE) {
		ia->asks_map = true;
		return;
	}
	if (rec->stamp_ns > ia->generation_ns)
		ia->end = max_u64(ia->end, index_record_end(rec));
	if (end <= log->end)
		return;
	ia->info->written_bytes += end - max_u64(rec->log_off, log->end);
	log->end = end;
}

static int add_block_info(void *arg, const struct index_block *block)
{
	struct info_arg *ia = arg;
	char path[CONTAINER_PATH_LEN];
	struct index_cursor cur = { 0 };
	struct index_record rec;
	struct counted_log *log;

	ia->info->nr_records += block->nr_records;
	name_log_of_block(ia->index, block, path);
	log = log_of(ia, path);
	while (log && index_block_record(block, &cur, &rec) > 0)
		add_record(ia, log, &rec);
	return log ? 0 : -ENOMEM;
}

static int add_dropping_info(void *arg, const char *path, const char *name, enum dropping_kind kind)
{
	struct info_arg *ia = arg;
	struct plfs_info *info = ia->info;
	char full[CONTAINER_PATH_LEN];
	struct stat st;
	unsigned damaged = 0;

	(void)name;
	container_path(ia->c, path, full);
	if (ia->c->store->ops->stat(ia->c->store, full, &st))
		return 0;
	info->disk_bytes += (uint64_t)st.st_blocks * 512;
	if (kind == DROPPING_DATA) {
		info->nr_logs++;
		info->log_bytes += datalog_len(&st);
	} else if (kind == DROPPING_LIVE || kind == DROPPING_INDEX) {
		info->index_bytes += (uint64_t)st.st_size;
	}
	info->nr_writers += kind == DROPPING_LIVE;
	if (kind == DROPPING_INDEX) {
		info->nr_hosts++;
		ia->index = path;
		ia->asks_map |= node_index_each(ia->c, path, add_block_info, ia, &damaged) || damaged;
	}
	return 0;
}

/* The end of a log, of which the node index has what comes before. */
static int add_live_info(void *arg, const char *path, const char *name, enum dropping_kind kind)
{
	struct info_arg *ia = arg;
	struct index_record *records = NULL;
	char log_path[CONTAINER_PATH_LEN];
	struct counted_log *log;
	struct live_state state;

	(void)name;
	if (kind != DROPPING_LIVE || live_load(ia->c, path, &state, &records))
		return 0;
	name_log_of_live(path, log_path);
	log = log_of(ia, log_path);
	ia->info->nr_records += state.nr_records;
	for (uint64_t i = 0; log && i < state.nr_records; i++)
		add_record(ia, log, &records[i]);
	mem_free(records);
	return 0;
}

/* Whether the file has a container, which becomes *@c, by the header as it is now. */
static bool find_logs(struct plfs_file *f, struct container *c, struct info_arg *ia)
{
	struct inode *ino = f->ino;
	const struct stub *stub = &ino->v.stub;
	bool logged;

	inode_look_bare(ino, file_begin(f));
	logged = stub->has_container;
	*c = ino->c;
	ia->generation_ns = stub->generation_ns;
	ia->asks_map = !logged || stub->in_body || stub->cut_ns || stub->moving;
	file_end(f);
	return logged;
}

/*
 * The size: of a file that is closed the stub and the ends of all records tell it, and no map is made. The
 * stub is looked at after the droppings: a log publishes its end before it closes.
 */
static int find_size(struct plfs_file *f, const struct info_arg *ia, uint64_t *size)
{
	bool asks_map = ia->asks_map || ia->info->nr_writers || HASH_COUNT(ia->logs) < ia->info->nr_logs;
	off_t known = asks_map ? plfs_size(f) : 0;
	struct stat st;

	if (known < 0)
		return (int)known;
	if (!asks_map && sys.fstat(f->fd, &st))
		return -errno;
	*size = asks_map ? (uint64_t)known : max_u64(stub_body_len(st.st_size), ia->end);
	return 0;
}

int plfs_get_info(struct plfs_file *f, struct plfs_info *info)
{
	int saved ERRNO_KEPT = errno, ret;
	const struct inode *ino = f->ino;
	struct container c;
	struct info_arg ia = { .info = info, .c = &c };
	struct dirs_sum sum;
	struct stat st;
	bool logged;
	int root;

	memset(info, 0, sizeof(*info));
	info->in_use = stub_in_use(file_marked_fd(f));
	if (!sys.fstat(f->fd, &st))
		info->disk_bytes = info->space_bytes = (uint64_t)st.st_blocks * 512;
	info->nr_inodes = 1;
	logged = find_logs(f, &c, &ia);
	if (!logged)
		return find_size(f, &ia, &info->size);
	for (int i = 0; i < STUB_ID_LEN; i++)
		snprintf(info->id + 2 * i, 3, "%02x", c.id[i]);
	snprintf(info->container, sizeof(info->container), "%.*s/%s", PATH_MAX - 66, ino->m->backend, c.dir);
	info->generation_ns = ia.generation_ns;
	container_list_there(&c, add_dropping_info, &ia);
	if (info->nr_writers)
		container_list_there(&c, add_live_info, &ia);
	ret = find_size(f, &ia, &info->size);
	release_logs(&ia);
	if (ret)
		return ret;
	root = store_fd(c.store, c.store->root);
	if (root >= 0 && !dirs_measure(root, c.dir, &sum)) {
		info->space_bytes += sum.bytes;
		info->nr_inodes += sum.nr_files + sum.nr_dirs;
	}
	return 0;
}

int plfs_is_stray(int fd, const char **backend)
{
	int saved ERRNO_KEPT = errno;
	uint8_t head[PLFS_BODY_OFF];
	ssize_t n = io_pread_all(fd, head, sizeof(head), 0);
	struct container c;
	struct stub stub;
	struct stat st;

	*backend = NULL;
	if (n < 0)
		return (int)n;
	if (!stub_is_one(head, (size_t)n, false) || stub_decode(&stub, head, (size_t)n))
		return PLFS_STRAY_NONE;
	if (!stub.has_container)
		return PLFS_STRAY_BODY;
	for (int i = 0; i < mount_count() && !*backend; i++) {
		struct plfs_mount *m = mount_at(i);

		container_init(&c, &m->store, stub.id, 0);
		if (!m->store.ops->stat(&m->store, c.dir, &st))
			*backend = m->backend;
	}
	return PLFS_STRAY_CONTAINER;
}

const char plfs_in_stub[] = "(the stub itself)";
const char plfs_lost[] = "(lost with its host)";

typedef int map_fn(void *arg, uint64_t logical_off, uint64_t len, const char *log, uint64_t log_off);

/*
 * [off, end), which no log holds: where are bytes of it in the stub? The kernel's offset may be the
 * program's, and is put back.
 */
static int body_pieces(int fd, uint64_t off, uint64_t end, map_fn *fn, void *arg)
{
	off_t before = sys.lseek(fd, 0, SEEK_CUR);
	int ret = 0;

	while (off < end && !ret) {
		off_t data = sys.lseek(fd, (off_t)(PLFS_BODY_OFF + off), SEEK_DATA), hole;
		uint64_t from = data >= 0      ? min_u64((uint64_t)data - PLFS_BODY_OFF, end) :
				errno == ENXIO ? end :
						 off;

		hole = from < end ? sys.lseek(fd, (off_t)(PLFS_BODY_OFF + from), SEEK_HOLE) : 0;
		if (from > off)
			ret = fn(arg, off, from - off, NULL, 0);
		off = hole > 0 ? min_u64((uint64_t)hole - PLFS_BODY_OFF, end) : end;
		if (!ret && off > from)
			ret = fn(arg, from, off - from, plfs_in_stub, PLFS_BODY_OFF + from);
	}
	sys.lseek(fd, before, SEEK_SET);
	return ret;
}

/* A piece of the file, and the log that has it. */
struct found {
	struct index_piece piece;
	bool lost;
	char log[CONTAINER_PATH_LEN];
};

static bool has_no_log(const struct index_piece *piece)
{
	return piece->log_no == INDEX_LOG_HOLE || piece->log_no == INDEX_LOG_CUT;
}

/* -EIO: the maps name a log that is not there, or a kept map was cut. */
static int find_piece(struct reader *r, uint64_t off, uint64_t len, struct found *found)
{
	struct index_piece *piece = &found->piece;
	int ret = 0;

	reader_lookup(r, off, len, piece);
	found->lost = has_no_log(piece) && r->lacks_hosts;
	if (!has_no_log(piece)) {
		if (piece->log_no < r->logs.nr)
			snprintf(found->log, sizeof(found->log), "%s", r->logs.logs[piece->log_no].path);
		else
			ret = -EIO;
	}
	return reader_is_broken(r) ? -EIO : ret;
}

/* Up to @nr pieces of [off, end), all of one moment. Returns their number; -EIO: the first one is bad. */
static int find_pieces(struct plfs_file *f, uint64_t off, uint64_t end, struct found *found, int nr)
{
	struct index_walk walks[LEVELS_MAX] = { 0 };
	struct reader *r = &f->ino->v.r;
	int n, ret = 0;

	file_begin(f);
	levels_walk_begin(&r->levels, walks);
	for (n = 0; n < nr && off < end; off += found[n++].piece.len) {
		ret = find_piece(r, off, end - off, &found[n]);
		if (ret)
			break;
	}
	levels_walk_end(&r->levels);
	file_end(f);
	return n ? n : ret;
}

/*
 * Call @fn for each piece of [0, end), without the lock: it may read the file. They are found some at a time,
 * and more each time: who wants the first few alone does not wait for all.
 */
static int each_piece(struct plfs_file *f, uint64_t end, int (*fn)(void *arg, const struct found *found),
		      void *arg)
{
	struct found *found = mem_alloc(BATCH_MAX * sizeof(*found));
	uint64_t off = 0;
	int ret = found ? 0 : -ENOMEM;

	for (int batch = BATCH_MIN; !ret && off < end; batch = batch < BATCH_MAX ? 2 * batch : BATCH_MAX) {
		int n = find_pieces(f, off, end, found, batch);

		ret = n < 0 ? n : 0;
		for (int i = 0; i < n && !ret; i++) {
			off += found[i].piece.len;
			ret = fn(arg, &found[i]);
		}
	}
	mem_free(found);
	return ret;
}

struct map_arg {
	int fd;
	uint64_t body_end;
	map_fn *fn;
	void *arg;
};

static int give_piece(void *arg, const struct found *found)
{
	const struct index_piece *piece = &found->piece;
	uint64_t off = piece->logical_off, end = off + piece->len;
	const struct map_arg *m = arg;
	int ret = 0;

	if (found->lost)
		return m->fn(m->arg, off, piece->len, plfs_lost, 0);
	if (!has_no_log(piece))
		return m->fn(m->arg, off, piece->len, found->log, piece->log_off);
	if (piece->log_no == INDEX_LOG_HOLE && off < m->body_end) {
		ret = body_pieces(m->fd, off, min_u64(end, m->body_end), m->fn, m->arg);
		off = min_u64(end, m->body_end);
	}
	return ret || off == end ? ret : m->fn(m->arg, off, end - off, NULL, 0);
}

int plfs_get_map(struct plfs_file *f, map_fn *fn, void *arg)
{
	int saved ERRNO_KEPT = errno;
	struct map_arg m = { .fd = f->fd, .fn = fn, .arg = arg };
	off_t size = plfs_size(f);
	bool in_body;

	if (size <= 0)
		return (int)size;
	file_begin(f);
	in_body = f->ino->v.stub.in_body;
	m.body_end = reader_body_end(&f->ino->v.r);
	file_end(f);
	if (in_body)
		return body_pieces(f->fd, 0, (uint64_t)size, fn, arg);
	return each_piece(f, (uint64_t)size, give_piece, &m);
}

struct used_arg {
	uint64_t size, bytes;
	unsigned nr;
};

static int add_used(void *arg, const struct found *found)
{
	struct used_arg *used = arg;
	const struct index_piece *piece = &found->piece;

	if (used->nr++ == PIECES_MAX) {
		used->bytes += used->size - piece->logical_off;
		return 1;
	}
	used->bytes += has_no_log(piece) ? 0 : piece->len;
	return 0;
}

int plfs_get_reclaimable(struct plfs_file *f, const struct plfs_info *info, uint64_t *bytes)
{
	off_t size = plfs_size(f);
	struct used_arg used = { .size = (uint64_t)size };
	int ret = size < 0 ? (int)size : each_piece(f, (uint64_t)size, add_used, &used);

	*bytes = ret < 0 || used.bytes >= info->written_bytes ? 0 : info->written_bytes - used.bytes;
	return ret < 0 ? ret : 0;
}
