/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whose an orphan is: near.HOST in it says so. Without one the place has the answer for all that is in it.
 */
#include "core/admin/places/orphan.h"

#include "core/admin/places/hostdirs.h"
#include "core/backend/names.h"
#include "core/backend/near_host.h"
#include "core/backend/origin.h"
#include "core/base/io.h"

bool orphan_is_being_removed(const char *name)
{
	size_t len = strlen(name), end = strlen(STORE_GONE);

	return len == 2 * STUB_ID_LEN + end && !strcmp(name + len - end, STORE_GONE);
}

static uint64_t read_origin(int dir, const char *name)
{
	int fd = io_openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	uint8_t raw[PLACE_LEN];
	struct place p = { .origin = 0 };

	if (fd < 0)
		return 0;
	if (io_pread_all(fd, raw, sizeof(raw), 0) != sizeof(raw) || place_decode(&p, raw))
		p.origin = 0;
	io_close(fd);
	return p.origin;
}

static int find_origin(void *arg, int fd, const char *name, unsigned char type)
{
	enum dropping_kind kind = name_kind(name);
	uint64_t *origin = arg;

	(void)type;
	*origin = kind == DROPPING_NEAR || kind == DROPPING_SPREAD ? read_origin(fd, name) : 0;
	return *origin != 0;
}

bool orphan_is_of(struct store *home, int top, int dir, const char *name)
{
	uint64_t origin = 0;

	if (!hostdirs_each(dir, name, find_origin, &origin))
		return false;
	return origin ? origin == origin_identity(home) : origin_is(home, top, ".");
}
