/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The shared state of logical files: what the size is, and when maps are made anew. Reading is
 * inode_read.c's, writing inode_write.c's.
 */
#include "inode.h"

#include "body.h"
#include "file.h"
#include "log.h"
#include "own.h"
#include "stamp.h"
#include "sys.h"
#include "writers.h"

bool inode_posix;
bool inode_exiting;

void inode_init_container(struct plfs_mount *m, struct container *c, const uint8_t *id, const struct stat *st)
{
	container_init_for(c, &m->store, id, st);
	if (m->spec->nr_hostdirs)
		c->nr_hostdirs = m->spec->nr_hostdirs;
}

void inode_adopt_container(struct inode *ino, const struct stat *st)
{
	if (ino->stub.has_container && !ino->c.store)
		inode_init_container(ino->m, &ino->c, ino->stub.id, st);
	stamp_seen(ino->stub.generation_ns); /* what is written from here on is later than the truncation */
}

int inode_check_container(struct inode *ino, enum container_use use)
{
	int fd = file_any_fd(ino);

	if (fd >= 0)
		container_look_at_list(&ino->c, fd);
	return container_check(&ino->c, use);
}

void inode_remove_container(const struct inode *ino, bool alone)
{
	if (stub_is_copy(&ino->stub, ino->key.ino))
		return;
	if (alone)
		writers_remove_container(ino->m, &ino->c, ino->key.ino);
	else
		container_remove(&ino->c);
}

/* ---- size ---- */

uint64_t inode_known_size(const struct inode *ino)
{
	if (ino->stub.in_body)
		return ino->body_len;
	return max_u64(max_u64(ino->body_len, ino->own_end), ino->r.loaded ? reader_end(&ino->r) : 0);
}

bool inode_is_cut(const struct inode *ino)
{
	const struct stub *s = &ino->stub;

	if (likely(!s->cut_ns) || s->in_body)
		return false;
	return s->cut_size ? ino->r.loaded && ino->r.cut_ns == s->cut_ns : stub_is_emptied(s);
}

uint64_t inode_told_len(const struct inode *ino, off_t st_size)
{
	return inode_is_cut(ino) ? ino->stub.cut_size : stub_body_len(st_size);
}

static int look_at_length(struct inode *ino, int fd)
{
	struct stat st;

	if (sys.fstat(fd, &st))
		return -errno;
	ino->body_len = inode_told_len(ino, st.st_size);
	return 0;
}

/*
 * The rest of inode_extend(), when the length has just been looked at. But others may have written and cut the file,
 * or moved it into its body, since then: so this must touch no byte, and can only make the file longer. Where the
 * file system cannot do that a zero is written behind what was the end.
 */
static int extend(struct inode *ino, int fd, uint64_t end)
{
	off_t last = (off_t)(PLFS_BODY_OFF + end - 1);
	bool appends;
	ssize_t n;
	int ret;

	if (end <= ino->body_len)
		return 0;
	do {
		ret = own_fallocate(fd, 0, last, 1);
	} while (ret < 0 && errno == EINTR);
	if (ret == 0) {
		ino->body_len = end;
		return 0;
	}
	/* A description that appends is the only one there may be of a file whose mode forbids another. */
	appends = sys.fcntl(fd, F_GETFL) & O_APPEND;
	if (!appends && (errno == EOPNOTSUPP || errno == ENOSYS)) {
		do {
			n = own_pwrite(fd, "", 1, last);
		} while (n < 0 && errno == EINTR);
		ret = n == 1 ? 0 : -1;
	}
	if (ret < 0 && (appends || errno == ENOSPC || errno == EDQUOT))
		ret = sys.ftruncate(fd, last + 1);
	if (ret < 0)
		return -errno;
	ino->body_len = end;
	return 0;
}

int inode_extend(struct inode *ino, int fd, uint64_t end)
{
	struct stat st;
	int ret;

	if (sys.fstat(fd, &st))
		return -errno;
	ino->body_len = stub_body_len(st.st_size);
	ret = extend(ino, fd, end);
	if (inode_is_cut(ino))
		ino->body_len = ino->stub.cut_size;
	return ret;
}

struct notify_arg {
	struct inode *ino;
	uint64_t stamp_ns;
	unsigned nr_others;
};

static int notify_live(void *arg, const char *path, const char *name, enum dropping_kind kind)
{
	struct notify_arg *na = arg;
	const struct inode *ino = na->ino;

	if (kind != DROPPING_LIVE)
		return 0;
	stage_notify(&ino->c, path, na->stamp_ns);
	na->nr_others += !ino->writing || strcmp(name + 5, ino->w.log_name + 5);
	return 0;
}

