/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plfs_check(): the stub, then looks at its container until two of them agree on what is damaged.
 */
#include "check.h"

#include "mend.h"
#include "mount.h"
#include "own.h"
#include "sys.h"

#include <stdio.h>

#define LOOKS_MAX 6
#define WAIT_NS 20000000

/* ---- what is told ---- */

static void tell(const struct checked *k, const struct finding *f)
{
	struct plfs_finding told = { .severity = f->severity, .file = k->file, .code = f->code, .path = f->path,
		.text = f->text };

	if (!f->doubtful)
		k->check->found(k->check->arg, &told);
}

void check_tell(struct checked *k, enum plfs_severity severity, const char *code, const char *path, const char *fmt, ...)
{
	struct findings one = { 0 };
	char text[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (findings_add(&one, severity, code, path, 0, "%s", text))
		tell(k, one.first);
	findings_release(&one);
}

static void tell_lost(void *arg, uint64_t logical_off, uint64_t len)
{
	const struct checked *k = arg;
	struct plfs_finding told = {
		.severity = k->check->repair ? PLFS_REMAINS : PLFS_DAMAGED, .file = k->file, .code = "lost",
		.path = "", .text = "", .logical_off = logical_off, .len = len,
	};

	k->check->found(k->check->arg, &told);
}

/* ---- the stub ---- */

/* Whether one bit makes the header right, and, in a repair, make it so. 0: it has been done. */
static int mend_stub(struct checked *k)
{
	uint8_t buf[STUB_HEADER_LEN], mended[STUB_HEADER_LEN];
	struct stub stub;
	size_t at;
	int ret, fd;

	if (!k->check->repair || own_pread_all(k->fd, buf, sizeof(buf), 0) != sizeof(buf))
		return -EIO;
	memcpy(mended, buf, sizeof(mended));
	if (!mend_find(mended, sizeof(mended), 12, &at) || stub_decode(&stub, mended, sizeof(mended)))
		return -EIO;
	fd = k->check->dry_run ? -EIO : stub_reopen(k->fd, O_RDWR);
	ret = fd < 0 ? fd : own_pwrite_all(fd, mended + at, 1, at) == 1 ? 0 : -EIO;
	sys_fd_close(&fd);
	if (ret && !k->check->dry_run) {
		check_tell(k, PLFS_FAILED, "bit", "", "the header of its stub could not be set right: %s", strerror(-ret));
		return ret;
	}
	check_tell(k, PLFS_REPAIRED, "bit", "", "byte %zu of its stub, 0x%02x, is 0x%02x again, as its checksum says",
		   at, buf[at], mended[at]);
	k->check->nr_repaired++;
	return ret;
}

static int tell_header(struct checked *k, int ret)
{
	static const char *const text = "the header of its stub is damaged: nothing of the file can be read";
	uint8_t buf[STUB_HEADER_LEN];

	/* One that says it is of a later version, with a wrong checksum, need not be. */
	if (ret == -EPROTONOSUPPORT && own_pread_all(k->fd, buf, sizeof(buf), 0) == sizeof(buf) &&
	    !mend_is_right(buf, sizeof(buf), 12))
		ret = -EIO;
	if (ret == -EIO) {
		check_tell(k, PLFS_DAMAGED, "stub-header", "", "%s", text);
		if (!mend_stub(k) && !stub_read(k->fd, &k->stub))
			return 0;
		if (k->check->repair && !k->check->dry_run)
			check_tell(k, PLFS_REMAINS, "stub-header", "", "%s", text);
	} else if (ret == -EPROTONOSUPPORT) {
		check_tell(k, PLFS_FAILED, "version", "", "its stub is of a later version than this library's");
	} else {
		check_tell(k, PLFS_FAILED, "unreadable", "", "its stub cannot be read: %s", strerror(-ret));
	}
	return ret == -EIO ? 1 : ret;
}

/* A container that is not this stub's: nothing in it is looked at, and nothing changed. */
static int tell_refused(struct checked *k, int ret)
{
	if (ret != -EIO) {
		check_tell(k, PLFS_FAILED, "unreadable", "", "its container %s: %s", k->c.dir, strerror(-ret));
		return ret;
	}
	check_tell(k, k->check->repair ? PLFS_REMAINS : PLFS_DAMAGED, "not-its-own", "",
		   "the container %s, which its header names, is not its own: it belongs to another user, or is closed to who may write the file",
		   k->c.dir);
	return 1;
}

static int check_open(struct checked *k, int dirfd, const char *path)
{
	int ret, fd = own_openat(dirfd, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	k->fd = sys_fd_hide(fd < 0 ? -errno : fd);
	if (k->fd < 0)
		return k->fd;
	if (sys.fstat(k->fd, &k->st))
		return -errno;
	if (S_ISDIR(k->st.st_mode))
		return -EISDIR;
	k->plain = !stub_marked(k->st.st_mode) || !mount_has_dev(k->st.st_dev);
	if (k->plain)
		return 0;
	ret = k->st.st_size ? stub_read(k->fd, &k->stub) : 0;
	if (ret)
		ret = tell_header(k, ret);
	if (ret)
		return ret;
	if (k->stub.has_container) {
		container_init_for(&k->c, &k->m->store, k->stub.id, &k->st);
		container_look_at_list(&k->c, k->fd);
		if (k->m->spec->nr_hostdirs)
			k->c.nr_hostdirs = k->m->spec->nr_hostdirs;
		ret = container_check(&k->c, CONTAINER_READ);
		if (ret)
			return tell_refused(k, ret);
	}
	return 0;
}

/* Whether the file has become another since its header was read: then what was found means nothing. */
static int reread(struct checked *k, bool *other)
{
	struct stub before = k->stub;
	int ret;

	*other = true;
	if (sys.fstat(k->fd, &k->st))
		return -errno;
	k->gone = !k->st.st_nlink;
	if (k->gone)
		return 0;
	ret = stub_read(k->fd, &k->stub);
	*other = ret || k->stub.has_container != before.has_container || k->stub.generation_ns != before.generation_ns;
	return ret;
}

/* ---- the looks ---- */

int check_look(struct checked *k, struct look *l, struct findings *found)
{
	const struct timespec wait = { .tv_nsec = WAIT_NS };
	struct findings before = { 0 };
	bool other = false;
	int ret = 0;

	memset(found, 0, sizeof(*found));
	for (int tries = 0;; tries++) {
		bool again;

		ret = look_at(l, &k->c, k->fd, &k->stub, k->check, found);
		if (!ret && !found->nr_damaged)
			break;
		again = ret == -ENOENT || ret == -EAGAIN || !tries || findings_confirm(found, &before) || other;
		/* Removed, moved into its body, or made plain. */
		if (reread(k, &other) || k->gone || !k->stub.has_container) {
			k->gone = true;
			ret = 0;
			break;
		}
		if ((!again && !other) || tries == LOOKS_MAX - 1 || (ret && ret != -ENOENT && ret != -EAGAIN))
			break;
		look_release(l);
		findings_release(&before);
		before = *found;
		memset(found, 0, sizeof(*found));
		own_nanosleep(&wait, NULL);
	}
	if (k->gone) {
		findings_release(found);
		look_release(l);
	}
	findings_release(&before);
	return ret ? ret : found->ret;
}

void check_report(struct checked *k, struct look *l, const struct findings *found, bool remains)
{
	for (struct finding *f = found->first; f; f = f->next) {
		if (remains && f->severity != PLFS_DAMAGED && f->severity != PLFS_FAILED)
			continue;
		if (remains && f->severity == PLFS_DAMAGED)
			f->severity = PLFS_REMAINS;
		tell(k, f);
	}
	if (found->nr_damaged && remains == k->check->repair && look_each_lost(l, tell_lost, k) == -ENOMEM)
		check_tell(k, PLFS_FAILED, "memory", "", "no memory to find out which bytes of the file are lost");
}

int check_result(const struct look *l, const struct findings *found)
{
	return found->nr_damaged ? 1 : l->unknown ? -EPROTONOSUPPORT : 0;
}

/* ---- a file ---- */

static int check_container(struct checked *k)
{
	struct findings found;
	struct look l;
	int ret = check_look(k, &l, &found);

	if (ret) {
		check_tell(k, PLFS_FAILED, "unreadable", "", "its container cannot be read: %s", strerror(-ret));
	} else if (!k->gone) {
		check_report(k, &l, &found, false);
		ret = k->check->repair ? check_repair(k, &l, &found) : check_result(&l, &found);
	}
	findings_release(&found);
	look_release(&l);
	return ret;
}

int check_file(struct plfs_mount *m, int dirfd, const char *path, const char *file, struct plfs_check *check,
	       struct stat *st, struct stub *stub)
{
	struct checked k = { .m = m, .check = check, .file = file };
	int ret = check_open(&k, dirfd, path);

	if (!ret && k.stub.has_container && stub_is_copy(&k.stub, k.st.st_ino))
		check_tell(&k, PLFS_NOTED, "moved", "", "its stub was copied or restored without the library: when it is removed its container will stay%s",
			   check->repair ? "" : "; a repair of the whole backend sets that right if it is the only one");
	if (!ret && k.stub.has_container)
		ret = check_container(&k);
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
