/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plfs compact: the steps of core/file/reclaim.h for a file that nobody in this process has open, as its
 * owner. The proof is there. Here is what is copied, and what is said.
 */
#include "core/plain/copy_out.h"
#include "core/plfs_admin.h"

#include "core/backend/stub_known.h"
#include "core/backend/stub_use.h"
#include "core/base/as_owner.h"
#include "core/base/critical.h"
#include "core/base/io.h"
#include "core/base/vec.h"
#include "core/dropping/no_room.h"
#include "core/file/file.h"
#include "core/file/logged.h"
#include "core/file/reclaim.h"

#include <stdio.h>

struct compact {
	struct plfs_compact *out;
	struct plfs_progress *watch;
	int fd; /* hidden, of the stub, to write */
	struct stat st;
	struct plfs_mount *m;
	struct plfs_file *file;
	struct as_owner owner;
	struct reclaim rc;
	struct index_record *records; /* of the copy */
	size_t nr, cap;
};

static int nothing(struct compact *k, const char *why)
{
	return progress_explained(k->watch, 1, why);
}

/* ---- opening ---- */

static int find_mount(struct compact *k)
{
	struct stat now = k->st;

	if (!mount_has_dev(now.st_dev))
		return nothing(k, "is a plain file");
	stub_know(&now, k->fd);
	if (!stub_marked(now.st_mode))
		return nothing(k, "is a plain file");
	k->m = mount_of_file(k->fd);
	return k->m ? 0 : nothing(k, "lies in no backend");
}

static int open_it(struct compact *k, const char *path)
{
	uid_t me = geteuid();
	int ret, fd = io_openat(AT_FDCWD, path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);

	k->fd = sys_fd_hide(fd < 0 ? -errno : fd);
	if (k->fd < 0)
		return progress_failed(k->watch, k->fd, "cannot open it");
	if (sys.fstat(k->fd, &k->st))
		return -errno;
	if (!S_ISREG(k->st.st_mode))
		return progress_explained(k->watch, -EINVAL, "not a regular file");
	ret = find_mount(k);
	if (!ret && me && me != k->st.st_uid)
		ret = progress_explained(k->watch, -EPERM, "only its owner, or root, can compact it");
	return ret;
}

/* Where hosts share the backend, nobody else has the file open, or opens it until the end. */
static int mark(struct compact *k)
{
	int ret;

	if (!k->m->store.remote)
		return stub_mark_in_use(k->fd);
	ret = stub_lock_alone(k->fd);
	k->rc.alone = !ret;
	if (ret == -EBUSY)
		return progress_explained(k->watch, ret,
					  "is open, and hosts share its backend: compact it when it is closed");
	return ret ? progress_failed(k->watch, ret, "cannot lock it") : 0;
}

/* ---- the copy ---- */

/* The inode's own log takes the bytes; their records come when all is there. */
static int put(void *arg, const char *buf, size_t len, uint64_t logical_off)
{
	struct compact *k = arg;
	struct inode *ino = k->file->ino;
	struct index_record *last = k->nr ? &k->records[k->nr - 1] : NULL, *records;
	uint64_t log_off;
	ssize_t n = -EREMCHG;

	file_begin(k->file);
	if (ino->writing)
		n = writer_put(&ino->w, buf, len, &log_off);
	if (n >= 0 && live_is_broken(&ino->w.tail.live))
		n = -ENOSPC;
	file_end(k->file);
	if (n != (ssize_t)len)
		return n < 0 ? (int)n : -ENOSPC;
	k->out->copied_bytes += len;
	if (last && last->logical_off + last->length == logical_off &&
	    last->log_off + last->length == log_off) {
		last->length += len;
		return 0;
	}
	records = vec_room(k->records, &k->cap, k->nr + 1, sizeof(*records));
	if (!records)
		return -ENOMEM;
	k->records = records;
	records[k->nr++] = (struct index_record){ .type = INDEX_WRITE, .logical_off = logical_off,
						  .length = len, .count = 1, .log_off = log_off };
	return 0;
}

/* What was copied lies in logs still, as far as these records and these bytes. */
struct still {
	const struct compact *k;
	size_t nr;
	uint64_t at;
};

static int is_still_there(void *arg, uint64_t logical_off, uint64_t len, const char *log, uint64_t log_off)
{
	struct still *s = arg;
	uint64_t end = logical_off + len;

	(void)log_off;
	if (!log || log == plfs_in_stub || log == plfs_lost)
		return 0;
	while (s->nr < s->k->nr) {
		const struct index_record *r = &s->k->records[s->nr];
		uint64_t r_end = r->logical_off + r->length, from = max_u64(s->at, r->logical_off);

		if (from < logical_off)
			return -EAGAIN;
		if (from >= end)
			break;
		s->at = min_u64(end, r_end);
		if (s->at == r_end)
			s->nr++;
	}
	return 0;
}

