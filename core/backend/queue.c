/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lines of the queue.
 */
#include "core/backend/queue.h"

#include "core/backend/host.h"

#include <stdio.h>
#include <unistd.h>

#define TRIES 10 /* each time a helper has removed it meanwhile */

void queue_path(char *path)
{
	snprintf(path, STORE_PATH_LEN, PLFS_DIR_NAME "/queue.%s.%u", host_name(), (unsigned)geteuid());
}

/* Others may make files in .plfs. */
static bool is_own(const struct stat *st)
{
	return store_may_write(st) && st->st_uid == geteuid();
}

/* 1: the file has lost its name. */
static int add_line(struct store *s, const char *path, int h, const char *line)
{
	struct stat st, now;
	uint64_t at;
	ssize_t n = store_append(s, h, line, QUEUE_LINE_LEN, &at);
	int ret;

	if (n != QUEUE_LINE_LEN)
		return n < 0 ? (int)n : -ENOSPC;
	ret = s->ops->fstat(s, h, &st);
	if (!ret && !is_own(&st))
		ret = -EPERM;
	if (ret)
		return ret;
	ret = s->ops->stat(s, path, &now);
	return ret == -ENOENT || (!ret && now.st_ino != st.st_ino) ? 1 : ret;
}

int queue_add(struct store *home, const uint8_t *id)
{
	char path[STORE_PATH_LEN], line[QUEUE_LINE_LEN + 1];
	bool made;
	int h, ret = 1;

	for (int i = 0; i < STUB_ID_LEN; i++)
		snprintf(line + 2 * i, 3, "%02x", id[i]);
	line[QUEUE_LINE_LEN - 1] = '\n';
	queue_path(path);
	for (int tries = 0; ret > 0 && tries < TRIES; tries++) {
		h = store_open_or_make(home, path, O_RDWR | STORE_BRIEFLY, 0600, &made);
		if (h < 0)
			return h;
		ret = add_line(home, path, h, line);
		if (!ret)
			return h;
		store_close(home, &h);
	}
	return ret > 0 ? -ENOENT : ret;
}

bool queue_parse(const char *line, uint8_t *id)
{
	for (int i = 0; i < 2 * STUB_ID_LEN; i++) {
		const char *digits = "0123456789abcdef", *at = line[i] ? strchr(digits, line[i]) : NULL;

		if (!at)
			return false;
		id[i / 2] = (uint8_t)(id[i / 2] << 4 | (at - digits));
	}
	return true;
}
