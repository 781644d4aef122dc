/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The beginning of a backend: BACKEND/.plfs, its format file, and whose it is. In a backend that several
 * users share who owns a directory in .plfs could take out of it what others have put there, sticky bit or
 * not; so what is shared belongs to the backend's owner, who makes it once (plfs init).
 */
#include "core/backend/mount.h"

#include "core/base/alloc.h"
#include "core/base/msg.h"
#include "core/base/io.h"
#include "core/plfs_admin.h"
#include "core/base/sys.h"
#include "core/backend/nested.h"
#include "core/backend/stub.h"
#include "core/store/dirs.h"
#include "core/store/posix.h"

#include <stdio.h>
#include <unistd.h>

#define FORMAT_PATH PLFS_DIR_NAME "/format"
#define FORMAT_TEXT \
	"plfs-format 1\n" \
	"size body\n" \
	"mark sticky\n" \
	"bare sentence\n" \
	"# This directory holds the data of the files above it. Do not change it by hand; see plfs-format(5).\n"

/* The version in a format file's text, or 0 if it is none. */
static int format_version(const char *text)
{
	int version = 0;

	if (strncmp(text, "plfs-format ", 12))
		return 0;
	for (text += 12; *text >= '0' && *text <= '9' && version < 100000; text++)
		version = version * 10 + (*text - '0');
	return version;
}

static int read_format(struct plfs_mount *m, void **text)
{
	size_t len;
	int ret = -ESTALE;

	/* each time another process has put its own there */
	for (int tries = 0; ret == -ESTALE && tries < 10; tries++)
		ret = store_read_file(&m->store, FORMAT_PATH, 65536, text, &len);
	if (!ret)
		((char *)*text)[len] = '\0';
	return ret;
}

bool mount_explains_bare(struct plfs_mount *m)
{
	void *text;
	bool explains;

	if (read_format(m, &text))
		return false;
	explains = strstr(text, "\nbare sentence\n");
	mem_free(text);
	return explains;
}

int mount_check_format(struct plfs_mount *m)
{
	void *text;
	int version, ret = read_format(m, &text);

	if (ret && ret != -ENOENT)
		msg_error("%s/" FORMAT_PATH ": %s", m->backend, strerror(-ret));
	if (ret)
		return ret;
	version = format_version(text);
	mem_free(text);
	if (version == 1)
		return 0;
	msg_error("%s/" FORMAT_PATH ": %s", m->backend,
		  version ? "written by a newer libplfs; use that one here" :
			    "damaged: no \"plfs-format N\" line");
	return version ? -EPROTONOSUPPORT : -EIO;
}

/*
 * The mark must survive, or no stub could be told from a plain file: try it on the format file before it gets
 * its name, when a backend is first used. The stubs are on the same file system where the store has
 * permissions; of the stubs' file system another store says nothing.
 */
static int check_mark(struct plfs_mount *m, int h)
{
	struct stat st;
	int ret = m->store.ops->fstat(&m->store, h, &st);

	if (!ret)
		ret = store_chmod(&m->store, h, (st.st_mode & 0777) | S_ISVTX);
	if (!ret)
		ret = m->store.ops->fstat(&m->store, h, &st);
	if (!ret && m->store.ops->chmod && !(st.st_mode & S_ISVTX)) {
		msg_error("backend %s does not keep the sticky bit of a file and cannot be used", m->backend);
		ret = -EOPNOTSUPP;
	}
	return ret;
}

/* What several users may write belongs to its owner, who has it made by plfs init. */
static bool is_shared(mode_t mode)
{
	return mode & (S_IWGRP | S_IWOTH);
}

/*
 * Nobody else may take away the directory that our files lead to, to put one of his own in its place. @mode:
 * of that which has it, or has ours.
 */
static int check_sticky(const struct plfs_mount *m, mode_t mode)
{
	if (!is_shared(mode) || mode & S_ISVTX || m->uid == geteuid())
		return 0;
	msg_error(
		"%s: all its users could take away the data of others, for it is not sticky: its owner corrects this with: plfs init %s",
		m->backend, m->backend);
	return -EPERM;
}

