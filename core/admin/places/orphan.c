/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whose an orphan is: near.HOST in it says so. Without one the place has the answer for all that is in it.
 */
#include "core/admin/places/orphan.h"

#include "core/backend/names.h"
#include "core/backend/near_host.h"
#include "core/backend/origin.h"
#include "core/base/io.h"
#include "core/store/dirs.h"

bool orphan_is_being_removed(const char *name)
{
	size_t len = strlen(name), end = strlen(STORE_GONE);

	return len == 2 * STUB_ID_LEN + end && !strcmp(name + len - end, STORE_GONE);
}

struct finding {
	uint64_t origin; /* 0: not known as yet */
	bool in_hostdir;
};

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
	struct finding *f = arg;
	enum dropping_kind kind;
	int dir;

	(void)type;
	if (f->in_hostdir) {
		kind = name_kind(name);
		f->origin = kind == DROPPING_NEAR || kind == DROPPING_SPREAD ? read_origin(fd, name) : 0;
		return f->origin != 0;
	}
	dir = strncmp(name, "hostdir.", 8) ? -1 : dirs_open(fd, name);
	if (dir < 0)
		return 0;
	f->in_hostdir = true;
	dirs_list(dir, find_origin, f);
	f->in_hostdir = false;
	io_close(dir);
	return f->origin != 0;
}

bool orphan_is_of(struct store *home, int top, int dir, const char *name)
{
	struct finding f = { .origin = 0 };
	int fd = dirs_open(dir, name);

	if (fd < 0)
		return false;
	dirs_list(fd, find_origin, &f);
	io_close(fd);
	return f.origin ? f.origin == origin_identity(home) : origin_is(home, top, ".");
}
