/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The library as a whole: start, fork, exec and exit, and the view from outside that the plfs command shows.
 */
#include "plfs.h"

#include "dropping.h"
#include "file.h"
#include "own.h"
#include "sums.h"

#include <stdio.h>
#include <stdlib.h>

static struct config config;

static void read_map(const char *map)
{
	const char *rc = secure_getenv("PLFSRC");
	char err[2 * PATH_MAX + 256] = "";
	int ret = 0;

	if (map && *map) {
		ret = config_parse(&config, map, err, sizeof(err));
		if (ret)
			log_die_config("PLFS_MAP: %s", err);
	} else if (rc && *rc) {
		char text[65536];
		ssize_t n = -1;
		int fd = own_open(rc, O_RDONLY | O_CLOEXEC);

		if (fd >= 0)
			n = own_read(fd, text, sizeof(text) - 1);
		if (n < 0)
			log_die_config("PLFSRC: cannot read \"%s\": %s", rc, strerror(errno));
		own_close(fd);
		text[n] = '\0';
		ret = config_parse_file(&config, text, err, sizeof(err));
		if (ret)
			log_die_config("PLFSRC: %s: %s", rc, err);
	}
	ret = mount_setup(&config, err, sizeof(err));
	if (ret < 0)
		log_die_config("%s", err);
}

int plfs_setup(const char *map)
{
	int saved ERRNO_KEPT = errno;
	const char *consistency, *verify, *debug;
	char err[256];

	sys_init();
	consistency = secure_getenv("PLFS_CONSISTENCY");
	verify = secure_getenv("PLFS_VERIFY");
	debug = secure_getenv("PLFS_DEBUG");
	if (debug && log_init(debug, err, sizeof(err)))
		log_die_config("%s", err);
	if (consistency && !strcmp(consistency, "posix"))
		inode_posix = true;
	else if (consistency && *consistency && strcmp(consistency, "default"))
		log_die_config("PLFS_CONSISTENCY: \"%s\" is neither \"default\" nor \"posix\"", consistency);
	if (verify && *verify) {
		sums_verify = !strcmp(verify, "read");
		if (!sums_verify && strcmp(verify, "off"))
			log_die_config("PLFS_VERIFY: \"%s\" is neither \"read\" nor \"off\"", verify);
	}
	read_map(map ? map : secure_getenv("PLFS_MAP"));
	return config.nr_specs;
}

int plfs_path_map(const char *path, char *out, struct plfs_mount **m)
{
	return mount_path_map(path, out, m);
}

int plfs_path_unmap(const char *path, char *out)
{
	return mount_path_unmap(path, out);
}

int plfs_cwd_class(const char *cwd, struct plfs_mount **m)
{
	return mount_cwd_class(cwd, m);
}

bool plfs_is_root(dev_t dev, ino_t ino)
{
	return mount_is_root(dev, ino);
}

/* ---- processes ---- */

static void sync_one(struct inode *ino, int fd)
{
	ino->impatient = true; /* all are locked */
	inode_sync(ino, fd);
}

void plfs_sync_all(void)
{
	int saved ERRNO_KEPT = errno;

	inode_each(sync_one);
}

static void commit_one(struct inode *ino, int fd)
{
	inode_commit(ino, fd);
	ino->shared = true;
}

void plfs_fork_prepare(void)
{
	int saved ERRNO_KEPT = errno;

	inode_each(commit_one);
	inode_lock_all();
}

void plfs_fork_parent(void)
{
	inode_unlock_all();
}

/*
 * The parent goes on writing its logs; the child opens its own when it writes. Nothing is published for the parent's
 * sake.
 */
static void disown_one(struct inode *ino, int fd)
{
	(void)fd;
	if (ino->writing) {
		writer_forget(&ino->w);
		ino->writing = ino->counted = false;
		reader_release(&ino->r); /* it lacks what the parent wrote since it last read */
	}
	logset_after_fork(&ino->r.logs);
	ino->own_end = 0;
	ino->end_lost = false;
	if (ino->lock_h >= 0)
		store_close(&ino->m->store, &ino->lock_h);
	ino->touched = false;
	ino->record_locks = false;
}

void plfs_fork_child(void)
{
	int saved ERRNO_KEPT = errno;

	inode_unlock_all();
	inode_each(disown_one);
}

static void close_one(struct inode *ino, int fd)
{
	inode_close_writer(ino, fd);
	if (ino->record_locks) /* our descriptors are closed by the kernel, and they go with that */
		log_debug(LOG_REFUSE, "exec: the record locks of a file end with this image");
	ino->shared = true;
}

void plfs_exec_prepare(void)
{
	int saved ERRNO_KEPT = errno;

	inode_each(close_one);
}

void plfs_exit_prepare(void)
{
	int saved ERRNO_KEPT = errno;

	inode_exiting = true;
	inode_each(inode_finish);
}