/* Nobody but root, the backend's owner and ourselves may own what we put our files into. */
static int check_owner(struct plfs_mount *m)
{
	struct stat st;
	int ret;

	if (!is_shared(m->mode)) /* only the backend's owner has put anything there */
		return 0;
	ret = m->store.ops->stat(&m->store, PLFS_DIR_NAME, &st);
	if (ret)
		return ret;
	if (st.st_uid && st.st_uid != m->uid && st.st_uid != geteuid()) {
		msg_error(
			"%s/" PLFS_DIR_NAME
			" belongs to user %u, who could remove the data of other users: the owner of %s corrects this with: plfs init %s",
			m->backend, (unsigned)st.st_uid, m->backend, m->backend);
		return -EPERM;
	}
	return check_sticky(m, st.st_mode);
}

struct format_arg {
	struct plfs_mount *m;
	bool ours; /* it becomes the backend's owner's */
};

static int finish_format(void *arg, int h)
{
	struct format_arg *fa = arg;
	struct plfs_mount *m = fa->m;
	int ret = check_mark(m, h);

	return ret || !fa->ours ? ret : store_chown(&m->store, h, m->uid, m->gid);
}

/*
 * The file stays, once it has its name, also if several processes make it at once: it is by its number that
 * places know the backend (origin_identity()). But the owner of a shared backend replaces one that belongs to
 * another user.
 */
static int make_format(struct plfs_mount *m)
{
	struct format_arg fa = { m, false };
	int ret = store_make_looked_at(&m->store, FORMAT_PATH, 0644, FORMAT_TEXT, sizeof(FORMAT_TEXT) - 1,
				       finish_format, &fa);

	return ret == -EEXIST ? 0 : ret;
}

/* Whether the file is the backend's owner's, as it would be made now. */
static bool is_owners_format(struct plfs_mount *m)
{
	struct stat st;
	void *text;
	bool is;

	if (m->store.ops->stat(&m->store, FORMAT_PATH, &st) || !store_may_write(&st) || st.st_uid != m->uid ||
	    st.st_mode & (S_IWGRP | S_IWOTH) || read_format(m, &text))
		return false;
	is = !strcmp(text, FORMAT_TEXT);
	mem_free(text);
	return is;
}

static int replace_format(struct plfs_mount *m)
{
	struct format_arg fa = { m, true };

	if (is_owners_format(m))
		return 0;
	return store_write_looked_at(&m->store, FORMAT_PATH, 0644, FORMAT_TEXT, sizeof(FORMAT_TEXT) - 1,
				     finish_format, &fa);
}

/* The user may have meant the backend above, and wonder where the bytes are. */
static void tell_nested(struct plfs_mount *m)
{
	const struct plfs_mount *outer = nested_outer(m);

	if (outer)
		msg_error(
			"%s: lies in the backend %s, and is now a backend of its own: new files have their data here, older ones keep theirs there",
			m->backend, outer->backend);
}

int mount_prepare(struct plfs_mount *m)
{
	mode_t mode = (m->mode & 0777) | S_IRWXU;
	bool made;
	int ret;

	if (__atomic_load_n(&m->prepared, __ATOMIC_RELAXED))
		return 0;
	ret = check_sticky(m, m->mode);
	if (ret)
		return ret;
	ret = mount_check_format(m);
	if (!ret)
		ret = check_owner(m);
	if (!ret)
		__atomic_store_n(&m->prepared, true, __ATOMIC_RELAXED);
	if (ret != -ENOENT)
		return ret;
	if (mode & (S_IWGRP | S_IWOTH))
		mode |= S_ISVTX;
	ret = m->store.ops->mkdir(&m->store, PLFS_DIR_NAME, mode);
	if (ret && ret != -EEXIST) {
		bool others = ret == -EACCES || ret == -EPERM;

		msg_error("cannot make %s/%s: %s%s%s", m->backend, PLFS_DIR_NAME, strerror(-ret),
			  others ? "; the owner of the backend makes it with: plfs init " : "",
			  others ? m->backend : "");
		return ret;
	}
	made = !ret;
	ret = check_owner(m);
	if (!ret)
		ret = make_format(m);
	if (!ret && made)
		tell_nested(m);
	return ret;
}

