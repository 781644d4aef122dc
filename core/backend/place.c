/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Places as directories: near.HOST, finding a place, making one.
 */
#include "core/backend/place.h"

#include "core/backend/host.h"
#include "core/backend/names.h"
#include "core/backend/origin.h"
#include "core/base/bytes.h"
#include "core/base/crc32c.h"
#include "core/base/io.h"
#include "core/base/msg.h"
#include "core/base/stamp.h"
#include "core/store/dirs.h"
#include "core/store/posix.h"

#include <stdio.h>
#include <unistd.h>

#define TRIES 10 /* while others remove what is empty */
#define DIR_MODE 0755

/* ---- near.HOST ---- */

/* The first PLACE_LEN bytes of the file @path, or fewer; -errno. */
static ssize_t read_start(struct store *s, const char *path, uint8_t *buf)
{
	int h = store_open(s, path, O_RDONLY | STORE_BRIEFLY | s->uncached, 0);
	ssize_t n;

	if (h < 0)
		return h;
	n = s->ops->pread(s, h, buf, PLACE_LEN, 0);
	store_close(s, &h);
	return n;
}

/* The PLACE_LEN bytes of the file @path. -ENODATA: it is shorter. */
static int read_raw(struct store *s, const char *path, uint8_t *buf)
{
	ssize_t n = read_start(s, path, buf);

	return n < 0 ? (int)n : n < PLACE_LEN ? -ENODATA : 0;
}

/* "near.HOST" into @file (STORE_PATH_LEN). */
static const char *file_of(char *file, const char *host, size_t host_len)
{
	snprintf(file, STORE_PATH_LEN, "near.%.*s", (int)host_len, host);
	return file;
}

static int put_below(char *path, const char *dir, const char *file)
{
	int n = snprintf(path, STORE_PATH_LEN, "%s/%s", dir, file);

	return n < STORE_PATH_LEN ? 0 : -ENAMETOOLONG;
}

/* Whether @dir, ".plfs/XX/ID/hostdir.K", is in the container of this id. */
static bool is_in(const char *dir, const uint8_t *id)
{
	const char *end = strrchr(dir, '/');
	char hex[2 * STUB_ID_LEN + 1];

	for (int i = 0; i < STUB_ID_LEN; i++)
		snprintf(hex + 2 * i, 3, "%02x", id[i]);
	return end && end - dir > 2 * STUB_ID_LEN && !memcmp(end - 2 * STUB_ID_LEN, hex, 2 * STUB_ID_LEN);
}

/* Whether it is what @file in the hostdir @dir, ".plfs/XX/ID/hostdir.K", should be. */
static bool is_of(const struct place *p, const char *dir, const char *file)
{
	size_t len;
	const char *host = name_host(file, &len);

	return host && is_in(dir, p->id) && strlen(p->host) == len && !memcmp(p->host, host, len) &&
	       !(p->features & PLACE_SHARED) == !name_spread_slot(file);
}

static void user_path(const struct place_settings *ps, uid_t uid, char *path)
{
	snprintf(path, PLACE_PATH_LEN, "%s/plfs.%u", ps->near, (unsigned)uid);
}

/* NEAR/plfs.UID/BACKEND-ID. -ENAMETOOLONG. */
static int top_path(const struct place_settings *ps, char *path)
{
	int n = snprintf(path, PLACE_PATH_LEN, "%s/plfs.%u/%s", ps->near, (unsigned)geteuid(),
			 ps->backend_id);

	return n < PLACE_PATH_LEN ? 0 : -ENAMETOOLONG;
}

/* Where new logs are made, near.HOST being damaged: for messages. */
static void guess(const struct store *home, const char *file, struct place *p)
{
	size_t len;
	const char *host = name_host(file, &len);

	memset(p, 0, sizeof(*p));
	snprintf(p->host, sizeof(p->host), "%.*s", (int)len, host);
	p->features = name_spread_slot(file) ? PLACE_SHARED : 0;
	if (home->near && !p->features)
		top_path(home->near, p->path);
	else
		snprintf(p->path, sizeof(p->path), "a place that %.100s, which is damaged, does not name",
			 file);
}

static int read_place(struct store *home, const char *dir, const char *file, uint8_t *raw, struct place *p)
{
	char path[STORE_PATH_LEN];
	int ret = put_below(path, dir, file);
	ssize_t n = ret ? ret : read_start(home, path, raw);

	if (n < 0)
		return (int)n;
	if (!n && !strncmp(file, "spread.", 7)) /* as yet: write_first() */
		return -ENOENT;
	if (n == PLACE_LEN && !place_decode(p, raw) && is_of(p, dir, file))
		return 0;
	guess(home, file, p);
	return -EBADMSG;
}