unsigned inode_notify_writers(struct inode *ino, uint64_t stamp_ns)
{
	struct notify_arg na = { .ino = ino, .stamp_ns = stamp_ns };

	container_list(&ino->c, notify_live, &na);
	return na.nr_others;
}

void inode_notify(struct inode *ino, uint64_t stamp_ns)
{
	inode_notify_writers(ino, stamp_ns);
	watch_raise(&ino->c);
}

/*
 * The stub became shorter, and no notice says which of our writes came before that. So none of them counts for the size
 * until a map has been asked.
 */
static void forget_end(struct inode *ino)
{
	ino->end_lost |= ino->own_end != 0;
	ino->own_end = 0;
	ino->acquired = true;
}

/*
 * A write that came before another process's truncation must not bring the old size back. A record that is later than
 * the truncation and earlier than this look counts: a map tells how far it reaches. The notice may be of a move, and
 * stays one until the header has been looked at.
 */
static bool heed_truncation(struct inode *ino)
{
	if (!ino->writing || stage_notified(&ino->w.stage) <= ino->cut_ns)
		return false;
	ino->cut_ns = stage_notified(&ino->w.stage);
	ino->end_lost |= ino->own_end || ino->w.last.stamp_ns > ino->cut_ns; /* who told us may have died before the truncation */
	ino->own_end = 0;
	ino->acquired = true; /* what is known of the length may be new by now, but the map is not */
	return true;
}

int inode_heed_notice(struct inode *ino, int fd)
{
	uint64_t notified_ns;
	int ret;

	if (likely(!inode_is_notified(ino)))
		return 0;
	notified_ns = stage_notified(&ino->w.stage);
	heed_truncation(ino);
	ret = inode_settle(ino, fd);
	if (!ret)
		ino->notified_ns = notified_ns;
	return ret;
}

/*
 * A store that found no space for its page is no failure of the write that is told of, which is in the live file: the log is left as that of a
 * killed process, and the next write begins another.
 */
static bool tells(struct inode *ino, bool more)
{
	int why;

	if (more)
		stage_begin_telling(&ino->w.stage);
	else
		stage_end_telling(&ino->w.stage);
	if (likely(!stage_is_broken(&ino->w.stage)))
		return true;
	why = stage_why_broken(&ino->w.stage);
	if (why == -ENOSPC || why == -EDQUOT)
		inode_mend(ino);
	return false;
}

int inode_publish(struct inode *ino, int fd)
{
	static const struct timespec now[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_nsec = UTIME_NOW } };
	int writable = file_any_fd(ino); /* a sync or a close may come through a description that only reads */
	bool telling = ino->writing && ino->own_end && tells(ino, true);
	uint64_t before;
	int ret = 0;

	fd = writable >= 0 ? writable : fd;
	if (ino->own_end) /* others may have made the file shorter than it was when it was looked at last */
		ret = look_at_length(ino, fd);
	heed_truncation(ino); /* after the look: who cuts a file says so first */
	before = ino->body_len;
	if (!ret)
		ret = extend(ino, fd, ino->own_end);
	if (telling)
		tells(ino, false);
	if (!ret) {
		if (ino->touched && ino->body_len == before && sys.futimens(fd, now))
			sys.futimens(fd, NULL); /* not the owner: both times or none */
		ino->touched = false;
		ino->own_end = 0;
		ino->last_publish_ns = stamp_coarse_ns();
	}
	return ret;
}

/*
 * @ret of reader_load(), with what is missing told. But somebody may have moved the file into its body since we read the
 * header: then the container was removed, all of it or as far as we have seen, and whatever was found there means nothing.
 * Or truncated it: -EAGAIN, what was found may be void, or of another time than the length.
 */
