/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The beginning of a backend: BACKEND/.plfs, its format file, and whose it is. In a backend that several users share
 * who owns a directory in .plfs could take out of it what others have put there, sticky bit or not; so what is shared
 * belongs to the backend's owner, who makes it once (plfs init).
 */
#include "mount.h"

#include "alloc.h"
#include "log.h"
#include "plfs.h"
#include "sys.h"

#include <stdio.h>
#include <unistd.h>

#define FORMAT_PATH PLFS_DIR_NAME "/format"
#define FORMAT_TEXT \
	"plfs-format 1\n" \
	"size body\n" \
	"mark sticky\n" \
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

int mount_check_format(struct plfs_mount *m)
{
	void *text;
	size_t len;
	int version;
	int ret = -ESTALE;

	for (int tries = 0; ret == -ESTALE && tries < 10; tries++) /* each time another process has put its own there */
		ret = store_read_file(&m->store, FORMAT_PATH, 65536, &text, &len);
	if (ret && ret != -ENOENT)
		log_error("%s/" FORMAT_PATH ": %s", m->backend, strerror(-ret));
	if (ret)
		return ret;
	((char *)text)[len] = '\0';
	version = format_version(text);
	mem_free(text);
	if (version == 1)
		return 0;
	log_error("%s/" FORMAT_PATH ": %s", m->backend,
		  version ? "written by a newer libplfs; use that one here" : "damaged: no \"plfs-format N\" line");
	return version ? -EPROTONOSUPPORT : -EIO;
}

/*
 * The mark must survive, or no stub could be told from a plain file: try it once, when a backend is first used.
 * ESTALE: what the name led to has been replaced by another host.
 */
static int check_mark(struct plfs_mount *m)
{
	const char *path = PLFS_DIR_NAME "/format";
	struct stat st, now;
	int ret = m->store.ops->stat(&m->store, path, &st);

	if (ret)
		return ret == -ESTALE ? 0 : ret;
	ret = m->store.ops->chmod(&m->store, path, (st.st_mode & 0777) | S_ISVTX);
	if (ret == -EPERM) /* somebody else's; he has tried it */
		return 0;
	if (!ret)
		ret = m->store.ops->stat(&m->store, path, &now);
	if (ret == -ESTALE)
		return 0;
	/* Another file by now? Then whoever put it there tries it himself. */
	if (!ret && now.st_ino == st.st_ino && !(now.st_mode & S_ISVTX)) {
		log_error("backend %s does not keep the sticky bit of a file and cannot be used", m->backend);
		ret = -EOPNOTSUPP;
	}
	return ret;
}

/* Whether other users may add to the backend, but not take away what is not theirs. */
static bool is_shared(const struct plfs_mount *m)
{
	return m->mode & S_ISVTX && m->mode & (S_IWGRP | S_IWOTH);
}

/*
 * Nobody but root, the backend's owner and ourselves may own what we put our files into. Elsewhere all may do with
 * names as they like.
 */
static int check_owner(struct plfs_mount *m)
{
	struct stat st;
	int ret;

	if (!is_shared(m))
		return 0;
	ret = m->store.ops->stat(&m->store, PLFS_DIR_NAME, &st);
	if (ret || !st.st_uid || st.st_uid == m->uid || st.st_uid == geteuid())
		return ret;
	log_error("%s/" PLFS_DIR_NAME " belongs to user %u, who could remove what others write: let the owner of %s say: plfs init %s",
		  m->backend, (unsigned)st.st_uid, m->backend, m->backend);
	return -EPERM;
}

static int write_format(struct plfs_mount *m)
{
	int ret = store_write_file(&m->store, FORMAT_PATH, 0644, FORMAT_TEXT, sizeof(FORMAT_TEXT) - 1, NULL, 0);

	return ret ? ret : check_mark(m);
}

int mount_prepare(struct plfs_mount *m)
{
	mode_t mode = (m->mode & 0777) | S_IRWXU;
	int ret;

	if (__atomic_load_n(&m->prepared, __ATOMIC_RELAXED))
		return 0;
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

		log_error("cannot make %s/%s: %s%s%s", m->backend, PLFS_DIR_NAME, strerror(-ret),
			  others ? "; let the owner of the backend say: plfs init " : "", others ? m->backend : "");
		return ret;
	}
	ret = check_owner(m);
	return ret ? ret : write_format(m);
}

/* What users of the backend are to have in each of its directories, where nothing else is said. */
static mode_t share_mode(const struct plfs_mount *m)
{
	if (m->mode & (S_IWGRP | S_IWOTH))
		return (m->mode & 03777) | S_IRWXU | S_ISVTX;
	/* Nobody else may write to root's directory itself: what is written lies in directories of users. */
	return m->uid ? (m->mode & 0777) | S_IRWXU : 01777;
}

/* @path, whoever made it, is a directory of the backend's owner. */
static int make_dir(struct plfs_mount *m, const char *path, mode_t mode)
{
	const struct store_grant g = { .uid = m->uid, .gid = m->gid, .mode = mode };
	int ret = m->store.ops->mkdir(&m->store, path, S_IRWXU);
	struct stat st;

	if (!ret || ret == -EEXIST)
		ret = m->store.ops->grant(&m->store, path, &g);
	if (!ret)
		ret = m->store.ops->stat(&m->store, path, &st);
	if (!ret && (st.st_uid != m->uid || (st.st_mode & 03777) != mode))
		ret = -EPERM;
	if (ret)
		log_error("cannot make %s/%s with owner %u and mode %04o: %s", m->backend, path, (unsigned)m->uid,
			  (unsigned)mode, strerror(-ret));
	return ret;
}

static int make_all(struct plfs_mount *m, mode_t mode)
{
	char path[sizeof(PLFS_DIR_NAME "/00")];
	int ret = make_dir(m, PLFS_DIR_NAME, mode); /* the table of who writes is made there */

	for (unsigned i = 0; i < 256 && !ret; i++) {
		snprintf(path, sizeof(path), PLFS_DIR_NAME "/%02x", i);
		ret = make_dir(m, path, mode);
	}
	if (ret)
		return ret;
	ret = write_format(m); /* anew, if it was somebody else's */
	if (!ret)
		ret = m->store.ops->chown(&m->store, FORMAT_PATH, m->uid, m->gid);
	if (ret)
		log_error("cannot write %s/" FORMAT_PATH ": %s", m->backend, strerror(-ret));
	return ret;
}

int plfs_init_backend(const char *path, mode_t *mode)
{
	struct plfs_mount m = { 0 };
	struct stat st;
	int ret = 0;

	sys_init();
	if (!sys.realpath(path, m.backend))
		ret = -errno;
	else
		ret = store_posix_open(&m.store, m.backend);
	if (!ret && sys.fstat(m.store.root, &st)) {
		ret = -errno;
		sys_fd_close(&m.store.root);
	}
	if (ret) {
		log_error("backend %s: %s", path, strerror(-ret));
		return ret;
	}
	m.mode = st.st_mode;
	m.uid = st.st_uid;
	m.gid = st.st_gid;
	if (*mode == (mode_t)-1)
		*mode = share_mode(&m);
	ret = mount_check_format(&m);
	if (!ret || ret == -ENOENT)
		ret = make_all(&m, *mode);
	sys_fd_close(&m.store.root);
	return ret;
}