/* ---- looking inside ---- */

struct info_arg {
	struct plfs_info *info;
	const struct container *c;
};

static int add_block_info(void *arg, const struct index_block *block)
{
	struct plfs_info *info = arg;

	info->nr_records += block->nr_records;
	return 0;
}

static int add_dropping_info(void *arg, const char *path, const char *name, enum dropping_kind kind)
{
	struct info_arg *ia = arg;
	struct plfs_info *info = ia->info;
	char full[CONTAINER_PATH_LEN];
	struct index_record *records = NULL;
	struct stage_state state;
	struct stat st;
	unsigned damaged = 0;

	(void)name;
	container_path(ia->c, path, full);
	if (ia->c->store->ops->stat(ia->c->store, full, &st))
		return 0;
	info->disk_bytes += (uint64_t)st.st_blocks * 512;
	if (kind == DROPPING_DATA) {
		info->nr_logs++;
		info->log_bytes += st.st_size > DROPPING_DATA_OFF ? (uint64_t)st.st_size - DROPPING_DATA_OFF : 0;
	} else if (kind != DROPPING_OTHER) {
		info->index_bytes += (uint64_t)st.st_size;
	}
	if (kind == DROPPING_INDEX) {
		info->nr_hosts++;
		dropping_read_index(ia->c, path, add_block_info, info, &damaged);
	} else if (kind == DROPPING_LIVE) {
		info->nr_writers++;
		if (!stage_load(ia->c, path, &state, &records))
			info->nr_records += state.nr_records;
		mem_free(records);
	}
	return 0;
}

int plfs_get_info(struct plfs_file *f, struct plfs_info *info)
{
	int saved ERRNO_KEPT = errno;
	struct inode *ino = f->ino;
	struct info_arg ia = { .info = info, .c = &ino->c };
	off_t size = plfs_size(f);
	struct stat st;

	memset(info, 0, sizeof(*info));
	if (size < 0)
		return (int)size;
	info->size = (uint64_t)size;
	info->in_use = stub_in_use(file_marked_fd(f));
	if (!sys.fstat(f->fd, &st))
		info->disk_bytes = (uint64_t)st.st_blocks * 512;
	if (!ino->stub.has_container)
		return 0;
	for (int i = 0; i < STUB_ID_LEN; i++)
		snprintf(info->id + 2 * i, 3, "%02x", ino->c.id[i]);
	snprintf(info->container, sizeof(info->container), "%.*s/%s", PATH_MAX - 66, ino->m->backend, ino->c.dir);
	container_list(&ino->c, add_dropping_info, &ia);
	return 0;
}

const char plfs_in_stub[] = "(the stub itself)";

typedef int map_fn(void *arg, uint64_t logical_off, uint64_t len, const char *log, uint64_t log_off);

/*
 * [off, end), which no log holds: where are bytes of it in the stub? The kernel's offset may be the program's, and is
 * put back.
 */
static int body_pieces(int fd, uint64_t off, uint64_t end, map_fn *fn, void *arg)
{
	off_t before = sys.lseek(fd, 0, SEEK_CUR);
	int ret = 0;

	while (off < end && !ret) {
		off_t data = sys.lseek(fd, (off_t)(PLFS_BODY_OFF + off), SEEK_DATA), hole;
		uint64_t from = data >= 0 ? min_u64((uint64_t)data - PLFS_BODY_OFF, end) : errno == ENXIO ? end : off;

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

int plfs_get_map(struct plfs_file *f, map_fn *fn, void *arg)
{
	int saved ERRNO_KEPT = errno;
	struct inode *ino = f->ino;
	off_t size = plfs_size(f);
	uint64_t off = 0, body_end;
	int ret = size < 0 ? (int)size : 0;

	if (ino->stub.in_body && size > 0)
		return body_pieces(f->fd, 0, (uint64_t)size, fn, arg);
	body_end = reader_body_end(&ino->r);
	while (!ret && off < (uint64_t)size) {
		struct index_piece piece;

		reader_lookup(&ino->r, off, (uint64_t)size - off, &piece);
		if (piece.log_no == INDEX_LOG_HOLE && off < body_end)
			piece.len = min_u64(piece.len, body_end - off);
		if (piece.log_no == INDEX_LOG_HOLE && off < body_end)
			ret = body_pieces(f->fd, off, off + piece.len, fn, arg);
		else if (piece.log_no == INDEX_LOG_HOLE || piece.log_no == INDEX_LOG_CUT)
			ret = fn(arg, off, piece.len, NULL, 0);
		else if (piece.log_no >= ino->r.logs.nr)
			ret = -EIO;
		else
			ret = fn(arg, off, piece.len, ino->r.logs.logs[piece.log_no].path, piece.log_off);
		off += piece.len;
	}
	return !ret && reader_is_broken(&ino->r) ? -EIO : ret;
}