int place_read_as(struct store *home, const char *dir, const char *file, struct place *p)
{
	uint8_t raw[PLACE_LEN];

	return read_place(home, dir, file, raw, p);
}

int place_read(struct store *home, const char *dir, const char *host, size_t host_len, struct place *p)
{
	char file[STORE_PATH_LEN];

	return place_read_as(home, dir, file_of(file, host, host_len), p);
}

/* ---- finding one ---- */

/* The directory plfs.UID at @path, if it is @uid's and nobody else may write it. */
static int open_user(const char *path, uid_t uid)
{
	int fd = sys_fd_hide_briefly(io_open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)), ret = 0;
	struct stat st;

	if (fd < 0)
		return -errno;
	if (sys.fstat(fd, &st))
		ret = -errno;
	else if (st.st_uid != uid || st.st_mode & (S_IWGRP | S_IWOTH))
		ret = -EPERM;
	if (!ret)
		return fd;
	sys_fd_close(&fd);
	return ret;
}

/* "XX/ID/hostdir.K" of ".plfs/XX/ID/hostdir.K". */
static const char *below(const char *dir) { return strchr(dir, '/') + 1; }

/* A store like @home on what is called @path below the directory @fd, which is closed. */
static int enter(struct store *home, int fd, const char *path, struct place_dir *near)
{
	near->store = store_bare(home);
	near->store.root = fd;
	near->lock = -1;
	near->slot = 0;
	near->store.root = store_open(&near->store, path, O_RDONLY | O_DIRECTORY | STORE_BRIEFLY, 0);
	sys_fd_close(&fd);
	return near->store.root < 0 ? near->store.root : 0;
}

/* NEAR/plfs.UID of NEAR/plfs.UID/BACKEND-ID; *@id: the rest. */
static int open_user_of(const char *path, const char **id)
{
	char user[PLACE_PATH_LEN];
	const char *slash = strrchr(path, '/'), *name;
	unsigned uid;

	if (*path != '/' || !slash || slash == path)
		return -EIO;
	snprintf(user, sizeof(user), "%.*s", (int)(slash - path), path);
	*id = slash + 1;
	name = strrchr(user, '/');
	return sscanf(name, "/plfs.%u", &uid) == 1 ? open_user(user, uid) : -EIO;
}

int place_open_top(struct store *home, const char *top, const char *dir, struct place_dir *near)
{
	char path[STORE_PATH_LEN];
	const char *id;
	int fd = open_user_of(top, &id);

	if (fd < 0)
		return fd;
	if (snprintf(path, sizeof(path), "%s/%s", id, below(dir)) < (int)sizeof(path))
		return enter(home, fd, path, near);
	sys_fd_close(&fd);
	return -ENAMETOOLONG;
}

/* What says that there is no such place here, or none that works; all else is an error that may pass. */
static int elsewhere(int ret)
{
	static const int errors[] = { ENOENT,  ENOTDIR, ELOOP,	ENXIO, EPERM,
				      EACCES, ENODATA, EIO, ENODEV, ESTALE };

	for (size_t i = 0; i < ARRAY_SIZE(errors); i++)
		if (ret == -errors[i])
			return -EREMOTE;
	return ret;
}

int place_enter_as(struct store *home, const char *dir, const char *file, struct place_dir *near, bool top)
{
	uint8_t raw[PLACE_LEN], there[PLACE_LEN];
	char path[STORE_PATH_LEN], name[STORE_PATH_LEN];
	struct place p;
	const char *id = "";
	int fd, ret = read_place(home, dir, file, raw, &p);

	if (ret)
		return ret == -EBADMSG ? -EREMOTE : ret;
	fd = open_user_of(p.path, &id);
	if (fd < 0)
		return elsewhere(fd);
	put_below(name, dir, file);
	if (origin_is_other(home, fd, id, name, raw, sizeof(raw))) {
		sys_fd_close(&fd);
		return -EREMOTE;
	}
	if (top)
		snprintf(path, sizeof(path), "%s", id);
	else
		snprintf(path, sizeof(path), "%s/%s", id, below(dir));
	ret = enter(home, fd, path, near);
	if (ret)
		return elsewhere(ret);
	near->slot = name_spread_slot(file);
	near->features = p.features;
	ret = put_below(name, top ? below(dir) : ".", file);
	if (!ret)
		ret = read_raw(&near->store, name, there);
	if (!ret && !memcmp(raw, there, PLACE_LEN))
		return 0;
	place_leave(near);
	return ret ? elsewhere(ret) : -EREMOTE;
}

