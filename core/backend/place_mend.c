/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Mending a near.HOST by the other one, or by the logs that it should lead to.
 */
#include "core/backend/place.h"

#include "core/backend/names.h"
#include "core/backend/near_file.h"
#include "core/base/sys.h"

#include <stdio.h>

static bool is_same_dir(const char *a, const char *b)
{
	struct stat st, other;

	return !sys.fstatat(AT_FDCWD, a, &st, 0) && !sys.fstatat(AT_FDCWD, b, &other, 0) &&
	       st.st_dev == other.st_dev && st.st_ino == other.st_ino;
}

/*
 * The lock is held, exclusively. Two that are whole and lead here differ where the removal of the one near
 * did not reach the disk, and another was made since.
 */
static int mend_locked(struct store *home, const char *dir, const char *host, const char *top, mode_t mode,
		       struct place_dir *near)
{
	uint8_t here[PLACE_LEN], there[PLACE_LEN];
	char path[STORE_PATH_LEN], file[STORE_PATH_LEN];
	struct place p, q;
	int ret = near_file_path(path, dir, near_file_name(file, host, strlen(host))), found;

	if (ret)
		return ret;
	ret = near_file_read_locked(near, dir, file, here, &p);
	found = near_file_read(home, dir, file, there, &q);
	if ((ret && ret != -ENODATA) || (found && found != -ENOENT && found != -EBADMSG))
		return ret && ret != -ENODATA ? ret : found;
	if (!found && !ret && !memcmp(here, there, PLACE_LEN))
		return 0;
	if (!found) {
		ret = is_same_dir(q.path, top) ? near_file_write_locked(near, there) : -EREMOTE;
		return ret ? ret : near->store.ops->sync(&near->store, near->lock, false);
	}
	if (!ret && !is_same_dir(p.path, top))
		return -EREMOTE;
	ret = ret ? near_file_fill(home, near, dir, host, top, 0) : 0;
	if (!ret)
		ret = near->store.ops->sync(&near->store, near->lock, false);
	return ret ? ret : near_file_write_home(home, path, mode, near, true);
}

/* Where the place takes no lock, as it is read-only. */
static bool leads_there(struct store *home, const char *dir, const char *host, const char *top)
{
	struct place_dir near;
	struct place p;

	if (place_enter(home, dir, host, strlen(host), &near))
		return false;
	place_leave(&near);
	return !place_read(home, dir, host, strlen(host), &p) && is_same_dir(p.path, top);
}

int place_mend(struct store *home, const char *top, const char *dir, const char *host, mode_t mode)
{
	char name[STORE_PATH_LEN];
	struct store under = store_bare(home);
	struct place_dir near;
	bool made;
	int ret = place_open_top(home, top, dir, &near);

	if (ret)
		return ret;
	near_file_name(name, host, strlen(host));
	near.lock = store_open_or_make(&near.store, name, O_RDWR | STORE_BRIEFLY, 0644, &made);
	ret = near.lock < 0 ? near.lock : store_lock(&near.store, near.lock);
	if (!ret)
		ret = near_file_is_gone(&near) ? -ENOENT : mend_locked(&under, dir, host, top, mode, &near);
	place_leave(&near);
	return ret == -EROFS && leads_there(home, dir, host, top) ? 0 : ret;
}
