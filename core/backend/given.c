/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The note of a change of owner: its bytes, and its file.
 */
#include "core/backend/given.h"

#include "core/base/bytes.h"
#include "core/base/crc32c.h"

static uint32_t crc_of(const uint8_t *buf)
{
	uint8_t copy[GIVEN_LEN];

	memcpy(copy, buf, sizeof(copy));
	put_le32(copy + 8, 0);
	return crc32c(0, copy, sizeof(copy));
}

static void encode(const struct given *g, uint8_t *buf)
{
	memset(buf, 0, GIVEN_LEN);
	memcpy(buf, GIVEN_MAGIC, 8);
	put_le32(buf + 12, g->from);
	memcpy(buf + 16, g->id, STUB_ID_LEN);
	put_le64(buf + 32, g->number);
	put_le32(buf + 40, g->gid);
	put_le32(buf + 8, crc_of(buf));
}

static bool decode(struct given *g, const uint8_t *buf)
{
	if (memcmp(buf, GIVEN_MAGIC, 8) || get_le32(buf + 8) != crc_of(buf))
		return false;
	g->from = get_le32(buf + 12);
	memcpy(g->id, buf + 16, STUB_ID_LEN);
	g->number = get_le64(buf + 32);
	g->gid = get_le32(buf + 40);
	return true;
}

int given_write(struct store *s, const char *path, const struct given *g)
{
	const int flags = O_RDWR | O_CREAT | O_EXCL | STORE_BRIEFLY;
	uint8_t buf[GIVEN_LEN];
	int ret = 0, h = store_open(s, path, flags, 0444 | S_ISGID);

	if (h == -EEXIST && !s->ops->unlink(s, path))
		h = store_open(s, path, flags, 0444 | S_ISGID);
	if (h < 0)
		return h;
	encode(g, buf);
	if (s->ops->pwrite(s, h, buf, sizeof(buf), 0) != sizeof(buf))
		ret = -EIO;
	store_close(s, &h);
	if (ret)
		s->ops->unlink(s, path);
	return ret;
}

bool given_read(struct store *s, const char *path, struct given *g, uid_t *by)
{
	uint8_t buf[GIVEN_LEN];
	struct stat st;
	int h = store_open(s, path, O_RDONLY | STORE_BRIEFLY, 0);
	bool is = false;

	if (h < 0)
		return false;
	if (!s->ops->fstat(s, h, &st) && store_may_write(&st) &&
	    (st.st_mode & (S_ISGID | S_IXGRP)) == S_ISGID &&
	    s->ops->pread(s, h, buf, sizeof(buf), 0) == sizeof(buf))
		is = decode(g, buf);
	*by = st.st_uid;
	store_close(s, &h);
	return is;
}