int place_enter(struct store *home, const char *dir, const char *host, size_t host_len,
		struct place_dir *near)
{
	char file[STORE_PATH_LEN];

	return place_enter_as(home, dir, file_of(file, host, host_len), near, false);
}

int place_enter_top(struct store *home, const char *dir, const char *host, size_t host_len,
		    struct place_dir *near)
{
	char file[STORE_PATH_LEN];

	return place_enter_as(home, dir, file_of(file, host, host_len), near, true);
}

void place_leave(struct place_dir *near)
{
	if (near->lock >= 0)
		store_close(&near->store, &near->lock);
	store_close(&near->store, &near->store.root);
}

/* ---- making one ---- */

void place_settings_init(struct place_settings *ps)
{
	snprintf(ps->backend_id, sizeof(ps->backend_id), "%016llx",
		 (unsigned long long)store_path_id(ps->home));
}

int place_open_user(const struct place_settings *ps)
{
	char user[PLACE_PATH_LEN];

	user_path(ps, geteuid(), user);
	return open_user(user, geteuid());
}

/* Once a process: a job has thousands. */
static void tell_refused(const struct place_settings *ps, int ret)
{
	static bool told;
	char user[PLACE_PATH_LEN];

	if (__atomic_exchange_n(&told, true, __ATOMIC_RELAXED))
		return;
	user_path(ps, geteuid(), user);
	if (ps->features) {
		msg_error("%s: %s: logs are written to the other backends (spread=)", user,
			  ret == -EPERM ? "not this user's alone, so nothing is put there" : strerror(-ret));
		return;
	}
	msg_error("%s: %s: logs are written to %s itself", user,
		  ret == -EPERM ? "not this user's alone, so nothing is put there (near=)" : strerror(-ret),
		  ps->home);
}

static int make_dir(struct store *s, const char *path)
{
	int ret = s->ops->mkdir(s, path, DIR_MODE);

	return ret == -EEXIST ? 0 : ret;
}

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

/* Each directory from BACKEND-ID to the hostdir. */
static int make_way(struct store *home, struct store *s, const struct place_settings *ps, const char *path)
{
	char part[STORE_PATH_LEN];
	int ret = 0;

	for (const char *p = path; p && !ret;) {
		p = strchr(p, '/');
		snprintf(part, sizeof(part), "%.*s", p ? (int)(p - path) : (int)strlen(path), path);
		ret = make_dir(s, part);
		p = p ? p + 1 : NULL;
	}
	if (!ret)
		say_home(home, s, ps);
	return ret;
}

/* plfs.UID, of a store, with the way @path in it. */
static int make_own(struct store *home, const struct place_settings *ps, uid_t uid, const char *path,
		    struct store *s)
{
	char user[PLACE_PATH_LEN];
	int ret;

	user_path(ps, uid, user);
	if (!sys.mkdir(user, DIR_MODE))
		sys.chmod(user, DIR_MODE); /* the umask has its say in the first */
	else if (errno != EEXIST)
		return -errno;
	s->root = open_user(user, uid);
	if (s->root < 0)
		return s->root;
	ret = make_way(home, s, ps, path);
	if (ret)
		sys_fd_close(&s->root);
	return ret;
}

int place_make(struct store *home, const struct place_settings *ps, uid_t uid, const char *dir,
	       struct place_dir *near)
{
	char path[STORE_PATH_LEN], user[PLACE_PATH_LEN];
	struct store s = store_bare(home);
	int ret;

	snprintf(path, sizeof(path), "%s/%s", ps->backend_id, below(dir));
	if (ps->features) { /* many hosts share it: mostly there is nothing to make */
		user_path(ps, uid, user);
		s.root = open_user(user, uid);
		ret = s.root < 0 ? s.root : enter(home, s.root, path, near);
		if (ret != -ENOENT)
			return ret;
	}
	ret = make_own(home, ps, uid, path, &s);
	return ret ? ret : enter(home, s.root, path, near);
}

int place_make_top(struct store *home)
{
	struct store s = store_bare(home);
	int ret = make_own(home, home->near, geteuid(), home->near->backend_id, &s);

	if (!ret)
		sys_fd_close(&s.root);
	return ret;
}

