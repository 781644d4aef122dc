/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plfs_check(): checks the stub, then its container; a repair follows if it is asked for.
 */
#include "core/admin/check/check_file.h"

#include "core/admin/check/check_body.h"
#include "core/admin/repair/repair.h"
#include "core/admin/scan/mend.h"
#include "core/backend/nested.h"
#include "core/backend/stub_known.h"
#include "core/base/io.h"
#include "core/base/sys.h"
#include "core/dropping/owner.h"

/* ---- the stub ---- */

/* Restore the one flipped bit of the header, in a repair. 0: done; -errno: not one bit, or no repair. */
static int mend_stub(struct examined *k)
{
	uint8_t buf[STUB_HEADER_LEN], mended[STUB_HEADER_LEN];
	struct stub stub;
	size_t at;
	int ret, fd;

	if (!k->check->repair || io_pread_all(k->fd, buf, sizeof(buf), 0) != sizeof(buf))
		return -EIO;
	memcpy(mended, buf, sizeof(mended));
	if (!mend_find(mended, sizeof(mended), 12, &at) || stub_decode(&stub, mended, sizeof(mended)))
		return -EIO;
	fd = k->check->dry_run ? -EIO : stub_reopen(k->fd, O_RDWR);
	ret = fd < 0 ? fd : io_pwrite_all(fd, mended + at, 1, at) == 1 ? 0 : -EIO;
	sys_fd_close(&fd);
	if (ret && !k->check->dry_run) {
		examine_report(k, PLFS_FAILED, "bit", "", "the header of the stub could not be repaired: %s",
			       strerror(-ret));
		return ret;
	}
	examine_report(k, PLFS_REPAIRED, "bit", "",
		       "byte %zu of the stub: 0x%02x back to 0x%02x, which its checksum confirms",
		       at, buf[at], mended[at]);
	k->check->nr_repaired++;
	return ret;
}

static int report_header(struct examined *k, int ret)
{
	static const char *const text = "the header of the stub is damaged: nothing of the file can be read";
	uint8_t buf[STUB_HEADER_LEN];

	/* With a wrong checksum, a later version in the header proves nothing. */
	if (ret == -EPROTONOSUPPORT && io_pread_all(k->fd, buf, sizeof(buf), 0) == sizeof(buf) &&
	    !mend_is_right(buf, sizeof(buf), 12))
		ret = -EIO;
	if (ret == -EIO) {
		examine_report(k, PLFS_DAMAGED, "stub-header", "", "%s", text);
		if (!mend_stub(k) && !stub_read(k->fd, &k->stub))
			return 0;
		if (k->check->repair && !k->check->dry_run)
			examine_report(k, PLFS_REMAINS, "stub-header", "", "%s", text);
	} else if (ret == -EPROTONOSUPPORT) {
		examine_report(k, PLFS_FAILED, "version", "",
			       "a later version of libplfs wrote the stub: use that version");
	} else {
		examine_report(k, PLFS_FAILED, "unreadable", "", "the stub cannot be read: %s",
			       strerror(-ret));
	}
	return ret == -EIO ? 1 : ret;
}

/* The container is not this stub's: it is neither scanned nor changed. */
static int report_refused(struct examined *k, int ret)
{
	struct stat st;

	if (ret != -EIO) {
		examine_report(k, PLFS_FAILED, "unreadable", "", "the container %s cannot be opened: %s",
			       k->c.dir, strerror(-ret));
		return ret;
	}
	if (!k->c.store->ops->stat(k->c.store, k->c.dir, &st) && st.st_uid != k->st.st_uid)
		examine_report(k, k->check->repair ? PLFS_REMAINS : PLFS_DAMAGED, "not-its-own", "",
			       "the header names the container %s, which is not this file's: user %u owns "
			       "it; if the owner was changed without libplfs: chown the file to %u, then "
			       "chown it again under libplfs",
			       k->c.dir, st.st_uid, st.st_uid);
	else
		examine_report(k, k->check->repair ? PLFS_REMAINS : PLFS_DAMAGED, "not-its-own", "",
			       "the header names the container %s, which is not this file's: it is less "
			       "writable than the file",
			       k->c.dir);
	return 1;
}

/* The mark says otherwise than the header, which counts. A repair puts it right. */
static void check_mark(struct examined *k, bool stub)
{
	const char *text = stub ?
		"the mark of a stub, the sticky bit, was taken away without the library, as chmod and cp do: the header says "
		"that it is one" :
		"a program without the library has written the file anew: it is a plain file with the mark of a stub, the sticky bit";
	mode_t mode = stub ? k->st.st_mode | S_ISVTX : k->st.st_mode & ~(mode_t)S_ISVTX;

	if (k->check->repair && !k->check->dry_run && sys.fchmod(k->fd, mode & 07777))
		examine_report(k, PLFS_FAILED, "mark", "", "%s; it could not be put right: %s", text,
			       strerror(errno));
	else if (k->check->repair)
		examine_report(k, PLFS_REPAIRED, "mark", "", "%s; it is put right", text);
	else
		examine_report(k, PLFS_NOTED, "mark", "", "%s", text);
	k->st.st_mode = mode;
}

