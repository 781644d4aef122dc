/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copying logs from near to home, and removing what has been copied.
 */
#include "core/dropping/carry.h"

#include "core/backend/names.h"
#include "core/backend/placed.h"
#include "core/backend/staged.h"
#include "core/backend/twin.h"
#include "core/base/alloc.h"
#include "core/base/sys.h"
#include "core/dropping/carried.h"
#include "core/dropping/datalog.h"

#include <stdio.h>
#include <unistd.h>

/* The directory near in which @full, the path of a log, is. */
static int enter_near(const struct container *c, const char *full, struct place_dir *near)
{
	const char *name = strrchr(full, '/') + 1, *host;
	char dir[CONTAINER_PATH_LEN];
	size_t len;

	host = name_host(name, &len);
	snprintf(dir, sizeof(dir), "%.*s", (int)(name - 1 - full), full);
	return host ? place_enter(c->store, dir, host, len, near) : -ENOENT;
}

/* The file near itself: what home has of a log would seem to be all if that could not be opened. */
static int open_near(struct carried *k)
{
	struct place_dir near;
	int ret = enter_near(k->c, k->full, &near);

	if (ret)
		return ret;
	k->near = store_open(&near.store, strrchr(k->full, '/') + 1, O_RDONLY | STORE_BRIEFLY, 0);
	place_leave(&near);
	return k->near < 0 ? k->near : 0;
}

/* -ENOENT: it is not near. */
static int begin(struct carried *k, const struct container *c, const char *path)
{
	int ret;

	*k = (struct carried){
		.c = c, .home = placed_home(c->store), .path = path,
		.near = -1, .from = -1, .other = -1, .to = -1
	};
	container_path(c, path, k->full);
	ret = placed_near(c->store, k->full);
	ret = ret > 0 ? open_near(k) : ret ? ret : -ENOENT;
	if (ret)
		return ret;
	k->from = datalog_open(c, path, false);
	k->doubtful = twin_prefers_home(k->from);
	return k->from < 0 ? k->from : carried_make_buf(k);
}

/* What leads to the rest of the log: without it that is not found after a power failure. */
static int sync_place(struct carried *k)
{
	char path[CONTAINER_PATH_LEN + 8];
	const char *name = strrchr(k->full, '/') + 1, *host;
	size_t len;
	int ret;

	host = name_host(name, &len);
	snprintf(path, sizeof(path), "%.*snear.%.*s", (int)(name - k->full), k->full, (int)len, host);
	ret = store_sync_path(&k->home, path, false);
	return ret == -ENOENT ? 0 : ret;
}

/* ---- a part ---- */

/* Open the copy at home. *@len: of its data area. Who makes it too writes the same header. */
static int open_copy(struct carried *k, uint64_t *len)
{
	struct stat st;
	bool made;
	int ret;

	k->to = carried_make(k, k->full);
	made = k->to >= 0;
	if (k->to == -EEXIST)
		k->to = store_open(&k->home, k->full, O_RDWR | STORE_BRIEFLY, 0);
	ret = k->to < 0 ? k->to : k->home.ops->fstat(&k->home, k->to, &st);
	if (ret)
		return ret;
	*len = datalog_len(&st);
	if (!store_may_write(&st))
		return -EMLINK;
	if (st.st_size < CARRIED_HEADER_LEN)
		ret = carried_copy_header(k);
	if (!ret && made)
		ret = sync_place(k);
	return ret || !made ? ret : carried_sync_hostdir(k);
}

int carry_part(const struct container *c, const char *path, uint64_t len, bool durably)
{
	struct carried k;
	struct stat st;
	uint64_t have = 0;
	int ret = begin(&k, c, path);

	if (!ret)
		ret = c->store->ops->fstat(c->store, k.from, &st);
	if (!ret)
		ret = open_copy(&k, &have);
	if (!ret)
		ret = carried_copy_data(&k, have, min_u64(len, datalog_len(&st)), false, NULL);
	if (!ret && durably)
		ret = k.home.ops->sync(&k.home, k.to, false);
	carried_end(&k);
	return ret == -EREMOTE ? -EIO : ret; /* a place of ours that cannot be read just now */
}

/* ---- all of it ---- */

/* The log near becomes a staged copy. */
static int keep(struct carried *k, const char *dir, struct place_dir *near, const char *name)
{
	struct store to;
	struct stat st;
	int ret = k->home.ops->fstat(&k->home, k->near, &st);

	if (ret)
		return ret;
	if (st.st_uid != geteuid()) /* the directory is called by the user's number */
		return -EPERM;
	ret = staged_enter(k->c->store, dir, &to);
	if (ret)
		return ret;
	ret = store_chmod(&near->store, k->near, S_IRUSR | S_IWUSR);
	if (!ret &&
	    sys.renameat(store_fd(&near->store, near->store.root), name, store_fd(&to, to.root), name))
		ret = -errno;
	store_close(&to, &to.root);
	return ret;
}

