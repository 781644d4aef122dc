/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is asked of a logical file: its size and its bytes, and whether what is known of them still holds.
 */
#include "inode.h"

#include "bare.h"
#include "body.h"
#include "sys.h"
#include "usermem.h"

/*
 * The map is of an empty container: somebody is about to make the first log, and the word that tells of it may be
 * made after that. A confirmed map, made without any input, is not: it is revoked first.
 */
static bool is_expecting(const struct inode *ino)
{
	const struct reader *r = &ino->r;

	return r->loaded && !r->inputs.nr_lives && !r->inputs.nr_indexes && !r->global.base && !r->watch.word &&
	       !ino->writing;
}

/*
 * This process only reads the file, and no process of this host had written it when the map was made: there was no notice to
 * watch, and no kept map.
 */
static bool is_untold(const struct inode *ino)
{
	const struct watch *w = &ino->r.watch;

	return unlikely(!w->word && !w->revoked && ino->r.loaded && !ino->m->store.remote);
}

/* A notice that is there now tells of a change. A move into the body may have removed it, but that is in the header. */
static bool has_begun(struct inode *ino)
{
	if (!is_untold(ino))
		return false;
	watch_word(&ino->r.watch, &ino->c, false);
	ino->acquired |= ino->r.watch.word != NULL;
	return ino->r.watch.word;
}

int inode_size(struct inode *ino, int fd, const struct stat *st, uint64_t *size)
{
	int ret = inode_look_again(ino, fd, st,
				   watch_changed(&ino->r.watch) || is_expecting(ino) || ino->stub.moving || has_begun(ino));

	if (!ret && !ino->r.loaded && ino->stub.has_container && !ino->stub.in_body)
		ret = inode_load(ino);
	if (unlikely(inode_is_broken(ino))) {
		inode_mend(ino);
		ret = ino->stub.has_container && !ino->stub.in_body ? inode_load(ino) : 0;
	}
	*size = inode_known_size(ino);
	return ret;
}

/*
 * Whether somebody has changed the stub since it was opened. Of what came before there was a map, and something to
 * watch with it, no word tells.
 */
static bool has_changed_before(const struct inode *ino, int fd)
{
	struct stat st;

	return sys.fstat(fd, &st) || stub_body_len(st.st_size) != ino->body_len ||
	       st.st_ctim.tv_sec != ino->first_ctim.tv_sec || st.st_ctim.tv_nsec != ino->first_ctim.tv_nsec;
}

/* find_readable() of a file that is not bare. */
static ssize_t find_in_logs(struct inode *ino, int fd, size_t len, uint64_t logical_off)
{
	bool first = ino->stub.has_container && !ino->r.loaded;
	uint64_t size;
	bool stale;
	int ret;

	if (ino->stub.in_body)
		return 0;
	ret = ino->stub.has_container && (unlikely(ino->stub.moving) || is_untold(ino)) ? inode_look_for_move(ino, fd) : 0;
	if (!ret)
		ret = inode_prepare_read(ino);
	if (ret || ino->stub.in_body)
		return ret;
	stale = reader_is_stale(&ino->r);
	if (stale && !ino->acquired && !inode_posix) {
		stale = !reader_follow(&ino->r);
		if (!ino->r.loaded)
			ret = inode_load(ino);
		if (ret)
			return ret;
	}
	stale |= is_expecting(ino) || (first && has_changed_before(ino, fd)) || has_begun(ino);
	size = inode_known_size(ino);
	if (logical_off + len > size || ino->acquired || inode_posix || stale) {
		struct stat st;

		if (sys.fstat(fd, &st))
			return -errno;
		ret = inode_look_again(ino, fd, &st, inode_posix || stale);
		if (!ret)
			ret = inode_prepare_read(ino);
		if (ret)
			return ret;
		size = inode_known_size(ino);
	}
	return logical_off >= size ? 0 : (ssize_t)min_u64(len, size - logical_off);
}

/*
 * Have all that a read goes by. *@in_body: it is read there. Else returns how many of the @len bytes there are, 0 at or past
 * the end.
 */
static ssize_t find_readable(struct inode *ino, int fd, size_t len, uint64_t logical_off, bool *in_body)
{
	int bare = bare_look(ino, fd);
	ssize_t n = bare ? (bare < 0 ? bare : 0) : find_in_logs(ino, fd, len, logical_off);

	*in_body = bare > 0 || ino->stub.in_body;
	return n;
}

static ssize_t read_at(struct inode *ino, int fd, void *buf, size_t len, uint64_t logical_off, bool again)
{
	bool in_body;
	ssize_t n = find_readable(ino, fd, len, logical_off, &in_body);
	int ret;

	if (in_body)
		return body_read(fd, buf, len, logical_off);
	if (n <= 0)
		return n;
	len = user_writable(buf, (size_t)n);
	if (!len)
		return -EFAULT;
	ret = reader_read(&ino->r, ino->writing ? &ino->w : NULL, fd, buf, len, logical_off);
	if (ret == -ENOENT && !again) { /* removed by a truncation to 0 that we have not seen yet? */
		struct stat st;

		ret = sys.fstat(fd, &st) ? -errno : inode_look_again(ino, fd, &st, true);
		return ret ? ret : read_at(ino, fd, buf, len, logical_off, true);
	}
	if (ret == -ENOENT) {
		reader_log_missing(&ino->r);
		ret = -EIO;
	}
	return ret ? ret : (ssize_t)len;
}

static bool body_is_doubtful(struct inode *ino)
{
	return unlikely(ino->r.took_body) && (reader_body_is_doubtful(&ino->r) || has_begun(ino));
}

ssize_t inode_read(struct inode *ino, int fd, void *buf, size_t len, uint64_t logical_off)
{
	ssize_t n = 0;

	for (int tries = 0; tries < 3; tries++) {
		if (inode_is_broken(ino))
			inode_mend(ino);
		ino->r.took_body = false;
		n = read_at(ino, fd, buf, len, logical_off, false);
		if (likely(!inode_is_broken(ino)) && likely(!body_is_doubtful(ino)))
			return n;
	}
	return inode_is_broken(ino) ? -EIO : n;
}

ssize_t inode_begin_read(struct inode *ino, int fd, void *buf, size_t len, uint64_t logical_off, struct reading *rd)
{
	bool in_body;
	ssize_t n = find_readable(ino, fd, len, logical_off, &in_body), begun;

	*rd = (struct reading){ .in_body = in_body };
	if (unlikely(inode_is_broken(ino)))
		return inode_read(ino, fd, buf, len, logical_off);
	if (rd->in_body || n <= 0)
		return n;
	ino->r.took_body = false;
	begun = reader_begin(&ino->r, ino->writing ? &ino->w : NULL, fd, buf, (size_t)n, logical_off, rd);
	if (unlikely(inode_is_broken(ino)) || unlikely(body_is_doubtful(ino))) {
		if (begun >= 0 && reading_end(&ino->r, rd))
			logset_bury(&ino->r.logs);
		begun = -EIO;
	}
	return begun < 0 ? inode_read(ino, fd, buf, len, logical_off) : begun;
}