/* A chown that was killed has left a part of the container to the former owner. */
static int check_given(struct examined *k)
{
	static const char *const text = "a chown of the file was not finished";
	int ret;

	if (!container_is_half_given(&k->c))
		return 0;
	if (!k->check->repair) {
		examine_report(k, PLFS_NOTED, "owner", "", "%s: as root, repeat it under libplfs, or repair it",
			       text);
		return 0;
	}
	ret = k->check->dry_run ? 0 : container_finish_giving(&k->c, &k->st);
	if (!ret)
		examine_report(k, PLFS_REPAIRED, "owner", "", "%s: all of it is user %u's now", text,
			       (unsigned)k->st.st_uid);
	else
		examine_report(k, PLFS_FAILED, "owner", "", "%s, and could not be now: %s", text,
			       strerror(-ret));
	k->check->nr_repaired += !ret;
	return ret;
}

static int check_open(struct examined *k, int dirfd, const char *path)
{
	int ret, fd = io_openat(dirfd, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	bool is;

	k->fd = sys_fd_hide(fd < 0 ? -errno : fd);
	if (k->fd < 0)
		return k->fd;
	if (sys.fstat(k->fd, &k->st))
		return -errno;
	if (S_ISDIR(k->st.st_mode))
		return -EISDIR;
	is = stub_is_by_header(k->fd, &k->st);
	if (is != stub_marked(k->st.st_mode) && mount_has_dev(k->st.st_dev))
		check_mark(k, is);
	k->plain = !is;
	if (k->plain)
		return 0;
	ret = k->st.st_size ? stub_read(k->fd, &k->stub) : 0;
	if (!ret && stub_has_none(&k->stub) && !k->stub.explained)
		ret = stub_look_blank(k->m, k->fd, &k->st) < 0 ? -EIO : 0;
	if (ret)
		ret = report_header(k, ret);
	if (ret)
		return ret;
	if (k->stub.has_container) {
		k->m = nested_init_container(k->m, &k->c, k->fd, &k->stub, &k->st);
		if (k->m->spec->nr_hostdirs)
			k->c.nr_hostdirs = k->m->spec->nr_hostdirs;
		k->c.finishes = true; /* what a killed chown has left is looked at, and finished below */
		ret = container_check(&k->c, CONTAINER_READ);
		k->c.finishes = false;
		if (ret)
			return report_refused(k, ret);
		return check_given(k);
	}
	return 0;
}

/* ---- a file ---- */

static int check_container(struct examined *k)
{
	struct findings found;
	struct scan l;
	int ret = examine_container(k, &l, &found);

	if (ret) {
		examine_report(k, PLFS_FAILED, "unreadable", "", "the container cannot be read: %s",
			       strerror(-ret));
	} else if (!k->gone) {
		if (!k->check->repair)
			examine_report_all(k, &l, &found, false);
		ret = k->check->repair ? repair_file(k, &l, &found) : examine_result(&l, &found);
	}
	findings_release(&found);
	scan_release(&l);
	return ret;
}

int check_file(struct plfs_mount *m, int dirfd, const char *path, const char *file, struct plfs_check *check,
	       struct stat *st, struct stub *stub)
{
	struct examined k = { .m = m, .check = check, .file = file };
	int ret = check_open(&k, dirfd, path);

	if (!ret && k.stub.has_container && stub_is_copy(&k.stub, k.st.st_ino))
		examine_report(&k, PLFS_NOTED, "moved", "",
			       "the stub was copied or restored without the library: removing the file will "
			       "leave its container%s",
			       check->repair ? "" :
			       "; plfs repair -r of the whole backend corrects it if no other stub has that "
			       "container");
	if (!ret && k.stub.has_container && !k.stub.in_body && !k.stub.moving)
		check_body(&k);
	if (!ret && k.stub.has_container)
		ret = check_container(&k);
	if (ret >= 0 && S_ISREG(k.st.st_mode) && !k.plain)
		k.st.st_mode |= S_ISVTX; /* as the header says */
	*st = k.st;
	*stub = k.stub;
	sys_fd_close(&k.fd);
	return ret;
}

void check_count(struct plfs_check *check, const struct stat *st, int ret)
{
	bool plain = !stub_marked(st->st_mode) && !ret;

	check->nr_plain += plain;
	check->nr_files += !plain;
	check->nr_damaged += ret == 1;
	check->nr_failed += ret < 0;
}

int plfs_check(struct plfs_mount *m, int dirfd, const char *path, struct plfs_check *check)
{
	int saved ERRNO_KEPT = errno;
	struct stub stub;
	struct stat st;
	int ret = check_file(m, dirfd, path, path, check, &st, &stub);

	check_count(check, &st, ret);
	return ret;
}
