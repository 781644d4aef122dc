/* SPDX-License-Identifier: BSD-3-Clause */
#include "test/lib/look.h"

#include "test/lib/scratch.h"

static int ignore_piece(void *arg, uint64_t logical_off, uint64_t len, const char *log, uint64_t log_off)
{
	(void)arg, (void)logical_off, (void)len, (void)log, (void)log_off;
	return 0;
}

static int ignore_place(void *arg, const struct plfs_place *p)
{
	(void)arg, (void)p;
	return 0;
}

static int ignore_parity(void *arg, const struct plfs_parity *p)
{
	(void)arg, (void)p;
	return 0;
}

static int look_into(struct plfs_file *f)
{
	struct plfs_info info;
	uint64_t bytes;
	int ret = plfs_get_info(f, &info);

	ret = ret ? ret : plfs_get_reclaimable(f, &info, &bytes);
	return ret ? ret : plfs_get_map(f, ignore_piece, NULL);
}

int look_at(const char *name)
{
	char path[PATH_MAX];
	struct plfs_mount *m = lpath(name, path);
	struct plfs_now now = { .nr_writers = 0 };
	uint64_t nr, bytes;
	struct lfile l;
	int ret = ltry(&l, name, O_RDONLY);

	if (ret)
		return ret;
	ret = l.f ? look_into(l.f) : 0;
	lclose(&l);
	ret = ret ? ret : plfs_places_of(m, AT_FDCWD, path, ignore_place, NULL);
	ret = ret ? ret : plfs_parity_of(m, AT_FDCWD, path, ignore_parity, NULL);
	ret = ret ? ret : plfs_staged_of(m, AT_FDCWD, path, &nr, &bytes);
	ret = ret ? ret : plfs_look_now(m, AT_FDCWD, path, &now);
	plfs_now_release(&now);
	return ret > 0 ? 0 : ret;
}