static int loaded(struct inode *ino, int ret)
{
	int fd = file_any_fd(ino), ret2;
	char name[PATH_MAX];
	struct stub now;
	struct stat st;

	ret2 = fd < 0 ? 0 : ret == -EIDRM ? stub_settle(fd, &now) : stub_read(fd, &now);
	if (fd >= 0 && !ret2 && now.in_body) {
		inode_enter_body(ino, &now);
		if (sys.fstat(fd, &st))
			return -errno;
		ino->body_len = stub_body_len(st.st_size);
		return 0;
	}
	if (fd >= 0 && !ret2 && now.has_container &&
	    (now.generation_ns != ino->stub.generation_ns || now.cut_ns != ino->stub.cut_ns)) {
		ino->stub = now;
		stamp_seen(now.generation_ns);
		return -EAGAIN;
	}
	if (fd >= 0 && !ret2)
		ino->stub.moving = now.moving;
	/*
	 * A truncation of which was told before this load watched for it may have come behind the look at the length. What the file has
	 * grown by since is not in the map, and is for the next look.
	 */
	if (!ret && !ret2 && fd >= 0) {
		uint64_t before = ino->body_len;

		ret = look_at_length(ino, fd);
		if (ino->body_len < before)
			forget_end(ino);
		if (!inode_is_cut(ino))
			ino->body_len = min_u64(ino->body_len, before);
		heed_truncation(ino);
	}
	if (ret == -EIDRM && !ret2)
		log_error("%s: its container %s is missing or empty", stub_name(fd, name, sizeof(name)), ino->c.dir);
	if (ret == -ENOMSG)
		log_error("%s/%s: the data log is not in any index: the index is lost", ino->c.dir, ino->r.lost);
	return ret == -EIDRM || ret == -ENOMSG ? -EIO : ret ? ret : ret2;
}

/*
 * Give the reader what the header says for the next load. A process that emptied the file may have been killed before it
 * told readers. So this process tells them, before it goes by the new generation itself.
 */
static void heed_header(struct inode *ino)
{
	ino->r.seeks_cut = ino->stub.cut_ns;
	ino->r.emptied = stub_is_emptied(&ino->stub);
	if (ino->r.emptied && ino->told_cut_ns != ino->stub.cut_ns)
		watch_raise(&ino->c);
	ino->told_cut_ns = ino->stub.cut_ns;
}

int inode_load(struct inode *ino)
{
	int ret = ino->writing && !ino->w.stage.shared ? stage_save(&ino->w.stage) : 0;

	if (!ret)
		ret = inode_check_container(ino, CONTAINER_READ);
	if (ret)
		return ret;
	ino->r.may_make = false;
	for (const struct plfs_file *f = ino->files; f; f = f->next)
		ino->r.may_make |= f->writable;
	do {
		heed_header(ino);
		ret = loaded(ino, reader_load(&ino->r, ino->writing ? &ino->w : NULL, ino->stub.generation_ns));
	} while (ret == -EAGAIN);
	if (!ret && !ino->stub.in_body && !container_is_checked(&ino->c, CONTAINER_READ)) { /* it has appeared since */
		ret = inode_check_container(ino, CONTAINER_READ);
		if (ret)
			reader_release(&ino->r);
	}
	return ret;
}

/* Make the header's and the map's contents current. */
static int revalidate(struct inode *ino, int fd, const struct stat *st)
{
	uint64_t generation = ino->stub.generation_ns;
	bool changed;
	int ret;

	if (st->st_size && fd >= 0) {
		struct stub now;

		ret = stub_read(fd, &now);
		if (ret)
			return ret;
		if (now.in_body) {
			inode_enter_body(ino, &now);
			return 0;
		}
		ino->stub = now;
		inode_adopt_container(ino, st);
	}
	if (!ino->stub.has_container || !ino->r.loaded)
		return 0;
	if (ino->stub.generation_ns != generation)
		return inode_load(ino);
	if (ino->writing && !ino->w.stage.shared) {
		ret = stage_save(&ino->w.stage);
		if (ret)
			return ret;
	}
	heed_header(ino);
	ret = loaded(ino, reader_reload(&ino->r, ino->writing ? &ino->w : NULL, ino->stub.generation_ns, &changed));
	return ret == -EAGAIN ? inode_load(ino) : ret;
}

int inode_prepare_read(struct inode *ino)
{
	int ret = 0;

	if (!ino->stub.has_container || ino->stub.in_body)
		return 0;
	if (!ino->r.loaded)
		ret = inode_load(ino);
	else if (ino->writing)
		ret = reader_add_own(&ino->r, &ino->w);
	return ret;
}

int inode_look_again(struct inode *ino, int fd, const struct stat *st, bool reload)
{
	uint64_t len = inode_told_len(ino, st->st_size);
	int ret = 0;

	if (ino->stub.in_body) {
		ino->body_len = len;
		return 0;
	}
	reload |= heed_truncation(ino);
	if (len < ino->body_len)
		forget_end(ino);
	if (len != ino->body_len || ino->r.inputs.nr_lives || ino->acquired || (!ino->stub.has_container && st->st_size))
		reload = true;
	ino->body_len = len;
	if (reload) {
		ino->acquired = false;
		ret = revalidate(ino, fd, st);
		ino->acquired |= ret != 0;
		if (inode_is_cut(ino))
			ino->body_len = ino->stub.cut_size;
	}
	return !ret && ino->end_lost ? inode_prepare_read(ino) : ret;
}
