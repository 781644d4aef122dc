/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The notice as a file: its word and its sync mark. Mapping the word is core/read/watch.c's, syncing
 * core/write/durable.c's.
 */
#include "core/dropping/notice.h"

#include "core/backend/container_dirs.h"
#include "core/backend/host.h"
#include "core/backend/names.h"
#include "core/base/bytes.h"
#include "core/base/crc32c.h"
#include "core/base/hash.h"
#include "core/base/stamp.h"

#include <fcntl.h>

#define OFF_MARK 40
#define MARK_LEN 24
#define MARK_MAGIC 0x3252554453464c50 /* "PLFSDUR2" */

static_assert(OFF_MARK == NOTICE_HEADER_LEN, "the mark is not written with the word");

static void encode_header(const struct container *c, uint8_t *p)
{
	const char *host = host_name();

	memset(p, 0, NOTICE_HEADER_LEN);
	memcpy(p, NOTICE_MAGIC, 8);
	put_le32(p + 8, crc32c(0, host, strlen(host)));
	memcpy(p + CONTAINER_ID_OFF, c->id, STUB_ID_LEN);
}

bool notice_has_header(const struct container *c, const uint8_t *head)
{
	uint8_t want[NOTICE_HEADER_LEN];

	encode_header(c, want);
	return !memcmp(head, want, NOTICE_OFF_WORD);
}

/*
 * A killed process leaves a part of the header, or a disk that was full zeros. A mark or leases may be behind
 * them already.
 */
bool notice_is_one(const struct container *c, const struct stat *st, const uint8_t *head, size_t len)
{
	uint8_t want[NOTICE_HEADER_LEN];

	encode_header(c, want);
	if (len >= NOTICE_HEADER_LEN && !memcmp(head, want, NOTICE_OFF_WORD))
		return true;
	return container_is_unborn(st) &&
	       (is_zero(head, min_size(len, NOTICE_HEADER_LEN)) ||
		!memcmp(head, want, min_size(len, NOTICE_OFF_WORD)));
}

int notice_open(const struct container *c, int flags)
{
	char rest[CONTAINER_PATH_LEN], path[CONTAINER_PATH_LEN];
	mode_t mode = container_file_mode(c, true) | CONTAINER_UNBORN;
	int h;

	name_notice_here(c, rest);
	container_path(c, rest, path);
	flags |= STORE_BRIEFLY;
	if (!c->filled || !(flags & O_CREAT))
		return container_open_shared(c, path, flags, mode, notice_is_one);
	h = container_open_shared(c, path, flags & ~O_CREAT, mode, notice_is_one);
	if (h != -ENOENT)
		return h;
	return container_is_purged(c) ? -EIDRM : container_open_shared(c, path, flags, mode, notice_is_one);
}

/*
 * A number that no process has used before. A stamp alone is not enough: processes that have seen one of the
 * future count on from there, each for itself. The hash is each program's own, and the processes that it has
 * forked differ in the moment.
 */
static uint64_t new_word(void)
{
	const uint64_t moment[2] = { stamp_next(), stamp_fine_ns() };

	return moment[0] << 32 | hash_bytes(moment, sizeof(moment));
}

int notice_change(const struct container *c, int h)
{
	uint8_t head[NOTICE_HEADER_LEN];
	ssize_t n;

	encode_header(c, head);
	put_le64(head + NOTICE_OFF_WORD, new_word());
	n = c->store->ops->pwrite(c->store, h, head, sizeof(head), 0);
	return n == (ssize_t)sizeof(head) ? 0 : n < 0 ? (int)n : -EIO;
}

int notice_open_here(const struct container *c)
{
	int ret, h = notice_open(c, O_RDWR | O_CREAT);

	if (h != -ENOENT)
		return h;
	ret = container_add_hostdir(c, name_hostdir(c));
	h = ret ? ret : notice_open(c, O_RDWR | O_CREAT);
	return h == -ENOENT ? -EIDRM : h;
}

void notice_raise(const struct container *c)
{
	int h = notice_open(c, O_RDWR | O_CREAT);

	if (h < 0)
		return;
	notice_change(c, h);
	store_close(c->store, &h);
}

struct notice_mark notice_read_mark(struct store *s, int h)
{
	struct notice_mark mark = { 0 };
	uint8_t buf[MARK_LEN];

	if (s->ops->pread(s, h, buf, sizeof(buf), OFF_MARK) == sizeof(buf) &&
	    get_le64(buf + 16) == (get_le64(buf) ^ get_le64(buf + 8) ^ MARK_MAGIC))
		mark = (struct notice_mark){ get_le64(buf), get_le64(buf + 8) };
	return mark;
}

void notice_write_mark(struct store *s, int h, struct notice_mark mark)
{
	uint8_t buf[MARK_LEN];

	put_le64(buf, mark.index_id);
	put_le64(buf + 8, mark.index_len);
	put_le64(buf + 16, mark.index_id ^ mark.index_len ^ MARK_MAGIC);
	s->ops->pwrite(s, h, buf, sizeof(buf), OFF_MARK);
}