/* The bytes of the near.HOST that is locked: -ENODATA: it has none, or is damaged. */
static int read_locked(struct place_dir *near, const char *dir, const char *file, uint8_t *raw,
		       struct place *p)
{
	ssize_t n = near->store.ops->pread(&near->store, near->lock, raw, PLACE_LEN, 0);

	if (n < 0)
		return (int)n;
	return n == PLACE_LEN && !place_decode(p, raw) && is_of(p, dir, file) ? 0 : -ENODATA;
}

/* The lock is held, exclusively. */
static int write_locked(struct place_dir *near, const uint8_t *raw)
{
	ssize_t n = near->store.ops->pwrite(&near->store, near->lock, raw, PLACE_LEN, 0);

	return n == PLACE_LEN ? 0 : n < 0 ? (int)n : -ENOSPC;
}

/* The lock is held, exclusively: write the file anew. @path: of NEAR/plfs.UID/BACKEND-ID. */
static int fill(struct store *home, struct place_dir *near, const char *dir, const char *host, const char *path,
		uint32_t features)
{
	struct place p = { .created_ns = stamp_next(), .features = features, .origin = origin_identity(home) };
	const char *end = strrchr(dir, '/');
	uint8_t raw[PLACE_LEN];

	for (int i = 0; i < STUB_ID_LEN; i++) {
		unsigned byte;

		if (sscanf(end - 2 * STUB_ID_LEN + 2 * i, "%2x", &byte) != 1)
			return -EIO;
		p.id[i] = (uint8_t)byte;
	}
	if (sys.getrandom(p.token, sizeof(p.token), 0) != sizeof(p.token))
		return -EIO;
	if (snprintf(p.host, sizeof(p.host), "%s", host) >= (int)sizeof(p.host) ||
	    snprintf(p.path, sizeof(p.path), "%s", path) >= (int)sizeof(p.path))
		return -ENAMETOOLONG;
	place_encode(&p, raw);
	return write_locked(near, raw);
}

/*
 * Two mappings may name different backends, and take the same number for them at once: one of them is first.
 * Before the bytes are in it nothing leads there, and no log is made there.
 */
static int write_first(struct store *home, const char *path, mode_t mode, const uint8_t *raw)
{
	int h = store_open(home, path, O_RDWR | O_CREAT | O_EXCL | STORE_BRIEFLY, mode);
	ssize_t n;

	if (h < 0)
		return h == -EEXIST ? -EREMOTE : h;
	n = home->ops->pwrite(home, h, raw, PLACE_LEN, 0);
	if (n != PLACE_LEN)
		home->ops->unlink(home, path);
	store_close(home, &h);
	return n == PLACE_LEN ? 0 : n < 0 ? (int)n : -ENOSPC;
}

/* near.HOST at home becomes as that here. */
static int write_home(struct store *home, const char *path, mode_t mode, struct place_dir *near, bool durably)
{
	uint8_t raw[PLACE_LEN];
	ssize_t n = near->store.ops->pread(&near->store, near->lock, raw, sizeof(raw), 0);
	int h;

	if (n != sizeof(raw))
		return n < 0 ? (int)n : -EIO;
	if (get_le32(raw + 60) & PLACE_SHARED)
		return write_first(home, path, mode, raw);
	if (durably)
		return store_replace_durably(home, path, mode, STORE_NOBODY, raw, sizeof(raw));
	h = store_replace_file(home, path, mode, raw, sizeof(raw), NULL, 0);
	if (h < 0)
		return h;
	store_close(home, &h);
	return 0;
}

/*
 * The file at home, of the bytes @raw, is another than that here. -ENODEV: it is of this backend, which lacks
 * what it had: it is not mounted, say. Nothing is to be written below where it was.
 */
static int other_place(const struct place_settings *ps, const uint8_t *raw)
{
	char top[PLACE_PATH_LEN];
	struct place p;

	if (!ps->features || place_decode(&p, raw) || top_path(ps, top))
		return -EREMOTE;
	return strcmp(p.path, top) ? -EREMOTE : -ENODEV;
}

/*
 * Whether near.HOST at home is as that here. -ENODATA: home has none, and it is to be made; -EREMOTE: home
 * has another. With @make: make it, from that here, which is made anew if it is none.
 */