/* The log goes near: from here on it is at home alone. */
static int leave(struct carried *k, const char *tmp, off_t len)
{
	const char *slash = strrchr(k->full, '/');
	char dir[CONTAINER_PATH_LEN];
	struct place_dir near;
	int ret = carried_is_same(k, len);

	(void)tmp;
	snprintf(dir, sizeof(dir), "%.*s", (int)(slash - k->full), k->full);
	if (!ret)
		ret = enter_near(k->c, k->full, &near);
	if (ret)
		return ret;
	if (!k->keeps || k->doubtful || keep(k, dir, &near, slash + 1))
		ret = near.store.ops->unlink(&near.store, slash + 1);
	place_leave(&near);
	return ret;
}

int carry_leave(const struct container *c, const char *path)
{
	char full[CONTAINER_PATH_LEN];
	struct place_dir near;
	int ret;

	container_path(c, path, full);
	ret = enter_near(c, full, &near);
	if (ret)
		return ret;
	ret = near.store.ops->unlink(&near.store, name_of(path));
	place_leave(&near);
	return ret;
}

/*
 * Whether a process has the log open, or is making it: until it has made the live file it holds the lock of
 * the place, and nothing is in the log.
 */
static bool is_being_made(struct carried *k)
{
	struct stat st;

	if (k->near >= 0 && !k->home.ops->fstat(&k->home, k->near, &st) && !datalog_len(&st) &&
	    placed_is_held(k->c->store, k->full))
		return true;
	return carried_is_open(k);
}

/*
 * Whether the file system of the place refuses changes, as after an error of its disk. It is asked for a
 * change of the log's time of access, which nobody uses.
 */
static bool near_is_read_only(const struct carried *k)
{
	const struct timespec times[2] = { { .tv_nsec = UTIME_NOW }, { .tv_nsec = UTIME_OMIT } };
	struct store home = k->home;
	int fd = store_fd(&home, k->near);

	return fd >= 0 && sys.futimens(fd, times) && errno == EROFS;
}

/* Whether @h, the file of that name at home, has the header and the data area of the log, of @len bytes. */
static bool is_same_log(struct carried *k, int h, off_t len)
{
	uint8_t *from = k->buf, *to = k->buf + CARRIED_HEADER_LEN;
	struct stat st;

	return !k->home.ops->fstat(&k->home, h, &st) && st.st_size == len &&
	       k->c->store->ops->pread(k->c->store, k->from, from, CARRIED_HEADER_LEN, 0) ==
		       CARRIED_HEADER_LEN &&
	       k->home.ops->pread(&k->home, h, to, CARRIED_HEADER_LEN, 0) == CARRIED_HEADER_LEN &&
	       !memcmp(from, to, CARRIED_HEADER_LEN) &&
	       !carried_prove(k->c, k->path, h, -1, datalog_len(&st)) &&
	       !k->home.ops->sync(&k->home, h, false);
}

/* A log that cannot go near was copied before: not once more each time. */
static bool is_home_already(struct carried *k, off_t *len)
{
	struct stat st;
	bool is;
	int h;

	if (k->c->store->ops->fstat(k->c->store, k->from, &st) || !near_is_read_only(k))
		return false;
	h = store_open(&k->home, k->full, O_RDWR | STORE_BRIEFLY, 0);
	if (h < 0)
		return false;
	is = is_same_log(k, h, st.st_size);
	store_close(&k->home, &h);
	*len = st.st_size;
	return is;
}

static int copy_home(struct carried *k, off_t *len, struct carry *carry)
{
	char tmp[STORE_PATH_LEN] = "";
	int ret = carried_name_tmp(k->full, tmp);

	if (ret)
		return ret;
	ret = carried_copy_all(k, tmp, len, carry);
	if (!ret)
		ret = carried_commit(k, tmp, *len);
	if (ret)
		k->home.ops->unlink(&k->home, tmp);
	return ret;
}

/*
 * Its process was killed before it had written the header, in this life of the host: no power failure has
 * taken anything.
 */
static bool was_never_begun(struct carried *k)
{
	struct stat st;

	return k->near >= 0 && name_is_ours(name_of(k->path)) &&
	       !k->home.ops->fstat(&k->home, k->near, &st) && st.st_size < DATALOG_HEADER_LEN;
}

int carry_log(const struct container *c, const char *path, struct carry *carry)
{
	struct carried k;
	off_t len = 0;
	bool again = false;
	int ret = begin(&k, c, path);

	if (!ret || ret == -EIO)
		ret = is_being_made(&k) ? -EBUSY : ret;
	if (ret == -EIO && was_never_begun(&k)) {
		carried_end(&k);
		return carry_leave(c, path);
	}
	k.keeps = carry->keep;
	if (!ret) {
		again = is_home_already(&k, &len);
		ret = again ? 0 : copy_home(&k, &len, carry);
	}
	if (!ret)
		ret = carried_sync_hostdir(&k);
	if (!ret) {
		ret = carried_alone(&k, leave, NULL, len);
		carry->stays = ret == -EROFS;
	}
	carry->nr_logs += !ret || (carry->stays && !again);
	carried_end(&k);
	return ret;
}