/* What users of the backend are to have in each of its directories, where nothing else is said. */
static mode_t share_mode(const struct plfs_mount *m)
{
	if (m->mode & (S_IWGRP | S_IWOTH))
		return (m->mode & 03777) | S_IRWXU | S_ISVTX;
	/* Nobody else may write to root's directory itself: what is written lies in directories of users. */
	return m->uid ? (m->mode & 0777) | S_IRWXU : 01777;
}

/* ---- what is there already ---- */

static bool is_hex(const char *name, size_t len)
{
	return strspn(name, "0123456789abcdef") >= len;
}

/* Whether .plfs, or one of its 256 directories if @parent, can have this entry. */
static bool belongs(const char *name, bool parent)
{
	size_t len = strlen(name);

	if (!strncmp(name, ".nfs", 4))
		return true;
	if (parent)
		return len >= 2 * STUB_ID_LEN && is_hex(name, 2 * STUB_ID_LEN) &&
		       (!name[2 * STUB_ID_LEN] || !strcmp(name + 2 * STUB_ID_LEN, STORE_GONE));
	return (len == 2 && is_hex(name, 2)) || !strcmp(name, "format") || !strcmp(name, "places") ||
	       !strncmp(name, "format.tmp.", 11) || !strncmp(name, "places.tmp.", 11) ||
	       !strncmp(name, "writers.", 8) ||
	       !strncmp(name, "queue.", 6) ||
	       !strncmp(name, "drains.", 7) ||
	       !strncmp(name, "gc.tmp.", 7);
}

struct entries {
	bool parent;
	unsigned nr;
	char stranger[64]; /* the beginning of the first name that does not belong there */
};

static int take_entry(void *arg, int fd, const char *name, unsigned char type)
{
	struct entries *e = arg;

	(void)fd, (void)type;
	e->nr++;
	if (belongs(name, e->parent))
		return 0;
	for (size_t i = 0; i < sizeof(e->stranger) - 1 && name[i]; i++)
		e->stranger[i] = name[i] > ' ' && name[i] < 0x7f ? name[i] : '?';
	return 1;
}

/*
 * Whether the directory @h was made by libplfs. It is to be given other permissions, and whoever may rename
 * things here may have given this name to a directory that somebody keeps for himself.
 */
static int check_found(struct plfs_mount *m, const char *path, int h, mode_t mode, bool parent)
{
	struct entries e = { .parent = parent };
	struct stat st;
	int ret = m->store.ops->fstat(&m->store, h, &st);

	if (!ret)
		ret = dirs_list(store_fd(&m->store, h), take_entry, &e);
	if (ret > 0) {
		msg_error(
			"%s/%s: not made by libplfs, for \"%s\" is in it: it stays as it is; rename it, then run plfs init again",
			m->backend, path, e.stranger);
		return -EEXIST;
	}
	/* An empty one can be anybody's. */
	if (!ret && !e.nr && (st.st_uid != geteuid() || mode & ~st.st_mode & 077)) {
		msg_error(
			"%s/%s: an empty directory of user %u with mode %04o, which others may not use as a backend's: it stays as it is; remove it, then run plfs init again",
			m->backend, path, (unsigned)st.st_uid, (unsigned)st.st_mode & 07777);
		return -EEXIST;
	}
	return ret;
}

/* ---- making it ---- */

/*
 * Make the directory @path, or take over what is there, so that it is the backend's owner's with @mode. It is
 * looked at and changed through one handle.
 */