static int compare_home(struct store *home, const struct place_settings *ps, const char *dir,
			const char *file, mode_t mode, struct place_dir *near, bool make)
{
	uint8_t here[PLACE_LEN], there[PLACE_LEN];
	char path[STORE_PATH_LEN], top[PLACE_PATH_LEN];
	struct place p;
	int ret = put_below(path, dir, file), own;

	own = ret ? ret : read_locked(near, dir, file, here, &p);
	if (own && own != -ENODATA)
		return own;
	ret = read_raw(home, path, there);
	if (!ret && !own && !memcmp(here, there, PLACE_LEN))
		return p.features == ps->features ? 0 : -EREMOTE;
	if (ret != -ENOENT)
		return ret && ret != -ENODATA ? ret : ret ? -EREMOTE : other_place(ps, there);
	if (!make)
		return -ENODATA;
	ret = own ? top_path(ps, top) : 0;
	if (!ret && own)
		ret = fill(home, near, dir, host_name(), top, ps->features);
	return ret ? ret : write_home(home, path, mode, near, false);
}

/* Whether the file that is locked has lost its name. */
static bool is_gone(struct place_dir *near)
{
	struct stat st;

	return near->store.ops->fstat(&near->store, near->lock, &st) || !st.st_nlink;
}

/* One attempt. -EAGAIN: it was removed meanwhile. */
static int try_begin(struct store *home, const struct place_settings *ps, const char *dir, const char *file,
		     mode_t mode, struct place_dir *near)
{
	struct store *s = &near->store;
	bool made;
	int ret = place_make(home, ps, geteuid(), dir, near);

	if (ret)
		return ret == -ENOENT ? -EAGAIN : ret;
	near->slot = name_spread_slot(file);
	near->features = ps->features;
	near->lock = store_open_or_make(s, file, O_RDWR | STORE_BRIEFLY, 0644, &made);
	ret = near->lock < 0 ? near->lock : store_lock_shared(s, near->lock);
	if (!ret)
		ret = is_gone(near) ? -EAGAIN : compare_home(home, ps, dir, file, mode, near, false);
	if (ret == -ENODATA) { /* it is new */
		store_unlock(s, near->lock);
		ret = store_lock(s, near->lock);
		if (!ret)
			ret = is_gone(near) ? -EAGAIN : compare_home(home, ps, dir, file, mode, near, true);
		if (!ret)
			ret = store_lock_shared(s, near->lock); /* others may make logs as well */
	}
	if (ret)
		place_leave(near);
	return ret == -ENOENT ? -EAGAIN : ret;
}

int place_begin_as(struct store *home, const struct place_settings *ps, const char *dir, const char *file,
		   mode_t mode, struct place_dir *near)
{
	int ret = -EAGAIN;

	for (int tries = 0; ret == -EAGAIN && tries < TRIES; tries++)
		ret = try_begin(home, ps, dir, file, mode, near);
	if (ret == -EAGAIN)
		ret = -ENOENT;
	if (ret && ret != -ENOSPC && ret != -EDQUOT && ret != -EREMOTE)
		tell_refused(ps, ret);
	return ret;
}

int place_begin(struct store *home, const char *dir, mode_t mode, struct place_dir *near)
{
	const char *host = host_name();
	char file[STORE_PATH_LEN];

	return place_begin_as(home, home->near, dir, file_of(file, host, strlen(host)), mode, near);
}

/* ---- mending one ---- */

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
	int ret = put_below(path, dir, file_of(file, host, strlen(host))), found;

	if (ret)
		return ret;
	ret = read_locked(near, dir, file, here, &p);
	found = read_place(home, dir, file, there, &q);
	if ((ret && ret != -ENODATA) || (found && found != -ENOENT && found != -EBADMSG))
		return ret && ret != -ENODATA ? ret : found;
	if (!found && !ret && !memcmp(here, there, PLACE_LEN))
		return 0;
	if (!found) {
		ret = is_same_dir(q.path, top) ? write_locked(near, there) : -EREMOTE;
		return ret ? ret : near->store.ops->sync(&near->store, near->lock, false);
	}
	if (!ret && !is_same_dir(p.path, top))
		return -EREMOTE;
	ret = ret ? fill(home, near, dir, host, top, 0) : 0;
	if (!ret)
		ret = near->store.ops->sync(&near->store, near->lock, false);
	return ret ? ret : write_home(home, path, mode, near, true);
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
	file_of(name, host, strlen(host));
	near.lock = store_open_or_make(&near.store, name, O_RDWR | STORE_BRIEFLY, 0644, &made);
	ret = near.lock < 0 ? near.lock : store_lock(&near.store, near.lock);
	if (!ret)
		ret = is_gone(&near) ? -ENOENT : mend_locked(&under, dir, host, top, mode, &near);
	place_leave(&near);
	return ret;
}
