/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The codec of near.HOST.
 */
#include "core/backend/near_host.h"

#include "core/base/bytes.h"
#include "core/base/crc32c.h"

#include <stdio.h>
#include <string.h>

void place_encode(const struct place *p, uint8_t *buf)
{
	memset(buf, 0, PLACE_LEN);
	memcpy(buf, PLACE_MAGIC, 8);
	put_le32(buf + 8, PLACE_VERSION);
	memcpy(buf + 16, p->id, STUB_ID_LEN);
	memcpy(buf + 32, p->token, PLACE_TOKEN_LEN);
	put_le64(buf + 48, p->created_ns);
	put_le32(buf + 56, 0); /* compat */
	put_le32(buf + 60, p->features);
	snprintf((char *)buf + 64, sizeof(p->host), "%s", p->host);
	snprintf((char *)buf + 128, PLACE_PATH_LEN, "%s", p->path);
	put_le64(buf + 1272, p->origin);
	put_le32(buf + 12, crc32c(0, buf, PLACE_LEN));
}

int place_decode(struct place *p, const uint8_t *buf)
{
	uint8_t copy[PLACE_LEN];

	memcpy(copy, buf, sizeof(copy));
	put_le32(copy + 12, 0);
	if (memcmp(buf, PLACE_MAGIC, 8))
		return -EIO;
	if (get_le32(buf + 8) != PLACE_VERSION || get_le32(buf + 60) & ~PLACE_INCOMPAT_KNOWN)
		return -EPROTONOSUPPORT;
	if (crc32c(0, copy, sizeof(copy)) != get_le32(buf + 12) || !memchr(buf + 64, 0, sizeof(p->host)) ||
	    !memchr(buf + 128, 0, PLACE_PATH_LEN))
		return -EIO;
	memcpy(p->id, buf + 16, STUB_ID_LEN);
	memcpy(p->token, buf + 32, PLACE_TOKEN_LEN);
	p->created_ns = get_le64(buf + 48);
	p->features = get_le32(buf + 60);
	memcpy(p->host, buf + 64, sizeof(p->host));
	memcpy(p->path, buf + 128, PLACE_PATH_LEN);
	p->origin = get_le64(buf + 1272);
	return 0;
}

void place_host(const struct place *p, char *out, size_t len)
{
	const char *dash = strrchr(p->host, '-');

	snprintf(out, len, "%.*s", dash ? (int)(dash - p->host) : (int)strlen(p->host), p->host);
}

int place_near_len(const char *path)
{
	int len = (int)strlen(path);

	for (int slashes = 0; len > 1 && slashes < 2;)
		slashes += path[--len] == '/';
	return len;
}
