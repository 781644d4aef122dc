/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Data logs as files.
 */
#include "core/dropping/datalog.h"

#include "core/backend/container_dirs.h"
#include "core/backend/host.h"
#include "core/backend/names.h"
#include "core/backend/placed.h"
#include "core/backend/twin.h"
#include "core/base/bytes.h"
#include "core/base/crc32c.h"
#include "core/base/alloc.h"
#include "core/base/msg.h"

#include <stdio.h>

static int write_log_header(const struct container *c, int h, uint64_t now_ns, const char *name)
{
	uint8_t buf[4096] = { 0 };
	uint32_t pid, seq;
	ssize_t n;

	name_log_numbers(name, &pid, &seq);

	memcpy(buf, DATALOG_MAGIC, 8);
	put_le32(buf + 8, DATALOG_VERSION);
	memcpy(buf + 16, c->id, STUB_ID_LEN);
	put_le64(buf + 32, now_ns);
	put_le64(buf + 40, pid);
	put_le32(buf + 48, INDEX_CHUNK_LEN);
	put_le32(buf + 52, seq);
	put_le32(buf + 56, 0); /* compat */
	put_le32(buf + 60, 0); /* incompat */
	snprintf((char *)buf + 64, 64, "%s", host_name());
	put_le32(buf + 12, crc32c(0, buf, DATALOG_HEADER_LEN));
	n = c->store->ops->pwrite(c->store, h, buf, sizeof(buf), 0);
	return n == sizeof(buf) ? 0 : n < 0 ? (int)n : -ENOSPC;
}

/* No log at home may have its name: it may have been elsewhere once. */
static int create_elsewhere(const struct container *c, const char *path)
{
	struct store home = store_bare(c->store);
	struct stat st;
	int ret = home.ops->stat(&home, path, &st);

	return ret == -ENOENT ? placed_create(c->store, path, container_file_mode(c, false), c->gid,
					      container_file_mode(c, false), c->hold) :
	       ret	      ? ret :
				-EEXIST;
}

int datalog_create(const struct container *c, uint64_t now_ns, char *name)
{
	static unsigned next_seq;
	char rest[CONTAINER_PATH_LEN], path[CONTAINER_PATH_LEN];
	int tries = 0;
	uint32_t seq;
	int h, ret;

	/*
	 * No later log may have the name of one that was removed, though its process has the same number, as
	 * after an exec: a reader's older map may lead to that name.
	 */
	for (;;) {
		seq = (uint32_t)(now_ns >> 20) + __atomic_fetch_add(&next_seq, 1, __ATOMIC_RELAXED);
		if (c->spreads) /* the lowest bits say where it is (spread.h) */
			seq = seq * (SPREAD_SLOTS + 1) + (c->hold ? c->hold->slot : 0);
		name_make_log(seq, name);
		name_here(c, name, rest);
		container_path(c, rest, path);
		h = c->near || c->hold ? create_elsewhere(c, path) :
					 container_open(c, path, O_RDWR | O_CREAT | O_EXCL,
							container_file_mode(c, false));
		if (h == -EEXIST) /* of another process with our number, of another pid namespace */
			continue;
		if (h != -ENOENT || tries++)
			break;
		ret = container_add_hostdir(c, name_hostdir(c));
		if (ret)
			return ret;
	}
	if (h < 0)
		return h == -ENOENT ? -EIDRM : h;
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
	const char *slash = strchr(path, '/');

	if (memcmp(buf + 16, c->id, STUB_ID_LEN) || get_le32(buf + 48) != INDEX_CHUNK_LEN ||
	    !memchr(buf + 64, 0, 64))
		return false;
	return slash && name_is_of(slash + 1, (const char *)buf + 64, get_le64(buf + 40), get_le32(buf + 52));
}

int datalog_check_header(const struct container *c, const char *path, const uint8_t *buf)
{
	uint8_t copy[DATALOG_HEADER_LEN];

	memcpy(copy, buf, sizeof(copy));
	put_le32(copy + 12, 0);
	if (memcmp(buf, DATALOG_MAGIC, 8) || crc32c(0, copy, sizeof(copy)) != get_le32(buf + 12))
		return -EIO;
	if (get_le32(buf + 8) != DATALOG_VERSION) {
		msg_error("%s/%s: data log of version %u, this library's is %d", c->dir, path,
			  get_le32(buf + 8), DATALOG_VERSION);
		return -EPROTONOSUPPORT;
	}
	if (get_le32(buf + 60) & ~DATALOG_INCOMPAT_KNOWN) {
		msg_error(
			"%s/%s: data log with features that this library does not know (incompat 0x%x): use the one that wrote it",
			c->dir, path, get_le32(buf + 60));
		return -EPROTONOSUPPORT;
	}
	return is_header_of(c, path, buf) ? 0 : -EIO;
}

int datalog_check(const struct container *c, const char *path, int h)
{
	uint8_t buf[DATALOG_HEADER_LEN];
	ssize_t n = c->store->ops->pread(c->store, h, buf, sizeof(buf), 0);

	return n == sizeof(buf) ? datalog_check_header(c, path, buf) : n < 0 ? (int)n : -EIO;
}

static int open_checked(const struct container *c, const char *path, int flags)
{
	char full[CONTAINER_PATH_LEN];
	int h, ret;

	container_path(c, path, full);
	h = store_open(c->store, full, flags, 0);
	if (h < 0)
		return h;
	for (int i = 0; i < 2; i++) {
		ret = datalog_check(c, path, h);
		if (!ret)
			return h;
		if (!twin_turn(c->store, h)) /* near and at home, and only one is damaged */
			break;
	}
	store_close(c->store, &h);
	return ret;
}

bool datalog_is_elsewhere(const struct container *c, const char *path)
{
	struct place *p = mem_alloc(sizeof(*p)); /* too large for a small stack */
	char full[CONTAINER_PATH_LEN];
	bool is_elsewhere;

	container_path(c, path, full);
	is_elsewhere = !p || placed_is_elsewhere(c->store, full, p); /* it is read with care then */
	mem_free(p);
	return is_elsewhere;
}

int datalog_open(const struct container *c, const char *path, bool growing)
{
	int uncached = c->store->uncached;

	/* with each release of its host more follows what is at home; its live file is not seen from here */
	if (unlikely(uncached && !growing))
		growing = datalog_is_elsewhere(c, path);
	return open_checked(c, path, O_RDONLY | (growing ? uncached : 0));
}

int datalog_open_to_write(const struct container *c, const char *path, int flags, struct stat *st)
{
	int h = open_checked(c, path, O_RDWR | flags);
	int ret = h < 0 ? h : c->store->ops->fstat(c->store, h, st);

	if (!ret && !store_may_write(st))
		ret = -EMLINK;
	if (!ret)
		return h;
	if (h >= 0)
		store_close(c->store, &h);
	return ret;
}