/*
 * A log that goes after the map was made, by a truncation or since its host loses what it has, reads as what
 * is below it, which may be a hole. The zeros of that must not become bytes that somebody wrote.
 */
static int look_again(struct compact *k)
{
	struct still s = { .k = k };
	int ret = plfs_get_map(k->file, is_still_there, &s);

	if (ret != -EAGAIN && (ret || s.nr == k->nr))
		return ret;
	return progress_explained(k->watch, -EAGAIN, "a log has gone while it was copied: compact it again");
}

static int copy(struct compact *k)
{
	int ret;

	file_begin(k->file);
	ret = reclaim_begin_copy(&k->rc);
	file_end(k->file);
	if (ret)
		return ret;
	ret = copy_logs(k->file, k->rc.alone ? k->fd : -1, put, k, k->watch);
	if (!ret)
		ret = look_again(k);
	file_begin(k->file);
	ret = reclaim_end_copy(&k->rc, k->records, k->nr, ret);
	file_end(k->file);
	return ret;
}

/* ---- all ---- */

/* Logs and bytes on disk, to *@nr and *@bytes. */
static void measure(struct compact *k, uint64_t *nr, uint64_t *bytes)
{
	struct plfs_info info;

	if (plfs_get_info(k->file, &info))
		return;
	*nr = info.nr_logs;
	*bytes = info.disk_bytes;
}

static void estimate(struct compact *k)
{
	const struct reclaim *rc = &k->rc;
	uint64_t back = rc->goes_bytes + rc->overwritten;

	k->out->nr_after = rc->copies ? 1 : rc->nr_logs - rc->nr_goes;
	k->out->disk_after = k->out->disk_bytes - min_u64(back, k->out->disk_bytes);
}

/* By its live file a stat knows what a killed writer wrote last, until that goes: the stub has it before. */
static void publish(struct compact *k)
{
	logged_publish_found(k->file->ino, file_begin(k->file));
	file_end(k->file);
}

static int carry_out(struct compact *k)
{
	int ret;

	publish(k);
	ret = k->rc.copies ? copy(k) : 0;
	if (!ret)
		ret = plfs_sync(k->file);
	if (ret)
		return ret;
	file_begin(k->file);
	ret = reclaim_sync(&k->rc);
	if (!ret)
		ret = reclaim_commit(&k->rc, &k->out->nr_left);
	file_end(k->file);
	return ret;
}

static int compact_file(struct compact *k)
{
	struct reclaim *rc = &k->rc;
	int ret;

	measure(k, &k->out->nr_logs, &k->out->disk_bytes);
	rc->ino = k->file->ino;
	rc->marked = k->fd;
	rc->fd = file_begin(k->file);
	ret = reclaim_begin(rc);
	file_end(k->file);
	if (ret > 0)
		return nothing(k, "has no logs: all of it is in its stub");
	if (ret)
		return ret;
	estimate(k);
	if (!rc->copies && !rc->nr_goes && !rc->nr_gone)
		return nothing(k, "nothing in its logs was overwritten");
	if (k->out->dry)
		return 0;
	ret = carry_out(k);
	if (!ret)
		measure(k, &k->out->nr_after, &k->out->disk_after);
	return ret;
}

static int end(struct compact *k, int ret)
{
	char text[sizeof(k->watch->why)];

	if (ret < 0 && *k->rc.why)
		progress_explained(k->watch, ret, k->rc.why);
	if (k->file && no_room_for_any(&k->file->ino->c, ret, text, sizeof(text)))
		progress_explained(k->watch, ret, text);
	if (ret == -EREMCHG)
		ret = progress_explained(k->watch, -EBUSY, "was mapped for writing meanwhile: all of it is in its stub now");
	reclaim_end(&k->rc);
	mem_free(k->records);
	if (k->file && plfs_close(k->file) && !ret)
		ret = -EIO;
	as_owner_end(&k->owner);
	if (k->fd >= 0)
		stub_unmark_in_use(k->fd);
	sys_fd_close(&k->fd);
	return ret;
}

int plfs_compact(const char *path, struct plfs_compact *out, struct plfs_progress *watch)
{
	int saved ERRNO_KEPT = errno;
	bool section CRITICAL = critical_begin();
	struct compact k = { .out = out, .watch = watch, .fd = -1 };
	int ret = open_it(&k, path);

	if (!ret) {
		as_owner_begin(&k.owner, k.st.st_uid, k.st.st_gid);
		ret = mark(&k);
	}
	if (!ret)
		ret = file_of(k.fd, &k.file);
	if (!ret && !k.file)
		ret = -EAGAIN;
	if (!ret)
		ret = compact_file(&k);
	return end(&k, ret);
}
