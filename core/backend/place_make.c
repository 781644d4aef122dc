/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Making a place, and what leads there.
 */
#include "core/backend/place.h"

#include "core/backend/host.h"
#include "core/backend/names.h"
#include "core/backend/near_file.h"
#include "core/backend/origin.h"
#include "core/base/io.h"
#include "core/base/msg.h"

#include <stdio.h>

#define TRIES 10 /* while others remove what is empty */
#define DIR_MODE 0755

int place_open_user(const struct place_settings *ps)
{
	char user[PLACE_PATH_LEN];

	place_user_path(ps, geteuid(), user);
	return place_open_user_at(user, geteuid());
}

/* Once a process: a job has thousands. */
void place_tell_refused(const struct place_settings *ps, int ret)
{
	static bool told;
	char user[PLACE_PATH_LEN];

	if (!ret || ret == -ENOSPC || ret == -EDQUOT || ret == -EREMOTE || ret == -ENODATA)
		return;
	if (__atomic_exchange_n(&told, true, __ATOMIC_RELAXED))
		return;
	place_user_path(ps, geteuid(), user);
	if (ps->features) {
		msg_error("%s: %s: logs are written to the other backends (spread=)", user,
			  ret == -EPERM ? "not this user's alone, so nothing is put there" : strerror(-ret));
		return;
	}
	msg_error("%s: %s: logs are written to %s itself", user,
		  ret == -EPERM ? "not this user's alone, so nothing is put there (near=)" : strerror(-ret),
		  ps->home);
}

/* ---- directories ---- */

/* A power failure may have left it shorter. */
static void say_home(struct store *home, struct store *s, const struct place_settings *ps)
{
	char path[STORE_PATH_LEN], line[1 + ORIGIN_ID_LEN + 1] = "\n";
	struct stat st;

	snprintf(path, sizeof(path), "%s/" ORIGIN_HOME, ps->backend_id);
	if (!s->ops->stat(s, path, &st) && st.st_size == (off_t)(strlen(ps->home) + 1 + ORIGIN_ID_LEN))
		return;
	origin_line(home, line + 1);
	store_write_file(s, path, 0644, ps->home, strlen(ps->home), line, 1 + ORIGIN_ID_LEN);
}

/* plfs.UID, of a store, with the way @path in it. */
static int make_own(struct store *home, const struct place_settings *ps, uid_t uid, const char *path,
		    struct store *s)
{
	char user[PLACE_PATH_LEN];
	int ret;

	place_user_path(ps, uid, user);
	if (!sys.mkdir(user, DIR_MODE))
		sys.chmod(user, DIR_MODE); /* the umask has its say in the first */
	else if (errno != EEXIST)
		return -errno;
	s->root = place_open_user_at(user, uid);
	if (s->root < 0)
		return s->root;
	ret = store_make_dirs(s, path, DIR_MODE);
	if (!ret)
		say_home(home, s, ps);
	else
		sys_fd_close(&s->root);
	return ret;
}

int place_find(struct store *home, const struct place_settings *ps, uid_t uid, const char *dir,
	       struct place_dir *near)
{
	char path[STORE_PATH_LEN], user[PLACE_PATH_LEN];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", ps->backend_id, place_below(dir));
	place_user_path(ps, uid, user);
	fd = place_open_user_at(user, uid);
	return fd < 0 ? fd : place_enter_below(home, fd, path, near);
}

int place_make(struct store *home, const struct place_settings *ps, uid_t uid, const char *dir,
	       struct place_dir *near)
{
	char path[STORE_PATH_LEN];
	struct store s = store_bare(home);
	int ret;

	if (ps->features) { /* many hosts share it: mostly there is nothing to make */
		ret = place_find(home, ps, uid, dir, near);
		if (ret != -ENOENT)
			return ret;
	}
	snprintf(path, sizeof(path), "%s/%s", ps->backend_id, place_below(dir));
	ret = make_own(home, ps, uid, path, &s);
	return ret ? ret : place_enter_below(home, s.root, path, near);
}

int place_make_top(struct store *home)
{
	struct store s = store_bare(home);
	int ret = make_own(home, home->near, geteuid(), home->near->backend_id, &s);

	if (!ret)
		sys_fd_close(&s.root);
	return ret;
}

/* ---- a log is to be made there ---- */

/* Nothing here says as yet which place this is: to look at home would be in vain. */
static bool is_new(struct place_dir *near, const char *dir, const char *file)
{
	uint8_t raw[PLACE_LEN];
	struct place p;

	return near_file_read_locked(near, dir, file, raw, &p) == -ENODATA;
}

/* One attempt. -EAGAIN: it was removed meanwhile. */
static int try_begin(struct store *home, const struct place_settings *ps, const char *dir, const char *file,
		     mode_t mode, bool make, const struct place_first *first, struct place_dir *near)
{
	struct store *s = &near->store;
	bool made;
	int ret = make ? place_make(home, ps, geteuid(), dir, near) :
			 place_find(home, ps, geteuid(), dir, near);

	if (ret)
		return ret != -ENOENT ? ret : make ? -EAGAIN : -ENODATA;
	near->slot = name_spread_slot(file);
	near->features = ps->features;
	if (make)
		near->lock = store_open_or_make(s, file, O_RDWR | STORE_BRIEFLY, 0644, &made);
	else
		near->lock = store_open(s, file, O_RDWR | STORE_BRIEFLY, 0);
	ret = near->lock < 0 ? near->lock : store_lock_shared(s, near->lock);
	if (near->lock == -ENOENT && !make)
		ret = -ENODATA;
	if (!ret)
		ret = make && is_new(near, dir, file) ?
			      -ENODATA :
			      near_file_compare(home, ps, dir, file, mode, near, false);
	if (ret == -ENODATA && make) {
		store_unlock(s, near->lock);
		ret = store_lock(s, near->lock);
		if (!ret && first && is_new(near, dir, file) && first->make(first->arg)) {
			s->ops->unlink(s, file);
			ret = -ENODATA;
		}
		if (!ret)
			ret = near_file_compare(home, ps, dir, file, mode, near, true);
		if (!ret)
			ret = store_lock_shared(s, near->lock); /* others may make logs as well */
	}
	if (ret)
		place_leave(near);
	return ret == -ENOENT ? -EAGAIN : ret;
}

int place_begin_as(struct store *home, const struct place_settings *ps, const char *dir, const char *file,
		   mode_t mode, bool make, const struct place_first *first, struct place_dir *near)
{
	int ret = -EAGAIN;

	for (int tries = 0; ret == -EAGAIN && tries < TRIES; tries++)
		ret = try_begin(home, ps, dir, file, mode, make, first, near);
	if (ret == -EAGAIN)
		ret = -ENOENT;
	place_tell_refused(ps, ret);
	return ret;
}

int place_begin(struct store *home, const char *dir, mode_t mode, const struct place_first *first,
		struct place_dir *near)
{
	const char *host = host_name();
	char file[STORE_PATH_LEN];

	near_file_name(file, host, strlen(host));
	return place_begin_as(home, home->near, dir, file, mode, true, first, near);
}