static int make_dir(struct plfs_mount *m, const char *path, mode_t mode, bool parent)
{
	const struct store_grant g = { .uid = m->uid, .gid = m->gid, .mode = mode };
	struct store *s = &m->store;
	struct stat st;
	int h = -1, ret, made;

	if (!s->ops->stat(s, path, &st) && S_ISDIR(st.st_mode) && st.st_uid == m->uid &&
	    st.st_gid == m->gid && (st.st_mode & 03777) == mode)
		return 0;
	if (parent) /* one that is empty is made anew */
		store_rmdir(s, path);
	made = s->ops->mkdir(s, path, S_IRWXU);
	ret = made == -EEXIST ? 0 : made;
	if (!ret)
		ret = h = store_open(s, path, O_RDONLY | O_DIRECTORY | STORE_BRIEFLY, 0);
	if (h >= 0)
		ret = made ? check_found(m, path, h, mode, parent) : 0;
	if (ret == -EEXIST)
		goto out;
	if (!ret)
		ret = s->ops->fstat(s, h, &st);
	if (!ret)
		ret = store_grant(s, h, &st, &g);
	if (!ret)
		ret = s->ops->fstat(s, h, &st);
	if (!ret && (st.st_uid != m->uid || (st.st_mode & 03777) != mode))
		ret = -EPERM;
	if (ret)
		msg_error("cannot make %s/%s with owner %u and mode %04o: %s", m->backend, path,
			  (unsigned)m->uid, (unsigned)mode, strerror(-ret));
out:
	if (h >= 0)
		store_close(s, &h);
	return ret;
}

/* Else who may write there could rename .plfs itself, and put another in its place. */
static int make_sticky(struct plfs_mount *m)
{
	int ret, h;

	if (!is_shared(m->mode) || m->mode & S_ISVTX)
		return 0;
	h = store_open(&m->store, ".", O_RDONLY | O_DIRECTORY | STORE_BRIEFLY, 0);
	ret = h < 0 ? h : store_chmod(&m->store, h, (m->mode & 07777) | S_ISVTX);
	if (h >= 0)
		store_close(&m->store, &h);
	if (ret)
		msg_error("cannot make %s sticky (chmod +t), so its users could take away the data of others: %s",
			  m->backend, strerror(-ret));
	return ret;
}

static int make_all(struct plfs_mount *m, mode_t mode)
{
	char path[sizeof(PLFS_DIR_NAME "/00")];
	int ret = make_sticky(m);

	if (!ret)
		ret = make_dir(m, PLFS_DIR_NAME, mode, false); /* the table of who writes is made there */
	for (unsigned i = 0; i < 256 && !ret; i++) {
		snprintf(path, sizeof(path), PLFS_DIR_NAME "/%02x", (uint8_t)i);
		ret = make_dir(m, path, mode, true);
	}
	if (ret)
		return ret;
	ret = replace_format(m);
	if (ret)
		msg_error("cannot write %s/" FORMAT_PATH ": %s", m->backend, strerror(-ret));
	return ret;
}

int mount_open_unmapped(struct plfs_mount *m, const char *path)
{
	struct stat st;
	int ret = 0;

	*m = (struct plfs_mount){ 0 };
	sys_init();
	if (!sys.realpath(path, m->backend))
		ret = -errno;
	else
		ret = store_posix_open(&m->store, m->backend);
	if (!ret) {
		ret = m->store.ops->fstat(&m->store, m->store.root, &st);
		if (ret)
			store_posix_close(&m->store);
	}
	if (ret) {
		msg_error("backend %s: %s", path, strerror(-ret));
		return ret;
	}
	m->mode = st.st_mode;
	m->uid = st.st_uid;
	m->gid = st.st_gid;
	return 0;
}

int plfs_init_backend(const char *path, mode_t *mode)
{
	struct plfs_mount m;
	int ret = mount_open_unmapped(&m, path);

	if (ret)
		return ret;
	if (*mode == (mode_t)-1)
		*mode = share_mode(&m);
	ret = mount_check_format(&m);
	if (!ret || ret == -ENOENT)
		ret = make_all(&m, *mode);
	store_posix_close(&m.store);
	return ret;
}
