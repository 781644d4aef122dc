/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Data logs and node indexes as files.
 */
#include "dropping.h"

#include "alloc.h"
#include "bytes.h"
#include "crc32c.h"
#include "log.h"
#include "own.h"
#include "sys.h"

#include <stdio.h>
#include <stdlib.h>

#define BOOT_LEN 64

static void read_boot(char *boot)
{
	int fd = own_open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);

	memset(boot, 0, BOOT_LEN);
	if (fd < 0)
		return;
	if (own_read(fd, boot, BOOT_LEN - 1) < 0)
		*boot = '\0';
	own_close(fd);
}

uint32_t dropping_boot(void)
{
	static uint32_t known; /* whoever comes first stores the same */
	uint32_t boot = __atomic_load_n(&known, __ATOMIC_RELAXED);
	char text[BOOT_LEN];

	if (boot)
		return boot;
	read_boot(text);
	boot = *text ? crc32c(0, text, strlen(text)) | 1 : 0;
	__atomic_store_n(&known, boot, __ATOMIC_RELAXED);
	return boot;
}

const char *dropping_host(void)
{
	static const char *known;
	static char spare[64];
	const char *host = __atomic_load_n(&known, __ATOMIC_ACQUIRE), *mine;
	char name[256] = "host", boot[BOOT_LEN], clean[41], made[sizeof(spare)];
	size_t len = 0;

	if (likely(host != NULL))
		return host;
	sys.gethostname(name, sizeof(name) - 1);
	for (const char *p = name; *p && len < sizeof(clean) - 1; p++)
		if ((*p >= '0' && *p <= '9') || (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || *p == '-' ||
		    *p == '_')
			clean[len++] = *p;
	clean[len] = '\0';
	read_boot(boot);
	snprintf(made, sizeof(made), "%s-%08x", clean, crc32c(crc32c(0, name, strlen(name)), boot, strlen(boot)));
	/* Two threads may get here at once: nobody sees a name that is not whole. Without memory both write the same. */
	mine = mem_strdup(made);
	if (!mine)
		return memcpy(spare, made, sizeof(spare));
	if (__atomic_compare_exchange_n(&known, &host, mine, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return mine;
	mem_free((void *)mine);
	return host;
}

bool dropping_is_ours(const char *name)
{
	const char *host = dropping_host(), *at = strchr(name, '.');
	size_t len = strlen(host);

	return at && !strncmp(at + 1, host, len) && (at[1 + len] == '.' || !at[1 + len]);
}

bool dropping_live_is_ours(const char *name)
{
	return !strncmp(name, "live.", 5) && dropping_is_ours(name);
}

bool dropping_is_running(const char *name)
{
	uint32_t pid, seq;

	dropping_log_numbers(name, &pid, &seq);
	return dropping_live_is_ours(name) && (pid_t)pid != sys.getpid() &&
	       (!sys.syscall(SYS_kill, pid, 0) || errno == EPERM);
}

void dropping_live_path(const char *log_path, char *path)
{
	const char *name = strchr(log_path, '/') + 1;

	snprintf(path, CONTAINER_PATH_LEN, "%.*slive.%s", (int)(name - log_path), log_path, name + sizeof("data.") - 1);
}

void dropping_index_path(const char *live_path, char *path)
{
	const char *host = strchr(live_path, '/') + sizeof("/live.") - 1;

	snprintf(path, CONTAINER_PATH_LEN, "%.*sindex.%.*s", (int)(host - (sizeof("live.") - 1) - live_path), live_path,
		 (int)strcspn(host, "."), host);
}

unsigned dropping_hostdir(const struct container *c)
{
	const char *host = dropping_host();

	return crc32c(0, host, strlen(host)) % c->nr_hostdirs;
}

static int write_log_header(const struct container *c, int h, uint64_t now_ns, const char *name)
{
	uint8_t buf[4096] = { 0 };
	uint32_t pid, seq;
	ssize_t n;

	dropping_log_numbers(name, &pid, &seq);

	memcpy(buf, DROPPING_MAGIC, 8);
	put_le32(buf + 8, DROPPING_VERSION);
	memcpy(buf + 16, c->id, STUB_ID_LEN);
	put_le64(buf + 32, now_ns);
	put_le64(buf + 40, pid);
	put_le32(buf + 48, INDEX_CHUNK_LEN);
	put_le32(buf + 52, seq);
	snprintf((char *)buf + 64, 64, "%s", dropping_host());
	put_le32(buf + 12, crc32c(0, buf, DROPPING_HEADER_LEN));
	n = c->store->ops->pwrite(c->store, h, buf, sizeof(buf), 0);
	return n == sizeof(buf) ? 0 : n < 0 ? (int)n : -ENOSPC;
}

int dropping_create_log(const struct container *c, uint64_t now_ns, char *name)
{
	static unsigned next_seq;
	char path[CONTAINER_PATH_LEN];
	unsigned hostdir = dropping_hostdir(c);
	int tries = 0;
	int h, ret;

	for (;;) {
		snprintf(name, INDEX_LOG_NAME_LEN, "data.%s.%d.%u", dropping_host(), (int)sys.getpid(),
			 __atomic_fetch_add(&next_seq, 1, __ATOMIC_RELAXED));
		snprintf(path, sizeof(path), "%s/hostdir.%u/%s", c->dir, hostdir, name);
		h = container_open(c, path, O_RDWR | O_CREAT | O_EXCL, container_file_mode(c, false));
		if (h == -EEXIST) /* of an earlier process with our number */
			continue;
		if (h != -ENOENT || tries++)
			break;
		ret = container_make(c, hostdir);
		if (ret)
			return ret;
	}
	if (h < 0)
		return h;
	ret = write_log_header(c, h, now_ns, name);
	if (ret) {
		store_close(c->store, &h);
		c->store->ops->unlink(c->store, path);
		return ret;
	}
	return h;
}

/* Whether it is the header of the log @path in @c: two logs that have changed places are seen by that. */
static bool is_header_of(const struct container *c, const char *path, const uint8_t *buf)
{
	char name[INDEX_LOG_NAME_LEN];

	if (memcmp(buf + 16, c->id, STUB_ID_LEN) || get_le32(buf + 48) != INDEX_CHUNK_LEN || !memchr(buf + 64, 0, 64))
		return false;
	snprintf(name, sizeof(name), "/data.%.63s.%llu.%u", (const char *)buf + 64,
		 (unsigned long long)get_le64(buf + 40), get_le32(buf + 52));
	return !strcmp(path + strcspn(path, "/"), name);
}

int dropping_check_header(const struct container *c, const char *path, const uint8_t *buf)
{
	uint8_t copy[DROPPING_HEADER_LEN];

	memcpy(copy, buf, sizeof(copy));
	put_le32(copy + 12, 0);
	if (memcmp(buf, DROPPING_MAGIC, 8) || crc32c(0, copy, sizeof(copy)) != get_le32(buf + 12))
		return -EIO;
	if (get_le32(buf + 8) != DROPPING_VERSION) {
		log_error("%s/%s: data log of version %u, this library's is %d", c->dir, path, get_le32(buf + 8),
			  DROPPING_VERSION);
		return -EPROTONOSUPPORT;
	}
	return is_header_of(c, path, buf) ? 0 : -EIO;
}

int dropping_open_log(const struct container *c, const char *path, bool growing)
{
	uint8_t buf[DROPPING_HEADER_LEN];
	char full[CONTAINER_PATH_LEN];
	ssize_t n;
	int h, ret;

	container_path(c, path, full);
	h = store_open(c->store, full, O_RDONLY | (growing ? c->store->uncached : 0), 0);
	if (h < 0)
		return h;
	n = c->store->ops->pread(c->store, h, buf, sizeof(buf), 0);
	ret = n == sizeof(buf) ? dropping_check_header(c, path, buf) : n < 0 ? (int)n : -EIO;
	if (!ret)
		return h;
	store_close(c->store, &h);
	return ret;
}

static void index_path(const struct container *c, char *path)
{
	snprintf(path, CONTAINER_PATH_LEN, "%s/hostdir.%u/index.%s", c->dir, dropping_hostdir(c), dropping_host());
}

static int open_index(const struct container *c, char *path)
{
	struct store *s = c->store;
	mode_t mode = container_file_mode(c, true);
	int h, ret;

	index_path(c, path);
	h = store_open(s, path, O_RDWR | STORE_BRIEFLY, 0);
	if (h != -ENOENT)
		return h;
	h = container_open(c, path, O_RDWR | O_CREAT | STORE_BRIEFLY, mode);
	if (h == -ENOENT) {
		ret = container_make(c, dropping_hostdir(c));
		if (ret)
			return ret;
		h = container_open(c, path, O_RDWR | O_CREAT | STORE_BRIEFLY, mode);
	}
	return h;
}

void dropping_log_numbers(const char *name, uint32_t *pid, uint32_t *seq)
{
	const char *second = strrchr(name, '.'), *first = second;

	*pid = *seq = 0;
	while (first && first > name && *--first != '.')
		;
	if (!first || first == name)
		return;
	*pid = (uint32_t)strtoul(first + 1, NULL, 10);
	*seq = (uint32_t)strtoul(second + 1, NULL, 10);
}

void dropping_log_path(const char *index, const struct index_block *block, char *path)
{
	const char *slash = strchr(index, '/');

	snprintf(path, CONTAINER_PATH_LEN, "%.*sdata.%s.%u.%u", slash ? (int)(slash + 1 - index) : 0, index,
		 slash ? slash + sizeof("/index.") - 1 : "", block->pid, block->seq);
}

int dropping_lock_index(const struct container *c)
{
	struct store *s = c->store;
	char path[CONTAINER_PATH_LEN];
	struct stat st;
	int h, ret;

	index_path(c, path);
	h = store_open(s, path, O_RDWR | STORE_BRIEFLY, 0);
	if (h < 0)
		return h;
	ret = s->ops->lock(s, h);
	if (!ret)
		ret = s->ops->fstat(s, h, &st);
	if (!ret && !st.st_nlink)
		ret = -ENOENT;
	if (ret)
		store_close(s, &h);
	return ret ? ret : h;
}

void dropping_unlock_index(const struct container *c, int h)
{
	c->store->ops->unlock(c->store, h);
	store_close(c->store, &h);
}

int dropping_append_index(const struct container *c, const void *block, size_t len)
{
	struct store *s = c->store;
	char path[CONTAINER_PATH_LEN];
	struct stat st;
	uint64_t end;
	ssize_t n;
	int h, ret;

	for (;;) {
		h = open_index(c, path);
		ret = h < 0 ? h : s->ops->lock(s, h);
		if (ret == -EOPNOTSUPP)
			ret = 0;
		if (!ret)
			ret = s->ops->fstat(s, h, &st);
		if (ret || st.st_nlink)
			break;
		store_close(s, &h); /* collected while we waited for the lock */
	}
	if (!ret && !store_may_write(&st)) {
		log_error("%s: has another name as well: not written to", path);
		ret = -EIO;
	}
	if (ret) {
		if (h >= 0)
			store_close(s, &h);
		return ret;
	}
	end = round_up_u64((uint64_t)st.st_size, 8);
	n = s->ops->pwrite(s, h, block, len, end);
	if (n != (ssize_t)len) {
		ret = n < 0 ? (int)n : -ENOSPC;
		s->ops->truncate(s, h, (uint64_t)st.st_size);
	}
	s->ops->unlock(s, h);
	n = store_close(s, &h);
	return ret ? ret : (int)n;
}

/* Far above what all processes of a host can say of a file: a merge takes 2^32 records at most. */
#define NODE_INDEX_MAX (16ULL << 30)
/* No block has so many zeros that a piece of the file is nothing else, which is what a hole in it looks like. */
#define NODE_INDEX_PIECE INDEX_BLOCK_MAX
#define NODE_INDEX_HOLE_MAX (1ULL << 26) /* more was not left by a machine that went down */

static bool is_hole(const uint8_t *p, size_t len)
{
	return p[0] == 0 && !memcmp(p, p + 1, len - 1);
}

/*
 * Holes are left out: zeros at the end say nothing, and any before it are damage. So what a file takes in memory, it
 * takes on its disk.
 */
int node_index_read(struct node_index *idx, struct store *s, int h, uint64_t from, uint64_t size)
{
	uint64_t hole = 0;
	size_t cap = 0;
	ssize_t n = 0;

	if (size > NODE_INDEX_MAX) {
		log_error("%s: damaged node index: %llu bytes, of which libplfs writes %llu at most", idx->path,
			  (unsigned long long)size, NODE_INDEX_MAX);
		return -EIO;
	}
	for (uint64_t at = from; at < size && !idx->damaged; at += (size_t)n) {
		size_t want = (size_t)min_u64(NODE_INDEX_PIECE, size - at);
		uint8_t *piece;

		if (idx->len + want > cap) {
			cap = idx->len + want;
			piece = mem_realloc(idx->buf, cap);
			if (!piece)
				return -ENOMEM;
			idx->buf = piece;
		}
		piece = (uint8_t *)idx->buf + idx->len;
		n = s->ops->pread(s, h, piece, want, at);
		if (n <= 0) /* cut meanwhile: what there was */
			return (int)n;
		if (is_hole(piece, (size_t)n) && (hole || (size_t)n == NODE_INDEX_PIECE))
			hole += (size_t)n;
		else if (!hole)
			idx->len += (size_t)n;
		if (hole > NODE_INDEX_HOLE_MAX || (hole && !is_hole(piece, (size_t)n))) {
			log_error("%s: damaged node index: %llu bytes of zeros in front of byte %llu", idx->path,
				  (unsigned long long)hole, (unsigned long long)at);
			idx->damaged++;
		}
	}
	return 0;
}

int node_index_open(struct node_index *idx, const struct container *c, const char *path)
{
	struct store *s = c->store;
	struct stat st;
	int h, ret;

	memset(idx, 0, sizeof(*idx));
	container_path(c, path, idx->path);
	h = store_open(s, idx->path, O_RDONLY | STORE_BRIEFLY | s->uncached, 0);
	if (h < 0)
		return h;
	ret = s->ops->fstat(s, h, &st);
	if (!ret) {
		ret = node_index_read(idx, s, h, 0, (uint64_t)st.st_size);
		if (ret)
			log_error("%s: the node index cannot be read: %s", idx->path, strerror(-ret));
	}
	if (ret)
		node_index_close(idx);
	store_close(s, &h);
	return ret;
}

void node_index_close(struct node_index *idx)
{
	mem_free(idx->buf);
	idx->buf = NULL;
}

/*
 * Blocks that are none may each claim to reach to the end of the file: a megabyte of them would take a second, a gigabyte
 * weeks. What writers leave behind does not overlap like that.
 */
bool node_index_is_hopeless(struct node_index *idx, const uint8_t *p, size_t left)
{
	idx->in_vain += min_size(index_block_claims(p, left), left);
	return idx->in_vain > 16 * (uint64_t)idx->len + (1 << 20);
}

int node_index_next(struct node_index *idx, struct index_block *block)
{
	while (idx->pos < idx->len) {
		const uint8_t *p = (const uint8_t *)idx->buf + idx->pos;
		size_t left = idx->len - idx->pos;
		ssize_t n = index_block_parse(block, p, left);

		if (n > 0) {
			idx->pos += (size_t)n;
			return 1;
		}
		if (n == -EPROTONOSUPPORT) {
			log_error("%s: index block at byte %zu is of another version than this library's", idx->path,
				  idx->pos);
			return (int)n;
		}
		if (n != -ENODATA && !index_block_is_torn(p, left) && !idx->damaged++)
			log_error("%s: damaged index block at byte %zu", idx->path, idx->pos);
		if (node_index_is_hopeless(idx, p, left)) {
			log_error("%s: damaged index blocks, one over the other, from byte %zu on", idx->path, idx->pos);
			idx->damaged++;
			idx->pos = idx->len;
			break;
		}
		idx->pos += index_block_skip(p, left);
	}
	return 0;
}

int dropping_read_index(const struct container *c, const char *path,
			int (*fn)(void *arg, const struct index_block *block), void *arg, unsigned *damaged)
{
	struct index_block block;
	struct node_index idx;
	int ret = node_index_open(&idx, c, path);

	if (ret)
		return ret;
	while ((ret = node_index_next(&idx, &block)) > 0) {
		ret = fn(arg, &block);
		if (ret)
			break;
	}
	*damaged += idx.damaged;
	node_index_close(&idx);
	return ret;
}
